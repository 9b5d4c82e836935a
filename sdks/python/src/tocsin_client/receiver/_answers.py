"""What a handler can answer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tocsin_client._core.session import encode
from tocsin_client._values import UNSET, JsonValue, Unset, format_instant


@dataclass(frozen=True)
class Answer:
    """The HTTP response that a callback gets. Make one with `done`, `reschedule_at`, `retry` or `fail`."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def retries(self) -> bool:
        """Whether the server calls again for the same firing."""
        return self.status == 503

    def to_text(self) -> str:
        """For storing."""
        return json.dumps({"status": self.status, "headers": dict(self.headers), "body": self.body.decode()})

    @classmethod
    def from_text(cls, text: str) -> Answer:
        """As it was stored."""
        stored = json.loads(text)
        return cls(stored["status"], stored["headers"], stored["body"].encode())


def done() -> Answer:
    """The work is done: the timer is completed."""
    return _json(200, {"ok": True})


def reschedule_at(instant: datetime, payload: JsonValue | Unset = UNSET) -> Answer:
    """The work is done for now: the timer fires again at the instant, with the payload if one is given. ValueError: the
    instant has no time zone."""
    answer: dict[str, JsonValue] = {"nextExecuteAt": format_instant(instant)}
    if not isinstance(payload, Unset):
        answer["payload"] = payload
    return _json(200, answer)


def retry(after: timedelta | float | None = None) -> Answer:
    """The work could not be done: the timer's policy retries it, no earlier than after so many seconds."""
    if after is None:
        return Answer(503)
    seconds = after.total_seconds() if isinstance(after, timedelta) else after
    if seconds < 0:
        raise ValueError(f"after: {after!r} is negative; give the seconds to wait, or leave it out")
    return Answer(503, {"retry-after": str(math.ceil(seconds))})


def fail(reason: str) -> Answer:
    """The work can never be done: the timer fails, without another attempt."""
    return _json(422, {"ok": False, "reason": reason})


def _json(status: int, body: JsonValue) -> Answer:
    return Answer(status, {"content-type": "application/json"}, encode(body))
