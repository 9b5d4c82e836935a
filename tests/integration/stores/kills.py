"""What becomes of batches while a relational database's server is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown
from tocsin.ports.store import Applied, ShardBatch
from tocsin.testing.store_conformance_base import ALICE, finished, loaded, row, uuid_of

_SHARDS, _KILLS = 4, 3


class Killable(Protocol):
    """A server."""

    def kill(self) -> None: ...
    def start(self) -> None: ...


async def check_batches_across_kills(
    store: Any, server: Killable, restarted: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Four lanes commit without a pause while the server is killed, and started again, three times: acknowledged batches are
    whole, and failed ones have no effect. The store is open and has four writers; `restarted` runs after each start."""
    epochs = dict.fromkeys(range(_SHARDS), 0)
    outcomes: dict[int, list[tuple[int, str]]] = {shard_id: [] for shard_id in range(_SHARDS)}
    acknowledged = asyncio.Event()

    async def lane(shard_id: int, first: int) -> None:
        for number in range(first, first + 5_000):
            batch = ShardBatch(shard_id, epochs[shard_id], ALICE)
            batch.upserts = [row(1 + 10 * number + i, number) for i in range(3)]
            batch.history = [finished(row(1 + 10 * number + 5, number))]
            try:
                assert await store.apply([batch]) == [Applied.DURABLE]
            except OutcomeUnknown:
                outcomes[shard_id].append((number, "unknown"))
                return
            except DefiniteFailure:
                outcomes[shard_id].append((number, "failed"))
                return
            outcomes[shard_id].append((number, "durable"))
            if number == first + 20:
                acknowledged.set()

    for kill in range(_KILLS):
        for shard_id, epoch in epochs.items():
            claim = await store.claim(shard_id, expected_epoch=epoch, owner=ALICE)
            assert claim is not None
            epochs[shard_id] = claim
        acknowledged.clear()
        lanes = [asyncio.create_task(lane(shard_id, kill * 10_000)) for shard_id in range(_SHARDS)]
        await acknowledged.wait()
        server.kill()
        await asyncio.gather(*lanes)
        server.start()
        if restarted is not None:
            await restarted()

    for shard_id, results in outcomes.items():
        present: dict[int, int] = {}
        for live in await loaded(store, shard_id, page_rows=1_000):
            present[live.execute_at] = present.get(live.execute_at, 0) + 1
        ended = await store.fetch(shard_id, [uuid_of(1 + 10 * number + 5) for number, _ in results])
        for number, result in results:
            whole = (present.get(number, 0), uuid_of(1 + 10 * number + 5) in ended)
            assert whole in ((3, True), (0, False))
            assert result == "unknown" or whole[1] == (result == "durable")
        # Each kill met every lane in a commit or before it, and ended it.
        assert len([result for _, result in results if result != "durable"]) == _KILLS
