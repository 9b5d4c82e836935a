"""Notifications of the ends of service calls: each is a service call itself, submitted in the transaction that ends what it
reports, so that it is made at least once if that end is durable. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from tocsin.model.hooks import Event, hook_for
from tocsin.model.instants import format_instant
from tocsin.model.redaction import redact_url
from tocsin.model.retry import DEFAULT_POLICY
from tocsin.service_calls.messages import CallStatus, RequestSpec, RetrySpec, SubmitServiceCall
from tocsin.service_calls.ports import ServiceCall

#: The tag of notifications, to filter lists by.
TAG = "notification"
_EVENTS = {CallStatus.FAILED: Event.FAILURE, CallStatus.SUCCEEDED: Event.SUCCESS}

_encode = msgspec.json.Encoder().encode


def notification(call: ServiceCall, new_id: str, now_us: int) -> SubmitServiceCall | None:
    """What submits the notification of a call's end, under an id that nothing else has; None if the call goes on, or no hook
    asks for it. Notifications have no hooks."""
    event = _EVENTS.get(call.status)
    hook = None if event is None else hook_for(event, call.hooks, None)
    if hook is None:
        return None
    content = msgspec.Raw(_encode(_content(call, now_us)))
    return SubmitServiceCall(
        service_call_id=new_id,
        name=call.name,
        request_spec=RequestSpec("POST", hook.url, hook.headers or {}, content, hook.credential or None),
        # No client submits it, so none repeats it.
        fingerprint=TAG,
        tags=(TAG,),
        retry_policy=RetrySpec.of(DEFAULT_POLICY),
        traceparent=call.traceparent,
    )


def _content(call: ServiceCall, now_us: int) -> dict[str, Any]:
    failed = call.status is CallStatus.FAILED
    attempts = f"{call.attempts} attempt{'' if call.attempts == 1 else 's'}"
    error = call.outcome.error_meta if call.outcome is not None else None
    reason = "." if error is None else f": {error.message}"
    return {
        "type": f"serviceCall.{'failed' if failed else 'succeeded'}",
        "timestamp": format_instant(now_us),
        "text": f"Service call {call.name!r} {'failed' if failed else 'succeeded'} after {attempts}{reason}",
        "serviceCall": {
            "tenantId": call.tenant_id,
            "serviceCallId": call.service_call_id,
            "correlationId": call.correlation_id,
            "name": call.name,
            "status": call.status,
            "requestSpec": {"method": call.request_spec.method, "url": redact_url(call.request_spec.url)},
            "attempts": call.attempts,
            "submittedAt": format_instant(call.submitted_at),
            "dueAt": format_instant(call.due_at),
        }
        | ({} if call.started_at is None else {"startedAt": format_instant(call.started_at)})
        | ({} if call.finished_at is None else {"finishedAt": format_instant(call.finished_at)})
        | ({} if call.outcome is None else {"outcome": call.outcome}),
    }
