"""Which node owns each shard and which should, as this node sees it. The view may be wrong for a while; safety does not
depend on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from tocsin.model.errors import StoreCallFailed
from tocsin.ports.forward import Owner
from tocsin.ports.observer import ClusterSecretDiffers, LoadFailed, NodeNameShared
from tocsin.ports.store import ShardState
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.lease import NodeLease
from tocsin.timers.engine.membership import Membership
from tocsin.timers.engine.shard import Shard

SECRET_REMEDY = (
    "set the cluster.secret of the nodes that started earlier and restart it; to replace the secret, name the former one in "
    "cluster.secret_former meanwhile"
)


class ObservedPlacement:
    """The rows of shards and members as last read; implements the port Placement. `owned` has the shards that this node
    owns, by id."""

    def __init__(
        self,
        context: Context,
        membership: Membership,
        lease: NodeLease,
        owned: Mapping[int, Shard],
        total_shards: int,
    ) -> None:
        self.membership = membership
        self.states: dict[int, ShardState] = {}
        #: Whether this node has watched the others for long enough to take its share of the shards.
        self.joined = False
        #: Called when this node has taken or released a shard, so that other nodes read the ownership again.
        self.announce: Callable[[], None] | None = None
        #: Set when the ownership should be read again soon.
        self.refresh_requested = asyncio.Event()
        self._context = context
        self._lease = lease
        self._owned = owned
        self._total_shards = total_shards
        # When the rows of the shards were last read (boot time), and whether they are known to be outdated.
        self._shards_read_at = 0
        self._outdated = True
        self._watchers: list[Callable[[], None]] = []
        # When each name that several nodes share was last reported, in boot time.
        self._names_reported: dict[str, int] = {}
        self._secrets_reported: set[bytes] = set()

    async def read(self) -> bool:
        """Reads the members from the store, and the shards if they may have changed; False if that failed."""
        context = self._context
        try:
            if self._may_skip_shards():
                await self._read_members()
            # Somebody has joined, is leaving or fell silent: what follows from it needs the shards as they are now.
            if not self._may_skip_shards():
                await self._read_shards()
                await self._read_members()
        except StoreCallFailed as error:
            self._outdated = True
            context.observe(LoadFailed(None, str(error)))
            return False
        boot_us = context.clock.boottime_us()
        self._report_shared_names(boot_us)
        self._report_secrets()
        self.joined = self.joined or self.settled(boot_us)
        return True

    def _may_skip_shards(self) -> bool:
        """Whether the shards as last read will do: each has the owner that it should have, and nobody has noticed anything
        else since. That changes with the members, which are read all the time, or an owner that loses its claim refuses
        writes, which requests another read. With hundreds of nodes, reading a thousand rows at each heartbeat of each node
        would keep several cores of the database busy."""
        age_us = self._context.clock.boottime_us() - self._shards_read_at
        if self._outdated or age_us >= self._context.limits.ownership_reread_interval_us:
            return False
        return all(self._in_place(shard_id) for shard_id in range(self._total_shards))

    def _in_place(self, shard_id: int) -> bool:
        state = self.states.get(shard_id)
        if state is None or state.owner is None or state.owner != self.membership.wanted(shard_id):
            return False
        return state.owner != self.incarnation or shard_id in self._owned

    async def _read_shards(self) -> None:
        """Reads the shards. The members have to be read after it: an owner writes its member row before it claims, so an
        owner without a row has left for good."""
        context = self._context
        self._outdated, began_at = False, context.clock.boottime_us()
        states = await context.bounded(context.store.shards())
        self.states, self._shards_read_at = {state.shard_id: state for state in states}, began_at

    async def _read_members(self) -> None:
        context = self._context
        self.membership.observe(await context.bounded(context.store.members()), context.clock.boottime_us())

    def _report_shared_names(self, boot_us: int) -> None:
        interval = self._context.limits.duplicate_name_warning_interval_us
        self._names_reported = {name: at for name, at in self._names_reported.items() if boot_us - at < interval}
        for name, incarnations in self.membership.shared_names().items():
            if name not in self._names_reported:
                self._names_reported[name] = boot_us
                self._context.observe(NodeNameShared(name, ", ".join(each.hex() for each in incarnations)))

    def _report_secrets(self) -> None:
        found = self.membership.with_another_secret()
        for member in found:
            if member.incarnation not in self._secrets_reported:
                self._context.observe(ClusterSecretDiffers(member.node, member.incarnation.hex(), SECRET_REMEDY))
        self._secrets_reported = {member.incarnation for member in found}

    # ------------------------------------------------------------------ decisions

    def wanted(self, shard_id: int) -> bool:
        """Whether this node should own the shard. One that is leaving still should where no other node stays."""
        if self._context.store.capabilities.exclusive:
            return True
        wanted = self.membership.wanted(shard_id)
        return wanted == self.incarnation or (wanted is None and self._lease.leaving)

    def settled(self, boot_us: int) -> bool:
        """Whether this node may act on its view: its heartbeats succeed, and no member has joined for a while."""
        if self._context.store.capabilities.exclusive:
            return True
        if not self._lease.in_touch(boot_us):
            return False
        alone = not self.joined and self.membership.alone()
        return alone or self.membership.stable_for_us(boot_us) >= self._context.limits.member_timeout_us

    def may_claim(self, shard_id: int, boot_us: int) -> bool:
        """Whether this node may claim the shard."""
        state = self.state(shard_id)
        if state.owner in (None, self.incarnation):
            # A released shard's clients wait for its next owner; a wrong view costs only another hand-over.
            return self.settled(boot_us) or (self.joined and self._lease.in_touch(boot_us))
        return self.settled(boot_us) and not self.owner_lives(state, boot_us)

    def owner_lives(self, state: ShardState, boot_us: int) -> bool:
        """Whether the shard belongs to another node that is not presumed dead. One without a member row has left."""
        if state.owner in (None, self.incarnation) or self._context.store.capabilities.exclusive:
            return False
        return self.membership.knows(state.owner) and self.presumed_dead(state, boot_us) is None

    def presumed_dead(self, state: ShardState, boot_us: int) -> tuple[bytes, int] | None:
        """(incarnation, counter) of another owner whose counter stands still, for the store to compare at the claim."""
        if state.owner in (None, self.incarnation) or self._context.store.capabilities.exclusive:
            return None
        return self.membership.presumed_dead(state.owner, boot_us)

    # ------------------------------------------------------------------ the port Placement

    @property
    def incarnation(self) -> bytes:
        """The id of this start of this node."""
        return self._context.incarnation

    def owner(self, shard_id: int) -> Owner | None:
        """The shard's owner, this node included; None while none is known."""
        here = self._owned.get(shard_id)
        if here is not None and here.window is not None:
            return Owner(self.incarnation, here.window.epoch, "")
        state = self.state(shard_id)
        if state.owner in (None, self.incarnation):
            return None
        return Owner(state.owner, state.epoch, self.membership.address(state.owner))

    def refresh(self) -> None:
        """Requests another read of the ownership soon; watchers are notified after it."""
        self._outdated = True
        self.refresh_requested.set()

    def watch(self, refreshed: Callable[[], None]) -> None:
        """Has `refreshed` called after each read of the ownership, and after each change on this node."""
        self._watchers.append(refreshed)

    def address(self, incarnation: bytes) -> str:
        """The address at which the member takes requests of other nodes; empty if it takes none or is unknown."""
        return self.membership.address(incarnation)

    def name(self, incarnation: bytes) -> str:
        """The member's name, which its next start has, too; empty if it is unknown."""
        return self.membership.name(incarnation)

    def secret_marks(self, incarnation: bytes) -> Collection[str]:
        """The marks of the secrets by which the member knows other nodes; empty if it announces none."""
        return self.membership.secret_marks(incarnation)

    def others(self) -> Mapping[bytes, str]:
        """The addresses of the other living members that have one, by incarnation."""
        living = (m.incarnation for m in self.membership.members() if self.membership.alive(m.incarnation))
        found = {incarnation: self.membership.address(incarnation) for incarnation in living}
        return {i: address for i, address in found.items() if address and i != self.incarnation}

    def all_others(self) -> set[bytes] | None:
        """All other members that have an address, also those that are presumed dead; None: the members were not read yet."""
        if not self.membership.was_read:
            return None
        found = {member.incarnation for member in self.membership.members() if self.address(member.incarnation)}
        return found - {self.incarnation}

    def without_owner(self, total_shards: int) -> int:
        """How many of the shards no living node owns, as last read."""
        return sum(not self._has_owner(shard_id) for shard_id in range(total_shards))

    def _has_owner(self, shard_id: int) -> bool:
        owner = self.owner(shard_id)
        return owner is not None and (owner.incarnation == self.incarnation or self.membership.alive(owner.incarnation))

    # ------------------------------------------------------------------ what changes

    def state(self, shard_id: int) -> ShardState:
        """The shard as last read; without an owner before it was ever claimed."""
        return self.states.get(shard_id) or ShardState(shard_id, 0, None)

    def released(self, shard_id: int, epoch: int) -> None:
        """Notes that this node has released the shard, which a read begun before may not show."""
        state = self.states.get(shard_id)
        if state is not None and state.epoch <= epoch:
            self.states[shard_id] = ShardState(shard_id, epoch, None)
        self.changed_here()

    def changed_here(self) -> None:
        """Announces that this node has taken or released a shard."""
        if self.announce is not None:
            self.announce()
        self.notify()

    def notify(self) -> None:
        """Notifies the watchers."""
        for refreshed in self._watchers:
            refreshed()
