"""Schedules kept as timers of the timer service, in a reserved namespace.

`EngineTimers` creates them, on the node that runs the agent. `DueCaller` is invoked when they fire, on the node that owns
their shard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from tocsin.model.answer import NoResponse, Outcome, Response
from tocsin.model.errors import NamespaceExists, TimerNotFound, TimerNotPending, TocsinError, Unavailable
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Timer
from tocsin.ports.clock import Clock
from tocsin.ports.http import Exchange, Invocation
from tocsin.service_calls.background import AgentContext, Batches, describe
from tocsin.service_calls.messages import CallKey
from tocsin.service_calls.ports import OnDue, TimerEntry
from tocsin.timers.service import TimerService

#: The namespace of the agent's timers. Its name is reserved; the engine invokes its timers through a `DueCaller`.
NAMESPACE = "tocsin.agent"
#: The URL of these timers, and their destination. It only describes them: their namespace decides how they are invoked.
_URL = "agent:due"
#: Practically unlimited attempts: the service call waits for its timer.
_RETRY = RetryPolicy(
    max_attempts=1_000_000, initial_interval_us=200_000, backoff_multiplier=2.0, max_interval_us=30_000_000
)
#: How long publishing a due time may take; the longest timeout that the timer service accepts by default.
_PUBLISH_TIMEOUT_US = 60_000_000
_PUBLISHED = Response(200)

#: Sends the payload of a due timer to the node that runs the agent. Raises Unavailable if that failed, as far as is known.
ForwardDue = Callable[[bytes], Awaitable[Outcome]]


class DuePayload(msgspec.Struct, frozen=True, rename="camel"):
    """The payload of a timer of the agent. Instants in microseconds."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    due_at_us: int
    registered_at_us: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(DuePayload).decode


class _PendingDue(NamedTuple):
    entry: TimerEntry
    done: Callable[[Exchange], None]
    since_us: int
    deadline_us: int


class DueCaller:
    """A tocsin.ports.http.Caller for the agent's timers: their due times are published, no request is sent.

    An invocation succeeds (200) once its due time is published. It fails with a NoResponse, and the engine retries it,
    if the agent does not run here, or if publishing fails or exceeds the invocation's timeout.

    `forward_due` sends the payload of an invocation to the node that runs the agent, if that is another one.
    """

    def __init__(self, clock: Clock, batch_max: int, forward_due: ForwardDue | None = None) -> None:
        self._clock = clock
        self._batch_max = batch_max
        self._forward_due = forward_due
        self._forwarding: set[asyncio.Task[None]] = set()
        self._on_due: OnDue | None = None
        self._due: Batches[_PendingDue] = self._new_batches()

    # ------------------------------------------------------------------ the engine's side

    def destination(self, url: str) -> str:
        """All timers of the agent have one destination."""
        return _URL

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Publishes the due time, here or at the node that runs the agent. `done` is called later, once."""
        if self._on_due is None and self._forward_due is not None:
            task = asyncio.get_running_loop().create_task(self._forward(self._forward_due, invocation, done))
            self._forwarding.add(task)
            task.add_done_callback(self._forwarding.discard)
        else:
            self._enqueue(bytes(invocation.payload), invocation.timeout_us, done)

    async def receive_due(self, payload: bytes, timeout_us: int) -> Outcome:
        """Publishes the due time in the payload of an invocation that another node forwarded."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(exchange: Exchange) -> None:
            if not answer.done():
                answer.set_result(exchange.outcome)

        self._enqueue(payload, timeout_us, done)
        return await answer

    async def _forward(self, forward_due: ForwardDue, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        since_us, sent_at = self._clock.boottime_us(), self._clock.now_us()
        outcome: Outcome = NoResponse("SHUTDOWN")
        try:
            async with asyncio.timeout(invocation.timeout_us / 1e6):
                outcome = await forward_due(bytes(invocation.payload))
        except TimeoutError:
            outcome = NoResponse("TIMEOUT", "the node that runs the agent did not answer in time")
        except Unavailable as error:
            outcome = NoResponse("AGENT_NOT_RUNNING", str(error))
        finally:
            done(Exchange(outcome, sent_at, self._clock.boottime_us() - since_us))

    def _enqueue(self, sent: bytes, timeout_us: int, done: Callable[[Exchange], None]) -> None:
        if self._on_due is None:
            _answer_soon(done, NoResponse("AGENT_NOT_RUNNING", "the service agent does not run on this node now"))
            return
        try:
            entry = _entry(sent)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            _answer_soon(done, NoResponse("BAD_DUE_TIME", str(error), final=True))
            return
        now_us = self._clock.boottime_us()
        self._due.add(_PendingDue(entry, done, now_us, now_us + timeout_us))

    async def close(self) -> None:
        """Ends all invocations as SHUTDOWN."""
        await self.ignore()
        for task in self._forwarding:
            task.cancel()
        await asyncio.gather(*self._forwarding, return_exceptions=True)

    # ------------------------------------------------------------------ the agent's side

    def listen(self, on_due: OnDue) -> None:
        """From now on due times are published by `on_due`."""
        self._on_due = on_due

    async def ignore(self) -> None:
        """From now on invocations fail. Those that are being published are cancelled. Idempotent."""
        self._on_due = None
        due, self._due = self._due, self._new_batches()
        await due.close()
        self._answer(due.take_back(), NoResponse("SHUTDOWN"), None)

    def _new_batches(self) -> Batches[_PendingDue]:
        return Batches(self._publish, batch_max=self._batch_max)

    async def _publish(self, batch: list[_PendingDue]) -> None:
        # The engine fires each shard's timers in order; this batch has timers of several shards.
        batch.sort(key=lambda pending: pending.entry.due_at)
        published_at = self._clock.now_us()
        left_us = min(pending.deadline_us for pending in batch) - self._clock.boottime_us()
        outcome: Outcome = NoResponse("SHUTDOWN")
        try:
            if self._on_due is not None:
                async with asyncio.timeout(max(left_us, 0) / 1e6):
                    await self._on_due([pending.entry for pending in batch])
                outcome = _PUBLISHED
        except TimeoutError:
            outcome = NoResponse("TIMEOUT", "the bus did not accept the message in time")
        except Exception as error:  # noqa: BLE001 -- the boundary: the engine stores the error with the timer and retries
            outcome = NoResponse("DUE_TIME_NOT_PUBLISHED", describe(error))
        finally:
            self._answer(batch, outcome, published_at)

    def _answer(self, batch: list[_PendingDue], outcome: Outcome, published_at: int | None) -> None:
        now_us = self._clock.boottime_us()
        for pending in batch:
            pending.done(Exchange(outcome, published_at, now_us - pending.since_us))


def _answer_soon(done: Callable[[Exchange], None], outcome: Outcome) -> None:
    """Calls `done` after `invoke` has returned, as the port requires."""
    asyncio.get_running_loop().call_soon(done, Exchange(outcome, None, 0))


class EngineTimers:
    """Implements `Timers` with a `TimerService` whose engine invokes timers through the given `DueCaller`.

    A timer that has fired corresponds to the state Reached of a table: while the timer service keeps it, only a later
    instant makes it pending again. `schedule` and `cancel` raise the timer service's errors.
    """

    def __init__(self, service: TimerService, caller: DueCaller, context: AgentContext) -> None:
        self._service = service
        self._caller = caller
        self._context = context
        self._ready = False

    async def start(self, on_due: OnDue) -> None:
        """Starts accepting invocations. Earlier ones were refused, and the engine retries them."""
        await self._ensure_namespace()
        self._caller.listen(on_due)

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        """Creates the timers, or moves existing ones to a later instant."""
        await self._ensure_namespace()
        wanted = {_timer_id(entry.key): entry for entry in entries}
        present = await self._service.get_many(NAMESPACE, wanted)
        now_us = self._context.clock.now_us()
        timers = []
        for timer_id, entry in wanted.items():
            found = present.get(timer_id)
            if found is None:
                timers.append(_timer(timer_id, entry, now_us))
            elif (before := _stored(found.timer)) is None or before.due_at < entry.due_at:
                # This also replaces a timer whose payload cannot be read.
                registered_at = entry.registered_at if before is None else before.registered_at
                timers.append(_timer(timer_id, entry._replace(registered_at=registered_at), now_us))
        for result in await self._service.create_many(timers):
            if isinstance(result, TocsinError):
                raise result

    async def cancel(self, keys: Collection[CallKey]) -> None:
        """Deletes the timers that are pending."""
        await self._ensure_namespace()
        outcomes = await asyncio.gather(
            *(self._service.delete(NAMESPACE, _timer_id(key)) for key in keys), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, TimerNotFound | TimerNotPending):
                raise outcome

    async def close(self) -> None:
        """Refuses invocations from now on. Idempotent."""
        await self._caller.ignore()

    async def _ensure_namespace(self) -> None:
        if self._ready:
            return
        if NAMESPACE not in {namespace.name for namespace in await self._service.namespaces.all()}:
            try:
                retention_us = self._context.limits.outbox_retention_us
                await self._service.namespaces.create(NAMESPACE, retention_us=retention_us, reserved=True)
            except NamespaceExists:
                # Another node created it at the same time.
                await self._service.namespaces.all()
        self._ready = True


def _timer_id(key: CallKey) -> str:
    return f"{key.tenant_id}:{key.service_call_id}"


def _entry(payload: bytes | msgspec.Raw) -> TimerEntry:
    """Raises msgspec.DecodeError or UnicodeDecodeError for anything that is not a DuePayload."""
    return TimerEntry(*msgspec.structs.astuple(_decode(payload)))


def _stored(timer: Timer) -> TimerEntry | None:
    try:
        return _entry(timer.payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _timer(timer_id: str, entry: TimerEntry, now_us: int) -> Timer:
    payload = DuePayload(
        entry.tenant_id, entry.service_call_id, entry.correlation_id, entry.due_at, entry.registered_at
    )
    return Timer(
        namespace=NAMESPACE,
        id=timer_id,
        execute_at=entry.due_at,
        url=_URL,
        created_at=now_us,
        updated_at=now_us,
        payload=msgspec.Raw(_encode(payload)),
        retry=_RETRY,
        timeout_us=_PUBLISH_TIMEOUT_US,
    )
