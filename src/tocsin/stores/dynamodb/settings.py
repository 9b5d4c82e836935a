"""The address of a table, and the limits of requests to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from tocsin.model.errors import ConfigError

#: The layout of the table that this release writes.
LAYOUT = 1
#: The oldest layout whose release can use this one.
LAYOUT_READABLE_FROM = 1

#: The parameters of an address.
PARAMETERS = ("endpoint", "region")

#: DynamoDB's limits of a transaction: actions, and bytes of items.
TRANSACTION_ACTIONS_MAX = 100
TRANSACTION_BYTES_MAX = 4 * 1024 * 1024
#: DynamoDB's limit of an item, including attribute names and its entries in local indexes.
ITEM_BYTES_MAX = 400 * 1024
#: What an item and its entries have besides its record: the longest namespace, id, tags and reason of suspension, most of
#: them twice, the keys, and the names of attributes.
BESIDE_RECORD_BYTES_MAX = 16 * 1024

_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}\Z")
_FORM = "dynamodb://TABLE?region=eu-west-1"


@dataclass(frozen=True, slots=True)
class TableAddress:
    """Where a table is. `region` None: the one in AWS's settings; `endpoint` None: the region's own."""

    table: str
    region: str | None = None
    endpoint: str | None = None

    @property
    def place(self) -> str:
        """The address for people."""
        region = f" in {self.region}" if self.region else ""
        return f"dynamodb://{self.table}{region}" + (f" at {self.endpoint}" if self.endpoint else "")


def parse_address(url: str) -> TableAddress:
    """The parts of `dynamodb://TABLE?region=…&endpoint=…`; ConfigError names what is wrong."""
    parts = urlsplit(url)
    table = parts.netloc
    if not _TABLE.match(table) or parts.path.strip("/") or parts.fragment:
        raise ConfigError(
            f"store: {url.partition('?')[0]} names no table; write {_FORM}, the table of 3 to 255 of A-Z a-z 0-9 _ . -"
        )
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := parameters.keys() - set(PARAMETERS):
        raise ConfigError(
            f"store: dynamodb://{table}: no parameter {min(unknown)}; there are {' and '.join(PARAMETERS)}"
        )
    region, endpoint = parameters.get("region"), parameters.get("endpoint")
    if region is not None and not re.fullmatch(r"[a-z0-9-]{1,64}", region):
        raise ConfigError(f"store: dynamodb://{table}: region {region!r} is no region; write it as eu-west-1")
    if endpoint is not None and not _is_endpoint(endpoint):
        raise ConfigError(
            f"store: dynamodb://{table}: endpoint {endpoint!r} is no address; write it as http://127.0.0.1:8000"
        )
    return TableAddress(table, region, endpoint)


def _is_endpoint(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not parts.query
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class DynamoSettings:
    """Timeouts and limits of requests.

    `connect_timeout_s` limits connecting, `request_timeout_s` one request. A request that is throttled, conflicts with
    another transaction or gets no response is sent again until `patience_s` after it was first sent; a request sent before
    that may end later. `connections_max` limits the connections, `parallel_max` the concurrent requests of one call.
    `actions_max` and `bytes_max` limit a transaction, including its fence; `page_items_max` limits what a query reads.
    `create_timeout_s` limits the creation of the table.
    """

    address: TableAddress
    request_timeout_s: float = 3.0
    connect_timeout_s: float = 2.0
    patience_s: float = 8.0
    connections_max: int = 50
    parallel_max: int = 16
    actions_max: int = TRANSACTION_ACTIONS_MAX
    bytes_max: int = 7 * TRANSACTION_BYTES_MAX // 8
    page_items_max: int = 1_000
    create_timeout_s: float = 120.0
    application_name: str = "tocsin"
