"""What travels over HTTP: the structs of requests and answers, in camelCase.

Types stand here, limits don't: `tocsin.model.validation` checks those, so that one answer can name all bad fields, and
`tocsin.api.openapi` describes them. UNSET means that a field is absent.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.condition import OnConflict
from tocsin.model.namespace import Answers, HistoryMode
from tocsin.model.timer import Status

Instant = Annotated[str, Meta(description="An RFC 3339 instant with a time zone.", examples=["2027-01-31T12:00:00Z"])]
Duration = Annotated[str, Meta(description="A duration: 500ms, 30s, 5m, 1h30m, 7d.", examples=["30s"])]
NamespaceName = Annotated[str, Meta(description="The namespace's name.", examples=["default"])]
TimerId = Annotated[str, Meta(description="The timer's id, unique in its namespace.", examples=["order-17-reminder"])]
#: The id under its other name: `id` and `timerId` mean the same in every request. The OpenAPI document has one of them.
OtherName = Annotated[str, Meta(description="The timer's id, under its other name.")]
CallbackUrl = Annotated[
    str,
    Meta(
        description="The http or https URL to call. Answers redact its secrets.",
        examples=["https://shop.example/hooks/reminder"],
    ),
]
Method = Annotated[str, Meta(description="The method of the call.", examples=["POST"])]
Payload = Annotated[msgspec.Raw, Meta(description="Any JSON; it is passed on as it was sent.")]
Headers = Annotated[
    dict[str, str] | None,
    Meta(description="Further headers of the call. [redacted] as a value keeps the stored one of this timer."),
]
Tags = Annotated[list[str], Meta(description="Labels to list by.", examples=[["orders", "eu"]])]
TimeoutSeconds = Annotated[float, Meta(description="How long one call may take, in seconds.", examples=[10])]
NumShards = Annotated[int, Meta(description="Over how many of the shards its timers spread. Never changes.")]
History = Annotated[HistoryMode, Meta(description="Which finished timers stay visible.")]
Retention = Annotated[str, Meta(description="How long finished timers stay visible.", examples=["3d"])]
Cursor = Annotated[str, Meta(description="`nextCursor` of the page before.")]


class RequestStruct(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """Base of what clients send: unknown fields are refused."""


class AnswerStruct(msgspec.Struct, rename="camel", gc=False):
    """Base of what the server sends."""


class RetryPolicy(RequestStruct):
    """How often and how long a failed call is repeated. The delay grows from `initialInterval` by `backoffMultiplier`
    up to `maxInterval`."""

    max_attempts: Annotated[int, Meta(description="All attempts, the first included. Default 10.")] | UnsetType = UNSET
    max_attempts_duration: (
        Annotated[str | None, Meta(description="No attempt begins later than this after the first.", examples=["24h"])]
        | UnsetType
    ) = UNSET
    initial_interval: (
        Annotated[
            str,
            Meta(
                description="Delay before the second attempt. Default 5s, or maxInterval if that is shorter.",
                examples=["5s"],
            ),
        ]
        | UnsetType
    ) = UNSET
    backoff_multiplier: (
        Annotated[float, Meta(description="Growth of the delay. Default 3.", examples=[3])] | UnsetType
    ) = UNSET
    max_interval: (
        Annotated[
            str,
            Meta(description="Longest delay. Default 4h, or initialInterval if that is longer.", examples=["4h"]),
        ]
        | UnsetType
    ) = UNSET


Retry = Annotated[RetryPolicy | None, Meta(description="Without one, the namespace's policy counts, at each attempt.")]
NamespaceRetry = Annotated[
    RetryPolicy | None,
    Meta(description="The policy of timers without one of their own; null for the default: 10 attempts in 8.5 h."),
]
AnswersMode = Annotated[
    Answers,
    Meta(
        description="What a 2xx answer to a callback means: standard, done unless its body is a JSON object with ok: "
        "false or nextExecuteAt; strict, done only with an empty body or ok: true."
    ),
]


class RawBody(RequestStruct):
    """A callback's body that is sent, and signed, exactly as it is; give one of `json`, `text` and `base64`. What is
    otherwise around the payload comes in headers: `tocsin-namespace`, `tocsin-timer-id` (percent-encoded),
    `tocsin-execute-at`, `tocsin-fired-at`, `tocsin-attempt`."""

    json: Annotated[msgspec.Raw, Meta(description="Any JSON, sent to the byte as it was written.")] | UnsetType = UNSET
    text: Annotated[str, Meta(description="Text, sent in UTF-8.")] | UnsetType = UNSET
    base64: Annotated[str, Meta(description="Bytes, in base64 with padding.")] | UnsetType = UNSET
    content_type: (
        Annotated[
            str,
            Meta(
                description="Its media type. Default: application/json, text/plain; charset=utf-8 or "
                "application/octet-stream."
            ),
        ]
        | UnsetType
    ) = UNSET


Body = Annotated[RawBody, Meta(description="Sent instead of the envelope with the payload.")]


class CreateTimer(RequestStruct):
    """A timer to be created; give exactly one of `executeAt` and `delay`, and at most one of `payload` and `body`."""

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
    on_conflict: (
        Annotated[
            OnConflict,
            Meta(
                description="If a timer of this id exists, pending or finished and retained: replace it (the default), keep "
                "it and answer with it, or reject the request."
            ),
        ]
        | UnsetType
    ) = UNSET
    idempotency_key: (
        Annotated[
            str,
            Meta(
                description="Names this create, so that it can be repeated: a timer of this id that was created under the "
                "same key stands as it is, also after it has finished. The same as the header Idempotency-Key.",
                examples=["8e03978e-40d5-43e8-bc93-6894a57f9324"],
            ),
        ]
        | UnsetType
    ) = UNSET
    timer_id: OtherName | UnsetType = UNSET


class TimerName(RequestStruct):
    """Which timer is meant."""

    namespace: NamespaceName
    timer_id: TimerId | UnsetType = UNSET
    id: OtherName | UnsetType = UNSET


class UpdateTimer(RequestStruct):
    """What to change of a pending timer; absent fields stay. Null takes `headers` away; a null `retryPolicy` returns to the
    namespace's. `payload` and `body` replace one another. Give at most one of `executeAt` and `delay`."""

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
    id: OtherName | UnsetType = UNSET


class ListTimers(RequestStruct):
    """Which timers to list; a timer must meet all conditions given."""

    namespace: NamespaceName
    status: Annotated[Status | list[Status], Meta(description="Statuses of which it must have one.")] | UnsetType = (
        UNSET
    )
    tags: Annotated[list[str], Meta(description="Tags that it must have, all of them.")] | UnsetType = UNSET
    id_prefix: Annotated[str, Meta(description="How its id begins.")] | UnsetType = UNSET
    execute_after: Instant | UnsetType = UNSET
    execute_before: Instant | UnsetType = UNSET
    limit: Annotated[int, Meta(description="Timers on the page. Default 100.")] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class BatchCreateTimers(RequestStruct):
    """Timers to be created together; a bad one fails alone."""

    timers: Annotated[list[CreateTimer], Meta(description="The timers.")]


class BatchCreateRaw(RequestStruct):
    """The same before its items are read: each is decoded by itself, so that a bad one can fail alone."""

    timers: list[msgspec.Raw]


class CreateNamespace(RequestStruct):
    """A namespace to be created."""

    name: NamespaceName
    num_shards: NumShards | UnsetType = UNSET
    history: History | UnsetType = UNSET
    retention: Retention | UnsetType = UNSET
    secret: (
        Annotated[str, Meta(description="Signs its callbacks (Standard Webhooks): whsec_ and base64.")] | UnsetType
    ) = UNSET
    answers: AnswersMode | UnsetType = UNSET
    retry_policy: NamespaceRetry | UnsetType = UNSET


class UpdateNamespace(RequestStruct):
    """What to change of a namespace; absent fields stay."""

    name: NamespaceName
    history: History | UnsetType = UNSET
    retention: Retention | UnsetType = UNSET
    secret: Annotated[str | None, Meta(description="A new signing secret; null takes it away.")] | UnsetType = UNSET
    paused: Annotated[bool, Meta(description="While true, none of its timers rings.")] | UnsetType = UNSET
    answers: AnswersMode | UnsetType = UNSET
    retry_policy: NamespaceRetry | UnsetType = UNSET


class Rotation(RequestStruct, kw_only=True):
    """How a signing secret is replaced: by which, and how long the replaced one signs too."""

    secret: (
        Annotated[str, Meta(description="The new secret: whsec_ and base64. Without one, one is made.")] | UnsetType
    ) = UNSET
    grace: (
        Annotated[
            str,
            Meta(
                description="How long the replaced secret signs too; 0s: not at all. Default 24h.",
                examples=["24h"],
            ),
        ]
        | UnsetType
    ) = UNSET
    force: (
        Annotated[bool, Meta(description="Rotates also within the grace of another rotation. Default false.")]
        | UnsetType
    ) = UNSET


class RotateSecret(Rotation, kw_only=True):
    """The signing secret of a namespace to be replaced."""

    name: NamespaceName


class RotatedSecret(AnswerStruct, kw_only=True):
    """The new signing secret, which is shown in this answer alone."""

    name: NamespaceName
    secret: Annotated[str, Meta(description="The new secret, for the receivers.")]
    previous_until: (
        Annotated[str, Meta(description="Until when what it replaced signs, too; absent: only the new one signs.")]
        | UnsetType
    ) = UNSET


class ListNamespaces(RequestStruct):
    """Nothing to say; the body may be left out."""


KeyRole = Annotated[Role, Meta(description="What the key allows; each role includes the ones before it.")]
KeyId = Annotated[str, Meta(description="The key's id, the part between its first two underscores.")]


class CreateKey(RequestStruct):
    """An API key to be made. Without `namespaces` and `tenants` it may touch all of them, which only a key that is not
    limited itself can give."""

    role: KeyRole
    name: Annotated[str, Meta(description="What the key is for.", examples=["billing service"])] | UnsetType = UNSET
    namespaces: Annotated[list[str], Meta(description="The only namespaces that it may touch.")] | UnsetType = UNSET
    tenants: Annotated[list[str], Meta(description="The only tenants that it may touch.")] | UnsetType = UNSET
    expires_at: Annotated[str, Meta(description="From when on it is refused; without it, never.")] | UnsetType = UNSET


class ListKeys(RequestStruct):
    """Nothing to say; the body may be left out."""


class RevokeKey(RequestStruct):
    """The key to be revoked."""

    key_id: KeyId


class ShownKey(AnswerStruct, kw_only=True):
    """An API key, without the key itself, of which only a hash is stored."""

    key_id: KeyId
    role: KeyRole
    name: Annotated[str, Meta(description="What the key is for; may be empty.")]
    namespaces: Annotated[list[str], Meta(description="The only namespaces that it may touch.")]
    tenants: Annotated[
        list[str], Meta(description="The only tenants that it may touch. If both lists are empty, it may touch all.")
    ]
    created_at: Instant
    expires_at: Annotated[str, Meta(description="From when on it is refused; absent: never.")] | UnsetType = UNSET


class CreatedKey(ShownKey, kw_only=True):
    """A new API key. This answer alone has the key itself."""

    key: Annotated[str, Meta(description="To be sent as `Authorization: Bearer <key>`.")]


class KeyList(AnswerStruct):
    """The API keys that the caller's key covers, the oldest first; also those that have expired."""

    keys: list[ShownKey]


class ListAudit(RequestStruct):
    """Which entries of the audit trail to list; an entry must meet all conditions given."""

    action: Annotated[AuditAction | list[AuditAction], Meta(description="Actions that it may be.")] | UnsetType = UNSET
    key_id: Annotated[str, Meta(description="The key that acted.", examples=["1f0c9a7be2d4"])] | UnsetType = UNSET
    subject: Annotated[str, Meta(description="What was acted on: a namespace's name or a key's id.")] | UnsetType = (
        UNSET
    )
    after: Annotated[str, Meta(description="Only entries at this instant or later.")] | UnsetType = UNSET
    before: Annotated[str, Meta(description="Only entries before this instant.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(description="Entries on the page. Default 100.")] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class AuditEntry(AnswerStruct):
    """Something that was done to keys, namespaces or sign-ins."""

    at: Instant
    action: Annotated[str, Meta(description="What was done.", examples=["namespace_changed"])]
    key_id: Annotated[
        str | None, Meta(description="The key that acted; null where none was needed, or none was known.")
    ]
    subject: Annotated[str, Meta(description="What was acted on; empty for sign-ins.")]
    source: Annotated[str, Meta(description="Which way it came: api, pages or cli.")]
    address: Annotated[str, Meta(description="The client's address; empty for the command line.")]
    node: Annotated[str, Meta(description="The node, or the machine where the command ran.")]
    details: Annotated[
        dict[str, Detail], Meta(description="Further facts, such as the changed fields. Never a secret.")
    ]


class AuditPage(AnswerStruct):
    """A page of the audit trail, newest first."""

    entries: list[AuditEntry]
    next_cursor: Annotated[str, Meta(description="Where the next page begins; absent on the last one.")] | UnsetType = (
        UNSET
    )


class Attempt(AnswerStruct):
    """One call that was made. `status` is null when no answer came."""

    at: Annotated[str, Meta(description="When it began.", examples=["2027-01-31T12:00:00Z"])]
    duration_ms: Annotated[float, Meta(description="How long it took, in milliseconds.")]
    status: Annotated[int | None, Meta(description="The HTTP status; null when no answer came.")]
    error: Annotated[str | None, Meta(description="Why it failed: a stable word, then details. Null: it didn't.")]


class RetryPolicyAnswer(AnswerStruct, rename="camel", omit_defaults=True):
    """A retry policy, what was left out filled in."""

    max_attempts: Annotated[int, Meta(description="All attempts, the first included.")]
    initial_interval: Annotated[str, Meta(description="Delay before the second attempt.", examples=["1s"])]
    backoff_multiplier: Annotated[float, Meta(description="Growth of the delay.")]
    max_interval: Annotated[str, Meta(description="Longest delay.", examples=["5m"])]
    max_attempts_duration: (
        Annotated[str, Meta(description="No attempt begins later than this after the first.", examples=["1d"])]
        | UnsetType
    ) = UNSET


class RawBodyAnswer(AnswerStruct, rename="camel"):
    """A callback's raw body, in one of the three forms."""

    content_type: str
    json: msgspec.Raw | UnsetType = UNSET
    text: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET


class Timer(AnswerStruct):
    """A timer, pending or finished."""

    namespace: NamespaceName
    id: TimerId
    timer_uuid: Annotated[str, Meta(description="Made from namespace and id.")]
    shard_id: Annotated[int, Meta(description="The shard it lives in.", ge=0)]
    status: Status
    execute_at: Instant
    callback_url: CallbackUrl
    method: Method
    headers: Annotated[dict[str, str], Meta(description="Further headers of the call, secret ones [redacted].")]
    callback_timeout_seconds: TimeoutSeconds
    tags: Tags
    attempts: Annotated[int, Meta(description="Calls made in the present firing.", ge=0)]
    attempt_log: Annotated[list[Attempt], Meta(description="The last calls, the oldest first.")]
    created_at: Instant
    updated_at: Instant
    payload: Annotated[Payload, Meta(description="Absent where it has a body.")] | UnsetType = UNSET
    retry_policy: (
        Annotated[RetryPolicyAnswer, Meta(description="Its own; absent while the namespace's counts.")] | UnsetType
    ) = UNSET
    next_attempt_at: (
        Annotated[str, Meta(description="When it is called next.", examples=["2027-01-31T12:00:00Z"])] | UnsetType
    ) = UNSET
    executed_at: (
        Annotated[str, Meta(description="When it finished.", examples=["2027-01-31T12:00:00Z"])] | UnsetType
    ) = UNSET
    last_error: (
        Annotated[str, Meta(description="Why its last failed attempt failed: a stable word, then details.")] | UnsetType
    ) = UNSET
    body: Annotated[RawBodyAnswer, Meta(description="Sent instead of the envelope with a payload.")] | UnsetType = UNSET


class TimerPage(AnswerStruct):
    """A page of timers in execute order. Without `nextCursor` it is the last. A page may be empty and not the last, and with
    large payloads it is shorter than its limit."""

    timers: list[Timer]
    next_cursor: Cursor | UnsetType = UNSET


class BadField(AnswerStruct):
    """One bad field: where it stands, and what is wrong with it."""

    path: Annotated[str, Meta(description="Dotted, such as timers[3].executeAt; empty for the body as a whole.")]
    reason: Annotated[str, Meta(description="What is wrong with it, and what would be right.")]


class ItemError(AnswerStruct):
    """Why one timer of a batch was not created."""

    error: Annotated[str, Meta(description="A stable code.", examples=["INVALID_INPUT"])]
    message: str
    status: Annotated[int, Meta(description="The status it would have had alone.")]
    errors: list[BadField]


class BatchResult(AnswerStruct):
    """What became of one timer of a batch: `timer` or `error`. With `existing` or `replayed` nothing was written: the timer
    is the one that was kept, or that a former request with the same idempotency key created."""

    timer: Timer | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET
    existing: bool | UnsetType = UNSET
    replayed: bool | UnsetType = UNSET


class BatchResults(AnswerStruct):
    """One result for each timer sent, in that order."""

    results: list[BatchResult]


class Namespace(AnswerStruct):
    """A namespace and its settings. The secret is never shown."""

    name: NamespaceName
    num_shards: NumShards
    history: History
    retention: Retention
    paused: bool
    signed: Annotated[bool, Meta(description="Whether it has a signing secret.")]
    answers: AnswersMode
    retry_policy: Annotated[
        RetryPolicyAnswer, Meta(description="In force for timers without one of their own: its own, or the default.")
    ]
    created_at: Instant
    updated_at: Instant
    previous_secret_until: (
        Annotated[str, Meta(description="Until when a secret that was rotated away signs, too; absent: none does.")]
        | UnsetType
    ) = UNSET


class NamespaceList(AnswerStruct):
    """All namespaces that the key may see, by name."""

    namespaces: list[Namespace]


class Node(AnswerStruct):
    """A member of the cluster. `self` marks the one that answers. What only the member itself knows is null when it could
    not be asked: `version` (of its program), `dispatching`, `agent` (whether it runs the service agent), `windowTimers`,
    `lagMs`."""

    node: str
    incarnation: str
    address: str
    alive: bool
    self: bool
    shards: int
    leaving: Annotated[bool, Meta(description="Whether it hands its shards over.")] = False
    skewed: Annotated[
        bool, Meta(description="Whether its clock is off the store's, so that others have its shards if there are any.")
    ] = False
    version: str | None = None
    dispatching: bool | None = None
    agent: bool | None = None
    window_timers: int | None = None
    lag_ms: (
        Annotated[
            float,
            Meta(
                description="How long its oldest due timer has waited: since its instant, or since it was accepted if later."
            ),
        ]
        | None
    ) = None
    shares_name: Annotated[
        bool, Meta(description="Whether another living node has its name: then only one of them gets shards.")
    ] = False


class Shard(AnswerStruct):
    """A shard; the figures of its window only where its owner could be asked."""

    shard_id: int
    version: int
    owner: str | None
    owned_here: bool
    window_timers: int | UnsetType = UNSET
    in_flight: int | UnsetType = UNSET
    complete_to: Instant | UnsetType = UNSET
    lag_ms: (
        Annotated[
            float,
            Meta(
                description="How long its oldest due timer has waited: since its instant, or since it was accepted if later."
            ),
        ]
        | UnsetType
    ) = UNSET


class Cluster(AnswerStruct):
    """Nodes, shards, and whether the answering node rings timers now."""

    total_shards: int
    dispatching: bool
    nodes: list[Node]
    shards: list[Shard]
    dispatch_paused_reason: str | UnsetType = UNSET


class Health(AnswerStruct):
    """The node answers."""

    status: Annotated[str, Meta(examples=["ok"])]


class Problem(AnswerStruct):
    """Why a request failed (RFC 9457, with members of our own)."""

    type: Annotated[str, Meta(description="Names the kind of problem.")]
    title: Annotated[str, Meta(description="The kind of problem, in words.")]
    status: Annotated[int, Meta(description="The HTTP status.", ge=400, le=599)]
    detail: Annotated[str, Meta(description="What happened here, and what would be right.")]
    instance: Annotated[str, Meta(description="The path that was asked.")]
    error: Annotated[str, Meta(description="A stable code.", examples=["TIMER_NOT_FOUND"])]
    message: Annotated[str, Meta(description="The same as `detail`.")]
    timestamp: Instant
    correlation_id: Annotated[str, Meta(description="Also the header x-correlation-id; name it to the operator.")]
    errors: Annotated[list[BadField], Meta(description="The bad fields, if there are any.")]
