"""How a service call looks: its state in a word, its paths, what was answered."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tocsin.agent.api.ports import CallRecord, ExecutionRecord
from tocsin.agent.api.validation import CallStatus
from tocsin.model.instants import format_duration
from tocsin.model.redaction import redact_headers, redact_url
from tocsin.model.retry import RetryPolicy
from tocsin.ui.show import State, pretty_json

#: What stands for bytes that are no characters, and controls other than tabulators, ends of lines and pages, and escapes.
_NOT_TEXT = re.compile("[\ufffd\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
#: The tag that makes a call a favourite.
STAR = "star"

_WORDS = {
    CallStatus.RUNNING: State("running", "ringing"),
    CallStatus.SUCCEEDED: State("succeeded", "done"),
    CallStatus.FAILED: State("failed", "failed"),
}
_FINISHED = frozenset({CallStatus.SUCCEEDED, CallStatus.FAILED})


def state_of(call: CallRecord, now_us: int) -> State:
    """The state at this instant; a call that waits and whose time has come is due."""
    if call.status == CallStatus.SCHEDULED:
        return State("due", "ringing") if call.due_at <= now_us else State("scheduled", "pending")
    if call.status == CallStatus.RETRYING:
        due = call.next_attempt_at is not None and call.next_attempt_at <= now_us
        return State("due", "ringing") if due else State("retrying", "retrying")
    return _WORDS[CallStatus(call.status)]


def waits(call: CallRecord) -> bool:
    """Whether it waits for an instant, so that it may still be deleted."""
    return call.status in (CallStatus.SCHEDULED, CallStatus.RETRYING)


def awaited_at(call: CallRecord) -> int:
    """The instant that it waits for, or waited for last, as far as that is known."""
    return call.due_at if call.next_attempt_at is None else call.next_attempt_at


def attempt(call: CallRecord) -> int:
    """The number of the attempt that is under way, or was the last."""
    return call.attempts if finished(call) else call.attempts + 1


def policy_words(policy: RetryPolicy) -> str:
    """A retry policy in a sentence."""
    text = (
        f"up to {policy.max_attempts} attempts, the second after {format_duration(policy.initial_interval_us)}, each pause "
        f"{policy.backoff_multiplier:g} times the last, at most {format_duration(policy.max_interval_us)}"
    )
    total = policy.max_duration_us
    return text if total is None else f"{text}, none later than {format_duration(total)} after the first"


def finished(call: CallRecord) -> bool:
    """Whether nothing more happens to it."""
    return call.status in _FINISHED


def lag_us(call: CallRecord) -> int | None:
    """From when it could begin at the earliest until it did; None while it hasn't, and for a repetition."""
    if call.started_at is None or call.attempts > 1 or (call.attempts == 1 and not finished(call)):
        # Of a later attempt: its due time is in the messages alone.
        return None
    return max(call.started_at - max(call.due_at, call.submitted_at), 0)


def took_us(call: CallRecord) -> int | None:
    """From its beginning to its end."""
    if call.started_at is None or call.finished_at is None:
        return None
    return max(call.finished_at - call.started_at, 0)


def version(call: CallRecord, executions: Sequence[ExecutionRecord] = ()) -> str:
    """Changes whenever the call does, or one of its executions."""
    ended = sum(execution.finished_at is not None for execution in executions)
    tags = zlib.crc32("\0".join(call.tags).encode(errors="surrogatepass"))
    moments = f"{call.started_at or 0:x}.{call.finished_at or 0:x}"
    return f"{call.status[:3]}{call.attempts}.{moments}.{tags:x}.{len(executions)}.{ended}"


def path(tenant_id: str, service_call_id: str) -> str:
    """The path of a call's page."""
    return f"/calls/{quote(tenant_id, safe='')}/{quote(service_call_id, safe='')}"


def list_path(tenant_id: str, **query: str) -> str:
    """The path of a tenant's list."""
    return f"/calls?{urlencode({'tenant': tenant_id, **query})}"


def short(identifier: str) -> str:
    """The end of an id: ids of one moment begin alike."""
    return f"…{identifier[-8:]}"


def target(call: CallRecord) -> tuple[str, str]:
    """Host and the rest of the URL that is called, without its secrets."""
    url = redact_url(call.request_spec.url)
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, ""
    rest = parts.path + (f"?{parts.query}" if parts.query else "")
    return parts.netloc, rest if rest != "/" else ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, and what went wrong: either, or both. `status` is None without an answer."""

    status: int | None
    headers: Mapping[str, str]
    body: str
    truncated: bool
    latency_ms: float
    error_kind: str
    error: str

    @property
    def good(self) -> bool:
        """Whether it is what was wanted."""
        return not self.error_kind

    @property
    def binary(self) -> bool:
        """Whether the body is no text: it has bytes that are none, or control characters that text does not have."""
        return _NOT_TEXT.search(self.body) is not None

    @property
    def readable(self) -> str:
        """The body, with line breaks where it is JSON."""
        text = self.body.strip()
        return pretty_json(text.encode(errors="replace")) if text[:1] in ("{", "[") else self.body


def answer_of(call: CallRecord) -> Answer | None:
    """How the call ended, as far as it has."""
    outcome: Mapping[str, Any] | None = call.outcome
    if outcome is None:
        return None
    response = outcome.get("responseMeta") or {}
    error = outcome.get("errorMeta") or {}
    return Answer(
        status=response.get("status"),
        headers=redact_headers(response.get("headers") or {}),
        body=response.get("bodySnippet") or "",
        truncated=bool(response.get("truncated")),
        latency_ms=float(response.get("latencyMs") or error.get("latencyMs") or 0.0),
        error_kind=error.get("kind") or "",
        error=error.get("message") or "",
    )


def redacted(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers without their secrets."""
    return redact_headers(headers or {})
