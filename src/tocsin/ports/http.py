"""The HTTP client port: send one request unchanged, report the outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tocsin.model.answer import NoResponse, NotSent
from tocsin.model.secrets import SigningSecrets


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
