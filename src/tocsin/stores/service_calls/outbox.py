"""The outbox table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import msgspec
from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Text,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    text,
    update,
)

from tocsin.model.envelope import Envelope
from tocsin.service_calls.outbox.ports import OutboxRow
from tocsin.stores.service_calls.backend import Database
from tocsin.stores.service_calls.statements import Batch, Fields, Query, Row
from tocsin.stores.service_calls.tables import outbox
from tocsin.stores.service_calls.types import FreeText, Instant

T = TypeVar("T")

_APPENDED: Fields = {
    "id": BigInteger(),
    "tenant_id": Text(),
    "aggregate_id": Text(),
    "event_type": Text(),
    "event_payload": Text(),
    "created_at": Instant(),
    "envelope_id": Text(),
    "correlation_id": Text(),
    "causation_id": Text(),
    "timestamp_ms": BigInteger(),
}
_append = Batch(outbox, _APPENDED, lambda given: given.insert(outbox, *_APPENDED), key=("id",))

#: Numbers are allocated first, so that they follow the order of appending whatever order the rows are inserted in.
_last_number_sqlite = Query(
    {}, lambda given: select(literal_column("seq")).select_from(text("sqlite_sequence")).where(text("name = 'outbox'"))
)
_numbers_postgresql = Query(
    {},
    lambda given: select(literal_column("nextval('outbox_id_seq')")).select_from(
        func.generate_series(1, bindparam("many", type_=Integer()))
    ),
    {"many": Integer()},
)

_WAITS = text("published_at IS NULL AND parked_at IS NULL")
_ENVELOPE = (
    outbox.c.id,
    outbox.c.envelope_id,
    outbox.c.event_type,
    outbox.c.tenant_id,
    outbox.c.aggregate_id,
    outbox.c.timestamp_ms,
    outbox.c.correlation_id,
    outbox.c.causation_id,
    outbox.c.event_payload,
)
UNPUBLISHED = Query(
    {},
    lambda given: (
        select(*_ENVELOPE)
        .where(_WAITS, outbox.c.id > bindparam("after"))
        .order_by(outbox.c.id)
        .limit(bindparam("most", type_=Integer()))
    ),
    {"after": BigInteger(), "most": Integer()},
)
MARK_PUBLISHED = Query(
    {"id": BigInteger()},
    lambda given: (
        update(outbox)
        .where(given.names(outbox, "id"), outbox.c.published_at.is_(None))
        .values(published_at=bindparam("moment", type_=Instant()))
    ),
    {"moment": Instant()},
)
NOTE_FAILURE = Query(
    {},
    lambda given: (
        update(outbox)
        .where(outbox.c.id == bindparam("number"))
        .values(attempts=bindparam("times", type_=BigInteger()), last_error=bindparam("error", type_=FreeText()))
    ),
    {"number": BigInteger(), "times": BigInteger(), "error": FreeText()},
)
SUSPEND = Query(
    {},
    lambda given: (
        update(outbox)
        .where(outbox.c.id == bindparam("number"), _WAITS)
        .values(parked_at=bindparam("moment", type_=Instant()), last_error=bindparam("error", type_=FreeText()))
    ),
    {"number": BigInteger(), "moment": Instant(), "error": FreeText()},
)
PURGE = Query(
    {},
    lambda given: delete(outbox).where(
        outbox.c.id.in_(
            select(outbox.c.id)
            .where(text("published_at IS NOT NULL"), outbox.c.published_at < bindparam("before", type_=Instant()))
            .order_by(outbox.c.published_at)
            .limit(bindparam("most", type_=Integer()))
        )
    ),
    {"before": Instant(), "most": Integer()},
)


class Appended:
    """Collects the rows that a transaction appends to the outbox."""

    def __init__(self) -> None:
        self.rows: list[OutboxRow] = []

    def append(self, connection: Connection, envelopes: Sequence[Envelope], at_us: int | None = None) -> None:
        """Appends the messages, in their order."""
        if not envelopes:
            return
        if connection.dialect.name == "sqlite":
            # No other transaction can write between reading the last number and the insert.
            last = _last_number_sqlite.fetch(connection)
            first = (last[0][0] if last else 0) + 1
            numbers = list(range(first, first + len(envelopes)))
        else:
            numbers = sorted(row[0] for row in _numbers_postgresql.fetch(connection, many=len(envelopes)))
        _append.count(
            connection,
            [
                (
                    number,
                    e.tenant_id,
                    e.aggregate_id,
                    e.type,
                    bytes(e.payload).decode(),
                    e.timestamp_ms * 1_000 if at_us is None else at_us,
                    e.id,
                    e.correlation_id,
                    e.causation_id,
                    e.timestamp_ms,
                )
                for number, e in zip(numbers, envelopes, strict=True)
            ],
        )
        self.rows += map(OutboxRow, numbers, envelopes)


def _row(row: Row) -> OutboxRow:
    number, id_, type_, tenant_id, aggregate_id, timestamp_ms, correlation_id, causation_id, payload = row
    envelope = Envelope(
        id=id_,
        type=type_,
        tenant_id=tenant_id,
        aggregate_id=aggregate_id,
        timestamp_ms=timestamp_ms,
        correlation_id=correlation_id,
        causation_id=causation_id,
        payload=msgspec.Raw(payload.encode()),
    )
    return OutboxRow(number, envelope)


class SqlOutbox:
    """The port OutboxStore."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._on_appended: list[Callable[[Sequence[OutboxRow]], None]] = []
        self._on_unknown: list[Callable[[Sequence[OutboxRow]], None]] = []

    def on_appended(self, notify: Callable[[Sequence[OutboxRow]], None]) -> None:
        self._on_appended.append(notify)

    def on_unknown(self, notify: Callable[[Sequence[OutboxRow]], None]) -> None:
        self._on_unknown.append(notify)

    async def write(self, work: Callable[[Connection, Appended], T]) -> T:
        """Runs `work` in one transaction with the rows that it appends. Registered callbacks get these rows after the
        commit."""
        appended = Appended()

        def attempt(connection: Connection) -> T:
            appended.rows.clear()
            return work(connection, appended)

        return await self._database.write(
            attempt,
            lambda: _report(self._on_appended, appended.rows),
            lambda: _report(self._on_unknown, appended.rows),
        )

    async def unpublished(self, after: int, limit: int) -> list[OutboxRow]:
        rows = await self._database.read(lambda connection: UNPUBLISHED.fetch(connection, after=after, most=limit))
        return [_row(row) for row in rows]

    async def mark_published(self, numbers: Collection[int], at_us: int) -> None:
        if numbers:
            rows = [(number,) for number in sorted(numbers)]
            await self._database.write(lambda connection: MARK_PUBLISHED.count(connection, rows, moment=at_us))

    async def note_failure(self, number: int, attempts: int, error: str) -> None:
        await self._database.write(
            lambda connection: NOTE_FAILURE.count(connection, number=number, times=attempts, error=error)
        )

    async def suspend(self, number: int, error: str, at_us: int) -> None:
        await self._database.write(
            lambda connection: SUSPEND.count(connection, number=number, moment=at_us, error=error)
        )

    async def purge(self, published_before_us: int, limit: int) -> int:
        return await self._database.write(
            lambda connection: PURGE.count(connection, before=published_before_us, most=limit)
        )


def _report(listeners: Sequence[Callable[[Sequence[OutboxRow]], None]], rows: list[OutboxRow]) -> None:
    if rows:
        for listener in listeners:
            listener(rows)
