"""A node's knowledge of namespaces while they are read and changed concurrently."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest
from tests.unit.test_forwarded_writes import Node

from tocsin.administration import namespaces, put_namespace
from tocsin.model.errors import Conflict, InvalidInput, NamespaceNotFound, StoreUnavailable, TimerNotFound, Unavailable
from tocsin.model.namespace import HistoryMode, Namespace
from tocsin.ports.records import Record
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock


@dataclass
class Gate:
    """A gate at which a call to the store waits after it was made."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    let: asyncio.Event = field(default_factory=asyncio.Event)


class Gated(MemoryStore):
    """A store that answers reads and changes of namespaces only when the test lets it."""

    def __init__(self, *, exclusive: bool) -> None:
        super().__init__(SystemClock(), exclusive=exclusive)
        self.asking: Gate | None = None
        self.reading: Gate | None = None
        self.writing: Gate | None = None
        self.failures = 0

    async def records_versions(self, *kinds: str, urgent: bool = False) -> tuple[int, ...]:
        if self.asking is not None:
            self.asking.reached.set()
            await self.asking.let.wait()
        return await super().records_versions(*kinds)

    async def records(self, kind: str, *range: str, limit: int, descending: bool = False) -> list[Record]:
        rows, gate = await super().records(kind, *range, limit=limit, descending=descending), self.reading
        if gate is not None:
            gate.reached.set()
            await gate.let.wait()
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("out of reach")
        return rows

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        if self.writing is not None:
            self.writing.reached.set()
            await self.writing.let.wait()
        return await super().put_record(kind, key, value, expected)


async def opened(*, exclusive: bool) -> tuple[Node, Gated]:
    store = Gated(exclusive=exclusive)
    await store.open(1)
    node = Node(store)
    await node.service.namespaces.ensure_default()
    return node, store


@pytest.mark.parametrize("by_itself", [False, True])
async def test_read_that_began_before_a_change_does_not_undo_it(by_itself: bool) -> None:
    """Otherwise a paused namespace would fire until the next read."""
    node, store = await opened(exclusive=True)
    gate = store.reading = Gate()
    read = node.supervisor.lease.read_namespaces if by_itself else node.service.namespaces.all
    reading = asyncio.create_task(read())
    await gate.reached.wait()
    store.reading = None
    await node.service.namespaces.update("default", paused=True)
    gate.let.set()
    await reading
    assert node.context.namespaces["default"].paused
    # A later read returns what others have changed.
    (stored,) = await namespaces(store)
    changed = msgspec.structs.replace(stored, retention_us=7, version=stored.version + 1)
    assert await put_namespace(store, changed, create=False)
    await read()
    assert node.context.namespaces["default"].retention_us == 7


async def test_read_that_began_earlier_does_not_undo_a_later_read() -> None:
    node, store = await opened(exclusive=False)
    gate = store.reading = Gate()
    earlier = asyncio.create_task(node.supervisor.lease.read_namespaces())
    await gate.reached.wait()
    store.reading = None
    (stored,) = await namespaces(store)
    await put_namespace(store, msgspec.structs.replace(stored, paused=True, version=stored.version + 1), create=False)
    await node.service.namespaces.all()
    gate.let.set()
    await earlier
    assert node.context.namespaces["default"].paused


async def test_read_that_is_overtaken_does_not_hide_a_change() -> None:
    """It sees the change, but leaves out what a read that began later has learned: the version is not known whole."""
    node, store = await opened(exclusive=False)
    gate = store.asking = Gate()
    overtaken = asyncio.create_task(node.supervisor.lease.read_namespaces())
    await gate.reached.wait()
    store.asking = None
    await node.service.namespaces.all()
    (stored,) = await namespaces(store)
    await put_namespace(store, msgspec.structs.replace(stored, paused=True, version=stored.version + 1), create=False)
    gate.let.set()
    await overtaken
    await node.service.namespaces.all()
    assert node.context.namespaces["default"].paused


async def test_concurrent_changes_on_two_nodes_both_apply() -> None:
    one, store = await opened(exclusive=False)
    other = Node(store)
    gate = store.writing = Gate()
    pausing = asyncio.create_task(one.service.namespaces.update("default", paused=True))
    await gate.reached.wait()
    store.writing = None
    await other.service.namespaces.update("default", history=HistoryMode.NONE)
    gate.let.set()
    changed, _ = await pausing
    assert (changed.paused, changed.history) == (True, HistoryMode.NONE)
    assert await namespaces(store) == [changed]


async def test_change_that_always_conflicts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    node, store = await opened(exclusive=False)

    async def overtaken(kind: str, key: str, value: str, expected: int | None) -> bool:
        return False

    monkeypatch.setattr(store, "put_record", overtaken)
    with pytest.raises(Conflict):
        await node.service.namespaces.update("default", paused=True)
    with pytest.raises(NamespaceNotFound):
        await node.service.namespaces.update("none", paused=True)
    assert not node.context.namespaces["default"].paused


async def test_concurrent_changes_on_one_node_both_apply() -> None:
    node, store = await opened(exclusive=True)
    gate = store.writing = Gate()
    one = asyncio.create_task(node.service.namespaces.update("default", paused=True))
    await gate.reached.wait()
    other = asyncio.create_task(node.service.namespaces.update("default", history=HistoryMode.NONE))
    # As far as it gets.
    await asyncio.sleep(0)
    gate.let.set()
    await asyncio.gather(one, other)
    (stored,) = await namespaces(store)
    assert (stored.paused, stored.history) == (True, HistoryMode.NONE)


async def test_failed_read_answers_only_its_own_waiters() -> None:
    """Otherwise the other waiters would be answered that another node's namespace does not exist."""
    node, store = await opened(exclusive=False)
    known = node.context.namespaces["default"]
    await put_namespace(store, Namespace("elsewhere", 1, 1, 1, known.history, known.retention_us, None), create=True)
    gate = store.reading = Gate()
    store.failures = 1
    first = asyncio.create_task(node.service.get("elsewhere", "t"))
    await gate.reached.wait()
    # These require a read of their own, and share one.
    others = [asyncio.create_task(node.service.get("elsewhere", "t")) for _ in range(3)]
    await asyncio.sleep(0)
    gate.let.set()
    answers = await asyncio.gather(first, *others, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable, TimerNotFound, TimerNotFound, TimerNotFound]


async def test_clients_cannot_create_reserved_namespaces() -> None:
    node, _ = await opened(exclusive=True)
    with pytest.raises(InvalidInput, match="reserved"):
        await node.service.namespaces.create("tocsin.agent")
    await node.service.namespaces.create("tocsin.agent", reserved=True)
    await node.service.namespaces.update("tocsin.agent", history=HistoryMode.NONE)
