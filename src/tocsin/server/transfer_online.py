"""The transfer of a store while its servers run, but for a pause of seconds.

The servers log which timers they change (`transfer_log`). Everything is copied meanwhile, and what was changed since is
copied again, in rounds that get shorter. Then the servers are paused, every shard of the source is claimed, the last round is
copied, and the mark of the source is changed, by which both stores exchange their parts.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import msgspec

from tocsin.administration import NAMESPACES, namespaces
from tocsin.model.errors import StoreError
from tocsin.model.job import Job, JobKind
from tocsin.ports.store import (
    GENERATION_END,
    TIMERS_END_US,
    UUID_BYTES,
    FailurePlace,
    FailureRow,
    FireKey,
    HistoryRow,
    Member,
    RunRow,
    ShardState,
)
from tocsin.server.transfer import (
    Progress,
    Side,
    claim_all,
    compared,
    foreign_source,
    is_complete,
    not_a_copy,
    open_target,
    refuse_data,
    refuse_differences,
    refuse_large,
    refuse_living,
    refuse_unmovable,
)
from tocsin.server.transfer_calls import Calls
from tocsin.server.transfer_log import (
    LOG_START,
    Changes,
    Forgotten,
    Row,
    dismissed_failures,
    forgotten_timers,
    logging_servers,
    read_changes,
)
from tocsin.server.transfer_mark import TransferMark, TransferRefused, put_mark, read_mark
from tocsin.server.transfer_records import copy_records
from tocsin.server.transfer_rows import (
    BUCKETS,
    ROWS_START,
    Contents,
    Placement,
    RowWriter,
    bucket_of,
    measured,
    rows_from,
    with_ordered_flows,
)
from tocsin.timers.jobs import every_job

#: How often it is looked whether servers have done what the mark asks for.
_POLL_S = 0.1
#: Rows that are copied between two notes of how far the copy is.
_NOTED_ROWS = 20_000
#: Timers that are read at once when they were changed.
_CHANGED_ROWS = 500
#: A round as short as this is the last one before the pause; so is one after this many.
_ROUND_S, _ROUNDS_MAX = 1.0, 10
#: The servers are not paused for a round that takes longer: clients of the libraries wait for 30 seconds, also for the new
#: servers.
_LAST_ROUND_S_MAX = 15.0
#: How often a pause is confirmed, so that the servers go on waiting.
_CONFIRM_S = 5.0


class OnlineTransfer:
    """One run of a transfer under traffic, the first or a later one. Raises TransferRefused, StoreError.

    `calls` opens the agent databases, once the servers are paused; `refuse_calls` raises TransferRefused for what can be
    seen before to be wrong with them."""

    def __init__(
        self,
        source: Side,
        target: Side,
        progress: Progress,
        calls: Callable[[], AbstractAsyncContextManager[Calls | None]],
        refuse_calls: Callable[[], Awaitable[None]],
    ) -> None:
        self._source, self._target, self._progress = source, target, progress
        self._calls, self._refuse_calls = calls, refuse_calls
        self._mark = self._pause = TransferMark("target", "", "", 0)
        #: From the request to pause until servers could use the target; most of it without writes.
        self.paused_s = 0.0
        # Up to where the log of each shard is copied; uuids that were changed since they are noted.
        self._logs: dict[int, FireKey] = dict.fromkeys(range(source.shards), LOG_START)
        self._touched: set[bytes] | None = None
        # Failures that people have dismissed, and that were removed from the target; timers whose ends were.
        self._dismissed: set[FailurePlace] = set()
        self._forgotten: set[Forgotten] = set()
        self._namespaces_version = -1
        self._writer: RowWriter | None = None
        self._silence = _Silence(source)

    async def run(self) -> Contents:
        """Moves everything, and returns what was moved."""
        source, target = self._source, self._target
        began_us = time.time_ns() // 1_000
        if await is_complete(source, target):
            return await self._contents(began_us)
        if not await self._begin(began_us):
            await self._finish()
            return await self._contents(began_us)
        await self._await_logging()
        await self._copy()
        await self._rounds()
        await copy_records(source.store, source.shards, target.store, target.shards)
        contents = await self._compare()
        # A job may go on for minutes, and what is changed meanwhile must not be copied in the pause.
        await self._wait_for_jobs()
        self._refuse_long_pause(await self._rounds())
        while await self._wait_for_jobs():
            self._refuse_long_pause(await self._rounds())
        began = time.monotonic()
        contents.calls = await self._switch_over()
        await self._finish()
        self.paused_s = time.monotonic() - began
        return contents

    # ------------------------------------------------------------------ before

    async def _begin(self, began_us: int) -> bool:
        """Marks both stores, unless it was done before, and claims the target. False if only the last steps are missing."""
        source, target = self._source, self._target
        of_source, mark = await read_mark(source.store), await read_mark(target.store)
        if of_source is not None and (mark is None or of_source.transfer != mark.transfer):
            raise foreign_source(source.place, of_source)
        if mark is None:
            await refuse_data(target)
        elif mark.role == "source" or mark.other != source.place:
            raise TransferRefused(
                f"--to: {target.place} is part of the transfer of another store, {mark.other}; name an empty store"
            )
        elif not mark.online:
            raise TransferRefused("this transfer was begun without --online; go on without it, or use an empty store")
        elif of_source is None and (mark.copied or mark.place):
            # Since then nobody has noted what changed.
            raise TransferRefused("this transfer was canceled after it had begun to copy; name an empty store")
        if mark is None or of_source is None:
            # Another transfer than one that was canceled: what servers announced for that one must not count.
            mark = await self._new_mark(began_us, version=0 if mark is None else mark.version)
        self._mark = mark
        if of_source is not None and of_source.phase == "moved":
            self._pause = of_source
            return False
        await refuse_unmovable(source.store, online=True)
        self._pause = await put_mark(
            source.store,
            TransferMark(
                "source",
                mark.transfer,
                target.place,
                began_us,
                phase="copying",
                version=0 if of_source is None else of_source.version,
            ),
        )
        await self._claim_target(await refuse_living(target))
        return True

    async def _new_mark(self, began_us: int, version: int) -> TransferMark:
        await self._refuse_calls()
        await self._refuse_large(began_us)
        ordered = tuple(sorted(await with_ordered_flows(self._source.store)))
        transfer, place = uuid.uuid4().hex, self._source.place
        mark = TransferMark("target", transfer, place, began_us, online=True, ordered=ordered, version=version)
        return await put_mark(self._target.store, mark)

    async def _refuse_large(self, began_us: int) -> None:
        limits = self._target.store.capabilities
        if limits.row_bytes_max is not None:
            refuse_large(await self._contents(began_us), limits)

    async def _contents(self, after_us: int) -> Contents:
        with self._progress("counting", None) as advance:
            return await measured(self._source.store, self._source.shards, after_us, advance)

    async def _claim_target(self, dead: Mapping[bytes, int]) -> None:
        """Claims all shards of the target, each in an epoch above all of the source."""
        highest = max((state.epoch for state in await self._source.store.shards()), default=0)
        await claim_all(self._target, self._mark.owner, dead, above=highest)
        self._writer, self._namespaces_version = None, -1

    async def _await_logging(self) -> None:
        """Returns when every shard is owned by a server that logs its changes, or by nobody: whoever claims it then will. A
        server without shards removes failures and history, and so is waited for, too."""
        source, transfer = self._source, self._mark.transfer
        with self._progress("waiting for the servers", None):
            while True:
                # The members behind the shards: an owner without a member row has left for good.
                states = await source.store.shards()
                members = {member.incarnation for member in await self._members()}
                logging = await logging_servers(source.store, transfer)
                silent = [s for s in states if s.owner is not None and s.owner not in {*logging, self._mark.owner}]
                living = members - self._silence.dead.keys()
                if not silent and living <= logging:
                    return
                for state in silent:
                    if state.owner not in living:
                        await self._fence(state)
                await self._refuse_canceled()
                await asyncio.sleep(_POLL_S)

    async def _fence(self, state: ShardState) -> None:
        """Claims a shard whose owner is presumed dead, and releases it: the owner may be asleep, and must not wake up and
        write what it does not log."""
        store, dead = self._source.store, self._silence.dead
        epoch = await store.claim(
            state.shard_id,
            expected_epoch=state.epoch,
            owner=self._mark.owner,
            presumed_dead=(state.owner, dead[state.owner]) if state.owner in dead else None,
        )
        if epoch is not None:
            await store.release(state.shard_id, epoch=epoch, owner=self._mark.owner)

    async def _members(self) -> list[Member]:
        members = await self._source.store.members()
        self._silence.note(members)
        return members

    # ------------------------------------------------------------------ copies

    async def _writer_now(self) -> RowWriter:
        """Writes rows where they belong by the namespaces that there are now: so it is asked for behind the read of rows."""
        source, target = self._source, self._target
        (version,) = await source.store.records_versions(NAMESPACES)
        if self._writer is None or version != self._namespaces_version:
            if self._writer is not None:
                await self._writer.flush()
            self._namespaces_version = version
            placement = Placement(
                await namespaces(source.store), source.shards, target.shards, frozenset(self._mark.ordered)
            )
            epochs = {state.shard_id: state.epoch for state in await target.store.shards()}
            self._writer = RowWriter(target.store, epochs, self._mark.owner, placement)
        return self._writer

    async def _copy(self) -> None:
        """Copies the shards that are not in the target yet, from where an earlier run has come to."""
        source = self._source
        if not self._mark.copied and not self._mark.place:
            # Before any row is in the target: a transfer that was canceled since must not go on with it.
            await self._note(place=ROWS_START)
        with self._progress("copying", None) as advance:
            for shard_id in range(source.shards):
                if shard_id in self._mark.copied:
                    continue
                unnoted = 0
                async for rows, place in rows_from(source.store, shard_id, self._mark.at, self._mark.place):
                    writer = await self._writer_now()
                    await writer.write(source.store, shard_id, rows)
                    advance(len(rows))
                    unnoted += len(rows)
                    if unnoted >= _NOTED_ROWS:
                        await writer.flush()
                        await self._note(place=place)
                        unnoted = 0
                await (await self._writer_now()).flush()
                await self._note(place="", copied=(*self._mark.copied, shard_id))

    async def _note(self, *, place: str, copied: tuple[int, ...] | None = None) -> None:
        copied = self._mark.copied if copied is None else copied
        mark = msgspec.structs.replace(self._mark, place=place, copied=copied)
        self._mark = await put_mark(self._target.store, mark)

    async def _rounds(self) -> float:
        """Copies what was changed, until a round is short enough or there were many. Returns how long the last one took, in
        seconds."""
        lasted_s = 0.0
        with self._progress("copying changes", None) as advance:
            for _ in range(_ROUNDS_MAX):
                began = time.monotonic()
                advance(await self._round())
                lasted_s = time.monotonic() - began
                if lasted_s <= _ROUND_S:
                    break
        return lasted_s

    def _refuse_long_pause(self, lasted_s: float) -> None:
        """Raises TransferRefused if the servers would be paused for as long as the last round took, and that is too long."""
        if lasted_s > _LAST_ROUND_S_MAX:
            raise TransferRefused(
                f"{self._target.place} takes changes no faster than the servers make them: copying the last ones took "
                f"{lasted_s:.0f} s, and for so long the servers would be paused; they go on. Run the same command again when "
                "less is changed, or give the target more capacity"
            )

    async def _round(self) -> int:
        """Copies what was changed since the last round; returns how many timers that were."""
        count = 0
        for shard_id, place in self._logs.items():
            changes, self._logs[shard_id] = await read_changes(self._source.store, shard_id, place)
            await self._copy_changed(shard_id, changes)
            count += len(changes.uuids)
            if self._touched is not None:
                self._touched.update(changes.uuids)
        await self._copy_dismissals()
        await self._copy_forgotten()
        return count

    async def _copy_changed(self, shard_id: int, changes: Changes) -> None:
        """Makes of the changed timers in the target what they are in the source now."""
        source, uuids = self._source.store, [*changes.uuids]
        for first in range(0, len(uuids), _CHANGED_ROWS):
            some = uuids[first : first + _CHANGED_ROWS]
            found = await source.fetch(shard_id, some)
            rows: list[Row] = []
            gone: list[tuple[bytes, str]] = []
            for each in some:
                live, finished = found.get(each, (None, None))
                if live is None:
                    gone.append((each, "" if finished is None else finished.namespace))
                else:
                    rows.append(live)
                ends = changes.ends.get(each)
                if ends is not None and finished is not None and ends == {finished.generation}:
                    rows.append(finished)
                elif ends is not None:
                    rows += await self._ends(shard_id, each, min(ends))
            writer = await self._writer_now()
            await writer.write(source, shard_id, rows)
            for each, namespace in gone:
                await writer.delete(each, namespace)
            await writer.flush()
        await self._copy_failures(shard_id, changes)

    async def _ends(self, shard_id: int, timer: bytes, oldest: bytes) -> list[HistoryRow | RunRow]:
        """The history rows and run rows of a timer from this generation on: newer ones may be among them."""
        found: list[HistoryRow | RunRow] = []
        before: bytes | None = None
        while before is None or before > oldest:
            page = await self._source.store.runs(shard_id, timer, before, _CHANGED_ROWS)
            if not page:
                break
            found += [row for row in page if row.generation >= oldest]
            before = page[-1].generation
        return found

    async def _copy_failures(self, shard_id: int, changes: Changes) -> None:
        added = changes.failures
        listed = await self._failures(shard_id, min(added)[0], max(added)[0]) if added else {}
        writer = await self._writer_now()
        await writer.write(self._source.store, shard_id, [row for place, row in listed.items() if place in added])
        await writer.flush()
        await writer.remove_failures(added - listed.keys())
        for each, generation in changes.resolved:
            await writer.resolve(each, generation)
        await writer.flush()

    async def _failures(self, shard_id: int, first_us: int, last_us: int) -> dict[FailurePlace, FailureRow]:
        """The failures between two instants that are listed."""
        listed: dict[FailurePlace, FailureRow] = {}
        place: FailurePlace | None = (first_us - 1, b"\xff" * UUID_BYTES, GENERATION_END)
        while place is not None and place[0] <= last_us:
            page = await self._source.store.failures(shard_id, place, _CHANGED_ROWS)
            listed |= {row.place: row for row in page}
            place = page[-1].place if page else None
        return listed

    async def _copy_dismissals(self) -> None:
        """Removes from the target the failures that people have dismissed since the transfer began."""
        gone = set()
        for shard_id, place in await dismissed_failures(self._source.store):
            if self._touched is not None:
                self._touched.add(place[1])
            # Logged before it is done: what is still listed is looked at again.
            if place not in self._dismissed and place not in await self._failures(shard_id, place[0], place[0]):
                gone.add(place)
        await (await self._writer_now()).remove_failures(gone)
        self._dismissed |= gone

    async def _copy_forgotten(self) -> None:
        """Removes from the target what was removed of timers besides their live rows since the transfer began."""
        forgotten = await forgotten_timers(self._source.store)
        if forgotten:
            # Those of a namespace may be many, and are not found where they were placed any more.
            await self._jobs()
        if self._touched is not None:
            self._touched.update(each.uuid for each in forgotten)
        for each in forgotten:
            if each in self._forgotten:
                continue
            _, shard_id, timer = each
            ends = await self._ends(shard_id, timer, b"")
            writer = await self._writer_now()
            await writer.forget(shard_id, timer)
            if not ends:
                # It is done: what was written of the timer since is in the log of its shard.
                self._forgotten.add(each)
                continue
            # Logged before it is done, or there is something newer: it is looked at again.
            listed = await self._failures(shard_id, 0, TIMERS_END_US)
            failures = [row for row in listed.values() if row.uuid == timer]
            await writer.write(self._source.store, shard_id, [*ends, *failures])
            await writer.flush()

    async def _compare(self) -> Contents:
        """Reads both stores, and compares all that was not changed meanwhile. Raises TransferRefused for a difference."""
        contents, difference = await compared(self._compared)
        if difference:
            raise not_a_copy(self._source, self._target, difference)
        return contents

    async def _compared(self, after_us: int) -> tuple[Contents, str]:
        source, target = self._source, self._target
        expected, found = array("Q", bytes(8 * BUCKETS)), array("Q", bytes(8 * BUCKETS))
        self._touched = set()
        await self._round()
        with self._progress("verifying", None) as advance:
            contents = await measured(source.store, source.shards, after_us, advance, expected)
            await measured(target.store, target.shards, after_us, advance, found)
        await self._round()
        touched = {bucket_of(each) for each in self._touched}
        self._touched = None
        different = sum(expected[each] != found[each] and each not in touched for each in range(BUCKETS))
        return contents, f"{different} of {BUCKETS} parts differ" if different else ""

    async def _wait_for_jobs(self) -> bool:
        """Waits until no job runs; whether one did. Raises TransferRefused if a namespace was deleted."""
        waited = False
        with self._progress("waiting for jobs", None):
            while True:
                if not any(job.live for job in await self._jobs()):
                    return waited
                waited = True
                await self._refuse_canceled()
                await asyncio.sleep(_POLL_S)

    async def _jobs(self) -> list[Job]:
        """All jobs. Raises TransferRefused if a namespace was deleted since the transfer began."""
        jobs = await every_job(self._source.store, lambda event: None)
        deleted = [j for j in jobs if j.kind is JobKind.NAMESPACE and j.created_at >= self._mark.at]
        if deleted:
            raise TransferRefused(
                f"the job {deleted[0].id} has deleted a namespace since the transfer began; start over with an empty store"
            )
        return jobs

    async def _refuse_canceled(self) -> None:
        mark = await read_mark(self._source.store)
        if mark is None or mark.transfer != self._mark.transfer:
            raise TransferRefused("the transfer was canceled; nothing was switched over")

    # ------------------------------------------------------------------ the pause

    async def _switch_over(self) -> int | None:
        """Pauses the servers, copies the last changes, and marks the source. If that fails, the servers go on. Returns how
        many service calls were moved."""
        with self._progress("pausing the servers", None):
            await self._set_phase("paused", "copying")
            try:
                async with self._confirmed() as confirming:
                    await self._await_end(confirming)
                    calls = await self._last_changes()
                await self._set_phase("moved", "paused")
            except BaseException:
                with suppress(StoreError, TransferRefused):
                    await self._set_phase("copying", "paused")
                raise
        return calls

    async def _set_phase(self, phase: str, former: str) -> None:
        """Raises TransferRefused if the servers have taken the pause back, or another transfer has begun. What is there is
        read before: after a cancellation, versions begin at 1 again."""
        refused = TransferRefused(
            f"the servers go on with {self._source.place}, because they were paused for too long, or the transfer was "
            "canceled; run the same command again"
        )
        present = await read_mark(self._source.store)
        if present is None or present.transfer != self._mark.transfer or present.phase != former:
            raise refused
        mark = msgspec.structs.replace(present, phase=phase, at=time.time_ns() // 1_000)
        try:
            self._pause = await put_mark(self._source.store, mark)
        except TransferRefused as error:
            raise refused from error

    @asynccontextmanager
    async def _confirmed(self) -> AsyncIterator[asyncio.Future[None]]:
        """Confirms the pause meanwhile, so that the servers wait; the future fails if they do not any more."""

        enough = asyncio.Event()

        async def confirm() -> None:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CONFIRM_S):
                        await enough.wait()
                        return
                # The next confirmation may succeed.
                with suppress(StoreError):
                    await self._set_phase("paused", "paused")

        confirming = asyncio.ensure_future(confirm())
        try:
            yield confirming
        finally:
            # Not cancelled: a write of the mark under way has to end, so that its version is known.
            enough.set()
            await asyncio.wait([confirming])
        confirming.result()

    async def _await_end(self, confirming: asyncio.Future[None]) -> None:
        """Returns when no server of the source runs any more. Raises TransferRefused if they go on."""
        while True:
            if confirming.done():
                confirming.result()
            members = await self._members()
            if all(member.incarnation in self._silence.dead for member in members):
                return
            await asyncio.sleep(_POLL_S)

    async def _last_changes(self) -> int | None:
        """Copies everything that is still missing. Returns how many service calls were copied; None: they stay."""
        source, target = self._source, self._target
        if source.shards != target.shards and await with_ordered_flows(source.store) != set(self._mark.ordered):
            raise TransferRefused(
                "flows have become ordered, or are not any more, since the transfer began, and so timers belong elsewhere; "
                "start over with an empty store"
            )
        await claim_all(source, self._mark.owner, self._silence.dead)
        await self._claim_target({})
        await refuse_unmovable(source.store, online=True)
        await self._round()
        await copy_records(source.store, source.shards, target.store, target.shards)
        count = None
        async with self._calls() as calls:
            if calls is not None:
                with self._progress("copying calls", None) as advance:
                    await calls.clear()
                    await calls.copy(advance)
                    count = await calls.counted(advance)
                    await calls.verify(advance)
        await refuse_differences(source, target)
        await self._check_source()
        return count

    async def _check_source(self) -> None:
        """Raises TransferRefused if anybody has claimed a shard of the source since the transfer did."""
        owners = {state.owner for state in await self._source.store.shards()}
        if owners != {self._mark.owner}:
            raise TransferRefused(f"a server has claimed shards of {self._source.place} in the pause; run it again")

    async def _finish(self) -> None:
        """Lets servers use the target. A server that had read the mark of the source before the pause would have claimed its
        shards by now."""
        try:
            await self._check_source()
        except TransferRefused:
            await self._set_phase("copying", "moved")
            raise
        await open_target(self._target, self._mark)


class _Silence:
    """Which servers are presumed dead: their counters have stood still for as long as nodes wait before they take over."""

    def __init__(self, side: Side) -> None:
        self._timeout_s = side.member_timeout_s
        self._since_s: dict[tuple[bytes, int], float] = {}
        #: Their counters, by incarnation.
        self.dead: dict[bytes, int] = {}

    def note(self, members: list[Member]) -> None:
        """Takes the members as they were just read."""
        now_s = time.monotonic()
        self._since_s = {
            (m.incarnation, m.counter): self._since_s.get((m.incarnation, m.counter), now_s) for m in members
        }
        self.dead = {each: counter for (each, counter), s in self._since_s.items() if now_s - s >= self._timeout_s}
