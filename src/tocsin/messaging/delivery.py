"""Delivers messages to handlers, from arrival until they are settled, and commands to responders; reports to senders whether
their messages were accepted. Shared by the buses.

Rules for the messages of one subscription:

1. One message of an aggregate at a time is ready, being handled or waiting for a retry; later ones of the aggregate
   queue behind it.
2. One handler call at a time. Messages that become ready during it form the next batch, in the order of becoming ready,
   so that aggregates take turns.
3. If a batch fails, no single message is known to be the cause: all of them are delivered again at once, each alone,
   and only a failure of a message alone is counted. A message that failed alone is always delivered alone after that.
4. A transient failure (`Unavailable`, `StoreError`) is never counted. The batch size is halved and grows again with
   each success. If consecutive batches fail, the whole subscription pauses: the cause is then not the messages.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from tocsin.messaging.limits import BusLimits
from tocsin.model.errors import StoreError, Unavailable
from tocsin.model.retry import backoff_us
from tocsin.ports.bus import (
    BusObserver,
    BusOverloaded,
    BusUnavailable,
    CommandFailed,
    DeliveryFailed,
    Envelope,
    Handler,
    MessageDeadLettered,
    Responder,
)
from tocsin.tasks import end_tasks

T = TypeVar("T")

_Aggregate = tuple[str, str]
#: A command and its reply.
_Asked = tuple[Envelope, asyncio.Future[Envelope]]
_US = 1e-6


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


class HandlerLoop:
    """Calls a handler, one call at a time, while there is something to handle. Failures are reported to `observe`."""

    def __init__(self, subscriber: str, observe: BusObserver) -> None:
        self.subscriber = subscriber
        self._observe = observe
        self._stopping = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts calling the handler."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"bus {self.subscriber}")

    async def drain(self) -> None:
        """Stops. Returns when the handler's current call has returned."""
        self._stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stops, and cancels the handler's current call."""
        self._stop()
        if self._task is not None:
            await end_tasks(self._task)

    def _stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def _next(self) -> Awaitable[None] | None:
        """The next call of the handler, or None if there is nothing to handle."""
        raise NotImplementedError

    async def _run(self) -> None:
        while not self._stopping:
            call = self._next()
            if call is not None:
                await call
            else:
                self._wake.clear()
                await self._wake.wait()

    def _report(self, envelope: Envelope, attempt: int, error: str) -> None:
        self._observe(DeliveryFailed(self.subscriber, *envelope.about, attempt, error))


class Subscription(HandlerLoop, Generic[T]):
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
        super().__init__(subscriber, observe)
        self._handler = handler
        self._batch_max = self._group_max = batch_max
        self._limits = limits
        self._settled = settled
        self._dead_lettered = dead_lettered
        self._ready: deque[_Delivery[T]] = deque()
        #: Aggregates with a message that is ready, being handled or waiting, and the messages queued behind it.
        self._behind: dict[_Aggregate, deque[_Delivery[T]] | None] = {}
        self._unsettled: dict[str, _Delivery[T]] = {}
        #: Ids of handled messages, in two generations: the older one is forgotten when the younger one is full, or old.
        self._remembered: set[str] = set()
        self._remembered_before: set[str] = set()
        #: When the younger generation becomes old, by the event loop's clock.
        self._remembered_until_s = 0.0
        self._pause_timer: asyncio.TimerHandle | None = None
        #: Consecutive batches that failed with transient errors.
        self._failed_batches = 0

    @property
    def unsettled(self) -> int:
        """Messages in memory that are not settled."""
        return len(self._unsettled)

    def offer(self, envelope: Envelope, token: T) -> None:
        """Adds a message that arrived."""
        known = self._unsettled.get(envelope.id)
        if known is not None:
            known.tokens.append(token)
            return
        if envelope.id in self._remembered or envelope.id in self._remembered_before:
            self._settled(token)
            return
        delivery = _Delivery(self, envelope, 1, [token])
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

    # ------------------------------------------------------------------ delivering

    def _next(self) -> Awaitable[None] | None:
        return self._deliver(self._take()) if self._ready and self._pause_timer is None else None

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
        self._report(batch[0].envelope, batch[0].attempt, f"{describe(error)} (a batch of {len(batch)})")
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
        self._report(delivery.envelope, delivery.attempt, describe(error))
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
        self._remember(message_id)
        aggregate = delivery.aggregate
        behind = self._behind[aggregate]
        if not behind:
            del self._behind[aggregate]
            return
        following = behind.popleft()
        if not behind:
            self._behind[aggregate] = None
        self._make_ready(following)

    def _remember(self, message_id: str) -> None:
        """The message was handled; should it arrive once more, it is a duplicate."""
        remembered, now_s = self._remembered, asyncio.get_running_loop().time()
        if now_s >= self._remembered_until_s or 2 * len(remembered) >= self._limits.deduplication_ids_max:
            self._remembered_before, self._remembered = remembered, set()
            self._remembered_until_s = now_s + self._limits.deduplication_us * _US
        self._remembered.add(message_id)

    def _successor(self, delivery: _Delivery[T]) -> _Delivery[T]:
        """The next delivery of the same message. It shares the tokens, because duplicates may arrive at any time."""
        successor = _Delivery(self, delivery.envelope, delivery.attempt + 1, delivery.tokens)
        successor.failures, successor.setbacks, successor.alone = delivery.failures, delivery.setbacks, delivery.alone
        self._unsettled[delivery.envelope.id] = successor
        return successor

    # ------------------------------------------------------------------ waiting

    def _make_ready(self, delivery: _Delivery[T]) -> None:
        self._ready.append(delivery)
        self._wake.set()

    def _try_later(self, delivery: _Delivery[T]) -> None:
        delivery.setbacks += 1
        pause_us = backoff_us(delivery.setbacks, self._limits.backoff_initial_us, self._limits.backoff_max_us)
        asyncio.get_running_loop().call_later(pause_us * _US, self._make_ready, delivery)

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


class RequestDispatcher(HandlerLoop):
    """Passes the commands of one responder on in batches, in order of arrival, one call of the responder at a time.

    If the responder raises for a batch, each command is passed to it again alone. An error for a single command is
    reported and becomes its reply.
    """

    def __init__(
        self, subscriber: str, responder: Responder, batch_max: int, waiting_max: int, observe: BusObserver
    ) -> None:
        super().__init__(subscriber, observe)
        self._responder = responder
        self._batch_max = batch_max
        self._waiting_max = waiting_max
        self._waiting: deque[_Asked] = deque()

    def offer(self, envelope: Envelope) -> asyncio.Future[Envelope]:
        """Adds a command. Its reply, or BusUnavailable, BusOverloaded or CommandFailed. Cancelling it has no effect on
        the command."""
        reply: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        if self._stopping:
            reply.set_exception(BusUnavailable("this node is stopping"))
        elif len(self._waiting) >= self._waiting_max:
            reply.set_exception(BusOverloaded(f"{self._waiting_max} commands wait already"))
        else:
            self._waiting.append((envelope, reply))
            self._wake.set()
        return reply

    def _stop(self) -> None:
        """Refuses the commands that wait."""
        super()._stop()
        while self._waiting:
            _fail(self._waiting.popleft(), BusUnavailable("this node is stopping"))

    def _next(self) -> Awaitable[None] | None:
        size = min(len(self._waiting), self._batch_max)
        return self._answer([self._waiting.popleft() for _ in range(size)]) if size else None

    async def _answer(self, batch: list[_Asked]) -> None:
        try:
            replies = await self._responder([envelope for envelope, _ in batch])
            if len(replies) != len(batch):
                raise RuntimeError(f"{len(replies)} replies to {len(batch)} commands")
        except asyncio.CancelledError:
            for asked in batch:
                _fail(asked, CommandFailed("the command was interrupted; whether it took effect is unknown"))
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        except Exception as error:  # noqa: BLE001 - the boundary to responders; their errors are reported
            text = describe(error) if len(batch) == 1 else f"{describe(error)} (a batch of {len(batch)})"
            self._report(batch[0][0], 1, text)
            if len(batch) == 1:
                # Details, which may name what concerns operators only, are in the event.
                after_s = error.retry_after_s if isinstance(error, Unavailable) else 1.0
                _fail(batch[0], CommandFailed(f"the command failed; try again ({type(error).__name__})", after_s))
                return
            for single in batch:
                await self._answer([single])
        else:
            for (_, reply), answer in zip(batch, replies, strict=True):
                if not reply.done():
                    reply.set_result(answer)


def _fail(asked: _Asked, error: Exception) -> None:
    if not asked[1].done():
        asked[1].set_exception(error)


Done = Callable[[Exception | None], None]


class Completions:
    """Calls senders back: never within `post`, but soon after, many in one step of the event loop."""

    def __init__(self) -> None:
        self._pending: list[tuple[Done, Exception | None]] = []

    def add(self, done: Done, error: Exception | None) -> None:
        """`done` will be called with `error`."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._run)
        self._pending.append((done, error))

    def _run(self) -> None:
        pending, self._pending = self._pending, []
        for done, error in pending:
            done(error)


async def publish_all(post: Callable[[Envelope, Done], None], envelopes: Sequence[Envelope]) -> None:
    """Posts the messages in order. Returns when all are accepted; raises the first error once each has been accepted or
    failed."""
    if not envelopes:
        return
    finished = asyncio.get_running_loop().create_future()
    left = len(envelopes)
    first: Exception | None = None

    def done(error: Exception | None) -> None:
        nonlocal left, first
        left -= 1
        first = first or error
        if left == 0 and not finished.done():
            finished.set_result(None)

    for envelope in envelopes:
        post(envelope, done)
    await finished
    if first is not None:
        raise first
