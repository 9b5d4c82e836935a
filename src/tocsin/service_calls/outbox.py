"""Publishes committed messages from the outbox table to the bus: at least once, and in order per aggregate."""

from __future__ import annotations

import asyncio
import contextlib
import random
from bisect import insort
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from tocsin.model.retry import backoff_us
from tocsin.ports.bus import Bus, Envelope, InvalidMessage
from tocsin.service_calls.background import AgentContext, GroupCommit, Periodic, Wakeup, describe
from tocsin.service_calls.events import (
    AgentStepFailed,
    MessagesPublished,
    MessageSuspended,
    PublishFailed,
)
from tocsin.service_calls.messages import CheckExecution, StartExecution
from tocsin.service_calls.ports import OutboxRow, OutboxStore

#: Failures that wait to be written to their rows. They serve people only, and each is a transaction; beyond this number
#: they are only reported as events.
_NOTES_MAX = 100

#: A tenant and the id of an aggregate, which tenants choose: two of them may have chosen the same one.
_Aggregate: TypeAlias = tuple[str, str]


def _aggregate(row: OutboxRow) -> _Aggregate:
    return row.envelope.tenant_id, row.envelope.aggregate_id


class OutboxDispatcher:
    """Publishes rows as they are committed and records them once the bus has accepted them.

    At most `outbox_in_flight_max` rows are in memory. Beyond that, rows that are announced are dropped and read from
    the table later. Memory stays bounded and order is kept, because a row is never taken before an older one that was
    dropped. A row that was published but not recorded when the process ended is published again after the next start,
    with the same id.
    """

    def __init__(self, store: OutboxStore, bus: Bus, context: AgentContext, random: random.Random) -> None:
        self._store = store
        self._bus = bus
        self._context = context
        self._limits = context.limits
        self._random = random
        # Of each aggregate, one row is being sent at a time; these wait for it, in the order of their numbers. None: no row
        # waits. Most aggregates never have more, and a list for each would cost most of the memory here.
        self._waiting: dict[_Aggregate, list[OutboxRow] | None] = {}
        self._acks = PublishAcks(store, context, self._acknowledged)
        # Rows that wait to be sent, are being sent, or are not recorded yet.
        self._in_flight: set[int] = set()
        self._attempts: dict[int, int] = {}
        self._retries: set[asyncio.TimerHandle] = set()
        # Whether the table may have rows that are not in memory. True at the start.
        self._behind = True
        self._reading = False
        # Rows appended during a search, when they cannot be taken yet; None: too many to keep.
        self._appended_meanwhile: list[OutboxRow] | None = None
        self._acknowledged_meanwhile: list[int] = []
        # Aggregates of rows whose commit had an unknown outcome. New ones wait for the next search; the others map to the
        # event loop's time in seconds until which their rows are read from the table.
        self._in_doubt_new: set[_Aggregate] = set()
        self._in_doubt: dict[_Aggregate, float] = {}
        self._sending = 0
        self._settled = Wakeup()
        self._reader = Wakeup()
        self._reading_task: asyncio.Task[None] | None = None
        self._purging = Periodic("outbox purge", self.purge, context, context.limits.purge_interval_us)
        self._closing = False

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Starts with the rows that an earlier run left. The bus must be running."""
        self._store.on_appended(self._appended)
        self._store.on_unknown(self._outcome_unknown)
        self._reading_task = asyncio.create_task(self._read())
        self._purging.start()

    async def close(self) -> None:
        """Stops sending. Waits up to `outbox_close_timeout` for the bus to accept what is being sent, and as long again
        for it to be recorded. What is left is published after the next start. Idempotent."""
        self._closing = True
        for handle in self._retries:
            handle.cancel()
        self._retries.clear()
        self._reader.wake()
        patience_s = self._limits.outbox_close_timeout_us / 1e6
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while self._sending:
                    await self._settled.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._acks.drain()
        if self._acks.waiting:
            text = (
                f"{self._acks.waiting} messages were published but not recorded in time; they will be published again"
            )
            self._context.observe(AgentStepFailed("outbox close", text))
        await self._acks.close()
        await self._purging.close()
        if self._reading_task is not None:
            await self._reading_task
            self._reading_task = None

    @property
    def waiting(self) -> int:
        """Rows in memory that the bus has not accepted yet."""
        return len(self._in_flight) - len(self._acknowledged_meanwhile) - self._acks.waiting

    @property
    def behind(self) -> bool:
        """Whether the table may have rows that are not in memory."""
        return self._behind

    # ------------------------------------------------------------------ sending

    def _appended(self, rows: Sequence[OutboxRow]) -> None:
        if self._closing:
            return
        if self._behind:
            if self._appended_meanwhile is not None:
                self._appended_meanwhile.extend(rows)
                if len(self._appended_meanwhile) > self._limits.outbox_in_flight_max:
                    self._appended_meanwhile = None
            return
        if any(self._is_in_doubt(row) for row in rows):
            # Rows that were committed before these may not be in memory.
            self._fall_behind()
            return
        for row in rows:
            if len(self._in_flight) >= self._limits.outbox_in_flight_max:
                self._behind, self._appended_meanwhile = True, None
                return
            self._take(row)

    def _outcome_unknown(self, rows: Sequence[OutboxRow]) -> None:
        """Only the table shows whether these rows exist; if they do, they go before later ones."""
        if not self._closing:
            self._in_doubt_new.update(map(_aggregate, rows))
            self._fall_behind()

    def _is_in_doubt(self, row: OutboxRow) -> bool:
        aggregate = _aggregate(row)
        return aggregate in self._in_doubt or aggregate in self._in_doubt_new

    def _fall_behind(self) -> None:
        """From now on rows are read from the table, starting at once."""
        # A search in progress does not count: it may read an older state.
        self._behind, self._appended_meanwhile = True, None
        self._reader.wake()

    def _take(self, row: OutboxRow) -> None:
        if row.number in self._in_flight:
            return
        self._in_flight.add(row.number)
        aggregate = _aggregate(row)
        if aggregate not in self._waiting:
            self._waiting[aggregate] = None
            self._send(row)
        elif waiting := self._waiting[aggregate]:
            insort(waiting, row, key=lambda each: each.number)
        else:
            self._waiting[aggregate] = [row]

    def _send(self, row: OutboxRow) -> None:
        self._sending += 1
        self._bus.post(row.envelope, partial(self._done, row))

    def _done(self, row: OutboxRow, error: Exception | None) -> None:
        self._sending -= 1
        if error is None:
            self._attempts.pop(row.number, None)
            self._acks.published(row)
            self._next(row)
        elif isinstance(error, InvalidMessage):
            self._attempts.pop(row.number, None)
            self._acks.suspend(row.number, str(error), self._consequence(row.envelope, str(error)))
            self._context.observe(MessageSuspended(*row.envelope.about, str(error)))
            self._next(row)
        else:
            self._failed(row, error)
        if self._closing:
            self._settled.wake()

    def _consequence(self, envelope: Envelope, error: str) -> Envelope | None:
        """What follows from a message that can never be published. Without its order an execution never ends; the
        execution module knows whether an earlier copy of the order arrived."""
        registry = self._context.registry
        try:
            message = registry.open(envelope)
        except InvalidMessage:
            # The watchdog makes the order again, from the call.
            return None
        if not isinstance(message, StartExecution):
            return None
        check = CheckExecution(message.service_call_id, message.execution_id, refused=error)
        return registry.caused_by(envelope, check)

    def _next(self, row: OutboxRow) -> None:
        """The row is settled; the next one of its aggregate is sent."""
        aggregate = _aggregate(row)
        waiting = self._waiting[aggregate]
        if not waiting:
            del self._waiting[aggregate]
        elif not self._closing:
            self._send(waiting.pop(0))

    def _failed(self, row: OutboxRow, error: Exception) -> None:
        """Retries after a pause that doubles each time, less up to half of it at random to spread retries."""
        if self._closing:
            # It is sent after the next start.
            return
        attempts = self._attempts.get(row.number, 0) + 1
        self._attempts[row.number] = attempts
        text = describe(error)
        self._acks.failed(row.number, attempts, text)
        self._context.observe(PublishFailed(*row.envelope.about, attempts, text))
        pause_s = self._pause_us(attempts) * (1 - self._random.random() / 2) / 1e6
        handle: asyncio.TimerHandle

        def retry() -> None:
            self._retries.discard(handle)
            self._send(row)

        handle = asyncio.get_running_loop().call_later(pause_s, retry)
        self._retries.add(handle)

    def _pause_us(self, failures: int) -> int:
        return backoff_us(failures, self._limits.outbox_backoff_initial_us, self._limits.outbox_backoff_max_us)

    def _acknowledged(self, numbers: Sequence[int]) -> None:
        """These rows are recorded."""
        if self._reading:
            # A page that was read earlier may still contain them; they must not be taken as new.
            self._acknowledged_meanwhile.extend(numbers)
            return
        self._in_flight.difference_update(numbers)
        if self._behind and self._has_room():
            self._reader.wake()

    def _has_room(self) -> bool:
        """A search reads all rows in flight again, so it pays only when they are few."""
        return len(self._in_flight) - len(self._acknowledged_meanwhile) <= self._limits.outbox_in_flight_max // 4

    # ------------------------------------------------------------------ reading the table

    async def _read(self) -> None:
        """Searches the table when rows were dropped, and periodically for rows that were never announced."""
        failures, sweep = 0, True
        while not self._closing:
            pause_us = self._limits.outbox_sweep_interval_us
            if (sweep or self._behind) and self._has_room():
                try:
                    await self._search()
                    failures = 0
                except Exception as error:  # noqa: BLE001 -- the next search has to run whatever fails in this one
                    failures += 1
                    self._context.step_failed("outbox read", error)
                    pause_us = self._pause_us(failures)
            if failures or not (self._behind and self._has_room()):
                sweep = not await self._reader.wait(pause_us) or failures > 0

    async def _search(self) -> None:
        """Takes every row that is not in flight, the oldest first, as far as there is room."""
        limits = self._limits
        self._reading, self._appended_meanwhile = True, []
        began_s = asyncio.get_running_loop().time()
        searched_for, self._in_doubt_new = self._in_doubt_new, set()
        after = 0
        try:
            while not self._closing:
                page = await self._store.unpublished(after, limits.outbox_batch_max)
                if self._closing:
                    return
                for row in page:
                    if row.number not in self._in_flight and len(self._in_flight) >= limits.outbox_in_flight_max:
                        self._behind = True
                        return
                    self._take(row)
                if len(page) < limits.outbox_batch_max:
                    self._settle_in_doubt(searched_for, began_s)
                    searched_for = set()
                    self._caught_up()
                    return
                after = page[-1].number
        finally:
            self._reading, self._appended_meanwhile = False, None
            self._in_doubt_new |= searched_for
            self._in_flight.difference_update(self._acknowledged_meanwhile)
            self._acknowledged_meanwhile.clear()

    def _settle_in_doubt(self, searched_for: set[_Aggregate], began_s: float) -> None:
        """Called after a complete search. The database decides within one sweep interval about commits ordered before
        it; rows that no search finds after that do not exist."""
        for aggregate in [known for known, until_s in self._in_doubt.items() if until_s <= began_s]:
            del self._in_doubt[aggregate]
        until_s = asyncio.get_running_loop().time() + self._limits.outbox_sweep_interval_us / 1e6
        self._in_doubt.update(dict.fromkeys(searched_for, until_s))

    def _caught_up(self) -> None:
        """The search has read the whole table. Rows appended during the search are taken now; if they were too many,
        the next search finds them."""
        if not self._behind or self._appended_meanwhile is None:
            return
        rows, self._behind = self._appended_meanwhile, False
        self._appended(rows)

    # ------------------------------------------------------------------ retention

    async def purge(self) -> int:
        """Deletes rows that were published or suspended longer ago than `outbox_retention`. Returns their number. Raises the
        store's errors."""
        delete = partial(self._store.purge, self._context.clock.now_us(), self._limits.outbox_retention_us)
        return await self._context.purge("messages", delete, lambda: self._closing)


# ---------------------------------------------------------------------- what is recorded


class _Suspended(NamedTuple):
    number: int
    error: str
    then: Envelope | None


class _Failed(NamedTuple):
    number: int
    attempts: int
    error: str


class PublishAcks:
    """Records in the outbox table which rows were published, suspended or failed.

    It writes in the background. Acknowledgements that arrive during a transaction go into the next. A failed write is
    repeated until it succeeds."""

    def __init__(self, store: OutboxStore, context: AgentContext, recorded: Callable[[Sequence[int]], None]) -> None:
        """`recorded` is called with the numbers of rows that are done: published or suspended."""
        self._store = store
        self._context = context
        self._recorded = recorded
        gather_us = context.limits.outbox_acknowledge_interval_us
        self._published = GroupCommit("outbox acknowledgement", self._mark_published, context, gather_us=gather_us)
        self._suspended = GroupCommit("outbox acknowledgement", self._suspend, context)
        self._notes = GroupCommit("outbox acknowledgement", self._note, context)
        self._noting = 0
        #: Rows that were published or are to be suspended, and are not recorded yet.
        self.waiting = 0

    def published(self, row: OutboxRow) -> None:
        """The bus accepted the row."""
        self.waiting += 1
        self._published.add(row)

    def failed(self, number: int, attempts: int, error: str) -> None:
        """The bus did not accept the row; it will be sent again."""
        if self._noting < _NOTES_MAX:
            self._noting += 1
            self._notes.add(_Failed(number, attempts, error))

    def suspend(self, number: int, error: str, then: Envelope | None) -> None:
        """The bus can never accept the row; `then` follows from that."""
        self.waiting += 1
        self._suspended.add(_Suspended(number, error, then))

    async def drain(self) -> None:
        """Returns when everything is written."""
        for batches in (self._published, self._suspended, self._notes):
            await batches.drain()

    async def close(self) -> None:
        """Stops without writing the rest: rows that are not recorded are sent again after the next start."""
        for batches in (self._published, self._suspended, self._notes):
            await batches.close()

    # ------------------------------------------------------------------ writing

    async def _mark_published(self, rows: list[OutboxRow]) -> None:
        now_us = self._context.clock.now_us()
        await self._store.mark_published([row.number for row in rows], now_us)
        self._done(rows)
        oldest_us = min(row.envelope.timestamp_ms for row in rows) * 1_000
        self._context.observe(MessagesPublished(len(rows), max(now_us - oldest_us, 0)))

    async def _suspend(self, rows: list[_Suspended]) -> None:
        for row in rows:
            await self._store.suspend(row.number, row.error, self._context.clock.now_us(), row.then)
        self._done(rows)

    def _done(self, rows: Sequence[OutboxRow | _Suspended]) -> None:
        self.waiting -= len(rows)
        self._recorded([row.number for row in rows])

    async def _note(self, notes: list[_Failed]) -> None:
        for note in {note.number: note for note in notes}.values():
            await self._store.note_failure(*note)
        self._noting -= len(notes)
