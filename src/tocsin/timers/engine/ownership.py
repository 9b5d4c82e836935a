"""Claims the shards that this node should own, and hands over those that it should not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tocsin.model.errors import StoreCallFailed, StoreError
from tocsin.ports.observer import ClaimFailed, ShardReleased
from tocsin.timers.engine.attempt import HAND_OVER_MARGIN_US, HandedOverResults
from tocsin.timers.engine.committer import CommitLane
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.lease import NodeLease
from tocsin.timers.engine.loader import NEWER_FORMAT, Loader, sweep
from tocsin.timers.engine.placement import ObservedPlacement
from tocsin.timers.engine.shard import POLL_INTERVAL_S, Shard
from tocsin.timers.engine.tenures import Tenures
from tocsin.timers.engine.window import Window

#: Runs a coroutine as a task of the engine.
Spawn = Callable[[Coroutine[Any, Any, object]], asyncio.Task[Any]]


#: How long results that have arrived may take to become durable when the time for attempts in flight has passed.
FLUSH_US = 1_000_000


class Ownership:
    """All shards on this node, owned or not, each with its loader and its commit lane.

    At most one piece of work is under way on a shard: a claim, a hand-over or a sweep. A hand-over has four steps: nothing
    fires any more, attempts in flight are left to this node or end, the last writes become durable, the claim is released.
    """

    def __init__(
        self,
        context: Context,
        placement: ObservedPlacement,
        lease: NodeLease,
        dispatcher: Dispatcher,
        results: HandedOverResults,
        spawn: Spawn,
        tenures: Tenures,
        total_shards: int,
    ) -> None:
        self.shards: dict[int, Shard] = {}
        self.loaders: dict[int, Loader] = {}
        self.lanes = [CommitLane(index, context) for index in range(context.lanes(total_shards))]
        #: Set while this node owns every shard.
        self.all_owned = asyncio.Event()
        #: Until when (boot time) attempts in flight are awaited, once this node has begun to stop.
        self.drain_until: int | None = None
        #: This node hands over or releases all shards. It claims only those for which results of its attempts wait (rule 25).
        self.closing = False
        self._context = context
        self._placement = placement
        self._lease = lease
        self._dispatcher = dispatcher
        self._results = results
        self._tenures = tenures
        self._spawn = spawn
        self._busy: set[int] = set()
        self._claims: set[asyncio.Task[Any]] = set()
        # Until when (boot time) a shard is not claimed.
        self._backing_off_until: dict[int, int] = {}
        for shard_id in range(total_shards):
            lane = self.lanes[shard_id % len(self.lanes)]
            shard = self.shards[shard_id] = Shard(shard_id, context, lane, changed=self._changed, lost=self._lost)
            self.loaders[shard_id] = Loader(shard, context, spawn=spawn, leave=self._leave)

    def reconcile(self) -> None:
        """Begins to claim, release or sweep each shard, by the placement as last read."""
        boot_us, placement = self._context.clock.boottime_us(), self._placement
        settled = placement.settled(boot_us)
        for shard_id, shard in self.shards.items():
            if shard.window is not None and shard.window.epoch < placement.state(shard_id).epoch:
                # Safety doesn't depend on it: it spares a former owner the work until its next batch is refused.
                shard.lose("fenced")
            if shard_id in self._busy:
                continue
            wanted = placement.wanted(shard_id)
            if shard.window is None:
                if placement.owner_lives(placement.state(shard_id), boot_us):
                    self._tenures.followed(shard_id)
                if not wanted:
                    self._disown(shard)
                elif (
                    self._may_use(shard_id)
                    and self._backing_off_until.get(shard_id, 0) <= boot_us
                    and placement.may_claim(shard_id, boot_us)
                ):
                    task = self._guarded(shard, self.claim(shard))
                    self._claims.add(task)
                    task.add_done_callback(self._claims.discard)
            elif not wanted and settled and not self._lease.leaving:
                self._guarded(shard, self._hand_over(shard))
            elif not shard.draining:
                shard.try_refused_again()
                self._guarded(shard, sweep(shard, self._context, self._dispatcher))

    def _may_use(self, shard_id: int) -> bool:
        """Whether this node has a use for the shard: at its end, only to write results for which no owner is left."""
        return not self.closing or shard_id in self._results.pending

    def _guarded(self, shard: Shard, work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        """Runs the only work on the shard."""
        self._busy.add(shard.shard_id)
        task = self._spawn(work)
        task.add_done_callback(lambda _: self._busy.discard(shard.shard_id))
        return task

    def drain_deadline_us(self) -> int:
        """Until when (boot time) a hand-over that begins now may take."""
        now_us = self._context.clock.boottime_us()
        if self.drain_until is None:
            return now_us + self._context.limits.drain_timeout_us
        return max(self.drain_until, now_us + FLUSH_US)

    async def close(self) -> None:
        """Releases every shard gracefully. A claim under way that succeeds releases its shard by itself."""
        self.closing = True
        if self._claims:
            await asyncio.wait(self._claims)
        self._placement.changed_here()
        await asyncio.gather(*(self._hand_over(shard) for shard in self.shards.values()))

    # ------------------------------------------------------------------ claims

    async def claim(self, shard: Shard) -> None:
        """Claims the shard if its state is still as last read. One that is this node's is claimed again: its epoch may have
        been used, or be one that the store did not confirm, or older than the node lease (rules 3 and 6)."""
        context, placement, shard_id = self._context, self._placement, shard.shard_id
        boot_us, state = context.clock.boottime_us(), placement.state(shard_id)
        if placement.owner_lives(state, boot_us):
            return
        presumed_dead, lapses = placement.presumed_dead(state, boot_us), self._lease.lapses
        try:
            epoch = await context.in_turn(
                context.store.claim(
                    shard_id, expected_epoch=state.epoch, owner=context.incarnation, presumed_dead=presumed_dead
                )
            )
        except StoreCallFailed as error:
            context.observe(ClaimFailed(shard_id, str(error)))
            return
        if epoch is None:
            context.observe(ClaimFailed(shard_id, "another node claimed it first, or the owner is alive"))
            self._back_off(shard, int(context.random.random() * context.limits.claim_backoff_us))
        else:
            await self._own(shard, epoch, lapses, state.owner)

    async def _own(self, shard: Shard, epoch: int, lapses: int, former: bytes | None) -> None:
        """Reads the namespaces, which the former owner may have known in later versions (rule 23), then owns the shard,
        unless the node lease has lapsed since the claim was sent."""
        try:
            await self._context.bounded(self._context.refresh_namespaces())
            outages = await self._tenures.claimed(shard.shard_id, former, shard.lost_at_us)
        except StoreCallFailed as error:
            # The next try is another claim.
            self._context.observe(ClaimFailed(shard.shard_id, f"reading what the owner has to know failed: {error}"))
            return
        if not self._may_use(shard.shard_id):
            await self._release(shard, epoch)
        elif self._lease.lapses != lapses:
            self._context.observe(ClaimFailed(shard.shard_id, "the node lease expired in the meantime"))
            self._placement.refresh()
        else:
            shard.own(epoch, draining=self.closing, outages=outages)

    def _back_off(self, shard: Shard, interval_us: int) -> None:
        self._backing_off_until[shard.shard_id] = self._context.clock.boottime_us() + interval_us

    # ------------------------------------------------------------------ releases

    async def _hand_over(self, shard: Shard) -> None:
        """Hands the shard over: stops firing, leaves callbacks in flight to this node (rule 25; where no node could take
        their results, they end first), refuses new writes, flushes what is pending, and releases the claim."""
        window, context, membership = shard.window, self._context, self._placement.membership
        if window is None:
            return
        shard.draining = True
        deadline = self.drain_deadline_us()
        while shard.window is window and context.clock.boottime_us() < deadline:
            successor = membership.successor(shard.shard_id)
            others = self._results.submit is not None and bool(successor and membership.address(successor))
            if others:
                window.hand_over(HAND_OVER_MARGIN_US)
            if not (window.undecided if others else window.in_flight_count):
                shard.closed = True
                # Retries in a batch under way have left `pending`. A release in front of it would fence it, and the next
                # owner would make these attempts again.
                if not (_has_results(window) or window.clients_wait or shard.lane.is_writing(shard)):
                    break
                if window.queue.tokens.waits and not (window.pending or window.finished):
                    # Nothing else is left, and each further grant adds to these: the next home gives it.
                    self._dispatcher.flows.disown(shard.shard_id)
            if _has_results(window):
                shard.lane.schedule(shard, urgent=True)
            await asyncio.sleep(POLL_INTERVAL_S)
        # Also if the claim has been lost: it may still be this node's in the store, and others would wait for its end.
        shard.lose("released")
        if await self._release(shard, window.epoch):
            context.observe(ShardReleased(shard.shard_id, window.epoch))
            self._placement.released(shard.shard_id, window.epoch)

    def _disown(self, shard: Shard) -> None:
        """Releases a shard that is still this node's in the store: no other node may claim it while this one lives."""
        state = self._placement.state(shard.shard_id)
        if state.owner == self._context.incarnation:
            self._guarded(shard, self._release(shard, state.epoch))

    def _leave(self, shard: Shard, reason: str) -> None:
        """Releases a shard that this node must not keep, and does not claim it for a while. A node that is outdated announces
        it, so that the shard is assigned to another."""
        self._lease.outdated = self._lease.outdated or reason == NEWER_FORMAT
        self._back_off(shard, self._context.limits.shard_retry_interval_us)
        window = shard.window
        if window is not None:
            shard.lose(reason)
            self._spawn(self._release(shard, window.epoch))

    async def _release(self, shard: Shard, epoch: int) -> bool:
        """Releases the claim in the store; False if it was no longer this node's, or its outcome is unknown."""
        context, shard_id = self._context, shard.shard_id
        try:
            return await context.in_turn(context.store.release(shard_id, epoch=epoch, owner=context.incarnation))
        except StoreError as error:
            context.observe(ClaimFailed(shard_id, f"the release failed: {error}"))
            return False

    # ------------------------------------------------------------------ events of shards

    def _changed(self, shard: Shard) -> None:
        if shard.window is not None and shard.shard_id not in self._dispatcher.shards:
            self._dispatcher.add(shard)
            self._count_owned()
            self._placement.changed_here()
        self._dispatcher.dispatch_due(shard)
        self.loaders[shard.shard_id].consider()

    def _lost(self, shard: Shard, reason: str) -> None:
        self._dispatcher.remove(shard)
        self._tenures.lost(shard.shard_id, shard.lost_at_us)
        self._count_owned()
        if reason in ("unknown_outcome", "lease"):
            # Rules 3 and 6: it is claimed again at once, with a new epoch, so that neither a late batch nor another node's
            # late claim can take effect.
            self._placement.refresh()

    def _count_owned(self) -> None:
        owned = len(self._dispatcher.shards)
        self._context.shards_owned = max(owned, 1)
        if owned == len(self.shards):
            self.all_owned.set()
        else:
            self.all_owned.clear()


def _has_results(window: Window) -> bool:
    """Whether there is anything to write that this owner alone knows. Events that are published and not deleted are not: the
    next owner publishes them again under their ids, and removes those without a sink."""
    return bool(window.pending or window.finished or window.queue.tokens.waits)
