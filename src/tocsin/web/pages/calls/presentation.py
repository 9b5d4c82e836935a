"""Presentation of service calls: their states, paths and results."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from tocsin.model.redaction import redact_headers
from tocsin.model.retry import RetryPolicy
from tocsin.model.visible import visible
from tocsin.service_calls.messages import CallStatus
from tocsin.service_calls.ports import CallRecord, ExecutionRecord
from tocsin.web.pages.presentation import WHITESPACE, State, pretty_json, whole_span

#: The replacement for invalid bytes, and control characters that text does not contain (tab, line ends, form feed and escape
#: are text).
_NOT_TEXT = re.compile("[\ufffd\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
#: The tag that makes a call a favourite.
STAR = "star"

_WORDS = {
    CallStatus.RUNNING: State("running", "firing"),
    CallStatus.SUCCEEDED: State("succeeded", "done"),
    CallStatus.FAILED: State("failed", "failed"),
}
_FINISHED = frozenset({CallStatus.SUCCEEDED, CallStatus.FAILED})


def state_of(call: CallRecord, now_us: int) -> State:
    """The state of a call at an instant. A waiting call whose time has come is shown as due."""
    if call.status == CallStatus.SCHEDULED:
        return State("due", "due") if call.due_at <= now_us else State("scheduled", "pending")
    if call.status == CallStatus.RETRYING:
        due = call.next_attempt_at is not None and call.next_attempt_at <= now_us
        return State("due", "due") if due else State("retrying", "retrying")
    return _WORDS[CallStatus(call.status)]


def waits(call: CallRecord) -> bool:
    """Whether the call waits for its due time or for a retry, so that it can be deleted."""
    return call.status in (CallStatus.SCHEDULED, CallStatus.RETRYING)


def awaited_at(call: CallRecord) -> int:
    """The instant that the call waits for, or the last known one that it waited for."""
    return call.due_at if call.next_attempt_at is None else call.next_attempt_at


def attempt(call: CallRecord) -> int:
    """The number of the current or last attempt."""
    return call.attempts if finished(call) else call.attempts + 1


def policy_words(policy: RetryPolicy) -> str:
    """A retry policy as a phrase."""
    text = (
        f"up to {policy.max_attempts} attempts; first retry after {whole_span(policy.initial_interval_us)}, each delay "
        f"{policy.backoff_multiplier:g} times the previous, at most {whole_span(policy.max_interval_us)}"
    )
    total = policy.max_duration_us
    return text if total is None else f"{text}, none later than {whole_span(total)} after the first"


def finished(call: CallRecord) -> bool:
    """Whether the call has ended."""
    return call.status in _FINISHED


def lag_us(call: CallRecord) -> int | None:
    """The time from the earliest possible start to the start; None if the call has not started, and for retries."""
    if call.started_at is None or call.attempts > 1 or (call.attempts == 1 and not finished(call)):
        # The due time of a retry is recorded in the messages only.
        return None
    return max(call.started_at - max(call.due_at, call.submitted_at), 0)


def took_us(call: CallRecord) -> int | None:
    """The time from the start to the end; None unless both are known."""
    if call.started_at is None or call.finished_at is None:
        return None
    return max(call.finished_at - call.started_at, 0)


def version(call: CallRecord, executions: Sequence[ExecutionRecord] = ()) -> str:
    """A version that changes whenever the call or one of its executions does."""
    ended = sum(execution.finished_at is not None for execution in executions)
    tags = zlib.crc32("\0".join(call.tags).encode(errors="surrogatepass"))
    moments = f"{call.started_at or 0:x}.{call.finished_at or 0:x}"
    return f"{call.status[:3]}{call.attempts}.{moments}.{tags:x}.{len(executions)}.{ended}"


def key_of(call: CallRecord) -> str:
    """What names the call in a list of several tenants."""
    return f"{call.tenant_id}/{call.service_call_id}"


def path(tenant_id: str, service_call_id: str) -> str:
    """The path of a call's page."""
    return f"/calls/{quote(tenant_id, safe='')}/{quote(service_call_id, safe='')}"


def list_path(tenant_id: str, **query: str) -> str:
    """The path of a tenant's list."""
    return f"/calls?{urlencode({'tenant': tenant_id, **query})}"


def short(identifier: str) -> str:
    """The end of an id, because ids created at the same time have the same beginning."""
    return f"…{identifier[-8:]}"


@dataclass(frozen=True, slots=True)
class CallResult:
    """The response to a call, its error, or both. `status` is None without a response."""

    status: int | None
    headers: Mapping[str, str]
    body: str
    truncated: bool
    latency_ms: float
    error_kind: str
    error: str

    @property
    def succeeded(self) -> bool:
        """Whether the call succeeded."""
        return not self.error_kind

    @property
    def binary(self) -> bool:
        """Whether the body is not text: it has invalid bytes, or control characters that text does not contain."""
        return _NOT_TEXT.search(self.body) is not None

    @property
    def readable(self) -> str:
        """The body, indented if it is JSON, with invisible characters as escapes."""
        text = self.body.strip()
        return (
            pretty_json(text.encode(errors="replace"))
            if text[:1] in ("{", "[")
            else visible(self.body, keep=WHITESPACE)
        )


def result_of(call: CallRecord) -> CallResult | None:
    """The result of the latest attempt; None if none has ended."""
    outcome: Mapping[str, Any] | None = call.outcome
    if outcome is None:
        return None
    response = outcome.get("responseMeta") or {}
    error = outcome.get("errorMeta") or {}
    return CallResult(
        status=response.get("status"),
        headers=redact_headers(response.get("headers") or {}),
        body=response.get("bodySnippet") or "",
        truncated=bool(response.get("truncated")),
        latency_ms=float(response.get("latencyMs") or error.get("latencyMs") or 0.0),
        error_kind=error.get("kind") or "",
        error=error.get("message") or "",
    )


def redacted(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers with secrets redacted."""
    return redact_headers(headers or {})
