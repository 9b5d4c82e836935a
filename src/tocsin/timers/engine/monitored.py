"""Monitors in a shard: further pings that are in memory alone, and what a batch writes of a monitor (rule 33)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from tocsin.model.condition import Outcome
from tocsin.model.errors import TocsinError
from tocsin.model.hooks import Event
from tocsin.model.monitor import Monitor, MonitorChange, Ping
from tocsin.model.namespace import HistoryMode
from tocsin.model.period import Period, PeriodStatus, encode_period
from tocsin.model.timer import Status, Timer
from tocsin.ports.monitors import MonitorChanged, PeriodEnded
from tocsin.ports.store import RunRow
from tocsin.timers.engine.monitoring import (
    NO_DEADLINE,
    MonitorTurn,
    Outage,
    change,
    is_further,
    monitor_of,
    noted,
    overdue,
)
from tocsin.timers.engine.notifications import Subject
from tocsin.timers.engine.rows import Batch, ExistingRow, Row, WriteAnswer, WriteOp
from tocsin.timers.engine.watching import watched

if TYPE_CHECKING:
    from tocsin.timers.engine.runs import HistoryRule
    from tocsin.timers.engine.window import Window

#: Monitors of a node whose further pings may stay in memory, and the bytes of their records; each ping of others is written.
#: One takes about 1.5 KB besides its record.
REMEMBERED_MAX, REMEMBERED_BYTES_MAX = 25_000, 16 * 1024 * 1024
#: Outages of a shard that are remembered, the latest ones.
_OUTAGES_MAX = 100


class _Known(NamedTuple):
    """A monitor's durable row, when a ping was written last, and the timer with the pings since."""

    row: Row
    written_at: int
    timer: Timer


class MonitorsRemembered:
    """How many monitors a node remembers, all shards together, and the bytes of their records."""

    __slots__ = ("bytes", "count")

    def __init__(self) -> None:
        self.count = self.bytes = 0

    def may_have(self, row: Row) -> bool:
        """Whether there is room for another monitor's row."""
        return self.count < REMEMBERED_MAX and self.bytes + row.size <= REMEMBERED_BYTES_MAX

    def add(self, row: Row) -> None:
        """The row is remembered."""
        self.count, self.bytes = self.count + 1, self.bytes + row.size

    def remove(self, row: Row) -> None:
        """The row is no longer remembered."""
        self.count, self.bytes = self.count - 1, self.bytes - row.size


class MonitorMemory:
    """What the owner of a shard remembers of its monitors: only what it has written itself. The next owner knows nothing of
    further pings since, and moves deadlines by as long as these may have been in memory alone. `remembered` is the node's."""

    __slots__ = ("_known", "_remembered", "outages")

    def __init__(self, remembered: MonitorsRemembered | None = None) -> None:
        self._known: dict[bytes, _Known] = {}
        self._remembered = MonitorsRemembered() if remembered is None else remembered
        #: The outages of the shard, the earliest first.
        self.outages: tuple[Outage, ...] = ()

    def add_outage(self, outage: Outage) -> None:
        """Remembers an outage, the latest so far, or how long that one has lasted."""
        kept = self.outages[:-1] if self.outages and self.outages[-1].from_us == outage.from_us else self.outages
        self.outages = (*kept, outage)[-_OUTAGES_MAX:]

    def row(self, uuid: bytes) -> Row | None:
        """The monitor's durable row, if it is remembered."""
        known = self._known.get(uuid)
        return None if known is None else known.row

    def latest(self, row: Row) -> Timer:
        """The timer of a durable row, after the further pings in memory."""
        known = self._known.get(row.key[1])
        return row.timer if known is None or known.row.generation != row.generation else known.timer

    def note(self, uuid: bytes, ping: Ping, now_us: int) -> Row | None:
        """Takes a ping that need not be written now; returns the row as if it had been. None: it has to be written."""
        known = self._known.get(uuid)
        if known is None:
            return None
        definition, state = monitor_of(known.timer)
        if ping.token not in (None, state.token) or now_us - known.written_at >= definition.write_interval_us:
            return None
        if not is_further(known.timer, ping, now_us):
            return None
        timer = noted(known.timer, now_us)
        self._known[uuid] = known._replace(timer=timer)
        return Row(known.row.key, known.row.generation, timer, known.row.size)

    def committed(self, uuid: bytes, row: Row | None) -> None:
        """A batch is durable that writes the monitor's row, or deletes it."""
        former = self._known.pop(uuid, None)
        if former is not None:
            self._remembered.remove(former.row)
        if row is None or row.timer.monitor is None:
            return
        written_at, timer = row.timer.monitor.state.last_ping or 0, row.timer
        if former is not None and (latest := monitor_of(former.timer)[1].last_ping) is not None:
            # It may have come after the batch was assembled, and is nowhere else then.
            timer = noted(timer, latest)
        if timer is not row.timer or self._remembered.may_have(row):
            self._remembered.add(row)
            self._known[uuid] = _Known(row, written_at, timer)

    def forget(self) -> None:
        """The claim of the shard has ended."""
        for known in self._known.values():
            self._remembered.remove(known.row)
        self._known.clear()


class Writer(Protocol):
    """What the assembly of a batch does for its monitors."""

    def write(self, row: Row, suspended: str | None = None) -> Row:
        """Writes the row."""

    def end(self, op: WriteOp, present: Row, timer: Timer) -> None:
        """The operation ends the timer."""

    def notify(self, row: Row, ended_as: bytes, reported: Iterable[tuple[Event, Subject]]) -> None:
        """Writes the notifications that hooks ask for."""


class MonitorWrites:
    """What one batch writes of monitors, at the given moment of the wall clock. It has no reference to the assembly,
    which has one to it: a batch must not be left to the garbage collector."""

    __slots__ = ("_batch", "_history_rule", "_memory", "_next_generation", "_now_us")

    def __init__(
        self,
        window: Window,
        batch: Batch,
        history_rule: HistoryRule,
        now_us: int,
    ) -> None:
        self._memory, self._next_generation = window.monitors, window.queue.next_generation
        self._batch = batch
        self._history_rule, self._now_us = history_rule, now_us

    def change(self, writer: Writer, op: WriteOp, asked: MonitorChange, present: WriteAnswer) -> WriteAnswer:
        """Applies what a client asks for to the live row, if `present` is one."""
        live = self._latest(present) if isinstance(present, Row) and present.raw is None else None
        outcome = change(asked, live, op.timer, self._now_us, self._memory.outages)
        if isinstance(outcome, TocsinError):
            return outcome
        if isinstance(outcome, MonitorTurn):
            return self._turn(writer, op, outcome)
        assert isinstance(present, Row)
        return ExistingRow(Row(present.key, present.generation, outcome, present.size), Outcome.EXISTING)

    def delete(self, writer: Writer, op: WriteOp, present: Row) -> WriteAnswer:
        """Ends the monitor. What is kept of its periods stays until somebody forgets it."""
        timer = msgspec.structs.replace(present.timer, status=Status.CANCELED, updated_at=self._now_us)
        writer.end(op, present, timer)
        self._batch.monitors.add(op.uuid)
        self._batch.events.append(MonitorChanged(timer.namespace, timer.id, "deleted"))
        return None

    def overdue(self, writer: Writer, op: WriteOp, present: Row) -> Row:
        """The instant of the row has come, unless pings in memory have moved it; the schedule that it watches was read."""
        timer = self._latest(present)
        definition, state = monitor_of(timer)
        if definition.schedule is not None:
            assert op.seen is not None
            return self._turn(writer, op, watched(timer, op.seen, self._now_us))
        if timer is not present.timer and state.deadline is not None and state.deadline > self._now_us:
            return self._turn(writer, op, MonitorTurn(timer, state.deadline))
        return self._turn(writer, op, overdue(timer, self._now_us, self._memory.outages))

    def _latest(self, present: Row) -> Timer:
        return self._memory.latest(present)

    def _turn(self, writer: Writer, op: WriteOp, turn: MonitorTurn) -> Row:
        """Writes what becomes of the row, with the periods that have ended and the notifications, all in one chunk."""
        timer, batch = turn.timer, self._batch
        batch.reckoned += 1
        if turn.periods:
            definition, state = monitor_of(timer)
            recorded = state.recorded + len(turn.periods)
            timer.monitor = Monitor(definition, msgspec.structs.replace(state, recorded=recorded))
            batch.accounted[op.uuid] = (batch.accounted.get(op.uuid, (state.recorded, 0))[0], recorded)
        # One without a deadline keeps an instant that a range delete never reaches: it is suspended.
        timer.execute_at = timer.execute_at if turn.at is None else turn.at
        row = Row((timer.execute_at, op.uuid), op.generation, timer, 0)
        writer.write(row, NO_DEADLINE if turn.at is None else None)
        batch.monitors.add(op.uuid)
        mode, retention_us = self._history_rule(timer.namespace)
        for period in turn.periods:
            fine = period.state in (PeriodStatus.ON_TIME, PeriodStatus.EXCUSED)
            if mode is HistoryMode.ALL or (mode is HistoryMode.FAILURES and not fine):
                record = encode_period(period)
                batch.store.runs.append(RunRow(op.uuid, self._next_generation(), record, self._now_us + retention_us))
                batch.bytes += len(record)
            batch.events.append(PeriodEnded(timer.namespace, timer.id, period.state, period.periods))
        for _, what in turn.reported:
            batch.events.append(MonitorChanged(timer.namespace, timer.id, what))
        if turn.changed:
            batch.events.append(MonitorChanged(timer.namespace, timer.id, turn.changed))
        writer.notify(
            row,
            op.generation,
            [(event, Subject(timer, period=_reported_by(turn, what), verb=what)) for event, what in turn.reported],
        )
        return row


def _reported_by(turn: MonitorTurn, what: str) -> Period | None:
    """The period that a notification is about: the last one that has ended, or that failed."""
    ended = turn.periods
    if what == "failed":
        ended = [each for each in ended if each.state is PeriodStatus.FAILED]
    return ended[-1] if ended else None
