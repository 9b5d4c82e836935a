"""Which store error a result code of SQLite means, whatever driver reports it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tocsin.model.errors import OutcomeUnknown, StoreCorrupted, StoreError, StoreFull, StoreUnavailable

#: The file can't be used for now, or not by this process.
_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_INTERRUPT,
    }
)
_CORRUPTED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
#: The codes that mean a store error. Any other is a defect of the program, or of a value.
CODES = _UNAVAILABLE | _CORRUPTED


def store_error(code: int, error: BaseException, name: str, *, in_commit: bool = False) -> StoreError | None:
    """The store error for a primary result code, None for a code that means none. `name` is the file, for messages."""
    if in_commit and code == sqlite3.SQLITE_IOERR:
        return OutcomeUnknown(f"{name}: the commit failed with an I/O error: {error}")
    if code in _CORRUPTED:
        return StoreCorrupted(
            f"{name} is damaged or not a SQLite database ({error}); stop Tocsin, copy the file, then restore a backup, or "
            f"recover what is readable with: sqlite3 {Path(name).name} .recover"
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"{name}: {error}")
    return StoreUnavailable(f"{name}: {error}") if code in _UNAVAILABLE else None
