"""The deletion of a namespace: how it is begun, and the steps of the job that does it. Each of them can be repeated.

    begin       the job is durable, then the namespace is marked: creates and changes are refused, and nothing fires
    settle      no create that was on its way can become durable any more
    in_use      unless what is pending is to be deleted, too: that nothing is, before anything is removed
    passes      live rows are deleted at their owners, and what is left of each timer is forgotten, until nothing is found
    events      the namespace's sink gets its last events, as long as it takes any
    failures    what is listed as failed of timers of which nothing else is left
    withdraw    keys lose the namespace, and its other jobs and its flows are removed
    remove      the record goes last, so that an interrupted job finds the namespace marked

A deleted timer leaves a history row, whatever its namespace keeps. The next pass finds the timer by it, if the job was
interrupted before it has forgotten the timer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tocsin.administration import delete_all, delete_scoped
from tocsin.keys import ApiKeys, RecordAudit
from tocsin.model.errors import NamespaceNotEmpty, TimerNotFound
from tocsin.model.ids import shard_of, timer_uuid
from tocsin.model.job import Job
from tocsin.model.timer import Status
from tocsin.ports.observer import Observer
from tocsin.ports.store import (
    EVENTS_SUFFIX,
    FLOWS_SUFFIX,
    TIMERS_END_US,
    FailurePlace,
    FireKey,
    ListCursor,
    ListQuery,
    Store,
    StoredRow,
    names_of,
    schedules_of,
)
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.job_rows import PAGE_ROWS, JobRow, Write
from tocsin.timers.jobs import JOBS, Jobs, every_job
from tocsin.timers.listing import IdListRequest, ListRequest
from tocsin.timers.monitor_records import delete_monitors
from tocsin.timers.namespaces import refuse_version
from tocsin.timers.service import TimerService

#: What rows of tokens of flows are stored as.
_TOKENS = frozenset({Status.COMPLETED})
#: What such a job has for a cursor after its beginning: rows are removed; nothing is left but the record.
ROWS, RECORD = "rows", "record"
#: Passes in a row that must find nothing. Stores read live, suspended and finished rows one after the other, so a pass may
#: miss a row that becomes suspended or finishes at that moment.
EMPTY_PASSES = 2


async def begin(service: TimerService, jobs: Jobs, job: Job, expected_version: int | None = None) -> Job:
    """Begins the deletion of the job's namespace, which is held for it when this returns. If one is under way, returns its
    job; likewise if an earlier request with the job's idempotency key has begun one.

    Raises NamespaceNotFound; NamespaceNotEmpty if timers or schedules are pending that the job must not cancel; JobRunning
    while another job changes something in the namespace; VersionConflict if the namespace has not the version that is
    expected when the request arrives; IdempotencyConflict, Conflict, Overloaded, Unavailable."""
    running = await jobs.deletion_of(job.namespace) or await jobs.repeated(job)
    if running is None:
        await service.namespaces.refresh()
        known = service.namespaces.get(job.namespace)
        refuse_version(f"namespace {known.name!r}", known.version, expected_version)
        if not job.cancel_pending and await _is_in_use(service, job.namespace):
            raise NamespaceNotEmpty(not_empty(job.namespace))
        running = await jobs.create(job)
    if running.live:
        await service.namespaces.mark(job.namespace, running.id)
    return running


def not_empty(namespace: str) -> str:
    """Why a namespace is not deleted."""
    return (
        f"timers or schedules are pending in namespace {namespace!r}; cancel them first, or set cancelPending to delete them "
        "with it"
    )


async def _is_in_use(service: TimerService, name: str) -> bool:
    """Whether timers or schedules are pending, as far as a bounded search finds them; the job finds them all."""
    found, _ = await service.count(ListRequest(name, frozenset({Status.PENDING}), limit=1))
    if found:
        return True
    schedules, _ = await service.list_schedules(name, IdListRequest(limit=1), lambda view: view)
    return bool(schedules)


class Row(NamedTuple):
    """A row of the namespace, live or finished, and how the job deletes it if it is live."""

    shard_id: int
    uuid: bytes
    live: JobRow | None


class Rows(NamedTuple):
    """A page of rows. `pending`: timers or schedules are among the live ones. `cursor`: where the next page begins; None
    after the last one."""

    rows: list[Row]
    pending: bool
    cursor: ListCursor | None


class NamespaceDeletion:
    """The steps of one job. Each raises Unavailable, or what the store raises, and can then be repeated."""

    def __init__(self, service: TimerService, store: Store, keys: ApiKeys, job: Job, observe: Observer) -> None:
        self._service, self._store, self._keys, self._job, self._observe = service, store, keys, job, observe
        self._name = job.namespace
        # What fires on somebody's behalf: not monitors, nor notifications that are on their way.
        self._firing = self._name, schedules_of(self._name)

    async def settle(self) -> None:
        """Marks the namespace, and returns once nothing can be created in it any more. Raises NamespaceNotFound, Conflict.

        Each owner of its shards is sent a write, with the namespace's present version, which the owner reads before it
        accepts the write (rule 23). When that is answered, batches that were assembled before are durable or fenced (rules 2
        and 16), and each later one refuses creates."""
        namespaces = self._service.namespaces
        await namespaces.mark(self._name, self._job.id)
        # No timer has an empty id.
        nobody = timer_uuid(self._name, "")
        for shard_id in namespaces.shards_of([self._name]):
            try:
                await self._service.write(shard_id, WriteOp(OpKind.DELETE, nobody, self._name))
            except TimerNotFound:
                continue

    async def in_use(self) -> bool:
        """Whether timers or schedules are pending, however many rows have to be read to find them. After `settle`, none
        becomes pending any more."""
        namespaces, names = self._service.namespaces, self._firing
        shards = namespaces.shards_of([self._name])
        for _ in range(EMPTY_PASSES):
            cursor: ListCursor | None = None
            while True:
                query = ListQuery(names, shards, frozenset({Status.PENDING}), cursor=cursor, limit=1)
                page = await namespaces.read(self._store.list(query))
                if page.rows:
                    return True
                if (cursor := page.cursor) is None:
                    break
        return False

    async def page(self, cursor: ListCursor | None) -> Rows:
        """The rows behind the cursor, whatever their status."""
        namespaces, found, pending = self._service.namespaces, list[Row](), False
        shards = namespaces.shards_of([self._name])
        query = ListQuery(names_of(self._name), shards, frozenset(Status), cursor=cursor, limit=PAGE_ROWS)
        page = await namespaces.read(self._store.list(query))
        for row in page.rows:
            shard_id, live = namespaces.shard_of(self._name, row.uuid), None
            if isinstance(row, StoredRow):
                live = JobRow(self._name, row.timer_id, "", partial(self._deletion_of, shard_id, row.uuid))
                pending = pending or row.namespace in self._firing
            found.append(Row(shard_id, row.uuid, live))
        return Rows(found, pending, page.cursor)

    async def _deletion_of(self, shard_id: int, uuid: bytes, due_us: int) -> Write:
        return partial(self._service.write, shard_id, WriteOp(OpKind.DELETE, uuid, self._name))

    async def forget(self, rows: Sequence[Row]) -> None:
        """Removes what is left of the timers of these rows besides their live ones."""
        uuids: dict[int, list[bytes]] = {}
        for shard_id, uuid, _ in rows:
            uuids.setdefault(shard_id, []).append(uuid)
        for shard_id, some in uuids.items():
            await self._service.namespaces.read(self._store.forget(shard_id, some))

    async def first_event(self) -> FireKey | None:
        """The first event of the namespace that is still stored: its sink has not taken it. None if there is none."""
        namespaces, cursor, pending = self._service.namespaces, None, frozenset({Status.PENDING})
        name, shards = self._name + EVENTS_SUFFIX, namespaces.shards_of([self._name])
        while True:
            query = ListQuery((name,), shards, pending, execute_after=TIMERS_END_US, cursor=cursor, limit=1)
            page = await namespaces.read(self._store.list(query))
            for row in page.rows:
                return row.execute_at, row.uuid
            if (cursor := page.cursor) is None:
                return None

    async def forget_failures(self) -> None:
        """Removes what is left of timers that are listed as failed and of which no list finds anything else."""
        names, read = names_of(self._name), self._service.namespaces.read
        for shard_id in self._service.namespaces.shards_of([self._name]):
            after: FailurePlace | None = None
            while page := await read(self._store.failures(shard_id, after, PAGE_ROWS)):
                after = page[-1].place
                uuids = [row.uuid for row in page if row.namespace in names]
                if uuids:
                    await read(self._store.forget(shard_id, uuids))

    async def forget_tokens(self) -> None:
        """Removes the tokens of the namespace's flows, which are in other shards. No node begins anything of it any more; a
        row that is written at this moment expires."""
        namespaces, cursor = self._service.namespaces, None
        total, name = namespaces.total_shards, self._name + FLOWS_SUFFIX
        while True:
            query = ListQuery(
                (name,), range(total), _TOKENS, execute_after=TIMERS_END_US, cursor=cursor, limit=PAGE_ROWS
            )
            page = await namespaces.read(self._store.list(query))
            await self.forget([Row(shard_of(0, row.uuid, total, total), row.uuid, None) for row in page.rows])
            if (cursor := page.cursor) is None:
                return

    async def withdraw(self, record: RecordAudit) -> None:
        """Takes the namespace from the keys that are limited to it, and removes its other jobs, with their idempotency
        keys, the rules of its flows, its calendars, credentials and monitors."""
        await self._keys.withdraw(self._name, record)
        jobs = await every_job(self._store, self._observe)
        gone = [each.id for each in jobs if each.namespace == self._name and each.id != self._job.id]
        await delete_all(self._store, JOBS, gone)
        await delete_scoped(self._store, self._name)
        await delete_monitors(self._store, self._name)

    async def remove(self) -> None:
        """Removes the namespace's record. When this returns, every node knows that the namespace is gone."""
        await self._service.namespaces.remove(self._name, self._job.id)
