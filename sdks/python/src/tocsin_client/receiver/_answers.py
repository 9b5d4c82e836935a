"""What a handler can answer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin_client._error_bases import InvalidArgument
from tocsin_client._values import UNSET, Duration, Instant, JsonValue, Unset, encode, instant_text, seconds_of

#: As much of a response as the server shows; longer reasons would only make responses of batches long.
_REASON_CHARS_MAX = 200


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

    @property
    def is_done(self) -> bool:
        """Whether the work is done, so that it is not to be done again for the same firing. After `fail` it may be: a replay
        of the timer has the webhook-id of the run that failed."""
        return self.status < 400

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


def reschedule_at(instant: Instant, payload: JsonValue | Unset = UNSET) -> Answer:
    """The work is done for now: the timer fires again at the instant, with the payload if one is given. InvalidArgument: the
    instant has no time zone, or the payload can't be written as JSON."""
    answer: dict[str, JsonValue] = {"nextExecuteAt": instant_text("instant", instant)}
    if not isinstance(payload, Unset):
        answer["payload"] = payload
    return _json(200, answer)


def retry(after: Duration | None = None) -> Answer:
    """The work could not be done: the timer's policy retries it, no earlier than `after`, given in seconds, as a
    timedelta, or as a text such as 30s."""
    if after is None:
        return Answer(503)
    seconds = seconds_of("after", after)
    if not 0 <= seconds < math.inf:
        raise InvalidArgument(f"after: {after!r} is not a time to wait; give seconds, or leave it out")
    return Answer(503, {"retry-after": str(math.ceil(seconds))})


def fail(reason: str) -> Answer:
    """The work can't be done: the timer fails, without another attempt, until it is replayed. 200 characters of the reason
    are sent."""
    if len(reason) > _REASON_CHARS_MAX:
        reason = reason[: _REASON_CHARS_MAX - 1] + "…"
    return _json(422, {"ok": False, "reason": reason})


def _json(status: int, body: JsonValue) -> Answer:
    return Answer(status, {"content-type": "application/json"}, encode(body))
