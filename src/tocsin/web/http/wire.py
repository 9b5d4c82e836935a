"""The structs of HTTP requests and responses, in camelCase.

The decoder checks types. A request's other constraints are checked afterwards, so that one response can name all bad fields
(`tocsin.web.http.constraints`). UNSET means that a field is absent.
"""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tocsin.model.condition import OnConflict
from tocsin.model.explanation import TimerState, WaitsFor
from tocsin.model.run import RunStatus
from tocsin.model.timer import Status
from tocsin.web.http import constraints as limits


def about(description: str, *examples: object) -> Meta:
    """Describes a field in the OpenAPI document."""
    return Meta(description=description, examples=list(examples) or None)


def page_of(rows: str) -> Meta:
    """Describes the field `limit` of a list of these."""
    return about(f"Maximum number of {rows} on the page. Default {limits.ROWS_DEFAULT}.")


Instant = Annotated[str, about("An RFC 3339 instant with a time zone.", "2027-01-31T12:00:00Z"), limits.INSTANT]
ExecuteAt = Annotated[str, about("An RFC 3339 instant with a time zone.", "2027-01-31T12:00:00Z"), limits.EXECUTE_AT]
Delay = Annotated[str, about("A duration: 500ms, 30s, 5m, 1h30m, 7d.", "30s"), limits.AHEAD]
NamespaceName = Annotated[str, about("The namespace's name.", "default"), limits.NAME]
ListedNamespace = Annotated[
    str, about("The namespace's name; `*`: all that the API key has access to.", "default"), limits.NAME_OR_EVERY
]
JobId = Annotated[str, about("The job's id.", "5f2b8c1d9e3a7f6045c2d1ab"), limits.text(64)]
TimerId = Annotated[str, about("The timer's id, unique in its namespace.", "order-17-reminder"), limits.ID]
NewTimerId = Annotated[TimerId, limits.NEW_ID]
#: The id's alias: `id` and `timerId` mean the same in every request. The OpenAPI document describes one of them.
OtherName = Annotated[str, about("Alias of the timer's id."), limits.ID]
NewOtherName = Annotated[OtherName, limits.NEW_ID]
CallbackUrl = Annotated[
    str,
    about(
        "The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.",
        "https://shop.example/hooks/reminder",
    ),
    limits.CALLBACK_URL,
]
Method = Annotated[str, about("The HTTP method of the callback.", "POST"), limits.METHOD]
Payload = Annotated[
    msgspec.Raw,
    about(
        f"Any JSON, delivered exactly as sent; at most {limits.LIMITS.payload_bytes_max} bytes, and "
        f"{limits.LIMITS.payload_depth_max} levels of nested arrays and objects. With GET and HEAD, which send none, "
        "only null."
    ),
    limits.PAYLOAD,
]
Headers = Annotated[
    dict[str, str] | None,
    about("Additional headers of the callback. The value [redacted] keeps the timer's stored value."),
    limits.HEADERS,
]
Tags = Annotated[list[str], about("Labels to filter lists by.", ["orders", "eu"]), limits.TAGS]
TimeoutSeconds = Annotated[float, about("Timeout of one attempt, in seconds.", 10)]
CallbackTimeout = Annotated[float, about("Timeout of one attempt, in seconds. Default 10.", 10), limits.TIMEOUT]
ExpireAfter = Annotated[
    str,
    about(
        "No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired "
        "then, any other as failed.",
        "15m",
    ),
    limits.AHEAD,
]
#: Characters of a description: a line of a list.
DESCRIPTION_CHARS_MAX = 200
Description = Annotated[
    str | None,
    about("What it is for, in one line; shown in lists and never sent to the callback.", "Reminds of the invoice"),
    limits.new_text(DESCRIPTION_CHARS_MAX),
]
FlowKey = Annotated[
    str | None,
    about(
        "The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace matches "
        "it.",
        "customer:17",
    ),
    limits.FLOW,
]
CredentialNamed = Annotated[
    str | None,
    about(
        "The namespace's credential that its requests have; it goes to no other origin than the credential's own.",
        "billing-api",
    ),
    limits.CREDENTIAL,
]
Cursor = Annotated[str, about("`nextCursor` of the previous page."), limits.CURSOR]


class RequestStruct(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """Base of requests: unknown fields are refused."""


class ResponseStruct(msgspec.Struct, rename="camel", gc=False):
    """Base of responses."""


class RetryPolicy(RequestStruct):
    """How often and for how long failed attempts are retried. The delay grows from `initialInterval` by `backoffMultiplier`
    up to `maxInterval`."""

    max_attempts: Annotated[
        int | UnsetType, about("Maximum number of attempts, including the first. Default 10."), limits.ATTEMPTS
    ] = UNSET
    max_attempts_duration: Annotated[
        str | None | UnsetType, about("No attempt starts later than this after the first.", "24h"), limits.INTERVAL
    ] = UNSET
    initial_interval: Annotated[
        str | UnsetType,
        about("Delay before the second attempt. Default 5s, or maxInterval if shorter.", "5s"),
        limits.INTERVAL,
    ] = UNSET
    backoff_multiplier: Annotated[
        float | UnsetType, about("Factor by which each delay grows. Default 3.", 3), limits.MULTIPLIER
    ] = UNSET
    max_interval: Annotated[
        str | UnsetType, about("Maximum delay. Default 4h, or initialInterval if longer.", "4h"), limits.INTERVAL
    ] = UNSET


Retry = Annotated[RetryPolicy | None, about("Without one, each attempt uses the namespace's current policy.")]


class RawBody(RequestStruct):
    """A callback body that is sent, and signed, exactly as given; send one of `json`, `text` and `base64`. The fields that
    otherwise surround the payload are sent as headers: `tocsin-namespace`, `tocsin-timer-id` (percent-encoded),
    `tocsin-execute-at`, `tocsin-fired-at`, `tocsin-attempt`."""

    json: Annotated[
        msgspec.Raw | UnsetType,
        about(f"Any JSON, sent byte for byte as written; at most {limits.LIMITS.payload_bytes_max} bytes."),
    ] = UNSET
    text: Annotated[str | UnsetType, about("Text, sent in UTF-8."), limits.BODY_TEXT] = UNSET
    base64: Annotated[str | UnsetType, about("Bytes, in base64 with padding."), limits.BODY_BASE64] = UNSET
    content_type: Annotated[
        str | UnsetType,
        about(
            "The body's media type. Default: application/json, text/plain; charset=utf-8 or application/octet-stream."
        ),
        limits.CONTENT_TYPE,
    ] = UNSET


Body = Annotated[RawBody, about("The whole body of the callback, instead of the envelope with the payload.")]


class CallHook(RequestStruct):
    """Where a notification of a service call is sent, signed like a callback."""

    url: Annotated[
        str,
        about("The http or https URL, or `nats://subject`, to notify.", "https://shop.example/hooks/alerts"),
        limits.CALLBACK_URL,
    ]
    headers: Annotated[
        dict[str, str] | UnsetType,
        about("Additional headers of the notification. The value [redacted] keeps the stored value."),
        limits.HEADERS,
    ] = UNSET
    credential: Annotated[
        str | UnsetType,
        about(
            "The credential that the notification has: of the namespace; for service calls, of that which "
            "`agent.credentials_namespace` names.",
            "alerts-api",
        ),
        limits.CREDENTIAL,
    ] = UNSET


class Hook(CallHook):
    """Where a notification is sent, signed like a callback."""


class HookAnswer(ResponseStruct):
    """Where notifications are sent."""

    url: Annotated[str, about("The URL; its secrets are [redacted].", "https://shop.example/hooks/alerts")]
    headers: Annotated[dict[str, str] | UnsetType, about("Additional headers; secret values are [redacted].")] = UNSET
    credential: Annotated[str | UnsetType, about("The credential that the notification has.", "alerts-api")] = UNSET


#: What hooks are for.
ON_FAILURE = about("Who is notified when it has failed, or expired.")
ON_SUCCESS = about("Who is notified when it has succeeded.")
ON_RECOVERY = about(
    "Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay."
)
ON_MISSED = about("Who is notified when instants did not fire, though the schedule was not paused.")
ON_PAUSED = about("Who is notified when the schedule has paused itself after failures in a row.")

#: Whether null clears a field: None where it does, and UnsetType where null is refused.
Null = TypeVar("Null", UnsetType, None)


class CallbackFields(RequestStruct, Generic[Null], kw_only=True):
    """What is sent to a callback, and how: the fields that creating and updating share, of timers and of schedules."""

    payload: Payload | UnsetType = UNSET
    body: Body | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    headers: Headers | UnsetType = UNSET
    retry_policy: Retry | UnsetType = UNSET
    callback_timeout_seconds: CallbackTimeout | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    expire_after: ExpireAfter | Null | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    flow_key: FlowKey | UnsetType = UNSET
    credential: CredentialNamed | UnsetType = UNSET
    on_failure: Annotated[Hook | Null | UnsetType, ON_FAILURE] = UNSET
    on_success: Annotated[Hook | Null | UnsetType, ON_SUCCESS] = UNSET
    on_recovery: Annotated[Hook | Null | UnsetType, ON_RECOVERY] = UNSET


class CreateTimer(CallbackFields[UnsetType]):
    """A timer to create; send exactly one of `executeAt` and `delay`, and at most one of `payload` and `body`. `maxDelay` and
    `collect` belong to `onConflict: debounce`, which takes `delay` only."""

    namespace: NamespaceName
    callback_url: CallbackUrl
    id: NewTimerId | UnsetType = UNSET
    execute_at: ExecuteAt | UnsetType = UNSET
    delay: Delay | UnsetType = UNSET
    on_conflict: Annotated[
        OnConflict | UnsetType,
        about(
            "What to do if a timer with this id exists, pending or finished and retained: replace it (the "
            "default), keep it and return it, or reject the request; or debounce: fire once for all creates that follow one "
            "another, delay after the latest."
        ),
    ] = UNSET
    max_delay: Annotated[
        str | UnsetType,
        about(
            "With onConflict debounce, required: the timer fires at the latest this long after the first create for "
            "which it stands. Of different values, each is kept.",
            "1m",
        ),
        limits.AHEAD,
    ] = UNSET
    collect: Annotated[
        int | UnsetType,
        about(
            "With onConflict debounce: the callback's payload is an array of the payloads of all creates for which it "
            "stands, at most this many, and 100 KiB. Without it, the payload is that of the latest create."
        ),
        limits.COLLECT,
    ] = UNSET
    idempotency_key: Annotated[
        str | UnsetType,
        about(
            "Makes the create safe to repeat: a timer with this id that was created with the same key is "
            "returned unchanged, even after it has finished. Equivalent to the header Idempotency-Key.",
            "8e03978e-40d5-43e8-bc93-6894a57f9324",
        ),
        limits.IDEMPOTENCY_KEY,
    ] = UNSET
    timer_id: NewOtherName | UnsetType = UNSET


class TimerName(RequestStruct):
    """Identifies a timer."""

    namespace: NamespaceName
    timer_id: TimerId | UnsetType = UNSET
    id: OtherName | UnsetType = UNSET


class TimerHistory(TimerName):
    """A timer whose runs are wanted."""

    limit: Annotated[int | UnsetType, page_of("runs"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class UpdateTimer(CallbackFields[None]):
    """Changes to a pending timer; absent fields stay unchanged. Null removes `headers`, `expireAfter`, `description`,
    `flowKey`, `credential` and the hooks; a null `retryPolicy` returns to the namespace's policy. `payload` and `body`
    replace one another. Send at most one of `executeAt` and `delay`."""

    namespace: NamespaceName
    timer_id: TimerId | UnsetType = UNSET
    execute_at: ExecuteAt | UnsetType = UNSET
    delay: Delay | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET
    id: OtherName | UnsetType = UNSET


class ListTimers(RequestStruct):
    """Filters of a list of timers; a timer must match all of them."""

    namespace: ListedNamespace
    status: Annotated[
        Status | list[Status] | UnsetType,
        about("A status, or several: timers with any of them match."),
        limits.one_or_more("TimerStatus"),
    ] = UNSET
    tags: Annotated[list[str] | UnsetType, about("A timer must have all of these tags."), limits.TAGS] = UNSET
    id_prefix: Annotated[str | UnsetType, about("Prefix of the timers' ids."), limits.ID_PREFIX] = UNSET
    execute_after: Instant | UnsetType = UNSET
    execute_before: Instant | UnsetType = UNSET
    destination: Annotated[
        str | UnsetType, about("A part of the callback's host and path; case does not matter."), limits.PART
    ] = UNSET
    error: Annotated[str | UnsetType, about("A part of the last error; case does not matter."), limits.PART] = UNSET
    explain: Annotated[
        bool | UnsetType, about("Adds to each timer that is due what it does now, or waits for (explanation).")
    ] = UNSET
    limit: Annotated[int | UnsetType, page_of("timers"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class BatchCreateTimers(RequestStruct):
    """Timers to create in one request; an invalid one fails without affecting the others."""

    timers: Annotated[list[CreateTimer], about("The timers to create.")]


class BatchCreateRaw(RequestStruct):
    """A batch whose items are not decoded yet: each is decoded separately, so that an invalid one fails alone."""

    timers: list[msgspec.Raw]


class Attempt(ResponseStruct, rename="camel", omit_defaults=True):
    """One attempt. `status` is absent if there was no response, `error` if the attempt succeeded."""

    started_at: Annotated[str, about("When the attempt started.", "2027-01-31T12:00:00Z")]
    duration_ms: Annotated[float, about("Duration in milliseconds.")]
    status: Annotated[int | UnsetType, about("The HTTP status.")] = UNSET
    error: Annotated[str | UnsetType, about("Why the attempt failed: a stable code, then details.")] = UNSET
    answer: Annotated[
        str | UnsetType,
        about(
            "The beginning of the response's body on one line, without secrets; its length if it is no text. Absent if the "
            "receiver just accepted the callback."
        ),
    ] = UNSET
    batch: Annotated[
        str | UnsetType, about("The `webhook-id` of its batch; absent if it had a request of its own.")
    ] = UNSET


AttemptLog = Annotated[list[Attempt], about("The latest attempts, oldest first.")]


class RetryPolicyAnswer(ResponseStruct, rename="camel", omit_defaults=True):
    """A retry policy with its defaults filled in."""

    max_attempts: Annotated[int, about("Maximum number of attempts, including the first.")]
    initial_interval: Annotated[str, about("Delay before the second attempt.", "1s")]
    backoff_multiplier: Annotated[float, about("Factor by which each delay grows.")]
    max_interval: Annotated[str, about("Maximum delay.", "5m")]
    max_attempts_duration: Annotated[
        str | UnsetType, about("No attempt starts later than this after the first.", "1d")
    ] = UNSET


class RawBodyAnswer(ResponseStruct, rename="camel"):
    """A callback's raw body, in one of the three forms."""

    content_type: str
    json: msgspec.Raw | UnsetType = UNSET
    text: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET


class Debounced(ResponseStruct):
    """The debounced creates for which one firing of a timer stands."""

    creates: Annotated[int, Meta(description="How many they are.", ge=1)]
    first_at: Annotated[str, about("When the first one was made.", "2027-01-31T12:00:00Z")]
    latest_at: Annotated[str, about("The timer fires at the latest then.", "2027-01-31T12:01:00Z")]
    collected: Annotated[
        int | UnsetType,
        about("How many payloads the payload's array has; absent if it has that of the latest create.", 3),
    ] = UNSET


class Timer(ResponseStruct):
    """A timer, pending or finished."""

    namespace: NamespaceName
    id: TimerId
    timer_uuid: Annotated[str, about("Derived from namespace and id.")]
    shard_id: Annotated[int, Meta(description="The shard that holds the timer.", ge=0)]
    status: Status
    execute_at: Instant
    callback_url: CallbackUrl
    method: Method
    headers: Annotated[dict[str, str], about("Additional headers of the callback; secret values are [redacted].")]
    callback_timeout_seconds: TimeoutSeconds
    tags: Tags
    attempts: Annotated[int, Meta(description="Attempts made in the current firing.", ge=0)]
    attempt_log: AttemptLog
    created_at: Instant
    updated_at: Instant
    payload: Annotated[msgspec.Raw | UnsetType, about("Absent if the timer has a body.")] = UNSET
    retry_policy: Annotated[
        RetryPolicyAnswer | UnsetType, about("The timer's own policy; absent while the namespace's applies.")
    ] = UNSET
    next_attempt_at: Annotated[str | UnsetType, about("When the next attempt is due.", "2027-01-31T12:00:00Z")] = UNSET
    executed_at: Annotated[str | UnsetType, about("When the timer finished.", "2027-01-31T12:00:00Z")] = UNSET
    last_error: Annotated[
        str | UnsetType, about("Why the last failed attempt failed: a stable code, then details.")
    ] = UNSET
    body: Annotated[
        RawBodyAnswer | UnsetType, about("The whole body of the callback, instead of the envelope with the payload.")
    ] = UNSET
    expire_after: ExpireAfter | UnsetType = UNSET
    description: Annotated[str | UnsetType, about("What the timer is for.", "Reminds of the invoice")] = UNSET
    flow_key: Annotated[str | UnsetType, about("The flow that limits its attempts.", "customer:17")] = UNSET
    credential: Annotated[str | UnsetType, about("The credential that its requests have.", "billing-api")] = UNSET
    suspended: Annotated[
        str | UnsetType,
        about(
            "Why the pending timer is suspended: `egress` (this server does not call its address), `secret` (one can't be "
            "decrypted), `namespace:…`, `destination:…`, `flow:…` (paused, or too many wait), `credential:…` (it can't be "
            "sent now), `bad_record: …`; else absent.",
            "egress",
        ),
    ] = UNSET
    explanation: Annotated[
        Explanation | UnsetType, about("What the due timer does now, or waits for; only in a list that asks for it.")
    ] = UNSET
    on_failure: Annotated[HookAnswer | UnsetType, ON_FAILURE] = UNSET
    on_success: Annotated[HookAnswer | UnsetType, ON_SUCCESS] = UNSET
    on_recovery: Annotated[HookAnswer | UnsetType, ON_RECOVERY] = UNSET
    debounced: Annotated[Debounced | UnsetType, about("Only of a timer that was created with onConflict debounce.")] = (
        UNSET
    )


class Explanation(ResponseStruct):
    """Where a timer is, what it waits for, and what happens next."""

    state: TimerState
    shard: Annotated[int, Meta(description="The shard that holds the timer.", ge=0)]
    owner: Annotated[str | None, about("The node that owns the shard; null if none does.", "n1")]
    sentence: Annotated[
        str,
        about(
            "All of this in English.",
            "Attempt 1 failed (HTTP_503). The next one begins at 2027-01-31T12:00:05.012400Z.",
        ),
    ]
    waits_for: Annotated[
        WaitsFor | UnsetType,
        about("What has to happen before the timer moves on; absent if it has finished, or that is not known."),
    ] = UNSET
    next: Annotated[
        str | UnsetType,
        about(
            "When the next attempt is due, or the one in flight times out; absent if that is not known.",
            "2027-01-31T12:00:05.012400Z",
        ),
    ] = UNSET
    attempt: Annotated[int | UnsetType, about("The number of the attempt that is in flight; absent if none is.", 1)] = (
        UNSET
    )
    since: Annotated[
        str | UnsetType,
        about(
            "When the attempt in flight began, or else when the timer became due; in the state `unknown`, since when the "
            "owner has not answered. Absent if the timer is not due, or that is not known.",
            "2027-01-31T12:00:05.012400Z",
        ),
    ] = UNSET


class TimerPage(ResponseStruct):
    """A page of timers, ordered by `executeAt`. A page without `nextCursor` is the last. A page may be empty without being
    the last, and is shorter than its limit if payloads are large."""

    timers: list[Timer]
    next_cursor: Cursor | UnsetType = UNSET


class RunAnswer(ResponseStruct):
    """One run: what became of one instant of the timer. `pending` is the current run. After `rescheduled` and `superseded`
    the timer went on, because its receiver asked for another instant, or a client gave it one or created it again."""

    run: Annotated[str, about("The run's name, which is part of the webhook-id of its attempts.", "1-2a")]
    execute_at: Instant
    status: RunStatus
    attempts: Annotated[int, Meta(description="Number of attempts made, of which the latest are kept.", ge=0)]
    attempt_log: AttemptLog
    replay: Annotated[
        bool | UnsetType, about("`true`: it is a replay of the run before it with the same name. Absent otherwise.")
    ] = UNSET


class RunPageAnswer(ResponseStruct):
    """A page of runs, newest first. A page without `nextCursor` is the last."""

    runs: list[RunAnswer]
    next_cursor: Cursor | UnsetType = UNSET


class BadField(ResponseStruct):
    """An invalid field: its path, and what is wrong with it."""

    path: Annotated[str, about("Dotted path, such as timers[3].executeAt; empty for the body as a whole.")]
    reason: Annotated[str, about("What is wrong, and what is accepted.")]


class ItemError(ResponseStruct):
    """Why a timer of a batch was not created, or not replayed."""

    error: Annotated[str, about("A stable code.", "INVALID_INPUT")]
    message: str
    status: Annotated[int, about("The HTTP status that a request for this timer alone would have returned.")]
    errors: list[BadField]


class BatchResult(ResponseStruct):
    """The result for one timer of a batch: `timer` or `error`. With `existing` or `replayed` nothing was written: the timer
    is the existing one that was kept, or the one that an earlier request with the same idempotency key created."""

    timer: Timer | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET
    existing: bool | UnsetType = UNSET
    replayed: bool | UnsetType = UNSET


class BatchResults(ResponseStruct):
    """One result for each timer sent, in the same order."""

    results: list[BatchResult]


class Problem(ResponseStruct):
    """Why a request failed (RFC 9457, with additional members)."""

    type: Annotated[
        str, about("The page with the cause and the remedy of `error`: an identifier, which nothing needs to fetch.")
    ]
    title: Annotated[str, about("The kind of problem, in words.")]
    status: Annotated[int, Meta(description="The HTTP status.", ge=400, le=599)]
    detail: Annotated[str, about("What went wrong in this request, and how to correct it.")]
    instance: Annotated[str, about("The path of the request.")]
    error: Annotated[str, about("A stable code.", "TIMER_NOT_FOUND")]
    message: Annotated[str, about("The same as `detail`.")]
    timestamp: Instant
    correlation_id: Annotated[
        str,
        about(
            "Identifies the request in the server's log; also the header x-correlation-id. Report it to the operator."
        ),
    ]
    errors: Annotated[list[BadField], about("The invalid fields, if any.")]
