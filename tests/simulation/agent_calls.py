"""The service agent as jobs see it, in memory: its failed calls, and those that wait."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.model.errors import ServiceCallNotFailed, ServiceCallNotFound, ServiceCallNotScheduled, Unavailable
from tocsin.model.job import RowFilter
from tocsin.ports.agent_calls import CallFailure, Tenants, WaitingCall

from .node import Node


class FailedInMemory:
    """Failed calls. The next retries raise the `faults`."""

    def __init__(self) -> None:
        self.failed: dict[str, CallFailure] = {}
        self.retried: list[str] = []
        self.faults: list[Exception] = []

    async def failures(
        self, tenants: Tenants, limit: int, cursor: str | None
    ) -> tuple[Sequence[CallFailure], str | None]:
        after = None if cursor is None else int(cursor)
        newest = sorted(self.failed.values(), reverse=True, key=lambda failure: failure.place)
        found = [each for each in newest if after is None or each.failed_at < after]
        return found[:limit], self.cursor_behind(found[limit - 1]) if len(found) > limit else None

    def cursor_behind(self, failure: CallFailure) -> str:
        return str(failure.failed_at)

    async def retry_failure(self, failure: CallFailure, correlation_id: str) -> None:
        if self.faults:
            raise self.faults.pop()
        if self.failed.get(failure.service_call_id) != failure:
            raise ServiceCallNotFailed("it has been attempted again since")
        del self.failed[failure.service_call_id]
        self.retried.append(failure.service_call_id)


class WaitingInMemory:
    """Calls by id: when they were submitted, their status and tags. The next deletes raise the `faults`, and so many of those
    after them delete the call though their reply is lost."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[int, str, tuple[str, ...]]] = {}
        self.deleted: list[str] = []
        self.faults: list[Exception] = []
        self.lost_replies = 0

    def _matches(self, call_id: str, wanted: RowFilter) -> bool:
        submitted_at, status, tags = self.calls[call_id]
        return status != "Running" and wanted.matches_call(call_id, "", status, tags, "", submitted_at, submitted_at)

    async def page(
        self, tenants: Tenants, wanted: RowFilter, cursor: str | None
    ) -> tuple[Sequence[WaitingCall], str | None]:
        newest = sorted(self.calls, reverse=True, key=lambda each: self.calls[each][0])
        left = [each for each in newest if cursor is None or self.calls[each][0] < int(cursor)]
        places = [(each, str(self.calls[each][0])) for each in left[:20]]
        found = [WaitingCall("t", each, place) for each, place in places if self._matches(each, wanted)]
        return found, places[-1][1] if len(left) > 20 else None

    async def delete(self, call: WaitingCall, only_if: RowFilter, correlation_id: str) -> None:
        if self.faults:
            raise self.faults.pop()
        if call.service_call_id not in self.calls:
            raise ServiceCallNotFound("it does not exist")
        if not self._matches(call.service_call_id, only_if):
            raise ServiceCallNotScheduled("it does not match any more")
        del self.calls[call.service_call_id]
        self.deleted.append(call.service_call_id)
        if self.lost_replies:
            self.lost_replies -= 1
            raise Unavailable("the reply was lost")


class Agent:
    """The service agent, on one node or on none."""

    def __init__(self) -> None:
        self.here: Node | None = None
        self.failures = FailedInMemory()
        self.waiting = WaitingInMemory()
