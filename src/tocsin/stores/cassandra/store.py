"""The store in a keyspace of Apache Cassandra that several nodes share.

`keys` and `rows` define the table's content; `writes`, `reads`, `lists` and `records` have the port's methods with their
statements, and this file the life cycle.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

from tocsin.model.errors import StoreError
from tocsin.ports.observer import Observer, PartitionSizeMeasured
from tocsin.ports.store import Capabilities
from tocsin.stores.cassandra import schema
from tocsin.stores.cassandra.address import parse_address
from tocsin.stores.cassandra.client import TABLE, CassandraClient
from tocsin.stores.cassandra.lists import CassandraLists
from tocsin.stores.cassandra.reads import CassandraReads
from tocsin.stores.cassandra.records import CassandraRecords
from tocsin.stores.cassandra.writes import WRITE_BYTES_MAX, CassandraWrites
from tocsin.stores.options import CassandraOptions
from tocsin.tasks import end_tasks

#: Timers in one batch. Each takes up to five statements, and the server's time grows with their number.
_BATCH_ROWS_MAX = 500
_BATCH_BYTES_MAX = 1024 * 1024
#: A batch has room for two rows, and what they have besides their records.
_ROW_BYTES_MAX = WRITE_BYTES_MAX // 2 - 64 * 1024


class CassandraStore(CassandraWrites, CassandraReads, CassandraLists, CassandraRecords):
    """Timers in the keyspace of `url` (`cassandra://user:password@host1:9042,host2/KEYSPACE?datacenter=…&consistency=…`),
    which any number of nodes may share.

    The keyspace belongs to Tocsin alone. If it is missing, it is created; without `create` that raises StoreUnavailable.
    `observe` receives the measured sizes of partitions.
    """

    capabilities = Capabilities(
        range_delete=False,
        delete_watermark=True,
        exclusive=False,
        shards_together=False,
        expires_history=True,
        batch_rows_max=_BATCH_ROWS_MAX,
        batch_bytes_max=_BATCH_BYTES_MAX,
        row_bytes_max=_ROW_BYTES_MAX,
    )

    def __init__(
        self,
        url: str,
        options: CassandraOptions | None = None,
        *,
        create: bool = True,
        observe: Observer = lambda event: None,
    ) -> None:
        address = parse_address(url)
        new_client = partial(CassandraClient, address, options or CassandraOptions())
        super().__init__(address.place, new_client, schema, create=create)
        self._before = {}
        self._observe = observe
        self._size: SizeWatch | None = None

    async def open(self, total_shards: int | None) -> int:
        """Connects, and measures partitions from then on."""
        await super().open(total_shards)
        self._size = SizeWatch(self._open, self._observe)
        return self._total_shards

    async def close(self) -> None:
        """Waits for writes under way and disconnects."""
        size, self._size = self._size, None
        if size is not None:
            await size.stop()
        await super().close()


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
    return max(sizes) * (1 << 20)
