"""Every batch of the simulated store that has become durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tocsin.ports.store import Applied, ShardBatch

if TYPE_CHECKING:
    from .world import World


def watch_durable(world: World, written: Callable[[ShardBatch], None]) -> None:
    """Has `written` called for each durable batch, before its owner knows of it."""
    transact = world.store.transact

    async def watched(batches: Sequence[ShardBatch]) -> list[Applied]:
        results = await transact(batches)
        for batch, result in zip(batches, results, strict=True):
            if result is Applied.DURABLE:
                written(batch)
        return results

    world.store.transact = watched  # type: ignore[method-assign]
