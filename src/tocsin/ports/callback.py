"""The callback port: ring a timer's receiver, report what came back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from tocsin.model.answer import Outcome
from tocsin.model.raw_body import RawBody


class Invocation(NamedTuple):
    """One attempt to be made. `message_id` is the same for all attempts of one firing. It is signed with each of `secrets`;
    without any it is not. A `body` is sent as it is, and the envelope in headers; without one, the envelope with the
    `payload` is the body."""

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
    """What became of an attempt. `sent_at` is the wall clock when the request's first byte went out (None: it never did);
    `duration_us` is from the call of `ring` to the end of the answer."""

    outcome: Outcome
    sent_at: int | None
    duration_us: int


class Caller(Protocol):
    """Makes HTTP calls without a task per call: `ring` returns at once and reports through `done`."""

    def destination(self, url: str) -> str:
        """What concurrency is limited by: scheme, host and port of the URL."""

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Starts the attempt. `done` is called exactly once, later than this returns, on the event loop, whatever
        happens, within the timeout (which covers everything from resolving the name to the answer's last byte) and a
        bounded wait for a connection slot before that. NotSent, with `sent_at` None, is what this machine's own shortages
        come to."""

    async def close(self) -> None:
        """Ends idle connections, and attempts under way as NoResponse("SHUTDOWN")."""
