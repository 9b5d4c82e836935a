"""How much of the store one call reads at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.unit.test_forwarded_writes import Node, timer

from tocsin.model.timer import Changes
from tocsin.ports.store import Found
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.limits import EngineLimits

_LARGEST = EngineLimits().payload_bytes_max + EngineLimits().row_reserve_bytes


class _Counting(MemoryStore):
    """Notes of how many timers each call reads what is stored."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.fetched: list[int] = []

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        self.fetched.append(len(uuids))
        return await super().fetch(shard_id, uuids)


async def test_a_commit_reads_no_more_present_rows_than_memory_is_meant_for() -> None:
    """Changes of timers that are not in memory, each of which may have the largest payload."""
    store = _Counting()
    await store.open(1)
    node = Node(store, fetch_bytes_max=2 * 7 * _LARGEST)
    await node.service.namespaces.ensure_default()
    await node.supervisor.start()
    await node.owned.wait()
    names = [f"t{number}" for number in range(40)]
    await asyncio.gather(*(node.service.create(timer(name)) for name in names))
    changed = await asyncio.gather(*(node.service.update("default", name, Changes(tags=("a",))) for name in names))
    assert {view.timer.tags for view in changed} == {("a",)}
    assert max(store.fetched) == 7
    assert sum(store.fetched) == len(names)
    await node.supervisor.close()
