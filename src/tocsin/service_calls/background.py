"""What the agent's modules share: their context, and what runs in the background, as waits that can be ended early, batches
and periodic steps."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tocsin.model.errors import OutcomeUnknown, StoreUnavailable
from tocsin.model.retry import backoff_us
from tocsin.ports.bus import Delivery, InvalidMessage
from tocsin.ports.clock import Clock
from tocsin.ports.seals import NoSeals, Seals
from tocsin.service_calls.events import AgentObserver, AgentRowDamaged, AgentRowsPurged, AgentStepFailed
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import Message, Registry
from tocsin.service_calls.ports import DamagedRow
from tocsin.tasks import end_tasks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AgentContext:
    """The registry of messages, the clock, the limits in force, the observer of events, and what encrypts secrets before they
    are stored or sent over the bus."""

    registry: Registry
    clock: Clock
    limits: AgentLimits
    observe: AgentObserver
    seals: Seals = field(default_factory=NoSeals)

    def step_failed(self, step: str, error: Exception) -> None:
        """Reports that a background step failed and will be tried again."""
        self.observe(AgentStepFailed(step, describe(error)))

    def row_damaged(self, row: DamagedRow) -> None:
        """Reports a row that can't be decoded."""
        self.observe(row_damaged(row))

    def opened(self, deliveries: Sequence[Delivery]) -> Iterator[tuple[Delivery, Message]]:
        """The deliveries with their messages. A malformed message fails alone, and is left out."""
        for delivery in deliveries:
            try:
                message = self.registry.open(delivery.envelope)
            except InvalidMessage as error:
                delivery.fail(error)
            else:
                yield delivery, message

    async def purge(self, kind: str, delete: Callable[[int], Awaitable[int]], closing: Callable[[], bool]) -> int:
        """Calls `delete`, which deletes at most that many rows and returns their number, until there are no more. Reports and
        returns the number of all."""
        rows_max, purged = self.limits.purge_batch_max, 0
        while not closing():
            rows = await delete(rows_max)
            purged += rows
            if rows < rows_max:
                break
        if purged:
            self.observe(AgentRowsPurged(kind, purged))
        return purged


def row_damaged(row: DamagedRow) -> AgentRowDamaged:
    """The event for a row that can't be decoded."""
    return AgentRowDamaged(row.table, row.tenant_id, row.service_call_id, row.execution_id, row.error)


def describe(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"


class Wakeup:
    """Wakes one waiting task, early by `wake` or at its timeout. A wake-up that comes while nobody waits ends the next
    wait."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Ends the current wait, or the next one. Repeated calls before that have no further effect."""
        self._woken.set()

    async def wait(self, timeout_us: int | None = None) -> bool:
        """Returns True as soon as `wake` is called, at once if it was called before; False after the timeout."""
        if not self._woken.is_set():
            try:
                async with asyncio.timeout(None if timeout_us is None else max(timeout_us, 0) / 1e6):
                    await self._woken.wait()
            except TimeoutError:
                return False
        self._woken.clear()
        return True


class Periodic:
    """Runs a step again and again, first after `first_us`, then `interval_us` after each end, until it is closed. A run
    that fails is reported and does not affect the next one."""

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[object]],
        context: AgentContext,
        interval_us: int,
        first_us: int | None = None,
    ) -> None:
        self._name = name
        self._step = step
        self._context = context
        self._interval_us = interval_us
        self._first_us = interval_us if first_us is None else first_us
        self._wakeup = Wakeup()
        self._task: asyncio.Task[None] | None = None
        #: Set by `close`: the step should return soon.
        self.closing = False

    def start(self) -> None:
        """Starts waiting for the first run."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Returns when the current run has ended. If it is cancelled, the run goes on, and another call waits for it.
        Idempotent."""
        self.closing = True
        self._wakeup.wake()
        if self._task is not None:
            await asyncio.shield(self._task)
            self._task = None

    async def _run(self) -> None:
        pause_us = self._first_us
        while not await self._wakeup.wait(pause_us):
            pause_us = self._interval_us
            try:
                await self._step()
            except Exception as error:  # noqa: BLE001 -- the next run has to follow whatever fails in this one
                self._context.step_failed(self._name, error)


class Batches(Generic[T]):
    """Handles added items in batches, one at a time: while one batch is being handled, the next one accumulates.

    `handle` must not raise. A task exists only while there are items. `gather_us` is how long items accumulate before
    each batch.
    """

    def __init__(
        self, handle: Callable[[list[T]], Awaitable[None]], *, batch_max: int = sys.maxsize, gather_us: int = 0
    ) -> None:
        self._handle = handle
        self._batch_max = batch_max
        self._gather_us = gather_us
        self._collected: list[T] = []
        self._task: asyncio.Task[None] | None = None
        self._hurry = Wakeup()
        self._closed = False

    def add(self, item: T) -> None:
        """Adds an item to the next batch. After `close`, nothing is handled."""
        self._collected.append(item)
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def take_back(self) -> list[T]:
        """Removes and returns the items that are not being handled yet."""
        taken, self._collected = self._collected, []
        return taken

    async def drain(self) -> None:
        """Returns when every item has been handled. From now on items do not accumulate."""
        self._gather_us = 0
        self._hurry.wake()
        while self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Cancels the handling of the current batch. Idempotent."""
        self._closed = True
        if self._task is not None:
            await end_tasks(self._task)

    async def _run(self) -> None:
        try:
            while self._collected:
                if self._gather_us:
                    await self._hurry.wait(self._gather_us)
                batch, self._collected = self._collected[: self._batch_max], self._collected[self._batch_max :]
                await self._handle(batch)
        finally:
            self._task = None


class GroupCommit(Batches[T]):
    """Writes added items in batches until each item is written or refused.

    A batch whose failure does not depend on its items (the database is unavailable, or the outcome is unknown) is
    written again after a pause, without limit. A batch that fails otherwise is tried once more and then bisected until
    the items that cannot be written are found: the others are written, and these are passed to `refused` or, without
    it, added again after the longest pause, when the cause may be fixed. `write` must tolerate items that it has
    written before. Failures are reported under the name of the step.
    """

    def __init__(
        self,
        step: str,
        write: Callable[[list[T]], Awaitable[None]],
        context: AgentContext,
        refused: Callable[[T, Exception], None] | None = None,
        *,
        gather_us: int = 0,
    ) -> None:
        super().__init__(self._write_all, gather_us=gather_us)
        self._step = step
        self._write = write
        self._context = context
        self._refused = self._add_later if refused is None else refused

    def _pause_s(self, failures: int) -> float:
        limits = self._context.limits
        return backoff_us(failures, limits.outbox_backoff_initial_us, limits.outbox_backoff_max_us) / 1e6

    def _add_later(self, item: T, error: Exception) -> None:
        asyncio.get_running_loop().call_later(self._context.limits.outbox_backoff_max_us / 1e6, self.add, item)

    async def _write_all(self, batch: list[T], refusals: int = 0) -> None:
        failures = 0
        while True:
            try:
                await self._write(batch)
                return
            except Exception as error:  # noqa: BLE001 - one bad item must not block the others, and it is reported
                self._context.step_failed(self._step, error)
                failures += 1
                refusals += not isinstance(error, (StoreUnavailable, OutcomeUnknown))
                reason = error
            if refusals > 1:
                break
            await asyncio.sleep(self._pause_s(failures))
        if len(batch) == 1:
            self._refused(batch[0], reason)
            return
        middle = len(batch) // 2
        await self._write_all(batch[:middle], 1)
        await self._write_all(batch[middle:], 1)
