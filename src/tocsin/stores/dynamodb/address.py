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
