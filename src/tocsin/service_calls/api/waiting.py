"""Service calls that wait for their due time or for a retry, as jobs delete them."""

from __future__ import annotations

from tocsin.model.job import RowFilter
from tocsin.ports.agent_calls import Tenants, WaitingCall
from tocsin.service_calls.api.failures import Command
from tocsin.service_calls.api.validation import decode_cursor, encode_cursor
from tocsin.service_calls.messages import DeleteServiceCall, JobFilter
from tocsin.service_calls.ports import WAITING, CallFilter, CallQueries, PagePosition, is_deleted

#: Calls that are read at once, each with its request: the largest ones take some 10 MiB.
_READ_ROWS = 100


class DeletableCalls:
    """The port `WaitingCalls`. A page of one tenant reads only calls that wait. Over all tenants there is no index of these:
    it passes over others, too, a bounded number of them."""

    def __init__(self, queries: CallQueries, command: Command) -> None:
        self._queries, self._command = queries, command

    async def page(
        self, tenants: Tenants, wanted: RowFilter, cursor: str | None
    ) -> tuple[list[WaitingCall], str | None]:
        """A page, of what is left of a bounded read. Its filter is that of the deletion, not the database's."""
        asked = CallFilter(
            tenants,
            frozenset({wanted.status}) if wanted.status else WAITING,
            submitted_from=wanted.created_after,
            submitted_to=wanted.created_before,
            before=None if cursor is None else decode_cursor(cursor),
            limit=_READ_ROWS,
        )
        if isinstance(tenants, str):
            calls, reached = await self._queries.page(asked), None
        else:
            calls, reached = await self._queries.search(asked)
        places = [PagePosition(call.submitted_at, call.service_call_id) for call in calls]
        end = places[-1] if len(calls) == _READ_ROWS else reached
        found = [
            WaitingCall(call.tenant_id, call.service_call_id, encode_cursor(place))
            for call, place in zip(calls, places, strict=True)
            if is_deleted(wanted, call, call.tags)
        ]
        return found, None if end is None else encode_cursor(end)

    async def delete(self, call: WaitingCall, only_if: RowFilter, correlation_id: str) -> None:
        command = DeleteServiceCall(call.service_call_id, JobFilter.of(only_if))
        await self._command(command, call.tenant_id, correlation_id)
