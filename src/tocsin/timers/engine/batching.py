"""Batches: due timers of one receiver collected into one request, and its response divided among them (rule 34)."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from tocsin.model.answer import NoResponse, NotSent, Response, is_plain_acceptance
from tocsin.model.batch import BATCH_BYTES_MAX, BATCH_ID_PREFIX, CallbackBatch
from tocsin.model.batch_answer import item_responses
from tocsin.model.namespace import Namespace
from tocsin.model.subjects import is_subject_url
from tocsin.model.timer import BODILESS_METHODS, LoggedAttempt, Timer
from tocsin.ports.batches import BatchAccepted
from tocsin.ports.http import Exchange
from tocsin.ports.seals import SealBroken
from tocsin.timers.engine.attempt import Attempt, unopened
from tocsin.timers.engine.breaker import BreakerState
from tocsin.timers.engine.destination_events import BatchEnded

if TYPE_CHECKING:
    from tocsin.timers.engine.destination import DestinationPath, Queue
    from tocsin.timers.engine.dispatcher import Dispatcher
    from tocsin.timers.engine.flow_states import KeyState
    from tocsin.timers.engine.rows import Row
    from tocsin.timers.engine.shard import Shard

#: What an item has at most besides its payload, and besides its timer's id, whose characters may be escaped.
_ITEM_BYTES = 768
#: Rows that a batch which begins looks at for each item of its rule, over all queues of its path, whose others may be for
#: another URL; and how many such others in a row end the look at one queue: where each timer has a URL of its own, there is
#: nothing to find, and looking at all of them for each request would stall the event loop.
_LOOKED_AT = 4
_OTHERS_IN_A_ROW = 50


class BatchKey(NamedTuple):
    """What timers of one batch have in common. The namespace has one set of secrets."""

    namespace: str
    url: str
    method: str
    headers: tuple[tuple[str, str], ...]
    credential: str
    timeout_us: int
    rule: CallbackBatch


def batch_rule(timer: Timer, namespace: Namespace | None, flow: KeyState | None) -> CallbackBatch | None:
    """By which rule the timer's callback is sent with others: that of its flow, else that of its namespace; None: by itself.
    So are timers without an envelope in the request's body, which notifications are, and messages of NATS."""
    rule = None if namespace is None else namespace.callback_batch
    if flow is not None and flow.rule.flow.callback_batch is not None:
        rule = flow.rule.flow.callback_batch
    if (
        rule is None
        or timer.body is not None
        or timer.method in BODILESS_METHODS
        or is_subject_url(timer.url)
        or _bytes_of(timer) > BATCH_BYTES_MAX
    ):
        return None
    return rule


def _bytes_of(timer: Timer) -> int:
    """What the timer adds to the body, at most."""
    return len(memoryview(timer.payload)) + 12 * len(timer.id) + _ITEM_BYTES


def _key(timer: Timer, rule: CallbackBatch) -> BatchKey:
    headers = () if timer.headers is None else tuple(sorted(timer.headers.items()))
    return BatchKey(timer.namespace, timer.url, timer.method, headers, timer.credential, timer.timeout_us, rule)


class Batch:
    """One request that is collected, then sent. It has one slot of its destination from the first item on."""

    __slots__ = (
        "_batches",
        "_began",
        "_bytes",
        "_dispatcher",
        "_ids",
        "_items",
        "_sending",
        "alone",
        "id",
        "key",
        "latest_us",
        "path",
    )

    def __init__(self, batches: Batches, dispatcher: Dispatcher, key: BatchKey, path: DestinationPath) -> None:
        self._batches, self._dispatcher = batches, dispatcher
        self.key, self.path = key, path
        #: Each attempt with the row that it joined with.
        self._items: list[tuple[Attempt, Row]] = []
        #: Their `webhook-id`s, once it is sent.
        self._ids: list[str] = []
        self._bytes = 0
        self._began = dispatcher.admission.begin(path, key.namespace)
        #: A probe is the one timer that is tried: it takes no others along.
        self.alone = path.destination.breaker.state is not BreakerState.CLOSED
        linger_us = 0 if self.alone or dispatcher.waits_until_us is not None else key.rule.linger_us
        self.latest_us = dispatcher.context.clock.now_us() + linger_us
        self.id = f"{BATCH_ID_PREFIX}{dispatcher.context.random.getrandbits(128):032x}"
        loop = asyncio.get_running_loop()
        self._sending: asyncio.Handle = (
            loop.call_later(linger_us / 1e6, self._send) if linger_us else loop.call_soon(self._send)
        )

    def room(self) -> tuple[int, int]:
        """How many items, and bytes, it still takes."""
        return self.key.rule.items - len(self._items), BATCH_BYTES_MAX - self._bytes

    def add(self, shard: Shard, row: Row, size: int, flow: KeyState | None, now_us: int) -> None:
        """Takes the row, which adds at most `size` bytes, from its window; a full batch is sent."""
        attempt = Attempt.begin(self._dispatcher, shard, row, self.path, flow, now_us, in_batch=True)
        self._items.append((attempt, row))
        attempt.waits_until(self.latest_us)
        self._bytes += size
        if len(self._items) >= self.key.rule.items:
            self.close()
            return
        timer = row.timer
        limit = None if timer.expire_after_us is None else timer.expires_at
        # At the end of the linger it would be too late for it; or a later create would begin another window, and this one
        # would not be sent; or it has waited long enough, as an occurrence that the one before it has delayed.
        too_late = limit is not None and limit <= self.latest_us
        if too_late or timer.debounced is not None or row.key[0] + self.key.rule.linger_us <= now_us:
            self.hurry(now_us)

    def hurry(self, now_us: int) -> None:
        """Is sent without lingering, with what joins it in this turn of the event loop."""
        if self.latest_us > now_us:
            self.latest_us = now_us
            self._sending.cancel()
            self._sending = asyncio.get_running_loop().call_soon(self._send)

    def close(self) -> None:
        """Takes no more items, and is sent as soon as its caller has returned."""
        self._batches.forget(self)
        self._sending.cancel()
        self._sending = asyncio.get_running_loop().call_soon(self._send)

    def cancel(self) -> None:
        """It is never sent: the node has stopped."""
        self._sending.cancel()

    def _send(self) -> None:
        """Sends what may still be sent; what may not is due as before."""
        self._batches.forget(self)
        dispatcher, items = self._dispatcher, self._items
        now_us, takes = dispatcher.context.clock.now_us(), self._is_taken()
        self._items = [(attempt, row) for attempt, row in items if takes and attempt.begins_in_batch(row, now_us)]
        if len(self._items) < len(items):
            sent = {id(attempt) for attempt, _ in self._items}
            for attempt, _ in items:
                if id(attempt) not in sent:
                    attempt.take_back()
                    attempt.free_flow()
        if self._items:
            self._invoke()
            return
        dispatcher.admission.end(self.path, self.key.namespace)
        dispatcher.admission.unsent(self.path, self._began)
        self._ended()

    def _is_taken(self) -> bool:
        """Whether the node may fire, the namespace is not paused, and the destination gets requests."""
        destination = self.path.destination
        namespace = self._dispatcher.context.namespaces.get(self.key.namespace)
        if namespace is not None and namespace.held:
            return False
        if destination.paused or destination.back_off is not None or destination.breaker.state is BreakerState.OPEN:
            return False
        return self._dispatcher.may_dispatch()

    def _invoke(self) -> None:
        try:
            first = self._items[0][0].invocation()
        except SealBroken as error:
            # All of them have the same URL and headers, and the namespace's secrets.
            asyncio.get_running_loop().call_soon(self._answered, unopened(error))
            return
        items = (first, *(attempt.item(first) for attempt, _ in self._items[1:]))
        self._ids = [each.message_id for each in items]
        batch = structs.replace(first, timer_id="", attempt=0, message_id=self.id, traceparent=None, items=items)
        self.path.destination.caller.invoke(batch, self._answered)

    def _answered(self, exchange: Exchange) -> None:
        """Takes the outcome of the request, and concludes each item by its part of it."""
        dispatcher, outcome, context = self._dispatcher, exchange.outcome, self._dispatcher.context
        admission = dispatcher.admission
        admission.end(self.path, self.key.namespace)
        if isinstance(outcome, NotSent):
            admission.unsent(self.path, self._began)
            for attempt, _ in self._items:
                attempt.not_sent(outcome)
                attempt.free_flow()
        else:
            error = self._conclude(outcome, exchange)
            boot_us, lasted_us = context.clock.boottime_us(), exchange.duration_us
            admission.learn(self.path, outcome, error, began=self._began, boot_us=boot_us, lasted_us=lasted_us)
            context.observe(BatchEnded(self.path.destination.name, self.id, len(self._items), lasted_us))
        self._ended()

    def _conclude(self, outcome: Response | NoResponse, exchange: Exchange) -> str | None:
        """Concludes each item by its part of the outcome; returns the error of one that has one."""
        context, error = self._dispatcher.context, None
        now_us, boot_us = context.clock.now_us(), context.clock.boottime_us()
        parts = item_responses(outcome, self._ids) if isinstance(outcome, Response) else {}
        accepted: list[Attempt] = []
        # By the status of their part: they began together, so that they have the same log entry.
        entries: dict[int, LoggedAttempt] = {}
        for (attempt, _), webhook_id in zip(self._items, self._ids, strict=True):
            part = parts.get(webhook_id, outcome)
            if isinstance(part, Response) and is_plain_acceptance(part):
                entry = entries.get(part.status)
                if entry is None:
                    entry = entries[part.status] = attempt.entry(part.status, exchange.duration_us, self.id)
                if attempt.accepted(entry, exchange, now_us, boot_us):
                    accepted.append(attempt)
            else:
                error = attempt.conclude(part, exchange, self.id) or error
            attempt.free_flow()
        if accepted:
            sent_at = exchange.sent_at
            context.observe(
                BatchAccepted(
                    self.key.namespace,
                    self.id,
                    tuple([each.timer_id for each in accepted]),
                    () if sent_at is None else tuple([each.lag_us(sent_at) for each in accepted]),
                    exchange.duration_us,
                    self.path.destination.name,
                )
            )
        return error

    def _ended(self) -> None:
        # The handle of the event loop that has sent the batch holds it, and is held by it: the rows need not wait for the
        # garbage collector.
        self._items, self._ids = [], []
        self._dispatcher.serve_waiting(self.path.destination)
        if not self.path.in_flight:
            self._dispatcher.admission.settle(self.path)


class Batches:
    """The batches that are being collected on this node."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._open: dict[BatchKey, Batch] = {}

    def join(self, shard: Shard, row: Row, flow: KeyState | None, rule: CallbackBatch, now_us: int) -> bool:
        """Adds a row that its flow lets pass to the batch that is being collected for it, which has a slot already; False if
        there is none with room."""
        batch = self._open.get(_key(row.timer, rule))
        if batch is None or not batch.path.destination.takes_requests:
            return False
        size = _bytes_of(row.timer)
        if size > batch.room()[1]:
            batch.close()
            return False
        batch.add(shard, row, size, flow, now_us)
        return True

    def begin(
        self,
        shard: Shard,
        row: Row,
        path: DestinationPath,
        flow: KeyState | None,
        rule: CallbackBatch | None,
        now_us: int,
        *,
        waited: bool = False,
    ) -> None:
        """Begins the attempt of a row for which its destination has a slot: by itself without a rule, else as the first of a
        batch, which takes along what waits for the same receiver. If the row or one of these has `waited` for the slot, the
        batch does not hold it for the linger."""
        if rule is None:
            Attempt.begin(self._dispatcher, shard, row, path, flow, now_us).send()
            return
        batch = Batch(self, self._dispatcher, _key(row.timer, rule), path)
        if not batch.alone:
            self._open[batch.key] = batch
        batch.add(shard, row, _bytes_of(row.timer), flow, now_us)
        look_at = _LOOKED_AT * rule.items
        for queue in list(path.queues.values()):
            if look_at <= 0 or self._open.get(batch.key) is not batch:
                break
            if queue.namespace == batch.key.namespace:
                found, looked_at = self._bring_forward(queue, batch, look_at)
                look_at -= looked_at
                for _ in range(found):
                    waited = True
                    self._dispatcher.fire_first(queue, now_us)
        if waited:
            batch.hurry(now_us)

    def _bring_forward(self, queue: Queue, batch: Batch, look_at: int) -> tuple[int, int]:
        """Moves rows that the batch takes to the beginning of their queue, as many as it has room for, of so many
        that it looks at; how many these are, and how many it has looked at."""
        chosen: list[Row] = []
        others: list[Row] = []
        in_a_row = 0
        count, size = batch.room()
        for row in islice(queue.rows, look_at):
            if len(chosen) == count or in_a_row == _OTHERS_IN_A_ROW:
                break
            if self._is_for(row.timer, batch.key):
                bytes_of = _bytes_of(row.timer)
                if bytes_of > size:
                    break
                chosen.append(row)
                size -= bytes_of
                in_a_row = 0
            else:
                others.append(row)
                in_a_row += 1
        looked_at = len(chosen) + len(others)
        if chosen and others:
            for _ in range(looked_at):
                queue.rows.popleft()
            queue.rows.extendleft(reversed(others))
            queue.rows.extendleft(reversed(chosen))
        return len(chosen), looked_at

    def _is_for(self, timer: Timer, key: BatchKey) -> bool:
        """Whether the timer, which is of the batch's namespace, goes into a batch with that key."""
        if timer.url != key.url:
            # This is so for most that do not belong together, and needs no look at their flows.
            return False
        flows, namespace = self._dispatcher.flows, self._dispatcher.context.namespaces.get(timer.namespace)
        rule = batch_rule(timer, namespace, flows.of(timer.namespace, timer.flow_key, namespace))
        return rule is not None and _key(timer, rule) == key

    def forget(self, batch: Batch) -> None:
        """The batch takes no more items."""
        if self._open.get(batch.key) is batch:
            del self._open[batch.key]

    def send_all(self) -> None:
        """Sends what is being collected without further delay, because the node stops."""
        for batch in list(self._open.values()):
            batch.close()

    def close(self) -> None:
        """Cancels what is planned."""
        for batch in self._open.values():
            batch.cancel()
        self._open.clear()
