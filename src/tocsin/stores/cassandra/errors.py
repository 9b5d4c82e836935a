"""Classification of the errors of Cassandra and its driver, and their translation into store errors."""

from __future__ import annotations

import ssl

import cassandra
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import ErrorMessage, OverloadedErrorMessage, SyntaxException

from tocsin.model.errors import (
    ConfigError,
    DefiniteFailure,
    OutcomeUnknown,
    StoreError,
    StoreUnavailable,
    StoreUnreachable,
)

#: The errors of requests. All others are bugs.
TRANSLATED: tuple[type[BaseException], ...] = (
    cassandra.DriverException,
    cassandra.RequestExecutionException,
    NoHostAvailable,
    ConnectionException,
    ErrorMessage,
    OSError,
)

#: The server refused the statement before it was carried out.
_REFUSED = (cassandra.InvalidRequest, SyntaxException, cassandra.UnsupportedOperation)
#: Nothing was sent, or the server carried nothing out.
_UNSENT = (NoHostAvailable, OverloadedErrorMessage, cassandra.Unauthorized, cassandra.AuthenticationFailed)


def translate_error(error: BaseException, place: str, *, write: bool) -> StoreError:
    """The store error for a failed request. Whatever does not certainly exclude that a write had its effect, or will have it
    later, is OutcomeUnknown: also the answer that too few replicas are alive, which may come after an earlier round of the
    same request."""
    text = f"{place}: {text_of(error)}"
    if isinstance(error, cassandra.Unauthorized | cassandra.AuthenticationFailed):
        return StoreUnavailable(f"{text}; the permissions that it takes are in docs/how-to/cassandra.md")
    if isinstance(error, _REFUSED):
        return DefiniteFailure(text)
    if isinstance(error, _UNSENT) or not write:
        return StoreUnreachable(text)
    return OutcomeUnknown(text)


def text_of(error: BaseException) -> str:
    """The error in one line."""
    if reasons := {str(host): _line(each) for host, each in _by_host(error).items()}:
        return "no node can be reached: " + "; ".join(f"{host}: {reason}" for host, reason in sorted(reasons.items()))
    return _line(error)


def _by_host(error: BaseException) -> dict[object, BaseException]:
    """Why each node could not be reached, where the driver has noted it."""
    errors = error.errors if isinstance(error, NoHostAvailable) else {}
    return errors if isinstance(errors, dict) else {}


def _line(error: object) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def refused_start(error: BaseException, place: str) -> StoreError | ConfigError:
    """The error for a start that failed: ConfigError for what no retry helps."""
    for cause in (error, *_by_host(error).values()):
        if isinstance(cause, cassandra.AuthenticationFailed | cassandra.Unauthorized):
            return ConfigError(f"store: {place}: {_line(cause)}; correct user and password, or grant the permissions of "
                               "docs/how-to/cassandra.md")  # fmt: skip
    untrusted = any(isinstance(cause, ssl.SSLError) for cause in (error, *_by_host(error).values()))
    kind = StoreUnavailable if untrusted else StoreUnreachable
    return kind(f"{place}: {text_of(error)}; check hosts, port, TLS and network")
