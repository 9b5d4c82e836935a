# Made from _async/failures.py by unasync.py; edit that.
"""What failed and nobody has dealt with."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin_client._sync.pages import Pages
from tocsin_client._sync.part import Part
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import (
    DismissedFailures,
    DismissFailures,
    FailedKind,
    Failure,
    FailureGroupedBy,
    FailureList,
    FailurePage,
    ListFailureMembers,
    ListFailures,
)
from tocsin_client._values import UNSET, Instant, Unset


class Failures(Part):
    """Timers, occurrences of schedules and, of a tenant instead of a namespace, service calls that failed, until they are
    dismissed."""

    def list(
        self,
        namespace: str | Unset = UNSET,
        *,
        tenant: str | Unset = UNSET,
        since: Instant | Unset = UNSET,
        group_by: Sequence[FailureGroupedBy] | Unset = UNSET,
        limit: int | Unset = UNSET,
    ) -> FailureList:
        """Groups of failures with the same cause, those with most failures first; without namespace and tenant, those of all
        namespaces."""
        namespace = _listed(namespace, tenant)
        wanted = ListFailures(namespace=namespace, tenant=tenant, since=since, group_by=group_by, limit=limit)
        return self._run(self._ask("listFailures", FailureList.from_json, wanted.to_json()))

    def members(
        self,
        namespace: str | Unset = UNSET,
        *,
        tenant: str | Unset = UNSET,
        destination: str | Unset = UNSET,
        error: str | Unset = UNSET,
        kind: FailedKind | Unset = UNSET,
        since: Instant | Unset = UNSET,
        limit: int | Unset = UNSET,
    ) -> Pages[Failure]:
        """The failures of a group, or all, newest first; `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[Failure], str | None]]:
            query = ListFailureMembers(
                namespace=_listed(namespace, tenant),
                tenant=tenant,
                destination=destination,
                error=error,
                kind=kind,
                since=since,
                limit=limit,
                cursor=UNSET if cursor is None else cursor,
            )
            page = yield from self._ask("listFailureMembers", FailurePage.from_json, query.to_json())
            return page.failures, page.next_cursor

        return Pages(self._runner, fetch)

    def dismiss(
        self,
        namespace: str | Unset = UNSET,
        *,
        tenant: str | Unset = UNSET,
        ids: Sequence[str] | Unset = UNSET,
        destination: str | Unset = UNSET,
        error: str | Unset = UNSET,
        kind: FailedKind | Unset = UNSET,
        all: bool | Unset = UNSET,
    ) -> DismissedFailures:
        """Removes failures from the list: by their ids, those of a group, or all. Repeat it while the answer has `more`."""
        wanted = DismissFailures(
            namespace=namespace, tenant=tenant, ids=ids, destination=destination, error=error, kind=kind, all=all
        )
        return self._run(self._ask("dismissFailures", DismissedFailures.from_json, wanted.to_json()))


def _listed(namespace: str | Unset, tenant: str | Unset) -> str | Unset:
    """The namespace of a list: all of them, unless something is named."""
    return "*" if namespace is UNSET and tenant is UNSET else namespace
