"""Handles the timer engine's invocations for timers of the agent, which need no HTTP request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from tocsin.model.answer import NoResponse, Outcome, Response
from tocsin.model.errors import Unavailable
from tocsin.ports.callback import Caller, Exchange, Invocation
from tocsin.ports.clock import Clock
from tocsin.service_calls.alarm import Alarm
from tocsin.service_calls.timer.ports import OnDue, TimerEntry

#: The URL of the agent's timers. No client can create one: the API accepts http and https only.
DUE_URL = "agent:due"


class DuePayload(msgspec.Struct, frozen=True, rename="camel"):
    """The payload of a timer of the agent. Instants in microseconds."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    due_at_us: int
    registered_at_us: int


class _PendingDue(NamedTuple):
    entry: TimerEntry
    done: Callable[[Exchange], None]
    since_us: int
    deadline_us: int


#: Raises msgspec.DecodeError or UnicodeDecodeError for anything that is not a DuePayload.
read_payload = msgspec.json.Decoder(DuePayload).decode

_PUBLISHED = Response(200)

#: Sends the payload of a due timer to the node that runs the agent. Raises Unavailable if that failed, as far as is known.
ForwardDue = Callable[[bytes], Awaitable[Outcome]]


class AgentCaller:
    """A tocsin.ports.callback.Caller in front of the HTTP one.

    Invocations of the agent's timers are batched: while one batch is being published, the next one accumulates. An
    invocation succeeds (200) once its due time is published. It fails with a NoResponse, and the engine retries it, if
    the agent does not run here, or if publishing fails or exceeds the invocation's timeout.

    `forward_due` sends the payload of an invocation to the node that runs the agent, if that is another one.
    """

    def __init__(self, http: Caller, clock: Clock, batch_max: int, forward_due: ForwardDue | None = None) -> None:
        self._http = http
        self._forward_due = forward_due
        self._forwarding: set[asyncio.Task[None]] = set()
        self._clock = clock
        self._batch_max = batch_max
        self._on_due: OnDue | None = None
        self._waiting: list[_PendingDue] = []
        self._alarm = Alarm()
        self._task: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------ the engine's side

    def destination(self, url: str) -> str:
        """All timers of the agent have one destination."""
        return DUE_URL if url == DUE_URL else self._http.destination(url)

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Publishes the due time of an agent's timer, here or at the node that runs the agent; passes any other
        invocation to the HTTP caller. `done` is called later, once."""
        if invocation.url != DUE_URL:
            self._http.invoke(invocation, done)
            return
        if self._on_due is None and self._forward_due is not None:
            self._forward(self._forward_due, invocation, done)
            return
        self._enqueue(bytes(invocation.payload), invocation.timeout_us, done)

    async def receive_due(self, payload: bytes, timeout_us: int) -> Outcome:
        """Publishes the due time in the payload of an invocation that another node forwarded."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def done(exchange: Exchange) -> None:
            if not answer.done():
                answer.set_result(exchange.outcome)

        self._enqueue(payload, timeout_us, done)
        return await answer

    def _forward(self, forward_due: ForwardDue, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        since_us, sent_at = self._clock.boottime_us(), self._clock.now_us()

        async def go() -> None:
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

        task = asyncio.get_running_loop().create_task(go())
        self._forwarding.add(task)
        task.add_done_callback(self._forwarding.discard)

    def _enqueue(self, sent: bytes, timeout_us: int, done: Callable[[Exchange], None]) -> None:
        if self._on_due is None:
            _answer_soon(done, NoResponse("AGENT_NOT_RUNNING", "the service agent does not run on this node now"))
            return
        try:
            payload = read_payload(sent)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            _answer_soon(done, NoResponse("BAD_DUE_TIME", str(error), final=True))
            return
        entry = TimerEntry(
            payload.tenant_id,
            payload.service_call_id,
            payload.correlation_id,
            payload.due_at_us,
            payload.registered_at_us,
        )
        now_us = self._clock.boottime_us()
        self._waiting.append(_PendingDue(entry, done, now_us, now_us + timeout_us))
        self._alarm.wake()

    async def close(self) -> None:
        """Closes this caller and the HTTP one."""
        await self.ignore()
        for task in self._forwarding:
            task.cancel()
        await asyncio.gather(*self._forwarding, return_exceptions=True)
        await self._http.close()

    # ------------------------------------------------------------------ the agent's side

    def listen(self, on_due: OnDue) -> None:
        """From now on due times are published by `on_due`."""
        self._on_due = on_due
        self._task = asyncio.create_task(self._run())

    async def ignore(self) -> None:
        """From now on invocations fail. Those that are being published are cancelled. Idempotent."""
        self._on_due = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._answer(self._waiting, NoResponse("SHUTDOWN"), None)
        self._waiting = []

    async def _run(self) -> None:
        while True:
            if not self._waiting:
                await self._alarm.wait()
                continue
            batch, self._waiting = self._waiting[: self._batch_max], self._waiting[self._batch_max :]
            # The engine fires each shard's timers in order; this batch has timers of several shards.
            batch.sort(key=lambda pending: pending.entry.due_at)
            published_at = self._clock.now_us()
            outcome: Outcome = NoResponse("SHUTDOWN")
            try:
                outcome = await self._publish(batch)
            finally:
                self._answer(batch, outcome, published_at)

    async def _publish(self, batch: list[_PendingDue]) -> Outcome:
        on_due = self._on_due
        if on_due is None:
            return NoResponse("SHUTDOWN")
        left_us = min(pending.deadline_us for pending in batch) - self._clock.boottime_us()
        try:
            async with asyncio.timeout(max(left_us, 0) / 1e6):
                await on_due([pending.entry for pending in batch])
        except TimeoutError:
            return NoResponse("TIMEOUT", "the bus did not accept the message in time")
        except Exception as error:  # noqa: BLE001 -- the boundary: the engine stores the error with the timer and retries
            return NoResponse("DUE_TIME_NOT_PUBLISHED", f"{type(error).__name__}: {error}")
        return _PUBLISHED

    def _answer(self, batch: list[_PendingDue], outcome: Outcome, published_at: int | None) -> None:
        now_us = self._clock.boottime_us()
        for pending in batch:
            pending.done(Exchange(outcome, published_at, now_us - pending.since_us))


def _answer_soon(done: Callable[[Exchange], None], outcome: Outcome) -> None:
    """Calls `done` after `invoke` has returned, as the port requires."""
    asyncio.get_running_loop().call_soon(done, Exchange(outcome, None, 0))
