"""Classification of the errors of DynamoDB, the driver and its connections, and their translation into store errors."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import aiohttp
from botocore import exceptions as driver
from botocore.parsers import ResponseParserError

from tocsin.model.errors import DefiniteFailure, StoreCorrupted, StoreError, StoreUnavailable, StoreUnreachable

#: The errors that `verdict_of` classifies. All others are bugs.
TRANSLATED: tuple[type[BaseException], ...] = (
    driver.BotoCoreError,
    driver.ClientError,
    ResponseParserError,
    aiohttp.ClientError,
    TimeoutError,
    OSError,
)


class Verdict(Enum):
    """The kind of a failed request. The first three may be sent again; the value is the label of a metric."""

    THROTTLED = "throttled"
    CONFLICT = "conflict"
    UNANSWERED = "unanswered"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    DENIED = "denied"
    MISSING = "missing"
    FOREIGN = "foreign"
    INVALID = "invalid"


#: DynamoDB's error codes and codes of cancellation reasons. None of these requests had an effect.
_VERDICTS = {
    "ProvisionedThroughputExceededException": Verdict.THROTTLED,
    "ProvisionedThroughputExceeded": Verdict.THROTTLED,
    "RequestLimitExceeded": Verdict.THROTTLED,
    "ThrottlingException": Verdict.THROTTLED,
    "ThrottlingError": Verdict.THROTTLED,
    "Throttling": Verdict.THROTTLED,
    "LimitExceededException": Verdict.THROTTLED,
    "TransactionConflictException": Verdict.CONFLICT,
    "TransactionConflict": Verdict.CONFLICT,
    "TransactionInProgressException": Verdict.CONFLICT,
    "ReplicatedWriteConflictException": Verdict.CONFLICT,
    "ConditionalCheckFailedException": Verdict.REFUSED,
    "ConditionalCheckFailed": Verdict.REFUSED,
    "ResourceNotFoundException": Verdict.MISSING,
    "UnknownOperationException": Verdict.FOREIGN,
    "AccessDeniedException": Verdict.DENIED,
    "AccessDenied": Verdict.DENIED,
    "UnrecognizedClientException": Verdict.DENIED,
    "InvalidSignatureException": Verdict.DENIED,
    "SignatureDoesNotMatch": Verdict.DENIED,
    "MissingAuthenticationTokenException": Verdict.DENIED,
    "MissingAuthenticationToken": Verdict.DENIED,
    "IncompleteSignatureException": Verdict.DENIED,
    "IncompleteSignature": Verdict.DENIED,
    "ExpiredTokenException": Verdict.DENIED,
    "ExpiredToken": Verdict.DENIED,
    "InvalidClientTokenId": Verdict.DENIED,
    "OptInRequired": Verdict.DENIED,
}
_CREDENTIALS = (
    driver.NoCredentialsError,
    driver.PartialCredentialsError,
    driver.CredentialRetrievalError,
    driver.NoAuthTokenError,
    driver.TokenRetrievalError,
    driver.UnauthorizedSSOTokenError,
)
_POLICY = "the credentials and the policy that it takes stand in docs/how-to/dynamodb.md"


class ConditionFailed(Exception):
    """A condition of the request failed; nothing was written."""


def code_of(error: BaseException) -> str:
    """DynamoDB's error code; empty for other errors."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, driver.ClientError) else ""


def verdict_of(error: BaseException) -> Verdict:
    """The kind of the error."""
    if isinstance(error, driver.ClientError):
        return _verdict_of_answer(error)
    if isinstance(error, _CREDENTIALS):
        return Verdict.DENIED
    if isinstance(error, driver.ConnectTimeoutError | driver.ProxyConnectionError | driver.SSLError) or isinstance(
        _cause(error), aiohttp.ClientConnectorError
    ):
        # There was no connection, so nothing was sent.
        return Verdict.UNREACHABLE
    return Verdict.UNANSWERED


def _cause(error: BaseException) -> BaseException | None:
    cause = getattr(error, "kwargs", {}).get("error")
    return cause if isinstance(cause, BaseException) else error


def _verdict_of_answer(error: Any) -> Verdict:
    code = code_of(error)
    if code == "TransactionCanceledException":
        return _verdict_of_reasons(error.response.get("CancellationReasons", ()))
    if code in _VERDICTS:
        return _VERDICTS[code]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= 500:
        return Verdict.UNANSWERED
    return Verdict.FOREIGN if _is_foreign(code) else Verdict.INVALID


def _is_foreign(code: str) -> bool:
    """Whether an answer had no error code, so that the driver took the HTTP status for it."""
    return not code or code.isdecimal()


def _verdict_of_reasons(reasons: Sequence[dict[str, Any]]) -> Verdict:
    """A failed condition takes precedence, then reasons that a repetition would meet again."""
    verdicts = {
        _VERDICTS.get(reason["Code"], Verdict.INVALID) for reason in reasons if reason.get("Code") not in (None, "None")
    }
    if Verdict.REFUSED in verdicts:
        return Verdict.REFUSED
    lasting = verdicts - {Verdict.CONFLICT, Verdict.THROTTLED}
    return min(lasting or verdicts or {Verdict.CONFLICT}, key=lambda verdict: verdict.value)


def translate_error(error: BaseException, verdict: Verdict, place: str) -> StoreError:
    """The store error for a request that certainly had no effect."""
    text = f"{place}: {text_of(error)}"
    match verdict:
        case Verdict.INVALID:
            return DefiniteFailure(text)
        case Verdict.MISSING:
            return StoreCorrupted(f"{text}; the table was removed: stop Tocsin, then restore a backup")
        case Verdict.DENIED:
            return StoreUnavailable(f"{text}; {_POLICY}")
        case Verdict.FOREIGN:
            return StoreUnavailable(
                f"{text}; this is not DynamoDB, or a version without transactions: check the endpoint"
            )
        case Verdict.UNREACHABLE:
            kind = StoreUnavailable if isinstance(error, driver.SSLError) else StoreUnreachable
            return kind(f"{text}; check region, endpoint and network")
        case _:
            return StoreUnreachable(text)


def text_of(error: BaseException) -> str:
    """The error in one line, with the reasons of a canceled transaction."""
    if not isinstance(error, driver.ClientError):
        cause = _cause(error)
        return str(error) or (type(error).__name__ if cause is None else f"{type(cause).__name__}: {cause}")
    if _is_foreign(code_of(error)):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return f"HTTP {status} without an error code of DynamoDB"
    message = error.response.get("Error", {}).get("Message", "")
    reasons = error.response.get("CancellationReasons", ())
    details = sorted({str(each["Message"]) for each in reasons if each.get("Message")})
    return f"{code_of(error)}: {message}" + "".join(f"; {detail}" for detail in details)
