"""A transfer fills the transactions that its target has: one for all shards, or one for each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tocsin.model.ids import timer_uuid
from tocsin.model.namespace import Namespace
from tocsin.ports.store import Applied, Capabilities, ShardBatch, StoredRow, generation
from tocsin.server.transfer_rows import Placement, RowWriter
from tocsin.stores.memory import MemoryStore

SHARDS, ROWS, ROWS_MAX = 8, 400, 10
OWNER = b"transfer"


class Recording(MemoryStore):
    """Notes how many rows each part of each call has."""

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__()
        self.capabilities = capabilities
        self.calls: list[list[int]] = []

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        self.calls.append([len(batch.upserts) + len(batch.deletes) for batch in batches])
        return await super().apply(batches)


async def written(capabilities: Capabilities) -> list[list[int]]:
    store = Recording(capabilities)
    await store.open(SHARDS)
    epochs = {}
    for shard_id in range(SHARDS):
        epoch = await store.claim(shard_id, expected_epoch=0, owner=OWNER)
        assert epoch is not None
        epochs[shard_id] = epoch
    writer = RowWriter(store, epochs, OWNER, Placement([Namespace("default", SHARDS, 1, 1)], SHARDS, SHARDS))
    for number in range(ROWS):
        uuid = timer_uuid("default", f"t{number}")
        row = StoredRow(number, uuid, generation(1, OWNER, number), "default", f"t{number}", (), b"{}", None)
        await writer.write(store, 0, [row])
    for number in range(ROWS):
        await writer.delete(timer_uuid("default", f"t{number}"), "default")
    await writer.flush()
    assert sum(map(sum, store.calls)) == 2 * ROWS
    return store.calls


@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
async def test_no_transaction_has_more_rows_than_the_store_takes_and_few_have_far_fewer(together: bool) -> None:
    calls = await written(Capabilities(shards_together=together, batch_rows_max=ROWS_MAX))
    if together:
        assert max(map(sum, calls)) == ROWS_MAX
    else:
        # As many as the fullest shard has room for.
        assert max(map(max, calls)) == ROWS_MAX
        assert sum(len(parts) for parts in calls) < 2 * (2 * ROWS / ROWS_MAX)
