"""The audit trail over HTTP: queries, pages, and the details that entries record."""

from __future__ import annotations

import base64
import binascii
import struct

from msgspec import UNSET, UnsetType

from tocsin.model.audit import AuditAction, AuditEntry, AuditQuery, Detail
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_duration
from tocsin.model.validation import InputRules, text_reason
from tocsin.web.http import wire
from tocsin.web.http.convert import Rotation, read_instant
from tocsin.web.http.instants import format_instant

#: Entries on a page, for a request without a limit.
_ROWS_DEFAULT = 100
_CURSOR = struct.Struct(">q16s")
FILTER_CHARS_MAX = 255
CURSOR_CHARS = 32


def audit_query(sent: wire.ListAudit, rules: InputRules) -> AuditQuery:
    """The requested entries. Raises InvalidInput with all bad fields."""
    errors: list[FieldError] = []
    for name, text in (("keyId", sent.key_id), ("subject", sent.subject)):
        if text is not UNSET and (reason := text_reason(text, FILTER_CHARS_MAX)):
            errors.append(FieldError(name, reason))
    if sent.limit is not UNSET and (reason := rules.list_limit(sent.limit)):
        errors.append(FieldError("limit", reason))
    after, before = read_instant("after", sent.after, errors), read_instant("before", sent.before, errors)
    cursor = None
    if sent.cursor is not UNSET:
        try:
            cursor = _CURSOR.unpack(base64.b64decode(sent.cursor + "=" * (-len(sent.cursor) % 4), b"-_", validate=True))
        except (binascii.Error, struct.error, ValueError):
            errors.append(
                FieldError("cursor", "is not a nextCursor of this list; leave it out to start at the newest entry")
            )
    if errors:
        raise InvalidInput(*errors)
    actions = [] if sent.action is UNSET else [sent.action] if isinstance(sent.action, AuditAction) else sent.action
    return AuditQuery(
        actions=frozenset(action.value for action in actions),
        key_id=None if sent.key_id is UNSET else sent.key_id,
        subject=None if sent.subject is UNSET else sent.subject,
        after=after,
        before=before,
        cursor=cursor,
        limit=_ROWS_DEFAULT if sent.limit is UNSET else sent.limit,
    )


def audit_page(entries: list[AuditEntry], limit: int) -> wire.AuditPage:
    """The response; a full page has a cursor, since another may follow."""
    shown = [
        wire.AuditEntry(
            format_instant(entry.at),
            entry.action,
            entry.key_id,
            entry.subject,
            entry.source,
            entry.address,
            entry.node,
            entry.details,
        )
        for entry in entries
    ]
    if len(entries) < limit:
        return wire.AuditPage(shown)
    return wire.AuditPage(shown, base64.urlsafe_b64encode(_CURSOR.pack(*entries[-1].place)).decode().rstrip("="))


def namespace_details(sent: wire.CreateNamespace | wire.UpdateNamespace) -> dict[str, Detail]:
    """The namespace settings that a request set; of a secret, only that it was set or removed."""
    given = {
        "numShards": sent.num_shards if isinstance(sent, wire.CreateNamespace) else UNSET,
        "paused": UNSET if isinstance(sent, wire.CreateNamespace) else sent.paused,
        "history": sent.history,
        "retention": sent.retention,
        "answers": sent.answers,
        "retryPolicy": _whether_set(sent.retry_policy),
        "secret": _whether_set(sent.secret),
    }
    return {name: value for name, value in given.items() if value is not UNSET}


def _whether_set(value: object) -> str | UnsetType:
    return UNSET if value is UNSET else "removed" if value is None else "set"


def rotation_details(of: str, rotation: Rotation) -> dict[str, Detail]:
    """Whose secret was rotated, a namespace's or a tenant's, and how; never the secret."""
    return {"of": of, "grace": format_duration(rotation.grace_us), "force": rotation.force}
