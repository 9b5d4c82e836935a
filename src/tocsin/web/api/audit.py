"""The handler of the operation on the audit trail."""

from __future__ import annotations

import msgspec

from tocsin.model.errors import StoreCorrupted, StoreError, Unavailable
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.web.api.request import ApiRequest, Handler
from tocsin.web.http import wire
from tocsin.web.http.audit import audit_page, audit_query
from tocsin.web.http.reading import JsonReader


class AuditHandlers:
    """Handles list."""

    def __init__(self, audit: AuditLog, rules: InputRules) -> None:
        self._audit = audit
        self._rules = rules
        self._encode = msgspec.json.Encoder().encode
        self._list = JsonReader(wire.ListAudit)

    def by_name(self) -> dict[str, Handler]:
        """The handlers by operation name."""
        return {"listAudit": self.list}

    async def list(self, request: ApiRequest) -> bytes:
        """Returns a page of entries."""
        query = audit_query(self._list.read(request.body or b"{}"), self._rules)
        try:
            entries = await self._audit.read(query)
        except StoreCorrupted:
            raise
        except StoreError as error:
            raise Unavailable(f"the store can't be read now: {error}") from error
        return self._encode(audit_page(entries, query.limit))
