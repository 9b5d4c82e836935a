"""Every batch of the simulated store that has become durable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tocsin.ports.store import FLOWS_SUFFIX, Applied, HistoryRow, ShardBatch

if TYPE_CHECKING:
    from tocsin.stores.memory import _Shard

    from .world import World


def ended_rows(shard: _Shard) -> Iterator[HistoryRow]:
    """The stored ends of a shard's timers: history rows that are no tokens of flows."""
    for versions in shard.history.values():
        yield from (row for row in versions.values() if not row.namespace.endswith(FLOWS_SUFFIX))


def _without_tokens(batch: ShardBatch) -> ShardBatch:
    if not any(row.namespace.endswith(FLOWS_SUFFIX) for row in batch.history):
        return batch
    return replace(batch, history=[row for row in batch.history if not row.namespace.endswith(FLOWS_SUFFIX)])


def watch_durable(world: World, written: Callable[[ShardBatch], None]) -> None:
    """Has `written` called for each durable batch, without tokens of flows, before its owner knows of it."""
    transact = world.store.transact

    async def watched(batches: Sequence[ShardBatch]) -> list[Applied]:
        results = await transact(batches)
        for batch, result in zip(batches, results, strict=True):
            if result is Applied.DURABLE:
                written(_without_tokens(batch))
        return results

    world.store.transact = watched  # type: ignore[method-assign]
