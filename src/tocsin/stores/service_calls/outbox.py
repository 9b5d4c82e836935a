"""The outbox table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec.structs import astuple

from tocsin.ports.bus import Envelope
from tocsin.service_calls.ports import OutboxRow
from tocsin.stores.service_calls.statements import Database, Query, Session, insert, purging

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
_APPENDED = ("id", "created_at", *_ENVELOPE)
_append = insert("outbox", _APPENDED, key=("id",))

#: Numbers are allocated first, so that they follow the order of appending whatever order the rows are inserted in. In SQLite
#: it is the last one that is read: no other transaction can write between that and the insert.
_numbers = Query(
    "SELECT nextval('outbox_id_seq') FROM generate_series(1, :many)",
    sqlite="SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox'",
)

#: The condition of messages that are still to be published.
WAITS = "published_at IS NULL AND suspended_at IS NULL"
UNPUBLISHED = Query(
    f"SELECT id, {', '.join(_ENVELOPE)} FROM outbox WHERE {WAITS} AND id > :after ORDER BY id LIMIT :most",
    results=("id", *_ENVELOPE),
)
MARK_PUBLISHED = Query(
    "UPDATE outbox SET published_at = :moment_at WHERE id IN (SELECT given.id FROM GIVEN) AND published_at IS NULL",
    given=("id",),
)
NOTE_FAILURE = Query("UPDATE outbox SET attempts = :attempts, last_error = :last_error WHERE id = :number")
SUSPEND = Query(f"UPDATE outbox SET suspended_at = :moment_at, last_error = :last_error WHERE id = :number AND {WAITS}")
PURGE = purging(
    "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE published_at IS NOT NULL AND published_at < BEFORE "
    "ORDER BY published_at LIMIT :most)"
)
# No index has the suspended rows, which are few. The purge of published ones leaves them at the beginning of the table,
# before the row that was published first.
PURGE_SUSPENDED = purging(
    "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE id < coalesce((SELECT id FROM outbox "
    "WHERE published_at IS NOT NULL ORDER BY published_at LIMIT 1), 9223372036854775807) AND suspended_at IS NOT NULL "
    "AND suspended_at < BEFORE ORDER BY id LIMIT :most)"
)


class Appended:
    """Collects the rows that a transaction appends to the outbox."""

    def __init__(self) -> None:
        self.rows: list[OutboxRow] = []

    async def append(self, session: Session, envelopes: Sequence[Envelope]) -> None:
        """Appends the messages, in their order."""
        if not envelopes:
            return
        if session.postgresql:
            numbers = sorted(row[0] for row in await _numbers.fetch(session, many=len(envelopes)))
        else:
            ((last,),) = await _numbers.fetch(session)
            numbers = list(range(last + 1, last + 1 + len(envelopes)))
        rows = [
            (number, envelope.timestamp_ms * 1_000, *astuple(envelope))
            for number, envelope in zip(numbers, envelopes, strict=True)
        ]
        await _append.run(session, rows)
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

    async def write(self, work: Callable[[Session, Appended], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` in one transaction with the rows that it appends. Registered callbacks get these rows after the
        commit."""
        appended = Appended()

        async def attempt(session: Session) -> T:
            appended.rows.clear()
            return await work(session, appended)

        return await self._database.write(
            attempt, lambda: _report(self._on_appended, appended.rows), lambda: _report(self._on_unknown, appended.rows)
        )

    async def unpublished(self, after: int, limit: int) -> list[OutboxRow]:
        rows = await self._database.read(lambda session: UNPUBLISHED.fetch(session, after=after, most=limit))
        return [OutboxRow(number, Envelope(*columns)) for number, *columns in rows]

    async def mark_published(self, numbers: Collection[int], at_us: int) -> None:
        if numbers:
            rows = [(number,) for number in sorted(numbers)]
            await self._database.write(lambda session: MARK_PUBLISHED.count(session, rows, moment_at=at_us))

    async def note_failure(self, number: int, attempts: int, error: str) -> None:
        given = {"number": number, "attempts": attempts, "last_error": error}
        await self._database.write(lambda session: NOTE_FAILURE.count(session, **given))

    async def suspend(self, number: int, error: str, at_us: int, then: Envelope | None = None) -> None:
        given = {"number": number, "moment_at": at_us, "last_error": error}

        async def work(session: Session, appended: Appended) -> None:
            if await SUSPEND.count(session, **given) and then is not None:
                await appended.append(session, [then])

        await self.write(work)

    async def purge(self, now_us: int, kept_us: int, limit: int) -> int:
        async def work(session: Session) -> int:
            kept = {"before_at": now_us - kept_us, "kept_us": kept_us}
            published = await PURGE.count(session, **kept, most=limit)
            left = limit - published
            return published + await PURGE_SUSPENDED.count(session, **kept, most=left) if left else limit

        return await self._database.write(work)


def _report(listeners: Sequence[Callable[[Sequence[OutboxRow]], None]], rows: list[OutboxRow]) -> None:
    if rows:
        for listener in listeners:
            listener(rows)
