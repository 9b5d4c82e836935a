"""Group commit: while one batch is being written, the next one accumulates. A lane writes one batch at a time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from tocsin.model.errors import (
    DefiniteFailure,
    OutcomeUnknown,
    ShardMoved,
    ShardUnavailable,
    StoreError,
    StoreUnavailable,
    TocsinError,
    Unavailable,
)
from tocsin.ports.observer import BatchCommitted, BatchFailed, TimersChanged, TimersCreated, WriteRefused
from tocsin.ports.store import Applied, ShardBatch
from tocsin.tasks import in_parallel
from tocsin.timers.engine.assembly import RECKONING_MAX, Assembly
from tocsin.timers.engine.flow_tokens import TokenPlace, uuid_of
from tocsin.timers.engine.quotas import note_committed, reserve, room_for
from tocsin.timers.engine.retention import note_recorded
from tocsin.timers.engine.rows import ATTEMPT_RESULTS, Batch, ExistingRow, OpKind, RowRoom, WriteOp, turn_reason
from tocsin.timers.engine.runs import Fetched

#: Results of callbacks in one commit: at most this many before commit times are known, and never limited to fewer than the
#: minimum, so that they share a commit's fixed cost.
_FINISHED_FIRST, _FINISHED_MIN = 400, 100
#: Results that have waited for so long are falling behind: then commits take ever more of them, however long that makes the
#: commits, and up to half of their rows even if clients' writes would fill them. Else a node that creates as much as it fires
#: would record fewer results than it gets, for as long as that lasts.
_BEHIND_US = 3_000_000
#: Rows with tokens of slow rates that a commit has at least, if there are any, so that a backlog does not keep them back.
_TOKENS_LEAST = 10
#: Pause between two checks of clients' deadlines while a commit is under way, as a share of `write_timeout`.
_DEADLINE_CHECK_SHARE = 0.1
#: Operations after it are not clients' changes of timers.
_LAST_CHANGE = OpKind.REPLAY
#: How changes of timers are counted.
_WORDS = {OpKind.UPDATE: "updated", OpKind.DELETE: "deleted", OpKind.REPLAY: "replayed"}
#: Answers to changes that wrote nothing.
_WROTE_NOTHING = (Exception, ExistingRow)
_NOT_WRITTEN = "nothing was written, try again"
_UNCONFIRMED = "the store did not confirm the write; the outcome is unknown, try again"
_UNCONFIRMED_IN_TIME = (
    "the store did not confirm the write within the request's time; the outcome is unknown, try again"
)

if TYPE_CHECKING:
    from tocsin.timers.engine.context import Context
    from tocsin.timers.engine.parts import Part
    from tocsin.timers.engine.shard import Shard
    from tocsin.timers.engine.window import Window


class CommitLane:
    """Commits for its shards, strictly one transaction after another (rule 2)."""

    def __init__(self, index: int, context: Context) -> None:
        self._index = index
        self._context = context
        self._dirty: dict[Shard, None] = {}
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        # Clients' writes since the last batch was assembled; how many are worth waiting for, and until when (boot time).
        self._arrived = 0
        self._expected = 0
        self._expected_until_us = 0
        self._all_here = asyncio.Event()
        # Results of callbacks that one batch may have, adapted to commit times; whether the last batch was limited by it.
        self._finished_max = min(_FINISHED_FIRST, context.batch_rows_max)
        self._more_finished = False
        # Whether results fell behind when the last batch was assembled.
        self._behind = False
        # The shards for which the last batches had no room, in the order in which they get some.
        self._left_out: Sequence[Shard] = ()
        # What is being written now, and the next check whether the store takes longer than clients wait.
        self._under_way: Sequence[tuple[Shard, Batch]] = ()
        self._deadline_check: asyncio.TimerHandle | None = None

    @property
    def writing(self) -> bool:
        """Whether a batch is being written."""
        return bool(self._under_way)

    def is_writing(self, shard: Shard) -> bool:
        """Whether a batch under way has results or writes of the shard. Of events alone the next owner knows, too."""
        return any(each is shard and (batch.ops or batch.parts or batch.finished) for each, batch in self._under_way)

    def schedule(self, shard: Shard, *, urgent: bool, writes: int = 1) -> None:
        """Schedules a commit for the shard: at once if `urgent` (enough writes have clients that wait), else within
        `commit_interval`."""
        self._dirty[shard] = None
        if urgent:
            self._arrived += writes
            self._wake.set()
            if self._arrived >= self._expected:
                self._all_here.set()
        elif self._timer is None and not self._wake.is_set():
            self._timer = asyncio.get_running_loop().call_later(
                self._context.limits.commit_interval_us / 1e6, self._wake.set
            )

    async def run(self) -> None:
        """Commits until it is cancelled."""
        while True:
            await self._wake.wait()
            await self._gather()
            self._wake.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            shards = list(self._dirty)
            self._dirty.clear()
            together, self._arrived = self._arrived, 0
            began = self._context.clock.boottime_us()
            done = await self._commit_watched(shards)
            if not done:
                await asyncio.sleep(self._context.limits.store_retry_interval_us / 1e6)
            self._expect(together + self._arrived, began)
            for shard in shards:
                if shard.window is not None and shard.window.has_work():
                    self._dirty[shard] = None
                    if shard.window.pending or self._more_finished:
                        self._wake.set()
                    else:
                        self.schedule(shard, urgent=False)

    async def _commit_watched(self, shards: Sequence[Shard]) -> bool:
        self._schedule_deadline_check(shards)
        try:
            return await self._commit(shards)
        finally:
            if self._deadline_check is not None:
                self._deadline_check.cancel()

    def _schedule_deadline_check(self, shards: Sequence[Shard]) -> None:
        pause_s = self._context.limits.write_timeout_us * _DEADLINE_CHECK_SHARE / 1e6
        self._deadline_check = asyncio.get_running_loop().call_later(pause_s, self._check_deadlines, shards)

    def _check_deadlines(self, shards: Sequence[Shard]) -> None:
        """Answers clients at their own deadlines while the store keeps a commit waiting.

        An answer before the outcome is known doesn't change the order of writes: this lane's next batch follows the present
        one, and the next owner's fence ends it.
        """
        now = self._context.clock.boottime_us()
        for _, batch in self._under_way:
            entries: list[WriteOp | Part] = [*batch.ops, *(each.part for each in batch.parts)]
            for waiting in entries:
                if waiting.deadline_us is not None and waiting.deadline_us <= now:
                    waiting.answer(ShardUnavailable(_UNCONFIRMED_IN_TIME))
        for shard in dict.fromkeys((*shards, *self._dirty)):
            if shard.window is not None and shard.window.expire(now):
                shard.changed()
        self._schedule_deadline_check(shards)

    def _expect(self, clients: int, began_us: int) -> None:
        """Sets how many clients are worth waiting for: those just answered may write again at once and share the next batch
        with the writes that have arrived in the meantime."""
        now = self._context.clock.boottime_us()
        self._expected = clients
        self._expected_until_us = now + min((now - began_us) // 2, self._context.limits.commit_delay_max_us)

    async def _gather(self) -> None:
        """Once the first of the expected clients has written, waits for the others, up to the time limit."""
        left_us = self._expected_until_us - self._context.clock.boottime_us()
        if 0 < self._arrived < self._expected and left_us > 0:
            self._all_here.clear()
            latest = asyncio.get_running_loop().call_later(left_us / 1e6, self._all_here.set)
            await self._all_here.wait()
            latest.cancel()

    async def _commit(self, shards: Sequence[Shard]) -> bool:
        """Writes one transaction for these shards; False when the store refuses everything for now."""
        batches = await self._assembled(shards, self._context.batch_rows_max, self._finished_max)
        if not batches:
            return batches is not None
        refused = await self._try(batches)
        if refused is None or isinstance(refused, StoreUnavailable):
            return refused is None
        self._failed(batches, "definite", refused)
        for shard, batch in batches:
            if not await self._commit_apart(shard, batch.writes):
                return False
        return True

    async def _assembled(
        self, shards: Sequence[Shard], rows_max: int, finished_max: int
    ) -> list[tuple[Shard, Batch]] | None:
        """The batches of these shards: clients' writes first, then finished timers, unless these fall behind; first the
        shards for which the last ones had no room, then those whose results have waited longest. None if the store can't be
        read; the clients are refused then."""
        owned = [(shard, window) for shard in shards if (window := shard.window) is not None]
        try:
            states = await self._fetched([window for _, window in owned], rows_max)
        except StoreError as error:
            self._context.observe(BatchFailed(self._index, len(shards), "read", str(error)))
            self._refuse_clients(shards, Unavailable(f"reading from the store failed; {_NOT_WRITTEN}: {error}"))
            return None
        # A claim may have ended in the meantime. What was read under it is not valid under the next one.
        read = [(shard, window, found) for (shard, window), found in zip(owned, states, strict=True)]
        valid = [each for each in read if each[0].window is each[1]]
        left = writes_left = rows_max
        bytes_left, reckoning_left = self._context.batch_bytes_max, RECKONING_MAX
        if finished_max:
            valid.sort(key=_oldest_result_us)
            oldest_us = _oldest_result_us(valid[0]) if valid else math.inf
            self._behind = self._context.clock.boottime_us() - oldest_us > _BEHIND_US
            waiting = sum(window.queue.operations for _, window, _ in valid)
            finished_max = min(finished_max, max(rows_max - waiting, rows_max // 2 if self._behind else 1, 1))
            if self._behind:
                results = sum(len(window.finished) for _, window, _ in valid)
                writes_left = max(rows_max - min(finished_max, results), 1)
        if self._left_out:
            turns = {shard: turn for turn, shard in enumerate(self._left_out)}
            valid.sort(key=lambda each: turns.get(each[0], len(turns)))
        finished_left = finished_max
        batches, left_out = [], []
        for shard, window, fetched in valid:
            if left <= 0 or bytes_left <= 0:
                left_out.append(shard)
                continue
            if writes_left <= 0 and window.pending:
                left_out.append(shard)
            batch = self._assembly(window, fetched).batch(
                rows_max=min(left, writes_left),
                bytes_max=bytes_left,
                finished_max=finished_left,
                exact_after_us=0 if shard.draining else self._context.limits.exact_delete_after_us,
                # One schedule at least, so that no shard waits for others.
                reckoning_max=max(reckoning_left, 1),
            )
            bytes_left -= batch.bytes
            reckoning_left -= batch.reckoned
            if batch.creates:
                reserve(self._context, batch, 1)
            for uuid, reason in batch.unusable:
                self._context.observe(WriteRefused(shard.shard_id, uuid, reason))
            if batch.refused:
                shard.changed()
            writes = batch.writes
            left -= writes + len(batch.finished) + len(batch.events_removed)
            if finished_max and window.queue.tokens.waits:
                self._add_tokens(window, batch, max(left, _TOKENS_LEAST))
                left -= len(batch.tokens)
            if writes or batch.finished or batch.drains_events or batch.tokens:
                writes_left -= writes
                finished_left = max(finished_left - len(batch.finished), 0)
                batches.append((shard, batch))
        self._left_out = left_out
        self._more_finished = finished_max > 0 and finished_left == 0
        return batches

    async def _fetched(self, windows: Sequence[Window], rows_max: int) -> list[Fetched]:
        """For each window the present states that its next batch needs and memory doesn't have: of at most so many uuids."""
        context = self._context
        uuids_max = max(context.fetch_uuids_max // max(len(windows), 1), 1)
        wanted = [window.to_fetch(rows_max, uuids_max) for window in windows]
        fetched: list[Fetched] = [{} for _ in windows]

        async def fetch(number: int) -> None:
            uuids = wanted[number]
            found = await context.bounded(context.store.fetch(windows[number].shard_id, uuids))
            fetched[number] = {uuid: found.get(uuid) for uuid in uuids}

        incomplete = [number for number, uuids in enumerate(wanted) if uuids]
        await in_parallel(fetch, incomplete, context.fetching)
        return fetched

    def _assembly(self, window: Window, fetched: Fetched | None = None) -> Assembly:
        now_us = self._context.planning_us()
        assembly = Assembly(
            window,
            now_us=now_us,
            boot_us=self._context.clock.boottime_us(),
            history_rule=self._context.history_rule,
            hooks_of=self._context.hooks_of,
            refusal_of=self._context.refusal,
            failure_retention_us=self._context.limits.failure_retention_us,
            fetched=fetched,
            room=RowRoom(self._context.row_bytes_max, self._context.limits.row_reserve_bytes),
        )
        assembly.calendars_of = self._context.calendars_of
        if self._context.sinks:
            assembly.ends.sinks = self._context.sinks
        if self._context.quotas:
            assembly.room_for = cache(partial(room_for, self._context, window.shard_id))
        if any(rules.ordered for rules in self._context.flows.values()):
            assembly.turn_reason = partial(turn_reason, self._context.flows, now_us)
        return assembly

    def _add_tokens(self, window: Window, batch: Batch, most: int) -> None:
        queue, context = window.queue, self._context
        queue.tokens.add_to(batch, most, queue.next_generation, context.planning_us(), context.flow_time_us())

    async def _write(self, batches: list[tuple[Shard, Batch]]) -> None:
        """Applies the batches and reports them to their windows. If the store raises, no window has changed."""
        context = self._context
        began = context.clock.boottime_us()
        self._under_way = batches
        try:
            results = await context.bounded(context.store.apply([batch.store for _, batch in batches]))
        finally:
            self._under_way = ()
        context.note_write(None)
        duration = context.clock.boottime_us() - began
        self._learn(sum(len(batch.finished) for _, batch in batches), duration)
        upserts = deletes = history = 0
        written: list[Batch] = []
        # Results of attempts that are lost with a claim that ended before, in order as it seemed then: of how many shards.
        lost = shards_lost = 0
        for (shard, batch), result in zip(batches, results, strict=True):
            if result is Applied.OWNERSHIP_LOST:
                batch.refuse(ShardMoved(f"shard {shard.shard_id} belongs to another node now; {_NOT_WRITTEN}"))
                if shard.holds(batch):
                    shard.lose("fenced")
                elif results_lost := len(batch.finished) + sum(op.kind in ATTEMPT_RESULTS for op in batch.ops):
                    lost, shards_lost = lost + results_lost, shards_lost + 1
                continue
            self._committed(shard, batch)
            upserts += len(batch.store.upserts)
            deletes += len(batch.store.deletes)
            history += len(batch.store.history) + len(batch.store.runs)
            written.append(batch)
        self._report_writes(written)
        if lost:
            error = f"{lost} results came after the claims had ended; the next owners make these attempts again"
            context.observe(BatchFailed(self._index, shards_lost, "fenced", error))
        if written:
            context.observe(BatchCommitted(self._index, len(written), upserts, deletes, history, duration))

    def _committed(self, shard: Shard, batch: Batch) -> None:
        """Applies a durable batch to the window, and answers its clients. A claim that has ended since it was written (the
        node lease lapsed, a hand-over took too long) makes it no less durable, and no answer less true: the next owner
        reads it."""
        window = shard.window if shard.holds(batch) else None
        if window is not None:
            window.committed(batch, self._context.clock.boottime_us())
            if shard.order.active:
                shard.order.committed(batch, window)
        for event in batch.events:
            self._context.observe(event)
        if window is not None:
            if self._context.quotas:
                note_committed(self._context, batch)
            if batch.monitors:
                self._context.monitors_seen = True
            if batch.accounted:
                note_recorded(self._context, shard.shard_id, batch.accounted)
            if batch.events_added or batch.drains_events:
                self._context.events_changed(shard)
            shard.recount()
        batch.answer()
        if window is not None:
            shard.changed()

    def _learn(self, finished: int, duration_us: int) -> None:
        """Adapts how many finished timers a batch may have, so that a commit takes about `commit_target`, unless they fall
        behind."""
        limits = self._context.limits
        if duration_us > limits.commit_target_us and not self._behind:
            if finished > _FINISHED_MIN:
                self._finished_max = max(finished * limits.commit_target_us // duration_us, _FINISHED_MIN)
        elif finished >= self._finished_max:
            self._finished_max = min(self._finished_max * 5 // 4, self._context.batch_rows_max)

    def _report_writes(self, written: Sequence[Batch]) -> None:
        """Emits the events of created and changed timers, for all shards together: with many shards, a commit has hardly
        more than one write for each."""
        created: dict[str, int] = {}
        changed: dict[tuple[str, str], int] = {}
        for batch in written:
            for part in batch.parts:
                for namespace, count in part.part.created().items():
                    created[namespace] = created.get(namespace, 0) + count
            for op, answer in zip(batch.ops, batch.answers, strict=True):
                if op.kind > _LAST_CHANGE or isinstance(answer, _WROTE_NOTHING):
                    continue
                if op.timer is not None:
                    created[op.timer.namespace] = created.get(op.timer.namespace, 0) + 1
                else:
                    word = _WORDS[op.kind]
                    changed[op.namespace, word] = changed.get((op.namespace, word), 0) + 1
        for namespace, count in created.items():
            self._context.observe(TimersCreated(namespace, count))
        for (namespace, word), count in changed.items():
            self._context.observe(TimersChanged(namespace, word, count))

    # ------------------------------------------------------------------ failures

    async def _try(self, batches: list[tuple[Shard, Batch]]) -> DefiniteFailure | None:
        """Writes the batches. Returns the error if they certainly had no effect: their operations are queued again, except
        those of clients while the store takes no writes, who are refused. An unknown outcome ends the claims (rule 3)."""
        try:
            await self._write(batches)
        except DefiniteFailure as error:
            for shard, batch in batches:
                if shard.window is not None and shard.holds(batch):
                    shard.window.abandon(batch)
                else:
                    batch.refuse(ShardMoved(f"shard {shard.shard_id} changed its owner; {_NOT_WRITTEN}"))
            if isinstance(error, StoreUnavailable):
                self._context.note_write(error)
                self._failed(batches, "unavailable", error)
                refused = Unavailable(f"writing to the store failed; {_NOT_WRITTEN}: {error}")
                self._refuse_clients([shard for shard, _ in batches], refused)
            return error
        except OutcomeUnknown as error:
            self._failed(batches, "unknown", error)
            for shard, batch in batches:
                batch.refuse(ShardUnavailable(_UNCONFIRMED))
                if shard.holds(batch):
                    shard.lose("unknown_outcome")
        finally:
            for _, batch in batches:
                if batch.creates:
                    reserve(self._context, batch, -1)
        return None

    def _refuse_clients(self, shards: Sequence[Shard], error: TocsinError) -> None:
        for shard in shards:
            if shard.window is not None:
                shard.window.refuse_clients(error, self._context.clock.boottime_us())
                # A schedule's row may be due that waited for a change.
                shard.changed()

    def _failed(self, batches: list[tuple[Shard, Batch]], kind: str, error: Exception) -> None:
        self._context.observe(BatchFailed(self._index, len(batches), kind, str(error)))

    # ------------------------------------------------------------------ rule 5: one bad row never blocks a batch

    async def _commit_apart(self, shard: Shard, ops: int) -> bool:
        """Bisects a refused batch: commits ever smaller parts until the offending row is alone and refused."""
        done = await self._bisect_ops(shard, ops) and await self._commit_finished_singly(shard)
        done = done and await self._commit_tokens(shard)
        # What is refused leaves room for more, though nothing was written.
        shard.changed()
        return done

    async def _bisect_ops(self, shard: Shard, count: int) -> bool:
        if count == 0 or shard.window is None:
            return True
        batches = await self._assembled([shard], count, 0)
        if not batches:
            return batches is not None
        error = await self._try(batches)
        if error is None:
            return True
        if isinstance(error, StoreUnavailable):
            return False
        _, batch = batches[0]
        if len(batch.ops) == 1 and not batch.parts:
            op = batch.ops[0]
            self._context.observe(WriteRefused(shard.shard_id, op.uuid, str(error)))
            if shard.window is not None:
                shard.window.refuse_first(op, error, self._context.clock.boottime_us())
                if op.kind is OpKind.RESUME:
                    shard.order.refused(op.uuid)
            return True
        half = batch.writes // 2
        return await self._bisect_ops(shard, half) and await self._bisect_ops(shard, batch.writes - half)

    async def _commit_finished_singly(self, shard: Shard) -> bool:
        """Commits finished timers one at a time; one that fails is tried without its history, then left in memory."""
        window = shard.window
        if window is None or not window.finished:
            return True
        for entry in list(window.finished.values()):
            # Twice with history: a deadlock or the like must not cost the history.
            for with_history in (True, True, False):
                if shard.window is not window:
                    return True
                entry.with_history = with_history
                error = await self._try([(shard, self._assembly(window).only(entry))])
                if error is None:
                    break
                if isinstance(error, StoreUnavailable):
                    return False
                self._context.observe(WriteRefused(shard.shard_id, entry.row.key[1], str(error)))
            else:
                window.delete_refused(entry, self._context.clock.boottime_us())
        return True

    async def _commit_tokens(self, shard: Shard) -> bool:
        """Commits tokens of slow rates by themselves, in ever smaller parts until one that fails is alone. That one is left
        out after a second try, until it changes again, so that it keeps nothing else from being written."""
        window = shard.window
        if window is None:
            return True
        tokens = window.queue.tokens
        left = most = len(tokens.unsaved)
        refused: TokenPlace | None = None
        while left > 0 and tokens.waits and shard.window is window:
            batch = Batch(ShardBatch(window.shard_id, window.epoch, window.incarnation))
            self._add_tokens(window, batch, most)
            error = await self._try([(shard, batch)])
            if isinstance(error, StoreUnavailable):
                return False
            if error is not None and most > 1:
                most = (most + 1) // 2
                continue
            if error is not None and batch.tokens:
                ((place, _, _),) = batch.tokens
                if place != refused:
                    refused = place
                    continue
                self._context.observe(WriteRefused(shard.shard_id, uuid_of(place), str(error)))
                tokens.written(batch)
            left -= most
            most = max(left, 1)
        return True


def _oldest_result_us(read: tuple[Shard, Window, Fetched]) -> float:
    """The boot time since which the shard's oldest finished timer has waited for a batch; infinity without one."""
    finished = read[1].finished
    return next(iter(finished.values())).since_us if finished else math.inf
