"""Result rows to rows of the port, for the column order that the SQL stores have in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tocsin.model.timer import Status
from tocsin.ports.store import HistoryRow, StoredRow
from tocsin.sql.tags import tags_of

#: The row types of the table `timers`, but for the shard rows.
LIVE, SUSPENDED = 2, 3

_STATUSES = {status.value: status for status in Status}

# Skips the named tuples' own Python-level constructors.
_stored_row = partial(tuple.__new__, StoredRow)
_history_row = partial(tuple.__new__, HistoryRow)


def stored_row(values: Sequence[Any]) -> StoredRow:
    """A live row from: instant, uuid, generation, namespace, id, tags, record, reason for which it is suspended."""
    at, uuid, generation, namespace, timer_id, tags, record, suspended = values
    return _stored_row((at, uuid, generation, namespace, timer_id, tags_of(tags), record, suspended))


def row_of(values: Sequence[Any]) -> StoredRow | HistoryRow:
    """A row of a union of live and finished rows: the columns of `stored_row`, then status, finished and expiry instants."""
    at, uuid, generation, namespace, timer_id, tags, record, suspended, status, finished_at, expires_at = values
    common = (at, uuid, generation, namespace, timer_id, tags_of(tags), record)
    if status is None:
        return _stored_row((*common, suspended))
    return _history_row((*common, _STATUSES[status], finished_at, expires_at))
