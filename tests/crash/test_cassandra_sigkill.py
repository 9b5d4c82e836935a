"""SIGKILL of Cassandra under load: every acknowledged batch is there afterwards, as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest

from tests.support.cassandra import CassandraServer
from tests.support.cluster import until
from tocsin.model.errors import StoreError
from tocsin.ports.store import Applied, ShardBatch, StoredRow
from tocsin.stores.cassandra.store import CassandraStore
from tocsin.stores.options import CassandraOptions
from tocsin.testing.store_conformance_base import finished, row

_SHARDS = 4
_BATCH_ROWS = 20
_KILLS = 2


@pytest.mark.timeout(400)
async def test_a_killed_server_has_every_acknowledged_batch(cassandra: CassandraServer) -> None:
    url = cassandra.new_url()
    acknowledged: dict[int, list[StoredRow]] = {shard_id: [] for shard_id in range(_SHARDS)}
    sent: dict[int, list[StoredRow]] = {shard_id: [] for shard_id in range(_SHARDS)}

    async def write(store: CassandraStore, shard_id: int) -> None:
        epochs = {state.shard_id: state.epoch for state in await store.shards()}
        owner = os.urandom(16)
        epoch = await store.claim(shard_id, expected_epoch=epochs.get(shard_id, 0), owner=owner)
        assert epoch is not None
        while True:
            rows = [row(0, number, uuid=os.urandom(16)) for number in range(_BATCH_ROWS)]
            history = [finished(each, expires_at=2**61) for each in rows]
            sent[shard_id] += rows
            batch = ShardBatch(shard_id, epoch, owner, upserts=rows, history=history)
            assert await store.apply([batch]) == [Applied.DURABLE]
            acknowledged[shard_id] += rows

    for _ in range(_KILLS):
        store = CassandraStore(url, CassandraOptions(request_timeout_s=2))
        await store.open(_SHARDS)
        writers = [asyncio.create_task(write(store, shard_id)) for shard_id in range(_SHARDS)]
        before = sum(map(len, acknowledged.values()))

        async def has_written(before: int = before) -> bool:
            return sum(map(len, acknowledged.values())) >= before + 50 * _BATCH_ROWS

        await until(has_written)
        await asyncio.to_thread(cassandra.kill)
        for writer in writers:
            with contextlib.suppress(StoreError):
                await writer
        await store.close()
        await asyncio.to_thread(cassandra.start)
    store = CassandraStore(url)
    await store.open(None)
    try:
        for shard_id, rows in acknowledged.items():
            found = await store.fetch(shard_id, [each.uuid for each in sent[shard_id]])
            assert [each for each in rows if found.get(each.uuid) is None] == []
            # Whatever was written was written with its history.
            assert [uuid for uuid, each in found.items() if each.live is None or each.finished is None] == []
    finally:
        await store.close()
