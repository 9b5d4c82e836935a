"""Rules of flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin_client._async.pages import AsyncPages
from tocsin_client._async.part import Part
from tocsin_client._core import flows
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import (
    CallbackBatch,
    DeleteFlow,
    Flow,
    FlowLimits,
    FlowName,
    FlowPage,
    ListFlows,
    PauseFlow,
    PutFlow,
)
from tocsin_client._values import UNSET, Instant, Unset


class AsyncFlows(Part):
    """Rules that limit how many attempts begin, and are in flight at once, of timers and schedules with the same `flow_key`.
    `match` is a flow key, or a prefix of flow keys, which ends with a colon."""

    async def put(
        self,
        namespace: str,
        match: str,
        *,
        per_key: FlowLimits | Mapping[str, Any] | Unset = UNSET,
        total: FlowLimits | Mapping[str, Any] | Unset = UNSET,
        close_on_retry_after: bool | Unset = UNSET,
        callback_batch: CallbackBatch | Mapping[str, Any] | Unset = UNSET,
        managed_by: str | None | Unset = UNSET,
        expected_version: int | Unset = UNSET,
    ) -> Flow:
        """Creates the rule, or replaces all its limits; one that is paused stays so. TooManyFlows: the namespace has as many
        as it can have. VersionConflict: it has not the expected version; 0: there must be none."""
        wanted = PutFlow(
            namespace=namespace,
            match=match,
            per_key=per_key,
            total=total,
            close_on_retry_after=close_on_retry_after,
            callback_batch=callback_batch,
            managed_by=managed_by,
            expected_version=expected_version,
        )
        name = _name(namespace, match)
        return await self._run(self._put("putFlow", Flow.from_json, wanted.to_json(), "getFlow", name))

    async def get(self, namespace: str, match: str) -> Flow:
        """The rule, and what is in flight and waits. FlowNotFound: there is none with exactly this match."""
        return await self._run(self._ask("getFlow", Flow.from_json, _name(namespace, match)))

    def list(self, namespace: str, *, limit: int | Unset = UNSET) -> AsyncPages[Flow]:
        """The rules of a namespace, by what they match; `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[Flow], str | None]]:
            query = ListFlows(namespace=namespace, limit=limit, cursor=UNSET if cursor is None else cursor)
            page = yield from self._ask("listFlows", FlowPage.from_json, query.to_json())
            return page.flows, page.next_cursor

        return AsyncPages(self._runner, fetch)

    async def pause(self, namespace: str, match: str, *, until: Instant | Unset = UNSET) -> Flow:
        """Lets nothing of the rule's keys begin until an instant, or until `resume`. FlowNotFound: there is no such rule."""
        wanted = PauseFlow(namespace=namespace, match=match, until=until)
        return await self._run(self._ask("pauseFlow", Flow.from_json, wanted.to_json()))

    async def resume(self, namespace: str, match: str) -> Flow:
        """Ends a pause. FlowNotFound: there is no such rule."""
        return await self._run(self._ask("resumeFlow", Flow.from_json, _name(namespace, match)))

    async def delete(self, namespace: str, match: str, *, expected_version: int | Unset = UNSET) -> None:
        """Deletes the rule: its keys are subject to the rule with the next longest prefix, or not limited. FlowNotFound:
        there is no such rule. VersionConflict: it has not the expected version."""
        wanted = DeleteFlow(namespace=namespace, match=match, expected_version=expected_version)
        await self._run(flows.delete_flow(self._session, wanted, self._options))


def _name(namespace: str, match: str) -> dict[str, Any]:
    return FlowName(namespace=namespace, match=match).to_json()
