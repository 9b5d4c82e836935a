"""Converts requests about service calls from the wire structs to the agent's."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from tocsin.service_calls.api.validation import PolicySent, Submission
from tocsin.web.http import agent_wire as wire
from tocsin.web.http.wire import RetryPolicy


def submission(sent: wire.SubmitServiceCall) -> Submission:
    """The submission in a request; not yet checked."""
    spec = sent.request_spec
    return Submission(
        name=sent.name,
        method=spec.method,
        url=spec.url,
        headers={} if spec.headers is UNSET or spec.headers is None else spec.headers,
        body=None if spec.body is UNSET else bytes(spec.body),
        due_at=None if sent.due_at is UNSET else sent.due_at,
        tags=() if sent.tags is UNSET else sent.tags,
        service_call_id=None if sent.service_call_id is UNSET else sent.service_call_id,
        idempotency_key=None if sent.idempotency_key is UNSET else sent.idempotency_key,
        delay=None if sent.delay is UNSET else sent.delay,
        retry=_policy(spec.retry_policy) if isinstance(spec.retry_policy, RetryPolicy) else None,
    )


def _policy(sent: RetryPolicy) -> PolicySent:
    given = msgspec.structs.asdict(sent).items()
    return PolicySent(**{name: value for name, value in given if value is not UNSET})
