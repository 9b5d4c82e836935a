"""The environment of the execution module in tests: an in-memory log, recording deliveries, a service."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import msgspec

from tests.support.flow_gates import OpenGate
from tests.support.patience import PATIENCE_S
from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.http import HttpCaller
from tocsin.http_client.limits import CallbackLimits
from tocsin.model.errors import OutcomeUnknown
from tocsin.model.ids import Uuid7Source
from tocsin.model.secrets import SigningSecrets
from tocsin.ports.bus import Envelope
from tocsin.ports.credentials import NoCallCredentials, SentIdentity
from tocsin.ports.http import Identity
from tocsin.service_calls.background import AgentContext
from tocsin.service_calls.events import AgentEvent
from tocsin.service_calls.execution.executor import Executor
from tocsin.service_calls.execution.flow_queue import FlowQueue
from tocsin.service_calls.execution.handlers import ExecutionHandlers
from tocsin.service_calls.execution.turns import Turns
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import CheckExecution, Message, Registry, RequestSpec, StartExecution
from tocsin.service_calls.ports import (
    DamagedRow,
    ExecutionEnd,
    ExecutionStart,
    LoggedExecution,
    Readable,
    SuspendedOrder,
    UnfinishedExecution,
)
from tocsin.telemetry.clock import SystemClock

PAUSES = AgentLimits(outbox_backoff_initial_us=1_000, outbox_backoff_max_us=4_000)


class Changes:
    """Lets tests wait for a condition, which is checked after each change."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def notify(self) -> None:
        """Something has changed."""
        task = asyncio.get_running_loop().create_task(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def until(self, holds: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        """Returns when the condition holds."""
        async with asyncio.timeout(timeout_s), self._condition:
            await self._condition.wait_for(holds)

    async def _notify(self) -> None:
        async with self._condition:
            self._condition.notify_all()


class MemoryLog:
    """ExecutionLog in memory, with its outbox. Raises the given failures in order; the first `lost_commits` begins take
    effect and then report an unknown outcome. Nothing is written while `open` is not set."""

    def __init__(self, changes: Changes) -> None:
        self.rows: dict[str, tuple[ExecutionStart, ExecutionEnd | None]] = {}
        self.outbox: list[Envelope] = []
        self.unknown_calls: set[str] = set()
        #: Orders that wait for their flow, by execution, and the executions of those that were reported.
        self.suspended: dict[str, SuspendedOrder] = {}
        self.reported: set[str] = set()
        self.begin_failures: list[Exception] = []
        self.finish_failures: list[Exception] = []
        self.lost_commits = 0
        self.batches: list[tuple[str, int]] = []
        self.open = asyncio.Event()
        self.open.set()
        self._changes = changes

    async def begin(
        self, starts: Sequence[tuple[ExecutionStart, Envelope]], suspended: Collection[tuple[str, str, str]] = ()
    ) -> set[str]:
        self._changes.notify()
        await self.open.wait()
        if self.begin_failures:
            raise self.begin_failures.pop(0)
        added = set()
        for start, envelope in starts:
            if start.execution_id in self.rows or start.service_call_id in self.unknown_calls:
                continue
            self.rows[start.execution_id] = start, None
            self.outbox.append(envelope)
            added.add(start.execution_id)
        for _, _, execution_id in suspended:
            self.suspended.pop(execution_id, None)
        self.batches.append(("begin", len(starts)))
        self._changes.notify()
        if self.lost_commits:
            self.lost_commits -= 1
            raise OutcomeUnknown("the connection broke")
        return added

    async def finish(self, ends: Sequence[tuple[ExecutionEnd, Envelope]]) -> set[str]:
        await self.open.wait()
        if self.finish_failures:
            raise self.finish_failures.pop(0)
        completed = set()
        for end, envelope in ends:
            start, before = self.rows[end.execution_id]
            if before is None:
                self.rows[end.execution_id] = start, end
                self.outbox.append(envelope)
                completed.add(end.execution_id)
        self.batches.append(("finish", len(ends)))
        self._changes.notify()
        return completed

    async def unfinished(self, limit: int) -> Readable[UnfinishedExecution]:
        rows = [UnfinishedExecution._make(start[:5]) for start, end in self.rows.values() if end is None]
        return Readable(rows[:limit])

    async def find(self, keys: Collection[tuple[str, str, str]]) -> dict[str, LoggedExecution]:
        await self.open.wait()
        return {id_: LoggedExecution._make(self.rows[id_]) for _, _, id_ in keys if id_ in self.rows}

    async def report(self, events: Sequence[Envelope]) -> None:
        self.outbox.extend(events)


class MemorySuspended:
    """SuspendedOrders in memory, in those of a log. Reads wait while `readable` is not set, and are counted."""

    def __init__(self, log: MemoryLog, changes: Changes) -> None:
        self.failures: list[Exception] = []
        self.reads = 0
        self.readable = asyncio.Event()
        self.readable.set()
        self._log = log
        self._changes = changes

    async def suspend(self, orders: Sequence[SuspendedOrder]) -> set[str]:
        await self._log.open.wait()
        if self.failures:
            raise self.failures.pop(0)
        known = self._log.suspended.keys() | self._log.rows.keys()
        fresh = {order.execution_id: order for order in orders if order.execution_id not in known}
        self._log.suspended |= fresh
        self._changes.notify()
        return set(fresh)

    async def first(self, place: str, limit: int) -> Readable[SuspendedOrder]:
        self.reads += 1
        await self.readable.wait()
        orders = [order for order in self._log.suspended.values() if order.place == place]
        return Readable(sorted(orders, key=lambda order: order.execution_id)[:limit])

    async def places(self, after: str, limit: int) -> list[tuple[str, int]]:
        counts = Counter(order.place for order in self._log.suspended.values())
        return sorted((key, count) for key, count in counts.items() if key > after)[:limit]

    async def unreported(self, before_us: int, limit: int) -> Readable[SuspendedOrder]:
        orders = [order for id_, order in self._log.suspended.items() if id_ not in self._log.reported]
        return Readable([order for order in orders if order.suspended_at < before_us][:limit])

    async def report(
        self, orders: Sequence[tuple[SuspendedOrder, Envelope]], at_us: int, damaged: Collection[DamagedRow] = ()
    ) -> None:
        self._log.reported |= {order.execution_id for order, _ in orders}
        self._log.outbox.extend(event for _, event in orders)
        self._changes.notify()


class FakeDelivery:
    """One delivery; `settled` is "acked", the error it failed with, or None."""

    def __init__(self, envelope: Envelope, changes: Changes) -> None:
        self.envelope = envelope
        self.attempt = 1
        self.kept = False
        self.settled: str | Exception | None = None
        self._changes = changes

    def keep(self) -> None:
        self.kept = True

    def ack(self) -> None:
        self._settle("acked")

    def fail(self, error: Exception) -> None:
        self._settle(error)

    def _settle(self, how: str | Exception) -> None:
        if self.settled is None:
            self.settled = how
            self._changes.notify()


@dataclass
class Arrival:
    """A request as the service received it, with header names as sent."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes


Responder = Callable[[Arrival], Awaitable[bytes | None]]


def answer(status: int = 200, body: bytes = b"ok", *headers: str) -> bytes:
    """The bytes of a response."""
    lines = [f"HTTP/1.1 {status} X", *headers, f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


class Service:
    """Listens on a free port and responds by a function; None closes the connection. Counts requests in flight."""

    def __init__(self, answers: Responder, changes: Changes) -> None:
        self._answers = answers
        self._changes = changes
        self._tasks: set[asyncio.Task[None]] = set()
        self.arrivals: list[Arrival] = []
        self.in_flight = 0
        self.under_way_max = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1_024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/do"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")[:-4].split("\r\n")
                headers = [(name, value) for name, _, value in (text.partition(": ") for text in rest)]
                length = next((int(value) for name, value in headers if name == "content-length"), 0)
                arrival = Arrival(line, headers, await reader.readexactly(length))
                self.arrivals.append(arrival)
                self.in_flight += 1
                self.under_way_max = max(self.in_flight, self.under_way_max)
                self._changes.notify()
                try:
                    response = await self._answers(arrival)
                finally:
                    self.in_flight -= 1
                if response is None:
                    break
                writer.write(response)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The client has closed the connection.
        finally:
            writer.close()


class MemorySecrets(dict[str, SigningSecrets]):
    """TenantSecrets in memory."""

    async def find(self, tenant_ids: Collection[str]) -> dict[str, SigningSecrets]:
        return {tenant_id: self[tenant_id] for tenant_id in tenant_ids if tenant_id in self}


class SwitchedCredentials(NoCallCredentials):
    """CallCredentials, of which those in `ready` can be sent, anywhere. `stale`: a 401 may be due to a token."""

    def __init__(self, *ready: str) -> None:
        self.ready = set(ready)
        self.stale = False
        self._ready: list[Callable[[], object]] = []

    def obstacle(self, name: str, destination: str) -> str | None:
        return None if name in self.ready else "it has no token"

    def identify(self, name: str, destination: str) -> SentIdentity | str:
        return self.obstacle(name, destination) or SentIdentity(
            Identity(f"Bearer {name}"), (name,), lambda status: self.stale and status == 401
        )

    def attach(self, ready: Callable[[], object]) -> None:
        self._ready.append(ready)

    def put(self, name: str) -> None:
        """The credential can be sent from now on."""
        self.ready.add(name)
        for ready in self._ready:
            ready()


class AdjustedClock(SystemClock):
    """The wall clock, `ahead_us` of the system's."""

    ahead_us = 0

    def now_us(self) -> int:
        return super().now_us() + self.ahead_us


@dataclass
class Bench:
    """The execution module with its environment. All calls are of one tenant."""

    limits: AgentLimits = PAUSES
    egress: EgressPolicy = field(default_factory=lambda: EgressPolicy(allow_private=True))
    log: Any = None
    suspended: Any = None
    gate: Any = None
    credentials: Any = field(default_factory=SwitchedCredentials)
    callback_limits: CallbackLimits = CallbackLimits()  # noqa: RUF009 -- it is immutable
    clock: AdjustedClock = field(default_factory=AdjustedClock)

    async def __aenter__(self) -> Self:
        self.changes = Changes()
        clock = self.clock
        self.new_id = Uuid7Source(clock.now_us)
        self.registry = Registry(self.new_id, clock.now_us)
        self.tenant_id = self.new_id()
        self.log = self.log or MemoryLog(self.changes)
        self.tenant_secrets = MemorySecrets()
        self.events: list[AgentEvent] = []
        self.caller = HttpCaller(self.callback_limits, self.egress, clock)
        context = AgentContext(self.registry, clock, self.limits, self.observe)
        self.gate = self.gate or OpenGate()
        in_memory = self.log if isinstance(self.log, MemoryLog) else MemoryLog(self.changes)
        self.suspended = self.suspended or MemorySuspended(in_memory, self.changes)
        self.flows = FlowQueue(self.suspended, Turns(self.gate, self.credentials), context)
        self.executor = Executor(self.log, self.tenant_secrets, self.caller, self.flows, context, self.credentials)
        self.handlers = ExecutionHandlers(self.executor, self.log, context)
        self._numbers = itertools.count(1)
        self.flows.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.executor.drain(0)
        await self.caller.close()

    def observe(self, event: AgentEvent) -> None:
        """Records the event."""
        self.events.append(event)
        self.changes.notify()

    def order(
        self,
        url: str,
        method: str = "POST",
        *,
        correlation_id: str | None = None,
        flow_key: str | None = None,
        **spec: Any,
    ) -> FakeDelivery:
        """A StartExecution of a new call, not delivered yet."""
        body = spec.pop("body", msgspec.UNSET)
        raw = msgspec.Raw(body) if isinstance(body, bytes) else body
        request = RequestSpec(method, url, body=raw, **spec)
        message = StartExecution(self.new_id(), self.new_id(), request, flow_key=flow_key)
        number = next(self._numbers)
        return self.delivery(message, correlation_id or f"request-{number}")

    def delivery(self, message: Message, correlation_id: str = "c") -> FakeDelivery:
        """A delivery of a message."""
        envelope = self.registry.seal(
            message, tenant_id=self.tenant_id, correlation_id=correlation_id, causation_id=None
        )
        return FakeDelivery(envelope, self.changes)

    async def hand_over(self, *deliveries: FakeDelivery) -> None:
        """Passes the deliveries to the handler as one batch; it must keep all readable ones."""
        await self.handlers.handle(deliveries)
        assert all(delivery.kept or delivery.settled is not None for delivery in deliveries)

    async def check(self, order: FakeDelivery, *, begun: bool = True, refused: str | None = None) -> list[Message]:
        """Sends CheckExecution for an ordered execution; returns the resulting events."""
        known, message = len(self.log.outbox), self.registry.open(order.envelope)
        assert isinstance(message, StartExecution)
        asked = self.delivery(CheckExecution(message.service_call_id, message.execution_id, begun, refused))
        await self.handlers.handle([asked])
        assert not asked.kept
        sent = self.log.outbox[known:]
        assert all(envelope.causation_id == asked.envelope.id for envelope in sent)
        return [self.registry.open(envelope) for envelope in sent]

    async def run(self, *deliveries: FakeDelivery) -> list[Message]:
        """Delivers orders, waits for their ends, and returns the final events in the order of the deliveries."""
        await self.hand_over(*deliveries)
        ids = [self.execution_id(delivery) for delivery in deliveries]
        await self.changes.until(lambda: all(self.has_ended(id_) for id_ in ids))
        return [self.end(id_) for id_ in ids]

    def execution_id(self, delivery: FakeDelivery) -> str:
        """The execution that a delivery orders."""
        message = self.registry.open(delivery.envelope)
        assert isinstance(message, StartExecution)
        return message.execution_id

    def has_ended(self, execution_id: str) -> bool:
        """Whether the log has its end."""
        return execution_id in self.log.rows and self.log.rows[execution_id][1] is not None

    def published(self, execution_id: str) -> list[Message]:
        """The events of the execution, in order."""
        messages: list[Any] = [self.registry.open(envelope) for envelope in self.log.outbox]
        return [message for message in messages if message.execution_id == execution_id]

    def end(self, execution_id: str) -> Message:
        """The final event of an execution: the second of two."""
        _, ended = self.published(execution_id)
        return ended


def limited(**changes: Any) -> AgentLimits:
    """Limits with short pauses, and these changes."""
    return replace(PAUSES, **changes)
