"""Executes orders: each at most once, logged before its request is sent and after it ended."""

from __future__ import annotations

import asyncio
from functools import partial

from tocsin.model.answer import NoResponse, NotSent
from tocsin.model.errors import DefiniteFailure
from tocsin.model.retry import backoff_us
from tocsin.ports.bus import Delivery, Envelope
from tocsin.ports.credentials import CallCredentials, NoCallCredentials
from tocsin.ports.http import Reply, Requester, Result, Signing
from tocsin.ports.seals import SealBroken, opener
from tocsin.service_calls.background import AgentContext, GroupCommit
from tocsin.service_calls.events import ExecutionBegun, ExecutionFinished, ExecutionNotSent, ExecutionsInterrupted
from tocsin.service_calls.execution.flow_queue import FlowQueue
from tocsin.service_calls.execution.order import Order, conclude, identified, prepare, unopened
from tocsin.service_calls.execution.slots import Slots
from tocsin.service_calls.messages import ExecutionInterrupted, ExecutionStarted, Instant, StartExecution, ordered_at
from tocsin.service_calls.ports import (
    DamagedRow,
    ExecutionEnd,
    ExecutionLog,
    ExecutionStart,
    SuspendedOrder,
    TenantSecrets,
    UnfinishedExecution,
)

INTERRUPTED = "interrupted: the process ended while the request was under way; whether the service got it is not known"
#: Longest pause before a request that did not leave this machine is tried again. It is short: a lacking resource is usually
#: available again in a moment, and the call is already late.
_NOT_SENT_PAUSE_US_MAX = 1_000_000


class Executor:
    """Keeps orders until a slot is free, logs their start, acknowledges them, sends their requests and logs their ends.

    A request that did not leave this machine is tried again until it does: the failure proves nothing about the service
    and does not end the execution. One whose credential has gone waits until that can be sent.

    An order with a flow key or a credential takes a slot of its destination only when its flow lets it begin and the
    credential can be sent. Until then it waits in the flow queue, which has a table of its own; its messages are
    acknowledged. So does one whose destination too many wait for, or have for long: what is not acknowledged takes room that
    others need.

    Starts and ends are logged in batches, with their events in the same transaction. A request does not need a task of
    its own. All methods must be called on one event loop's thread.
    """

    def __init__(
        self,
        log: ExecutionLog,
        secrets: TenantSecrets,
        requester: Requester,
        flows: FlowQueue,
        context: AgentContext,
        credentials: CallCredentials | None = None,
    ) -> None:
        """`credentials` are those that requests may name; None: there are none."""
        self._credentials = credentials or NoCallCredentials()
        self._log = log
        self._flows = flows
        flows.attach(self)
        self._secrets = secrets
        self._requester = requester
        self._context = context
        limits = self._limits = context.limits
        self._orders: dict[str, Order] = {}
        self._slots: Slots[Order] = Slots(limits.executions_in_flight_max, limits.executions_per_destination_max)
        self._beginnings = GroupCommit("execution begin", self._begin, context, self._begin_refused)
        self._ends = GroupCommit("execution finish", self._finish, context)
        # In flight, and without the credential that their request needs.
        self._without_credential: list[Order] = []
        self._credentials.attach(self._go_on)
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

    @property
    def suspended(self) -> int:
        """Orders that wait for their flow, their credential or a crowded destination, as far as they are known."""
        return self._flows.waiting

    def knows(self, execution_id: str) -> bool:
        """Whether its order is in memory: deferred, in flight, or its end not logged yet."""
        return execution_id in self._orders

    async def recover(self) -> int:
        """Closes executions that an earlier run left unfinished as interrupted, and reports them. Returns their number.
        Call it before the bus delivers anything. Raises StoreError."""
        interrupted = 0
        damaged: set[DamagedRow] = set()
        while True:
            rows, unreadable = await self._log.unfinished(self._limits.executions_in_flight_max)
            damaged.update(unreadable)
            completed = await self._log.finish([interruption(row, self._context) for row in rows])
            if not completed:
                # There are none, they have been deleted, or another process completes them.
                break
            interrupted += len(completed)
        for row in damaged:
            self._context.row_damaged(row)
        if interrupted:
            self._context.observe(ExecutionsInterrupted(interrupted))
        return interrupted

    def submit(self, orders: list[tuple[Delivery, StartExecution]]) -> None:
        """Takes orders and keeps their deliveries. An order for an execution in memory has no further effect; one that
        is logged already is acknowledged and not executed. While draining, orders stay unacknowledged. If it raises, the
        deliveries of those that it did not take are not kept."""
        try:
            for delivery, message in orders:
                self._submit(delivery, message)
        finally:
            self._admit()

    def _submit(self, delivery: Delivery, message: StartExecution) -> None:
        if self._draining:
            delivery.keep()
            return
        known = self._orders.get(message.execution_id)
        if known is None:
            destination = self._requester.destination(message.request_spec.url)
            order = Order(delivery.envelope, message, destination, [delivery])
            must_wait = self._flows.must_wait(order) or (
                order.is_plain and self._slots.is_crowded(destination, self._limits.orders_deferred_max)
            )
            delivery.keep()
            self._orders[message.execution_id] = order
            if must_wait:
                self._flows.add(order)
            else:
                self._slots.add(order)
        elif known.logged or known.suspended:
            delivery.ack()
        else:
            delivery.keep()
            known.deliveries.append(delivery)

    async def drain(self, timeout_us: int) -> bool:
        """Starts nothing more and waits, at most `timeout_us`, until every execution in flight has ended and is logged.

        Returns whether all ended. The others stay unfinished in the log, for `recover` at the next start. Orders that
        had not begun stay unacknowledged and are delivered again. Idempotent.
        """
        self._draining = True
        self._flows.stop()
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
        self._credentials.detach(self._go_on)
        await self._beginnings.close()
        await self._ends.close()
        for order in self._orders.values():
            if not order.logged:
                self._flows.ended(order)
        # Last, because it may wait for the database.
        await self._flows.close()
        return self._slots.in_flight == 0

    # ------------------------------------------------------------------ beginning

    def _admit(self) -> None:
        if not self._draining:
            for order in self._slots.admit(self._flows.lets_begin):
                self._beginnings.add(order)

    def _freed(self, order: Order) -> None:
        """A slot that the order had is free."""
        self._admit()
        self._flows.freed(order.destination)

    # What follows is the port Orders of the flow queue.

    def resume(self, row: SuspendedOrder, message: StartExecution) -> Order | None:
        """Takes an order from the table, unless it is in memory."""
        if row.execution_id in self._orders:
            return None
        order = Order(row.envelope, message, self._requester.destination(message.request_spec.url), [])
        self._orders[row.execution_id] = order
        return order

    def forget(self, order: Order) -> None:
        """The order is in the table only, or on the bus."""
        del self._orders[order.execution_id]

    def suspend_deferred(self, before_us: int) -> None:
        """Has orders that wait for a slot for long wait in the table: the watchdog would order them again and again, and each
        time add to what waits on the bus."""
        if not self._draining:
            for order in self._slots.drop_if(lambda order: ordered_at(order.execution_id) < before_us):
                self._flows.add(order)

    def has_room(self, order: Order) -> bool:
        """Whether there is a slot for the order."""
        return not self._draining and self._slots.has_room(order.destination)

    def begin(self, order: Order) -> bool:
        """Begins an order whose flow has its turn, and which there is a slot for; whether it began."""
        self._slots.add(order)
        self._admit()
        return order.hold is not None

    async def _begin(self, batch: list[Order]) -> None:
        """Logs the starts and sends the requests of executions that were not logged before."""
        await self._put_back(batch)
        pending = [order for order in batch if not order.logged]
        if not pending:
            return
        # Before anything is logged: if this fails, nothing has begun.
        secrets = await self._secrets.find({order.envelope.tenant_id for order in pending})
        for order in pending:
            order.signing = secrets.get(order.envelope.tenant_id)
        # Read and prepared for each try: the database may have been away for longer than an execution may wait.
        now_us = self._context.clock.now_us()
        suspended = [order.key for order in pending if order.suspended]
        try:
            added = await self._log.begin([self._started(order, now_us) for order in pending], suspended)
        except DefiniteFailure:
            raise
        except Exception:
            for order in pending:
                order.uncertain_starts.add(now_us)
            raise
        for order in pending:
            self._flows.logged(order)
            if order.execution_id in added:
                self._send(order)
        left_out = [order for order in pending if not order.logged]
        ours = await self._logged_after_all(left_out)
        for order in left_out:
            if order.execution_id in ours:
                self._send(order)
            else:
                self._acknowledge(order)
                self._drop(order)

    async def _put_back(self, batch: list[Order]) -> None:
        """Takes those out of the batch whose credential has gone since they were admitted, which may be long ago if the
        database was away: they wait for it. One that was logged nonetheless has begun, and stays."""
        lacking = [order for order in batch if not order.logged and self._lacks_credential(order)]
        ours = await self._logged_after_all(lacking)
        for order in lacking:
            if order.execution_id in ours:
                continue
            batch.remove(order)
            if self._draining:
                self._drop(order)
                continue
            self._flows.ended(order)
            self._slots.answered(order)
            self._slots.released()
            self._flows.add(order)
            self._freed(order)

    def _started(self, order: Order, now_us: int) -> tuple[ExecutionStart, Envelope]:
        start = prepare(order, now_us, self._limits, self._context.seals)
        event = ExecutionStarted(order.message.service_call_id, order.execution_id, Instant(now_us))
        return start, self._context.registry.caused_by(order.envelope, event)

    async def _logged_after_all(self, orders: list[Order]) -> set[str]:
        """Which of these executions were logged by an earlier write whose outcome was unknown. Their requests were never
        sent: taking them as executed would lose them."""
        if not any(order.uncertain_starts for order in orders):
            return set()
        rows_max = 2 * self._limits.executions_in_flight_max
        rows = {row.execution_id: row.started_at for row in (await self._log.unfinished(rows_max)).rows}
        return {order.execution_id for order in orders if rows.get(order.execution_id) in order.uncertain_starts}

    def _begin_refused(self, order: Order, error: Exception) -> None:
        """The bus delivers the order again, by its own rules."""
        for delivery in order.deliveries:
            delivery.fail(error)
        self._flows.refused(order)
        self._drop(order)

    def _acknowledge(self, order: Order) -> None:
        for delivery in order.deliveries:
            delivery.ack()
        order.deliveries.clear()

    def _drop(self, order: Order) -> None:
        """Removes an order that has a slot and does not end in this process."""
        self._flows.ended(order)
        self._slots.answered(order)
        self._release(order)
        self._freed(order)

    def _release(self, order: Order) -> None:
        del self._orders[order.execution_id]
        self._slots.released()
        if self._slots.in_flight == 0 and self._draining:
            self._idle.set()

    # ------------------------------------------------------------------ the request

    def _send(self, order: Order) -> None:
        order.logged = True
        self._acknowledge(order)
        self._context.observe(ExecutionBegun(*order.about))
        self._request(order)

    def _request(self, order: Order) -> None:
        if self._closed:
            self._flows.ended(order)
            return
        request = order.request
        if request is None or isinstance(request, NoResponse):
            self._answered(order, Result(request or NoResponse("INVALID_REQUEST", final=True), None, 0))
        else:
            if order.signing is not None:
                try:
                    signing = order.signing.opened(opener(self._context.seals, order.envelope.tenant_id, "tenant"))
                except SealBroken as error:
                    self._answered(order, Result(unopened(error), None, 0))
                    return
                request = request._replace(signing=Signing(order.message.service_call_id, signing))
            if order.credential is not None:
                found = self._credentials.identify(order.credential, order.destination)
                if isinstance(found, str):
                    # It could be sent when the order began, a moment ago. Until it can be again, others of the flow may
                    # begin.
                    self._flows.ended(order)
                    self._without_credential.append(order)
                    detail = f"credential {order.credential}: {found}"
                    self._context.observe(ExecutionNotSent(*order.about, "CREDENTIAL_NOT_READY", detail))
                    return
                if not self._flows.lets_go_on(order):
                    self._answered(order, Result(NotSent("FLOW_CLOSED", "others of its flow go first"), None, 0))
                    return
                request = identified(order, request, found)
            self._requester.send(request, partial(self._answered, order))

    def _answered(self, order: Order, result: Result) -> None:
        outcome = result.outcome
        stale_token = False
        if order.identity is not None and isinstance(outcome, Reply):
            stale_token = order.identity.answered(outcome.status)
        if self._closed or not isinstance(outcome, NotSent):
            self._flows.ended(order, result)
        if self._closed:
            return
        if isinstance(outcome, NotSent):
            self._request_later(order, outcome)
            return
        if isinstance(outcome, NoResponse) and outcome.code == "SHUTDOWN":
            # No result: the execution was interrupted, and the next start finds it unfinished.
            self._drop(order)
            return
        end, event = conclude(order, result, self._context.clock.now_us(), self._limits, stale_token=stale_token)
        order.end = end, self._context.registry.caused_by(order.envelope, event)
        order.duration_us = result.duration_us
        self._ends.add(order)
        self._slots.answered(order)
        self._freed(order)

    def _request_later(self, order: Order, outcome: NotSent) -> None:
        """The order keeps its slot, so that requests this machine cannot send do not accumulate."""
        order.not_sent += 1
        pause_us = backoff_us(order.not_sent, self._limits.outbox_backoff_initial_us, _NOT_SENT_PAUSE_US_MAX)
        asyncio.get_running_loop().call_later(pause_us / 1e6, self._request, order)
        self._context.observe(ExecutionNotSent(*order.about, outcome.code, outcome.detail))

    def _go_on(self) -> None:
        """A credential that could not be sent may be by now."""
        waiting, self._without_credential = self._without_credential, []
        for order in waiting:
            if self._lacks_credential(order):
                self._without_credential.append(order)
            else:
                # By itself: an error of one must not take the others along.
                asyncio.get_running_loop().call_soon(self._request, order)

    def _lacks_credential(self, order: Order) -> bool:
        name = order.credential
        return name is not None and self._credentials.obstacle(name, order.destination) is not None

    # ------------------------------------------------------------------ the end

    async def _finish(self, batch: list[Order]) -> None:
        ends = [order.end for order in batch if order.end is not None]
        await self._log.finish(ends)
        for order, (end, _) in zip(batch, ends, strict=True):
            self._release(order)
            result = "succeeded" if end.error_message is None else end.error_message.partition(": ")[0]
            self._context.observe(ExecutionFinished(result, *order.about, order.duration_us, end.response_status))
            self._freed(order)


def interruption(
    row: ExecutionStart | UnfinishedExecution, context: AgentContext, causation_id: str | None = None
) -> tuple[ExecutionEnd, Envelope]:
    """The end of a row whose execution was interrupted, and the event that reports it. After a restart there is no
    cause: the log does not have the message that ordered the execution."""
    now_us = context.clock.now_us()
    event = ExecutionInterrupted(row.service_call_id, row.execution_id, Instant(row.started_at), Instant(now_us))
    end = ExecutionEnd(row.tenant_id, row.service_call_id, row.execution_id, now_us, None, None, None, INTERRUPTED)
    return end, context.registry.seal(
        event, tenant_id=row.tenant_id, correlation_id=row.correlation_id, causation_id=causation_id
    )
