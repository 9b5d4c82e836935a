"""The transfer of a whole page of rows in one result row.

A step of a statement costs the interpreter's lock twice, so a page of a thousand rows must not be a thousand steps: SQL
aggregates each column into one value (JSON for what is short, concatenated bytes for what is binary), and this takes
them apart again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, cast

import msgspec

from tocsin.model.timer import Status, damaged_record
from tocsin.ports.store import GENERATION_BYTES, FailureRow, HistoryRow, StoredRow
from tocsin.sql.rows import FAILURE_COLUMNS, new_history_row, new_stored_row, tags_of
from tocsin.sql.store import failures_page

_UUID_BYTES = 16
_ID_BYTES = _UUID_BYTES + GENERATION_BYTES

_COMMON = (
    "json_group_array(timer_execute_at), CAST(group_concat(timer_uuid || timer_generation, '') AS BLOB), "
    "json_group_array(timer_namespace), json_group_array(timer_id), json_group_array(timer_tags), "
    "json_group_array(octet_length(timer_record)), CAST(group_concat(timer_record, ''){only} AS BLOB)"
)


def row_aggregates(size_sql: str | None = None) -> str:
    """The aggregates that `stored_rows` reads. Where `size_sql`, a scalar subquery, exceeds :bytes_max, the records come
    as NULL."""
    return _COMMON.format(only=_only(size_sql)) + ", json_group_array(timer_suspended_reason)"


def history_aggregates(size_sql: str | None = None) -> str:
    """The aggregates that `history_rows` reads, likewise."""
    return _COMMON.format(only=_only(size_sql)) + (
        ", json_group_array(timer_status), json_group_array(timer_finished_at), json_group_array(timer_expires_at)"
    )


def _only(size_sql: str | None) -> str:
    return "" if size_sql is None else f" FILTER (WHERE ({size_sql}) <= :bytes_max)"


#: How many values each kind of aggregate has.
ROW_WIDTH, HISTORY_WIDTH = 8, 10

#: The aggregates of texts, which SQLite does not check for UTF-8, and the places of those that both kinds have.
_TEXTS = re.compile(r"json_group_array\((timer_namespace|timer_id|timer_tags|timer_suspended_reason)\)")
_TEXT_PLACES = {2: "timer_namespace", 3: "timer_id", 4: "timer_tags"}

_integers = msgspec.json.Decoder(list[int]).decode
_texts = msgspec.json.Decoder(list[str]).decode
_optional_texts = msgspec.json.Decoder(list[str | None]).decode
_statuses = msgspec.json.Decoder(list[Status]).decode


def rows_within(values: tuple[Any, ...], bytes_max: int) -> int | None:
    """None if the records were returned; else how many of the page's rows, at least one, have at most `bytes_max` bytes of
    records."""
    if values[6] is not None:
        return None
    totals = list(accumulate(_integers(values[5])))
    if not totals or totals[-1] <= bytes_max:
        return None
    return max(1, bisect_right(totals, bytes_max))


@cache
def hex_sql(sql: str) -> str:
    """The statement of an aggregate with its texts in hexadecimal digits, which can be read whatever bytes they have."""
    return _TEXTS.sub(r"json_group_array(CASE WHEN \1 IS NOT NULL THEN hex(\1) END)", sql)


def values_of_hex(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values that a statement would have had of which `hex_sql` was run. Texts that are not UTF-8 have replacement
    characters, and their rows `damaged_record`."""
    if len(values) > HISTORY_WIDTH:
        return (*values_of_hex(values[:ROW_WIDTH]), *values_of_hex(values[ROW_WIDTH:]))
    places = _TEXT_PLACES | ({7: "timer_suspended_reason"} if len(values) == ROW_WIDTH else {})
    found, errors = list(values), dict[int, ValueError]()
    for place, column in places.items():
        texts = _optional_texts(values[place])
        for index, digits in enumerate(texts):
            if digits is not None:
                stored = bytes.fromhex(digits)
                texts[index] = stored.decode(errors="replace")
                try:
                    stored.decode()
                except UnicodeDecodeError as error:
                    errors[index] = ValueError(f"{column} is not text: {error}")
        found[place] = msgspec.json.encode(texts)
    if values[6] is not None:
        ends = list(accumulate(_integers(values[5]), initial=0))
        records = [values[6][begin:end] for begin, end in pairwise(ends)]
        for index, each in errors.items():
            records[index] = damaged_record(each, records[index])
        found[5], found[6] = msgspec.json.encode(list(map(len, records))), b"".join(records)
    return tuple(found)


def _common(values: tuple[Any, ...]) -> tuple[Iterable[Any], ...]:
    instants, ids, namespaces, timer_ids, tags, lengths, records = values
    ids, records = ids or b"", records or b""
    starts = range(0, len(ids), _ID_BYTES)
    places = pairwise(accumulate(_integers(lengths), initial=0))
    return (
        _integers(instants),
        [ids[i : i + _UUID_BYTES] for i in starts],
        [ids[i + _UUID_BYTES : i + _ID_BYTES] for i in starts],
        _texts(namespaces),
        _texts(timer_ids),
        map(tags_of, _optional_texts(tags)),
        [records[begin:end] for begin, end in places],
    )


def stored_rows(values: tuple[Any, ...]) -> list[StoredRow]:
    """The rows of one result row of `row_aggregates`, in key order."""
    columns = (*_common(values[:7]), _optional_texts(values[7]))
    rows = cast("list[StoredRow]", list(map(new_stored_row, zip(*columns, strict=True))))
    # Aggregates process rows in the subquery's order, but SQLite does not guarantee it. Sorting sorted rows costs next to
    # nothing.
    rows.sort()
    return rows


def history_rows(values: tuple[Any, ...]) -> list[HistoryRow]:
    """The rows of one result row of `history_aggregates`, in (execute_at, uuid, generation) order."""
    columns = (*_common(values[:7]), _statuses(values[7]), _integers(values[8]), _integers(values[9]))
    rows = cast("list[HistoryRow]", list(map(new_history_row, zip(*columns, strict=True))))
    rows.sort()
    return rows


#: Pages of failures, each as one value.
FAILURES, FAILURES_DESCENDING = (
    "SELECT json_group_array(json_array(lower(hex(failure_uuid)), lower(hex(failure_generation)), "
    f"{FAILURE_COLUMNS.partition('generation, ')[2]})) FROM ({failures_page(FAILURE_COLUMNS, descending=each)})"
    for each in (False, True)
)
_failures = msgspec.json.Decoder(list[tuple[str, str, str, str, str, int, int, int]]).decode


def failure_rows(page: str) -> list[FailureRow]:
    """The rows of a page of failures."""
    return [FailureRow(bytes.fromhex(row[0]), bytes.fromhex(row[1]), *row[2:]) for row in _failures(page)]
