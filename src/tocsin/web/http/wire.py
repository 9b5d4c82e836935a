"""The structs of HTTP requests and responses, in camelCase.

They declare types, not limits: `tocsin.model.validation` checks limits, so that one response can name all bad fields, and
`scripts.openapi` describes them. UNSET means that a field is absent.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.condition import OnConflict
from tocsin.model.namespace import Answers, HistoryMode
from tocsin.model.run import RunStatus
from tocsin.model.timer import Status
from tocsin.timers.explaining import TimerState, WaitsFor


def about(description: str, *examples: object) -> Meta:
    """Describes a field in the OpenAPI document."""
    return Meta(description=description, examples=list(examples) or None)


Instant = Annotated[str, about("An RFC 3339 instant with a time zone.", "2027-01-31T12:00:00Z")]
Duration = Annotated[str, about("A duration: 500ms, 30s, 5m, 1h30m, 7d.", "30s")]
NamespaceName = Annotated[str, about("The namespace's name.", "default")]
TimerId = Annotated[str, about("The timer's id, unique in its namespace.", "order-17-reminder")]
#: The id's alias: `id` and `timerId` mean the same in every request. The OpenAPI document describes one of them.
OtherName = Annotated[str, about("Alias of the timer's id.")]
CallbackUrl = Annotated[
    str, about("The http or https URL to call. Responses redact its secrets.", "https://shop.example/hooks/reminder")
]
Method = Annotated[str, about("The HTTP method of the callback.", "POST")]
Payload = Annotated[msgspec.Raw, about("Any JSON; delivered exactly as it was sent.")]
Headers = Annotated[
    dict[str, str] | None,
    about("Additional headers of the callback. The value [redacted] keeps the timer's stored value."),
]
Tags = Annotated[list[str], about("Labels to filter lists by.", ["orders", "eu"])]
TimeoutSeconds = Annotated[float, about("Timeout of one attempt, in seconds.", 10)]
ExpireAfter = Annotated[
    str,
    about(
        "No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired "
        "then, any other as failed.",
        "15m",
    ),
]
NumShards = Annotated[int, about("The number of shards that its timers are spread over. Cannot be changed later.")]
History = Annotated[HistoryMode, about("Which finished timers stay visible.")]
Retention = Annotated[str, about("How long finished timers stay visible.", "3d")]
Cursor = Annotated[str, about("`nextCursor` of the previous page.")]


class RequestStruct(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """Base of requests: unknown fields are refused."""


class ResponseStruct(msgspec.Struct, rename="camel", gc=False):
    """Base of responses."""


class RetryPolicy(RequestStruct):
    """How often and for how long failed attempts are retried. The delay grows from `initialInterval` by `backoffMultiplier`
    up to `maxInterval`."""

    max_attempts: Annotated[int | UnsetType, about("Maximum number of attempts, including the first. Default 10.")] = (
        UNSET
    )
    max_attempts_duration: Annotated[
        str | None | UnsetType, about("No attempt starts later than this after the first.", "24h")
    ] = UNSET
    initial_interval: Annotated[
        str | UnsetType, about("Delay before the second attempt. Default 5s, or maxInterval if shorter.", "5s")
    ] = UNSET
    backoff_multiplier: Annotated[float | UnsetType, about("Factor by which each delay grows. Default 3.", 3)] = UNSET
    max_interval: Annotated[
        str | UnsetType, about("Maximum delay. Default 4h, or initialInterval if longer.", "4h")
    ] = UNSET


Retry = Annotated[RetryPolicy | None, about("Without one, each attempt uses the namespace's current policy.")]
NamespaceRetry = Annotated[
    RetryPolicy | None, about("The policy of timers without their own; null for the default: 10 attempts in 8.5 h.")
]
AnswersMode = Annotated[
    Answers,
    about(
        "What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: "
        "false or nextExecuteAt. strict: success only with an empty body or ok: true."
    ),
]


class RawBody(RequestStruct):
    """A callback body that is sent, and signed, exactly as given; send one of `json`, `text` and `base64`. The fields that
    otherwise surround the payload are sent as headers: `tocsin-namespace`, `tocsin-timer-id` (percent-encoded),
    `tocsin-execute-at`, `tocsin-fired-at`, `tocsin-attempt`."""

    json: Annotated[msgspec.Raw | UnsetType, about("Any JSON, sent byte for byte as written.")] = UNSET
    text: Annotated[str | UnsetType, about("Text, sent in UTF-8.")] = UNSET
    base64: Annotated[str | UnsetType, about("Bytes, in base64 with padding.")] = UNSET
    content_type: Annotated[
        str | UnsetType,
        about(
            "The body's media type. Default: application/json, text/plain; charset=utf-8 or application/octet-stream."
        ),
    ] = UNSET


Body = Annotated[RawBody, about("The whole body of the callback, instead of the envelope with the payload.")]


class CreateTimer(RequestStruct):
    """A timer to create; send exactly one of `executeAt` and `delay`, and at most one of `payload` and `body`."""

    namespace: NamespaceName
    callback_url: CallbackUrl
    id: TimerId | UnsetType = UNSET
    execute_at: Instant | UnsetType = UNSET
    delay: Duration | UnsetType = UNSET
    payload: Payload | UnsetType = UNSET
    body: Body | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    headers: Headers | UnsetType = UNSET
    retry_policy: Retry | UnsetType = UNSET
    callback_timeout_seconds: TimeoutSeconds | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    expire_after: ExpireAfter | UnsetType = UNSET
    on_conflict: Annotated[
        OnConflict | UnsetType,
        about(
            "What to do if a timer with this id exists, pending or finished and retained: replace it (the "
            "default), keep it and return it, or reject the request."
        ),
    ] = UNSET
    idempotency_key: Annotated[
        str | UnsetType,
        about(
            "Makes the create safe to repeat: a timer with this id that was created with the same key is "
            "returned unchanged, even after it has finished. Equivalent to the header Idempotency-Key.",
            "8e03978e-40d5-43e8-bc93-6894a57f9324",
        ),
    ] = UNSET
    timer_id: OtherName | UnsetType = UNSET


class TimerName(RequestStruct):
    """Identifies a timer."""

    namespace: NamespaceName
    timer_id: TimerId | UnsetType = UNSET
    id: OtherName | UnsetType = UNSET


class TimerHistory(TimerName):
    """A timer whose runs are wanted."""

    limit: Annotated[int | UnsetType, about("Maximum number of runs on the page. Default 100.")] = UNSET
    cursor: Cursor | UnsetType = UNSET


class UpdateTimer(RequestStruct):
    """Changes to a pending timer; absent fields stay unchanged. A null `headers` removes them; a null `retryPolicy` returns
    to the namespace's policy. `payload` and `body` replace one another. Send at most one of `executeAt` and `delay`."""

    namespace: NamespaceName
    timer_id: TimerId | UnsetType = UNSET
    execute_at: Instant | UnsetType = UNSET
    delay: Duration | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET
    payload: Payload | UnsetType = UNSET
    body: Body | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    headers: Headers | UnsetType = UNSET
    retry_policy: Retry | UnsetType = UNSET
    callback_timeout_seconds: TimeoutSeconds | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    expire_after: (
        Annotated[
            ExpireAfter | None, about("No attempt begins later than this after executeAt; null removes the limit.")
        ]
        | UnsetType
    ) = UNSET
    id: OtherName | UnsetType = UNSET


class ListTimers(RequestStruct):
    """Filters of a list of timers; a timer must match all of them."""

    namespace: NamespaceName
    status: Annotated[
        Status | list[Status] | UnsetType, about("A status, or several: timers with any of them match.")
    ] = UNSET
    tags: Annotated[list[str] | UnsetType, about("A timer must have all of these tags.")] = UNSET
    id_prefix: Annotated[str | UnsetType, about("Prefix of the timers' ids.")] = UNSET
    execute_after: Instant | UnsetType = UNSET
    execute_before: Instant | UnsetType = UNSET
    limit: Annotated[int | UnsetType, about("Maximum number of timers on the page. Default 100.")] = UNSET
    cursor: Cursor | UnsetType = UNSET


class BatchCreateTimers(RequestStruct):
    """Timers to create in one request; an invalid one fails without affecting the others."""

    timers: Annotated[list[CreateTimer], about("The timers to create.")]


class BatchCreateRaw(RequestStruct):
    """A batch whose items are not decoded yet: each is decoded separately, so that an invalid one fails alone."""

    timers: list[msgspec.Raw]


class CreateNamespace(RequestStruct):
    """A namespace to create."""

    name: NamespaceName
    num_shards: NumShards | UnsetType = UNSET
    history: History | UnsetType = UNSET
    retention: Retention | UnsetType = UNSET
    secret: Annotated[
        str | UnsetType, about("Secret that signs its callbacks (Standard Webhooks): whsec_ and base64.")
    ] = UNSET
    answers: AnswersMode | UnsetType = UNSET
    retry_policy: NamespaceRetry | UnsetType = UNSET


class UpdateNamespace(RequestStruct):
    """Changes to a namespace; absent fields stay unchanged."""

    name: NamespaceName
    history: History | UnsetType = UNSET
    retention: Retention | UnsetType = UNSET
    secret: Annotated[str | None | UnsetType, about("A new signing secret; null removes the secret.")] = UNSET
    paused: Annotated[bool | UnsetType, about("While true, none of its timers fires.")] = UNSET
    answers: AnswersMode | UnsetType = UNSET
    retry_policy: NamespaceRetry | UnsetType = UNSET


class Rotation(RequestStruct, kw_only=True):
    """The rotation of a signing secret: the new secret, and how long the previous one keeps signing."""

    secret: Annotated[
        str | UnsetType, about("The new secret: whsec_ and base64. Without one, the server generates it.")
    ] = UNSET
    grace: Annotated[
        str | UnsetType, about("How long the previous secret keeps signing; 0s: not at all. Default 24h.", "24h")
    ] = UNSET
    force: Annotated[
        bool | UnsetType, about("Rotate even during the grace period of an earlier rotation. Default false.")
    ] = UNSET


class RotateSecret(Rotation, kw_only=True):
    """The rotation of a namespace's signing secret."""

    name: NamespaceName


class RotatedSecret(ResponseStruct, kw_only=True):
    """The new signing secret. Only this response shows it."""

    name: NamespaceName
    secret: Annotated[str, about("The new secret, for the receivers.")]
    previous_until: Annotated[
        str | UnsetType, about("Until when the previous secret keeps signing; absent if only the new one signs.")
    ] = UNSET


class ListNamespaces(RequestStruct):
    """No fields; the body is optional."""


KeyRole = Annotated[Role, about("What the key allows; each role includes the previous ones.")]
KeyId = Annotated[str, about("The key's id, the part between its first two underscores.")]


class CreateKey(RequestStruct):
    """An API key to create. Without `namespaces` and `tenants` it has access to all of them, which only an unlimited key can
    grant."""

    role: KeyRole
    name: Annotated[str | UnsetType, about("What the key is for.", "billing service")] = UNSET
    namespaces: Annotated[list[str] | UnsetType, about("Limits the key to these namespaces.")] = UNSET
    tenants: Annotated[list[str] | UnsetType, about("Limits the key to these tenants.")] = UNSET
    expires_at: Annotated[str | UnsetType, about("When the key expires; without it, never.")] = UNSET


class ListKeys(RequestStruct):
    """No fields; the body is optional."""


class RevokeKey(RequestStruct):
    """The key to revoke."""

    key_id: KeyId


class ShownKey(ResponseStruct, kw_only=True):
    """An API key without its secret, of which only a hash is stored."""

    key_id: KeyId
    role: KeyRole
    name: Annotated[str, about("What the key is for; may be empty.")]
    namespaces: Annotated[list[str], about("Limits the key to these namespaces.")]
    tenants: Annotated[
        list[str], about("Limits the key to these tenants. If both lists are empty, the key is not limited.")
    ]
    created_at: Instant
    expires_at: Annotated[str | UnsetType, about("When the key expires; absent: never.")] = UNSET


class CreatedKey(ShownKey, kw_only=True):
    """A new API key. Only this response contains the key itself."""

    key: Annotated[str, about("The key; send it as `Authorization: Bearer <key>`.")]


class KeyList(ResponseStruct):
    """The API keys within the scope of the caller's key, oldest first, including expired ones."""

    keys: list[ShownKey]


class ListAudit(RequestStruct):
    """Filters of a list of audit entries; an entry must match all of them."""

    action: Annotated[
        AuditAction | list[AuditAction] | UnsetType, about("An action, or several: entries with any of them match.")
    ] = UNSET
    key_id: Annotated[str | UnsetType, about("The key that acted.", "1f0c9a7be2d4")] = UNSET
    subject: Annotated[str | UnsetType, about("The object of the action: a namespace's name or a key's id.")] = UNSET
    after: Annotated[str | UnsetType, about("Only entries at or after this instant.")] = UNSET
    before: Annotated[str | UnsetType, about("Only entries before this instant.")] = UNSET
    limit: Annotated[int | UnsetType, about("Maximum number of entries on the page. Default 100.")] = UNSET
    cursor: Cursor | UnsetType = UNSET


class AuditEntry(ResponseStruct):
    """An entry of the audit trail: a change of keys or namespaces, or a sign-in."""

    at: Instant
    action: Annotated[str, about("The action.", "namespace_changed")]
    key_id: Annotated[str | None, about("The key that acted; null if none was required or the key was unknown.")]
    subject: Annotated[str, about("The object of the action; empty for sign-ins.")]
    source: Annotated[str, about("Where the action came from: api, pages or cli.")]
    address: Annotated[str, about("The client's address; empty for the command line.")]
    node: Annotated[str, about("The node, or the machine on which the command ran.")]
    details: Annotated[dict[str, Detail], about("Additional facts, such as the changed fields. Never a secret.")]


class AuditPage(ResponseStruct):
    """A page of the audit trail, newest first."""

    entries: list[AuditEntry]
    next_cursor: Annotated[str | UnsetType, about("Cursor of the next page; absent on the last page.")] = UNSET


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
    suspended: Annotated[
        str | UnsetType,
        about(
            "Why the pending timer is suspended: `egress` (this server does not call its address), or `namespace:…`, "
            "`destination:…` (paused, or too many wait), or `bad_record: …`; absent unless it is.",
            "egress",
        ),
    ] = UNSET


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


class RunPageAnswer(ResponseStruct):
    """A page of runs, newest first. A page without `nextCursor` is the last."""

    runs: list[RunAnswer]
    next_cursor: Cursor | UnsetType = UNSET


class BadField(ResponseStruct):
    """An invalid field: its path, and what is wrong with it."""

    path: Annotated[str, about("Dotted path, such as timers[3].executeAt; empty for the body as a whole.")]
    reason: Annotated[str, about("What is wrong, and what is accepted.")]


class ItemError(ResponseStruct):
    """Why a timer of a batch was not created."""

    error: Annotated[str, about("A stable code.", "INVALID_INPUT")]
    message: str
    status: Annotated[int, about("The HTTP status that a single create would have returned.")]
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


class Namespace(ResponseStruct):
    """A namespace and its settings. The secret is never shown."""

    name: NamespaceName
    num_shards: NumShards
    history: History
    retention: Retention
    paused: bool
    signed: Annotated[bool, about("Whether it has a signing secret.")]
    answers: AnswersMode
    retry_policy: Annotated[
        RetryPolicyAnswer, about("The policy of timers without their own: the namespace's, or the default.")
    ]
    created_at: Instant
    updated_at: Instant
    previous_secret_until: Annotated[
        str | UnsetType, about("Until when the previous secret keeps signing; absent if none does.")
    ] = UNSET


class NamespaceList(ResponseStruct):
    """All namespaces that the key has access to, sorted by name."""

    namespaces: list[Namespace]


class Problem(ResponseStruct):
    """Why a request failed (RFC 9457, with additional members)."""

    type: Annotated[str, about("Identifies the kind of problem.")]
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
