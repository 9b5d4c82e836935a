"""All rows of the agent's tables, read and written as they are, to move them to another database of either kind."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from tocsin.stores.service_calls.database import AgentDatabase
from tocsin.stores.service_calls.statements import Kind, Query, Row, Session

#: Rows of one page, of which each may have a body.
_PAGE_ROWS = 200
_DIGEST_BYTES = 16
_NUMBERS = frozenset({"id", "timestamp_ms", "executions", "attempts"})


CALLS_TABLE = "service_calls"


class Table(NamedTuple):
    """A table: its columns, of which the first ones are its key."""

    name: str
    columns: tuple[str, ...]
    key: int


#: Those that others refer to first. What belongs to the agent that holds the database, its lock and heartbeat, stays.
TABLES = (
    Table(
        CALLS_TABLE,
        (
            "tenant_id", "service_call_id", "name", "status", "submitted_at", "due_at", "started_at", "finished_at",
            "request_spec", "outcome_meta", "correlation_id", "fingerprint", "idempotency_key", "execution_id", "executions",
            "watch_at", "retry_policy", "attempts", "first_attempt_at", "next_attempt_at", "traceparent", "hooks", "failure",
            "flow_key",
        ),
        2,
    ),
    Table("service_call_tags", ("tenant_id", "service_call_id", "tag", "submitted_at"), 3),
    Table(
        "timer_schedules",
        ("tenant_id", "service_call_id", "correlation_id", "due_at", "registered_at", "reached_at", "state"),
        2,
    ),
    Table(
        "http_execution_log",
        (
            "tenant_id", "service_call_id", "execution_id", "started_at", "finished_at", "request_url", "request_method",
            "request_headers", "request_body", "response_status", "response_headers", "response_body", "error_message",
            "correlation_id",
        ),
        3,
    ),
    Table(
        "suspended_executions",
        ("tenant_id", "service_call_id", "execution_id", "place", "suspended_at", "reported_at", "envelope"),
        3,
    ),
    Table(
        "outbox",
        (
            "id", "tenant_id", "aggregate_id", "event_type", "event_payload", "created_at", "published_at", "envelope_id",
            "correlation_id", "causation_id", "timestamp_ms", "attempts", "last_error", "suspended_at",
        ),
        1,
    ),
    Table("tenant_secrets", ("tenant_id", "secrets"), 1),
)  # fmt: skip


def _raw(table: Table) -> dict[str, Kind]:
    """Texts as they are stored: what is in them does not matter here."""
    return {name: Kind() for name in table.columns if name not in _NUMBERS and not name.endswith("_at")}


def first_page(table: Table) -> Query:
    """The first rows of a table, by key."""
    return _page(table, "")


def next_page(table: Table) -> Query:
    """The rows behind those with the key in `:after_0`, `:after_1`, …"""
    key, after = table.columns[: table.key], (f":after_{place}" for place in range(table.key))
    return _page(table, f"WHERE ({', '.join(key)}) > ({', '.join(after)}) ")


def _page(table: Table, condition: str) -> Query:
    columns, key = ", ".join(table.columns), ", ".join(table.columns[: table.key])
    sql = f"SELECT {columns} FROM {table.name} {condition}ORDER BY {key} LIMIT :most"
    return Query(sql, results=table.columns, kinds=_raw(table))


def insert_new(table: Table) -> Query:
    """Inserts those of the given rows that are missing."""
    columns, values = ", ".join(table.columns), ", ".join(f"given.{name}" for name in table.columns)
    # SQLite takes an ON behind a SELECT without a WHERE for a join's.
    sql = f"INSERT INTO {table.name} ({columns}) SELECT {values} FROM GIVEN WHERE true ON CONFLICT DO NOTHING"
    return Query(sql, given=table.columns, kinds=_raw(table))


_STATEMENTS = {table.name: (first_page(table), next_page(table), insert_new(table)) for table in TABLES}

#: The number that was given to a message last. Messages of which nothing is left had some, too.
LAST_NUMBER = Query(
    "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM outbox_id_seq",
    sqlite="SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox'",
)
#: SQLite's table has no row before the first message, and no key.
FORGET_NUMBER = Query("SELECT 1", sqlite="DELETE FROM sqlite_sequence WHERE name = 'outbox'")
SET_NUMBER = Query(
    "SELECT setval('outbox_id_seq', :number)",
    sqlite="INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', :number)",
)
_CLEAR = {table.name: Query(f"DELETE FROM {table.name}") for table in TABLES}
IDENTIFY = Query("UPDATE agent_identity SET agent_id = :identity")


async def pages(database: AgentDatabase, table: Table) -> AsyncIterator[Sequence[Row]]:
    """All rows of a table, by key."""
    first, following, _ = _STATEMENTS[table.name]
    page = await database.read(partial(first.fetch, most=_PAGE_ROWS))
    while page:
        yield page
        if len(page) < _PAGE_ROWS:
            return
        after = {f"after_{place}": value for place, value in enumerate(page[-1][: table.key])}
        page = await database.read(partial(following.fetch, most=_PAGE_ROWS, **after))


async def is_empty(database: AgentDatabase) -> bool:
    """Whether no table has a row."""
    for table in TABLES:
        first = _STATEMENTS[table.name][0]
        if await database.read(partial(first.fetch, most=1)):
            return False
    return True


async def clear_copy(source: AgentDatabase, target: AgentDatabase) -> bool:
    """Removes all rows of a target that an earlier copy of this source has left; whether it has none now. Those of another
    agent stay."""
    if await is_empty(target):
        return True
    if target.identity != source.identity:
        return False

    async def clear(session: Session) -> None:
        # Others refer to the first ones.
        for table in reversed(TABLES):
            await _CLEAR[table.name].count(session)

    await target.write(clear)
    return True


async def copy_tables(source: AgentDatabase, target: AgentDatabase, advance: Callable[[int], None]) -> None:
    """Copies the source's identity, all rows that are missing in the target, and the number at which messages go on. It can
    be repeated."""

    async def identify(session: Session) -> None:
        await IDENTIFY.count(session, identity=source.identity)

    # First: by it, another try knows that the rows are a copy's.
    await target.write(identify)
    target.identity = source.identity
    for table in TABLES:
        async for page in pages(source, table):
            await target.write(partial(_insert, _STATEMENTS[table.name][2], page))
            advance(len(page))
    ((number,),) = await source.read(LAST_NUMBER.fetch)

    async def go_on(session: Session) -> None:
        await FORGET_NUMBER.fetch(session)
        await SET_NUMBER.fetch(session, number=number)

    if number:
        await target.write(go_on)


async def _insert(query: Query, rows: Sequence[Row], session: Session) -> int:
    return await query.count(session, rows)


async def measured_tables(database: AgentDatabase, advance: Callable[[int], None]) -> tuple[dict[str, int], str]:
    """How many rows each table has, and a digest of all of them."""
    counts, digest = {}, hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for table in TABLES:
        rows = 0
        async for page in pages(database, table):
            rows += len(page)
            for row in page:
                digest.update(msgspec.msgpack.encode((table.name, *row)))
            advance(len(page))
        counts[table.name] = rows
    return counts, digest.hexdigest()
