"""The callback port: invoke a timer's receiver, report the outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from tocsin.model.answer import Outcome
from tocsin.model.raw_body import RawBody


class Invocation(NamedTuple):
    """One attempt to make. `message_id` is the same for all attempts of one firing. The request is signed with each of
    `secrets`; unsigned without any. A `body` is sent unchanged, with the envelope in headers; without one, the envelope with
    the `payload` is the body."""

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


class Exchange(NamedTuple):
    """The outcome of an attempt. `sent_at` is the wall clock when the request's first byte was sent; None if none was.
    `duration_us` is the time from the call of `invoke` to the end of the response."""

    outcome: Outcome
    sent_at: int | None
    duration_us: int


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
