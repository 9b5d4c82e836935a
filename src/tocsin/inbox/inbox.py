"""Drains the inbox: the node that owns the first shard reads rows, creates their timers, and deletes the rows once these are
durable.

Nothing is locked or marked while the engine writes. A row that is created again, because a node was lost before it deleted
the row or because two nodes drain for a moment, is created once: its id is the timer's idempotency key. Whatever happens to
the inbox's database or to a row is the inbox's trouble alone, and never raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from tocsin.inbox.events import InboxInterrupted, InboxOpened, InboxResumed, InboxRowsSettled
from tocsin.inbox.options import InboxOptions
from tocsin.inbox.reading import RowReader, is_final, reason_of
from tocsin.model.audit import AuditAction, AuditSource, Detail
from tocsin.model.condition import Condition
from tocsin.model.condition import Outcome as Created
from tocsin.model.errors import ConfigError, OutcomeUnknown, StoreError, StoreUnavailable, TocsinError, Unavailable
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.retry import backoff_us
from tocsin.model.timer import Timer
from tocsin.ports.audit import Actor, AuditExport, AuditLog
from tocsin.ports.clock import Clock
from tocsin.ports.inbox import PROBE, Backlog, DueRow, InboxTable, Outcome
from tocsin.ports.observer import Observer
from tocsin.tasks import end_tasks, spawn
from tocsin.timers.service import TimerService, TimerView
from tocsin.web.http.batches import TimeSlice
from tocsin.web.http.errors import error_code

#: How often a node that does not own the first shard looks whether it does.
_LOOK_S = 0.5
#: Between the tries of a row that is refused for the moment: half of the oldest one's age, within these bounds.
_LATER_US_MIN, _LATER_US_MAX = US_PER_SECOND, 60 * US_PER_SECOND
#: What ends a round, because it holds for every row: the engine is busy, or its store is away.
_BUSY = (Unavailable, OutcomeUnknown, StoreUnavailable)


class _EngineBusy(Exception):
    """Rows were not created, for a reason that is not theirs."""


class Inbox:
    """Drains `table` while this node `acts_for_all`. `clock` is the machine's, by which programs write rows.
    `fatal` is called with a defect of the loop itself; `export` gets the timers that are created."""

    def __init__(
        self,
        table: InboxTable,
        service: TimerService,
        reader: RowReader,
        options: InboxOptions,
        *,
        clock: Clock,
        audit: AuditLog,
        observe: Observer,
        acts_for_all: Callable[[], bool],
        fatal: Callable[[BaseException], None],
        export: AuditExport | None = None,
    ) -> None:
        self._export = export
        self._table, self._service, self._reader, self._options = table, service, reader, options
        self._clock, self._audit, self._observe = clock, audit, observe
        self._actor = Actor(None, "", AuditSource.INBOX, options.source)
        self._acts_for_all, self._fatal = acts_for_all, fatal
        self._task: asyncio.Task[None] | None = None
        self._opened = False
        self._backlog = Backlog(0, 0, None)
        self._count_at_us = 0
        # What became of rows, as far as the table does not have it.
        self._unsettled = PROBE
        # The rows that were read last, by their ids.
        self._rows: dict[str, DueRow] = {}
        # Consecutive failures, and since when, in boot time, the database does not answer.
        self._failures = 0
        self._away_since_us: int | None = None

    def start(self) -> None:
        """Begins to drain."""
        self._task = spawn(self._run(), self._fatal)

    async def close(self) -> None:
        """Stops; rows that are not settled stay in the table."""
        if self._task is not None:
            await end_tasks(self._task)
        await self._table.close()

    def gauges(self) -> Mapping[str, float]:
        """The values of the inbox's gauges; 0 on a node that does not drain."""
        oldest_at = self._backlog.oldest_at
        return {
            "tocsin_inbox_draining": float(self._opened),
            "tocsin_inbox_away_seconds": self._away_us() / 1e6,
            "tocsin_inbox_rows_waiting": self._backlog.waiting,
            "tocsin_inbox_rows_dead": self._backlog.dead,
            "tocsin_inbox_oldest_seconds": 0 if oldest_at is None else max(self._clock.now_us() - oldest_at, 0) / 1e6,
        }

    def notices(self) -> list[str]:
        """What people who ask for this node's health should know."""
        if not (away_us := self._away_us()):
            return []
        return [f"inbox: its database has not answered for {away_us // US_PER_SECOND} s; its rows wait there"]

    def _away_us(self) -> int:
        """For how long the database has not answered; at least 1 while it does not."""
        since_us = self._away_since_us
        return 0 if since_us is None else max(self._clock.boottime_us() - since_us, 1)

    async def _run(self) -> None:
        while True:
            if not self._acts_for_all():
                self._leave()
                await asyncio.sleep(_LOOK_S)
                continue
            try:
                await self._count()
                more = await self._round()
            except _EngineBusy as busy:
                self._answered()
                await self._pause("engine", busy.args[0], self._options.busy_pause_us_max)
            except (StoreError, ConfigError) as error:
                if self._away_since_us is None:
                    self._away_since_us = self._clock.boottime_us()
                await self._pause("database", error, self._options.away_pause_us_max)
            except Exception as defect:  # noqa: BLE001 -- timers must not end for the sake of the inbox
                await self._pause("engine", defect, self._options.busy_pause_us_max)
            else:
                self._answered()
                self._failures = 0
                if not more:
                    await self._table.wait(self._options.poll_interval_us / 1e6)

    def _leave(self) -> None:
        """Another node drains."""
        if self._opened or self._away_since_us is not None:
            self._opened, self._away_since_us, self._failures = False, None, 0
            self._backlog, self._count_at_us, self._unsettled = Backlog(0, 0, None), 0, PROBE
            self._table.release()

    def _answered(self) -> None:
        """The database has answered."""
        if self._away_since_us is not None:
            self._observe(InboxResumed(self._away_us() / 1e6))
            self._away_since_us = None

    async def _pause(self, part: str, error: Exception, pause_us_max: int) -> None:
        self._failures += 1
        pause_s = backoff_us(self._failures, self._options.pause_us, pause_us_max) / 1e6
        text = str(error) if isinstance(error, TocsinError) else repr(error)
        self._observe(InboxInterrupted(part, text, pause_s))
        await asyncio.sleep(pause_s)

    async def _round(self) -> bool:
        """Creates the timers of the oldest rows that are due, and settles the rows; whether others may be due now. Raises
        _EngineBusy, StoreError, ConfigError."""
        # Before any other is read: whoever can't delete rows must not create timers of them again and again.
        await self._settle()
        if not self._opened:
            await self._open()
        rows = await self._table.due(self._clock.now_us(), self._options.rows_max)
        if not rows:
            return False
        self._rows = {row.id: row for row in rows}
        outcome = self._unsettled
        fitting = self._fitting(rows, outcome)
        requests = await self._table.requests([row.id for row in fitting]) if fitting else {}
        busy = await self._create([row for row in fitting if row.id in requests], requests, outcome)
        await self._settle()
        if busy is not None:
            raise _EngineBusy(busy)
        return bool(outcome)

    async def _settle(self) -> None:
        """Settles what became of the rows that were read last, and reports it."""
        outcome = self._unsettled
        await self._table.settle(outcome)
        self._unsettled = Outcome()
        if outcome and outcome is not PROBE:
            self._report(outcome)

    async def _open(self) -> None:
        """Records that rows create timers from now on, on behalf of whom."""
        self._opened = True
        self._observe(InboxOpened(self._table.place))
        options = self._options
        about: dict[str, Detail] = {
            "database": self._table.place,
            "table": options.table,
            "namespaces": list(options.namespaces),
        }
        await self._audit.write(AuditAction.INBOX_OPENED, self._actor, options.source, about)

    def _fitting(self, rows: list[DueRow], outcome: Outcome) -> list[DueRow]:
        """The first rows, as many as are read together. One that is larger than any request may be is dead, unread."""
        most, left = self._reader.request_bytes_max, self._options.round_bytes_max
        taken: list[DueRow] = []
        for row in rows:
            if row.request_bytes > most:
                outcome.dead[row.id] = (
                    f"BODY_TOO_LARGE: request: has {row.request_bytes} bytes; at most {most} are accepted"
                )
            elif not taken or row.request_bytes <= left:
                taken.append(row)
                left -= row.request_bytes
            else:
                break
        return taken

    async def _create(self, rows: list[DueRow], requests: Mapping[str, str], outcome: Outcome) -> TocsinError | None:
        """Creates the timers of the rows, and adds what became of them; the error because of which some are neither created
        nor refused."""
        machine_us, now_us, time_slice = self._clock.now_us(), self._service.now_us(), TimeSlice()
        readable: list[DueRow] = []
        timers: list[Timer] = []
        conditions: list[Condition | None] = []
        refused: list[tuple[DueRow, TocsinError]] = []
        for row in rows:
            if time_slice.is_over():
                await time_slice.yield_now()
            try:
                timer, condition = self._reader.timer(row, requests[row.id], machine_us=machine_us, now_us=now_us)
            except TocsinError as error:
                refused.append((row, error))
                continue
            except Exception as defect:  # noqa: BLE001 -- of this row: the others go on, and it is tried again
                refused.append((row, TocsinError(repr(defect))))
                continue
            readable.append(row)
            timers.append(timer)
            conditions.append(condition)
        for row, answer in zip(readable, await self._answers(timers, conditions), strict=True):
            if isinstance(answer, TocsinError):
                refused.append((row, answer))
            else:
                outcome.created.append(row.id)
                if self._export is not None and answer.outcome is Created.CREATED:
                    self._export.changed("timers/create", self._actor, answer.timer.namespace, [answer.timer.id])
        busy = [error for _, error in refused if isinstance(error, _BUSY)]
        outcome.dead.update((row.id, reason_of(error)) for row, error in refused if is_final(error))
        waiting = [each for each in refused if not is_final(each[1]) and not isinstance(each[1], _BUSY)]
        if waiting:
            oldest_us = machine_us - min(row.created_at for row, _ in waiting)
            due_at = machine_us + min(max(oldest_us // 2, _LATER_US_MIN), _LATER_US_MAX)
            outcome.later.update((row.id, due_at) for row, _ in waiting)
            self._observe(InboxRowsSettled("waiting", len(waiting), error_code(waiting[0][1])))
        return busy[0] if busy else None

    async def _answers(self, timers: list[Timer], conditions: list[Condition | None]) -> list[TimerView | TocsinError]:
        """What the service makes of the timers, one by one."""
        if not timers:
            return []
        try:
            return await self._service.create_many(timers, conditions)
        except TocsinError as error:
            return [error for _ in timers]

    def _report(self, outcome: Outcome) -> None:
        if outcome.created:
            lag_us = self._clock.now_us() - min(self._rows[row_id].created_at for row_id in outcome.created)
            self._observe(InboxRowsSettled("created", len(outcome.created), lag_us=max(lag_us, 0)))
        if outcome.dead:
            self._observe(
                InboxRowsSettled("dead", len(outcome.dead), next(iter(outcome.dead.values())).partition(":")[0])
            )
            # Counted at once, because somebody has to act.
            self._backlog = self._backlog._replace(dead=self._backlog.dead + len(outcome.dead))

    async def _count(self) -> None:
        now_us = self._clock.boottime_us()
        if now_us >= self._count_at_us:
            self._count_at_us = now_us + self._options.count_interval_us
            self._backlog = await self._table.backlog()
