"""Changes and pings of monitors on a real engine, while the store is slow, or others change the same monitor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest
from tests.support.patience import PATIENCE_S
from tests.unit.test_forwarded_writes import Elsewhere, Node

from tocsin.model.errors import Overloaded, QuotaExceeded, ShardUnavailable, VersionConflict
from tocsin.model.monitor import BODY_BYTES_MAX, MonitorDefinition, Ping, PingEvent
from tocsin.model.timer import Timer
from tocsin.ports.records import Record
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.monitor_records import MONITOR_TOKENS, MONITORS
from tocsin.timers.monitors import MonitorListRequest, Monitors, MonitorView
from tocsin.web.http.monitors import kept

HOURLY = MonitorDefinition(every_us=3_600_000_000)
OK = Ping(PingEvent.SUCCESS)


class Watched(MemoryStore):
    """A store with which the test waits, or does something in between."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        #: Look-ups of tokens so far, and what they wait for.
        self.looked_up = 0
        self.answers, self._begun = asyncio.Event(), asyncio.Condition()
        self.answers.set()
        #: Called once before records of monitors are removed, and after one was written.
        self.before_removal: Callable[[], Awaitable[object]] | None = None
        self.after_listing: Callable[[], Awaitable[object]] | None = None

    async def record(self, kind: str, key: str) -> Record | None:
        if kind == MONITOR_TOKENS:
            async with self._begun:
                self.looked_up += 1
                self._begun.notify_all()
            await self.answers.wait()
        return await super().record(kind, key)

    async def until_looked_up(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S), self._begun:
            await self._begun.wait_for(lambda: self.looked_up >= count)

    async def put_record(self, kind: str, key: str, value: str, expected: int | None) -> bool:
        done = await super().put_record(kind, key, value, expected)
        if kind == MONITORS and self.after_listing is not None:
            called, self.after_listing = self.after_listing, None
            await called()
        return done

    async def delete_records(self, kind: str, keys: Sequence[str]) -> bool:
        if kind == MONITORS and self.before_removal is not None:
            called, self.before_removal = self.before_removal, None
            await called()
        return await super().delete_records(kind, keys)

    async def left(self) -> tuple[int, int]:
        """How many records of monitors and of tokens there are."""
        found = [await self.records(kind, limit=100) for kind in (MONITORS, MONITOR_TOKENS)]
        return len(found[0]), len(found[1])


class Served(Node):
    """A node with its monitors."""

    def __init__(self, store: Watched) -> None:
        super().__init__(store)
        self.store, self.monitors = store, Monitors(self.service)

    async def put(self, name: str = "m", expected_version: int | None = None) -> MonitorView:
        return await self.monitors.put(Timer("default", name, 0, "", 0, 0), HOURLY, expected_version=expected_version)

    async def listed(self) -> list[str]:
        return [view.timer.id for view in (await self.monitors.list(MonitorListRequest("default")))[0]]


@pytest.fixture
async def node() -> AsyncIterator[Served]:
    store = Watched()
    await store.open(1)
    made = Served(store)
    await made.service.namespaces.ensure_default()
    await made.supervisor.start()
    await asyncio.wait_for(made.owned.wait(), PATIENCE_S)
    yield made
    await made.supervisor.close()


# ---------------------------------------------------------------------- puts and deletes


async def test_a_put_that_is_refused_leaves_nothing(node: Served) -> None:
    with pytest.raises(VersionConflict):
        await node.put(expected_version=3)
    assert await node.store.left() == (0, 0)
    usual, node.context.limits = node.context.limits, replace(node.context.limits, pending_writes_max=0)
    with pytest.raises(Overloaded):
        await node.put()
    assert await node.store.left() == (0, 0)
    node.context.limits = usual
    assert (await node.put()).created
    node.context.limits = replace(usual, pending_writes_max=0)
    with pytest.raises(Overloaded):
        await node.monitors.rotate("default", "m")
    assert await node.store.left() == (1, 1)


async def test_a_put_whose_outcome_is_unknown_keeps_its_token(node: Served) -> None:
    node.supervisor.shards[0].closed = True
    elsewhere = Elsewhere()
    elsewhere.answer = ShardUnavailable("a commit's outcome is unknown")
    node.service.connect(elsewhere, elsewhere)  # type: ignore[arg-type]
    with pytest.raises(ShardUnavailable):
        await node.put()
    assert await node.store.left() == (1, 1)


async def test_puts_count_as_creates(node: Served) -> None:
    await node.service.namespaces.update("default", quotas={"creates_per_second": 1})
    with pytest.raises(QuotaExceeded):
        for number in range(50):
            await node.put(f"{number}")


async def test_a_monitor_that_is_put_while_the_former_one_is_deleted_is_listed(node: Served) -> None:
    await node.put()
    node.store.before_removal = node.put
    await node.monitors.delete("default", "m")
    assert await node.listed() == ["m"]
    assert await node.store.left() == (1, 1)
    # Or the delete removes the record before the put creates the row.
    await node.monitors.delete("default", "m")
    node.store.after_listing = partial(node.store.delete_records, MONITORS, ["default/m"])
    assert (await node.put()).created
    assert await node.listed() == ["m"]


def test_what_is_kept_of_a_body_has_a_limit_whatever_its_bytes_are() -> None:
    for body in (b"\xff" * BODY_BYTES_MAX, b"\0" * BODY_BYTES_MAX, b"a" * BODY_BYTES_MAX, b"\xc3\xa4" * BODY_BYTES_MAX):
        assert BODY_BYTES_MAX - 4 < len(kept(body).encode()) <= BODY_BYTES_MAX
    assert kept(b"\xff end") == "\ufffd end"
