"""What a batch writes of ends besides the rows: history, failures, and the events of namespaces with a sink. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import TYPE_CHECKING

from tocsin.model.failure import FAILED
from tocsin.model.namespace import HistoryMode
from tocsin.model.run import MissedInstants
from tocsin.model.sink import SinkEvent, encode_event, end_event, missed_event, monitor_event
from tocsin.model.timer import Status, Timer
from tocsin.ports.store import EVENTS_SUFFIX, StoredRow
from tocsin.timers.engine.event_log import SINK
from tocsin.timers.engine.idempotency import keeps, kept_for_its_keys
from tocsin.timers.engine.notifications import uuid_beside
from tocsin.timers.engine.recurring import Turn
from tocsin.timers.engine.rows import Batch, Row
from tocsin.timers.engine.runs import HistoryRule, failure_row, history_row

if TYPE_CHECKING:
    from tocsin.timers.engine.window import Window


class EndRows:
    """The rows of the ends of one batch, made at the given moment of the wall clock. `sinks` are the namespaces with one."""

    __slots__ = ("_batch", "_failure_retention_us", "_history_rule", "_now_us", "_window", "sinks")

    def __init__(
        self, window: Window, batch: Batch, history_rule: HistoryRule, failure_retention_us: int, now_us: int
    ) -> None:
        self._window, self._batch = window, batch
        self._history_rule, self._failure_retention_us, self._now_us = history_rule, failure_retention_us, now_us
        self.sinks: Container[str] | None = None

    def record(self, row: Row, timer: Timer) -> None:
        """Adds what is kept of a finished timer, and the event of its end."""
        self.keep(row, timer)
        self.ended(row, timer)

    def keep(self, row: Row, timer: Timer) -> None:
        """Adds what is kept of a finished timer."""
        batch, (mode, retention_us) = self._batch, self._history_rule(timer.namespace)
        if timer.monitor is not None or (timer.notifies is not None and timer.status is Status.COMPLETED):
            return
        failed = timer.status in FAILED and mode is not HistoryMode.NONE
        if failed:
            # What is listed as a failure can be looked at.
            retention_us = max(retention_us, self._failure_retention_us)
        if timer.schedule is not None:
            # Kept in every mode, so that creating an ended schedule again does not begin it again.
            pass
        elif timer.keys:
            timer, retention_us = kept_for_its_keys(timer, mode, retention_us)
        elif not keeps(mode, timer):
            return
        ended = timer.executed_at or self._now_us
        kept = history_row(row, timer, ended, retention_us)
        batch.store.history.append(kept)
        batch.bytes += len(kept.record)
        if failed and (row.key[1], row.generation) not in batch.store.resolved:
            self.fail(row.key[1], row.generation, timer, ended)

    def fail(self, uuid: bytes, generation: bytes, ended: Timer, failed_at: int) -> None:
        """Lists the end of a timer or occurrence as a failure (rule 28), in the batch that keeps its details."""
        retention_us = self._failure_retention_us
        self._batch.store.failures.append(failure_row(uuid, generation, ended, failed_at, retention_us))

    # ------------------------------------------------------------------ events

    def ended(self, row: Row, timer: Timer) -> None:
        """Adds the event of the end of a finished timer."""
        if self.sinks is None or timer.notifies is not None:
            return
        now_us, uuid = self._now_us, row.key[1]
        if timer.monitor is not None:
            self._add(uuid, timer, lambda event_id: monitor_event(event_id, timer, str(timer.status), now_us))
        else:
            kind = "timer" if timer.schedule is None else "schedule"
            self._add(uuid, timer, lambda event_id: end_event(event_id, kind, timer, uuid, now_us))

    def turned(self, uuid: bytes, turn: Turn) -> None:
        """Adds the events of an occurrence that has ended, and of instants that were missed."""
        timer, run, now_us = turn.timer, turn.run, self._now_us
        if run is not None:
            self._add(uuid, timer, lambda event_id: end_event(event_id, "occurrence", run, uuid, now_us))
        for missed in turn.missed:
            self._add(uuid, timer, partial(missed_event, timer=timer, missed=MissedInstants(*missed), now_us=now_us))

    def monitor(self, uuid: bytes, timer: Timer, what: str) -> None:
        """Adds the event of what happened to a monitor."""
        self._add(uuid, timer, lambda event_id: monitor_event(event_id, timer, what, self._now_us))

    def _add(self, subject: bytes, timer: Timer, made: Callable[[str], SinkEvent]) -> None:
        """Adds an event, in the chunk of its subject (rule 18), if the namespace has a sink."""
        if self.sinks is None or timer.namespace not in self.sinks:
            return
        batch, window = self._batch, self._window
        generation = window.queue.next_generation()
        uuid = uuid_beside(subject, generation)
        record = encode_event(made(f"evt_{uuid.hex()}"))
        at_us = window.events.next_instant()
        batch.upserts[uuid] = StoredRow(at_us, uuid, generation, timer.namespace + EVENTS_SUFFIX, "", (), record, SINK)
        batch.store.together[uuid] = subject
        batch.bytes += len(record)
        batch.events_added += 1
