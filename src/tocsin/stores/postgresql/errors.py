"""Translation of errors of PostgreSQL, its driver and its sockets into store errors."""

from __future__ import annotations

import asyncpg  # type: ignore[import-untyped]
import msgspec
from asyncpg.exceptions import InternalClientError  # type: ignore[import-untyped]

from tocsin.model.errors import (
    DefiniteFailure,
    OutcomeUnknown,
    StoreCorrupted,
    StoreError,
    StoreFull,
    StoreUnavailable,
    StoreUnreachable,
)
from tocsin.sql.pool import Activity, lets_retry

#: The errors that `translate_error` takes, besides OSError and TimeoutError; any other is a defect of the program.
TRANSLATED = (asyncpg.PostgresError, asyncpg.InterfaceError, InternalClientError, msgspec.DecodeError, UnicodeError)

#: Data or an index is damaged, or tables and functions that existed at the start are missing.
_CORRUPTED = ("XX001", "XX002", "42P01", "42883", "3F000", "42703")
_DISK_FULL = "53100"
#: The server refuses everything, or everything of this kind, for now: out of disk, memory or connections; a standby; missing
#: rights; a lock that is not released. Splitting the batch would not help.
_UNAVAILABLE = ("53", "57P", "58", "25006", "28", "3D", "42501", "55P03")


#: Nobody is served for the moment: a connection that broke, too many sessions, a shutdown or a start, a standby.
_UNREACHABLE = ("08", "53300", "57P", "25006")


def translate_error(error: BaseException, safe_url: str, activity: Activity) -> StoreError:
    """The store error for a driver's error.

    An answer of severity ERROR means that the transaction was rolled back, be it for a statement time-out, a deadlock or bad
    data. If the session ended, or there was no answer, the outcome of a write is unknown: the commit may have been done
    before.
    """
    text = f"{safe_url}: {str(error) or _silent(error)}"
    if activity is Activity.CONNECTING and _is_unreachable(error):
        return StoreUnreachable(text)
    if isinstance(error, asyncpg.PostgresError) and _reports_rollback(error):
        return _refused(error, text)
    if _is_bad_value(error):
        return DefiniteFailure(text)
    if isinstance(error, asyncpg.InterfaceError):
        # Refused by the driver before anything was sent.
        return StoreUnavailable(text)
    if activity is Activity.WRITING:
        return OutcomeUnknown(f"{text}; the outcome of the transaction is unknown")
    return StoreUnavailable(text)


def _silent(error: BaseException) -> str:
    """What an error without a text means."""
    timed_out = isinstance(error, TimeoutError)
    return "no answer in time; check that PostgreSQL listens there" if timed_out else type(error).__name__


def _is_unreachable(error: BaseException) -> bool:
    """Whether connecting may succeed later, without any change by an operator."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_UNREACHABLE)
    return isinstance(error, asyncpg.exceptions.TargetServerAttributeNotMatched) or lets_retry(error)


def _is_bad_value(error: BaseException) -> bool:
    """Whether the driver could not encode a value, so that nothing was sent, or a value read can't be decoded."""
    # The driver raises the server's exception class for it, without the severity that every answer of the server has.
    encoding = isinstance(error, asyncpg.DataError) and error.severity is None
    return encoding or isinstance(error, UnicodeError | msgspec.DecodeError)


def _reports_rollback(error: asyncpg.PostgresError) -> bool:
    severity = getattr(error, "severity_en", None) or getattr(error, "severity", None)
    return severity == "ERROR" and error.sqlstate != "40003"


def _refused(error: asyncpg.PostgresError, text: str) -> StoreError:
    code = error.sqlstate or ""
    if code in _CORRUPTED:
        return StoreCorrupted(f"{text}; the schema is damaged or was removed: stop Tocsin and restore a backup")
    if code == _DISK_FULL:
        return StoreFull(text)
    if code.startswith(_UNAVAILABLE):
        return StoreUnavailable(text)
    return DefiniteFailure(text)


def is_unusable(error: BaseException) -> bool:
    """Whether the connection must be discarded after this error: the session may be in any state, or its server is no longer
    the primary."""
    if isinstance(error, asyncpg.PostgresError):
        return not _reports_rollback(error) or error.sqlstate == "25006"
    return not _is_bad_value(error)
