"""The size of the largest shard, as the nodes of the cluster report it."""

from __future__ import annotations

import asyncio
import contextlib

from tocsin.model.errors import StoreError
from tocsin.ports.observer import Observer, PartitionSizeMeasured
from tocsin.stores.cassandra.client import TABLE, CassandraClient
from tocsin.tasks import end_tasks

_MIB = 1 << 20


class SizeWatch:
    """Reads the size periodically, and reports each change, from its creation to `stop`."""

    def __init__(self, client: CassandraClient, observe: Observer) -> None:
        self._client = client
        self._observe = observe
        self._bytes = -1
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Ends it."""
        await end_tasks(self._task)

    async def _watch(self) -> None:
        while True:
            # A node that cannot be asked now is asked the next time. Other requests report that it is not available.
            with contextlib.suppress(StoreError):
                size_bytes = await largest_partition_bytes(self._client)
                if size_bytes != self._bytes:
                    self._bytes = size_bytes
                    self._observe(PartitionSizeMeasured(size_bytes))
            await asyncio.sleep(self._client.options.size_interval_s)


async def largest_partition_bytes(client: CassandraClient) -> int:
    """The size of the largest partition of the table on any node, as of its last compaction or flush, in steps of one MiB."""
    keyspace = client.address.keyspace
    statement = (
        "SELECT mebibytes FROM system_views.max_partition_size "
        f"WHERE keyspace_name = '{keyspace}' AND table_name = '{TABLE}'"
    )
    sizes = [0]
    for host in client.hosts():
        sizes += [int(row[0]) for row in await client.plain(statement, host=host)]
    return max(sizes) * _MIB
