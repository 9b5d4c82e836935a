"""Orders that wait for their flow, their credential or a crowded destination: kept in the agent's table, and the first of
each key in memory."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from typing import Protocol

from tocsin.model.answer import PAUSING, retry_after_at
from tocsin.model.errors import StoreError
from tocsin.ports.bus import InvalidMessage
from tocsin.ports.flow_gate import UNLIMITED, FlowGate
from tocsin.ports.http import Reply, Result
from tocsin.service_calls.background import AgentContext, Batches, GroupCommit, Periodic
from tocsin.service_calls.execution.order import Order
from tocsin.service_calls.messages import ExecutionSuspended, Instant, StartExecution
from tocsin.service_calls.ports import DamagedRow, SuspendedOrder, SuspendedOrders

#: Orders of one key that are in memory while they wait, and flow keys that one read of the table returns.
_OF_KEY_MAX, _KEYS_READ = 32, 500
#: Reads of flow keys in one round.
_READS_MAX = 20
#: Keys that are served again when a slot becomes free which their orders have waited for.
_WOKEN_MAX = 8


class Orders(Protocol):
    """What the executor does for orders that wait."""

    def resume(self, row: SuspendedOrder, message: StartExecution) -> Order | None:
        """An order that was read from the table; None if it is in memory already."""

    def forget(self, order: Order) -> None:
        """The order is no longer in memory."""

    def has_room(self, order: Order) -> bool:
        """Whether there is a slot for it."""

    def suspend_deferred(self, before_us: int) -> None:
        """Adds the orders that wait for a slot of a destination to the queue, if one of them was ordered before this
        instant."""

    def begin(self, order: Order) -> bool:
        """Begins the execution of an order whose flow has its turn, and which there is a slot for; whether it began."""


class _Key:
    """A flow key of which orders wait."""

    __slots__ = ("added", "count", "loaded", "more")

    def __init__(self) -> None:
        #: The first of them, in memory.
        self.loaded: deque[Order] = deque()
        #: How many wait, as far as is known.
        self.count = 0
        #: Whether the table may have more, and whether one was added to it since it was last read.
        self.more = self.added = False


class FlowQueue:
    """Gives orders their turn at the gate. One whose flow is closed is written to a table and acknowledged: however many
    wait, and for however long, they take no room on the bus, and a restart loses none. So is one for whose destination too
    many wait already, or have for long.

    The key of an order is that of the place where it waits (`Order.place`).
    Of each key at most 32 orders are in memory, and of all `suspended_orders_max`. `flow_keys_max` keys are known at a time;
    those beyond are found by a round through the table, every `flow_round_interval`.
    """

    def __init__(self, store: SuspendedOrders, gate: FlowGate, context: AgentContext) -> None:
        self._store = store
        self._gate = gate
        self._context = context
        self._limits = context.limits
        self._orders: Orders | None = None
        self._keys: dict[str, _Key] = {}
        # Orders that left a key's queue, and whose rows are still in the table.
        self._on_their_way: Counter[str] = Counter()
        # Keys with orders in memory, those that were read longest ago first, and how many orders these are.
        self._resident: OrderedDict[str, None] = OrderedDict()
        self._loaded = 0
        # Keys whose orders in memory found no slot, by their destinations. Those that a freed slot does not help, since
        # their flow has closed meanwhile, would keep others from it: the next round serves all.
        self._without_slot: dict[str, dict[str, None]] = {}
        # Keys that could not be read, or of which nothing new was read.
        self._served_by_round: set[str] = set()
        # Keys that are to be read.
        self._wanted: set[str] = set()
        self._reads = Batches(self._read)
        self._suspensions = GroupCommit("order suspension", self._suspend, context, self._not_suspended)
        # Whether the table may have keys that are not known; and where the round through them is.
        self._unlisted, self._after = True, ""
        self._rounds = Periodic("flow round", self.round, context, context.limits.flow_round_interval_us, 0)
        # A third of the time after which the watchdog would look for them.
        self._reported_after_us = max(context.limits.watchdog_grace_us // 3, 1)
        self._reports = Periodic("suspension reports", self.report, context, self._reported_after_us)
        # Orders whose executions the log refused, and those that can't be decoded, by flow key.
        self._refused: dict[str, set[str]] = {}
        self._closing = False

    def attach(self, orders: Orders) -> None:
        """Connects it to the executor. Call it once."""
        self._orders = orders

    def start(self) -> None:
        """Begins to give turns, to what earlier runs left as well."""
        self._gate.attach(self._serve)
        self._rounds.start()
        self._reports.start()

    def stop(self) -> None:
        """Gives no more turns. What waits is in the table, or was not acknowledged. Idempotent."""
        self._closing = True
        self._gate.detach()
        self._suspensions.take_back()

    async def close(self) -> None:
        """Ends what goes on after `stop`. Idempotent."""
        await self._suspensions.close()
        await self._reads.close()
        await self._rounds.close()
        await self._reports.close()

    @property
    def waiting(self) -> int:
        """Orders that wait, of the keys that are known."""
        return sum(known.count for known in self._keys.values())

    # ------------------------------------------------------------------ the gate

    def must_wait(self, order: Order) -> bool:
        """Whether it is known before its turn that the order has to wait for its flow or its credential (no credential is no
        attempt), or behind others at its place."""
        key = order.place
        return key in self._keys or self._gate.is_closed(key)

    def lets_begin(self, order: Order) -> bool:
        """Whether an order, which has a slot, may begin: then it has what it needs of its flow, until `ended`. If not, it
        waits here, and needs its slot no longer."""
        order.hold = UNLIMITED if order.is_plain else self._gate.begin(order.place)
        if order.hold is None:
            self.add(order)
            return False
        return True

    def lets_go_on(self, order: Order) -> bool:
        """Whether an order that has begun has what it needs of its flow, or gets it again after `ended`. If not, it has to
        ask again: it is in no queue, so those that wait go first."""
        if order.hold is None:
            order.hold = self._gate.begin(order.place)
        return order.hold is not None

    def freed(self, destination: str) -> None:
        """A slot of the destination is free: keys whose orders wait for one are served. So are those of another destination,
        in turn, whose orders may have waited for a slot of the total."""
        if not self._without_slot:
            return
        for place in dict.fromkeys((destination, next(iter(self._without_slot)))):
            keys = self._without_slot.pop(place, {})
            for key in list(keys)[:_WOKEN_MAX]:
                del keys[key]
                self._gate.wake(key)
            if keys:
                self._without_slot[place] = keys

    def ended(self, order: Order, result: Result | None = None) -> None:
        """The order's attempt has ended, with this result, or without any. Idempotent."""
        hold, order.hold = order.hold, None
        if hold is None:
            return
        if result is not None and isinstance(result.outcome, Reply) and result.outcome.status in PAUSING:
            asked = next((value for name, value in result.outcome.headers if name.lower() == "retry-after"), None)
            now_us = self._context.clock.now_us()
            until_us = retry_after_at(asked, now_us, self._limits.retry_after_max_us)
            if until_us is not None:
                hold.close_flow(until_us - now_us)
        hold.end()

    def logged(self, order: Order) -> None:
        """The order is no longer in the table."""
        if order.suspended:
            order.suspended = False
            self._left(order)

    def refused(self, order: Order) -> None:
        """The execution can't be logged, which is reported. The order stays in the table until the next start."""
        if order.suspended:
            self._refused.setdefault(order.place, set()).add(order.execution_id)
            self._left(order)

    # ------------------------------------------------------------------ waiting

    def add(self, order: Order) -> None:
        """Has the order wait for its flow: the last of its key or, if it comes back from its destination, the first."""
        if not order.suspended:
            self._suspensions.add(order)
            return
        self._left(order)
        known = self._known(order.place)
        if known is None:
            self._give_up(order)
            return
        known.loaded.appendleft(order)
        self._keep(order)
        known.count += 1
        self._gate.wait(order.place, known.count)

    def _known(self, key: str) -> _Key | None:
        """The key; None if there is no room for another one."""
        known = self._keys.get(key)
        if known is None and len(self._keys) < self._limits.flow_keys_max:
            known = self._keys[key] = _Key()
        return known

    def _keep(self, order: Order) -> None:
        self._loaded += 1
        self._resident.setdefault(order.place)

    def _give_up(self, order: Order) -> None:
        """The order is in the table only, where a round finds it."""
        self._unlisted = True
        self._forget(order)

    def _forget(self, order: Order) -> None:
        assert self._orders is not None
        self._orders.forget(order)

    def _left(self, order: Order) -> None:
        key = order.place
        self._on_their_way[key] -= 1
        if self._on_their_way[key] <= 0:
            del self._on_their_way[key]

    async def _suspend(self, batch: list[Order]) -> None:
        now_us = self._context.clock.now_us()
        added = await self._store.suspend(
            [SuspendedOrder(*order.key, order.place, now_us, order.envelope) for order in batch]
        )
        for order in batch:
            for delivery in order.deliveries:
                delivery.ack()
            order.deliveries.clear()
            if not self._closing:
                self._suspended(order, added=order.execution_id in added)

    def _suspended(self, order: Order, *, added: bool) -> None:
        """The order is in the table, unless it has become obsolete: that of a call that was deleted, or a repetition."""
        key = order.place
        known = self._known(key)
        if known is None:
            self._give_up(order)
            return
        room = len(known.loaded) < _OF_KEY_MAX and self._loaded < self._limits.suspended_orders_max
        if added and room and not known.more:
            order.suspended = True
            known.loaded.append(order)
            self._keep(order)
        else:
            known.more = known.added = True
            self._forget(order)
        # Without it, the first read finds out whether there is any.
        known.count += 1 if added or not known.count else 0
        self._gate.wait(key, known.count)

    def _not_suspended(self, order: Order, error: Exception) -> None:
        """The bus delivers the order again, by its own rules."""
        for delivery in order.deliveries:
            delivery.fail(error)
        self._forget(order)

    # ------------------------------------------------------------------ turns

    def _serve(self, key: str) -> bool:
        """Begins the first order of the key, which has its turn; whether it began."""
        known = self._keys.get(key)
        if known is None or self._closing:
            return False
        if not known.loaded:
            self._load(key)
            return False
        assert self._orders is not None
        order = next(filter(self._orders.has_room, known.loaded), None)
        if order is None:
            for each in known.loaded:
                self._without_slot.setdefault(each.destination, {})[key] = None
            return False
        self._remove_loaded(key, known, order)
        known.count -= 1
        self._on_their_way[key] += 1
        began = self._orders.begin(order)
        if len(known.loaded) <= _OF_KEY_MAX // 2 and known.more:
            self._load(key)
        self._settle(key, known)
        return began

    def _remove_loaded(self, key: str, known: _Key, order: Order) -> None:
        known.loaded.remove(order)
        self._loaded -= 1
        if not known.loaded:
            del self._resident[key]

    def _settle(self, key: str, known: _Key) -> None:
        known.count = max(known.count, len(known.loaded) + known.more)
        if not known.count:
            del self._keys[key]
        self._gate.wait(key, known.count)

    # ------------------------------------------------------------------ reading

    def _load(self, key: str) -> None:
        if key not in self._wanted:
            self._wanted.add(key)
            self._reads.add(key)

    async def _read(self, keys: list[str]) -> None:
        """Reads the first orders of the keys."""
        for key in keys:
            self._wanted.discard(key)
            known = self._keys.get(key)
            if known is None:
                continue
            known.added = False
            fits = self._loaded < self._limits.suspended_orders_max
            # What has left the queue is in the table until its execution is logged. One order in any case: the key has its
            # turn.
            in_memory = len(known.loaded) + self._on_their_way[key] + len(self._refused.get(key, ()))
            most = (_OF_KEY_MAX if fits else 1) + in_memory
            try:
                rows, damaged = await self._store.first(key, most)
            except Exception as error:  # noqa: BLE001 -- the other keys have to be read whatever fails for this one
                self._context.step_failed("suspended orders", error)
                self._served_by_round.add(key)
                continue
            if not self._closing and self._keys.get(key) is known:
                for row in damaged:
                    self._damaged(key, row)
                self._take(key, known, rows, more=len(rows) + len(damaged) == most)

    def _damaged(self, key: str, row: DamagedRow) -> None:
        """The order can't be decoded. It stays in the table, and is passed by until the next start."""
        refused = self._refused.setdefault(key, set())
        if row.execution_id not in refused:
            refused.add(row.execution_id)
            self._context.row_damaged(row)

    def _take(self, key: str, known: _Key, rows: Iterable[SuspendedOrder], *, more: bool) -> None:
        known.more = more or known.added
        assert self._orders is not None
        for row in rows:
            if row.execution_id in self._refused.get(key, ()):
                continue
            try:
                message = self._context.registry.open(row.envelope)
            except InvalidMessage as error:
                self._damaged(key, DamagedRow("suspended_executions", *row[:3], error=str(error)))
                continue
            order = self._orders.resume(row, message) if isinstance(message, StartExecution) else None
            if order is not None:
                order.suspended = True
                known.loaded.append(order)
                self._keep(order)
        if not known.more:
            known.count = len(known.loaded)
        self._settle(key, known)
        if known.loaded:
            self._resident.move_to_end(key)
            self._gate.wake(key)
        elif known.more:
            # All that was read was in memory: its order has come again, and is about to be found in the table.
            self._served_by_round.add(key)
        while self._loaded > self._limits.suspended_orders_max and len(self._resident) > 1:
            self._unload(next(iter(self._resident)))

    def _unload(self, key: str) -> None:
        known = self._keys[key]
        known.more = True
        for order in list(known.loaded):
            self._remove_loaded(key, known, order)
            self._forget(order)

    async def report(self) -> None:
        """Suspends orders that have waited for a slot for long, and reports those that were suspended for so long that the
        watchdog would soon look for them. Raises StoreError."""
        assert self._orders is not None
        self._orders.suspend_deferred(self._context.clock.now_us() - self._reported_after_us)
        registry, most = self._context.registry, self._limits.watchdog_batch_max
        while not self._closing:
            now_us = self._context.clock.now_us()
            rows, damaged = await self._store.unreported(now_us - self._reported_after_us, most)
            events = [
                ExecutionSuspended(row.service_call_id, row.execution_id, Instant(row.suspended_at)) for row in rows
            ]
            await self._store.report(
                [(row, registry.caused_by(row.envelope, event)) for row, event in zip(rows, events, strict=True)],
                now_us,
                damaged,
            )
            for row in damaged:
                self._context.row_damaged(row)
            if len(rows) + len(damaged) < most:
                break

    async def round(self) -> None:
        """Looks for keys in the table that are not known. One that is open, for which there is no room, replaces the one that
        is known longest. Raises StoreError."""
        served, self._served_by_round = self._served_by_round, set()
        without_slot, self._without_slot = self._without_slot, {}
        for key in served.union(*without_slot.values()):
            self._gate.wake(key)
        for _ in range(_READS_MAX):
            if self._closing or not (self._unlisted or self._after):
                return
            # One that is added while the table is read may be missing in what is read.
            unlisted, self._unlisted = self._unlisted, self._unlisted and bool(self._after)
            try:
                found = await self._store.places(self._after, _KEYS_READ)
            except StoreError:
                self._unlisted = unlisted
                raise
            for key, count in found:
                if key not in self._keys and not self._closing:
                    self._list(key, count)
            self._after = found[-1][0] if len(found) == _KEYS_READ else ""

    def _list(self, key: str, count: int) -> None:
        if len(self._keys) >= self._limits.flow_keys_max:
            self._unlisted = True
            if self._gate.is_closed(key):
                return
            oldest = next(iter(self._keys))
            self._unload(oldest)
            del self._keys[oldest]
            self._gate.wait(oldest, 0)
        known = self._keys[key] = _Key()
        known.count, known.more = count, True
        self._gate.wait(key, count)
