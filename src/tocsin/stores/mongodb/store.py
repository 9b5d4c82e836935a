"""The store in a MongoDB database that several nodes share.

`schema` and `documents` define the database's content; `writes`, `reads`, `lists` and `records` have the port's methods with
their statements, and this file the life cycle.
"""

from __future__ import annotations

from functools import partial

from tocsin.ports.store import Capabilities
from tocsin.sql.keys import LeftEdges
from tocsin.stores.mongodb import schema
from tocsin.stores.mongodb.address import parse_address
from tocsin.stores.mongodb.client import MongoClient
from tocsin.stores.mongodb.lists import MongoLists
from tocsin.stores.mongodb.reads import MongoReads
from tocsin.stores.mongodb.records import MongoRecords
from tocsin.stores.mongodb.writes import MongoWrites
from tocsin.stores.options import MongoOptions

#: Timers in one transaction: each may need a delete and a document of history, or an upsert and a run, and MongoDB advises
#: at most 1,000 documents. Those that fail add one each.
_BATCH_ROWS_MAX = 450
#: Half of the size up to which one entry of the oplog has room.
_BATCH_BYTES_MAX = 8 * 1024 * 1024
#: MongoDB's limit of a document, less what a document has besides its record.
_ROW_BYTES_MAX = 16 * 1024 * 1024 - 64 * 1024


class MongoStore(MongoWrites, MongoReads, MongoLists, MongoRecords):
    """Timers in the MongoDB database at `url` (`mongodb://HOST/DATABASE?replicaSet=…`), which any number of nodes may share.

    The database belongs to Tocsin alone. Its collections are created; without `create`, a database without them raises
    StoreUnavailable.
    """

    capabilities = Capabilities(
        shards_together=False,
        batch_rows_max=_BATCH_ROWS_MAX,
        batch_bytes_max=_BATCH_BYTES_MAX,
        row_bytes_max=_ROW_BYTES_MAX,
    )

    def __init__(self, url: str, options: MongoOptions | None = None, *, create: bool = True) -> None:
        address = parse_address(url)
        new_client = partial(MongoClient, address, options or MongoOptions())
        super().__init__(address.place, new_client, schema, create=create)
        self._edges = LeftEdges()

    async def open(self, total_shards: int | None) -> int:
        """Connects, creates what is missing, and fixes the number of shards at first use; returns the number in force."""
        self._edges = LeftEdges()
        return await super().open(total_shards)
