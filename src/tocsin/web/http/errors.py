"""Maps errors to HTTP responses: the only place that knows HTTP statuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from tocsin.model.errors import (
    Conflict,
    DefiniteFailure,
    FieldError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    PayloadTooLarge,
    QuotaExceeded,
    TocsinError,
    Unavailable,
)
from tocsin.model.instants import format_instant
from tocsin.web.http import wire

Headers = list[tuple[bytes, bytes]]

_PROBLEM_MEDIA_TYPE = b"application/problem+json"

#: The documentation of the newest release.
DOCS_URL = "https://tocsin.dev/docs/latest/"


class Response(NamedTuple):
    """A response, complete."""

    status: int
    headers: Headers
    body: bytes


class MalformedBody(InvalidInput):
    """The body is not valid JSON."""

    code = "MALFORMED_BODY"

    def __init__(self, reason: str) -> None:
        super().__init__(FieldError("", reason))


class MalformedRequest(InvalidInput):
    """The received data is not HTTP. The connection is closed after the response."""

    code = "MALFORMED_REQUEST"

    def __init__(self, reason: str) -> None:
        super().__init__(FieldError("", reason))


class Unauthenticated(TocsinError):
    """The request has no API key, or one that is not valid."""

    code = "UNAUTHENTICATED"


class TooManyFailures(TocsinError):
    """An address has sent too many invalid keys."""

    code = "TOO_MANY_FAILURES"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Forbidden(TocsinError):
    """The key is valid, but does not allow this operation, or not on this object."""

    code = "FORBIDDEN"


class ForeignSource(Forbidden):
    """The key with this id is valid, but does not count from this address."""

    def __init__(self, message: str, key_id: str) -> None:
        super().__init__(message)
        self.key_id = key_id


class RouteNotFound(NotFound):
    """No operation has this path."""

    code = "ROUTE_NOT_FOUND"


class MethodNotAllowed(TocsinError):
    """The path exists, but does not accept this method."""

    code = "METHOD_NOT_ALLOWED"

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"{method} is not allowed here; use {allowed}")
        self.allowed = allowed


class BodyTimeout(TocsinError):
    """The body did not arrive in time."""

    code = "REQUEST_TIMEOUT"


class HeadTimeout(BodyTimeout):
    """The request line and headers did not arrive in time."""


class BodyTooLarge(TocsinError):
    """The body is larger than the operation accepts. With `discard` the rest of it is received and discarded;
    otherwise the connection is closed after the response."""

    code = "BODY_TOO_LARGE"

    def __init__(self, message: str, *, discard: bool = False) -> None:
        super().__init__(message)
        self.discard = discard


class UnsupportedMediaType(TocsinError):
    """The body is not declared as JSON."""

    code = "UNSUPPORTED_MEDIA_TYPE"


class HeadersTooLarge(TocsinError):
    """The request's headers exceed a limit."""

    code = "HEADERS_TOO_LARGE"


class NoRoomForBody(Unavailable):
    """Incomplete request bodies use all the memory reserved for them, or all of one client's share."""

    code = "NO_ROOM_FOR_BODY"

    def __init__(self) -> None:
        super().__init__(
            "incomplete request bodies use all the memory reserved for them (api.request_bodies_bytes_max), or one client's "
            "share of it; retry with smaller batches, or one batch at a time"
        )


class NotReady(Unavailable):
    """The node should receive no traffic now."""

    code = "NOT_READY"

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class InboxUnavailable(Unavailable):
    """The inbox's database can't be asked, or its table is missing."""

    code = "INBOX_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """The HTTP response to a class of errors. `hidden` withholds the error's own text from the client."""

    status: int
    title: str
    hidden: bool = False


_INTERNAL = ProblemKind(500, "Internal error", hidden=True)

#: The entry of the nearest ancestor class applies.
_PROBLEM_KINDS: dict[type[BaseException], ProblemKind] = {
    InvalidInput: ProblemKind(400, "Invalid input"),
    MalformedBody: ProblemKind(400, "Malformed body"),
    MalformedRequest: ProblemKind(400, "Malformed request"),
    Unauthenticated: ProblemKind(401, "Authentication required"),
    Forbidden: ProblemKind(403, "Not allowed with this key"),
    NotFound: ProblemKind(404, "Not found"),
    MethodNotAllowed: ProblemKind(405, "Method not allowed"),
    BodyTimeout: ProblemKind(408, "Body not received in time"),
    HeadTimeout: ProblemKind(408, "Request not received in time"),
    Conflict: ProblemKind(409, "Conflict with the current state"),
    BodyTooLarge: ProblemKind(413, "Body too large"),
    PayloadTooLarge: ProblemKind(413, "Payload too large"),
    UnsupportedMediaType: ProblemKind(415, "Unsupported media type"),
    TooManyFailures: ProblemKind(429, "Too many failures"),
    Overloaded: ProblemKind(429, "Too many requests"),
    QuotaExceeded: ProblemKind(429, "Quota exceeded"),
    HeadersTooLarge: ProblemKind(431, "Headers too large"),
    Unavailable: ProblemKind(503, "Temporarily unavailable"),
    DefiniteFailure: ProblemKind(503, "Temporarily unavailable", hidden=True),
    OutcomeUnknown: ProblemKind(503, "Temporarily unavailable", hidden=True),
    TocsinError: _INTERNAL,
}

#: Responses of the mounted application (pages, other APIs) that carry no problem document, by status.
_MOUNTED_APP_ERRORS: dict[int, Callable[[str], TocsinError]] = {
    400: lambda path: InvalidInput(FieldError("", "the request is not valid")),
    403: lambda path: Forbidden(f"{path} is not allowed"),
    404: lambda path: RouteNotFound(f"no operation at {path}; see /docs"),
    500: lambda path: TocsinError(),
}

_encoder = msgspec.json.Encoder()


def problem_kind(error: BaseException) -> ProblemKind:
    """The HTTP response to an error; an error without an entry is an internal error, whose text is withheld."""
    return problem_kind_of_class(type(error))


def problem_kind_of_class(error: type[BaseException]) -> ProblemKind:
    """The HTTP response to a class of errors."""
    for ancestor in error.__mro__:
        kind = _PROBLEM_KINDS.get(ancestor)
        if kind is not None:
            return kind
    return _INTERNAL


def error_code(error: BaseException) -> str:
    """The stable code of an error. An internal error always has the code INTERNAL, no matter what its class declares."""
    return error.code if isinstance(error, TocsinError) and problem_kind(error) is not _INTERNAL else TocsinError.code


def problem_type(code: str) -> str:
    """The `type` of problems with this code: the row of the documentation that has its cause and its remedy."""
    return f"{DOCS_URL}reference/errors/#{code}"


def client_message(error: BaseException, correlation_id: str) -> str:
    """The message for the client."""
    kind = problem_kind(error)
    if not kind.hidden:
        return str(error)
    if kind.status == 503:
        return f"the store failed; try again (correlation id {correlation_id})"
    return f"internal error; the server's log has the cause under the correlation id {correlation_id}"


def bad_fields(error: BaseException) -> list[wire.BadField]:
    """The fields that an error names."""
    if isinstance(error, InvalidInput):
        return [wire.BadField(path=field.path, reason=field.reason) for field in error.errors]
    if isinstance(error, NotReady):
        return [wire.BadField(path="", reason=reason) for reason in error.reasons]
    return []


def item_error(error: TocsinError, correlation_id: str) -> wire.ItemError:
    """The error of one item of a batch."""
    return wire.ItemError(
        error=error_code(error),
        message=client_message(error, correlation_id),
        status=problem_kind(error).status,
        errors=bad_fields(error),
    )


def problem(error: BaseException, *, instance: str, correlation_id: str, now_us: int) -> Response:
    """The response to a request that failed. `instance` is the request's path."""
    kind, code, message = problem_kind(error), error_code(error), client_message(error, correlation_id)
    body = _encoder.encode(
        wire.Problem(
            type=problem_type(code),
            title=kind.title,
            status=kind.status,
            detail=message,
            instance=instance,
            error=code,
            message=message,
            timestamp=format_instant(now_us),
            correlation_id=correlation_id,
            errors=bad_fields(error),
        )
    )
    headers = [
        (b"content-type", _PROBLEM_MEDIA_TYPE),
        (b"content-length", b"%d" % len(body)),
        (b"x-correlation-id", correlation_id.encode()),
        *problem_headers(error),
    ]
    return Response(kind.status, headers, body)


def problem_headers(error: BaseException) -> Headers:
    """The headers that this kind of error adds to content type, content length and correlation id."""
    headers = [(b"cache-control", b"no-store")]
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b'Bearer realm="tocsin"'))
    elif isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.allowed.encode()))
    elif isinstance(error, BodyTimeout) or (isinstance(error, BodyTooLarge) and not error.discard):
        headers.append((b"connection", b"close"))
    elif problem_kind(error).status in (429, 503):
        seconds = error.retry_after_s if isinstance(error, Unavailable | TooManyFailures | QuotaExceeded) else 1.0
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(seconds))))
    return headers


def mounted_app_error(status: int, method: str, path: str, allow: str | None) -> TocsinError | None:
    """The error that replaces a response of the mounted application; None to keep the response as it is."""
    if status == 405:
        return MethodNotAllowed(method, allow or "another method")
    make = _MOUNTED_APP_ERRORS.get(status)
    return None if make is None else make(path)
