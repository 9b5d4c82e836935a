"""Delivers one subscription's messages to its handler, from arrival until they are settled; shared by the buses.

Rules:

1. One message of an aggregate at a time is ready, being handled or waiting for a retry; later ones of the aggregate
   queue behind it.
2. One handler call at a time. Messages that become ready meanwhile form the next batch, in the order of becoming ready,
   so that aggregates take turns.
3. If a batch fails, no single message is known to be the cause: all of them are delivered again at once, each alone,
   and only a failure of a message alone is counted. A message that failed alone is always delivered alone after that.
4. A transient failure (`Unavailable`, `StoreError`) is never counted. The batch size is halved and grows again with
   each success. If consecutive batches fail, the whole subscription pauses: the cause is then not the messages.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from tocsin.messaging.limits import BusLimits
from tocsin.model.backoff import backoff_us
from tocsin.model.envelope import Envelope
from tocsin.model.errors import StoreError, Unavailable
from tocsin.ports.bus import BusObserver, DeliveryFailed, Handler, MessageDeadLettered

T = TypeVar("T")

_Aggregate = tuple[str, str]
_US = 1e-6
_CLOCK_RESOLUTION_S = 1e-5


class DeadLetter(NamedTuple):
    """A message that was not delivered within the allowed attempts, the subscriber, and the last error."""

    subscriber: str
    envelope: Envelope
    attempts: int
    error: str


def is_transient(error: BaseException) -> bool:
    """Whether retrying makes sense however often the handler has failed."""
    return isinstance(error, (Unavailable, StoreError))


def describe(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class _Delivery(Generic[T]):
    """One delivery of one message; implements Delivery. A failed one is not used again; its successor replaces it."""

    __slots__ = ("_subscription", "alone", "attempt", "envelope", "failures", "kept", "setbacks", "settled", "tokens")

    def __init__(self, subscription: Subscription[T], envelope: Envelope, attempt: int, tokens: list[T]) -> None:
        self._subscription = subscription
        self.envelope = envelope
        self.attempt = attempt
        #: One for each arrival of the message.
        self.tokens = tokens
        self.failures = 0
        #: Failures of any kind that were followed by a pause, for the backoff.
        self.setbacks = 0
        self.alone = False
        self.kept = False
        self.settled = False

    @property
    def aggregate(self) -> _Aggregate:
        return self.envelope.tenant_id, self.envelope.aggregate_id

    def keep(self) -> None:
        self.kept = True

    def ack(self) -> None:
        if not self.settled:
            self.settled = True
            self._subscription._acknowledged(self)

    def fail(self, error: Exception) -> None:
        if not self.settled:
            self.settled = True
            self._subscription._failed(self, error)


class Subscription(Generic[T]):
    """The messages of one subscriber. `T` is the transport's token for one arrival of a message.

    `settled` is called once for each token of a message that was handled, duplicates included; `dead_lettered` is
    called instead, with all tokens, for a message that becomes a dead letter. Both are called on the event loop,
    possibly while `offer` runs, and must not raise.
    """

    def __init__(
        self,
        subscriber: str,
        handler: Handler,
        batch_max: int,
        limits: BusLimits,
        observe: BusObserver,
        *,
        settled: Callable[[T], None],
        dead_lettered: Callable[[DeadLetter, list[T]], None],
    ) -> None:
        self.subscriber = subscriber
        self._handler = handler
        self._batch_max = self._group_max = batch_max
        self._limits = limits
        self._observe = observe
        self._settled = settled
        self._dead_lettered = dead_lettered
        self._ready: deque[_Delivery[T]] = deque()
        #: Aggregates with a message that is ready, being handled or waiting, and the messages queued behind it.
        self._behind: dict[_Aggregate, deque[_Delivery[T]] | None] = {}
        self._unsettled: dict[str, _Delivery[T]] = {}
        self._remembered: set[str] = set()
        self._remembered_before: set[str] = set()
        self._later: list[tuple[float, int, _Delivery[T]]] = []
        self._later_numbers = count()
        self._later_timer: asyncio.TimerHandle | None = None
        self._pause_timer: asyncio.TimerHandle | None = None
        #: Consecutive batches that failed with transient errors.
        self._failed_batches = 0
        self._stopping = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def unsettled(self) -> int:
        """Messages in memory that are not settled."""
        return len(self._unsettled)

    def offer(self, envelope: Envelope, token: T, attempt: int = 1) -> None:
        """Adds a message that arrived, for the `attempt`th time as far as the transport knows."""
        known = self._unsettled.get(envelope.id)
        if known is not None:
            known.tokens.append(token)
            return
        if envelope.id in self._remembered or envelope.id in self._remembered_before:
            self._settled(token)
            return
        delivery = _Delivery(self, envelope, attempt, [token])
        self._unsettled[envelope.id] = delivery
        aggregate = (envelope.tenant_id, envelope.aggregate_id)
        if aggregate not in self._behind:
            self._behind[aggregate] = None
            self._make_ready(delivery)
            return
        behind = self._behind[aggregate]
        if behind is None:
            self._behind[aggregate] = deque((delivery,))
        else:
            behind.append(delivery)

    def start(self) -> None:
        """Starts delivering messages to the handler."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"bus {self.subscriber}")

    async def drain(self) -> None:
        """Stops delivering. Returns when the handler's current call has returned."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stops delivering and cancels the handler's current call. Unsettled messages are dropped."""
        self._stopping = True
        for timer in (self._later_timer, self._pause_timer):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # ------------------------------------------------------------------ delivering

    async def _run(self) -> None:
        while not self._stopping:
            if self._ready and self._pause_timer is None:
                await self._deliver(self._take())
            else:
                self._wake.clear()
                await self._wake.wait()

    def _take(self) -> list[_Delivery[T]]:
        ready = self._ready
        batch = [ready.popleft()]
        if not batch[0].alone:
            while ready and len(batch) < self._group_max and not ready[0].alone:
                batch.append(ready.popleft())
        return batch

    async def _deliver(self, batch: list[_Delivery[T]]) -> None:
        try:
            await self._handler(batch)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not this task was cancelled, but something that the handler awaited.
            self._batch_failed(batch, RuntimeError(f"a task that the handler awaited was cancelled: {describe(error)}"))
        except Exception as error:  # noqa: BLE001 - the boundary to handlers; their errors are judged and reported
            self._batch_failed(batch, error)
        else:
            self._failed_batches = 0
            if self._group_max < self._batch_max:
                self._group_max = min(self._batch_max, 2 * self._group_max)
            for delivery in batch:
                if not delivery.kept and not delivery.settled:
                    delivery.settled = True
                    self._acknowledged(delivery)

    def _batch_failed(self, batch: list[_Delivery[T]], error: Exception) -> None:
        failed = [delivery for delivery in batch if not delivery.kept and not delivery.settled]
        for delivery in failed:
            delivery.settled = True
        if len(failed) == 1:
            delivery = failed[0]
            if is_transient(error) and not delivery.alone:
                delivery.alone = len(batch) == 1
                self._pause()
            self._failed(delivery, error)
            return
        self._report(batch[0], f"{describe(error)} (a batch of {len(batch)})")
        if is_transient(error):
            self._group_max = max(1, len(batch) // 2)
            self._pause()
        for delivery in failed:
            successor = self._successor(delivery)
            if is_transient(error):
                self._try_later(successor)
            else:
                successor.alone = True
                self._make_ready(successor)

    # ------------------------------------------------------------------ settling

    def _acknowledged(self, delivery: _Delivery[T]) -> None:
        self._forget(delivery)
        for token in delivery.tokens:
            self._settled(token)

    def _failed(self, delivery: _Delivery[T], error: Exception) -> None:
        """One message failed, and it is the only possible cause."""
        successor = self._successor(delivery)
        if not is_transient(error):
            successor.alone = True
            successor.failures += 1
            if successor.failures >= self._limits.deliveries_max:
                self._dead_letter(delivery, error)
                return
        self._report(delivery, describe(error))
        self._try_later(successor)

    def _dead_letter(self, delivery: _Delivery[T], error: Exception) -> None:
        letter = DeadLetter(self.subscriber, delivery.envelope, delivery.attempt, describe(error))
        self._observe(MessageDeadLettered(self.subscriber, *letter.envelope.about, letter.attempts, letter.error))
        self._forget(delivery)
        self._dead_lettered(letter, delivery.tokens)

    def _forget(self, delivery: _Delivery[T]) -> None:
        """The message is settled; the next one of its aggregate becomes ready."""
        message_id = delivery.envelope.id
        del self._unsettled[message_id]
        remembered = self._remembered
        remembered.add(message_id)
        if 2 * len(remembered) >= self._limits.deduplication_ids_max:
            self._remembered_before, self._remembered = remembered, set()
        aggregate = delivery.aggregate
        behind = self._behind[aggregate]
        if not behind:
            del self._behind[aggregate]
            return
        following = behind.popleft()
        if not behind:
            self._behind[aggregate] = None
        self._make_ready(following)

    def _successor(self, delivery: _Delivery[T]) -> _Delivery[T]:
        """The next delivery of the same message. It shares the tokens, because duplicates may arrive at any time."""
        successor = _Delivery(self, delivery.envelope, delivery.attempt + 1, delivery.tokens)
        successor.failures, successor.setbacks, successor.alone = delivery.failures, delivery.setbacks, delivery.alone
        self._unsettled[delivery.envelope.id] = successor
        return successor

    def _report(self, delivery: _Delivery[T], error: str) -> None:
        self._observe(DeliveryFailed(self.subscriber, *delivery.envelope.about, delivery.attempt, error))

    # ------------------------------------------------------------------ waiting

    def _make_ready(self, delivery: _Delivery[T]) -> None:
        self._ready.append(delivery)
        self._wake.set()

    def _try_later(self, delivery: _Delivery[T]) -> None:
        delivery.setbacks += 1
        pause_us = backoff_us(delivery.setbacks, self._limits.backoff_initial_us, self._limits.backoff_max_us)
        at = asyncio.get_running_loop().time() + pause_us * _US
        heappush(self._later, (at, next(self._later_numbers), delivery))
        if self._later[0][2] is delivery:
            self._set_later_timer()

    def _set_later_timer(self) -> None:
        if self._later_timer is not None:
            self._later_timer.cancel()
            self._later_timer = None
        if self._later and not self._stopping:
            loop = asyncio.get_running_loop()
            self._later_timer = loop.call_at(self._later[0][0], self._retry_due)

    def _retry_due(self) -> None:
        # Event loops may call early by the resolution of their clocks.
        now = asyncio.get_running_loop().time() + _CLOCK_RESOLUTION_S
        while self._later and self._later[0][0] <= now:
            self._make_ready(heappop(self._later)[2])
        self._set_later_timer()

    def _pause(self) -> None:
        """Called after each batch that failed with a transient error. The first one may have met a single bad message,
        so the pause starts with the second."""
        self._failed_batches += 1
        if self._failed_batches > 1 and self._pause_timer is None:
            pause_us = backoff_us(self._failed_batches - 1, self._limits.backoff_initial_us, self._limits.pause_max_us)
            self._pause_timer = asyncio.get_running_loop().call_later(pause_us * _US, self._resume)

    def _resume(self) -> None:
        self._pause_timer = None
        self._wake.set()
