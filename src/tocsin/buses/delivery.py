"""What the buses share: one subscription's messages, from their arrival until they are settled.

Rules:

1. An aggregate has one message at a time ready, in hand or waiting for its next try; the others queue behind it.
2. One handler call at a time. What became ready meanwhile makes the next batch, in the order of becoming ready, so that
   aggregates take turns.
3. A failure that may be any message's fault (of a batch) is nobody's: all come again alone, at once, and only what fails
   alone is counted. What fails alone stays alone, so that it takes no other along a second time.
4. A failure that passes by itself (`Unavailable`, `StoreError`) is never counted. Batches are halved and grow again with
   each success; when batch after batch fails, the whole subscription pauses: the fault is then not with the messages.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from tocsin.buses.limits import BusLimits
from tocsin.model.envelope import Envelope
from tocsin.model.errors import StoreError, Unavailable
from tocsin.ports.bus import BusObserver, DeadLettered, DeliveryFailed, Handler

T = TypeVar("T")

_Aggregate = tuple[str, str]
_US = 1e-6
_CLOCK_RESOLUTION_S = 1e-5


class DeadLetter(NamedTuple):
    """A message that was given up, by whom and why."""

    subscriber: str
    envelope: Envelope
    attempts: int
    error: str

    @property
    def event(self) -> DeadLettered:
        """What the observer is told."""
        envelope = self.envelope
        return DeadLettered(
            self.subscriber,
            envelope.type,
            envelope.tenant_id,
            envelope.aggregate_id,
            envelope.correlation_id,
            self.attempts,
            self.error,
        )


def passes_by_itself(error: BaseException) -> bool:
    """Whether trying again is worth it however often it failed."""
    return isinstance(error, (Unavailable, StoreError))


def describe(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class _Handed(Generic[T]):
    """One handing of one message: a Delivery. A failed one is never used again; its successor takes its place."""

    __slots__ = ("_subscription", "alone", "attempt", "envelope", "failures", "kept", "setbacks", "settled", "tokens")

    def __init__(self, subscription: Subscription[T], envelope: Envelope, attempt: int, tokens: list[T]) -> None:
        self._subscription = subscription
        self.envelope = envelope
        self.attempt = attempt
        #: One for each arrival of the message.
        self.tokens = tokens
        self.failures = 0
        #: Failures of any kind that were followed by a pause.
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
    """The messages of one subscriber. `T` is what the transport knows a message's arrival by, its token.

    `settled` is called once for each token whose message is dealt with, duplicates included; `given_up` instead of it
    for all tokens of a message that becomes a dead letter. Both are called on the event loop, may be called while `offer`
    runs, and must not raise.
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
        given_up: Callable[[DeadLetter, list[T]], None],
    ) -> None:
        self.subscriber = subscriber
        self._handler = handler
        self._batch_max = self._group_max = batch_max
        self._limits = limits
        self._observe = observe
        self._settled = settled
        self._given_up = given_up
        self._ready: deque[_Handed[T]] = deque()
        #: Aggregates that have a message ready, in hand or waiting, and what queues behind it.
        self._behind: dict[_Aggregate, deque[_Handed[T]] | None] = {}
        self._unsettled: dict[str, _Handed[T]] = {}
        self._remembered: set[str] = set()
        self._remembered_before: set[str] = set()
        self._later: list[tuple[float, int, _Handed[T]]] = []
        self._later_numbers = count()
        self._later_timer: asyncio.TimerHandle | None = None
        self._pause_timer: asyncio.TimerHandle | None = None
        #: Batches that failed one after another for reasons that pass, nothing having succeeded in between.
        self._fruitless = 0
        self._stopping = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def unsettled(self) -> int:
        """Messages that are here and not settled."""
        return len(self._unsettled)

    def offer(self, envelope: Envelope, token: T, attempt: int = 1) -> None:
        """A message has arrived, `attempt` times by now as far as the transport knows."""
        known = self._unsettled.get(envelope.id)
        if known is not None:
            known.tokens.append(token)
            return
        if envelope.id in self._remembered or envelope.id in self._remembered_before:
            self._settled(token)
            return
        handed = _Handed(self, envelope, attempt, [token])
        self._unsettled[envelope.id] = handed
        aggregate = (envelope.tenant_id, envelope.aggregate_id)
        if aggregate not in self._behind:
            self._behind[aggregate] = None
            self._make_ready(handed)
            return
        behind = self._behind[aggregate]
        if behind is None:
            self._behind[aggregate] = deque((handed,))
        else:
            behind.append(handed)

    def start(self) -> None:
        """Begins to hand messages to the handler."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"bus {self.subscriber}")

    async def drain(self) -> None:
        """Hands out nothing more; returns when the handler has returned."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Ends it, and a handler call under way. What isn't settled is forgotten."""
        self._stopping = True
        for timer in (self._later_timer, self._pause_timer):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # ------------------------------------------------------------------ handing out

    async def _run(self) -> None:
        while not self._stopping:
            if self._ready and self._pause_timer is None:
                await self._hand_out(self._take())
            else:
                self._wake.clear()
                await self._wake.wait()

    def _take(self) -> list[_Handed[T]]:
        ready = self._ready
        batch = [ready.popleft()]
        if not batch[0].alone:
            while ready and len(batch) < self._group_max and not ready[0].alone:
                batch.append(ready.popleft())
        return batch

    async def _hand_out(self, batch: list[_Handed[T]]) -> None:
        try:
            await self._handler(batch)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Not this task was cancelled, but something that the handler waited for.
            self._batch_failed(batch, RuntimeError(f"what the handler waited for was cancelled: {describe(error)}"))
        except Exception as error:  # noqa: BLE001 - the boundary to handlers; what they raise is judged and reported
            self._batch_failed(batch, error)
        else:
            self._fruitless = 0
            if self._group_max < self._batch_max:
                self._group_max = min(self._batch_max, 2 * self._group_max)
            for handed in batch:
                if not handed.kept and not handed.settled:
                    handed.settled = True
                    self._acknowledged(handed)

    def _batch_failed(self, batch: list[_Handed[T]], error: Exception) -> None:
        failed = [handed for handed in batch if not handed.kept and not handed.settled]
        for handed in failed:
            handed.settled = True
        if len(failed) == 1:
            handed = failed[0]
            if passes_by_itself(error) and not handed.alone:
                handed.alone = len(batch) == 1
                self._pause()
            self._failed(handed, error)
            return
        self._report(batch[0], f"{describe(error)} (a batch of {len(batch)})")
        if passes_by_itself(error):
            self._group_max = max(1, len(batch) // 2)
            self._pause()
        for handed in failed:
            successor = self._successor(handed)
            if passes_by_itself(error):
                self._try_later(successor)
            else:
                successor.alone = True
                self._make_ready(successor)

    # ------------------------------------------------------------------ settling

    def _acknowledged(self, handed: _Handed[T]) -> None:
        self._forget(handed)
        for token in handed.tokens:
            self._settled(token)

    def _failed(self, handed: _Handed[T], error: Exception) -> None:
        """One message failed, and no other can be the cause."""
        successor = self._successor(handed)
        if not passes_by_itself(error):
            successor.alone = True
            successor.failures += 1
            if successor.failures >= self._limits.deliveries_max:
                self._give_up(handed, error)
                return
        self._report(handed, describe(error))
        self._try_later(successor)

    def _give_up(self, handed: _Handed[T], error: Exception) -> None:
        letter = DeadLetter(self.subscriber, handed.envelope, handed.attempt, describe(error))
        self._observe(letter.event)
        self._forget(handed)
        self._given_up(letter, handed.tokens)

    def _forget(self, handed: _Handed[T]) -> None:
        """It is settled: its aggregate goes on."""
        message_id = handed.envelope.id
        del self._unsettled[message_id]
        remembered = self._remembered
        remembered.add(message_id)
        if 2 * len(remembered) >= self._limits.deduplication_ids_max:
            self._remembered_before, self._remembered = remembered, set()
        aggregate = handed.aggregate
        behind = self._behind[aggregate]
        if not behind:
            del self._behind[aggregate]
            return
        following = behind.popleft()
        if not behind:
            self._behind[aggregate] = None
        self._make_ready(following)

    def _successor(self, handed: _Handed[T]) -> _Handed[T]:
        """The next handing of the same message. It shares the tokens: duplicates may arrive at any time."""
        successor = _Handed(self, handed.envelope, handed.attempt + 1, handed.tokens)
        successor.failures, successor.setbacks, successor.alone = handed.failures, handed.setbacks, handed.alone
        self._unsettled[handed.envelope.id] = successor
        return successor

    def _report(self, handed: _Handed[T], error: str) -> None:
        envelope = handed.envelope
        self._observe(
            DeliveryFailed(
                self.subscriber,
                envelope.type,
                envelope.tenant_id,
                envelope.aggregate_id,
                envelope.correlation_id,
                handed.attempt,
                error,
            )
        )

    # ------------------------------------------------------------------ waiting

    def _make_ready(self, handed: _Handed[T]) -> None:
        self._ready.append(handed)
        self._wake.set()

    def _delay_s(self, times: int, longest_us: int) -> float:
        """The pause after so many failures in a row; the exponent is bounded because integers are not."""
        return min(self._limits.backoff_initial_us << min(times, 40), longest_us) * _US

    def _try_later(self, handed: _Handed[T]) -> None:
        at = asyncio.get_running_loop().time() + self._delay_s(handed.setbacks, self._limits.backoff_max_us)
        handed.setbacks += 1
        heappush(self._later, (at, next(self._later_numbers), handed))
        if self._later[0][2] is handed:
            self._set_later_timer()

    def _set_later_timer(self) -> None:
        if self._later_timer is not None:
            self._later_timer.cancel()
            self._later_timer = None
        if self._later and not self._stopping:
            loop = asyncio.get_running_loop()
            self._later_timer = loop.call_at(self._later[0][0], self._time_came)

    def _time_came(self) -> None:
        # Event loops call a little early, by the resolution of their clocks.
        now = asyncio.get_running_loop().time() + _CLOCK_RESOLUTION_S
        while self._later and self._later[0][0] <= now:
            self._make_ready(heappop(self._later)[2])
        self._set_later_timer()

    def _pause(self) -> None:
        """Another batch failed for a reason that passes. The first one may have met a single bad message."""
        self._fruitless += 1
        if self._fruitless > 1 and self._pause_timer is None:
            delay_s = self._delay_s(self._fruitless - 2, self._limits.pause_max_us)
            self._pause_timer = asyncio.get_running_loop().call_later(delay_s, self._resume)

    def _resume(self) -> None:
        self._pause_timer = None
        self._wake.set()
