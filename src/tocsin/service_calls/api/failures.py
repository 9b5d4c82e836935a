"""Service calls that failed and nobody has dealt with: grouped by cause, listed, dismissed, and retried by jobs."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from tocsin.model.errors import FieldError, InvalidInput, ServiceCallNotFound
from tocsin.model.failure import split_failure
from tocsin.model.failure_groups import (
    ANY_GROUP,
    FAILURES_READ_MAX,
    CountedFailures,
    FailedKind,
    FailureGroups,
    Grouping,
    GroupKey,
    Sample,
)
from tocsin.model.ids import is_uuid7
from tocsin.model.instants import INSTANT_MAX, INSTANT_MIN
from tocsin.model.opaque import from_opaque, to_opaque
from tocsin.model.timer import LoggedAttempt
from tocsin.ports.agent_calls import CallFailure, CallFailurePlace, Tenants
from tocsin.ports.clock import Clock
from tocsin.service_calls.messages import CallKey, DismissFailure, Message, RetryServiceCall
from tocsin.service_calls.ports import CallQueries, ExecutionRecord
from tocsin.tasks import in_parallel

#: Failures of one read: so many are counted in a few milliseconds, between which other requests are served.
_READ_ROWS = 5_000
#: Failures that one request dismisses at most, each by a command; and commands on their way at once.
DISMISSED_MAX, _COMMANDS_MAX = 5_000, 200
#: Failures read in detail at once.
_DETAILED_MAX = 1_000
#: Samples that one call reads at once; and calls that a process serves at once.
_READS_MAX, _CALLS_MAX = 8, 2
_KIND = b"c"
_PLACE, _HANDLE = struct.Struct(">q16s16s"), struct.Struct(">cq16s16s")
_BAD_CURSOR = "is not a valid cursor; send nextCursor of the previous page unchanged"

#: Sends a command of a tenant with a correlation id, and returns when it is durable.
Command = Callable[[Message, str, str], Awaitable[object]]
#: The place of a failure, and what it has in common with others.
_Cause = tuple[CallFailurePlace, str]


@dataclass(frozen=True, slots=True)
class CallFailureFilter:
    """Which failures: of these tenants, those since an instant (microseconds), and those of one group."""

    tenants: Tenants
    since: int | None = None
    group: GroupKey = ANY_GROUP


def key_of(tenant_id: str, failure: str) -> GroupKey:
    """The group of a failure, grouped by everything."""
    return GroupKey(None, *split_failure(failure), FailedKind.CALL, tenant_id)


class CallFailures:
    """Lists, samples, dismisses and retries failures, those of the last `retention_us`. Reads raise StoreError, commands the
    errors of `ServiceCalls`; bad cursors and ids are InvalidInput. It is the port `FailedCalls`."""

    def __init__(self, queries: CallQueries, command: Command, clock: Clock, retention_us: int) -> None:
        self._queries, self._command, self._clock, self._retention_us = queries, command, clock, retention_us
        self._calls = asyncio.Semaphore(_CALLS_MAX)

    async def groups(self, wanted: CallFailureFilter, by: Sequence[str], limit: int) -> FailureGroups[CallFailure]:
        """The failures of the filter in groups by these fields, with samples."""
        grouping: Grouping[_Cause] = Grouping(by, lambda cause: key_of(cause[0].tenant_id, cause[1]))
        async with self._calls:
            walk = self._walk(wanted, None)
            async for causes in walk:
                for place, failure in causes:
                    grouping.add((place, failure), (place.tenant_id, failure), place.failed_at)
            found = grouping.first(limit, walk.at_least)
            newest = [[place for place, _ in group.newest] for group in found.groups]
            details = {each.place: each for each in await self._detailed([place for some in newest for place in some])}
            groups = [
                CountedFailures(group.key, group.instants, [details[place] for place in places if place in details])
                for group, places in zip(found.groups, newest, strict=True)
            ]
            await in_parallel(self._sample, groups, asyncio.Semaphore(_READS_MAX))
        return FailureGroups(groups, found.further, found.total, found.at_least)

    async def count(self, wanted: CallFailureFilter, number_max: int) -> tuple[int, bool]:
        """How many failures one short look finds, and whether there may be more."""
        async with self._calls:
            walk = self._walk(wanted, None, number_max)
            return sum([len(causes) async for causes in walk]), walk.at_least

    async def members(
        self, wanted: CallFailureFilter, limit: int, cursor: str | None
    ) -> tuple[list[CallFailure], str | None]:
        """A page of failures, newest first, and the cursor of the next page if one may follow."""
        places: list[CallFailurePlace] = []
        async with self._calls:
            walk = self._walk(wanted, None if cursor is None else _place_of(cursor), rows=limit + 1)
            async for causes in walk:
                places += [place for place, _ in causes]
                if len(places) > limit:
                    return await self._detailed(places[:limit]), _cursor_at(places[limit - 1])
            found = await self._detailed(places)
        return found, _cursor_at(walk.place) if walk.at_least and walk.place is not None else None

    async def sample(self, failure: CallFailure) -> Sample:
        """The request and the last attempt of a failure."""
        executions = await self._queries.executions(CallKey(failure.tenant_id, failure.service_call_id))
        last = next((each for each in executions if each.execution_id == failure.execution_id), None)
        if last is None:
            return Sample(None, None, None)
        return Sample(last.request_method, last.request_url, _attempt(last), None, last.request_body or "")

    async def dismiss(self, wanted: CallFailureFilter, correlation_id: str) -> tuple[int, bool]:
        """Removes failures of the filter from the list, at most DISMISSED_MAX; how many, and whether there may be more."""
        places: list[CallFailurePlace] = []
        async with self._calls:
            walk = self._walk(wanted, None)
            async for causes in walk:
                places += [place for place, _ in causes]
                if len(places) >= DISMISSED_MAX:
                    break
            failures = await self._detailed(places[:DISMISSED_MAX])
        handles = [(each.tenant_id, each.service_call_id, each.execution_id) for each in failures]
        await self._dismiss(handles, correlation_id)
        return len(failures), len(places) >= DISMISSED_MAX or walk.at_least

    async def dismiss_ids(self, tenant_id: str, ids: Iterable[str], correlation_id: str) -> int:
        """Removes these failures of a tenant from the list; how many, including those that were not listed any more."""
        named = [_named_by(handle, position) for position, handle in enumerate(ids)]
        await self._dismiss([(tenant_id, *each) for each in named], correlation_id)
        return len(named)

    async def _dismiss(self, handles: Sequence[tuple[str, str, str]], correlation_id: str) -> None:
        async def dismiss(handle: tuple[str, str, str]) -> None:
            tenant_id, call_id, execution_id = handle
            # Its retention may be over.
            with suppress(ServiceCallNotFound):
                await self._command(DismissFailure(call_id, execution_id), tenant_id, correlation_id)

        await in_parallel(dismiss, handles, asyncio.Semaphore(_COMMANDS_MAX))

    # ------------------------------------------------------------------ the port FailedCalls

    async def failures(self, tenants: Tenants, limit: int, cursor: str | None) -> tuple[list[CallFailure], str | None]:
        return await self.members(CallFailureFilter(tenants), limit, cursor)

    def cursor_behind(self, failure: CallFailure) -> str:
        return _cursor_at(failure.place)

    async def retry_failure(self, failure: CallFailure, correlation_id: str) -> None:
        command = RetryServiceCall(failure.service_call_id, failure.execution_id)
        await self._command(command, failure.tenant_id, correlation_id)

    # ------------------------------------------------------------------ reading

    def _walk(
        self,
        wanted: CallFailureFilter,
        before: CallFailurePlace | None,
        read_max: int = FAILURES_READ_MAX,
        rows: int = _READ_ROWS,
    ) -> _Walk:
        since_us = max(self._clock.now_us() - self._retention_us, wanted.since or 0)
        if isinstance(wanted.tenants, tuple) and len(wanted.tenants) == 1:
            # It has an index of its own.
            wanted = replace(wanted, tenants=wanted.tenants[0])
        filters = isinstance(wanted.tenants, tuple) or wanted.group != ANY_GROUP
        read = partial(self._queries.causes, wanted.tenants, since_us)
        return _Walk(read, wanted, before, read_max, _READ_ROWS if filters else rows)

    async def _detailed(self, places: Sequence[CallFailurePlace]) -> list[CallFailure]:
        found: list[CallFailure] = []
        for begin in range(0, len(places), _DETAILED_MAX):
            found += await self._queries.failures(places[begin : begin + _DETAILED_MAX])
        return found

    async def _sample(self, group: CountedFailures[CallFailure]) -> None:
        # Since it was counted, each may have been retried.
        if group.newest:
            group.sample = await self.sample(group.newest[0])


class _Walk:
    """The failures of a filter, newest first, from bounded reads: an asynchronous iterator of those that are wanted. `place`
    is how far it has come. `at_least`: it stopped before the end, because it had read `read_max`."""

    def __init__(
        self,
        read: Callable[[CallFailurePlace | None, int], Awaitable[list[_Cause]]],
        wanted: CallFailureFilter,
        before: CallFailurePlace | None,
        read_max: int,
        rows: int,
    ) -> None:
        self.place = before
        self.at_least = False
        self._read, self._wanted, self._left, self._rows = read, wanted, read_max, rows

    async def __aiter__(self) -> AsyncIterator[list[_Cause]]:
        while self._left > 0 and self._wanted.tenants != ():
            rows = min(self._rows, self._left)
            causes = await self._read(self.place, rows)
            self._left -= len(causes)
            if causes:
                self.place = causes[-1][0]
            yield [cause for cause in causes if self._is_wanted(cause)]
            if len(causes) < rows:
                return
        self.at_least = self._wanted.tenants != ()

    def _is_wanted(self, cause: _Cause) -> bool:
        (_, _, tenant_id), failure = cause
        tenants, group = self._wanted.tenants, self._wanted.group
        if isinstance(tenants, tuple) and tenant_id not in tenants:
            return False
        return group == ANY_GROUP or group.includes(key_of(tenant_id, failure))


def _attempt(execution: ExecutionRecord) -> LoggedAttempt:
    ended_at = execution.started_at if execution.finished_at is None else execution.finished_at
    return LoggedAttempt(
        execution.started_at,
        ended_at - execution.started_at,
        execution.response_status or 0,
        execution.error_message,
        execution.response_body or None,
    )


# ---------------------------------------------------------------------- handles


def failure_id(failure: CallFailure) -> str:
    """The opaque text by which clients name a failure within its tenant."""
    ids = (uuid.UUID(each).bytes for each in (failure.service_call_id, failure.execution_id))
    return to_opaque(_HANDLE.pack(_KIND, failure.failed_at, *ids))


def _named_by(handle: str, position: int) -> tuple[str, str]:
    """The call and the execution that a handle names."""
    try:
        kind, _, *ids = _HANDLE.unpack(from_opaque(handle))
        call_id, execution_id = (str(uuid.UUID(bytes=each)) for each in ids)
        if kind != _KIND or not (is_uuid7(call_id) and is_uuid7(execution_id)):
            raise ValueError("not a handle of a call")
    except (struct.error, ValueError):
        reason = "is not a failureId that a list of a tenant's failures returned"
        raise InvalidInput(FieldError(f"ids[{position}]", reason)) from None
    return call_id, execution_id


def _cursor_at(place: CallFailurePlace) -> str:
    ids = (uuid.UUID(each).bytes for each in place[1:])
    return to_opaque(_PLACE.pack(place.failed_at, *ids))


def _place_of(cursor: str) -> CallFailurePlace:
    try:
        failed_at, *ids = _PLACE.unpack(from_opaque(cursor))
        if not INSTANT_MIN <= failed_at <= INSTANT_MAX:
            raise ValueError("not an instant")
    except (struct.error, ValueError):
        raise InvalidInput(FieldError("cursor", _BAD_CURSOR)) from None
    call_id, tenant_id = (str(uuid.UUID(bytes=each)) for each in ids)
    return CallFailurePlace(failed_at, call_id, tenant_id)
