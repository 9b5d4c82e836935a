"""The structs of HTTP requests and responses about service calls; `tocsin.web.http.wire` has those about timers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tocsin.model import hooks
from tocsin.model.explanation import WaitsFor
from tocsin.model.hooks import Event
from tocsin.service_calls.api.validation import PolicySent, Submission
from tocsin.service_calls.messages import CallStatus
from tocsin.web.http import constraints as limits
from tocsin.web.http.administration import RotationSent
from tocsin.web.http.constraints import AGENT_LIMITS
from tocsin.web.http.optional import present
from tocsin.web.http.wire import (
    CallHook,
    Cursor,
    HookAnswer,
    Instant,
    RequestStruct,
    ResponseStruct,
    RetryPolicy,
    RetryPolicyAnswer,
    about,
)


def _text(chars_max: int) -> limits.Constraint:
    # The agent's rules check it.
    return limits.Constraint(limits.text_schema(chars_max))


Uuid = Annotated[str, about("A UUID of version 7.", "01890a5d-ac96-774b-bcce-b302099a8058")]
CallName = Annotated[str, about("A display name.", "Charge order 17"), _text(AGENT_LIMITS.name_chars_max)]
RequestMethod = Annotated[
    str, about("The method of the request.", "POST"), limits.Constraint(limits.component("ServiceCallMethod"))
]
RequestUrl = Annotated[str, about("The http or https URL.", "https://pay.example/charges"), limits.CALL_URL]
RequestBody = Annotated[msgspec.Raw, about("Any JSON: a string is sent as plain text, any other value as JSON.")]
ShownHeaders = Annotated[dict[str, str], about("Headers; secret values are redacted.")]
Snippet = Annotated[str, about("The first part of the body.")]
CallTags = Annotated[list[str], about("Labels to filter lists by.", ["orders", "eu"]), limits.CALL_TAGS]
CorrelationId = Annotated[str, about("Shared by every message and row that results from the submission.")]
CallRetry = Annotated[
    RetryPolicy | None,
    about(
        "When a failed attempt is retried. Without a policy, or with null, there is a single attempt: a service "
        "may not tolerate repeated requests. Omitted members get their defaults when the call is submitted."
    ),
]
Attempts = Annotated[
    int, Meta(description="Finished attempts; an interrupted execution that was repeated does not count.", ge=0)
]
#: Who is notified of a call's end.
CALL_FAILED = about("Who is notified when it has failed.")
CALL_SUCCEEDED = about("Who is notified when it has succeeded.")
CallFlowKey = Annotated[
    str,
    about(
        "The flow that limits how many of its attempts begin and are in flight at once, together with timers, if a rule of "
        "the agent's namespace (`agent.flow_namespace`) matches it.",
        "vendor",
    ),
    limits.FLOW,
]
ShownFlowKey = Annotated[str, about("The flow that limits its attempts.", "vendor")]
CallWaitsFor = Annotated[
    WaitsFor,
    about(
        "What a Running call that has not started waits for: flow, a slot or a token of its flow; credential, that its "
        "credential can be sent."
    ),
]
CallCredential = Annotated[
    str,
    about(
        "The credential that the request has: one of the namespace that `agent.credentials_namespace` names, in which the "
        "client's key has to have the role write. It goes to no other origin than the credential's own.",
        "billing-api",
    ),
    limits.CREDENTIAL,
]
NextAttemptAt = Annotated[str, about("When the next attempt is due, while the status is Retrying.")]
LatencyMs = Annotated[float, about("From the dispatch of the request to the end of the response, in milliseconds.")]


class RequestSpec(RequestStruct):
    """The HTTP request to make."""

    method: RequestMethod
    url: RequestUrl
    headers: Annotated[dict[str, str] | None | UnsetType, about("The request's headers."), limits.CALL_HEADERS] = UNSET
    body: Annotated[
        msgspec.Raw | UnsetType,
        about(
            "Any JSON: a string is sent as plain text, any other value as JSON. At most "
            f"{AGENT_LIMITS.request_body_bytes_max} bytes. Not with GET and HEAD."
        ),
        limits.CALL_BODY,
    ] = UNSET
    retry_policy: CallRetry | UnsetType = UNSET
    credential: CallCredential | UnsetType = UNSET


class SubmitServiceCall(RequestStruct):
    """A service call to submit."""

    name: CallName
    request_spec: RequestSpec
    due_at: Annotated[
        str | UnsetType,
        about(
            "When to send the request: an RFC 3339 instant with a time zone. If it is in the past, or "
            "neither `dueAt` nor `delay` is given: now.",
            "2027-01-31T12:00:00Z",
        ),
        limits.INSTANT,
    ] = UNSET
    delay: Annotated[str | UnsetType, about("Delay from now, instead of `dueAt`.", "30s"), limits.DURATION] = UNSET
    tags: CallTags | UnsetType = UNSET
    service_call_id: Annotated[
        str | UnsetType,
        about("The call's id, a UUID of version 7. Without one, the server generates it."),
        limits.Constraint({"format": "uuid", **limits.UUID7.schema}),
    ] = UNSET
    idempotency_key: Annotated[
        str | UnsetType,
        about("Makes the submission safe to repeat. Equivalent to the header Idempotency-Key.", "order-17"),
        _text(AGENT_LIMITS.idempotency_key_chars_max),
    ] = UNSET
    flow_key: CallFlowKey | UnsetType = UNSET
    on_failure: Annotated[CallHook | UnsetType, CALL_FAILED] = UNSET
    on_success: Annotated[CallHook | UnsetType, CALL_SUCCEEDED] = UNSET

    @property
    def submission(self) -> Submission:
        """The agent's form of the request; not yet checked."""
        spec = self.request_spec
        return Submission(
            name=self.name,
            method=spec.method,
            url=spec.url,
            headers={} if spec.headers is UNSET or spec.headers is None else spec.headers,
            body=None if spec.body is UNSET else bytes(spec.body),
            due_at=None if self.due_at is UNSET else self.due_at,
            tags=() if self.tags is UNSET else self.tags,
            service_call_id=None if self.service_call_id is UNSET else self.service_call_id,
            idempotency_key=None if self.idempotency_key is UNSET else self.idempotency_key,
            delay=None if self.delay is UNSET else self.delay,
            retry=_given(spec.retry_policy) if isinstance(spec.retry_policy, RetryPolicy) else None,
            hooks={
                event: hooks.Hook(
                    hook.url,
                    None if hook.headers is UNSET else hook.headers,
                    "" if hook.credential is UNSET else hook.credential,
                )
                for event, hook in ((Event.FAILURE, self.on_failure), (Event.SUCCESS, self.on_success))
                if hook is not UNSET
            },
            flow_key=None if self.flow_key is UNSET else self.flow_key,
            credential=None if spec.credential is UNSET else spec.credential,
        )


def _given(policy: RetryPolicy) -> PolicySent:
    return PolicySent(**present(msgspec.structs.asdict(policy)))


class RotateTenantSecret(RotationSent, kw_only=True):
    """The rotation of the secret that signs a tenant's service calls."""

    tenant_id: Annotated[
        str, about("The tenant: a UUID of version 7.", "01890a5d-ac96-774b-bcce-b302099a8057"), limits.UUID7
    ]


class RotatedTenantSecret(ResponseStruct, kw_only=True):
    """The new secret. Only this response shows it."""

    tenant_id: Annotated[str, about("The tenant.")]
    secret: Annotated[str, about("The new secret, for the called services.")]
    previous_until: Annotated[
        str | UnsetType, about("Until when the previous secret keeps signing; absent if only the new one signs.")
    ] = UNSET


class SubmittedServiceCall(ResponseStruct):
    """An accepted service call: from this request, or from the earlier one that it repeats."""

    service_call_id: Uuid
    status: CallStatus
    correlation_id: CorrelationId


class ResponseMeta(ResponseStruct):
    """The service's response."""

    status: int
    headers: ShownHeaders
    body_snippet: Snippet
    truncated: Annotated[bool, about("Whether the body was longer than the snippet.")] = False
    latency_ms: LatencyMs = 0.0


class ErrorMeta(ResponseStruct):
    """Why the call failed."""

    kind: Annotated[str, about("A stable code.", "HTTP_STATUS", "TIMEOUT")]
    message: str
    latency_ms: LatencyMs = 0.0


class Outcome(ResponseStruct):
    """How the call ended or, while it is Retrying, how its last attempt ended: the response, if there was one, and the
    error, if it failed."""

    response_meta: ResponseMeta | UnsetType = UNSET
    error_meta: ErrorMeta | UnsetType = UNSET


class RequestLine(ResponseStruct):
    """The request's method and URL."""

    method: RequestMethod
    url: RequestUrl


class ShownRequest(ResponseStruct):
    """The request; secrets are redacted."""

    method: RequestMethod
    url: RequestUrl
    headers: ShownHeaders
    body: RequestBody | UnsetType = UNSET
    retry_policy: RetryPolicyAnswer | UnsetType = UNSET
    credential: Annotated[str | UnsetType, about("The credential that the request has.", "billing-api")] = UNSET


class ExecutedRequest(ResponseStruct):
    """The request that was sent."""

    method: RequestMethod
    url: RequestUrl
    headers: ShownHeaders
    body: Snippet | UnsetType = UNSET


class ExecutedResponse(ResponseStruct):
    """The response that was received."""

    status: int
    headers: ShownHeaders
    body: Snippet


class Execution(ResponseStruct):
    """One execution of the request. Without `finishedAt` it is in flight."""

    number: Annotated[int, Meta(description="Its number among the call's executions, from 1.", ge=1)]
    execution_id: Uuid
    started_at: Instant
    request: ExecutedRequest
    finished_at: Instant | UnsetType = UNSET
    response: ExecutedResponse | UnsetType = UNSET
    error_message: str | UnsetType = UNSET


class ServiceCallSummary(ResponseStruct):
    """A service call, as in lists."""

    service_call_id: Uuid
    tenant_id: Uuid
    name: CallName
    status: CallStatus
    submitted_at: Instant
    due_at: Instant
    tags: CallTags
    correlation_id: CorrelationId
    request_spec: RequestLine
    attempts: Attempts
    next_attempt_at: NextAttemptAt | UnsetType = UNSET
    started_at: Instant | UnsetType = UNSET
    finished_at: Instant | UnsetType = UNSET
    outcome: Outcome | UnsetType = UNSET
    flow_key: ShownFlowKey | UnsetType = UNSET
    waits_for: CallWaitsFor | UnsetType = UNSET


class ServiceCall(ResponseStruct):
    """A service call in full."""

    service_call_id: Uuid
    tenant_id: Uuid
    name: CallName
    status: CallStatus
    submitted_at: Instant
    due_at: Instant
    tags: CallTags
    correlation_id: CorrelationId
    request_spec: ShownRequest
    attempts: Attempts
    executions: list[Execution]
    next_attempt_at: NextAttemptAt | UnsetType = UNSET
    started_at: Instant | UnsetType = UNSET
    finished_at: Instant | UnsetType = UNSET
    outcome: Outcome | UnsetType = UNSET
    flow_key: ShownFlowKey | UnsetType = UNSET
    waits_for: CallWaitsFor | UnsetType = UNSET
    on_failure: Annotated[HookAnswer | UnsetType, CALL_FAILED] = UNSET
    on_success: Annotated[HookAnswer | UnsetType, CALL_SUCCEEDED] = UNSET


class ServiceCallPage(ResponseStruct):
    """A page of service calls, newest first. A page without `nextCursor` is the last."""

    service_calls: list[ServiceCallSummary]
    next_cursor: Cursor | UnsetType = UNSET


class TraceEntry(ResponseStruct):
    """One result of a submission: a message or a row."""

    at: Annotated[str, about("With millisecond precision; for a row, when it entered the state shown.")]
    kind: Annotated[str, about("message, or a table's name.", "message", "service_calls")]
    name: Annotated[str, about("The message's type, or the event.")]
    id: Annotated[str, about("The id of the message or row.")]
    detail: dict[str, Any]
    causation_id: Annotated[str | UnsetType, about("The message that caused this one.")] = UNSET


class ServiceCallTrace(ResponseStruct):
    """Everything stored under the correlation id of a service call, in order of time, each entry after its cause."""

    service_call_id: Uuid
    correlation_id: CorrelationId
    entries: list[TraceEntry]
