"""One node's engine: its parts, its periodic work, and its end; and whether it is at rest, which a clock that is set forward
has to know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from tocsin.model.errors import RecordUndecodable, StoreError
from tocsin.model.timer import Timer, decode_record
from tocsin.ports.observer import HeartbeatFailed
from tocsin.ports.store import KEY_MAX, FireKey, StoredRow
from tocsin.tasks import end_tasks, spawn
from tocsin.timers.engine.attempt import HandedOverResults
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.destination_exchange import ASK_INTERVAL_US, DestinationExchange
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.event_feed import EventSinks
from tocsin.timers.engine.flow_exchange import FlowExchange
from tocsin.timers.engine.flow_lookups import TokenLookups
from tocsin.timers.engine.lease import NodeLease
from tocsin.timers.engine.loader import may_resume
from tocsin.timers.engine.membership import Membership
from tocsin.timers.engine.ownership import FLUSH_US, Ownership
from tocsin.timers.engine.placement import ObservedPlacement
from tocsin.timers.engine.quotas import PendingCounting
from tocsin.timers.engine.replanning import Replanning
from tocsin.timers.engine.retention import forget_dead, purge
from tocsin.timers.engine.schedule_looks import ScheduleLooks
from tocsin.timers.engine.shard import POLL_INTERVAL_S, Shard
from tocsin.timers.engine.tenures import Tenures
from tocsin.timers.engine.watching import needed_at_us


class Supervisor:
    """The engine of one node. `address` is for other nodes, `api_url` for clients; both may be empty. `fatal` is called with
    an error that must end the process: a defect, or a corrupted store."""

    def __init__(
        self,
        context: Context,
        *,
        node: str,
        address: str,
        api_url: str = "",
        secret_marks: Sequence[str] = (),
        total_shards: int,
        fatal: Callable[[BaseException], None],
    ) -> None:
        self.node = node
        self.total_shards = total_shards
        #: Set before `close`: the node reports that it is not ready, while requests still end.
        self.draining = False
        self._context = context
        self._fatal = fatal
        # In the order of their start, so that a simulation can be replayed.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        #: The id of this start of this node.
        self.incarnation = context.incarnation
        self.membership = Membership(context.incarnation, context.limits.member_timeout_us, total_shards)
        self.results = HandedOverResults(context, self._spawn)
        self.dispatcher = Dispatcher(context, self.results, total_shards)
        self.lease = NodeLease(
            context,
            self.membership,
            self.dispatcher,
            node=node,
            address=address,
            api_url=api_url,
            secret_marks=secret_marks,
        )
        self.placement = ObservedPlacement(context, self.membership, self.lease, self.dispatcher.shards, total_shards)
        self.flows = FlowExchange(
            context, self.dispatcher.flows, self.placement, self._spawn, self.dispatcher.may_dispatch
        )
        self.tokens = TokenLookups(context, self.dispatcher.flows, self._spawn)
        self.tenures = Tenures(context)
        context.owned = self.dispatcher.shards.values
        self.looks = ScheduleLooks(context, self.tenures, total_shards)
        context.look = self.looks.ask
        self.ownership = Ownership(
            context,
            self.placement,
            self.lease,
            self.dispatcher,
            self.results,
            self._spawn,
            self.tenures,
            total_shards,
        )
        self.sinks = EventSinks(context, self.dispatcher.shards, self._spawn)
        self.destinations = DestinationExchange(context, self.dispatcher.admission)
        #: All shards by id, whether this node owns them or not.
        self.shards = self.ownership.shards

    def overdue_us(self) -> int:
        """How long the oldest due timer in this node's windows has waited, in microseconds; 0 when none is due."""
        now = self._context.clock.now_us()
        windows = (shard.window for shard in self.dispatcher.shards.values() if shard.window is not None)
        return max((window.longest_wait_us(now) for window in windows), default=0)

    async def start(self) -> None:
        """Starts the engine; the first heartbeat is written when this returns, claims follow. Raises the store's errors."""
        limits = self._context.limits
        await self.lease.beat()
        await self.lease.read_namespaces()
        for lane in self.ownership.lanes:
            self._spawn(lane.run())
        self._spawn(_steadily(limits.heartbeat_interval_us, self.lease.beat_or_report))
        self._spawn(_every(limits.heartbeat_interval_us, self.tenures.keep))
        self._spawn(_every(limits.namespaces_interval_us, self.lease.read_namespaces))
        self._spawn(_every(limits.purge_interval_us, partial(purge, self._context)))
        replanning = Replanning(self._context, self.shards, self.total_shards)
        self._spawn(_every(limits.replanning_interval_us, replanning.check))
        counting = PendingCounting(self._context, self.shards, self.total_shards)
        self._spawn(_every(ASK_INTERVAL_US, self.destinations.check))
        self._spawn(_every(limits.heartbeat_interval_us, self.sinks.check))
        self._spawn(_every(limits.quota_check_interval_us, counting.check))
        self._spawn(self.looks.run())
        self._spawn(self._keep_supervising())

    def acts_for_all(self) -> bool:
        """Whether this node does what one node of the cluster does for all: it owns the first shard, as far as it knows, and
        has recent contact with the store."""
        if 0 not in self.dispatcher.shards:
            return False
        return self._context.store.capabilities.exclusive or self.lease.in_touch(self._context.clock.boottime_us())

    async def all_owned(self, timeout_us: int) -> bool:
        """Waits until this node owns every shard; False if the time passes first."""
        try:
            await asyncio.wait_for(self.ownership.all_owned.wait(), timeout_us / 1e6)
        except TimeoutError:
            return False
        return True

    async def _keep_supervising(self) -> None:
        """Supervises the shards at every heartbeat interval, and sooner after a request to refresh."""
        limits, requested = self._context.limits, self.placement.refresh_requested
        pause_us = min(limits.ownership_refresh_interval_us, limits.heartbeat_interval_us)
        while True:
            requested.clear()
            await self.supervise()
            self.placement.notify()
            await asyncio.sleep(pause_us / 1e6)
            try:
                async with asyncio.timeout((limits.heartbeat_interval_us - pause_us) / 1e6):
                    await requested.wait()
            except TimeoutError:
                pass

    async def supervise(self) -> None:
        """Reads who owns the shards and begins what follows: claims, hand-overs, sweeps, removal of dead members."""
        if not await self.placement.read():
            return
        self.ownership.reconcile()
        self.dispatcher.flows.sweep()
        if not self.lease.leaving:
            await forget_dead(self._context, self.membership, self.placement.states.values())

    def has_successor(self) -> bool:
        """Whether another node would take this one's shards."""
        if self._context.store.capabilities.exclusive:
            return False
        successor = self.membership.successor(0)
        return successor is not None and bool(self.membership.address(successor))

    async def leave(self) -> None:
        """Announces that this node stops. Where others could take over, it waits for a heartbeat's time, in which those that
        stop together with it announce it, too: `has_successor` knows then whether one stays."""
        clock, limits = self._context.clock, self._context.limits
        drain_until = clock.boottime_us() + limits.drain_timeout_us
        self.lease.leaving = True
        await self.lease.beat_or_report()
        if self.has_successor():
            await asyncio.sleep(limits.heartbeat_interval_us / 1e6)
            await self.placement.read()
        if not self.has_successor():
            self.ownership.drain_until = drain_until

    async def drain(self) -> None:
        """Without another node that takes over: waits until no attempt is in flight, for at most `drain_timeout` together
        with `close`. Writes are accepted all the time. Timers that fall due still fire until the attempts that are in flight
        now have ended: nobody else would fire them. But none begins that could outlast the wait. Returns at once when another
        node can take over."""
        clock, windows = self._context.clock, [shard.window for shard in self.dispatcher.shards.values()]
        deadline = self.ownership.drain_until = self.ownership.drain_deadline_us()
        began = [
            (window, f) for window in windows if window is not None for fs in window.in_flight.values() for f in fs
        ]
        self.dispatcher.waits_until_us = deadline - FLUSH_US
        self.dispatcher.batches.send_all()
        while (began or self.dispatcher.in_flight) and not self.has_successor() and clock.boottime_us() < deadline:
            if not began:
                for shard in self.dispatcher.shards.values():
                    shard.draining = True
            await asyncio.sleep(POLL_INTERVAL_S)
            began = [(window, f) for window, f in began if f in window.in_flight.get(f.row.key[1], ())]

    async def close(self) -> None:
        """Releases every shard gracefully, waits for callbacks in flight up to `drain_timeout`, then stops. Where no other
        node is left to take their results, this one claims their shards once more."""
        deadline = self.ownership.drain_until = self.ownership.drain_deadline_us()
        if not self.lease.leaving:
            # Once the others know that this node leaves, they claim each shard as soon as it is released.
            self.lease.leaving = True
            await self.lease.beat_or_report()
        await self.ownership.close()
        while self.dispatcher.in_flight or self.results.pending:
            if self._context.clock.boottime_us() >= deadline:
                break
            await asyncio.sleep(POLL_INTERVAL_S)
        # What was claimed for results.
        await self.ownership.close()
        await self.tenures.close()
        await self._stop()
        try:
            await self._context.bounded(self._context.store.forget_member(self._context.incarnation))
        except StoreError as error:
            self._context.observe(HeartbeatFailed(str(error)))

    async def kill(self) -> None:
        """Stops at once, as a crash would; for simulations."""
        self.lease.leaving = self.ownership.closing = True
        await self._stop()

    async def _stop(self) -> None:
        self.dispatcher.close()
        for loader in self.ownership.loaders.values():
            loader.stop()
        await end_tasks(*self._tasks)
        for shard in self.shards.values():
            shard.lose("stopped")

    def _spawn(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        task = spawn(work, self._fatal)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task


async def _every(interval_us: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    while True:
        await work()
        await asyncio.sleep(interval_us / 1e6)


async def _steadily(interval_us: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """As `_every`, but the interval is that between two beginnings: a node under load, whose heartbeats take a second each,
    would lose its lease to the pauses in between."""
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        await work()
        await asyncio.sleep(max(began + interval_us / 1e6 - loop.time(), 0))


_UUID_MAX = b"\xff" * 16
#: Rows that are read at once behind looks that are not needed.
_PAGE = 100


class EngineRest:
    """The engine as seen by what moves its clock, on a node that has its store to itself: whether the engine is at rest, and
    when the next timer is due."""

    def __init__(self, context: Context, supervisor: Supervisor) -> None:
        self._context = context
        self._supervisor = supervisor
        #: When something happened last that is no look at a schedule. Set it before the first move.
        self.acted_us = 0
        self._next_us: int | None = None

    def busy(self, now_us: int) -> str:
        """What is still to be done of all that is due by this instant; empty if every attempt was made, and its result is
        durable. Results that wait for others to share their commit are written at once."""
        supervisor = self._supervisor
        if (reason := supervisor.dispatcher.paused_reason) is not None:
            return f"nothing fires now ({reason})"
        for shard in supervisor.shards.values():
            if found := self._busy(shard, now_us):
                return found
        if any(lane.writing for lane in supervisor.ownership.lanes):
            return "results are being written"
        return "what its flow lets begin has not begun yet" if self._flow_opens_in_us() == 0 else ""

    def _flow_opens_in_us(self) -> int | None:
        shards = self._supervisor.shards.values()
        return self._supervisor.dispatcher.flows.opens_in_us(
            {reason for shard in shards for reason in shard.suspended.reasons or ()}
        )

    def _busy(self, shard: Shard, now_us: int) -> str:
        window, dispatcher = shard.window, self._supervisor.dispatcher
        if window is None:
            return f"shard {shard.shard_id} is being claimed"
        if window.has_work():
            shard.lane.schedule(shard, urgent=True)
            return "results are being written"
        if window.in_flight_count:
            return f"receivers have not answered yet: attempts in flight: {dispatcher.in_flight}"
        if window.horizon[0] < now_us:
            return "timers are being loaded"
        if window.longest_wait_us(now_us) or window.retrying:
            return "due timers wait to be sent"
        if may_resume(shard, dispatcher):
            # Due timers for which there was no room. The next sweep resumes them.
            self._supervisor.ownership.reconcile()
            return "due timers wait for room"
        return ""

    async def next_due_us(self, after_us: int) -> int | None:
        """The instant of the next timer after this instant, or at which the limits of a flow let something of what waits
        begin; None if nothing waits. Other suspended timers wait for something else, and a monitor's looks at a schedule to
        which nothing has happened find nothing. Call it at rest. Raises the store's errors."""
        if self._next_us is not None and self._next_us <= after_us:
            self.acted_us = after_us
        after: FireKey = (after_us, _UUID_MAX)
        retries = (shard.order.next_retry_us() for shard in self._supervisor.shards.values())
        firsts = await asyncio.gather(*(self._first(shard_id, after) for shard_id in self._supervisor.shards))
        opens_in_us = self._flow_opens_in_us()
        opens_us = None if opens_in_us is None else self._context.clock.now_us() + opens_in_us
        self._next_us = _earliest(*(first for first, _ in firsts), *retries, opens_us)
        return _earliest(self._next_us, *(look_us for _, look_us in firsts))

    async def _first(self, shard_id: int, after: FireKey) -> tuple[int | None, int | None]:
        """When the shard's next timer is due, and before it a look that is needed."""
        context, look_us, limit = self._context, None, 1
        while after < KEY_MAX:
            page = await context.in_turn(context.store.load(shard_id, after, KEY_MAX, limit))
            for row in page.rows:
                if (timer := _watching(row)) is None:
                    return row.key[0], look_us
                look_us = _earliest(look_us, needed_at_us(timer, row.key[0], self.acted_us))
            after, limit = page.complete_to, _PAGE
        return None, look_us

    def clock_moved(self, by_us: int) -> None:
        """The clock was set forward: what is due now fires."""
        self._supervisor.dispatcher.clock_moved(by_us)
        for shard in list(self._supervisor.dispatcher.shards.values()):
            shard.changed()


def _watching(row: StoredRow) -> Timer | None:
    """The timer of a monitor that watches a schedule; None for any other row."""
    try:
        timer = decode_record(row.record)
    except RecordUndecodable:
        return None
    return None if timer.monitor is None or timer.monitor.definition.schedule is None else timer


def _earliest(*instants: int | None) -> int | None:
    return min((each for each in instants if each is not None), default=None)
