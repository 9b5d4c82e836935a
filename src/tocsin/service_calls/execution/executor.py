"""Executes orders: each at most once, logged before its request is sent and after it ended."""

from __future__ import annotations

import asyncio
from functools import partial

from tocsin.model.answer import NoResponse, NotSent
from tocsin.model.envelope import Envelope
from tocsin.ports.bus import Delivery
from tocsin.ports.clock import Clock
from tocsin.ports.http import Requester, Result, Signing
from tocsin.service_calls.events import (
    AgentObserver,
    AgentStepFailed,
    ExecutionBegun,
    ExecutionFinished,
    ExecutionNotSent,
)
from tocsin.service_calls.execution.batches import Batches
from tocsin.service_calls.execution.conclusion import conclude
from tocsin.service_calls.execution.order import Order
from tocsin.service_calls.execution.outgoing import prepare
from tocsin.service_calls.execution.ports import ExecutionLog, ExecutionStart, TenantSecrets
from tocsin.service_calls.execution.recovery import recover
from tocsin.service_calls.execution.slots import Slots
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import ExecutionStarted, Registry, StartExecution

#: Longest pause before a request that did not leave this machine is tried again. It is short: a lacking resource is usually
#: available again in a moment, and the call is already late.
_NOT_SENT_PAUSE_US_MAX = 1_000_000
#: Beyond this count the pause no longer grows.
_NOT_SENT_COUNTED_MAX = 20


class Executor:
    """Keeps orders until a slot is free, logs their start, acknowledges them, sends their requests and logs their ends.

    A request that did not leave this machine is tried again until it does: the failure says nothing about the service
    and does not end the execution.

    Starts and ends are logged in batches, with their events in the same transaction. A request does not need a task of
    its own. All methods must be called on one event loop's thread.
    """

    def __init__(
        self,
        log: ExecutionLog,
        secrets: TenantSecrets,
        requester: Requester,
        registry: Registry,
        clock: Clock,
        limits: AgentLimits,
        observe: AgentObserver,
    ) -> None:
        self._log = log
        self._secrets = secrets
        self._requester = requester
        self._registry = registry
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._orders: dict[str, Order] = {}
        self._slots: Slots[Order] = Slots(limits.executions_in_flight_max, limits.executions_per_destination_max)
        # The same pauses as for other writes to this database.
        pauses = (limits.outbox_backoff_initial_us, limits.outbox_backoff_max_us)
        self._beginnings: Batches[Order] = Batches(
            self._begin,
            refused=self._begin_refused,
            failed=partial(self._step_failed, "execution begin"),
            pause_initial_us=pauses[0],
            pause_max_us=pauses[1],
        )
        self._ends: Batches[Order] = Batches(
            self._finish,
            refused=self._finish_refused,
            failed=partial(self._step_failed, "execution finish"),
            pause_initial_us=pauses[0],
            pause_max_us=pauses[1],
        )
        self._draining = False
        self._closed = False
        self._idle = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """Executions from before their start is logged until their end is logged."""
        return self._slots.in_flight

    @property
    def deferred(self) -> int:
        """Orders that wait for a slot."""
        return self._slots.deferred

    def knows(self, execution_id: str) -> bool:
        """Whether its order is in memory: deferred, in flight, or its end not logged yet."""
        return execution_id in self._orders

    async def recover(self) -> int:
        """Closes executions that an earlier run left unfinished as interrupted. Returns their number. Call it before
        the bus delivers anything."""
        return await recover(
            self._log, self._registry, self._clock.now_us, self._observe, self._limits.executions_in_flight_max
        )

    def submit(self, orders: list[tuple[Delivery, StartExecution]]) -> None:
        """Takes orders whose deliveries were kept. An order for an execution in memory has no further effect; one that
        is logged already is acknowledged and not executed. While draining, orders stay unacknowledged."""
        if self._draining:
            return
        for delivery, message in orders:
            known = self._orders.get(message.execution_id)
            if known is None:
                spec = message.request_spec
                destination = self._requester.destination(spec.url)
                order = Order(delivery, message.service_call_id, message.execution_id, spec, destination)
                self._orders[message.execution_id] = order
                self._slots.add(order)
            elif known.logged:
                delivery.ack()
            else:
                known.deliveries.append(delivery)
        self._admit()

    async def drain(self, timeout_us: int) -> bool:
        """Starts nothing more and waits, at most `timeout_us`, until every execution in flight has ended and is logged.

        Returns whether all ended. The others stay unfinished in the log, for `recover` at the next start. Orders that
        had not begun stay unacknowledged and are delivered again. Idempotent.
        """
        self._draining = True
        for order in self._slots.drop_deferred():
            del self._orders[order.execution_id]
        for order in self._beginnings.take_back():
            self._drop(order)
        if self._slots.in_flight:
            try:
                async with asyncio.timeout(timeout_us / 1e6):
                    await self._idle.wait()
            except TimeoutError:
                pass  # The return value reports it.
        self._closed = True
        await self._beginnings.close()
        await self._ends.close()
        return self._slots.in_flight == 0

    # ------------------------------------------------------------------ beginning

    def _admit(self) -> None:
        if not self._draining:
            for order in self._slots.admit():
                self._beginnings.add(order)

    async def _begin(self, batch: list[Order]) -> None:
        """Logs the starts and sends the requests of executions that were not logged before."""
        pending = [order for order in batch if not order.logged]
        now_us = self._clock.now_us()
        try:
            # Before anything is logged: if this fails, nothing has begun.
            secrets = await self._secrets.find({order.tenant_id for order in pending})
            for order in pending:
                order.signing = secrets.get(order.tenant_id)
            added = await self._log.begin([self._started(order, now_us) for order in pending])
            for order in pending:
                if order.execution_id in added:
                    self._send(order)
            left_out = [order for order in pending if not order.logged]
            ours = await self._logged_after_all(left_out) if any(order.uncertain for order in left_out) else set()
        except Exception:
            for order in pending:
                order.uncertain = True
            raise
        for order in left_out:
            if order.execution_id in ours:
                self._send(order)
            else:
                self._acknowledge(order)
                self._drop(order)

    def _started(self, order: Order, now_us: int) -> tuple[ExecutionStart, Envelope]:
        if order.start is None:
            start = prepare(order, now_us, self._limits)
            event = ExecutionStarted(order.service_call_id, order.execution_id, now_us)
            order.start = start, self._seal(order, event)
        return order.start

    async def _logged_after_all(self, orders: list[Order]) -> set[str]:
        """Which of these executions were logged by an earlier write that failed or had an unknown outcome. Their
        requests were never sent: taking them as executed would lose them."""
        rows_max = 2 * self._limits.executions_in_flight_max
        rows = {row.execution_id: row.started_at for row in await self._log.unfinished(rows_max)}
        return {
            order.execution_id
            for order in orders
            if order.uncertain and order.start is not None and rows.get(order.execution_id) == order.start[0].started_at
        }

    def _begin_refused(self, order: Order, error: Exception) -> None:
        """The bus delivers the order again, by its own rules."""
        for delivery in order.deliveries:
            delivery.fail(error)
        self._drop(order)

    def _acknowledge(self, order: Order) -> None:
        for delivery in order.deliveries:
            delivery.ack()
        order.deliveries.clear()

    def _drop(self, order: Order) -> None:
        """Removes an order that has a slot and does not end in this process."""
        self._slots.answered(order)
        self._release(order)
        self._admit()

    def _release(self, order: Order) -> None:
        del self._orders[order.execution_id]
        self._slots.released()
        if self._slots.in_flight == 0 and self._draining:
            self._idle.set()

    # ------------------------------------------------------------------ the request

    def _send(self, order: Order) -> None:
        order.logged = True
        self._acknowledge(order)
        self._observe(
            ExecutionBegun(
                order.tenant_id, order.service_call_id, order.correlation_id, order.execution_id, order.destination
            )
        )
        self._request(order)

    def _request(self, order: Order) -> None:
        if self._closed:
            return
        request = order.request
        if request is None or isinstance(request, NoResponse):
            self._answered(order, Result(request or NoResponse("INVALID_REQUEST", final=True), None, 0))
        else:
            if order.signing is not None:
                request = request._replace(signing=Signing(order.service_call_id, order.signing))
            self._requester.send(request, partial(self._answered, order))

    def _answered(self, order: Order, result: Result) -> None:
        if self._closed:
            return
        outcome = result.outcome
        if isinstance(outcome, NotSent):
            self._request_later(order, outcome)
            return
        if isinstance(outcome, NoResponse) and outcome.code == "SHUTDOWN":
            # No result: the execution was interrupted, and the next start finds it unfinished.
            self._drop(order)
            return
        conclusion = conclude(order, result, self._clock.now_us(), self._limits)
        order.end = conclusion.end, self._seal(order, conclusion.event)
        order.result = conclusion.result
        order.duration_us = result.duration_us
        self._ends.add(order)
        self._slots.answered(order)
        self._admit()

    def _request_later(self, order: Order, outcome: NotSent) -> None:
        """The order keeps its slot, so that requests this machine cannot send do not accumulate."""
        pause_us = min(self._limits.outbox_backoff_initial_us << order.not_sent, _NOT_SENT_PAUSE_US_MAX)
        order.not_sent = min(order.not_sent + 1, _NOT_SENT_COUNTED_MAX)
        asyncio.get_running_loop().call_later(pause_us / 1e6, self._request, order)
        self._observe(
            ExecutionNotSent(
                order.tenant_id,
                order.service_call_id,
                order.correlation_id,
                order.execution_id,
                order.destination,
                outcome.code,
                outcome.detail,
            )
        )

    # ------------------------------------------------------------------ the end

    async def _finish(self, batch: list[Order]) -> None:
        await self._log.finish([order.end for order in batch if order.end is not None])
        for order in batch:
            self._release(order)
            self._observe(
                ExecutionFinished(
                    order.result,
                    order.tenant_id,
                    order.service_call_id,
                    order.correlation_id,
                    order.execution_id,
                    order.destination,
                    order.duration_us,
                )
            )
        self._admit()

    def _finish_refused(self, order: Order, error: Exception) -> None:
        """The result is kept and written again later, when the cause may be fixed."""
        asyncio.get_running_loop().call_later(self._limits.outbox_backoff_max_us / 1e6, self._ends.add, order)

    # ------------------------------------------------------------------ both

    def _seal(self, order: Order, event: object) -> Envelope:
        return self._registry.seal(
            event,  # type: ignore[arg-type]
            tenant_id=order.tenant_id,
            correlation_id=order.correlation_id,
            causation_id=order.causation_id,
        )

    def _step_failed(self, step: str, error: Exception) -> None:
        self._observe(AgentStepFailed(step, f"{type(error).__name__}: {error}"))
