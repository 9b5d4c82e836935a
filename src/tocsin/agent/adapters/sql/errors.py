"""What the drivers' errors mean for those who wait for a transaction."""

from __future__ import annotations

import asyncio
import sqlite3

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import exc

from tocsin.model.errors import OutcomeUnknown, StoreCorrupted, StoreError, StoreUnavailable

#: What may be raised by a database's own fault. Anything else, a wrong value among it, is a fault of the program, and
#: would fail again however often it is tried: it stays itself.
DATABASE_ERRORS = (
    exc.SQLAlchemyError,
    sqlite3.Error,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # Of a session that the server has just ended, before its end has been read to the last byte.
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)

_SQLITE_UNAVAILABLE = frozenset(
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
        sqlite3.SQLITE_INTERRUPT,
    }
)
_SQLITE_CORRUPTED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

#: Classes of SQLSTATE: connection, insufficient resources, operator intervention (shutdown, cancelled), system error.
_POSTGRESQL_UNAVAILABLE = ("08", "53", "57", "58")
#: lock_timeout; read-only (a standby, or one that has just become one); no such database, no access.
_POSTGRESQL_UNAVAILABLE_CODES = frozenset({"55P03", "25006", "3D000", "28000", "28P01"})
#: Serialization failure, deadlock, and a call that was deleted between our look at it and the insert that refers to it.
POSTGRESQL_RETRIED = frozenset({"40001", "40P01", "23503"})
#: The connection is gone, or the server is about to end it: the same may succeed on another one.
_POSTGRESQL_LOST = frozenset({"57P01", "57P02", "57P05", "25P03"})


def driver_error(error: BaseException) -> BaseException:
    """What the driver raised, below what SQLAlchemy put around it."""
    if not isinstance(error, exc.DBAPIError) or error.orig is None:
        return error
    # For asyncpg, SQLAlchemy has exceptions of its own in the driver's place, each caused by the driver's.
    return error.orig if isinstance(error.orig, sqlite3.Error) else error.orig.__cause__ or error.orig


def sqlite_meaning(error: BaseException, name: str, *, in_commit: bool = False) -> BaseException:
    """The store error that an error of SQLite amounts to, or the error itself."""
    cause = driver_error(error)
    if isinstance(cause, StoreError) or not isinstance(cause, sqlite3.Error):
        return cause
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if in_commit and code == sqlite3.SQLITE_IOERR:
        return OutcomeUnknown(f"{name}: the commit met an I/O error: {cause}")
    if code in _SQLITE_CORRUPTED:
        return StoreCorrupted(
            f"{name} is damaged or not a SQLite database ({cause}); stop Tocsin, keep a copy of the file, then restore a "
            f"backup or recover what can be read with the sqlite3 shell's .recover"
        )
    return StoreUnavailable(f"{name}: {cause}") if code in _SQLITE_UNAVAILABLE else cause


def sqlstate(error: BaseException) -> str:
    """The code of PostgreSQL's error, empty when it isn't one."""
    code = getattr(driver_error(error), "sqlstate", None)
    return code if isinstance(code, str) else ""


def postgresql_lost(error: BaseException) -> bool:
    """Whether the connection is gone or its state unknown. asyncpg tells of it in many ways: codes of class 08 and 57P,
    InterfaceError, errors of the socket, a time-out of its own, and the names of its internal errors."""
    cause = driver_error(error)
    code = sqlstate(error)
    if code:
        return code.startswith("08") or code in _POSTGRESQL_LOST
    if isinstance(cause, ValueError):
        # asyncpg's InterfaceError for a value that it can't encode.
        return False
    return isinstance(cause, asyncpg.InterfaceError | asyncpg.InternalClientError | OSError | asyncio.TimeoutError) or (
        isinstance(error, exc.DBAPIError) and error.connection_invalidated
    )


def postgresql_meaning(error: BaseException, name: str, *, in_commit: bool = False) -> BaseException:
    """The store error that an error of PostgreSQL amounts to, or the error itself."""
    cause = driver_error(error)
    if isinstance(cause, StoreError):
        return cause
    code, lost = sqlstate(error), postgresql_lost(error)
    text = f"{name}: {str(cause) or type(cause).__name__}"
    if in_commit and (lost or code.startswith(("57", "58"))):
        return OutcomeUnknown(f"{text}, while it committed")
    if lost or code.startswith(_POSTGRESQL_UNAVAILABLE) or code in _POSTGRESQL_UNAVAILABLE_CODES:
        return StoreUnavailable(text)
    if code in POSTGRESQL_RETRIED or isinstance(cause, exc.TimeoutError):
        return StoreUnavailable(text)
    return cause
