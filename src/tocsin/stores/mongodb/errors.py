"""Translation of errors of MongoDB, the driver and its connections into store errors."""

from __future__ import annotations

from typing import Any

from bson.errors import BSONError
from pymongo import errors

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreError, StoreUnavailable, StoreUnreachable

#: The errors that `translate_error` takes; any other is a defect of the program.
TRANSLATED: tuple[type[BaseException], ...] = (
    errors.PyMongoError,
    BSONError,
    UnicodeError,
    OverflowError,
    TimeoutError,
    OSError,
)

UNAUTHORIZED = 13
NAMESPACE_EXISTS = 48
_AUTHENTICATION_FAILED = 18
_ATLAS_ERROR = 8000
#: The transaction was rolled back in favour of another, and may be repeated: a lock that was not free, a write conflict.
_CONFLICTS = frozenset({24, 112})
#: The server refuses everything, or everything of this kind, for now: missing rights, no time or space left, a snapshot that
#: is gone, a session that was ended, a shutdown, an election. Splitting the batch would not help.
_UNAVAILABLE = frozenset(
    {UNAUTHORIZED, _AUTHENTICATION_FAILED, _ATLAS_ERROR, 24, 50, 63, 89, 91, 112, 146, 189, 202, 239, 246, 251, 262, 290,
     9001, 10107, 11600, 11602, 13388, 13435, 13436, 14031}
)  # fmt: skip
#: Failures without an answer about the write. A write that fails so may have been done.
_UNANSWERED = (errors.ConnectionFailure, errors.ExecutionTimeout, errors.WriteConcernError, TimeoutError, OSError)
#: The exceptions to it: nothing was sent.
_UNSENT = (errors.ServerSelectionTimeoutError, errors.WaitQueueTimeoutError)


#: The server serves nobody for the moment: a shutdown, an election, a secondary.
_AWAY = frozenset({89, 91, 189, 9001, 10107, 11600, 11602, 13435, 13436})
#: Part of the text of a failed connection for which the certificate is the reason.
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"


class Refused(Exception):
    """A condition of the transaction does not hold. The transaction is rolled back."""


def code_of(error: BaseException) -> int | None:
    """MongoDB's error code."""
    return error.code if isinstance(error, errors.OperationFailure) else None


def is_denied(error: BaseException) -> bool:
    """Whether the credentials are wrong, or lack a right."""
    return code_of(error) in (UNAUTHORIZED, _AUTHENTICATION_FAILED, _ATLAS_ERROR)


def is_conflict(error: BaseException) -> bool:
    """Whether the transaction was rolled back in favour of another one, by the statement or the commit that failed."""
    return (
        isinstance(error, errors.OperationFailure)
        and error.code in _CONFLICTS
        and not error.has_error_label("UnknownTransactionCommitResult")
    )


def translate_error(error: BaseException, place: str, *, in_doubt: bool) -> StoreError:
    """The store error for a driver's error. `in_doubt`: the operation was a write outside a transaction, which may have been
    done if no answer came. In a transaction nothing has an effect before the commit."""
    text = f"{place}: {text_of(error)}"
    if isinstance(error, _UNANSWERED) and in_doubt and not isinstance(error, _UNSENT):
        return OutcomeUnknown(f"{text}; the outcome of the write is unknown")
    if isinstance(error, _UNANSWERED) or code_of(error) in _AWAY:
        return StoreUnavailable(text) if _UNTRUSTED in text.upper() else StoreUnreachable(text)
    if code_of(error) in _UNAVAILABLE:
        return StoreUnavailable(text)
    return DefiniteFailure(text)


def text_of(error: BaseException) -> str:
    """The error in one line, without the driver's description of all servers."""
    if isinstance(error, errors.BulkWriteError):
        return _bulk_text(error)
    if isinstance(error, errors.OperationFailure):
        details = error.details or {}
        return f"{details.get('codeName') or 'error'} ({error.code}): {details.get('errmsg', error)}"
    text = str(error)
    for rest in (" (configured timeouts:", ", Timeout:", ", Topology Description:"):
        text = text.partition(rest)[0]
    return text.replace("\n", " ") or type(error).__name__


def _bulk_text(error: errors.BulkWriteError) -> str:
    details: dict[str, Any] = dict(error.details)
    failed = [*details.get("writeErrors", ()), *details.get("writeConcernErrors", ())]
    first = failed[0] if failed else {}
    return f"error ({first.get('code')}): {first.get('errmsg', error)}"
