"""The request that a handler receives, and answers other than JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditSource
from tocsin.model.errors import TocsinError
from tocsin.model.setting import setting
from tocsin.ports.audit import Actor
from tocsin.ports.completion import Awaited, Completion
from tocsin.ports.tracing import CreateSpan, CreateTraces
from tocsin.web.http.access import require_namespace
from tocsin.web.http.convert import traceparent_of
from tocsin.web.http.hosts import Proxies

#: The other side of a connection: address and port.
Client = tuple[str, int] | None

#: In the ASGI scope of a request that this server makes in somebody's name: the interface that they use.
SOURCE = "tocsin.source"

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """Limits on requests as such; `tocsin.model.validation.InputLimits` limits their contents."""

    request_head_timeout_s: float = setting(
        30.0,
        "How long a request line and its headers may take to arrive, counted from the first byte. Lower values "
        "disconnect slow clients sooner.",
    )
    request_read_timeout_s: float = setting(
        30.0,
        "How long a request's body may take to arrive. Lower values disconnect slow or stalled uploads sooner.",
    )
    request_bytes_max: int = setting(
        256 * 1024,
        "Bytes of a request's body, batches aside; a larger one is answered 413. Keep it above `payload_bytes_max`; "
        "higher values take more memory for each request.",
    )
    batch_request_bytes_max: int = setting(
        32 * 1024 * 1024,
        "Bytes of a batch's body; a larger one is answered 413. Higher values take more memory for each batch.",
    )
    batch_items_max: int = setting(
        1_000,
        "Timers in one batch. Higher values need fewer requests, each of which takes longer.",
    )
    request_bodies_bytes_max: int = setting(
        128 * 1024 * 1024,
        "Memory for bodies that have begun to arrive and are incomplete, all connections together, in bytes; one "
        "client address gets half of it. Bodies that arrive in one piece need none. Higher values serve more slow "
        "uploads.",
    )
    unread_responses_bytes_max: int = setting(
        64 * 1024 * 1024,
        "Memory of a process for responses that clients have not read yet, all connections together, in bytes; one "
        "client address gets half of it. Above it, the connections whose clients have not read for longest are "
        "closed. Higher values serve more slow readers at once; with lower values hostile ones take less memory.",
    )

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: Bytes of a request line with its headers; a longer head is answered 431.
    request_head_bytes_max: int = 64 * 1024
    #: Headers of a request; more are answered 431.
    headers_max: int = 100
    #: Bytes of the values of all headers of a request; more are answered 431.
    header_bytes_max: int = 32 * 1024


class ApiRequest(Completion[object]):
    """A request on its way through the pipeline, which fills it in: a handler finds the body read, the key authenticated
    (None: no key, where keys are optional), and the parameters of path and query.

    It is also the completion of its operation: a handler that does not await returns the request, which gets what another
    handler would return.
    """

    __slots__ = ("_proxies", "answer_headers", "client", "correlation_id", "headers", "key", "now_us", "sent", "span")

    #: What only some requests have.
    parameters: Mapping[str, str] = _NONE
    query: Mapping[str, list[str]] = _NONE
    #: The path, decoded; empty where the protocol has found the operation by it already.
    path = ""
    body = b""
    #: The interface that the caller uses.
    source = AuditSource.API

    def __init__(self, headers: Mapping[bytes, bytes], correlation_id: str, client: Client, proxies: Proxies) -> None:
        self.completed = False
        #: The decoded body, where changes are reported.
        self.sent: Any = None
        self.headers = headers
        self.correlation_id = correlation_id
        self.client = client
        self._proxies = proxies
        self.key: ApiKey | None = None
        #: When the body was complete.
        self.now_us = 0
        #: Headers that the handler adds to the response.
        self.answer_headers: Sequence[tuple[bytes, bytes]] = ()
        #: Ends when the request is answered.
        self.span: CreateSpan | None = None

    @property
    def address(self) -> str:
        """The client's address; empty if unknown."""
        return self._proxies.address(self.client, self.headers.get(b"x-forwarded-for"))

    @property
    def actor(self) -> Actor:
        """The caller, for the audit trail."""
        key = self.key
        if key is None:
            return Actor(None, self.address, self.source)
        return Actor(key.key_id, self.address, self.source, key.note)

    def permit(self, role: Role, namespace: str) -> None:
        """Raises Forbidden unless the caller has the role on the namespace."""
        if self.key is not None:
            require_namespace(self.key, role, namespace)

    def forbid_storing(self) -> None:
        """Marks the answer as one that no cache may store, because it contains a secret."""
        self.answer_headers = [(b"cache-control", b"no-store")]

    def trace(self, traces: CreateTraces | None, operation: str) -> str | None:
        """Begins the request's span, where traces are collected. Returns the `traceparent` that the created timers, or the
        submitted call, keep."""
        traceparent = traceparent_of(self.headers.get(b"traceparent"))
        if traces is None:
            return traceparent
        self.span = traces.begin(operation, traceparent)
        return self.span.traceparent

    def end_span(self, error: BaseException | None) -> None:
        """Ends the span, if there is one, with the request's error."""
        span, self.span = self.span, None
        if span is not None:
            span.end(error)


class AsgiRequest(ApiRequest):
    """A request that arrived as an ASGI call, whose task awaits `answer` if the handler has returned the request."""

    __slots__ = ("answer", "body", "parameters", "path", "query", "source")

    def __init__(
        self,
        headers: Mapping[bytes, bytes],
        correlation_id: str,
        client: Client,
        proxies: Proxies,
        *,
        parameters: Mapping[str, str],
        path: str,
        source: AuditSource = AuditSource.API,
    ) -> None:
        super().__init__(headers, correlation_id, client, proxies)
        self.source = source
        self.parameters, self.path = parameters, path
        self.query = _NONE
        self.body = b""
        self.answer: Awaited[object] = Awaited()

    def _resolved(self, value: object) -> None:
        self.answer.resolve(value)

    def _refused(self, error: TocsinError) -> None:
        self.answer.refuse(error)

    def _failed(self, error: Exception) -> None:
        self.answer.fail(error)


@dataclass(frozen=True, slots=True)
class Content:
    """An answer with its own media type."""

    body: bytes
    media_type: str


class NotModified:
    """The answer 304: what the client has is current."""


def is_current(etag: bytes, if_none_match: bytes | None) -> bool:
    """Whether the header If-None-Match names the ETag, weak or strong, or any."""
    if if_none_match is None:
        return False
    known = [each.strip().removeprefix(b"W/") for each in if_none_match.split(b",")]
    return etag in known or b"*" in known
