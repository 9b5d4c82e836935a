"""The operation on the audit trail."""

from __future__ import annotations

from tocsin.model.access import Role
from tocsin.model.errors import StoreCorrupted, StoreError, Unavailable
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import wire
from tocsin.web.http.audit import audit_page, audit_query


class AuditHandlers:
    """Handles list."""

    def __init__(self, audit: AuditLog, rules: InputRules) -> None:
        self._audit = audit
        self._rules = rules

    @Operation("listAudit", "/api/v1/audit/list", Role.ADMIN, Reach.SERVICE, body_optional=True)
    async def list(self, request: ApiRequest, sent: wire.ListAudit) -> wire.AuditPage:
        """Sign-ins, sign-outs, and changes to keys and namespaces, newest first: which key, when, from which address, on
        which node. Entries are kept for the setting `audit_retention`."""
        query = audit_query(sent, self._rules)
        try:
            entries = await self._audit.read(query)
        except StoreCorrupted:
            raise
        except StoreError as error:
            raise Unavailable(f"the store can't be read now: {error}") from error
        return audit_page(entries, query.limit)
