"""What the errors of MySQL and MariaDB, the driver and its sockets mean for a caller of the store."""

from __future__ import annotations

import msgspec
from asyncmy import errors

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreCorrupted, StoreError, StoreUnavailable

#: The errors that `translate_error` is for; anything else is a fault of the program.
TRANSLATED: tuple[type[BaseException], ...] = (
    errors.MySQLError,
    msgspec.DecodeError,
    UnicodeError,
    OSError,
    TimeoutError,
)

DUPLICATE = 1062
#: A database, a table.
UNKNOWN_DATABASE, UNKNOWN_TABLE = 1049, 1146

#: The transaction was undone because it stood in the way of another: a deadlock (1213), the same in TiDB (9007, a write
#: conflict; 8022, 8028, a commit that may be tried again). The whole of it may simply be done again.
_UNDONE = frozenset({1213, 8022, 8028, 9007})

#: Tables or columns are gone that were there at the start, or damaged.
_CORRUPTED = frozenset({1049, 1054, 1146, 126, 127, 1034, 1194, 1195, 1712})

#: The server refuses everything, or everything of this kind, for now: rights, too many connections, disk or memory full,
#: read-only, a cluster without a majority, a lock that isn't given up, a shutdown. Cutting the batch smaller would not help.
_UNAVAILABLE = frozenset(
    {
        1020, 1021, 1037, 1038, 1040, 1041, 1042, 1044, 1045, 1047, 1053, 1077, 1114, 1129, 1130, 1142, 1143, 1203,
        1205, 1206, 1223, 1226, 1227, 1290, 1698, 1792, 1836, 1878, 3032, 3100, 3572, 4031, 8249, 9001, 9002, 9003,
        9004, 9005, 9006,
    }
)  # fmt: skip

#: Answers after which the server ends the session, or is about to, or which come from the driver for one that is over.
_ENDED = frozenset(
    {0, 1043, 1053, 1077, 1079, 1081, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2014, 2055, 4031}
)

#: The session works, but on a server that takes no writes any more.
_DEMOTED = frozenset({1290, 1792, 1836})


def code_of(error: BaseException) -> int | None:
    """The error's number: the server's, or from 2000 on the client's. None for what isn't the driver's."""
    if not isinstance(error, errors.MySQLError):
        return None
    number = error.args[0] if error.args else None
    return number if isinstance(number, int) else 0


def is_undone(error: BaseException) -> bool:
    """Whether the server undid the whole transaction in favour of another one."""
    return code_of(error) in _UNDONE


def is_refused_commit(error: BaseException) -> bool:
    """Whether a COMMIT that was answered with this certainly had no effect: undone, or a server that takes no writes."""
    return code_of(error) in _UNDONE | _DEMOTED


def translate_error(error: BaseException, safe_url: str, *, in_doubt: bool) -> StoreError:
    """The store error that a driver's error amounts to.

    `in_doubt`: a COMMIT was sent whose answer isn't known. Before that nothing can have taken effect, whatever happened
    to the connection: a server that loses its client rolls back.
    """
    code = code_of(error)
    text = f"{safe_url}: {_text(error)}"
    if in_doubt:
        return OutcomeUnknown(f"{text}; what became of the transaction is not known")
    if isinstance(error, UnicodeError | msgspec.DecodeError):
        return DefiniteFailure(text)
    if code is None or code in _UNAVAILABLE or is_unusable(error):
        return StoreUnavailable(text)
    if code in _CORRUPTED:
        return StoreCorrupted(f"{text}; the tables are damaged or were removed: stop Tocsin, then restore a backup")
    return DefiniteFailure(text)


def _text(error: BaseException) -> str:
    code = code_of(error)
    if code is not None and len(error.args) > 1:
        return f"{error.args[1]} ({code})"
    return str(error) or type(error).__name__


def is_unusable(error: BaseException) -> bool:
    """Whether the connection that met the error has to be given up: the session may be in any state, or its server takes
    no writes any more."""
    code = code_of(error)
    if code is None:
        return not isinstance(error, UnicodeError | msgspec.DecodeError | StoreError)
    # What the driver makes up by itself, out of step with the server, has no number or one of the client's.
    return code in _ENDED or code in _DEMOTED or 2000 <= code < 3000
