"""The classes that all errors of this package derive from."""

from __future__ import annotations

from dataclasses import dataclass


class TocsinError(Exception):
    """Base of everything that this package raises on its own account."""


class InvalidArgument(TocsinError, ValueError):
    """An argument that can't be sent; the message names it, and what to give instead. Nothing was sent."""


class InvalidType(InvalidArgument, TypeError):
    """An argument of a type that can't be sent."""


class TransportError(TocsinError):
    """No answer arrived. With `maybe_done` the server may have received and executed the request; otherwise it was never
    sent completely. With `final` the next try would fail in the same way, as with a certificate that can't be verified."""

    def __init__(self, message: str, *, maybe_done: bool, final: bool = False) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done
        self.final = final


class DeadlineExceeded(TransportError):
    """The call's time was over before an answer arrived."""


class WaitTimeout(TocsinError, TimeoutError):
    """`wait` reached its timeout; what it waited for goes on."""


class BatcherClosed(TocsinError):
    """A timer was added to a batcher that is closed."""


class BatcherFull(TocsinError):
    """A timer was added to a batcher that has as many waiting as it takes, and that was made with `block=False`."""


@dataclass(frozen=True)
class BadField:
    """A field of the request, and what is wrong with it."""

    path: str
    reason: str


class ApiError(TocsinError):
    """The server refused the request, or failed. `code` is stable: compare it, or catch the class of the code."""

    #: Whether it is that of one timer of a batch, whose request was answered.
    _is_of_item = False

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        fields: tuple[BadField, ...] = (),
        correlation_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The HTTP status.
        self.status = status
        #: The code, such as TIMER_NOT_FOUND; empty if the answer was not Tocsin's, as from a proxy.
        self.code = code
        #: Each invalid field.
        self.fields = fields
        #: Identifies the request in the server's log.
        self.correlation_id = correlation_id
        #: In seconds, from `Retry-After`.
        self.retry_after = retry_after

    def __str__(self) -> str:
        known = f"{self.code or 'HTTP'} ({self.status}): {self.message}"
        return f"{known} [correlation id {self.correlation_id}]" if self.correlation_id else known


class InvalidInput(ApiError):
    """The request is wrong; repeated as it is, it will be refused again. `fields` names what to correct."""


class Unauthenticated(ApiError):
    """No API key, or one that is unknown, revoked or expired."""


class Forbidden(ApiError):
    """The API key does not allow this."""


class NotFound(ApiError):
    """There is no such object."""


class Conflict(ApiError):
    """The object's state does not allow this."""


class Overloaded(ApiError):
    """A limit was reached, and nothing was accepted. Try again after `retry_after`."""


class Unavailable(ApiError):
    """The server can't answer now. A write may have been executed."""


class ServerError(ApiError):
    """The server failed. Report the `correlation_id` to its operator."""
