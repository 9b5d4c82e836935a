"""The outbox table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from msgspec.structs import astuple
from sqlalchemy import BigInteger, Connection, Integer, bindparam, delete, func, literal_column, select, text, update

from tocsin.ports.bus import Envelope
from tocsin.service_calls.outbox.ports import OutboxRow
from tocsin.stores.service_calls.backend import Database
from tocsin.stores.service_calls.statements import Batch, Query, fields
from tocsin.stores.service_calls.tables import outbox
from tocsin.stores.service_calls.types import FreeText, Instant

T = TypeVar("T")

#: The columns of an envelope, in the order of its fields.
_ENVELOPE = (
    "envelope_id",
    "event_type",
    "tenant_id",
    "aggregate_id",
    "timestamp_ms",
    "correlation_id",
    "causation_id",
    "event_payload",
)
_append = Batch(outbox, fields(outbox, "id", "created_at", *_ENVELOPE), lambda given: given.insert(outbox), key=("id",))

#: Numbers are allocated first, so that they follow the order of appending whatever order the rows are inserted in.
_last_number_sqlite = Query(
    select(literal_column("seq")).select_from(text("sqlite_sequence")).where(text("name = 'outbox'"))
)
_numbers_postgresql = Query(
    select(literal_column("nextval('outbox_id_seq')")).select_from(
        func.generate_series(1, bindparam("many", type_=Integer()))
    )
)

_WAITS = text("published_at IS NULL AND parked_at IS NULL")
_MOST = bindparam("most", type_=Integer())
_MOMENT = bindparam("moment", type_=Instant())
_ERROR = bindparam("error", type_=FreeText())
UNPUBLISHED = Query(
    select(outbox.c.id, *(outbox.c[name] for name in _ENVELOPE))
    .where(_WAITS, outbox.c.id > bindparam("after"))
    .order_by(outbox.c.id)
    .limit(_MOST)
)
MARK_PUBLISHED = Query(
    lambda given: (
        update(outbox).where(given.names(outbox), outbox.c.published_at.is_(None)).values(published_at=_MOMENT)
    ),
    fields(outbox, "id"),
)
NOTE_FAILURE = Query(
    update(outbox)
    .where(outbox.c.id == bindparam("number"))
    .values(attempts=bindparam("times", type_=BigInteger()), last_error=_ERROR)
)
SUSPEND = Query(
    update(outbox).where(outbox.c.id == bindparam("number"), _WAITS).values(parked_at=_MOMENT, last_error=_ERROR)
)
PURGE = Query(
    delete(outbox).where(
        outbox.c.id.in_(
            select(outbox.c.id)
            .where(text("published_at IS NOT NULL"), outbox.c.published_at < bindparam("before", type_=Instant()))
            .order_by(outbox.c.published_at)
            .limit(_MOST)
        )
    )
)


class Appended:
    """Collects the rows that a transaction appends to the outbox."""

    def __init__(self) -> None:
        self.rows: list[OutboxRow] = []

    def append(self, connection: Connection, envelopes: Sequence[Envelope]) -> None:
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
                (number, envelope.timestamp_ms * 1_000, *astuple(envelope))
                for number, envelope in zip(numbers, envelopes, strict=True)
            ],
        )
        self.rows += map(OutboxRow, numbers, envelopes)


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
        return [OutboxRow(number, Envelope(*columns)) for number, *columns in rows]

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
