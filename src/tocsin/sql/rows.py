"""Result rows to rows of the port, for the column order that the SQL stores have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from tocsin.model.errors import DefiniteFailure
from tocsin.model.timer import Status
from tocsin.ports.store import FailureRow, FireKey, Found, HistoryRow, RunRow, StoredRow

T = TypeVar("T")

#: The row types of the table `timers`, but for the shard rows. `HISTORY` stands for the table of finished timers.
LIVE, SUSPENDED, HISTORY = 2, 3, 0

_COMMON_COLUMNS = "timer_execute_at, timer_uuid, timer_generation, timer_namespace, timer_id, timer_tags, timer_record"
#: The columns of live and suspended rows, and of finished ones.
ROW_COLUMNS = f"{_COMMON_COLUMNS}, timer_suspended_reason"
HISTORY_COLUMNS = f"{_COMMON_COLUMNS}, timer_status, timer_finished_at, timer_expires_at"
RUN_COLUMNS = "run_uuid, run_generation, run_record, run_expires_at"
FAILURE_COLUMNS = (
    "failure_uuid, failure_generation, failure_namespace, failure_timer_id, failure_cause, failure_at, failure_execute_at, "
    "failure_expires_at"
)
#: Those of finished rows in a union with others, which `row_of` reads.
UNION_HISTORY_COLUMNS = HISTORY_COLUMNS.replace("timer_status", "NULL AS timer_suspended_reason, timer_status")


class LoadQuery(NamedTuple):
    """Rows of one type in a shard with after < key ≤ up_to: at most `limit`, smallest keys first."""

    row_type: int
    shard_id: int
    after: FireKey
    up_to: FireKey
    limit: int


#: Values in one IN list, so that its plan stays cheap.
LISTED_MAX = 1_000

_STATUSES = {status.value: status for status in Status}

# Skips the named tuples' own Python-level constructors.
new_stored_row = partial(tuple.__new__, StoredRow)
new_history_row = partial(tuple.__new__, HistoryRow)


#: Tags are one text column: each is between two of these, so that a whole tag is found by a text search.
_SEPARATOR = "\x1f"


def tags_text(tags: Iterable[str]) -> str:
    """The stored form of one tag or more."""
    text = _SEPARATOR + _SEPARATOR.join(tags) + _SEPARATOR
    if text.count(_SEPARATOR) != len(tuple(tags)) + 1:
        raise DefiniteFailure("a tag contains U+001F, which separates stored tags")
    return text


def tags_of(text: str | None) -> tuple[str, ...]:
    """The tags of a stored form; none for None."""
    return () if text is None else tuple(text[1:-1].split(_SEPARATOR))


def stored_row(values: Sequence[Any]) -> StoredRow:
    """A live row from: instant, uuid, generation, namespace, id, tags, record, reason for which it is suspended."""
    at, uuid, generation, namespace, timer_id, tags, record, suspended = values
    return new_stored_row((at, uuid, generation, namespace, timer_id, tags_of(tags), record, suspended))


def row_of(values: Sequence[Any]) -> StoredRow | HistoryRow:
    """A row of a union of live and finished rows: the columns of `stored_row`, then status, finished and expiry instants."""
    at, uuid, generation, namespace, timer_id, tags, record, suspended, status, finished_at, expires_at = values
    common = (at, uuid, generation, namespace, timer_id, tags_of(tags), record)
    if status is None:
        return new_stored_row((*common, suspended))
    return new_history_row((*common, _STATUSES[status], finished_at, expires_at))


def text_row(values: Sequence[Any]) -> StoredRow:
    """Like `stored_row`, where the record may be a text."""
    return stored_row((*values[:6], _bytes(values[6]), values[7]))


def history_row(values: Sequence[Any]) -> HistoryRow:
    """A finished row from HISTORY_COLUMNS."""
    at, uuid, generation, namespace, timer_id, tags, record, status, finished_at, expires_at = values
    common = (at, uuid, generation, namespace, timer_id, tags_of(tags), _bytes(record))
    return new_history_row((*common, _STATUSES[status], finished_at, expires_at))


def run_row(values: Sequence[Any]) -> RunRow:
    """A run's row from RUN_COLUMNS."""
    uuid, generation, record, expires_at = values
    return RunRow(uuid, generation, _bytes(record), expires_at)


def failure_row(values: Sequence[Any]) -> FailureRow:
    """A failure row from FAILURE_COLUMNS."""
    uuid, generation, *others = values
    return FailureRow(bytes(uuid), bytes(generation), *others)


def _bytes(record: str | bytes) -> bytes:
    return record.encode() if isinstance(record, str) else record


def found_of(rows: Iterable[StoredRow | HistoryRow], uuids: Sequence[bytes]) -> dict[bytes, Found]:
    """The live row and the newest history row of each uuid that has any."""
    live: dict[bytes, StoredRow] = {}
    finished: dict[bytes, HistoryRow] = {}
    for row in rows:
        if isinstance(row, HistoryRow):
            finished[row.uuid] = row
        else:
            live[row.uuid] = row
    return {uuid: Found(live.get(uuid), finished.get(uuid)) for uuid in uuids if uuid in live or uuid in finished}


def cut(values: Sequence[T], size: int = LISTED_MAX) -> Iterator[Sequence[T]]:
    """The values in pieces of at most `size`."""
    return (values[i : i + size] for i in range(0, len(values), size))
