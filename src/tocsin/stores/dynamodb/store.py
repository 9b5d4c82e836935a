"""The store in a DynamoDB table that several nodes share.

`keys` and `items` define the table's content; `writes`, `reads`, `lists` and `records` have the port's methods with their
requests, and this file the life cycle.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tocsin.ports.observer import Observer
from tocsin.ports.store import Capabilities
from tocsin.stores.dynamodb import schema
from tocsin.stores.dynamodb.address import BESIDE_RECORD_BYTES_MAX, ITEM_BYTES_MAX, parse_address
from tocsin.stores.dynamodb.client import DynamoClient
from tocsin.stores.dynamodb.lists import DynamoLists
from tocsin.stores.dynamodb.reads import DynamoReads
from tocsin.stores.dynamodb.records import DynamoRecords
from tocsin.stores.dynamodb.writes import DynamoWrites
from tocsin.stores.options import DynamoOptions

#: Timers in one transaction: each may need a delete and a history item, or a put and a run, besides the fence. One
#: that fails takes a third action, and a batch of many such ones two transactions.
_BATCH_ROWS_MAX = 49
#: Half of a transaction's limit, because the last row of a batch may exceed it.
_BATCH_BYTES_MAX = 2 * 1024 * 1024


class DynamoStore(DynamoWrites, DynamoReads, DynamoLists, DynamoRecords):
    """Timers in the DynamoDB table at `url` (`dynamodb://TABLE?region=…&endpoint=…`), which any number of nodes may share.

    The table belongs to Tocsin alone. If it is missing, it is created, billed on demand; without `create` that raises
    StoreUnavailable. Credentials and the default region come from AWS's usual sources.
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
        address = parse_address(url)
        options = options or DynamoOptions()
        self.capabilities = replace(self.capabilities, expires_history=options.time_to_live)
        new_client = partial(DynamoClient, address, options, observe)
        super().__init__(address.place, new_client, schema, create=create)
