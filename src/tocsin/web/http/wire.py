"""The structs of HTTP requests and responses, in camelCase.

They declare types, not limits: `tocsin.model.validation` checks limits, so that one response can name all bad fields, and
`tocsin.web.api.openapi` describes them. UNSET means that a field is absent.
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
#: The id's alias: `id` and `timerId` mean the same in every request. The OpenAPI document describes one of them.
OtherName = Annotated[str, Meta(description="Alias of the timer's id.")]
CallbackUrl = Annotated[
    str,
    Meta(
        description="The http or https URL to call. Responses redact its secrets.",
        examples=["https://shop.example/hooks/reminder"],
    ),
]
Method = Annotated[str, Meta(description="The HTTP method of the callback.", examples=["POST"])]
Payload = Annotated[msgspec.Raw, Meta(description="Any JSON; delivered exactly as it was sent.")]
Headers = Annotated[
    dict[str, str] | None,
    Meta(description="Additional headers of the callback. The value [redacted] keeps the timer's stored value."),
]
Tags = Annotated[list[str], Meta(description="Labels to filter lists by.", examples=[["orders", "eu"]])]
TimeoutSeconds = Annotated[float, Meta(description="Timeout of one attempt, in seconds.", examples=[10])]
NumShards = Annotated[
    int, Meta(description="The number of shards that its timers are spread over. Cannot be changed later.")
]
History = Annotated[HistoryMode, Meta(description="Which finished timers stay visible.")]
Retention = Annotated[str, Meta(description="How long finished timers stay visible.", examples=["3d"])]
Cursor = Annotated[str, Meta(description="`nextCursor` of the previous page.")]


class RequestStruct(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """Base of requests: unknown fields are refused."""


class ResponseStruct(msgspec.Struct, rename="camel", gc=False):
    """Base of responses."""


class RetryPolicy(RequestStruct):
    """How often and for how long failed attempts are retried. The delay grows from `initialInterval` by `backoffMultiplier`
    up to `maxInterval`."""

    max_attempts: (
        Annotated[int, Meta(description="Maximum number of attempts, including the first. Default 10.")] | UnsetType
    ) = UNSET
    max_attempts_duration: (
        Annotated[str | None, Meta(description="No attempt starts later than this after the first.", examples=["24h"])]
        | UnsetType
    ) = UNSET
    initial_interval: (
        Annotated[
            str,
            Meta(
                description="Delay before the second attempt. Default 5s, or maxInterval if shorter.",
                examples=["5s"],
            ),
        ]
        | UnsetType
    ) = UNSET
    backoff_multiplier: (
        Annotated[float, Meta(description="Factor by which each delay grows. Default 3.", examples=[3])] | UnsetType
    ) = UNSET
    max_interval: (
        Annotated[
            str,
            Meta(description="Maximum delay. Default 4h, or initialInterval if longer.", examples=["4h"]),
        ]
        | UnsetType
    ) = UNSET


Retry = Annotated[
    RetryPolicy | None, Meta(description="Without one, each attempt uses the namespace's current policy.")
]
NamespaceRetry = Annotated[
    RetryPolicy | None,
    Meta(description="The policy of timers without their own; null for the default: 10 attempts in 8.5 h."),
]
AnswersMode = Annotated[
    Answers,
    Meta(
        description="What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: "
        "false or nextExecuteAt. strict: success only with an empty body or ok: true."
    ),
]


class RawBody(RequestStruct):
    """A callback body that is sent, and signed, exactly as given; send one of `json`, `text` and `base64`. The fields that
    otherwise surround the payload are sent as headers: `tocsin-namespace`, `tocsin-timer-id` (percent-encoded),
    `tocsin-execute-at`, `tocsin-fired-at`, `tocsin-attempt`."""

    json: Annotated[msgspec.Raw, Meta(description="Any JSON, sent byte for byte as written.")] | UnsetType = UNSET
    text: Annotated[str, Meta(description="Text, sent in UTF-8.")] | UnsetType = UNSET
    base64: Annotated[str, Meta(description="Bytes, in base64 with padding.")] | UnsetType = UNSET
    content_type: (
        Annotated[
            str,
            Meta(
                description="The body's media type. Default: application/json, text/plain; charset=utf-8 or "
                "application/octet-stream."
            ),
        ]
        | UnsetType
    ) = UNSET


Body = Annotated[RawBody, Meta(description="The whole body of the callback, instead of the envelope with the payload.")]


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
    on_conflict: (
        Annotated[
            OnConflict,
            Meta(
                description="What to do if a timer with this id exists, pending or finished and retained: replace it (the "
                "default), keep it and return it, or reject the request."
            ),
        ]
        | UnsetType
    ) = UNSET
    idempotency_key: (
        Annotated[
            str,
            Meta(
                description="Makes the create safe to repeat: a timer with this id that was created with the same key is "
                "returned unchanged, even after it has finished. Equivalent to the header Idempotency-Key.",
                examples=["8e03978e-40d5-43e8-bc93-6894a57f9324"],
            ),
        ]
        | UnsetType
    ) = UNSET
    timer_id: OtherName | UnsetType = UNSET


class TimerName(RequestStruct):
    """Identifies a timer."""

    namespace: NamespaceName
    timer_id: TimerId | UnsetType = UNSET
    id: OtherName | UnsetType = UNSET


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
    id: OtherName | UnsetType = UNSET


class ListTimers(RequestStruct):
    """Filters of a list of timers; a timer must match all of them."""

    namespace: NamespaceName
    status: (
        Annotated[Status | list[Status], Meta(description="A status, or several: timers with any of them match.")]
        | UnsetType
    ) = UNSET
    tags: Annotated[list[str], Meta(description="A timer must have all of these tags.")] | UnsetType = UNSET
    id_prefix: Annotated[str, Meta(description="Prefix of the timers' ids.")] | UnsetType = UNSET
    execute_after: Instant | UnsetType = UNSET
    execute_before: Instant | UnsetType = UNSET
    limit: Annotated[int, Meta(description="Maximum number of timers on the page. Default 100.")] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class BatchCreateTimers(RequestStruct):
    """Timers to create in one request; an invalid one fails without affecting the others."""

    timers: Annotated[list[CreateTimer], Meta(description="The timers to create.")]


class BatchCreateRaw(RequestStruct):
    """A batch whose items are not decoded yet: each is decoded separately, so that an invalid one fails alone."""

    timers: list[msgspec.Raw]


class CreateNamespace(RequestStruct):
    """A namespace to create."""

    name: NamespaceName
    num_shards: NumShards | UnsetType = UNSET
    history: History | UnsetType = UNSET
    retention: Retention | UnsetType = UNSET
    secret: (
        Annotated[str, Meta(description="Secret that signs its callbacks (Standard Webhooks): whsec_ and base64.")]
        | UnsetType
    ) = UNSET
    answers: AnswersMode | UnsetType = UNSET
    retry_policy: NamespaceRetry | UnsetType = UNSET


class UpdateNamespace(RequestStruct):
    """Changes to a namespace; absent fields stay unchanged."""

    name: NamespaceName
    history: History | UnsetType = UNSET
    retention: Retention | UnsetType = UNSET
    secret: Annotated[str | None, Meta(description="A new signing secret; null removes the secret.")] | UnsetType = (
        UNSET
    )
    paused: Annotated[bool, Meta(description="While true, none of its timers fires.")] | UnsetType = UNSET
    answers: AnswersMode | UnsetType = UNSET
    retry_policy: NamespaceRetry | UnsetType = UNSET


class Rotation(RequestStruct, kw_only=True):
    """The rotation of a signing secret: the new secret, and how long the previous one keeps signing."""

    secret: (
        Annotated[str, Meta(description="The new secret: whsec_ and base64. Without one, the server generates it.")]
        | UnsetType
    ) = UNSET
    grace: (
        Annotated[
            str,
            Meta(
                description="How long the previous secret keeps signing; 0s: not at all. Default 24h.",
                examples=["24h"],
            ),
        ]
        | UnsetType
    ) = UNSET
    force: (
        Annotated[bool, Meta(description="Rotate even during the grace period of an earlier rotation. Default false.")]
        | UnsetType
    ) = UNSET


class RotateSecret(Rotation, kw_only=True):
    """The rotation of a namespace's signing secret."""

    name: NamespaceName


class RotatedSecret(ResponseStruct, kw_only=True):
    """The new signing secret. Only this response shows it."""

    name: NamespaceName
    secret: Annotated[str, Meta(description="The new secret, for the receivers.")]
    previous_until: (
        Annotated[
            str, Meta(description="Until when the previous secret keeps signing; absent if only the new one signs.")
        ]
        | UnsetType
    ) = UNSET


class ListNamespaces(RequestStruct):
    """No fields; the body is optional."""


KeyRole = Annotated[Role, Meta(description="What the key allows; each role includes the previous ones.")]
KeyId = Annotated[str, Meta(description="The key's id, the part between its first two underscores.")]


class CreateKey(RequestStruct):
    """An API key to create. Without `namespaces` and `tenants` it has access to all of them, which only an unlimited key can
    grant."""

    role: KeyRole
    name: Annotated[str, Meta(description="What the key is for.", examples=["billing service"])] | UnsetType = UNSET
    namespaces: Annotated[list[str], Meta(description="Limits the key to these namespaces.")] | UnsetType = UNSET
    tenants: Annotated[list[str], Meta(description="Limits the key to these tenants.")] | UnsetType = UNSET
    expires_at: Annotated[str, Meta(description="When the key expires; without it, never.")] | UnsetType = UNSET


class ListKeys(RequestStruct):
    """No fields; the body is optional."""


class RevokeKey(RequestStruct):
    """The key to revoke."""

    key_id: KeyId


class ShownKey(ResponseStruct, kw_only=True):
    """An API key without its secret, of which only a hash is stored."""

    key_id: KeyId
    role: KeyRole
    name: Annotated[str, Meta(description="What the key is for; may be empty.")]
    namespaces: Annotated[list[str], Meta(description="Limits the key to these namespaces.")]
    tenants: Annotated[
        list[str], Meta(description="Limits the key to these tenants. If both lists are empty, the key is not limited.")
    ]
    created_at: Instant
    expires_at: Annotated[str, Meta(description="When the key expires; absent: never.")] | UnsetType = UNSET


class CreatedKey(ShownKey, kw_only=True):
    """A new API key. Only this response contains the key itself."""

    key: Annotated[str, Meta(description="The key; send it as `Authorization: Bearer <key>`.")]


class KeyList(ResponseStruct):
    """The API keys within the scope of the caller's key, oldest first, including expired ones."""

    keys: list[ShownKey]


class ListAudit(RequestStruct):
    """Filters of a list of audit entries; an entry must match all of them."""

    action: (
        Annotated[
            AuditAction | list[AuditAction], Meta(description="An action, or several: entries with any of them match.")
        ]
        | UnsetType
    ) = UNSET
    key_id: Annotated[str, Meta(description="The key that acted.", examples=["1f0c9a7be2d4"])] | UnsetType = UNSET
    subject: (
        Annotated[str, Meta(description="The object of the action: a namespace's name or a key's id.")] | UnsetType
    ) = UNSET
    after: Annotated[str, Meta(description="Only entries at or after this instant.")] | UnsetType = UNSET
    before: Annotated[str, Meta(description="Only entries before this instant.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(description="Maximum number of entries on the page. Default 100.")] | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET


class AuditEntry(ResponseStruct):
    """An entry of the audit trail: a change of keys or namespaces, or a sign-in."""

    at: Instant
    action: Annotated[str, Meta(description="The action.", examples=["namespace_changed"])]
    key_id: Annotated[
        str | None, Meta(description="The key that acted; null if none was required or the key was unknown.")
    ]
    subject: Annotated[str, Meta(description="The object of the action; empty for sign-ins.")]
    source: Annotated[str, Meta(description="Where the action came from: api, pages or cli.")]
    address: Annotated[str, Meta(description="The client's address; empty for the command line.")]
    node: Annotated[str, Meta(description="The node, or the machine on which the command ran.")]
    details: Annotated[
        dict[str, Detail], Meta(description="Additional facts, such as the changed fields. Never a secret.")
    ]


class AuditPage(ResponseStruct):
    """A page of the audit trail, newest first."""

    entries: list[AuditEntry]
    next_cursor: Annotated[str, Meta(description="Cursor of the next page; absent on the last page.")] | UnsetType = (
        UNSET
    )


class Attempt(ResponseStruct):
    """One attempt. `status` is null if there was no response."""

    at: Annotated[str, Meta(description="When the attempt started.", examples=["2027-01-31T12:00:00Z"])]
    duration_ms: Annotated[float, Meta(description="Duration in milliseconds.")]
    status: Annotated[int | None, Meta(description="The HTTP status; null if there was no response.")]
    error: Annotated[str | None, Meta(description="Why it failed: a stable code, then details. Null if it succeeded.")]


class RetryPolicyAnswer(ResponseStruct, rename="camel", omit_defaults=True):
    """A retry policy with its defaults filled in."""

    max_attempts: Annotated[int, Meta(description="Maximum number of attempts, including the first.")]
    initial_interval: Annotated[str, Meta(description="Delay before the second attempt.", examples=["1s"])]
    backoff_multiplier: Annotated[float, Meta(description="Factor by which each delay grows.")]
    max_interval: Annotated[str, Meta(description="Maximum delay.", examples=["5m"])]
    max_attempts_duration: (
        Annotated[str, Meta(description="No attempt starts later than this after the first.", examples=["1d"])]
        | UnsetType
    ) = UNSET


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
    timer_uuid: Annotated[str, Meta(description="Derived from namespace and id.")]
    shard_id: Annotated[int, Meta(description="The shard that holds the timer.", ge=0)]
    status: Status
    execute_at: Instant
    callback_url: CallbackUrl
    method: Method
    headers: Annotated[
        dict[str, str], Meta(description="Additional headers of the callback; secret values are [redacted].")
    ]
    callback_timeout_seconds: TimeoutSeconds
    tags: Tags
    attempts: Annotated[int, Meta(description="Attempts made in the current firing.", ge=0)]
    attempt_log: Annotated[list[Attempt], Meta(description="The latest attempts, oldest first.")]
    created_at: Instant
    updated_at: Instant
    payload: Annotated[Payload, Meta(description="Absent if the timer has a body.")] | UnsetType = UNSET
    retry_policy: (
        Annotated[RetryPolicyAnswer, Meta(description="The timer's own policy; absent while the namespace's applies.")]
        | UnsetType
    ) = UNSET
    next_attempt_at: (
        Annotated[str, Meta(description="When the next attempt is due.", examples=["2027-01-31T12:00:00Z"])] | UnsetType
    ) = UNSET
    executed_at: (
        Annotated[str, Meta(description="When the timer finished.", examples=["2027-01-31T12:00:00Z"])] | UnsetType
    ) = UNSET
    last_error: (
        Annotated[str, Meta(description="Why the last failed attempt failed: a stable code, then details.")] | UnsetType
    ) = UNSET
    body: (
        Annotated[
            RawBodyAnswer, Meta(description="The whole body of the callback, instead of the envelope with the payload.")
        ]
        | UnsetType
    ) = UNSET


class TimerPage(ResponseStruct):
    """A page of timers, ordered by `executeAt`. A page without `nextCursor` is the last. A page may be empty without being
    the last, and is shorter than its limit if payloads are large."""

    timers: list[Timer]
    next_cursor: Cursor | UnsetType = UNSET


class BadField(ResponseStruct):
    """An invalid field: its path, and what is wrong with it."""

    path: Annotated[str, Meta(description="Dotted path, such as timers[3].executeAt; empty for the body as a whole.")]
    reason: Annotated[str, Meta(description="What is wrong, and what is accepted.")]


class ItemError(ResponseStruct):
    """Why a timer of a batch was not created."""

    error: Annotated[str, Meta(description="A stable code.", examples=["INVALID_INPUT"])]
    message: str
    status: Annotated[int, Meta(description="The HTTP status that a single create would have returned.")]
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
    signed: Annotated[bool, Meta(description="Whether it has a signing secret.")]
    answers: AnswersMode
    retry_policy: Annotated[
        RetryPolicyAnswer, Meta(description="The policy of timers without their own: the namespace's, or the default.")
    ]
    created_at: Instant
    updated_at: Instant
    previous_secret_until: (
        Annotated[str, Meta(description="Until when the previous secret keeps signing; absent if none does.")]
        | UnsetType
    ) = UNSET


class NamespaceList(ResponseStruct):
    """All namespaces that the key has access to, sorted by name."""

    namespaces: list[Namespace]


class Problem(ResponseStruct):
    """Why a request failed (RFC 9457, with additional members)."""

    type: Annotated[str, Meta(description="Identifies the kind of problem.")]
    title: Annotated[str, Meta(description="The kind of problem, in words.")]
    status: Annotated[int, Meta(description="The HTTP status.", ge=400, le=599)]
    detail: Annotated[str, Meta(description="What went wrong in this request, and how to correct it.")]
    instance: Annotated[str, Meta(description="The path of the request.")]
    error: Annotated[str, Meta(description="A stable code.", examples=["TIMER_NOT_FOUND"])]
    message: Annotated[str, Meta(description="The same as `detail`.")]
    timestamp: Instant
    correlation_id: Annotated[
        str,
        Meta(
            description="Identifies the request in the server's log; also the header x-correlation-id. Report it to "
            "the operator."
        ),
    ]
    errors: Annotated[list[BadField], Meta(description="The invalid fields, if any.")]
