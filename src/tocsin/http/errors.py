"""From errors to answers: the only place that knows HTTP statuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tocsin.http import wire
from tocsin.http.instants import format_instant
from tocsin.model.errors import (
    ClusterUpgrading,
    Conflict,
    DefiniteFailure,
    FieldError,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    PayloadTooLarge,
    TocsinError,
    Unavailable,
)

PROBLEM_MEDIA_TYPE = b"application/problem+json"


class MalformedBody(InvalidInput):
    """The body is not the JSON that it claims to be."""

    code = "MALFORMED_BODY"

    def __init__(self, reason: str) -> None:
        super().__init__(FieldError("", reason))


class Unauthenticated(TocsinError):
    """No key, or one that nobody knows."""

    code = "UNAUTHENTICATED"


class TooManyFailures(TocsinError):
    """An address sends wrong keys again and again."""

    code = "TOO_MANY_FAILURES"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Forbidden(TocsinError):
    """A known key that may not do this, or not here."""

    code = "FORBIDDEN"


class RouteNotFound(NotFound):
    """Nothing answers under this path."""

    code = "ROUTE_NOT_FOUND"


class MethodNotAllowed(TocsinError):
    """Something answers under this path, but not to this method."""

    code = "METHOD_NOT_ALLOWED"

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"{method} is not allowed here; use {allowed}")
        self.allowed = allowed


class BodyTimeout(TocsinError):
    """The body did not arrive in time."""

    code = "REQUEST_TIMEOUT"


class HeadTimeout(BodyTimeout):
    """The request line and headers did not arrive in time."""


class MalformedRequest(InvalidInput):
    """What came is not HTTP. The connection is closed after the answer."""

    code = "MALFORMED_REQUEST"

    def __init__(self, reason: str) -> None:
        super().__init__(FieldError("", reason))


class BodyTooLarge(TocsinError):
    """The body is longer than the operation accepts. With `discard` the rest of it is received and thrown away;
    otherwise the connection is closed after the answer."""

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
    """The bodies that are being received take all the memory that they may, or all that one client may."""

    code = "NO_ROOM_FOR_BODY"

    def __init__(self) -> None:
        super().__init__(
            "unfinished request bodies take all the memory there is for them (api.request_bodies_bytes_max), or one client's "
            "share of it; send the request again, in smaller batches or one after another"
        )


class NotReady(Unavailable):
    """The node should get no traffic now."""

    code = "NOT_READY"

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class Kind:
    """How a class of errors is answered. `hidden` keeps the error's own text from the client."""

    status: int
    title: str
    hidden: bool = False


_INTERNAL = Kind(500, "Internal error", hidden=True)

#: The nearest entry in a class's ancestry counts.
_KINDS: dict[type[BaseException], Kind] = {
    InvalidInput: Kind(400, "Invalid input"),
    MalformedBody: Kind(400, "Malformed body"),
    MalformedRequest: Kind(400, "Malformed request"),
    Unauthenticated: Kind(401, "Authentication needed"),
    Forbidden: Kind(403, "Not allowed with this key"),
    NotFound: Kind(404, "Not found"),
    MethodNotAllowed: Kind(405, "Method not allowed"),
    BodyTimeout: Kind(408, "Body not received in time"),
    HeadTimeout: Kind(408, "Request not received in time"),
    Conflict: Kind(409, "Conflict with the present state"),
    BodyTooLarge: Kind(413, "Body too large"),
    PayloadTooLarge: Kind(413, "Payload too large"),
    UnsupportedMediaType: Kind(415, "Unsupported media type"),
    TooManyFailures: Kind(429, "Too many failures"),
    Overloaded: Kind(429, "Too many requests"),
    HeadersTooLarge: Kind(431, "Headers too large"),
    Unavailable: Kind(503, "Unavailable for a moment"),
    ClusterUpgrading: Kind(503, "Not before every node is upgraded"),
    DefiniteFailure: Kind(503, "Unavailable for a moment", hidden=True),
    OutcomeUnknown: Kind(503, "Unavailable for a moment", hidden=True),
    TocsinError: _INTERNAL,
}

#: Answers of the mounted application (pages, other APIs) that carry no problem of their own, by status.
_FOREIGN: dict[int, Callable[[str], TocsinError]] = {
    400: lambda path: InvalidInput(FieldError("", "the request can't be understood")),
    403: lambda path: Forbidden(f"{path} is not allowed"),
    404: lambda path: RouteNotFound(f"nothing answers under {path}; see /docs"),
    500: lambda path: TocsinError(),
}

_encoder = msgspec.json.Encoder()


def kind_of(error: BaseException) -> Kind:
    """How the error is answered; whatever isn't known is an internal error that shows nothing of itself."""
    return kind_of_class(type(error))


def kind_of_class(error: type[BaseException]) -> Kind:
    """The same of a class of errors."""
    for ancestor in error.__mro__:
        kind = _KINDS.get(ancestor)
        if kind is not None:
            return kind
    return _INTERNAL


def code_of(error: BaseException) -> str:
    """The stable code. What is answered as an internal error has that one's, whatever its own."""
    return error.code if isinstance(error, TocsinError) and kind_of(error) is not _INTERNAL else TocsinError.code


def answered_classes() -> dict[str, list[type[TocsinError]]]:
    """The classes of errors that are answered with a code of their own, by code, as far as they are loaded."""
    found: dict[str, list[type[TocsinError]]] = {}
    waiting: list[type[TocsinError]] = [TocsinError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        # Whatever isn't found has a more precise code.
        if kind is not NotFound and (kind is TocsinError or kind_of_class(kind) is not _INTERNAL):
            found.setdefault(kind.code, []).append(kind)
    return found


def message_of(error: BaseException, correlation_id: str) -> str:
    """What the client is told."""
    kind = kind_of(error)
    if not kind.hidden:
        return str(error)
    if kind.status == 503:
        return f"the store did not answer as it should; try again (correlation id {correlation_id})"
    return f"something went wrong on the server; it was logged under the correlation id {correlation_id}"


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
        error=code_of(error),
        message=message_of(error, correlation_id),
        status=kind_of(error).status,
        errors=bad_fields(error),
    )


def problem(error: BaseException, *, instance: str, correlation_id: str, now_us: int) -> bytes:
    """The body of a problem answer."""
    kind, code, message = kind_of(error), code_of(error), message_of(error, correlation_id)
    return _encoder.encode(
        wire.Problem(
            type=f"urn:tocsin:error:{code}",
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


def problem_headers(error: BaseException) -> list[tuple[bytes, bytes]]:
    """The headers that belong to this kind of error, besides type, length and correlation id."""
    headers = [(b"cache-control", b"no-store")]
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b'Bearer realm="tocsin"'))
    elif isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.allowed.encode()))
    elif isinstance(error, BodyTimeout) or (isinstance(error, BodyTooLarge) and not error.discard):
        headers.append((b"connection", b"close"))
    elif kind_of(error).status in (429, 503):
        seconds = error.retry_after_s if isinstance(error, Unavailable | TooManyFailures) else 1.0
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(seconds))))
    return headers


def of_foreign_answer(status: int, method: str, path: str, allow: str | None) -> TocsinError | None:
    """The error that an answer of the mounted application stands for; None where its own text had better be kept."""
    if status == 405:
        return MethodNotAllowed(method, allow or "another method")
    make = _FOREIGN.get(status)
    return None if make is None else make(path)
