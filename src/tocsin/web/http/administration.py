"""The HTTP requests and responses about namespaces, API keys and the audit trail: structs and their conversion."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.keys import NAME_CHARS_MAX, SCOPE_MAX, KeyRequest
from tocsin.model import audit
from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditAction, AuditQuery, Detail
from tocsin.model.errors import FieldError, InvalidInput, StoreCorrupted, StoreError, Unavailable
from tocsin.model.instants import format_duration, format_instant
from tocsin.model.namespace import Answers, HistoryMode
from tocsin.model.opaque import from_opaque, to_opaque
from tocsin.model.quota import QUOTA_MAX
from tocsin.model.secrets import GRACE_US_MAX
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.web.http import constraints as limits
from tocsin.web.http.callback_batches import CALLBACK_BATCH, CallbackBatch, CallbackBatchAnswer
from tocsin.web.http.constraints import bad_fields
from tocsin.web.http.declared_wire import DryRun, ExpectedVersion, ManagedBy, Version
from tocsin.web.http.flows import FlowLimits, FlowLimitsAnswer
from tocsin.web.http.instants import optional_instant, read_instant
from tocsin.web.http.monitor_wire import ON_LATE
from tocsin.web.http.optional import or_default, or_none
from tocsin.web.http.wire import (
    ON_FAILURE,
    ON_MISSED,
    ON_PAUSED,
    ON_RECOVERY,
    ON_SUCCESS,
    Hook,
    HookAnswer,
    Instant,
    JobId,
    NamespaceName,
    RequestStruct,
    ResponseStruct,
    RetryPolicy,
    RetryPolicyAnswer,
    about,
    page_of,
)

NumShards = Annotated[
    int, about("The number of shards that its timers are spread over. Cannot be changed later."), limits.NUM_SHARDS
]
History = Annotated[HistoryMode, about("Which finished timers stay visible.")]
Retention = Annotated[
    str,
    about(f"How long finished timers stay visible; at most {format_duration(limits.LIMITS.retention_max_us)}.", "3d"),
    limits.RETENTION,
]
NamespaceRetry = Annotated[
    RetryPolicy | None, about("The policy of timers without their own; null for the default: 10 attempts in 8.5 h.")
]
LIMITS = about("The limits of all attempts of the namespace together.")
AnswersMode = Annotated[
    Answers,
    about(
        "What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: "
        "false or nextExecuteAt. strict: success only with an empty body or ok: true."
    ),
]


_QUOTA = limits.between(1, QUOTA_MAX)
_PENDING_QUOTA = about("Its timers that may be pending at once; not schedules.", 100_000)
_CREATES_QUOTA = about(
    "Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth at once.",
    50,
)
_PAYLOAD_QUOTA = about("Bytes that the payload or the raw body of one timer or schedule may have.", 4_096)


class Quotas(RequestStruct):
    """Quotas of a namespace; null removes one, and an absent one stays unchanged. What exceeds one is refused with
    QUOTA_EXCEEDED."""

    pending: Annotated[int | None | UnsetType, _PENDING_QUOTA, _QUOTA] = UNSET
    creates_per_second: Annotated[int | None | UnsetType, _CREATES_QUOTA, _QUOTA] = UNSET
    payload_bytes: Annotated[int | None | UnsetType, _PAYLOAD_QUOTA, _QUOTA] = UNSET


class QuotasAnswer(ResponseStruct, rename="camel", omit_defaults=True):
    """The quotas of a namespace; absent ones do not exist."""

    pending: Annotated[int | UnsetType, _PENDING_QUOTA] = UNSET
    creates_per_second: Annotated[int | UnsetType, _CREATES_QUOTA] = UNSET
    payload_bytes: Annotated[int | UnsetType, _PAYLOAD_QUOTA] = UNSET


_EVENT_SINK = about(
    "Where what becomes of its timers, schedules and monitors is published: below this subject of NATS, such as "
    "`shop.events.timer.failed`, with JetStream’s acknowledgement. The setting `nats_targets` has to list the subject for "
    "the namespace. Events without a sink are not kept.",
    "nats://shop.events",
)


class NamespaceFields(RequestStruct, kw_only=True):
    """The settings of a namespace."""

    num_shards: NumShards | UnsetType = UNSET
    history: History | UnsetType = UNSET
    retention: Retention | UnsetType = UNSET
    answers: AnswersMode | UnsetType = UNSET
    retry_policy: NamespaceRetry | UnsetType = UNSET
    limits: Annotated[FlowLimits | UnsetType, LIMITS] = UNSET
    quotas: Annotated[Quotas | UnsetType, about("Limits on what its clients create.")] = UNSET
    callback_batch: Annotated[CallbackBatch | UnsetType, CALLBACK_BATCH] = UNSET
    event_sink: Annotated[str | UnsetType, _EVENT_SINK] = UNSET
    on_failure: Annotated[Hook | UnsetType, ON_FAILURE] = UNSET
    on_success: Annotated[Hook | UnsetType, ON_SUCCESS] = UNSET
    on_recovery: Annotated[Hook | UnsetType, ON_RECOVERY] = UNSET
    on_missed: Annotated[Hook | UnsetType, ON_MISSED] = UNSET
    on_paused: Annotated[Hook | UnsetType, ON_PAUSED] = UNSET
    on_late: Annotated[Hook | UnsetType, ON_LATE] = UNSET


class CreateNamespace(NamespaceFields, kw_only=True):
    """A namespace to create."""

    name: NamespaceName
    secret: Annotated[
        str | UnsetType, about("Secret that signs its callbacks (Standard Webhooks): whsec_ and base64."), limits.SECRET
    ] = UNSET
    managed_by: ManagedBy | UnsetType = UNSET


class UpdateNamespace(RequestStruct):
    """Changes to a namespace; absent fields stay unchanged. The hooks are those of timers, schedules and monitors without
    their own for the same event; null removes one, and null removes `managedBy`, `limits`, `callbackBatch` and `eventSink`,
    which are otherwise replaced as a whole."""

    name: NamespaceName
    history: History | UnsetType = UNSET
    retention: Retention | UnsetType = UNSET
    secret: Annotated[
        str | None | UnsetType, about("A new signing secret; null removes the secret."), limits.SECRET
    ] = UNSET
    paused: Annotated[bool | UnsetType, about("While true, none of its timers fires.")] = UNSET
    answers: AnswersMode | UnsetType = UNSET
    retry_policy: NamespaceRetry | UnsetType = UNSET
    limits: Annotated[FlowLimits | UnsetType | None, LIMITS] = UNSET
    quotas: Annotated[Quotas | None | UnsetType, about("Changes to its quotas; null removes all.")] = UNSET
    callback_batch: Annotated[CallbackBatch | UnsetType | None, CALLBACK_BATCH] = UNSET
    event_sink: Annotated[str | UnsetType | None, _EVENT_SINK] = UNSET
    on_failure: Annotated[Hook | UnsetType | None, ON_FAILURE] = UNSET
    on_success: Annotated[Hook | UnsetType | None, ON_SUCCESS] = UNSET
    on_recovery: Annotated[Hook | UnsetType | None, ON_RECOVERY] = UNSET
    on_missed: Annotated[Hook | UnsetType | None, ON_MISSED] = UNSET
    on_paused: Annotated[Hook | UnsetType | None, ON_PAUSED] = UNSET
    on_late: Annotated[Hook | UnsetType | None, ON_LATE] = UNSET
    managed_by: ManagedBy | UnsetType | None = UNSET
    expected_version: ExpectedVersion | UnsetType = UNSET
    dry_run: DryRun | UnsetType = UNSET


class RotationSent(RequestStruct, kw_only=True):
    """The rotation of a signing secret: the new secret, and how long the previous one keeps signing."""

    secret: Annotated[
        str | UnsetType,
        about("The new secret: whsec_ and base64. Without one, the server generates it."),
        limits.SECRET,
    ] = UNSET
    grace: Annotated[
        str | UnsetType,
        about(
            f"How long the previous secret keeps signing: at most {format_duration(GRACE_US_MAX)}; 0s: not at all. "
            "Default 24h.",
            "24h",
        ),
        limits.DURATION,
    ] = UNSET
    force: Annotated[
        bool | UnsetType, about("Rotate even during the grace period of an earlier rotation. Default false.")
    ] = UNSET


class RotateSecret(RotationSent, kw_only=True):
    """The rotation of a namespace's signing secret."""

    name: NamespaceName


class RotatedSecret(ResponseStruct, kw_only=True):
    """The new signing secret. Only this response shows it."""

    name: NamespaceName
    secret: Annotated[str, about("The new secret, for the receivers.")]
    previous_until: Annotated[
        str | UnsetType, about("Until when the previous secret keeps signing; absent if only the new one signs.")
    ] = UNSET


class GetNamespace(RequestStruct):
    """Names a namespace."""

    name: NamespaceName


class ListNamespaces(RequestStruct):
    """No fields; the body is optional."""


_FILTER_CHARS_MAX = 255
_FILTER = limits.text(_FILTER_CHARS_MAX)
AUDIT_CURSOR_CHARS = 32
_KEY_NAME = limits.Constraint({"maxLength": NAME_CHARS_MAX, "pattern": limits.NO_CONTROL})
_KEY_NAMESPACES = limits.unique(SCOPE_MAX, limits.NAME.schema)
_KEY_TENANTS = limits.unique(SCOPE_MAX, limits.UUID7.schema)
#: The longest name of an operation, and the longest network, have fewer characters.
_SCOPE_CHARS_MAX = 100
_KEY_OPERATIONS = limits.unique(SCOPE_MAX, limits.text_schema(_SCOPE_CHARS_MAX))
_KEY_SOURCES = limits.unique(SCOPE_MAX, limits.text_schema(_SCOPE_CHARS_MAX))
_OPERATIONS = about(
    "Limits the key to these operations: names such as `timers/create`, which are the paths below the version, for service "
    "calls `calls/submit` and its like; groups such as `timers/*`; `read`, for all that a key of role read may use.",
    ["timers/create", "read"],
)
_SOURCES = about(
    "Limits the key to requests from these addresses and networks. The client's address counts, which behind a proxy the "
    "setting `trusted_proxies` finds.",
    ["10.1.0.0/16", "2001:db8::/32"],
)
KeyRole = Annotated[Role, about("What the key allows; each role includes the previous ones.")]
KeyId = Annotated[str, about("The key's id, the part between its first two underscores.")]


class CreateKey(RequestStruct):
    """An API key to create. Without `namespaces` and `tenants` it has access to all of them, which only an unlimited key can
    grant."""

    role: KeyRole
    name: Annotated[str | UnsetType, about("What the key is for.", "billing service"), _KEY_NAME] = UNSET
    namespaces: Annotated[list[str] | UnsetType, about("Limits the key to these namespaces."), _KEY_NAMESPACES] = UNSET
    tenants: Annotated[list[str] | UnsetType, about("Limits the key to these tenants."), _KEY_TENANTS] = UNSET
    expires_at: Annotated[str | UnsetType, about("When the key expires; without it, never."), limits.INSTANT] = UNSET
    operations: Annotated[list[str] | UnsetType, _OPERATIONS, _KEY_OPERATIONS] = UNSET
    sources: Annotated[list[str] | UnsetType, _SOURCES, _KEY_SOURCES] = UNSET


class ListKeys(RequestStruct):
    """No fields; the body is optional."""


class RevokeKey(RequestStruct):
    """The key to revoke."""

    key_id: Annotated[KeyId, limits.Constraint(limits.text_schema(_FILTER_CHARS_MAX))]


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
    operations: Annotated[list[str] | UnsetType, _OPERATIONS] = UNSET
    sources: Annotated[list[str] | UnsetType, _SOURCES] = UNSET
    last_used_at: Annotated[
        str | UnsetType,
        about("When the key was used last, accurate to an hour; absent: it was not used yet."),
    ] = UNSET


class CreatedKey(ShownKey, kw_only=True):
    """A new API key. Only this response contains the key itself."""

    key: Annotated[str, about("The key; send it as `Authorization: Bearer <key>`.")]


class KeyList(ResponseStruct):
    """The API keys within the scope of the caller's key, oldest first, including expired ones."""

    keys: list[ShownKey]


class ListAudit(RequestStruct):
    """Filters of a list of audit entries; an entry must match all of them."""

    action: Annotated[
        AuditAction | list[AuditAction] | UnsetType,
        about("An action, or several: entries with any of them match."),
        limits.one_or_more("AuditAction"),
    ] = UNSET
    key_id: Annotated[str | UnsetType, about("The key that acted.", "1f0c9a7be2d4"), _FILTER] = UNSET
    subject: Annotated[
        str | UnsetType, about("The object of the action: a namespace's name or a key's id."), _FILTER
    ] = UNSET
    after: Annotated[str | UnsetType, about("Only entries at or after this instant."), limits.INSTANT] = UNSET
    before: Annotated[str | UnsetType, about("Only entries before this instant."), limits.INSTANT] = UNSET
    limit: Annotated[int | UnsetType, page_of("entries"), limits.ROWS] = UNSET
    cursor: Annotated[
        str | UnsetType,
        about("`nextCursor` of the previous page."),
        limits.Constraint({"pattern": f"^[A-Za-z0-9_-]{{{AUDIT_CURSOR_CHARS}}}$"}),
    ] = UNSET


class AuditEntry(ResponseStruct):
    """An entry of the audit trail: what somebody changed, or a sign-in."""

    at: Instant
    action: Annotated[str, about("The action.", "namespace_changed")]
    key_id: Annotated[str | None, about("The key that acted; null if none was required or the key was unknown.")]
    subject: Annotated[str, about("The object of the action; empty for sign-ins.")]
    source: Annotated[str, about("Where the action came from: api, pages, cli, mcp or inbox.")]
    address: Annotated[str, about("The client's address; empty for the command line and an inbox.")]
    node: Annotated[str, about("The node, or the machine on which the command ran.")]
    details: Annotated[dict[str, Detail], about("Additional facts, such as the changed fields. Never a secret.")]


class AuditPage(ResponseStruct):
    """A page of the audit trail, newest first."""

    entries: list[AuditEntry]
    next_cursor: Annotated[str | UnsetType, about("Cursor of the next page; absent on the last page.")] = UNSET


class Namespace(ResponseStruct):
    """A namespace and its settings. The secret is never shown."""

    name: NamespaceName
    num_shards: NumShards
    history: History
    retention: Annotated[str, about("How long finished timers stay visible.", "3d")]
    paused: bool
    signed: Annotated[bool, about("Whether it has a signing secret.")]
    answers: AnswersMode
    retry_policy: Annotated[
        RetryPolicyAnswer, about("The policy of timers without their own: the namespace's, or the default.")
    ]
    created_at: Instant
    updated_at: Instant
    version: Version
    previous_secret_until: Annotated[
        str | UnsetType, about("Until when the previous secret keeps signing; absent if none does.")
    ] = UNSET
    damaged: Annotated[
        str | UnsetType,
        about(
            "Why the stored record can't be read; absent if it can. The fields besides name are then placeholders. Timers of "
            "the namespace wait, and its operations are refused, until the record is restored from a backup."
        ),
    ] = UNSET
    deleting: Annotated[
        JobId | UnsetType, about("The id of the job that deletes the namespace; absent while none does.")
    ] = UNSET
    limits: Annotated[FlowLimitsAnswer | UnsetType, LIMITS] = UNSET
    quotas: Annotated[QuotasAnswer | UnsetType, about("Its quotas; absent if it has none.")] = UNSET
    callback_batch: Annotated[CallbackBatchAnswer | UnsetType, CALLBACK_BATCH] = UNSET
    event_sink: Annotated[str | UnsetType, _EVENT_SINK] = UNSET
    on_failure: Annotated[HookAnswer | UnsetType, ON_FAILURE] = UNSET
    on_success: Annotated[HookAnswer | UnsetType, ON_SUCCESS] = UNSET
    on_recovery: Annotated[HookAnswer | UnsetType, ON_RECOVERY] = UNSET
    on_missed: Annotated[HookAnswer | UnsetType, ON_MISSED] = UNSET
    on_paused: Annotated[HookAnswer | UnsetType, ON_PAUSED] = UNSET
    on_late: Annotated[HookAnswer | UnsetType, ON_LATE] = UNSET
    managed_by: ManagedBy | UnsetType = UNSET


class NamespaceList(ResponseStruct):
    """All namespaces that the key has access to, sorted by name."""

    namespaces: list[Namespace]


class Rotation(NamedTuple):
    """The rotation of a signing secret to `secret`; the previous one keeps signing for `grace_us`."""

    secret: str
    grace_us: int
    force: bool


def key_request(sent: CreateKey) -> KeyRequest:
    """The requested API key. Raises InvalidInput if `expiresAt` is not an instant."""
    errors: list[FieldError] = []
    expires_at = read_instant("expiresAt", sent.expires_at, errors)
    if errors:
        raise InvalidInput(*errors)
    return KeyRequest(
        sent.role, tuple(sent.namespaces or ()), tuple(sent.tenants or ()), sent.name or "", expires_at,
        tuple(sent.operations or ()), tuple(sent.sources or ()),
    )  # fmt: skip


def created_key(key: ApiKey, secret: str) -> CreatedKey:
    """A new API key, including the key itself."""
    return CreatedKey(**msgspec.structs.asdict(_shown_key(key)), key=secret)


def keys_answer(keys: Iterable[ApiKey], uses: Mapping[str, int]) -> KeyList:
    """API keys as clients see them, and when each was used last, by its id."""
    return KeyList([_shown_key(key, uses.get(key.key_id)) for key in keys])


def _shown_key(key: ApiKey, used_at: int | None = None) -> ShownKey:
    return ShownKey(
        key_id=key.key_id,
        role=key.role,
        name=key.note,
        namespaces=list(key.namespaces),
        tenants=list(key.tenants),
        created_at=format_instant(key.created_at),
        expires_at=optional_instant(key.expires_at),
        operations=list(key.operations) or UNSET,
        sources=list(key.sources) or UNSET,
        last_used_at=optional_instant(used_at),
    )


_CURSOR = struct.Struct(">q16s")


def audit_query(sent: ListAudit, rules: InputRules) -> AuditQuery:
    """The requested entries. Raises InvalidInput with all bad fields."""
    errors = bad_fields(sent, rules)
    after, before = read_instant("after", sent.after, errors), read_instant("before", sent.before, errors)
    cursor = None
    if sent.cursor is not UNSET:
        try:
            cursor = _CURSOR.unpack(from_opaque(sent.cursor))
        except (struct.error, ValueError):
            errors.append(
                FieldError("cursor", "is not a nextCursor of this list; leave it out to start at the newest entry")
            )
    if errors:
        raise InvalidInput(*errors)
    actions = [] if sent.action is UNSET else [sent.action] if isinstance(sent.action, AuditAction) else sent.action
    return AuditQuery(
        actions=frozenset(action.value for action in actions),
        key_id=or_none(sent.key_id),
        subject=or_none(sent.subject),
        after=after,
        before=before,
        cursor=cursor,
        limit=or_default(sent.limit, limits.ROWS_DEFAULT),
    )


def audit_page(found: audit.AuditEntries) -> AuditPage:
    """The response, with a cursor if another page may follow."""
    shown = [
        AuditEntry(
            format_instant(entry.at),
            entry.action,
            entry.key_id,
            entry.subject,
            entry.source,
            entry.address,
            entry.node,
            entry.details,
        )
        for entry in found.entries
    ]
    cursor = audit_cursor(found)
    return AuditPage(shown) if cursor is None else AuditPage(shown, cursor)


def audit_cursor(found: audit.AuditEntries) -> str | None:
    """The cursor of the next page; None if nothing can follow."""
    if found.cursor is None:
        return None
    return to_opaque(_CURSOR.pack(*found.cursor))


async def read_audit(log: AuditLog, query: AuditQuery) -> audit.AuditEntries:
    """The requested entries. Raises Unavailable if the store does not respond."""
    try:
        return await log.read(query)
    except StoreCorrupted:
        raise
    except StoreError as error:
        raise Unavailable(f"the store can't be read now: {error}") from error


def rotation_details(of: str, rotation: Rotation) -> dict[str, Detail]:
    """Whose secret was rotated, a namespace's or a tenant's, and how; never the secret."""
    return {"of": of, "grace": format_duration(rotation.grace_us), "force": rotation.force}
