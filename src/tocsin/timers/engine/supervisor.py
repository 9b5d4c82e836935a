"""One node's engine: heartbeats and node lease, ownership of shards, graceful and forced ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from tocsin.model.errors import DefiniteFailure, StoreCorrupted, StoreError
from tocsin.ports.forward import Owner
from tocsin.ports.observer import (
    ClaimFailed,
    ClockDistrusted,
    ClockOffset,
    ClockTrusted,
    HeartbeatFailed,
    LoadFailed,
    NodeNameShared,
    ShardReleased,
)
from tocsin.ports.store import Member, ShardState
from tocsin.timers.engine.committer import CommitLane
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.handover import MARGIN_US, POLL_INTERVAL_S, HandedOverResults
from tocsin.timers.engine.loader import NEWER_FORMAT, Loader
from tocsin.timers.engine.membership import Membership, announced
from tocsin.timers.engine.retention import forget_dead, purge_history
from tocsin.timers.engine.shard import Shard, too_much_unwritten
from tocsin.timers.engine.skew import SkewWatch
from tocsin.timers.engine.suspension import sweep


class Supervisor:
    """The engine of one node. `fatal` is called with an error that must end the process: a defect, or a corrupted store."""

    def __init__(
        self,
        context: Context,
        *,
        node: str,
        address: str,
        total_shards: int,
        fatal: Callable[[BaseException], None],
    ) -> None:
        self.node = node
        self.total_shards = total_shards
        self.membership = Membership(context.incarnation, context.limits.member_timeout_us)
        self.results = HandedOverResults(context, self._spawn)
        self.dispatcher = Dispatcher(context, self.results)
        self.states: dict[int, ShardState] = {}
        self._address = address
        self._context = context
        self._fatal = fatal
        self._counter = 0
        self._beating = asyncio.Lock()
        self._last_ok: int | None = None
        self._verified = False
        self._skew = SkewWatch(context.limits.member_timeout_us)
        self._clock_was_right = False
        self._outdated = False
        self._joined = False
        self._refresh_requested = asyncio.Event()
        self._watchers: list[Callable[[], None]] = []
        #: Called when this node has taken or released a shard, so that other nodes read the ownership again.
        self.announce: Callable[[], None] | None = None
        self.closing = False
        #: Set before `close`: the node reports that it is not ready, while requests still end.
        self.draining = False
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._lanes = [CommitLane(index, context) for index in range(context.lanes(total_shards))]
        self._busy: set[int] = set()
        self._claiming: set[int] = set()
        self._no_claim = asyncio.Event()
        self._no_claim.set()
        self._backing_off_until: dict[int, int] = {}
        # When each name that several nodes share was last reported, in boot time.
        self._names_reported: dict[str, int] = {}
        self._all_owned = asyncio.Event()
        self.shards: dict[int, Shard] = {}
        self._loaders: dict[int, Loader] = {}
        for shard_id in range(total_shards):
            lane = self._lanes[shard_id % len(self._lanes)]
            shard = Shard(shard_id, context, lane, changed=self._changed, lost=self._lost)
            self.shards[shard_id] = shard
            self._loaders[shard_id] = Loader(
                shard, context, spawn=self._spawn, changed=self._changed, leave=self._leave
            )

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Starts the engine; the first heartbeat is written when this returns, claims follow. Raises the store's errors."""
        await self._beat()
        await self._read_namespaces()
        for lane in self._lanes:
            self._spawn(lane.run())
        self._spawn(self._every(self._context.limits.heartbeat_interval_us, self._beat_or_report))
        self._spawn(self._every(self._context.limits.namespaces_interval_us, self._read_namespaces))
        self._spawn(self._every(self._context.limits.purge_interval_us, self._purge_history))
        self._spawn(self._keep_supervising())

    async def all_owned(self, timeout_us: int) -> bool:
        """Waits until this node owns every shard; False if the time passes first."""
        try:
            await asyncio.wait_for(self._all_owned.wait(), timeout_us / 1e6)
        except TimeoutError:
            return False
        return True

    def overdue_us(self) -> int:
        """How long the oldest due timer in this node's windows has waited, in microseconds; 0 when none is due."""
        now = self._context.clock.now_us()
        windows = (shard.window for shard in self.dispatcher.shards.values() if shard.window is not None)
        return max((window.longest_wait_us(now) for window in windows), default=0)

    async def close(self) -> None:
        """Releases every shard gracefully, waits for callbacks in flight up to `drain_timeout`, then stops."""
        deadline = self._context.clock.boottime_us() + self._context.limits.drain_timeout_us
        self.closing = True
        # A claim that succeeds meanwhile releases its shard by itself.
        await self._no_claim.wait()
        # Once the others know that this node leaves, they claim each shard as soon as it is released.
        await self._beat_or_report()
        self._ownership_changed()
        owned = [shard for shard in self.shards.values() if shard.window is not None]
        await asyncio.gather(*(self._release(shard) for shard in owned))
        await self.results.drained(deadline, self.dispatcher)
        await self._stop()
        try:
            await self._context.bounded(self._context.store.forget_member(self._context.incarnation))
        except StoreError as error:
            self._context.observe(HeartbeatFailed(str(error)))

    async def kill(self) -> None:
        """Stops at once, as a crash would; for simulations."""
        self.closing = True
        await self._stop()

    async def _stop(self) -> None:
        self.dispatcher.close()
        for loader in self._loaders.values():
            loader.stop()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for shard in self.shards.values():
            shard.lose("stopped")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert error is not None
            self._fatal(error)

    async def _every(self, interval_us: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            await work()
            await asyncio.sleep(interval_us / 1e6)

    # ------------------------------------------------------------------ heartbeat, lease, clock (rules 6 and 12)

    async def _beat_or_report(self) -> None:
        try:
            await self._beat()
        except StoreCorrupted:
            raise
        except StoreError as error:
            self.membership.unsettle()
            self._context.observe(HeartbeatFailed(str(error)))

    async def _beat(self) -> None:
        # One at a time: of two under way the former might arrive last, and its row would lack the latter's flags.
        async with self._beating:
            await self._beat_now()

    async def _beat_now(self) -> None:
        context, limits = self._context, self._context.limits
        sent, wall = context.clock.boottime_us(), context.clock.now_us()
        self._counter += 1
        flags = {"leaving": self.closing, "skewed": self._skew.lasting, "outdated": self._outdated}
        address = announced(self._address, **flags, beside_earlier=not self.membership.format_2)
        member = Member(context.incarnation, self.node, address, self._counter)
        store_now, refused = await self._heartbeat(member)
        done = context.clock.boottime_us()
        if self._last_ok is None or done - self._last_ok >= limits.node_lease_us:
            self._verified = False
            if self._last_ok is not None:
                self.membership.unsettle()
                self.dispatcher.pause("lease", "the node lease had expired; reading which shards are still owned")
        self._last_ok = sent
        # The store read its clock at some moment of the round trip; half of it is the uncertainty.
        round_trip = done - sent
        offset = wall + round_trip // 2 - store_now
        context.observe(ClockOffset(offset))
        self._renew()
        off = abs(offset) - round_trip // 2 > limits.clock_skew_max_us
        if self._skew.note(off=off, boot_us=sent):
            context.observe(ClockDistrusted(offset) if off else ClockTrusted(offset))
        if off:
            if not self._clock_was_right:
                context.confirm_time(store_now, sent + round_trip // 2)
            self.dispatcher.pause("clock_skew", f"this node's clock differs from the store's by {offset / 1e6:.3f} s")
            return
        self._clock_was_right = True
        context.confirm_time(wall, sent)
        if not self._verified or done >= context.namespaces_until:
            await self._verify()
        if refused is not None and (waiting := too_much_unwritten(self.shards.values(), limits)):
            self.dispatcher.pause("unwritten_results", f"{waiting}; {refused}")
            return
        if self.dispatcher.paused_reason is not None:
            self.dispatcher.resume(wall - sent)

    def _renew(self) -> None:
        if self._last_ok is not None:
            lease_until = self._last_ok + self._context.limits.node_lease_us
            self.dispatcher.renew(min(lease_until, self._context.namespaces_until))

    async def _heartbeat(self, member: Member) -> tuple[int, str | None]:
        """Writes the heartbeat; returns the store's clock, and why an exclusive store refused it: its lease needs none."""
        context = self._context
        try:
            return await context.bounded(context.store.heartbeat(member)), None
        except DefiniteFailure as error:
            if not context.store.capabilities.exclusive:
                raise
            context.observe(HeartbeatFailed(str(error)))
            return await context.bounded(context.store.now()), str(error)

    async def _verify(self) -> None:
        """Reads namespaces and ownership after the node lease had expired, before anything fires: others may have claimed
        shards, or changed namespaces without waiting for this node."""
        await self._context.bounded(self._context.refresh_namespaces())
        self._renew()
        asked = [(shard, shard.window) for shard in self.shards.values() if shard.window is not None]
        states = {state.shard_id: state for state in await self._context.bounded(self._context.store.shards())}
        for shard, window in asked:
            state = states.get(shard.shard_id)
            if shard.window is not window:
                # Lost, or claimed since: the result is about the former claim.
                continue
            if state is None or state.epoch != window.epoch or state.owner != self._context.incarnation:
                shard.lose("fenced")
        self._verified = True

    # ------------------------------------------------------------------ ownership as others see it (the port Placement)

    @property
    def incarnation(self) -> bytes:
        """The id of this start of this node."""
        return self._context.incarnation

    @property
    def clock_distrusted(self) -> bool:
        """Whether other nodes should do this node's work, because its clock has differed from the store's for a while and
        theirs have not."""
        return self._skew.lasting and self.membership.excluded(self._context.incarnation)

    @property
    def joined(self) -> bool:
        """Whether this node has watched the others for long enough to take its share of the shards."""
        return self._joined

    def owner(self, shard_id: int) -> Owner | None:
        """The shard's owner, this node included; None while none is known."""
        window = self.shards[shard_id].window
        if window is not None:
            return Owner(self.incarnation, window.epoch, "")
        state = self.states.get(shard_id)
        if state is None or state.owner is None or state.owner == self.incarnation:
            return None
        return Owner(state.owner, state.epoch, self.membership.address(state.owner))

    def refresh(self) -> None:
        """Requests another read of the ownership soon; watchers are notified after it."""
        self._refresh_requested.set()

    def watch(self, refreshed: Callable[[], None]) -> None:
        """Has `refreshed` called after each read of the ownership, and after each change on this node."""
        self._watchers.append(refreshed)

    def address(self, incarnation: bytes) -> str:
        """The address at which the member takes requests of other nodes; empty if it takes none or is unknown."""
        return self.membership.address(incarnation)

    def others(self) -> Mapping[bytes, str]:
        """The addresses of the other living members that have one, by incarnation."""
        members = (m.incarnation for m in self.membership.members() if self.membership.alive(m.incarnation))
        found = {incarnation: self.membership.address(incarnation) for incarnation in members}
        return {i: address for i, address in found.items() if address and i != self.incarnation}

    def _ownership_changed(self) -> None:
        """Announces that this node has taken or released a shard."""
        if self.announce is not None:
            self.announce()
        self._notify_watchers()

    def _notify_watchers(self) -> None:
        for refreshed in self._watchers:
            refreshed()

    # ------------------------------------------------------------------ ownership

    async def _keep_supervising(self) -> None:
        """Supervises the shards at every heartbeat interval, and sooner after `refresh`."""
        limits = self._context.limits
        pause_us = min(limits.ownership_refresh_interval_us, limits.heartbeat_interval_us)
        while True:
            self._refresh_requested.clear()
            await self._supervise()
            self._notify_watchers()
            await asyncio.sleep(pause_us / 1e6)
            try:
                async with asyncio.timeout((limits.heartbeat_interval_us - pause_us) / 1e6):
                    await self._refresh_requested.wait()
            except TimeoutError:
                pass

    async def _supervise(self) -> None:
        context = self._context
        try:
            # In this order: an owner writes its member row before it claims, so an owner without a row has left for good.
            states = await context.bounded(context.store.shards())
            self.membership.observe(await context.bounded(context.store.members()), context.clock.boottime_us())
            self.states = {state.shard_id: state for state in states}
        except StoreCorrupted:
            raise
        except StoreError as error:
            context.observe(LoadFailed(None, str(error)))
            return
        if self.closing:
            return
        boot = context.clock.boottime_us()
        self._report_shared_names(boot)
        self._joined = self._joined or self._settled(boot)
        for shard in self.shards.values():
            if shard.shard_id in self._busy:
                continue
            wanted = self._wanted(shard.shard_id)
            if shard.window is not None and not wanted and self._settled(boot):
                self._guarded(shard, partial(self._release, shard))
            elif shard.window is not None and not shard.draining:
                shard.try_refused_again()
                self._guarded(shard, partial(sweep, shard, context, self.dispatcher))
            elif shard.window is None and wanted and self._may_claim(shard.shard_id, boot):
                self._guarded(shard, partial(self._claim, shard))
            elif shard.window is None and not wanted:
                self._disown(shard)
        await forget_dead(context, self.membership, self.states.values())

    def _report_shared_names(self, boot: int) -> None:
        interval = self._context.limits.duplicate_name_warning_interval_us
        self._names_reported = {name: at for name, at in self._names_reported.items() if boot - at < interval}
        for name, incarnations in self.membership.shared_names().items():
            if name not in self._names_reported:
                self._names_reported[name] = boot
                self._context.observe(NodeNameShared(name, ", ".join(each.hex() for each in incarnations)))

    def _disown(self, shard: Shard) -> None:
        """Releases a shard that is still this node's in the store: no other node may claim it while this one lives."""
        state = self.states.get(shard.shard_id)
        if state is not None and state.owner == self._context.incarnation and shard.shard_id not in self._claiming:
            # From now on another node may own it, whatever a read that began before returns.
            shard.renounce(state.epoch)
            self._guarded(shard, partial(self._release_epoch, shard.shard_id, state.epoch))

    def _wanted(self, shard_id: int) -> bool:
        exclusive = self._context.store.capabilities.exclusive
        return exclusive or self.membership.wanted(shard_id) == self._context.incarnation

    def _settled(self, boot: int) -> bool:
        """Whether this node may act on its view: its heartbeats succeed, and no member has joined for a while."""
        if self._context.store.capabilities.exclusive:
            return True
        if not self.in_touch(boot):
            return False
        alone = not self._joined and self.membership.alone()
        return alone or self.membership.stable_for_us(boot) >= self._context.limits.member_timeout_us

    def in_touch(self, boot: int) -> bool:
        """Whether the last successful heartbeat is within the node lease, at this boot time."""
        return self._last_ok is not None and boot - self._last_ok < self._context.limits.node_lease_us

    def _may_claim(self, shard_id: int, boot: int) -> bool:
        if self._backing_off_until.get(shard_id, 0) > boot:
            return False
        state = self.states.get(shard_id)
        if state is None or state.owner is None or state.owner == self._context.incarnation:
            # A released shard's clients wait for its next owner; a wrong view costs only another hand-over.
            return self._settled(boot) or (self._joined and self.in_touch(boot))
        if not self._settled(boot):
            return False
        if self._context.store.capabilities.exclusive or not self.membership.knows(state.owner):
            return True
        return self.membership.presumed_dead(state.owner, boot) is not None

    def _guarded(self, shard: Shard, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs `work` unless other work on the shard is under way."""
        if shard.shard_id in self._busy:
            return
        self._busy.add(shard.shard_id)

        async def run() -> None:
            try:
                await work()
            finally:
                self._busy.discard(shard.shard_id)

        self._spawn(run())

    async def _claim(self, shard: Shard) -> None:
        """Claims the shard, one claim at a time, so that each success is used exactly once."""
        if shard.window is not None or shard.shard_id in self._claiming:
            return
        self._claiming.add(shard.shard_id)
        self._no_claim.clear()
        try:
            await self._take(shard)
        finally:
            self._claiming.discard(shard.shard_id)
            if not self._claiming:
                self._no_claim.set()

    async def _take(self, shard: Shard) -> None:
        """Claims the shard if its state is still as last read."""
        context, shard_id = self._context, shard.shard_id
        state = self.states.get(shard_id) or ShardState(shard_id, 0, None)
        presumed_dead = None
        if not context.store.capabilities.exclusive and state.owner not in (None, context.incarnation):
            assert state.owner is not None
            presumed_dead = self.membership.presumed_dead(state.owner, context.clock.boottime_us())
            if presumed_dead is None and self.membership.knows(state.owner):
                return
        if state.owner == context.incarnation and state.epoch > shard.last_epoch:
            # A claim of this node whose outcome was unknown has taken effect; its epoch was never used.
            await self._own(shard, state.epoch)
            return
        try:
            epoch = await context.in_turn(
                context.store.claim(
                    shard_id, expected_epoch=state.epoch, owner=context.incarnation, presumed_dead=presumed_dead
                )
            )
        except StoreCorrupted:
            raise
        except StoreError as error:
            context.observe(ClaimFailed(shard_id, str(error)))
            return
        if epoch is None:
            context.observe(ClaimFailed(shard_id, "another node claimed it first, or the owner is alive"))
            delay = int(context.random.random() * context.limits.claim_backoff_us)
            self._backing_off_until[shard_id] = context.clock.boottime_us() + delay
        else:
            await self._own(shard, epoch)

    async def _own(self, shard: Shard, epoch: int) -> None:
        """Reads the namespaces, which the former owner may have known in later versions (rule 23), then owns the shard."""
        try:
            await self._context.bounded(self._context.refresh_namespaces())
        except StoreCorrupted:
            raise
        except StoreError as error:
            # The claim stays unused until the next try.
            self._context.observe(ClaimFailed(shard.shard_id, f"reading the namespaces failed: {error}"))
            return
        if self.closing:
            await self._release_epoch(shard.shard_id, epoch)
        else:
            shard.own(epoch)

    async def _reclaim(self, shard: Shard) -> None:
        """Rule 3: after an unknown outcome, claims the shard with a new epoch, so that the late batch can't take effect."""
        context = self._context
        while shard.window is None and not self.closing:
            try:
                states = await context.bounded(context.store.shards())
            except StoreCorrupted:
                raise
            except StoreError as error:
                context.observe(ClaimFailed(shard.shard_id, str(error)))
                await asyncio.sleep(context.limits.store_retry_interval_us / 1e6)
                continue
            state = next((s for s in states if s.shard_id == shard.shard_id), None)
            if state is None or state.owner != context.incarnation:
                return
            self.states[shard.shard_id] = state
            await self._claim(shard)
            if shard.window is None:
                await asyncio.sleep(context.limits.store_retry_interval_us / 1e6)

    async def _release(self, shard: Shard) -> None:
        """Hands the shard over: stops firing, leaves callbacks in flight to this node (rule 25; where no node
        could take their results, they end first), refuses new writes, flushes what is pending, and releases the claim."""
        window = shard.window
        if window is None:
            return
        shard.draining = True
        context = self._context
        deadline = context.clock.boottime_us() + context.limits.drain_timeout_us
        while shard.window is window and context.clock.boottime_us() < deadline:
            successor = self.membership.successor(shard.shard_id)
            others = self.results.submit is not None and bool(successor and self.membership.address(successor))
            if others:
                window.hand_over(MARGIN_US)
            if not (window.undecided if others else window.in_flight_count):
                shard.closed = True
                if not window.has_work() and not window.clients_wait:
                    break
            if window.has_work():
                shard.lane.schedule(shard, urgent=True)
            await asyncio.sleep(POLL_INTERVAL_S)
        await self._give_back(shard)

    async def _give_back(self, shard: Shard) -> None:
        window, context = shard.window, self._context
        if window is None:
            return
        shard.lose("released")
        try:
            if await context.in_turn(
                context.store.release(shard.shard_id, epoch=window.epoch, owner=context.incarnation)
            ):
                context.observe(ShardReleased(shard.shard_id, window.epoch))
                self._note_released(shard.shard_id, window.epoch)
                self._ownership_changed()
        except StoreError as error:
            context.observe(ClaimFailed(shard.shard_id, f"the release failed: {error}"))

    def _note_released(self, shard_id: int, epoch: int) -> None:
        """Corrects the shard's state as read before the release."""
        state = self.states.get(shard_id)
        if state is not None and state.epoch <= epoch:
            self.states[shard_id] = ShardState(shard_id, epoch, None)

    def _leave(self, shard: Shard, reason: str) -> None:
        """Releases a shard that this node must not keep, and does not claim it for a while. A node that is outdated announces
        it, so that the shard is assigned to another."""
        self._outdated = self._outdated or reason == NEWER_FORMAT
        context = self._context
        self._backing_off_until[shard.shard_id] = context.clock.boottime_us() + context.limits.shard_retry_interval_us
        window = shard.window
        if window is None:
            return
        shard.lose(reason)
        self._spawn(self._release_epoch(shard.shard_id, window.epoch))

    async def _release_epoch(self, shard_id: int, epoch: int) -> None:
        context = self._context
        try:
            await context.in_turn(context.store.release(shard_id, epoch=epoch, owner=context.incarnation))
        except StoreError as error:
            context.observe(ClaimFailed(shard_id, f"the release failed: {error}"))

    # ------------------------------------------------------------------ events of shards

    def _changed(self, shard: Shard) -> None:
        if shard.window is not None and shard.shard_id not in self.dispatcher.shards:
            self.dispatcher.add(shard)
            self._count_owned()
            self._ownership_changed()
        self.dispatcher.dispatch_due(shard)
        self._loaders[shard.shard_id].consider()

    def _lost(self, shard: Shard, reason: str) -> None:
        self.dispatcher.remove(shard)
        self._count_owned()
        if reason == "unknown_outcome" and not self.closing:
            self._spawn(self._reclaim(shard))

    def _count_owned(self) -> None:
        owned = len(self.dispatcher.shards)
        self._context.shards_owned = max(owned, 1)
        if owned == self.total_shards:
            self._all_owned.set()
        else:
            self._all_owned.clear()

    # ------------------------------------------------------------------ housekeeping

    async def _purge_history(self) -> None:
        await purge_history(self._context, lambda: self.closing)

    async def _read_namespaces(self) -> None:
        try:
            await self._context.read_namespaces()
        except StoreCorrupted:
            raise
        except StoreError as error:
            self._context.observe(LoadFailed(None, str(error)))
        else:
            self._renew()
