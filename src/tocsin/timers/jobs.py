"""The use cases of jobs, and their records. What a running job does: `tocsin.timers.job_runner`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from logging import INFO, WARNING

import msgspec

from tocsin.administration import decoded, delete_all, encoded, every
from tocsin.model.access import EVERY
from tocsin.model.errors import Conflict, IdempotencyConflict, JobEnded, JobNotFound, JobRunning, Overloaded
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.job import KEPT_MAX, KEPT_US, LIVE_MAX, Job, JobKind, JobState
from tocsin.model.sealed import url_opened, url_sealed
from tocsin.ports.clock import Clock
from tocsin.ports.event import Counter, LineLimit
from tocsin.ports.observer import Event, Observer
from tocsin.ports.records import Record, Records
from tocsin.timers.namespaces import Namespaces

#: The kind of record.
JOBS = "job"
#: A job whose creation has not been completed for so long never will be: its request has long ended.
_STARTING_US_MAX = 120 * US_PER_SECOND
#: Attempts at a change of a job, whose runner writes it every second.
_TRIES_MAX = 10

_decoder = msgspec.json.Decoder(Job)


class JobRowsChanged(Event, frozen=True):
    """A job has changed `rows` timers, schedules, failures or service calls, durably; `action` is what it does."""

    action: str
    rows: int
    counter = Counter(
        "tocsin_job_rows_changed",
        "Timers, schedules, failures and service calls changed by jobs.",
        ("action",),
        by="rows",
    )


class JobFinished(Event, frozen=True):
    """A job of a namespace or of a tenant has ended: `state` is completed or failed. `matched` rows were among those that it
    should change; of these it has `changed` some, and `skipped` those that had ended or changed meanwhile, or were as wanted
    already."""

    job: str
    namespace: str
    tenant: str
    kind: str
    action: str
    state: str
    matched: int
    changed: int
    skipped: int
    errors: int
    level = INFO
    counter = Counter("tocsin_jobs_finished", "Jobs that completed or failed.", ("action", "state"))


class JobInterrupted(Event, frozen=True):
    """A call of a job has failed and is repeated; an empty `job`: the jobs could not be read."""

    job: str
    error: str
    level = WARNING
    line_limit = LineLimit(1, window_s=10.0)


def no_job(job_id: str) -> JobNotFound:
    """That there is none with this id, or none that the caller may see."""
    return JobNotFound(f"there is no job {job_id!r}; jobs are listed for 30 days after their end")


class Jobs:
    """Create, read, list, pause, resume and cancel jobs. All errors are `TocsinError`s; each method raises Unavailable."""

    def __init__(self, store: Records, namespaces: Namespaces, clock: Clock, observe: Observer) -> None:
        #: Called when a job may have to be begun or ended on this node.
        self.changed: Callable[[], None] = lambda: None
        self._store, self._namespaces, self._clock, self._observe = store, namespaces, clock, observe

    async def create(self, job: Job) -> Job:
        """Stores a new job, which is `starting`, and begins it. One with its id and request is answered as it is now.

        Raises NamespaceNotFound, NamespaceDeleting; JobRunning while another job may change the same rows; Overloaded beyond
        the greatest number of jobs at once; IdempotencyConflict if its id was used for another request."""
        if job.namespace != EVERY and not job.tenant:
            await self._namespaces.ensure_known(job.namespace)
            self._namespaces.get(job.namespace)
            self._namespaces.refuse_deleting(job.namespace)
        read, seals = self._namespaces.read, self._namespaces.seals
        if job.url:
            job = msgspec.structs.replace(job, url=url_sealed(job.url, lambda text: seals.seal(text, sealed_in(job))))
        await read(self._store.put_record(JOBS, job.id, encoded(job), None))
        stored = await self.get(job.id)
        if stored.request != job.request:
            raise _used_before(job)
        if stored.state is not JobState.STARTING:
            return stored
        # Another one that is created at the same time is stored before it looks: one of them at least finds the other.
        others = [each for each in await self._all() if each.live and each.id != job.id]
        given_up = [each.id for each in others if abandoned(each, self._clock.now_us())]
        # Removed, so that none of them begins after all.
        await read(delete_all(self._store, JOBS, given_up))
        others = [each for each in others if each.id not in given_up]
        rival = next((each for each in others if each.overlaps(job)), None)
        if rival is not None or len(others) >= LIVE_MAX:
            present = await self.get(job.id)
            if present.state is not JobState.STARTING:
                # A request that is sent twice at once: the other one was first, and has begun it.
                return present
            await read(self._store.delete_records(JOBS, [job.id]))
            if rival is None:
                raise Overloaded(f"{len(others)} jobs run or are paused already; wait until one has ended")
            raise JobRunning(f"job {rival.id} {_work_of(rival)} already; wait for its end, or cancel it")
        return await self._change(job.id, _begun)

    async def get(self, job_id: str) -> Job:
        """The job. Raises JobNotFound."""
        record = await self._namespaces.read(self._store.record(JOBS, job_id))
        found = [] if record is None else jobs_of(record, self._observe)
        if not found:
            raise no_job(job_id)
        return found[0]

    def url_of(self, job: Job) -> str:
        """The job's URL, its secrets decrypted. Raises SealBroken."""
        return url_opened(job.url, lambda sealed: self._namespaces.seals.open(sealed, sealed_in(job)))

    async def list(self) -> builtins.list[Job]:
        """All jobs that are kept, the newest first."""
        return [job for job in await self._all() if job.state is not JobState.STARTING]

    async def deletion_of(self, namespace: str) -> Job | None:
        """The job that deletes the namespace, until it has ended."""
        jobs = await self.list()
        return next((job for job in jobs if job.live and job.deletes(namespace)), None)

    async def repeated(self, job: Job) -> Job | None:
        """The job of an earlier request with this one's id. Raises IdempotencyConflict if that was another request."""
        stored = next((each for each in await self.list() if each.id == job.id), None)
        if stored is not None and stored.request != job.request:
            raise _used_before(job)
        return stored

    async def pause(self, job_id: str) -> Job:
        """Stops a job until `resume`, after what is being written now. Raises JobNotFound, JobEnded."""
        return await self._change(job_id, lambda job: _live(job, state=JobState.PAUSED))

    async def resume(self, job_id: str) -> Job:
        """Goes on with a paused job. Raises JobNotFound, JobEnded."""
        return await self._change(job_id, lambda job: _live(job, state=JobState.RUNNING))

    async def cancel(self, job_id: str) -> Job:
        """Ends a job; what it has changed stays changed. Raises JobNotFound, JobEnded."""
        now_us = self._clock.now_us()
        return await self._change(job_id, lambda job: _live(job, state=JobState.CANCELED, ended_at=now_us))

    async def set_rate(self, job_id: str, rate_per_second: int) -> Job:
        """Changes how many rows a second the job changes at most. Raises JobNotFound, JobEnded."""
        return await self._change(job_id, lambda job: _live(job, rate_per_second=rate_per_second))

    async def _change(self, job_id: str, change: Callable[[Job], Job]) -> Job:
        for _ in range(_TRIES_MAX):
            job = await self.get(job_id)
            changed = msgspec.structs.replace(change(job), updated_at=self._clock.now_us())
            if await self._namespaces.read(put(self._store, changed)):
                self.changed()
                return changed
        raise Conflict(f"job {job_id!r} was changed at the same time {_TRIES_MAX} times; try again")

    async def _all(self) -> builtins.list[Job]:
        return await self._namespaces.read(every_job(self._store, self._observe))


def sealed_in(job: Job) -> str:
    """The context of the secrets in a job's URL, which may be for several namespaces."""
    return f"job:{job.id}"


def _used_before(job: Job) -> IdempotencyConflict:
    return IdempotencyConflict(f"the idempotency key of job {job.id} was used before with another request")


def _work_of(job: Job) -> str:
    return f"deletes {job.where}" if job.kind is JobKind.NAMESPACE else f"changes {job.kind} of {job.where}"


def _live(job: Job, **changes: object) -> Job:
    if not job.live:
        raise JobEnded(f"job {job.id} has ended: {job.state}")
    return msgspec.structs.replace(job, **changes)


def _begun(job: Job) -> Job:
    """A job that is known to be alone; a repeated request may have begun it meanwhile."""
    return job if job.state is not JobState.STARTING else msgspec.structs.replace(job, state=JobState.RUNNING)


# -- records


def jobs_of(record: Record, observe: Observer) -> list[Job]:
    """The job of a record; none if it can't be decoded."""
    return [msgspec.structs.replace(job, version=record.version) for job in decoded(_decoder, JOBS, [record], observe)]


async def every_job(records: Records, observe: Observer) -> list[Job]:
    """All jobs, the newest first."""
    found = [job async for record in every(records, JOBS) for job in jobs_of(record, observe)]
    return sorted(found, key=lambda job: (job.created_at, job.id), reverse=True)


async def put(records: Records, job: Job) -> bool:
    """Stores a change of the job, if nobody else has changed it since it was read."""
    return await records.put_record(JOBS, job.id, encoded(msgspec.structs.replace(job, version=0)), job.version)


def abandoned(job: Job, now_us: int) -> bool:
    """Whether the creation of a job was given up."""
    return job.state is JobState.STARTING and now_us - job.created_at >= _STARTING_US_MAX


async def purge(records: Records, jobs: list[Job], now_us: int) -> None:
    """Of all jobs, the newest first, removes those that ended too long ago, the oldest of too many, and those whose creation
    was given up."""
    gone = [
        job.id
        for place, job in enumerate(jobs)
        if abandoned(job, now_us)
        or (not job.live and (place >= KEPT_MAX or now_us - (job.ended_at or job.updated_at) >= KEPT_US))
    ]
    await delete_all(records, JOBS, gone)
