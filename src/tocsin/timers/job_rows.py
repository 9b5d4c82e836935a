"""What jobs change: for each kind, a page of rows behind a cursor, and the write that changes each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from tocsin.model.access import EVERY
from tocsin.model.errors import NamespaceNotFound, StoreError, TimerNotReplayable, TocsinError, Unavailable
from tocsin.model.failure_groups import FailedKind
from tocsin.model.job import Job, JobAction, JobKind, RowFilter
from tocsin.model.namespace import RESERVED_PREFIX
from tocsin.model.schedule import DefinitionChanges, Edit, FailedOccurrence, Pause, Replay, Resume
from tocsin.model.sealed import url_opened, url_sealed
from tocsin.model.timer import Changes, Status
from tocsin.ports.agent_calls import AgentCalls, CallFailure, WaitingCall
from tocsin.ports.seals import SealBroken, sealer
from tocsin.ports.store import GENERATION_END, FailureRow
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.failures import FailureFilter, kind_of, namespace_of
from tocsin.timers.jobs import sealed_in
from tocsin.timers.listing import IdListRequest, ListRequest, TimerView, write_cursor
from tocsin.timers.service import TimerService

#: Rows of a page, and rows that a filter may leave out while one is read: a call of the store is short enough for clients'
#: lists not to wait for it noticeably.
PAGE_ROWS, _SCAN_ROWS_MAX = 500, 10_000
#: A failure that was read so short a time ago is not looked for again: it would be a read for each row of a fast job.
_FRESH_US = 250_000
_DAMAGED = "its stored failure is damaged, and does not show whose it is"


#: Returns the service agent, while it runs here.
CallsHere = Callable[[], AgentCalls | None]
#: Makes a change durable. It raises the error of a row that can't be changed, and Unavailable.
Write = Callable[[], Awaitable[object]]


class JobRow(NamedTuple):
    """A row that matches, and the cursor behind it. `change` prepares the write that changes it, a new one each time, because
    a write belongs to the engine that has taken it; None if the row is as wanted already. It raises the same errors. It is
    given the instant at which a timer that the row replays is due, wall clock in microseconds. Calls have no shard."""

    namespace: str
    id: str
    cursor: str
    change: Callable[[int], Awaitable[Write | None]]
    tenant: str = ""
    shard_id: int = 0


class Page(NamedTuple):
    """Rows that match, and the cursor of the next page; None if there is none."""

    rows: list[JobRow]
    end: str | None


async def read_page(service: TimerService, calls: CallsHere, job: Job, cursor: str | None, latest_us: int) -> Page:
    """The rows behind the cursor that the job changes. None is moved to an instant later than `latest_us`. Raises
    Unavailable."""
    if job.tenant:
        return await _page_of_calls(calls, job, cursor)
    if job.kind is JobKind.FAILURES:
        return await _page_of_failures(service, job, cursor)
    read = _page_of_timers if job.kind is JobKind.TIMERS else _page_of_schedules
    return await read(service, job, cursor, latest_us)


# ---------------------------------------------------------------------- timers and schedules


async def _page_of_timers(service: TimerService, job: Job, cursor: str | None, latest_us: int) -> Page:
    wanted = job.filter
    request = ListRequest(
        None if job.namespace == EVERY else job.namespace, frozenset({Status.PENDING}), wanted.tags, wanted.id_prefix,
        wanted.execute_after, wanted.execute_before, wanted.destination, wanted.error, PAGE_ROWS, cursor,
        reads_max=1, scan_rows_max=_SCAN_ROWS_MAX,
    )  # fmt: skip
    views, end = await service.list(request)
    # A live row's place is behind its instant and uuid, whatever its generation has become.
    rows = [
        _row(service, job, view, write_cursor((view.next_attempt_at or 0, view.uuid, GENERATION_END)) or "", latest_us)
        for view in views
        if _is_wanted(job, view)
    ]
    return Page(rows, end)


async def _page_of_schedules(service: TimerService, job: Job, cursor: str | None, latest_us: int) -> Page:
    several = job.namespace == EVERY
    request = IdListRequest(cursor or "", PAGE_ROWS, "", job.filter.matches, reads_max=1, of_several=several)
    views, end = await service.list_schedules(None if several else job.namespace, request, lambda view: view)
    rows = [
        _row(service, job, view, request.position(view.timer.namespace, view.timer.id), latest_us)
        for view in views
        if _is_wanted(job, view)
    ]
    return Page(rows, end)


def _is_wanted(job: Job, view: TimerView) -> bool:
    return job.filter.matches(view.timer) and not view.timer.namespace.startswith(RESERVED_PREFIX)


def _row(service: TimerService, job: Job, view: TimerView, cursor: str, latest_us: int) -> JobRow:
    timer = view.timer
    change = partial(_write, service, view.shard_id, partial(_change, service, job, view, latest_us))
    return JobRow(timer.namespace, timer.id, cursor, change, shard_id=view.shard_id)


async def _write(
    service: TimerService, shard_id: int, change: Callable[[int], Awaitable[WriteOp | None]], due_us: int
) -> Write | None:
    op = await change(due_us)
    return None if op is None else partial(service.write, shard_id, op)


def _url_of(service: TimerService, job: Job, namespace: str) -> str:
    """The job's URL as timers of the namespace have it, its secrets sealed. Raises TocsinError."""
    try:
        url = url_opened(job.url, lambda sealed: service.seals.open(sealed, sealed_in(job)))
    except SealBroken as error:
        raise TocsinError(f"a secret in the job's URL can't be decrypted: {error}") from None
    return url_sealed(url, sealer(service.seals, namespace))


async def _change(service: TimerService, job: Job, view: TimerView, latest_us: int, due_us: int) -> WriteOp | None:
    timer, schedule, action = view.timer, view.timer.schedule, job.action
    op = WriteOp(OpKind.SCHEDULE if schedule else OpKind.UPDATE, view.uuid, timer.namespace, only_if=job.filter)
    if action in (JobAction.CANCEL, JobAction.DELETE):
        op.kind = OpKind.DELETE
    elif action is JobAction.SHIFT:
        if not 0 <= timer.execute_at + job.shift_by_us <= latest_us:
            raise TocsinError("it would be due before 1970, or later than timers may be")
        op.changes = Changes(shift_us=job.shift_by_us)
    elif action is JobAction.SET_URL:
        url = _url_of(service, job, timer.namespace)
        if timer.url == url:
            return None
        op.changes = await service.credentials.checked(timer.namespace, Changes(url=url))
        op.change = Edit(DefinitionChanges()) if schedule else None
    else:
        pauses = action is JobAction.PAUSE
        if schedule is None or pauses == (schedule.state.paused is not None):
            return None
        op.change = Pause() if pauses else Resume()
    return op


# ---------------------------------------------------------------------- failures


async def _page_of_failures(service: TimerService, job: Job, cursor: str | None) -> Page:
    """The newest ones first: those that fail meanwhile come before them, and are none of the job's."""
    scope = FailureFilter(None if job.namespace == EVERY else job.namespace)
    read_at = service.now_us()
    failures, end = await service.failures.members(scope, PAGE_ROWS, cursor)
    # Another node may have created some just now.
    await service.namespaces.known_among({namespace_of(row) for row in failures})
    # A piece of work each, also those that do not match.
    rows = (_failed_row(service, job, row, read_at) if _has_failed(job.filter, row) else None for row in failures)
    return Page([row for row in await service.turns.each(rows) if row is not None], end)


def _failed_row(service: TimerService, job: Job, row: FailureRow, read_at: int) -> JobRow:
    namespace, cursor = namespace_of(row), write_cursor(row.place) or ""
    try:
        shard_id = service.namespaces.shard_of(namespace, row.uuid)
    except (NamespaceNotFound, Unavailable) as error:
        # A damaged failure has lost its namespace. Those behind it are replayed.
        return JobRow(namespace, row.timer_id, cursor, partial(_refused, str(error) if namespace else _DAMAGED))
    change = partial(_write, service, shard_id, partial(_replay, service, row, job, read_at))
    return JobRow(namespace, row.timer_id, cursor, change, shard_id=shard_id)


async def _refused(reason: str, due_us: int) -> Write | None:
    raise TocsinError(reason)


async def _replay(service: TimerService, row: FailureRow, job: Job, read_at: int, due_us: int) -> WriteOp | None:
    # The write itself is refused if the timer has another run since, but not if somebody has dismissed the failure, nor if
    # an occurrence was replayed.
    fresh = 0 <= service.now_us() - read_at < _FRESH_US and kind_of(row) is not FailedKind.OCCURRENCE
    if not fresh and not await service.failures.is_listed(row):
        return None
    return await replay_of(service, row, job.url and _url_of(service, job, namespace_of(row)), due_us)


def _has_failed(wanted: RowFilter, row: FailureRow) -> bool:
    return wanted.matches_failure(
        row.timer_id, kind_of(row), row.failure, row.failed_at, row.execute_at
    ) and not row.namespace.startswith(RESERVED_PREFIX)


async def replay_of(service: TimerService, row: FailureRow, url: str = "", due_us: int | UnsetType = UNSET) -> WriteOp:
    """The replay of the very run that failed: of a timer or notification at another sealed URL, and at an instant, if these
    are given. Raises TimerNotReplayable, Unavailable."""
    if kind_of(row) is not FailedKind.OCCURRENCE:
        changes = Changes(execute_at=due_us, url=url or UNSET)
        changes = await service.credentials.checked(namespace_of(row), changes)
        return WriteOp(OpKind.REPLAY, row.uuid, namespace_of(row), expected=row.generation, changes=changes)
    run = await service.failures.run_of(row)
    if run is None:
        raise TimerNotReplayable("the occurrence is no longer kept in the history of its schedule")
    again = Replay((FailedOccurrence(run.execute_at, run.firing),), (row.generation,))
    return WriteOp(OpKind.SCHEDULE, row.uuid, namespace_of(row), change=again)


# ---------------------------------------------------------------------- service calls


async def _page_of_calls(calls: CallsHere, job: Job, cursor: str | None) -> Page:
    """The newest ones first, like other failures: those that come meanwhile are none of the job's."""
    read = _page_of_failed if job.kind is JobKind.FAILURES else _page_of_waiting
    try:
        return await read(calls, job, None if job.tenant == EVERY else job.tenant, cursor)
    except StoreError as error:
        raise Unavailable(f"the service agent's database does not answer: {error}") from error


async def _page_of_failed(calls: CallsHere, job: Job, tenant: str | None, cursor: str | None) -> Page:
    read = _agent(calls).failures
    failures, end = await read.failures(tenant, PAGE_ROWS, cursor)
    rows = [
        JobRow("", each.service_call_id, read.cursor_behind(each), partial(_retry, calls, each, job), each.tenant_id)
        for each in failures
        if _is_wanted_call(job.filter, each)
    ]
    return Page(rows, end)


async def _page_of_waiting(calls: CallsHere, job: Job, tenant: str | None, cursor: str | None) -> Page:
    waiting, end = await _agent(calls).waiting.page(tenant, job.filter, cursor)
    rows = [
        JobRow("", each.service_call_id, each.cursor, partial(_delete, calls, each, job), each.tenant_id)
        for each in waiting
    ]
    return Page(rows, end)


def _agent(calls: CallsHere) -> AgentCalls:
    found = calls()
    if found is None:
        raise Unavailable("the service agent has just moved to another node")
    return found


def _is_wanted_call(wanted: RowFilter, call: CallFailure) -> bool:
    return set(wanted.tags) <= set(call.tags) and wanted.matches_failure(
        call.service_call_id, FailedKind.CALL, call.failure, call.failed_at, call.due_at
    )


async def _retry(calls: CallsHere, call: CallFailure, job: Job, due_us: int) -> Write:
    # The agent that runs here now: it may have been away since the page was read.
    return partial(_agent(calls).failures.retry_failure, call, _request_of(job))


async def _delete(calls: CallsHere, call: WaitingCall, job: Job, due_us: int) -> Write:
    return partial(_agent(calls).waiting.delete, call, job.filter, _request_of(job))


def _request_of(job: Job) -> str:
    """The correlation id of its commands."""
    return f"job:{job.id}"
