"""Consistent copies of SQLite databases that other processes may be using."""

from __future__ import annotations

from pathlib import Path

import apsw

from tocsin.model.errors import StoreError, StoreUnavailable
from tocsin.private_files import make_database, sync
from tocsin.stores.sqlite.connection import has_no_space, no_space, translate_error

#: How long the copy waits for another process's lock, such as that of a database which is being opened.
_BUSY_TIMEOUT_MS = 30_000
#: Of the WAL of a database that no longer has one, and of one whose server was killed.
BESIDE = ("-wal", "-shm", "-journal")


def copy_database(source: Path, target: Path) -> None:
    """Copies the state of one moment into a new private file, durably, while other processes read and write the source. The
    source's log can't be truncated until it ends. Raises StoreError, OSError."""
    make_database(target)
    try:
        # Not read-only: the last connection to close removes the log, which opening a database creates.
        reading = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _copy(reading, target)
        finally:
            reading.close()
    except apsw.Error as error:
        if isinstance(error, apsw.FullError) or has_no_space(target.parent):
            raise no_space(target.parent) from error
        raise _translated(error, source) from error
    sync(target)
    sync(target.parent)


def _copy(reading: apsw.Connection, target: Path) -> None:
    reading.set_busy_timeout(_BUSY_TIMEOUT_MS)
    reading.pragma("query_only", True)
    writing = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # In one step: a write of another process between two steps would start it over.
        with writing.backup("main", reading, "main") as copying:
            copying.step(-1)
    finally:
        writing.close()


def set_in_records(path: Path, kind: str, member: str) -> None:
    """Sets a member of each record of a kind to true, in a timers' database that no server uses. Raises StoreError."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            # Without a log: the file alone is the database.
            connection.pragma("journal_mode", "delete")
            connection.execute(
                "UPDATE records SET record_value = json_set(record_value, '$.' || ?, json('true')), "
                "record_version = record_version + 1 "
                # Damaged ones stay as they are.
                "WHERE record_kind = ? AND record_key <> '' AND json_valid(record_value)",
                (member, kind),
            )
        finally:
            connection.close()
    except apsw.Error as error:
        raise _translated(error, path) from error


def _translated(error: apsw.Error, path: Path) -> StoreError:
    translated = translate_error(error, path)
    return translated if isinstance(translated, StoreError) else StoreUnavailable(f"{path}: {error}")
