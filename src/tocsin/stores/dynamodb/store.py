"""The store in a DynamoDB table that several nodes share.

`keys` and `items` define the table's content; `writes`, `reads`, `lists` and `records` have the port's methods with their
requests, and this file the life cycle.
"""

from __future__ import annotations

from tocsin.ports.observer import Observer
from tocsin.ports.store import Capabilities
from tocsin.stores.dynamodb.address import BESIDE_RECORD_BYTES_MAX, ITEM_BYTES_MAX, parse_address
from tocsin.stores.dynamodb.client import DynamoClient
from tocsin.stores.dynamodb.lists import DynamoLists
from tocsin.stores.dynamodb.reads import DynamoReads
from tocsin.stores.dynamodb.records import DynamoRecords
from tocsin.stores.dynamodb.schema import begin_data, prepare
from tocsin.stores.dynamodb.writes import DynamoWrites
from tocsin.stores.options import DynamoOptions

#: Timers in one transaction: each may need a delete and a history item, or a put and a run, besides the fence.
_BATCH_ROWS_MAX = 49
#: Half of a transaction's limit, because the last row of a batch may exceed it.
_BATCH_BYTES_MAX = 2 * 1024 * 1024


class DynamoStore(DynamoWrites, DynamoReads, DynamoLists, DynamoRecords):
    """Timers in the DynamoDB table at `url` (`dynamodb://TABLE?region=…&endpoint=…`), which any number of nodes may share.

    The table belongs to Tocsin alone. If it is missing, it is created, billed on
    demand; without `create` that raises StoreUnavailable. Credentials and the default region come from AWS's usual sources.
    """

    capabilities = Capabilities(
        range_delete=False,
        exclusive=False,
        shards_together=False,
        batch_rows_max=_BATCH_ROWS_MAX,
        batch_bytes_max=_BATCH_BYTES_MAX,
        row_bytes_max=ITEM_BYTES_MAX - BESIDE_RECORD_BYTES_MAX,
    )

    def __init__(
        self,
        url: str,
        options: DynamoOptions | None = None,
        *,
        create: bool = True,
        observe: Observer = lambda event: None,
    ) -> None:
        self._address = parse_address(url)
        self._options = options or DynamoOptions()
        super().__init__(self._address.place, create=create)
        self._observe = observe

    def _new_client(self) -> DynamoClient:
        return DynamoClient(self._address, self._options, self._observe)

    async def _prepare(self, client: DynamoClient, total_shards: int | None) -> int:
        return await prepare(client, total_shards, create=self._create)

    async def _begin_data(self) -> bool:
        return await begin_data(self._open, self._total_shards)

    async def now(self) -> int:
        """This machine's clock, limited to the second in the date of DynamoDB's response."""
        return await self._open.now()
