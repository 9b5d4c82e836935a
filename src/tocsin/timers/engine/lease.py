"""The node lease: this node fires timers only while its heartbeats succeed and its clock is right (rules 6 and 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tocsin.model.errors import DefiniteFailure, StoreCallFailed
from tocsin.ports.observer import ClockDistrusted, ClockOffset, ClockTrusted, HeartbeatFailed, LoadFailed
from tocsin.ports.store import Member
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.membership import Membership, announced
from tocsin.timers.engine.shard import too_much_unwritten


class SkewWatch:
    """Whether a node's clock has differed from the store's for so long that other nodes should take its shards.

    Smooths the heartbeats' clock readings: `lasting` changes only after all readings of `settle_us` contradicted it.

    A node pauses at the first reading that is off (rule 12), and fires again at the first that is right. Handing shards over
    and taking them back costs more, so an occasional step of the clock must not cause it. The first reading counts at
    once.
    """

    def __init__(self, settle_us: int) -> None:
        self._settle_us = settle_us
        self._lasting: bool | None = None
        self._differs_since: int | None = None

    @property
    def lasting(self) -> bool:
        """Whether the clock is off and has been for `settle_us`."""
        return bool(self._lasting)

    def note(self, *, off: bool, boot_us: int) -> bool:
        """Takes a reading at this boot time; returns whether it changed `lasting`."""
        if off == self._lasting:
            self._differs_since = None
            return False
        if self._lasting is None:
            self._lasting = off
            return off
        if self._differs_since is None:
            self._differs_since = boot_us
        if boot_us - self._differs_since < self._settle_us:
            return False
        self._lasting, self._differs_since = off, None
        return True


class NodeLease:
    """Writes this node's heartbeats, and pauses and resumes its dispatcher by their results."""

    def __init__(
        self,
        context: Context,
        membership: Membership,
        dispatcher: Dispatcher,
        *,
        node: str,
        address: str,
        api_url: str = "",
        secret_marks: Sequence[str] = (),
    ) -> None:
        #: This node stops: if others stay, it claims nothing any more and hands its shards over. Heartbeats announce it.
        self.leaving = False
        #: This node has read timers of a newer release. Heartbeats announce it.
        self.outdated = False
        self._context = context
        self._membership = membership
        self._dispatcher = dispatcher
        self._node = node
        self._address = address
        self._api_url = api_url
        self._secret_marks = secret_marks
        self._since_us = 0
        self._counter = 0
        self._beating = asyncio.Lock()
        # The store has taken no writes since the last heartbeat that succeeded.
        self._took_nothing = False
        # When the last successful heartbeat was sent, in boot time.
        self._last_ok: int | None = None
        #: How often the lease was renewed after it had expired. A claim sent before that must not be used after it.
        self.lapses = 0
        self._skew = SkewWatch(context.limits.member_timeout_us)
        self._clock_was_right = False

    def in_touch(self, boot_us: int) -> bool:
        """Whether the last successful heartbeat is within the node lease, at this boot time."""
        return self._last_ok is not None and boot_us - self._last_ok < self._context.limits.node_lease_us

    @property
    def clock_distrusted(self) -> bool:
        """Whether other nodes should do this node's work, because its clock has differed from the store's for a while and
        theirs have not."""
        return self._skew.lasting and self._membership.excluded(self._context.incarnation)

    async def beat_or_report(self) -> None:
        """Writes a heartbeat. A failure is reported, and this node's view of the others counts as unsettled."""
        try:
            await self.beat()
        except StoreCallFailed as error:
            self._membership.unsettle()
            self._context.note_write(error)
            self._context.observe(HeartbeatFailed(str(error)))

    async def move_clock(self, move: Callable[[], None]) -> None:
        """Calls `move`, which sets the wall clock forward, while no heartbeat is under way: a heartbeat compares this node's
        clock with the store's, which moves as well, and both must be read on the same side of the move."""
        async with self._beating:
            move()

    async def beat(self) -> None:
        """Writes a heartbeat; renews the lease, or pauses the dispatcher. Raises the store's errors."""
        # One at a time: of two under way the former might arrive last, and its row would lack the latter's flags.
        async with self._beating:
            await self._beat_now()

    async def _beat_now(self) -> None:
        context, limits = self._context, self._context.limits
        sent, wall = context.clock.boottime_us(), context.clock.now_us()
        store_now, refused = await self._heartbeat()
        done = context.clock.boottime_us()
        context.passed_us = min(wall, store_now)
        if self._last_ok is not None and not self.in_touch(done):
            self._lapse()
        self._last_ok = sent
        if refused is None:
            if self._took_nothing:
                context.outage(context.beat_at_us, wall)
            context.beat_at_us, self._took_nothing = wall, False
        else:
            self._took_nothing = True
        self._renew()
        if not self._check_clock(sent, wall, done, store_now):
            return
        if done >= context.namespaces_until:
            await context.bounded(context.refresh_namespaces())
            self._renew()
        if refused is not None and (waiting := too_much_unwritten(self._dispatcher.shards.values(), limits)):
            self._dispatcher.pause("unwritten_results", f"{waiting}; {refused}")
        elif self._dispatcher.paused_reason is not None:
            self._dispatcher.resume(wall - sent)

    def _lapse(self) -> None:
        """The node lease had expired before this heartbeat, so that other nodes might claim this node's shards, and may be
        about to: a claim that compared the counter before this heartbeat can take effect after it. No read excludes that.
        So every claim of this node counts as lost (rule 6); the next ones read the namespaces, too (rule 23)."""
        self._membership.unsettle()
        self._dispatcher.pause("lease", "the node lease had expired")
        if self._context.store.capabilities.exclusive:
            self._took_nothing = True
            return
        self.lapses += 1
        for shard in list(self._dispatcher.shards.values()):
            shard.lose("lease")

    async def _heartbeat(self) -> tuple[int, str | None]:
        """Writes the member row; returns the store's clock, and why an exclusive store refused it: its lease needs none."""
        context = self._context
        self._counter += 1
        flags = {"leaving": self.leaving, "skewed": self._skew.lasting, "outdated": self.outdated}
        if self._secret_marks and not self._since_us:
            self._since_us = await context.bounded(context.store.now())
        address = announced(
            self._address,
            **flags,
            api_url=self._api_url,
            secret_marks=self._secret_marks,
            since_us=self._since_us,
        )
        member = Member(context.incarnation, self._node, address, self._counter)
        try:
            return await context.bounded(context.store.heartbeat(member)), None
        except DefiniteFailure as error:
            if not context.store.capabilities.exclusive:
                raise
            context.note_write(error)
            context.observe(HeartbeatFailed(str(error)))
            return await context.bounded(context.store.now()), str(error)

    def _check_clock(self, sent: int, wall: int, done: int, store_now: int) -> bool:
        """Whether this node's clock agrees with the store's. If not, the dispatcher is paused."""
        context = self._context
        # The store read its clock at some moment of the round trip; half of it is the uncertainty.
        half_trip = (done - sent) // 2
        offset = wall + half_trip - store_now
        context.observe(ClockOffset(offset))
        off = abs(offset) - half_trip > context.limits.clock_skew_max_us
        if self._skew.note(off=off, boot_us=sent):
            context.observe(ClockDistrusted(offset) if off else ClockTrusted(offset))
        if off:
            if not self._clock_was_right:
                context.confirm_time(store_now, sent + half_trip)
            self._dispatcher.pause("clock_skew", f"this node's clock differs from the store's by {offset / 1e6:.3f} s")
            return False
        self._clock_was_right = True
        context.confirm_time(wall, sent)
        return True

    async def read_namespaces(self) -> None:
        """Reads the namespaces, which a node may use only for a limited time (rule 23). Reports a failure."""
        try:
            await self._context.read_namespaces()
        except StoreCallFailed as error:
            self._context.observe(LoadFailed(None, str(error)))
        else:
            self._renew()

    def _renew(self) -> None:
        if self._last_ok is not None:
            lease_until = self._last_ok + self._context.limits.node_lease_us
            self._context.lease_until = min(lease_until, self._context.namespaces_until)
            self._dispatcher.renew(self._context.lease_until)
