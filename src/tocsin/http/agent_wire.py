"""What travels over HTTP about service calls, as `tocsin.http.wire` has it for timers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tocsin.agent.api.validation import CallStatus
from tocsin.http.wire import (
    AnswerStruct,
    Cursor,
    Duration,
    Instant,
    RequestStruct,
    RetryPolicy,
    RetryPolicyAnswer,
    Rotation,
)

Uuid = Annotated[str, Meta(description="A UUID of version 7.", examples=["01890a5d-ac96-774b-bcce-b302099a8058"])]
CallName = Annotated[str, Meta(description="What people call it.", examples=["Charge order 17"])]
RequestMethod = Annotated[str, Meta(description="The method of the request.", examples=["POST"])]
RequestUrl = Annotated[str, Meta(description="The http or https URL.", examples=["https://pay.example/charges"])]
RequestBody = Annotated[msgspec.Raw, Meta(description="Any JSON: a string is sent as its text, anything else as JSON.")]
ShownHeaders = Annotated[dict[str, str], Meta(description="Headers; the values of secret ones are not shown.")]
Snippet = Annotated[str, Meta(description="The beginning of the body.")]
CallTags = Annotated[list[str], Meta(description="Labels to list by.", examples=[["orders", "eu"]])]
CorrelationId = Annotated[str, Meta(description="The same in every message and row that the submission led to.")]
CallRetry = Annotated[
    RetryPolicy | None,
    Meta(
        description="Whether and when a failed attempt is made again. Without one, or with null, there is a single attempt: "
        "services may not bear a repetition. Members left out get their defaults when the call is submitted."
    ),
]
Attempts = Annotated[
    int,
    Meta(description="Attempts that have ended; an interrupted execution that was simply made again is none.", ge=0),
]
NextAttemptAt = Annotated[str, Meta(description="While Retrying: when the next attempt is due.")]
LatencyMs = Annotated[float, Meta(description="From the order to send until the end, in milliseconds.")]


class RequestSpec(RequestStruct):
    """The HTTP request to make."""

    method: RequestMethod
    url: RequestUrl
    headers: Annotated[dict[str, str] | None, Meta(description="Its headers.")] | UnsetType = UNSET
    body: RequestBody | UnsetType = UNSET
    retry_policy: CallRetry | UnsetType = UNSET


class SubmitServiceCall(RequestStruct):
    """A service call to be made."""

    name: CallName
    request_spec: RequestSpec
    due_at: (
        Annotated[
            str,
            Meta(
                description="An RFC 3339 instant with a time zone. Past, or absent without `delay`: now.",
                examples=["2027-01-31T12:00:00Z"],
            ),
        ]
        | UnsetType
    ) = UNSET
    delay: Annotated[Duration, Meta(description="From now, instead of `dueAt`.")] | UnsetType = UNSET
    tags: CallTags | UnsetType = UNSET
    service_call_id: Annotated[str, Meta(description="Its id, a UUID of version 7. Absent: made here.")] | UnsetType = (
        UNSET
    )
    idempotency_key: (
        Annotated[str, Meta(description="Names this wish, so that it may be sent again.", examples=["order-17"])]
        | UnsetType
    ) = UNSET


class RotateTenantSecret(Rotation, kw_only=True):
    """The secret to be replaced with which a tenant's service calls are signed."""

    tenant_id: Annotated[
        str,
        Meta(description="The tenant: a UUID of version 7.", examples=["01890a5d-ac96-774b-bcce-b302099a8057"]),
    ]


class RotatedTenantSecret(AnswerStruct, kw_only=True):
    """The new secret, which is shown in this answer alone."""

    tenant_id: Annotated[str, Meta(description="The tenant.")]
    secret: Annotated[str, Meta(description="The new secret, for the services that are called.")]
    previous_until: (
        Annotated[str, Meta(description="Until when what it replaced signs, too; absent: only the new one signs.")]
        | UnsetType
    ) = UNSET


class SubmittedServiceCall(AnswerStruct):
    """A service call was accepted, now or when it was first sent."""

    service_call_id: Uuid
    status: CallStatus
    correlation_id: CorrelationId


class ResponseMeta(AnswerStruct):
    """What the service answered."""

    status: int
    headers: ShownHeaders
    body_snippet: Snippet
    truncated: Annotated[bool, Meta(description="The body was longer.")] = False
    latency_ms: LatencyMs = 0.0


class ErrorMeta(AnswerStruct):
    """Why the call failed."""

    kind: Annotated[str, Meta(description="A stable word.", examples=["HTTP_STATUS", "TIMEOUT"])]
    message: str
    latency_ms: LatencyMs = 0.0


class Outcome(AnswerStruct):
    """How a call ended, or while it is Retrying, its last attempt: what was answered, if anything, and why it failed, if
    it did."""

    response_meta: ResponseMeta | UnsetType = UNSET
    error_meta: ErrorMeta | UnsetType = UNSET


class RequestLine(AnswerStruct):
    """The request in short."""

    method: RequestMethod
    url: RequestUrl


class ShownRequest(AnswerStruct):
    """The request, without its secrets."""

    method: RequestMethod
    url: RequestUrl
    headers: ShownHeaders
    body: RequestBody | UnsetType = UNSET
    retry_policy: RetryPolicyAnswer | UnsetType = UNSET


class ExecutedRequest(AnswerStruct):
    """The request that was made."""

    method: RequestMethod
    url: RequestUrl
    headers: ShownHeaders
    body: Snippet | UnsetType = UNSET


class ExecutedResponse(AnswerStruct):
    """What was answered."""

    status: int
    headers: ShownHeaders
    body: Snippet


class Execution(AnswerStruct):
    """One making of the request. Without `finishedAt` it is under way."""

    number: Annotated[int, Meta(description="Its place among the call's executions.", ge=1)]
    execution_id: Uuid
    started_at: Instant
    request: ExecutedRequest
    finished_at: Instant | UnsetType = UNSET
    response: ExecutedResponse | UnsetType = UNSET
    error_message: str | UnsetType = UNSET


class ServiceCallSummary(AnswerStruct):
    """A service call as lists show it."""

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


class ServiceCall(AnswerStruct):
    """A service call with all that is known of it."""

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


class ServiceCallPage(AnswerStruct):
    """A page of service calls, the newest first. Without `nextCursor` it is the last."""

    service_calls: list[ServiceCallSummary]
    next_cursor: Cursor | UnsetType = UNSET


class TraceEntry(AnswerStruct):
    """One thing that a request led to."""

    at: Annotated[str, Meta(description="To the millisecond; of a row, when it came into the state that it shows.")]
    kind: Annotated[str, Meta(description="message, or the name of a table.", examples=["message", "service_calls"])]
    name: Annotated[str, Meta(description="The message's type, or what happened.")]
    id: Annotated[str, Meta(description="The message's id, or the row's.")]
    detail: dict[str, Any]
    causation_id: Annotated[str, Meta(description="The message that caused this one.")] | UnsetType = UNSET


class ServiceCallTrace(AnswerStruct):
    """All that is kept under the correlation id of a service call, in the order of time, nothing before what caused it."""

    service_call_id: Uuid
    correlation_id: CorrelationId
    entries: list[TraceEntry]
