"""Timers as rows of a CSV file and as JSON Lines: what `export` writes and `import` reads."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import msgspec

from tocsin.cli.command import WrongUsage

COLUMNS = (
    "id", "namespace", "executeAt", "delay", "callbackUrl", "payload", "body", "method", "headers", "retryPolicy",
    "callbackTimeoutSeconds", "expireAfter", "description", "flowKey", "credential", "tags", "onFailure", "onSuccess",
    "onRecovery", "status", "attempts", "createdAt", "updatedAt", "executedAt", "lastError", "nextAttemptAt",
)  # fmt: skip
#: Columns whose cells hold JSON.
JSON_COLUMNS = frozenset({"payload", "body", "headers", "retryPolicy", "onFailure", "onSuccess", "onRecovery"})
#: Fields that only the server sets; import ignores them.
READ_ONLY = frozenset(
    (*COLUMNS[COLUMNS.index("status") :], "attemptLog", "debounced", "shardId", "suspended", "timerUuid")
)
TAG_SEPARATOR = ";"
#: Characters of a cell that is read: a payload of any size that servers are set to accept. The csv module's own limit is
#: below a body of 100 KiB in base64.
CELL_CHARS_MAX = 64 * 1024 * 1024


def format_of(form: str | None, file_name: str) -> str:
    """`csv` or `jsonl`: the one that was given, or that of the file's extension. Raises WrongUsage."""
    form = form or ("csv" if file_name.lower().endswith(".csv") else "jsonl")
    if form not in ("csv", "jsonl"):
        raise WrongUsage(f"--format: {form!r} is not one of csv, jsonl")
    return form


class BadRow(ValueError):
    """The row is not a valid timer; the text is the reason."""


def read_csv(stream: TextIO) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """(line number, row) of each row; the first line names the columns. Raises BadRow where nothing can be read any more."""
    csv.field_size_limit(CELL_CHARS_MAX)
    reader = csv.DictReader(stream)
    try:
        yield from _rows_of(reader)
    except csv.Error as error:
        raise BadRow(f"line {reader.line_num + 1}: {error}") from None


def _rows_of(reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    unknown = [name for name in reader.fieldnames or [] if name not in COLUMNS and name not in READ_ONLY]
    if unknown:
        raise BadRow(f"unknown columns {', '.join(unknown)}; columns are {', '.join(COLUMNS)}")
    # DictReader fills missing cells with None, and puts surplus cells under the key None.
    for row in reader:
        try:
            yield reader.line_num, _from_cells(row)
        except BadRow as error:
            yield reader.line_num, error


def _from_cells(row: dict[Any, Any]) -> dict[str, Any]:
    if None in row:
        raise BadRow("has more cells than the header has columns")
    timer: dict[str, Any] = {}
    for name, cell in row.items():
        if cell is None or cell == "":
            continue
        try:
            timer[name] = _from_cell(name, cell)
        except (ValueError, msgspec.DecodeError) as error:
            raise BadRow(f"{name}: {cell!r} is not valid: {error}") from None
    return timer


def _from_cell(name: str, cell: str) -> Any:
    if name in JSON_COLUMNS:
        msgspec.json.decode(cell)
        return msgspec.Raw(cell.encode())
    if name == "tags":
        return _tags(cell)
    if name == "callbackTimeoutSeconds":
        return json.loads(cell)
    return cell


def _tags(cell: str) -> list[str]:
    """The tags of a cell: separated, or a JSON array for those that can't be."""
    if cell.startswith("["):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(cell, type=list[str])
    return [tag for tag in cell.split(TAG_SEPARATOR) if tag]


def _tags_cell(tags: list[str]) -> str:
    if tags and (tags[0].startswith("[") or any(TAG_SEPARATOR in tag for tag in tags)):
        return msgspec.json.encode(tags).decode()
    return TAG_SEPARATOR.join(tags)


def read_json_lines(stream: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
    """(line number, row) of each line that isn't empty. A line of an error report yields the timer in it."""
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line.encode())
            if row.keys() == {"line", "error", "timer"}:
                row = decoder.decode(row["timer"])
        except msgspec.DecodeError as error:
            yield number, BadRow(f"is not a JSON object: {error}")
            continue
        yield number, dict(row)


#: A timer as received, each field still JSON: a payload must keep every digit when it passes through a file.
RawTimer = dict[str, msgspec.Raw]


class BatchResult(msgspec.Struct):
    """The result for one timer of a batch; the created timer itself isn't read."""

    error: Any = None


class BatchResults(msgspec.Struct):
    """One result for each timer sent, in the same order."""

    results: list[BatchResult]


class Page(msgspec.Struct):
    """A page of a list. A page without a cursor is the last."""

    timers: list[RawTimer]
    cursor: str | None = msgspec.field(default=None, name="nextCursor")


#: What lists show of timers and of schedules alike, in their last columns: the columns' names, and the fields.
_LAST = {"callback": "callbackUrl", "description": "description", "flow": "flowKey"}


def last_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The columns that a list ends with, and their fields; a field that no row has is left out."""
    return {name: field for name, field in _LAST.items() if not rows or any(field in row for row in rows)}


class CsvWriter:
    """Writes timers under the names of the columns."""

    def __init__(self, stream: TextIO) -> None:
        self._columns = [name for name in COLUMNS if name != "delay"]
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow(self._columns)

    def write(self, timers: Iterable[RawTimer]) -> None:
        """Appends them."""
        self._writer.writerows([_cell(name, timer.get(name)) for name in self._columns] for timer in timers)


def _cell(name: str, raw: msgspec.Raw | None) -> Any:
    if raw is None:
        return ""
    if name in JSON_COLUMNS:
        text = bytes(raw).decode()
        return "" if text == "{}" and name == "headers" else text
    value = msgspec.json.decode(raw)
    return _tags_cell(value) if name == "tags" else value


class JsonLinesWriter:
    """Writes timers as the server sends them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._encoder = msgspec.json.Encoder()

    def write(self, timers: Iterable[RawTimer]) -> None:
        """Appends them."""
        self._stream.write(self._encoder.encode_lines(list(timers)).decode())
