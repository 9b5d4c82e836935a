"""The audit trail."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin_client._async.pages import AsyncPages
from tocsin_client._async.part import Part
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import AuditAction, AuditEntry, AuditPage, ListAudit
from tocsin_client._values import UNSET, Instant, Unset


class AsyncAudit(Part):
    """Sign-ins, and changes of keys and namespaces. The client's key has the role admin and no other limits."""

    def list(
        self,
        *,
        action: AuditAction | Sequence[AuditAction] | Unset = UNSET,
        key_id: str | Unset = UNSET,
        subject: str | Unset = UNSET,
        after: Instant | Unset = UNSET,
        before: Instant | Unset = UNSET,
        limit: int | Unset = UNSET,
    ) -> AsyncPages[AuditEntry]:
        """All entries that match, newest first; `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[AuditEntry], str | None]]:
            query = ListAudit(
                action=[action] if isinstance(action, str) else action,
                key_id=key_id,
                subject=subject,
                after=after,
                before=before,
                limit=limit,
                cursor=UNSET if cursor is None else cursor,
            )
            page = yield from self._ask("listAudit", AuditPage.from_json, query.to_json())
            return page.entries, page.next_cursor

        return AsyncPages(self._runner, fetch)
