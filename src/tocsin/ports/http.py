"""The HTTP client port: send one request as it is, report what came back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tocsin.model.answer import NoResponse, NotSent
from tocsin.model.secrets import SigningSecrets


class Signing(NamedTuple):
    """As what a request is signed (Standard Webhooks), and with what. `message_id` is the same whenever it is made again."""

    message_id: str
    secrets: SigningSecrets


class Request(NamedTuple):
    """One request, sent once. `body` None sends none. `signing` None leaves it unsigned. `timeout_us` covers everything
    from resolving the name to the answer's last byte; a wait for a connection slot comes before that."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    timeout_us: int
    signing: Signing | None = None


class Reply(NamedTuple):
    """An answer: headers in their order, names as sent; `body` bounded, `truncated` when there was more."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    truncated: bool


class Result(NamedTuple):
    """What became of a request. `sent_at` is the wall clock, microseconds, when its first byte went out (None: it never
    did); `duration_us` is from `send` to the end of the answer."""

    outcome: Reply | NoResponse | NotSent
    sent_at: int | None
    duration_us: int


class Requester(Protocol):
    """Sends requests without a task per request."""

    def destination(self, url: str) -> str:
        """What concurrency is limited by: scheme, host and port of the URL."""

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        """Starts it. `done` is called exactly once, later than this returns, on the event loop, whatever happens: with
        NotSent, and `sent_at` None, when this machine's own shortages kept it from being sent. A
        request whose method is not idempotent (RFC 9110 section 9.2.2) is never sent twice."""
