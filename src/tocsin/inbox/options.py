"""What operators set of the inbox."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tocsin.model.instants import US_PER_SECOND
from tocsin.model.setting import setting
from tocsin.model.setting_values import name_of_node, namespace_name, well_formed

TABLE = "tocsin_outbox"
_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?", re.ASCII)


def inbox_address(value: object) -> str:
    """The URL of a database that can have an inbox. The schemes `postgres` and `mariadb` become `postgresql` and `mysql`."""
    text = value if isinstance(value, str) else ""
    for alias, scheme in (("postgres://", "postgresql://"), ("mariadb://", "mysql://")):
        text = scheme + text.removeprefix(alias) if text.startswith(alias) else text
    if urlsplit(text).scheme not in ("postgresql", "mysql") or "://" not in text:
        raise ValueError(
            "is not the URL of a database with an inbox; use postgresql://user@host/database or mysql://user@host/database"
        )
    return well_formed(text)


def table_name(value: object) -> str:
    """The name of a table, perhaps with that of its schema."""
    if not isinstance(value, str) or not _TABLE_NAME.fullmatch(value):
        raise ValueError("is not a table's name; write it as tocsin_outbox or jobs.tocsin_outbox")
    return value


def namespace_names(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Names of namespaces."""
    for entry in entries:
        try:
            namespace_name(entry)
        except ValueError as error:
            raise ValueError(f"{entry!r} {error}") from None
    return entries


@dataclass(frozen=True, slots=True)
class InboxOptions:
    """Where rows come from, and what they may ask for."""

    url: str | None = setting(
        None,
        "Database with the table that is drained: `postgresql://user:password@host:port/database` or "
        "`mysql://user:password@host:port/database` (MariaDB too). Unset: there is no inbox.",
        rule=inbox_address,
    )
    url_file: Path | None = setting(
        None,
        "File with the value of `inbox.url`, for a URL with a password.",
    )
    namespaces: tuple[str, ...] = setting(
        (),
        "Namespaces in which rows may create timers, which `inbox.url` requires. A row of another namespace is dead. "
        "Whoever may insert rows needs no API key: list only what all of them may use.",
        rule=namespace_names,
    )
    source: str = setting(
        "inbox",
        "How the audit trail names those who write rows, such as `shop database`.",
        rule=name_of_node,
    )
    table: str = setting(
        TABLE,
        "Name of the table, also as `schema.table`; that of the programs' outboxes.",
        rule=table_name,
    )
    poll_interval_us: int = setting(
        US_PER_SECOND // 2,
        "How often the table is read. PostgreSQL announces commits, so there it matters only when an announcement is lost. "
        "With lower values timers of a MySQL database are created sooner, for more queries.",
    )

    # Constants, which tests make smaller.

    #: Rows that are read and created together.
    rows_max: int = 250
    #: Bytes of requests that are read together; one row may have more.
    round_bytes_max: int = 8 << 20
    #: How often the rows are counted, which takes one pass over the oldest.
    count_interval_us: int = 60 * US_PER_SECOND
    #: Pauses after a failure: the first, which doubles with each further one, and the longest: while the engine is busy, and
    #: while the database can't be asked.
    pause_us: int = US_PER_SECOND // 10
    busy_pause_us_max: int = 5 * US_PER_SECOND
    away_pause_us_max: int = 10 * US_PER_SECOND
