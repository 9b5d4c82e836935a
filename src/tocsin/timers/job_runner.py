"""Jobs at work: the node that owns the first shard does all of them, page by page, by ordinary writes at the owners of the
rows; those of service calls are done where the service agent runs, by its commands.

A page is read like a list, and each row that matches becomes one write, which the row's owner resolves when it assembles its
batch (rule 17): it checks again whether the row matches. The job's record has the place behind the last row whose write is
answered, and therefore durable or certainly without effect (rule 16). After a loss of the node, its successor does again what
came after that place. It changes no row twice: a canceled row is gone, a shifted one no longer matches, and a call's retry
names the execution that failed.

The deletion of a namespace has steps of its own (`tocsin.timers.namespace_deletion`), of which the record has the present
one. A namespace that is held for a job that has ended without deleting it, whatever was the reason, is released wherever the
runner looks at jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from tocsin.keys import ApiKeys
from tocsin.model.audit import AuditAction, AuditSource, Detail
from tocsin.model.errors import (
    NOT_DONE,
    Conflict,
    NamespaceNotFound,
    ScheduleEnded,
    ServiceCallNotFailed,
    ServiceCallNotFound,
    ServiceCallNotScheduled,
    StoreError,
    TimerNotFound,
    TimerNotPending,
    TimerPending,
    TocsinError,
    Unavailable,
)
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.job import SAMPLE_CHARS_MAX, SAMPLES_MAX, Job, JobCounts, JobError, JobKind, JobState
from tocsin.ports.audit import Actor, AuditLog
from tocsin.tasks import end_tasks, spawn
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.event_feed import FORMER_AFTER_US
from tocsin.timers.job_rows import CallsHere, JobRow, Page, read_page
from tocsin.timers.jobs import (
    JOBS,
    JobFinished,
    JobInterrupted,
    JobRowsChanged,
    every_job,
    jobs_of,
    purge,
    put,
)
from tocsin.timers.listing import cursor_instant
from tocsin.timers.namespace_deletion import EMPTY_PASSES, RECORD, ROWS, NamespaceDeletion, Row, not_empty
from tocsin.timers.service import TimerService

T = TypeVar("T")

#: How often the runner looks for jobs of other nodes: one small read.
_LOOK_S = 2.0
#: Slices of writes begin at least so long after one another, and one that is late has the rows of at most so long, which are
#: a hundred at the highest rate: clients' writes and due timers wait for few of them, while each batch has enough for its
#: fixed cost.
_SLICE_INTERVAL_US, _SLICE_MAX_US = 10_000, 20_000
#: Rows of about so long, at the rate and at the pace of those before, are changed shard by shard: a slice of few shards needs
#: few reads of what is stored, and its commit few fences.
_PART_US = 250_000
#: A replayed timer is due so long after its turn: by then it is durable, unless the store is slow, and so timers of one slice
#: begin one after another at the job's rate, and not together before others that are due.
_REPLAY_AHEAD_US = 100_000
#: Clients' writes that may wait at this node when a slice is begun; for how long in a part it waits for fewer, and with which
#: pause.
_CLIENTS_WAITING_MAX, _CLIENTS_FIRST_US, _CLIENTS_CHECK_S = 100, US_PER_SECOND, 0.02
#: The place is stored at the end of the part in which so long is over: each second, or each other one while clients' writes
#: wait.
_SAVE_INTERVAL_US = US_PER_SECOND - _PART_US
#: How long the deletion of a namespace waits for a sink that takes nothing, and how often it looks for events. What is left
#: is recognized as that of a former namespace if another one gets the name.
SINK_WAIT_US, _EVENTS_CHECK_S = 2 * FORMER_AFTER_US, 0.2
#: Pause before a call is repeated that failed.
_RETRY_S = 0.5

#: Answers to writes of rows that are not among the job's rows any more.
_GONE = (TimerNotFound, TimerNotPending, TimerPending, ScheduleEnded, ServiceCallNotFound, ServiceCallNotFailed)


class _Superseded(Exception):
    """Another node works on the job, or nobody should any more."""


class _Lost(_Superseded):
    """The record is another node's, or gone: this one has nothing to report."""


class JobRunner:
    """Works on running jobs: on those of namespaces while this node `acts_for_all`, on those of tenants while the service
    agent runs here, which `calls` returns then. Either is one node of the cluster. `fatal` is called with an error that is a
    defect."""

    def __init__(
        self,
        context: Context,
        service: TimerService,
        keys: ApiKeys,
        audit: AuditLog,
        *,
        acts_for_all: Callable[[], bool],
        calls: CallsHere,
        fatal: Callable[[BaseException], None],
    ) -> None:
        self._context, self._service, self._keys, self._audit = context, service, keys, audit
        self._acts_for_all, self._calls, self._fatal = acts_for_all, calls, fatal
        self._wake = asyncio.Event()
        self._look: asyncio.Task[None] | None = None
        self._work: dict[str, tuple[Job, asyncio.Task[None]]] = {}
        # That of the records when they were last read, and which jobs were this node's then.
        self._seen: tuple[tuple[int, ...], tuple[bool, bool]] | None = None

    @property
    def running(self) -> int:
        """Jobs that this node works on."""
        return len(self._work)

    def start(self) -> None:
        """Begins to look for jobs."""
        self._look = spawn(self._keep_looking(), self._fatal)

    async def close(self) -> None:
        """Stops; what was begun goes on at another node, or after the next start."""
        await end_tasks(*(() if self._look is None else (self._look,)), *(task for _, task in self._work.values()))

    def changed(self) -> None:
        """A job of this node has to be begun."""
        self._wake.set()

    def runs_here(self, job: Job) -> bool:
        """Whether this node works on the job."""
        return self._calls() is not None if job.tenant else self._acts_for_all()

    async def _keep_looking(self) -> None:
        while True:
            self._wake.clear()
            await end_tasks(*(task for job, task in self._work.values() if not self.runs_here(job)))
            try:
                await self._begin()
            except (StoreError, Unavailable) as error:
                self._context.observe(JobInterrupted("", str(error)))
                self._seen = None
            try:
                async with asyncio.timeout(_LOOK_S):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _begin(self) -> None:
        """Begins the jobs that should run here and do not yet, if any record of a job has changed, or which jobs are this
        node's; where it acts for all, it also releases namespaces."""
        context, mine = self._context, (self._acts_for_all(), self._calls() is not None)
        if not any(mine):
            self._seen = None
            return
        # First: the job of a namespace that is held by now was stored before.
        marked = self._service.namespaces.marked() if mine[0] else {}
        seen = await context.bounded(context.store.records_versions(JOBS)), mine
        if seen == self._seen and not marked:
            return
        self._seen = seen
        jobs = await context.bounded(every_job(context.store, context.observe))
        for job in jobs:
            if job.state is JobState.RUNNING and job.id not in self._work and self.runs_here(job):
                task = spawn(_Run(self, job).run(), self._fatal)
                self._work[job.id] = job, task
                task.add_done_callback(partial(self._done, job.id))
        if not mine[0]:
            return
        await context.bounded(purge(context.store, jobs, context.passed_us))
        live = {job.id for job in jobs if job.live}
        for name, job_id in marked.items():
            if job_id not in live and job_id not in self._work:
                await self._release(name, job_id)

    async def _release(self, name: str, job_id: str) -> None:
        """Ends the holding of a namespace whose job has been canceled or has failed."""
        try:
            await self._service.namespaces.unmark(name, job_id)
        except (NamespaceNotFound, Conflict) as error:
            # It is gone, or others change it: if it is still held, the next look finds it.
            self._context.observe(JobInterrupted(job_id, str(error)))

    def _done(self, job_id: str, task: asyncio.Task[None]) -> None:
        job, _ = self._work.pop(job_id)
        # It may have been resumed meanwhile, or have to release its namespace.
        self._seen = None
        if job.kind is JobKind.NAMESPACE:
            self._wake.set()


class _Run:
    """This node's work on one job."""

    def __init__(self, runner: JobRunner, job: Job) -> None:
        self._context, self._service, self._keys = runner._context, runner._service, runner._keys
        self._audit, self._calls = runner._audit, runner._calls
        self._runs_here = partial(runner.runs_here, job)
        self._me = runner._context.incarnation.hex()
        self._job = job
        # When the record was last written, and read for what people have changed; and whether they have stopped the job.
        self._saved_us = self._looked_us = 0
        self._stopped = False
        # How many rows a part has at the pace of the last one.
        self._part_rows = sys.maxsize
        # Up to when the rate has been used, in boot time.
        self._used_to_us = runner._context.clock.boottime_us()

    async def run(self) -> None:
        """Returns when the job has ended, is paused, or belongs to another node."""
        with contextlib.suppress(_Superseded):
            await self._save(claims=True)
            try:
                await (self._delete_namespace() if self._job.kind is JobKind.NAMESPACE else self._change_rows())
            except TocsinError as error:
                # Such as a namespace that has been deleted meanwhile. It would end each node that took the job over.
                await self._end(JobState.FAILED, str(error))

    async def _change_rows(self) -> None:
        """Changes page after page. While one is changed, the next one is read."""
        following: asyncio.Task[Page] | None = None
        try:
            page = await self._read(self._job.cursor)
            while True:
                if page.end is not None:
                    following = asyncio.get_running_loop().create_task(self._read(page.end))
                if not await self._do(page) or following is None:
                    return
                page = await following
        finally:
            if following is not None:
                await end_tasks(following)
                # Nobody else asks how it ended.
                if not following.cancelled():
                    following.exception()

    async def _read(self, cursor: str | None) -> Page:
        """The page behind the cursor. No more than half of the time is spent on reading."""
        began_us = self._context.clock.boottime_us()
        while True:
            try:
                page = await read_page(self._service, self._calls, self._job, cursor, self._latest_us())
            except Unavailable as error:
                await self._pause_after(error)
            else:
                await asyncio.sleep((self._context.clock.boottime_us() - began_us) / 1e6)
                return page

    async def _do(self, page: Page) -> bool:
        """Changes the rows of a page, and stores the place behind it; whether there is more to do."""
        rows = page.rows
        while rows:
            job = self._job
            room = sys.maxsize if job.match_max is None else job.match_max - job.counts.matched
            if room <= 0:
                await self._end(JobState.FAILED, f"more rows match than matchMax, which is {job.match_max}")
                return False
            size = min(room, len(rows))
            if job.dry_run:
                await self._change(rows[:size])
            else:
                size = min(size, self._size_of_part())
                await self._change_by_shard(rows[:size])
            self._move_to(rows[size - 1].cursor)
            rows = rows[size:]
            if self._is_save_due():
                await self._save()
        self._move_to(page.end)
        if page.end is None:
            await self._end(JobState.COMPLETED)
            return False
        if self._is_save_due():
            await self._save()
        return True

    async def _change_by_shard(self, part: Sequence[JobRow]) -> None:
        """Changes rows at the job's rate, those of a shard together. The job's place must not be stored meanwhile."""
        began_us = self._context.clock.boottime_us()
        left = sorted(part, key=lambda row: row.shard_id)
        while left:
            size = await self._rows_due(len(left), began_us)
            await self._change(left[:size])
            left = left[size:]
        self._part_rows = len(part) * _PART_US // max(self._context.clock.boottime_us() - began_us, 1)

    def _size_of_part(self) -> int:
        """So many rows that the part ends in time, as pauses and cancellations are noticed when the place is stored; at least
        a slice."""
        rate = self._job.rate_per_second
        slice_rows, most = (rate * us // US_PER_SECOND for us in (_SLICE_MAX_US, _PART_US))
        return max(min(self._part_rows, most), slice_rows, 1)

    def _move_to(self, cursor: str | None) -> None:
        """Goes on behind the cursor, before which everything is done."""
        of_timers = cursor is not None and self._job.kind is JobKind.TIMERS
        seen_to = cursor_instant(cursor) if of_timers and cursor is not None else None
        self._job = msgspec.structs.replace(self._job, cursor=cursor, seen_to=seen_to)

    def _latest_us(self) -> int:
        return self._context.clock.now_us() + self._context.limits.execute_ahead_max_us

    async def _change(self, part: Sequence[JobRow]) -> None:
        """Does the writes of some rows at once, and adds what became of them, when all are answered."""
        job, counts = self._job, JobCounts(matched=len(part))
        if not job.dry_run:
            answers = await asyncio.gather(*map(self._write, part, self._dues(len(part))))
            errors = [
                JobError(row.namespace, row.id, str(answer)[:SAMPLE_CHARS_MAX], row.tenant)
                for row, answer in zip(part, answers, strict=True)
                if isinstance(answer, TocsinError)
            ]
            answered = len(part) - sum(answer is None for answer in answers)
            changed = sum(answer is True for answer in answers)
            counts = JobCounts(answered, changed, answered - changed - len(errors), len(errors))
            self._job = msgspec.structs.replace(job, samples=(*job.samples, *errors)[:SAMPLES_MAX])
            self._context.observe(JobRowsChanged(job.action, changed))
        self._job = msgspec.structs.replace(self._job, counts=job.counts.plus(counts))
        if counts.matched < len(part):
            if self._stopped:
                # Whoever has paused it goes on before these rows.
                await self._save()
            raise _Superseded

    def _dues(self, rows: int) -> range:
        """When timers are due that the last slice, of so many rows, replays: each after its turn, by the wall clock."""
        clock, row_us = self._context.clock, US_PER_SECOND // self._job.rate_per_second
        end_us = clock.now_us() + self._used_to_us - clock.boottime_us() + _REPLAY_AHEAD_US
        return range(end_us - (rows - 1) * row_us, end_us + 1, row_us)

    async def _rows_due(self, wanted: int, began_us: int) -> int:
        """How many of the wanted rows may be changed at once: those that are due at the job's rate, for which it waits, also
        while many clients' writes wait, but no longer than until a second after the part began, at `began_us` of boot time. A
        slice that took long is followed by a larger one; what is beyond that is not caught up."""
        clock, row_us = self._context.clock, US_PER_SECOND // self._job.rate_per_second
        next_us = self._used_to_us + max(_SLICE_INTERVAL_US, row_us)
        await asyncio.sleep(max(next_us - clock.boottime_us(), 0) / 1e6)
        until_us = began_us + _CLIENTS_FIRST_US
        while self._service.writes_waiting > _CLIENTS_WAITING_MAX and clock.boottime_us() < until_us:  # noqa: ASYNC110 -- no signal
            await asyncio.sleep(_CLIENTS_CHECK_S)
        if not self._runs_here():
            raise _Superseded
        now_us = clock.boottime_us()
        used_us = max(self._used_to_us, now_us - max(_SLICE_MAX_US, row_us))
        rows = max(min((now_us - used_us) // row_us, wanted), 1)
        self._used_to_us = used_us + rows * row_us
        return rows

    async def _write(self, row: JobRow, due_us: int) -> bool | TocsinError | None:
        """Changes a row: whether it did, or why it could not. Repeated until the outcome is known, or, which is None, until
        nobody wants it any more."""
        in_doubt = False
        while True:
            sent = False
            try:
                write = await row.change(due_us)
                if write is None:
                    return in_doubt
                sent = True
                await write()
            except ServiceCallNotScheduled:
                # It is there, or there again.
                return False
            except _GONE:
                return in_doubt
            except (Unavailable, StoreError) as error:
                in_doubt = in_doubt or (sent and not isinstance(error, NOT_DONE))
                try:
                    await self._pause_after(error)
                except _Superseded:
                    return None
            except TocsinError as error:
                return error
            else:
                return True

    async def _pause_after(self, error: TocsinError) -> None:
        """Waits before a call is repeated. Raises _Superseded when it is not to be, which the record shows, read each second:
        its place is not stored before the call succeeds."""
        await self._pause(error)
        context, now_us = self._context, self._context.clock.boottime_us()
        if self._is_emptied:
            return
        if not self._stopped and now_us - max(self._saved_us, self._looked_us) >= US_PER_SECOND:
            # At once, as many rows wait together.
            self._looked_us = now_us
            try:
                record = await context.bounded(context.store.record(JOBS, self._job.id))
            except StoreError:
                return
            found = [] if record is None else jobs_of(record, context.observe)
            self._stopped = not any(job.state is JobState.RUNNING and job.runner == self._me for job in found)
        if self._stopped:
            raise _Superseded

    async def _pause(self, error: TocsinError) -> None:
        self._context.observe(JobInterrupted(self._job.id, str(error)))
        await asyncio.sleep(_RETRY_S)
        if not self._runs_here():
            raise _Superseded

    # ------------------------------------------------------------------ the deletion of a namespace

    async def _delete_namespace(self) -> None:
        """Does the steps that are left, each until it is done."""
        context, job = self._context, self._job
        deletion = NamespaceDeletion(self._service, context.store, self._keys, job, context.observe)
        try:
            if job.cursor is None:
                await self._repeated(deletion.settle)
                if not job.cancel_pending and await self._repeated(deletion.in_use):
                    await self._end(JobState.FAILED, not_empty(job.namespace))
                    return
                await self._step(ROWS)
            if self._job.cursor == ROWS:
                if refused := await self._delete_rows(deletion):
                    await self._end(JobState.FAILED, refused)
                    return
                await self._let_events_go(deletion)
                await self._repeated(deletion.forget_failures)
                await self._repeated(deletion.forget_tokens)
                await self._repeated(partial(deletion.withdraw, self._record))
                await self._step(RECORD)
            await self._repeated(deletion.remove)
        except (NamespaceNotFound, Conflict) as error:
            await self._end(JobState.FAILED, str(error))
            return
        await self._audit.write(AuditAction.NAMESPACE_DELETED, self._actor, job.namespace, {"job": job.id})
        await self._end(JobState.COMPLETED)

    async def _delete_rows(self, deletion: NamespaceDeletion) -> str:
        """Passes over the rows until nothing is found; why that can't be, or nothing."""
        empty = 0
        while empty < EMPTY_PASSES:
            found, before, cursor = 0, self._job.counts, None
            while True:
                page = await self._repeated(partial(deletion.page, cursor))
                if page.pending and not self._job.cancel_pending:
                    return not_empty(self._job.namespace)
                found += len(page.rows)
                await self._delete_page(deletion, page.rows)
                if self._is_save_due():
                    await self._save()
                if (cursor := page.cursor) is None:
                    break
            done = self._job.counts
            if found and done.errors - before.errors == found:
                return f"{found} rows could not be deleted: {done.errors} errors, of which the job has samples"
            empty = 0 if found else empty + 1
        return ""

    async def _delete_page(self, deletion: NamespaceDeletion, rows: list[Row]) -> None:
        """Deletes the live rows at the job's rate, and then forgets all: the whole page at once, as each shard's part costs a
        transaction."""
        left = rows
        while left:
            size = await self._rows_due(len(left), self._context.clock.boottime_us())
            part, left = left[:size], left[size:]
            live = [row.live for row in part if row.live is not None]
            if live:
                await self._change(live)
            if ended := len(part) - len(live):
                counts = self._job.counts.plus(JobCounts(matched=ended, changed=ended))
                self._job = msgspec.structs.replace(self._job, counts=counts)
            if self._is_save_due():
                await self._save()
        if not self._runs_here():
            raise _Superseded
        await self._repeated(partial(deletion.forget, rows))

    async def _let_events_go(self, deletion: NamespaceDeletion) -> None:
        """Waits until the namespace's sink has taken all of its events, or none of them for a while."""
        clock, first, since_us = self._context.clock, None, 0
        while (found := await self._repeated(deletion.first_event)) is not None:
            now_us = clock.boottime_us()
            if found != first:
                first, since_us = found, now_us
            elif now_us - since_us >= SINK_WAIT_US:
                return
            if self._is_save_due():
                await self._save()
            # Behind the events of others, the search reads these.
            await asyncio.sleep(_EVENTS_CHECK_S + (clock.boottime_us() - now_us) / 1e6)
            if not self._runs_here():
                raise _Superseded

    async def _repeated(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of the call, made again until it neither finds something unavailable nor fails in the store."""
        while True:
            try:
                return await call()
            except (Unavailable, StoreError) as error:
                await self._pause_after(error)

    @property
    def _is_emptied(self) -> bool:
        """Whether nothing but its record is left of the namespace that the job deletes."""
        return self._job.kind is JobKind.NAMESPACE and self._job.cursor == RECORD

    async def _step(self, cursor: str) -> None:
        """Goes on with the next step, durably."""
        self._move_to(cursor)
        await self._save()

    async def _record(self, action: AuditAction, subject: str, details: dict[str, Detail]) -> None:
        await self._audit.write(action, self._actor, subject, {**details, "job": self._job.id})

    # ------------------------------------------------------------------ the record

    @property
    def _actor(self) -> Actor:
        """Who asked for the job."""
        return Actor(self._job.created_by, self._job.address, AuditSource(self._job.source))

    def _is_save_due(self) -> bool:
        return self._context.clock.boottime_us() - self._saved_us >= _SAVE_INTERVAL_US

    async def _save(self, *, claims: bool = False) -> None:
        """Stores how far the job is; takes over what people have changed meanwhile. Raises _Superseded when the job is not
        to go on here."""
        context = self._context
        while True:
            job = msgspec.structs.replace(self._job, runner=self._me, updated_at=context.clock.now_us())
            try:
                if await context.bounded(put(context.store, job)):
                    self._job = msgspec.structs.replace(job, version=job.version + 1)
                    break
                record = await context.bounded(context.store.record(JOBS, job.id))
            except StoreError as error:
                await self._pause(error)
                continue
            found = [] if record is None else jobs_of(record, context.observe)
            if not found or not (claims or found[0].runner == self._me):
                raise _Lost
            (stored,) = found
            if claims:
                if stored.state is not JobState.RUNNING:
                    raise _Superseded
                self._job = stored
                continue
            # People cancel and pause it, and change its rate.
            self._job = msgspec.structs.replace(
                self._job, rate_per_second=stored.rate_per_second, version=stored.version
            )
            # What has removed the record of its namespace can't be canceled any more.
            canceled = stored.state is JobState.CANCELED and not (
                self._is_emptied and self._job.state is JobState.COMPLETED
            )
            if canceled or self._job.state is JobState.RUNNING:
                self._job = msgspec.structs.replace(self._job, state=stored.state, ended_at=stored.ended_at)
        self._saved_us = context.clock.boottime_us()
        if self._job.state is not JobState.RUNNING:
            raise _Superseded

    async def _end(self, state: JobState, reason: str = "") -> None:
        """Stores that the job has ended, and reports it."""
        now_us = self._context.clock.now_us()
        self._job = msgspec.structs.replace(self._job, state=state, reason=reason, ended_at=now_us)
        try:
            await self._save()
        except _Lost:
            raise
        except _Superseded:
            if self._job.state is not state:
                raise
        job, counts = self._job, self._job.counts
        outcome = {name: getattr(counts, name) for name in counts.__struct_fields__}
        self._context.observe(
            JobFinished(job.id, job.namespace, job.tenant, job.kind, job.action, job.state, **outcome)
        )
        await self._audit.write(AuditAction.JOB_ENDED, self._actor, job.id, {"state": job.state.value, **outcome})
