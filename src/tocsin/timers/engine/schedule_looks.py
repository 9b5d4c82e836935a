"""Looks at schedules that monitors watch: what the owner of a monitor's row reads when it is due, from the store, since the
schedule may be in a shard of another node (ADR 123)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tocsin.model.errors import RecordUndecodable, StoreError
from tocsin.model.ids import namespace_hash, schedule_uuid, shard_of
from tocsin.model.run import Run, decode_run
from tocsin.model.timer import Timer, decode_record
from tocsin.ports.observer import LoadFailed
from tocsin.ports.store import GENERATION_BYTES, Found, HistoryRow, RunRow
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.monitoring import monitor_of
from tocsin.timers.engine.rows import OpKind, Row, WriteOp
from tocsin.timers.engine.shard import Shard
from tocsin.timers.engine.tenures import Tenures
from tocsin.timers.engine.watching import Seen
from tocsin.timers.engine.window import Window

#: Monitors whose schedules are read at once.
_TOGETHER = 64
#: Runs that are read at once: more than end between two looks at a schedule of seconds.
_RUNS_READ = 500
#: Runs that one look takes. They are written as periods of the monitor at once, with what has not fired before each, for
#: which DynamoDB has a hundred rows.
_TAKEN_MAX = 20
#: A generation that no row has.
_NO_GENERATION = bytes(GENERATION_BYTES)
#: What could not be read is read again after so long, or as long as the failure took, if that was longer: what fails slowly
#: leaves the others at least as much time.
_RETRY_S = 2.0


class _Look(NamedTuple):
    """A monitor's due row, deferred in the window of its shard, and where the schedule is that it watches; when its namespace
    was changed last."""

    shard: Shard
    window: Window
    row: Row
    schedule_shard: int
    schedule: bytes
    changed_at: int = 0


class ScheduleLooks:
    """One node's looks, in the order in which they were asked for."""

    def __init__(self, context: Context, tenures: Tenures, total_shards: int) -> None:
        self._context, self._tenures, self._total_shards = context, tenures, total_shards
        self._asked: deque[tuple[Shard, Row]] = deque()
        self._any = asyncio.Event()

    def ask(self, shard: Shard, row: Row) -> None:
        """Has the schedule read that the due, deferred row's monitor watches, and then the row moved on."""
        self._asked.append((shard, row))
        self._any.set()

    async def run(self) -> None:
        """Reads what is asked for, without end."""
        while True:
            await self._any.wait()
            asked = [self._asked.popleft() for _ in range(min(len(self._asked), _TOGETHER))]
            if not self._asked:
                self._any.clear()
            looks = [look for each in asked if (look := self._look(*each)) is not None]
            began_us = self._context.clock.boottime_us()
            failed = await self._read(looks)
            if failed:
                pause_s = max(_RETRY_S, (self._context.clock.boottime_us() - began_us) / 1e6)
                asyncio.get_running_loop().call_later(pause_s, self._ask_again, failed)
            if failed and len(failed) == len(looks):
                # The store is away: it has no use for the others' reads either.
                await asyncio.sleep(_RETRY_S)

    def _ask_again(self, looks: Sequence[_Look]) -> None:
        for look in looks:
            self.ask(look.shard, look.row)

    def _look(self, shard: Shard, row: Row) -> _Look | None:
        """What has to be read for the row; None if nothing has, because it is no longer this node's, or not the present
        one, or because its namespace fires nothing."""
        window = shard.window
        if window is None or shard.draining or not window.holds(row):
            return None
        namespace = self._context.namespaces.get(row.timer.namespace)
        definition, _ = monitor_of(row.timer)
        assert definition.schedule is not None
        if namespace is None or namespace.held:
            self._move_on(shard, window, row, Seen(self._context.clock.now_us(), None, b"", held=True))
            return None
        uuid = schedule_uuid(namespace.name, definition.schedule)
        where = shard_of(namespace_hash(namespace.name), uuid, namespace.num_shards, self._total_shards)
        return _Look(shard, window, row, where, uuid, namespace.updated_at)

    async def _read(self, looks: Sequence[_Look]) -> list[_Look]:
        """Reads the schedules and moves the rows on. Shards are read side by side, so that one that can't be read keeps up no
        other. Returns the looks that failed."""
        by_shard = dict[int, list[_Look]]()
        for look in looks:
            by_shard.setdefault(look.schedule_shard, []).append(look)
        most = self._context.fetch_uuids_max
        failed = await asyncio.gather(
            *(
                self._read_some(shard_id, here[first : first + most])
                for shard_id, here in by_shard.items()
                for first in range(0, len(here), most)
            )
        )
        return [look for some in failed for look in some]

    async def _read_some(self, shard_id: int, some: Sequence[_Look]) -> Sequence[_Look]:
        """The same of some schedules of one shard."""
        context, failed = self._context, list[_Look]()
        began_us = context.clock.now_us()
        try:
            found = await context.in_turn(context.store.fetch(shard_id, list({look.schedule: None for look in some})))
            seen = await asyncio.gather(*(self._try(look, began_us, found.get(look.schedule)) for look in some))
            # Later than what was read of the rows: what is known until then concerns all that these show.
            outages, known_until = await self._tenures.of(shard_id)
        except StoreError as error:
            context.observe(LoadFailed(None, str(error)))
            return some
        for look, each in zip(some, seen, strict=True):
            if each is None:
                failed.append(look)
            elif look.shard.window is look.window:
                known = replace(each, outages=outages, known_until=known_until, changed_at=look.changed_at)
                self._move_on(look.shard, look.window, look.row, known)
        return failed

    async def _try(self, look: _Look, began_us: int, found: Found | None) -> Seen | None:
        """What `_seen` returns; None if the store failed."""
        try:
            return await self._seen(look, began_us, found)
        except StoreError as error:
            self._context.observe(LoadFailed(None, str(error)))
            return None

    async def _seen(self, look: _Look, began_us: int, found: Found | None) -> Seen:
        """The schedule's row, and the runs that have ended before it since the last look; of a first look none."""
        _, state = monitor_of(look.row.timer)
        after = b"" if state.watched is None else state.watched.generation
        live = None if found is None else found.live
        schedule: Timer | None = None
        if live is not None:
            try:
                schedule = decode_record(live.record)
            except RecordUndecodable:
                # Its owner reports it. It fires nothing, as if there were none.
                schedule = None
        before = None if live is None or schedule is None else live.generation
        is_first = state.watched is None
        if before is not None and (is_first or before == after):
            return Seen(began_us, schedule, before)
        if is_first:
            rows = await self._runs(look, before, 1)
            # A schedule of this name may begin later, and its first occurrence counts.
            return Seen(began_us, None, _following(rows[0].generation) if rows else _NO_GENERATION)
        # The oldest ones, newest first, of all that have ended since: many, if looks have failed for long.
        taken: list[HistoryRow | RunRow] = []
        count, newest, behind = 0, b"", before
        while True:
            rows = await self._runs(look, behind, _RUNS_READ)
            new = [row for row in rows if row.generation >= after]
            taken, count = (taken + new)[-_TAKEN_MAX:], count + len(new)
            newest = newest or (new[0].generation if new else b"")
            if not new or len(new) < len(rows):
                break
            behind = new[-1].generation
        runs = [run for row in reversed(taken) if (run := _decoded(row)) is not None]
        if len(taken) < count:
            return Seen(began_us, schedule, _following(taken[0].generation), runs, more=True)
        return Seen(began_us, schedule, before or (_following(newest) if newest else b""), runs)

    async def _runs(self, look: _Look, before: bytes | None, most: int) -> list[HistoryRow | RunRow]:
        context = self._context
        return await context.in_turn(context.store.runs(look.schedule_shard, look.schedule, before, most))

    def _move_on(self, shard: Shard, window: Window, row: Row, seen: Seen) -> None:
        if shard.closed or not window.holds(row):
            return
        namespace, generation = row.timer.namespace, row.generation
        window.accept(WriteOp(OpKind.MOVE_ON, row.key[1], namespace, expected=generation, seen=seen))
        shard.lane.schedule(shard, urgent=False)


def _decoded(row: object) -> Run | None:
    """The run of an occurrence; None for the row of the schedule's end, and for one that can't be read."""
    if not isinstance(row, RunRow):
        return None
    try:
        return decode_run(row.record)
    except RecordUndecodable:
        return None


def _following(generation: bytes) -> bytes:
    """The least generation that is greater."""
    return (int.from_bytes(generation, "big") + 1).to_bytes(len(generation), "big")
