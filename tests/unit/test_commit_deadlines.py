"""Clients get an error when their time budget ends, however long the store delays a commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.support.completions import Noted
from tests.unit.test_forwarded_writes import Node, timer

from tocsin.model.errors import RequestExpired, ShardUnavailable
from tocsin.ports.forward import Write, WriteKind, Written
from tocsin.ports.store import Applied, ShardBatch
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock

PATIENCE_US = 200_000


class Stalling(MemoryStore):
    """A store that writes batches of timers only when it is released."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.asked, self.let = asyncio.Event(), asyncio.Event()

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        self.asked.set()
        await self.let.wait()
        return await super().apply(batches)


async def test_clients_get_an_error_in_time_when_the_store_does_not_respond() -> None:
    store = Stalling()
    await store.open(1)
    node = Node(store, write_timeout_us=PATIENCE_US)
    await node.service.namespaces.ensure_default()
    await node.supervisor.start()
    await node.owned.wait()

    def ask(number: int, patience_us: int = PATIENCE_US) -> asyncio.Future[object]:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        deadline_us = node.clock.boottime_us() + patience_us
        write = Write(WriteKind.CREATE, 0, bytes([number]) * 16, "default", timer(f"t{number}"), None, deadline_us)
        node.service.accept(write, None, Noted(answer.set_result))
        return answer

    under_way = ask(1)
    await store.asked.wait()
    behind = ask(2)
    patient = ask(3, 60_000_000)
    unknown = await under_way
    assert isinstance(unknown, ShardUnavailable)
    assert "unknown" in str(unknown)
    assert isinstance(await behind, RequestExpired)
    assert not patient.done()
    store.let.set()
    assert isinstance(await patient, Written)
    found = await store.fetch(0, [bytes([number]) * 16 for number in (1, 2, 3)])
    assert found.keys() == {b"\x01" * 16, b"\x03" * 16}
    await node.supervisor.close()


async def test_a_durable_write_is_answered_though_its_claim_has_ended() -> None:
    """The node lease lapses while the store writes: the timer is there, so its client must not get an unknown outcome."""
    store = Stalling()
    await store.open(1)
    node = Node(store)
    await node.service.namespaces.ensure_default()
    await node.supervisor.start()
    await node.owned.wait()
    answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    deadline_us = node.clock.boottime_us() + 60_000_000
    write = Write(WriteKind.CREATE, 0, b"\x01" * 16, "default", timer("t1"), None, deadline_us)
    node.service.accept(write, None, Noted(answer.set_result))
    await store.asked.wait()
    node.supervisor.shards[0].lose("lease")
    store.let.set()
    assert isinstance(await answer, Written)
    assert (await store.fetch(0, [b"\x01" * 16])).keys() == {b"\x01" * 16}
    await node.supervisor.close()
