"""Translates the drivers' errors into store errors."""

from __future__ import annotations

import asyncio
import sqlite3

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import exc

from tocsin.model.errors import OutcomeUnknown, StoreError, StoreUnavailable, StoreUnreachable
from tocsin.sql.pool import lets_retry
from tocsin.sql.sqlite_errors import store_error

#: Errors that a database may cause. Any other error, such as a wrong value, is a defect of the program and would recur on
#: every attempt: it is not translated.
DATABASE_ERRORS = (
    exc.SQLAlchemyError,
    sqlite3.Error,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # Raised while the end of a session that the server has closed is still being read.
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)

#: Classes of SQLSTATE: connection, insufficient resources, operator intervention (shutdown, cancelled), system error.
_POSTGRESQL_UNAVAILABLE = ("08", "53", "57", "58")
#: lock_timeout; read-only (the server is, or has just become, a standby); no such database, no access.
_POSTGRESQL_UNAVAILABLE_CODES = frozenset({"55P03", "25006", "3D000", "28000", "28P01"})
#: Nobody is served for the moment: a connection that broke, too many sessions, a shutdown or a start, a standby.
_POSTGRESQL_UNREACHABLE = ("08", "53300", "57P", "25006")
#: Serialization failure, deadlock, and a call that was deleted between the read and the insert that refers to it.
POSTGRESQL_RETRIED = frozenset({"40001", "40P01", "23503"})
#: The connection is lost, or the server is about to close it: the same statement may succeed on another one.
_POSTGRESQL_LOST = frozenset({"57P01", "57P02", "57P05", "25P03"})


def driver_error(error: BaseException) -> BaseException:
    """The driver's error inside SQLAlchemy's."""
    if not isinstance(error, exc.DBAPIError) or error.orig is None:
        return error
    # For asyncpg, `orig` is an exception of SQLAlchemy's own whose cause is the driver's error.
    return error.orig if isinstance(error.orig, sqlite3.Error) else error.orig.__cause__ or error.orig


def translate_sqlite_error(error: BaseException, name: str, *, in_commit: bool = False) -> BaseException:
    """The store error for an error of SQLite, or the error itself if there is none."""
    cause = driver_error(error)
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    return store_error(code, cause, name, in_commit=in_commit) or cause


def sqlstate(error: BaseException) -> str:
    """The SQLSTATE of an error of PostgreSQL, empty for any other error."""
    code = getattr(driver_error(error), "sqlstate", None)
    return code if isinstance(code, str) else ""


def postgresql_lost(error: BaseException) -> bool:
    """Whether the connection is lost or its state unknown. asyncpg reports that in many ways: SQLSTATEs of class 08 and
    57P, InterfaceError, socket errors, its own timeouts, and internal errors."""
    cause = driver_error(error)
    code = sqlstate(error)
    if code:
        return code.startswith("08") or code in _POSTGRESQL_LOST
    if isinstance(cause, ValueError):
        # asyncpg's InterfaceError for a value that it cannot encode.
        return False
    return isinstance(cause, asyncpg.InterfaceError | asyncpg.InternalClientError | OSError | asyncio.TimeoutError) or (
        isinstance(error, exc.DBAPIError) and error.connection_invalidated
    )


def translate_postgresql_error(error: BaseException, name: str, *, in_commit: bool = False) -> BaseException:
    """The store error for an error of PostgreSQL, or the error itself if there is none."""
    cause = driver_error(error)
    if isinstance(cause, StoreError):
        return cause
    code, lost = sqlstate(error), postgresql_lost(error)
    text = f"{name}: {str(cause) or type(cause).__name__}"
    if in_commit and (lost or code.startswith(("57", "58"))):
        return OutcomeUnknown(f"{text}, during the commit")
    if code.startswith(_POSTGRESQL_UNREACHABLE) if code else lets_retry(cause):
        return StoreUnreachable(text)
    known = code.startswith(_POSTGRESQL_UNAVAILABLE) or code in _POSTGRESQL_UNAVAILABLE_CODES | POSTGRESQL_RETRIED
    # An OSError that is not worth a retry at the start: a certificate that is not trusted, a socket that is not permitted.
    return StoreUnavailable(text) if lost or known or isinstance(cause, exc.TimeoutError | OSError) else cause
