"""What jobs change: for each kind, a page of rows behind a cursor, and the write that changes each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from tocsin.model.access import EVERY
from tocsin.model.errors import TimerNotReplayable, TocsinError
from tocsin.model.failure import split_failure
from tocsin.model.failure_groups import FailedKind
from tocsin.model.job import Job, JobAction, JobKind, RowFilter
from tocsin.model.namespace import RESERVED_PREFIX
from tocsin.model.schedule import DefinitionChanges, Edit, FailedOccurrence, Pause, Replay, Resume
from tocsin.model.timer import Changes, Status
from tocsin.ports.store import GENERATION_END, FailureRow
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.failures import FailureFilter, kind_of, namespace_of
from tocsin.timers.listing import IdListRequest, ListRequest, TimerView, write_cursor
from tocsin.timers.service import TimerService

#: Rows of a page, and rows that a filter may leave out while one is read: a call of the store is short enough for clients'
#: lists not to wait for it noticeably.
PAGE_ROWS, _SCAN_ROWS_MAX = 500, 10_000


class JobRow(NamedTuple):
    """A row that matches, and the cursor behind it. `change` makes the write that changes it, a new one each time, because a
    write belongs to the engine that has taken it; None if the row is as wanted already. It raises the error of a row that
    can't be changed, and Unavailable."""

    namespace: str
    id: str
    shard_id: int
    cursor: str
    change: Callable[[], Awaitable[WriteOp | None]]


class Page(NamedTuple):
    """Rows that match, and the cursor of the next page; None if there is none."""

    rows: list[JobRow]
    end: str | None


async def read_page(service: TimerService, job: Job, cursor: str | None, latest_us: int) -> Page:
    """The rows behind the cursor that the job changes. None is moved to an instant later than `latest_us`. Raises
    Unavailable."""
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
        _row(job, view, write_cursor((view.next_attempt_at or 0, view.uuid, GENERATION_END)) or "", latest_us)
        for view in views
        if _is_wanted(job, view)
    ]
    return Page(rows, end)


async def _page_of_schedules(service: TimerService, job: Job, cursor: str | None, latest_us: int) -> Page:
    several = job.namespace == EVERY
    request = IdListRequest(cursor or "", PAGE_ROWS, "", job.filter.matches, reads_max=1, of_several=several)
    views, end = await service.list_schedules(None if several else job.namespace, request, lambda view: view)
    rows = [
        _row(job, view, request.position(view.timer.namespace, view.timer.id), latest_us)
        for view in views
        if _is_wanted(job, view)
    ]
    return Page(rows, end)


def _is_wanted(job: Job, view: TimerView) -> bool:
    return job.filter.matches(view.timer) and not view.timer.namespace.startswith(RESERVED_PREFIX)


def _row(job: Job, view: TimerView, cursor: str, latest_us: int) -> JobRow:
    timer = view.timer
    return JobRow(timer.namespace, timer.id, view.shard_id, cursor, partial(_change, job, view, latest_us))


async def _change(job: Job, view: TimerView, latest_us: int) -> WriteOp | None:
    timer, schedule, action = view.timer, view.timer.schedule, job.action
    op = WriteOp(OpKind.SCHEDULE if schedule else OpKind.UPDATE, view.uuid, timer.namespace, only_if=job.filter)
    if action in (JobAction.CANCEL, JobAction.DELETE):
        op.kind = OpKind.DELETE
    elif action is JobAction.SHIFT:
        if not 0 <= timer.execute_at + job.shift_by_us <= latest_us:
            raise TocsinError("it would be due before 1970, or later than timers may be")
        op.changes = Changes(shift_us=job.shift_by_us)
    elif action is JobAction.SET_URL:
        if timer.url == job.url:
            return None
        op.changes = Changes(url=job.url)
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
    failures, end = await service.failures.members(scope, PAGE_ROWS, cursor)
    rows = [
        JobRow(
            namespace_of(row),
            row.timer_id,
            service.namespaces.shard_of(namespace_of(row), row.uuid),
            write_cursor(row.place) or "",
            partial(replay_of, service, row, job.url),
        )
        for row in failures
        if _has_failed(job.filter, row)
    ]
    return Page(rows, end)


def _has_failed(wanted: RowFilter, row: FailureRow) -> bool:
    """Whether the failure matches. Destination and error are those of a group, as a whole."""
    destination, error = split_failure(row.failure)
    return (
        row.failed_at < wanted.created_before
        and row.timer_id.startswith(wanted.id_prefix)
        and wanted.kind in ("", kind_of(row))
        and wanted.destination in ("", destination)
        and wanted.error in ("", error)
        and (wanted.execute_after is None or row.execute_at >= wanted.execute_after)
        and (wanted.execute_before is None or row.execute_at < wanted.execute_before)
        and not row.namespace.startswith(RESERVED_PREFIX)
    )


async def replay_of(service: TimerService, row: FailureRow, url: str = "") -> WriteOp:
    """The replay of the very run that failed, of a timer or notification at another URL if one is given. Raises
    TimerNotReplayable, Unavailable."""
    if kind_of(row) is not FailedKind.OCCURRENCE:
        changes = Changes(url=url) if url else Changes()
        return WriteOp(OpKind.REPLAY, row.uuid, namespace_of(row), expected=row.generation, changes=changes)
    run = await service.failures.run_of(row)
    if run is None:
        raise TimerNotReplayable("the occurrence is no longer kept in the history of its schedule")
    again = Replay((FailedOccurrence(run.execute_at, run.firing),), (row.generation,))
    return WriteOp(OpKind.SCHEDULE, row.uuid, namespace_of(row), change=again)
