"""What the errors of PostgreSQL, its driver and its sockets mean for a caller of the store."""

from __future__ import annotations

import asyncpg  # type: ignore[import-untyped]
import msgspec
from asyncpg.exceptions import InternalClientError  # type: ignore[import-untyped]

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreCorrupted, StoreError, StoreUnavailable
from tocsin.stores.sql_pool import Activity

#: The errors that `translate_error` is for, beside OSError and TimeoutError; anything else is a fault of the program.
TRANSLATED = (asyncpg.PostgresError, asyncpg.InterfaceError, InternalClientError, msgspec.DecodeError, UnicodeError)

#: Data or index are damaged; or the tables and functions are gone that were there at the start.
_CORRUPTED = ("XX001", "XX002", "42P01", "42883", "3F000", "42703")
#: The server refuses everything, or everything of this kind, for now: out of disk, memory or connections; a standby; no
#: right; a lock that isn't given up. Cutting the batch smaller would not help.
_UNAVAILABLE = ("53", "57P", "58", "25006", "28", "3D", "42501", "55P03")


def translate_error(error: BaseException, safe_url: str, activity: Activity) -> StoreError:
    """The store error that a driver's error amounts to.

    A write is one statement which is its own transaction. An answer of severity ERROR says that it was rolled back, be
    it for a statement time-out, a deadlock or bad data. Anything that ends the session, or no answer at all, says
    nothing: the commit may have been over by then.
    """
    text = f"{safe_url}: {str(error) or type(error).__name__}"
    if isinstance(error, asyncpg.PostgresError) and _says_rolled_back(error):
        return _refused(error, text)
    if _is_bad_value(error):
        return DefiniteFailure(text)
    if isinstance(error, asyncpg.InterfaceError):
        # Refused by the driver before anything was sent.
        return StoreUnavailable(text)
    if activity is Activity.WRITING:
        return OutcomeUnknown(f"{text}; what became of the transaction is not known")
    return StoreUnavailable(text)


def _is_bad_value(error: BaseException) -> bool:
    """Whether the driver could not encode a value, and sent nothing, or what was read can't be decoded."""
    # The driver raises the server's class for it, without the severity that every answer of the server has.
    encoding = isinstance(error, asyncpg.DataError) and error.severity is None
    return encoding or isinstance(error, UnicodeError | msgspec.DecodeError)


def _says_rolled_back(error: asyncpg.PostgresError) -> bool:
    severity = getattr(error, "severity_en", None) or getattr(error, "severity", None)
    return severity == "ERROR" and error.sqlstate != "40003"


def _refused(error: asyncpg.PostgresError, text: str) -> StoreError:
    code = error.sqlstate or ""
    if code in _CORRUPTED:
        return StoreCorrupted(f"{text}; the schema is damaged or was removed: stop Tocsin, then restore a backup")
    if code.startswith(_UNAVAILABLE):
        return StoreUnavailable(text)
    return DefiniteFailure(text)


def is_unusable(error: BaseException) -> bool:
    """Whether the connection that met the error has to be given up: the session may be in any state, or its server is no
    primary any more."""
    if isinstance(error, asyncpg.PostgresError):
        return not _says_rolled_back(error) or error.sqlstate == "25006"
    return not _is_bad_value(error)
