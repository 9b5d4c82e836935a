"""`/audit`: who changed keys and namespaces, and who signed in, newest first."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import msgspec
from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction, AuditEntry, AuditSource
from tocsin.model.errors import InvalidInput
from tocsin.web.http import administration as wire
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.admin.namespaces import settings_path
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.site import Part, route

_ROWS = 50
#: The actions in words. One that is missing here, of a newer release, is shown as it is stored.
ACTIONS = {
    AuditAction.SIGN_IN: "Signed in",
    AuditAction.SIGN_IN_FAILED: "Failed to sign in",
    AuditAction.SIGN_OUT: "Signed out",
    AuditAction.KEY_CREATED: "Created key",
    AuditAction.KEY_CHANGED: "Changed key",
    AuditAction.KEY_DELETED: "Revoked key",
    AuditAction.NAMESPACE_CREATED: "Created namespace",
    AuditAction.NAMESPACE_CHANGED: "Changed namespace",
    AuditAction.NAMESPACE_DELETED: "Deleted namespace",
    AuditAction.SECRET_ROTATED: "Rotated secret of",
    AuditAction.TENANT_LABELED: "Labelled tenant",
    AuditAction.DESTINATION_CHANGED: "Changed destination",
    AuditAction.FAILURES_DISMISSED: "Dismissed failures in",
    AuditAction.FLOW_CHANGED: "Changed a flow of",
    AuditAction.FLOW_DELETED: "Deleted a flow of",
    AuditAction.CALENDAR_CHANGED: "Changed a calendar of",
    AuditAction.CALENDAR_DELETED: "Deleted a calendar of",
    AuditAction.CREDENTIAL_CHANGED: "Changed a credential of",
    AuditAction.CREDENTIAL_DELETED: "Deleted a credential of",
    AuditAction.MONITOR_CHANGED: "Changed a monitor of",
    AuditAction.MONITOR_PAUSED: "Paused a monitor of",
    AuditAction.MONITOR_RESUMED: "Resumed a monitor of",
    AuditAction.MONITOR_ROTATED: "Changed the ping URL of a monitor of",
    AuditAction.MONITOR_DELETED: "Deleted a monitor of",
    AuditAction.JOB_CREATED: "Created job",
    AuditAction.JOB_CHANGED: "Changed job",
    AuditAction.JOB_ENDED: "Ended job",
    AuditAction.INBOX_OPENED: "Began to drain",
    AuditAction.INBOX_REPLAYED: "Replayed dead rows of",
    AuditAction.INBOX_DELETED: "Deleted dead rows of",
    AuditAction.TIMER_CREATED: "Created a timer in",
    AuditAction.TIMERS_CANCELED: "Canceled timers in",
    AuditAction.TIMERS_REPLAYED: "Replayed timers in",
    AuditAction.SCHEDULE_CREATED: "Created a schedule in",
    AuditAction.SCHEDULE_DELETED: "Deleted a schedule in",
}
_FILTERS = ("action", "keyId", "subject")

_reader = JsonReader(wire.ListAudit)


class AuditTrail(Part):
    """The table, filtered by action, key and object."""

    @route("GET", "/audit")
    async def table(self, context: RequestContext) -> Response:
        """A page of the trail. With a filter it may be short, even empty, and still lead to a further one."""
        context.permit(Role.ADMIN)
        sent = {name: context.query.get(name) for name in (*_FILTERS, "cursor") if context.query.get(name)}
        problem, entries, following = "", [], ""
        try:
            request = _reader.read(msgspec.json.encode({**sent, "limit": _ROWS}))
            found = await wire.read_audit(self._site.audit, wire.audit_query(request, self._site.rules))
            entries, cursor = found.entries, wire.audit_cursor(found)
            kept = {name: value for name, value in sent.items() if name != "cursor"}
            following = "" if cursor is None else f"/audit?{urlencode({**kept, 'cursor': cursor})}"
        except InvalidInput as error:
            problem = "; ".join(f"{each.path} {each.reason}" for each in error.errors)
        return self._pages.page(
            "admin/audit.html",
            context,
            400 if problem else 200,
            title="Audit",
            entries=entries,
            following=following,
            problem=problem,
            sent=dict.fromkeys((*_FILTERS, "cursor"), "") | sent,
            filtered=bool(sent),
            actions=ACTIONS,
            object_path=_object_path,
            key_name=self._key_name,
        )

    def _key_name(self, key_id: str) -> str:
        """What a key in force is for; empty if that is not known."""
        key = self._site.keys.by_id(key_id)
        return "" if key is None else key.note


def _object_path(entry: AuditEntry) -> str:
    """The page of what was acted on; empty if it has none."""
    if entry.action.startswith("job_"):
        return f"/jobs/{quote(entry.subject, safe='')}"
    if entry.action.startswith("key_"):
        return f"/keys?q={quote(entry.subject, safe='')}"
    by_tool = entry.source == AuditSource.MCP
    of_namespace = by_tool or entry.action.startswith("namespace_") or entry.details.get("of") == "namespace"
    return settings_path(entry.subject) if of_namespace else ""
