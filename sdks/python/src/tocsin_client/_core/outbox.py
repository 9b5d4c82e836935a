"""The table of timers to create: its statements, what a row has, and what becomes of it. Nothing here does I/O."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tocsin_client._core.batches import BYTES_MAX, ENVELOPE_BYTES, Item, ItemResult, item_of, raw_item
from tocsin_client._core.exact import parse_exactly
from tocsin_client._core.retries import is_repeated
from tocsin_client._core.session import remaining
from tocsin_client._error_bases import ApiError, InvalidArgument, TransportError
from tocsin_client._forks import renew_after_fork
from tocsin_client._generated.models import CreateTimer
from tocsin_client._values import encode

Dialect: TypeAlias = Literal["postgresql", "mysql", "sqlite"]
DIALECTS: tuple[Dialect, ...] = ("postgresql", "mysql", "sqlite")
TABLE = "tocsin_outbox"
#: How many rows a round takes.
ROWS_MAX = 250
#: For so long nobody else takes the rows that a drain has taken. A drain that is killed leaves them waiting for it.
LEASE_S = 60
#: How long one request of a drain may take, with its retries: shorter than the lease.
REQUEST_TIMEOUT_S = 15
#: Between the tries of a row that is refused for the moment: half of its age, within these bounds.
PAUSE_S_MIN, PAUSE_S_MAX = 1, 60
#: Of a reason, which has the server's message.
REASON_CHARS_MAX = 1_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?", re.ASCII)
#: Answers that an operator mends: an API key that is unknown, or not allowed this.
_KEY_REFUSED = frozenset({401, 403})
#: Of errors of Tocsin's. Others have words there, such as Not Found.
_CODE = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)
_TOO_LARGE = 413

Rows: TypeAlias = Sequence[Sequence[Any]]
Statement: TypeAlias = tuple[str, tuple[Any, ...]]
#: Statements to execute in one transaction. What is sent back are how many rows each wrote, and those that it found.
Statements: TypeAlias = "Generator[Statement, tuple[int, Rows], Taken]"


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


class RowIds:
    """Makes row ids: UUIDs of version 7 that ascend within the process, so that rows are read as they were written."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        renew_after_fork(self)

    def renew_in_child(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def next(self, now_ms: int) -> str:
        """The next one. `now_ms` is milliseconds since 1970."""
        with self._lock:
            # 48 bits of time and 12 of a counter, which flows over into the time.
            self._last = max(now_ms << 12, self._last + 1)
            ordered = self._last
        value = ordered >> 12 << 80 | 7 << 76 | (ordered & 0xFFF) << 64 | 0b10 << 62
        return str(uuid.UUID(int=value | int.from_bytes(os.urandom(8), "big") >> 2))


_IDS = RowIds()


@dataclass(frozen=True)
class Row:
    """A row that a drain has taken. `created_at` is in microseconds since 1970."""

    id: str
    request: str
    created_at: int

    def timer(self, now: int) -> dict[str, Any]:
        """What is sent at that time: with what is left of its delay, and the row's id as idempotency key. All else goes as it
        is: the program that wrote the row may know more than this one. InvalidArgument: the row has no timer's JSON."""
        try:
            request = parse_exactly(self.request)
        except ValueError as wrong:
            raise InvalidArgument(f"request: is not JSON: {wrong}") from wrong
        if not isinstance(request, dict):
            raise InvalidArgument("request: must be a JSON object; write rows with outbox(connection).create")
        elapsed_s = max(now - self.created_at, 0) / 1_000_000
        return {**remaining(request, elapsed_s), "idempotencyKey": self.id}


@dataclass(frozen=True)
class Taken:
    """The rows that a drain has taken, until `due_at` in microseconds since 1970."""

    rows: Sequence[Row] = ()
    due_at: int = 0


@dataclass(frozen=True)
class Drained:
    """What became of the rows that a drain has taken."""

    #: Their timers are created, and they are deleted.
    created: int = 0
    #: The server refuses them for good; they stay in the table, with the reason.
    dead: int = 0
    #: They are tried again later.
    waiting: int = 0
    #: Why the server could not be asked, or did not answer; all rows of the round that it did not answer are waiting.
    unavailable: ApiError | TransportError | None = None

    @property
    def found(self) -> bool:
        """Whether there were rows."""
        return bool(self.created or self.dead or self.waiting)


@dataclass
class Outcome:
    """What the server made of the rows that were taken, as far as it was asked."""

    created: list[str] = field(default_factory=list)
    dead: dict[str, str] = field(default_factory=dict)
    waiting: list[Row] = field(default_factory=list)
    unavailable: ApiError | TransportError | None = None

    def add(self, row: Row, result: ItemResult) -> None:
        """Notes what became of a row."""
        if result.error is None:
            self.created.append(row.id)
        elif is_final(result.error):
            self.dead[row.id] = str(result.error)[:REASON_CHARS_MAX]
        else:
            self.waiting.append(row)

    def drained(self) -> Drained:
        """The numbers."""
        return Drained(len(self.created), len(self.dead), len(self.waiting), self.unavailable)


def is_final(error: Exception) -> bool:
    """Whether the timer would be refused again. What an operator or a new release of the server mends is not final, nor is
    what does not concern the timer: another server answers at the URL, a proxy without a backend, or the path is wrong."""
    if isinstance(error, ApiError):
        if not _CODE.fullmatch(error.code) or error.code == "ROUTE_NOT_FOUND":
            # A proxy takes smaller bodies than Tocsin: fewer rows at a time may pass.
            return error.status == _TOO_LARGE
        # A collection has room when its timer has fired.
        mended = error.status in _KEY_REFUSED or error.code == "COLLECTION_FULL" or is_repeated(error)
        return 400 <= error.status < 500 and not mended
    return isinstance(error, InvalidArgument)


def requests(taken: Taken, now: int, outcome: Outcome) -> list[list[tuple[Row, Item]]]:
    """The rows as requests that are small enough. Rows that have no timer are dead."""
    batches: list[list[tuple[Row, Item]]] = []
    left = 0
    for row in taken.rows:
        try:
            item = raw_item(row.timer(now))
        except InvalidArgument as error:
            outcome.add(row, ItemResult(error=error))
            continue
        if left < item.size_bytes:
            batches.append([])
            left = BYTES_MAX - ENVELOPE_BYTES
        batches[-1].append((row, item))
        left -= item.size_bytes
    return batches


def refused_together(results: Sequence[ItemResult]) -> ApiError | TransportError | None:
    """The error of the whole request, if it has one."""
    first = results[0].error
    if isinstance(first, ApiError) and first._is_of_item:
        return None
    if isinstance(first, (ApiError, TransportError)) and all(result.error is first for result in results):
        return first
    return None


class OutboxTable:
    """The statements. Parameters are written as `?`. InvalidArgument: the name is not a table's."""

    def __init__(self, name: str = TABLE) -> None:
        if not _NAME.fullmatch(name):
            raise InvalidArgument(f"table: {name!r} is not a table's name, such as tocsin_outbox or jobs.tocsin_outbox")
        self._name = name

    def create(self, dialect: Dialect) -> str:
        """The table. The unique columns are no rule, but the index that finds whether a timer has an earlier row."""
        text, end = "TEXT", ""
        if dialect == "mysql":
            text, end = "MEDIUMTEXT", " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
        return (
            f"CREATE TABLE IF NOT EXISTS {self._name} (id VARCHAR(36) NOT NULL PRIMARY KEY, "
            "namespace VARCHAR(255) NOT NULL, timer_id VARCHAR(255) NOT NULL, "
            f"request {text} NOT NULL, created_at BIGINT NOT NULL, due_at BIGINT NOT NULL, dead_reason TEXT, "
            f"UNIQUE (namespace, timer_id, id)){end}"
        )

    def insert(self, timer: CreateTimer | Mapping[str, Any], now: int) -> Statement:
        """A row, with its id as the first parameter. InvalidArgument: the timer can't be sent."""
        request = item_of(timer).body
        del request["idempotencyKey"]
        columns = "id, namespace, timer_id, request, created_at, due_at"
        return f"INSERT INTO {self._name} ({columns}) VALUES (?, ?, ?, ?, ?, 0)", (
            *(_IDS.next(now // 1_000), request["namespace"], request["id"]),
            *(encode(request).decode(), now),
        )

    def take(self, dialect: Dialect, rows_max: int, now: int) -> Statements:
        """Takes the oldest rows that are due, and that no other drain has. Of a timer's rows it is the oldest, so that they
        are sent one after another, by however many drains."""
        due_at = now + LEASE_S * 1_000_000
        found: Rows
        if dialect == "mysql":
            _, found = yield self.due(dialect, rows_max, "id, request, created_at"), (now,)
            if found:
                ids = tuple(str(row[0]) for row in found)
                yield f"{self._update(dialect)} SET due_at = ? WHERE id IN ({_marks(ids)})", (due_at, *ids)
        else:
            _, found = yield self.claim(dialect, rows_max), (due_at, now)
        rows = [Row(str(row[0]), str(row[1]), int(row[2])) for row in found]
        return Taken(sorted(rows, key=lambda row: row.id), due_at)

    def due(self, dialect: Dialect, rows_max: int, columns: str) -> str:
        """Finds rows that are due."""
        locking = "" if dialect == "sqlite" else " FOR UPDATE SKIP LOCKED"
        return (
            f"SELECT {columns} FROM {self._name} AS due WHERE due_at <= ? AND dead_reason IS NULL AND NOT EXISTS "
            f"(SELECT 1 FROM {self._name} AS older WHERE older.namespace = due.namespace "
            "AND older.timer_id = due.timer_id AND older.id < due.id AND older.dead_reason IS NULL) "
            f"ORDER BY id LIMIT {rows_max}{locking}"
        )

    def claim(self, dialect: Dialect, rows_max: int) -> str:
        """Takes rows that are due, where a statement can do both. The array has PostgreSQL find them once, not for each row
        of a plan."""
        found = self.due(dialect, rows_max, "id")
        within = f"= ANY (ARRAY({found}))" if dialect == "postgresql" else f"IN ({found})"
        return f"UPDATE {self._name} SET due_at = ? WHERE id {within} RETURNING id, request, created_at"

    def delete(self, dialect: Dialect, rows: int) -> str:
        """Deletes so many rows."""
        of = f"{self._name} AS settled FORCE INDEX (PRIMARY)" if dialect == "mysql" else self._name
        return f"DELETE {'settled ' if dialect == 'mysql' else ''}FROM {of} WHERE id IN ({_marks('?' * rows)})"

    def _update(self, dialect: Dialect) -> str:
        """MySQL would read small tables as a whole, and lock rows of the program's transactions: the index is named."""
        return f"UPDATE {self._name}{' FORCE INDEX (PRIMARY)' if dialect == 'mysql' else ''}"

    def settle(self, dialect: Dialect, taken: Taken, outcome: Outcome, now: int) -> Iterable[Statement]:
        """Deletes what is created, marks what is dead, and leaves the rest to the next one, after a pause if the server
        answered."""
        if outcome.created:
            yield self.delete(dialect, len(outcome.created)), tuple(outcome.created)
        for row_id, reason in outcome.dead.items():
            yield f"UPDATE {self._name} SET dead_reason = ? WHERE id = ?", (reason, row_id)
        if outcome.waiting:
            oldest = min(row.created_at for row in outcome.waiting)
            pause_us = min(max((now - oldest) // 2, PAUSE_S_MIN * 1_000_000), PAUSE_S_MAX * 1_000_000)
            due_at = now if outcome.unavailable is not None else now + pause_us
            ids = tuple(row.id for row in outcome.waiting)
            # Another drain has them if the lease was over: it is not to be disturbed.
            yield (
                f"{self._update(dialect)} SET due_at = ? WHERE due_at = ? AND id IN ({_marks(ids)})",
                (due_at, taken.due_at, *ids),
            )


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))
