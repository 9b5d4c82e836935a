"""The ports of outgoing HTTP: invoke a timer's receiver; send one request unchanged. Both report the outcome."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from tocsin.model.answer import NoResponse, NotSent, Outcome
from tocsin.model.secrets import SigningSecrets
from tocsin.model.timer import RawBody


class Tls(NamedTuple):
    """What a request's connection is secured with, instead of the system's authorities and without a certificate. Requests of
    the same `key` may share connections."""

    key: str
    context: ssl.SSLContext


class Identity(NamedTuple):
    """What a callback identifies itself with: the value of its header `authorization`, empty without one, and its
    connection."""

    authorization: str = ""
    tls: Tls | None = None


class Signing(NamedTuple):
    """How a request is signed (Standard Webhooks): its id and the secrets. `message_id` stays the same when the request is
    made again."""

    message_id: str
    secrets: SigningSecrets


class CallTrace(NamedTuple):
    """The `traceparent` to send with a service call's request, and the execution that sends it."""

    traceparent: str
    tenant_id: str
    service_call_id: str
    execution_id: str


class Request(NamedTuple):
    """One request, sent once. Without a `body` none is sent; without `signing` it is not signed. `timeout_us` covers
    everything from resolving the name to the response's last byte; the wait for a connection slot precedes it. The
    `traceparent` of its `trace` is sent unless `headers` have one."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    timeout_us: int
    signing: Signing | None = None
    trace: CallTrace | None = None
    tls: Tls | None = None


class Reply(NamedTuple):
    """A response: headers in order, with their names as sent; the beginning of the body, `truncated` if it was longer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    truncated: bool


class Result(NamedTuple):
    """The outcome of a request. `sent_at` is the wall clock in microseconds when its first byte was sent; None if none was.
    `duration_us` is the time from `send` to the end of the response."""

    outcome: Reply | NoResponse | NotSent
    sent_at: int | None
    duration_us: int


class Requester(Protocol):
    """Sends requests without a task for each."""

    def destination(self, url: str) -> str:
        """The key of the URL's concurrency limit: its scheme, host and port."""

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        """Starts the request.

        `done` is called exactly once, on the event loop, after this has returned, whatever happens; with NotSent, and
        `sent_at` None, if a local shortage kept the request from being sent. A request whose method is not idempotent (RFC
        9110 section 9.2.2) is never sent twice."""


class Invocation(msgspec.Struct, frozen=True, gc=False):
    """One attempt to make. `message_id` is the same for all attempts of one firing. The request is signed with each of
    `secrets`; unsigned without any. A `body` is sent unchanged, with the envelope in headers; without one, the envelope with
    the `payload` is the body.

    With `items` it is a batch: one request for these, which differ in nothing but their timers. `message_id` is the batch's
    own then, and nothing else that belongs to a timer is sent.

    `credential` names the namespace's credential that the request has; whoever applies it sets `identity`, whose
    authorization replaces that of the headers. An `event` reports what became of timers, and belongs to none: its body is
    sent without an envelope."""

    namespace: str
    timer_id: str
    execute_at: int
    fired_at: int
    attempt: int
    payload: msgspec.Raw
    message_id: str
    url: str
    method: str
    headers: dict[str, str] | None
    timeout_us: int
    secrets: tuple[str, ...]
    traceparent: str | None
    body: RawBody | None = None
    credential: str = ""
    identity: Identity | None = None
    items: tuple[Invocation, ...] | None = None
    event: bool = False


class Exchange(NamedTuple):
    """The outcome of an attempt. `sent_at` is the wall clock when the request's first byte was sent; None if none was.
    `duration_us` is the time from the call of `invoke` to the end of the response. `secrets` are those of the request that
    its timer does not have, which must be kept from what is stored of the response."""

    outcome: Outcome
    sent_at: int | None
    duration_us: int
    secrets: tuple[str, ...] = ()


class Caller(Protocol):
    """Makes HTTP calls without a task per call: `invoke` returns at once and reports through `done`."""

    def destination(self, url: str) -> str:
        """The key of the URL's concurrency limit: its scheme, host and port."""

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Starts the attempt.

        `done` is called exactly once, on the event loop, after this has returned, whatever happens. It is called within the
        time-out, which covers everything from resolving the name to the response's last byte, plus a bounded wait for a
        connection slot before it. A local shortage is reported as NotSent, with `sent_at` None.
        """

    async def close(self) -> None:
        """Closes idle connections; attempts in flight end as NoResponse("SHUTDOWN")."""
