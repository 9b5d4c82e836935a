"""Publishes committed messages from the outbox table to the bus: at least once, and in order per aggregate."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from functools import partial

from tocsin.ports.bus import Bus, InvalidMessage
from tocsin.ports.clock import Clock
from tocsin.service_calls.alarm import Alarm
from tocsin.service_calls.events import AgentObserver, AgentRowsPurged, AgentStepFailed, MessageSuspended, PublishFailed
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.outbox.keyed_queues import KeyedQueues
from tocsin.service_calls.outbox.ports import OutboxRow, OutboxStore
from tocsin.service_calls.outbox.publish_acks import PublishAcks


class OutboxDispatcher:
    """Publishes rows as they are committed and records them once the bus has accepted them.

    At most `outbox_in_flight_max` rows are in memory. Beyond that, rows that are announced are dropped and read from
    the table later. Memory stays bounded and order is kept, because a row is never taken before an older one that was
    dropped. A row that was published but not recorded when the process ended is published again after the next start,
    with the same id.
    """

    def __init__(
        self,
        store: OutboxStore,
        bus: Bus,
        clock: Clock,
        limits: AgentLimits,
        observe: AgentObserver,
        random: random.Random,
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._random = random
        self._queues = KeyedQueues()
        self._acks = PublishAcks(store, clock, limits, observe, self._acknowledged)
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
        self._in_doubt_new: set[str] = set()
        self._in_doubt: dict[str, float] = {}
        self._sending = 0
        self._settled = Alarm()
        self._reader = Alarm()
        self._purger = Alarm()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Starts with the rows that an earlier run left. The bus must be running."""
        self._store.on_appended(self._appended)
        self._store.on_unknown(self._outcome_unknown)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._purge())]
        self._acks.start()

    async def close(self) -> None:
        """Stops sending. Waits up to `outbox_close_timeout` for the bus to accept what is being sent, and as long again
        for it to be recorded. Whatever is left is published after the next start. Idempotent."""
        self._closing = True
        for handle in self._retries:
            handle.cancel()
        self._retries.clear()
        self._reader.wake()
        self._purger.wake()
        patience_s = self._limits.outbox_close_timeout_us / 1e6
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while self._sending:
                    await self._settled.wait()
        try:
            async with asyncio.timeout(patience_s):
                await self._acks.close()
        except TimeoutError:
            text = (
                f"{self._acks.waiting} messages were published but not recorded in time; they will be published again"
            )
            self._observe(AgentStepFailed("outbox close", text))
        await self._acks.abandon()
        await asyncio.gather(*self._tasks)
        self._tasks.clear()

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
            self._in_doubt_new.update(row.envelope.aggregate_id for row in rows)
            self._fall_behind()

    def _is_in_doubt(self, row: OutboxRow) -> bool:
        aggregate_id = row.envelope.aggregate_id
        return aggregate_id in self._in_doubt or aggregate_id in self._in_doubt_new

    def _fall_behind(self) -> None:
        """From now on rows are read from the table, starting at once."""
        # A search in progress does not count: it may read an older state.
        self._behind, self._appended_meanwhile = True, None
        self._reader.wake()

    def _take(self, row: OutboxRow) -> None:
        if row.number in self._in_flight:
            return
        self._in_flight.add(row.number)
        if self._queues.push(row):
            self._send(row)

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
            self._acks.suspend(row, str(error))
            self._observe(MessageSuspended(*_about(row), str(error)))
            self._next(row)
        else:
            self._failed(row, error)
        if self._closing:
            self._settled.wake()

    def _next(self, row: OutboxRow) -> None:
        following = self._queues.pop(row)
        if following is not None and not self._closing:
            self._send(following)

    def _failed(self, row: OutboxRow, error: Exception) -> None:
        """Retries after a pause that doubles each time, less up to half of it at random to spread retries."""
        if self._closing:
            # It is sent after the next start.
            return
        attempts = self._attempts.get(row.number, 0) + 1
        self._attempts[row.number] = attempts
        text = f"{type(error).__name__}: {error}"
        self._acks.failed(row.number, attempts, text)
        self._observe(PublishFailed(*_about(row), attempts, text))
        limits = self._limits
        # The exponent is bounded, because floats are.
        pause_us = min(limits.outbox_backoff_initial_us * 2 ** min(attempts - 1, 32), limits.outbox_backoff_max_us)
        pause_s = pause_us * (1 - self._random.random() / 2) / 1e6
        handle: asyncio.TimerHandle

        def retry() -> None:
            self._retries.discard(handle)
            self._send(row)

        handle = asyncio.get_running_loop().call_later(pause_s, retry)
        self._retries.add(handle)

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
        limits, failures, sweep = self._limits, 0, True
        while not self._closing:
            pause_us = limits.outbox_sweep_interval_us
            if (sweep or self._behind) and self._has_room():
                try:
                    await self._search()
                    failures = 0
                except Exception as error:  # noqa: BLE001 -- the next search has to run whatever fails in this one
                    failures += 1
                    self._observe(AgentStepFailed("outbox read", f"{type(error).__name__}: {error}"))
                    pause_us = limits.outbox_backoff_initial_us * 2 ** min(failures - 1, 32)
                    pause_us = min(pause_us, limits.outbox_backoff_max_us)
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

    def _settle_in_doubt(self, searched_for: set[str], began_s: float) -> None:
        """Called after a complete search. The database decides within one sweep interval about commits ordered before
        it; rows that no search finds after that do not exist."""
        for aggregate_id in [known for known, until_s in self._in_doubt.items() if until_s <= began_s]:
            del self._in_doubt[aggregate_id]
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

    async def _purge(self) -> None:
        """Deletes rows that were published longer ago than `outbox_retention`."""
        limits = self._limits
        while not self._closing:
            await self._purger.wait(limits.purge_interval_us)
            try:
                await self.purge()
            except Exception as error:  # noqa: BLE001 -- the next round has to run whatever fails in this one
                self._observe(AgentStepFailed("outbox purge", f"{type(error).__name__}: {error}"))

    async def purge(self) -> int:
        """One round of retention; returns the number of deleted rows. Raises the store's errors."""
        limits, purged = self._limits, 0
        before_us = self._clock.now_us() - limits.outbox_retention_us
        while not self._closing:
            rows = await self._store.purge(before_us, limits.purge_batch_max)
            purged += rows
            if rows < limits.purge_batch_max:
                break
        if purged:
            self._observe(AgentRowsPurged("messages", purged))
        return purged


def _about(row: OutboxRow) -> tuple[str, str, str, str]:
    envelope = row.envelope
    return envelope.type, envelope.tenant_id, envelope.aggregate_id, envelope.correlation_id
