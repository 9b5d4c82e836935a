"""Translation of errors of MySQL and MariaDB, the driver and its sockets into store errors."""

from __future__ import annotations

import msgspec
from asyncmy import errors

from tocsin.model.errors import (
    DefiniteFailure,
    OutcomeUnknown,
    StoreCorrupted,
    StoreError,
    StoreFull,
    StoreUnavailable,
    StoreUnreachable,
)
from tocsin.sql.pool import lets_retry

#: The errors that `translate_error` takes; any other is a defect of the program.
TRANSLATED: tuple[type[BaseException], ...] = (
    errors.MySQLError,
    msgspec.DecodeError,
    UnicodeError,
    OSError,
    TimeoutError,
)

DUPLICATE = 1062
#: A missing database, a missing table.
UNKNOWN_DATABASE, UNKNOWN_TABLE = 1049, 1146
#: A table or view that exists, a statement that the user may not run.
TABLE_EXISTS, DENIED = 1050, 1142

#: The whole transaction was rolled back in favour of another, and may be repeated: a deadlock (1213); in TiDB a write
#: conflict (9007) or a commit that may be retried (8022, 8028).
_UNDONE = frozenset({1213, 8022, 8028, 9007})

#: Tables or columns that existed at the start are missing or damaged.
_CORRUPTED = frozenset({1049, 1054, 1146, 126, 127, 1034, 1194, 1195, 1712})

#: The server refuses everything, or everything of this kind, for now: missing rights, too many connections, full
#: memory, read-only, a cluster without a majority, a lock that is not released, a shutdown. Splitting the batch would not
#: help.
_UNAVAILABLE = frozenset(
    {
        1020, 1037, 1038, 1040, 1041, 1042, 1044, 1045, 1047, 1053, 1077, 1129, 1130, 1142, 1143, 1203,
        1205, 1206, 1223, 1226, 1227, 1290, 1698, 1792, 1836, 1878, 3032, 3100, 3572, 4031, 8249, 9001, 9002, 9003,
        9004, 9005, 9006,
    }
)  # fmt: skip

#: A full disk, a table that can't grow.
_FULL = frozenset({1021, 1114})

#: Answers after which the server ends the session, and the driver's errors for a session that has ended.
_ENDED = frozenset(
    {0, 1043, 1053, 1077, 1079, 1081, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2014, 2055, 4031}
)

#: The session works, but its server no longer accepts writes.
READ_ONLY = 1836
_DEMOTED = frozenset({1290, 1792, READ_ONLY})


#: Nobody is served for the moment: too many sessions, a shutdown, a cluster without a majority; from 2000 on, the driver
#: could not connect, or lost the connection.
_UNREACHABLE = frozenset({1040, 1047, 1053, 1077, 1203, 2002, 2003, 2006, 2013})


def code_of(error: BaseException) -> int | None:
    """The error's number: the server's, or from 2000 on the client's. None for an error that is not the driver's."""
    if not isinstance(error, errors.MySQLError):
        return None
    number = error.args[0] if error.args else None
    return number if isinstance(number, int) else 0


def is_undone(error: BaseException) -> bool:
    """Whether the server rolled the whole transaction back in favour of another one."""
    return code_of(error) in _UNDONE


def is_refused_commit(error: BaseException) -> bool:
    """Whether a COMMIT with this answer certainly had no effect: it was rolled back, or the server accepts no writes."""
    return code_of(error) in _UNDONE | _DEMOTED


def is_demoted(error: BaseException) -> bool:
    """Whether the server no longer accepts writes."""
    return code_of(error) in _DEMOTED


def translate_error(error: BaseException, safe_url: str, *, in_doubt: bool) -> StoreError:
    """The store error for a driver's error.

    `in_doubt`: a COMMIT was sent and its outcome is unknown. Before that, nothing can have taken effect, no matter what
    happened to the connection: a server that loses its client rolls back.
    """
    code = code_of(error)
    text = f"{safe_url}: {_text(error)}"
    if in_doubt:
        return OutcomeUnknown(f"{text}; the outcome of the transaction is unknown")
    if isinstance(error, UnicodeError | msgspec.DecodeError):
        return DefiniteFailure(text)
    if code in _FULL:
        return StoreFull(text)
    if code is None or code in _UNAVAILABLE or is_unusable(error):
        return StoreUnavailable(text)
    if code in _CORRUPTED:
        return StoreCorrupted(f"{text}; the tables are damaged or were removed: stop Tocsin and restore a backup")
    return DefiniteFailure(text)


def refused_connection(error: BaseException, safe_url: str) -> StoreError:
    """The store error for a connection that could not be opened."""
    if code_of(error) in _UNREACHABLE or lets_retry(error):
        return StoreUnreachable(f"{safe_url}: {_text(error)}")
    return translate_error(error, safe_url, in_doubt=False)


def _text(error: BaseException) -> str:
    code = code_of(error)
    if code is not None and len(error.args) > 1:
        return f"{error.args[1]} ({code})"
    if isinstance(error, TimeoutError):
        return "no answer in time; check that MySQL or MariaDB listens there"
    return str(error) or type(error).__name__


def is_unusable(error: BaseException) -> bool:
    """Whether the connection must be discarded after this error: the session may be in any state, or its server no longer
    accepts writes."""
    code = code_of(error)
    if code is None:
        return not isinstance(error, UnicodeError | msgspec.DecodeError | StoreError)
    # The driver's own errors, after which it may be out of step with the server, have no number or a client's.
    return code in _ENDED or code in _DEMOTED or 2000 <= code < 3000
