"""When the owners of shards could take reports of monitors, so that the next ones know what may have been lost (rule 33).

Each node keeps a record of until when it certainly worked, and of the outages that its shards had before it claimed them.
Where nobody has a monitor, nothing is written.
"""

from __future__ import annotations

import asyncio

import msgspec

from tocsin.administration import decoded, delete_all, encoded, every
from tocsin.model.errors import StoreCallFailed, StoreError
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND
from tocsin.model.monitor import GRACE_US_MAX
from tocsin.ports.observer import HeartbeatFailed
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.monitoring import Outage

#: The records of which monitors there are, and of until when nodes worked.
MONITORS, TENURES = "monitor", "monitor_tenure"
#: How old the record of a living node becomes: an outage seems to begin so much earlier at most.
_INTERVAL_US = 10 * US_PER_SECOND
#: How old what is known of other nodes may be at a claim: less than it takes to presume a node dead.
_KNOWN_FOR_US = 2 * US_PER_SECOND
#: How long a client waits for the next owner of a shard that was handed over, without taking its report for lost.
_WAITED_US_MAX = 3 * US_PER_SECOND
#: How long outages count: longer than any grace.
_KEPT_US = GRACE_US_MAX + 2 * US_PER_DAY
#: Outages of one record, the latest ones; shards that are claimed so soon after another share one.
_OUTAGES_MAX, _TOGETHER_US = 200, 5 * US_PER_SECOND


class ShardsOutage(msgspec.Struct, array_like=True):
    """An outage of some shards."""

    from_us: int
    until_us: int
    shards: list[int]


class Tenure(msgspec.Struct):
    """A node's record: until when it worked, and on which shards; until when it worked on others, which it has released; and
    which outages its shards had before."""

    until: int
    outages: list[ShardsOutage] = []
    owned: list[int] = []
    released: dict[int, int] = {}

    def worked_on(self, shard_id: int) -> int:
        """Until when the node worked on a shard; 0 if it did not."""
        return self.until if shard_id in self.owned else self.released.get(shard_id, 0)

    def spread(self, total_shards: int) -> Tenure:
        """The same for a store with another number of shards. Any of them may have monitors of any of these, so all count as
        shards that the node worked on until the end, and that each outage concerned."""
        everywhere = list(range(total_shards))
        outages = [ShardsOutage(each.from_us, each.until_us, everywhere) for each in self.outages]
        return Tenure(max([self.until, *self.released.values()]), outages, everywhere)


_decoder = msgspec.json.Decoder(Tenure)


class Tenures:
    """This node's record, and those of the others as last read."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._key = context.incarnation.hex()
        self._own = Tenure(0)
        self._others: dict[str, Tenure] = {}
        self._read_at: int | None = None
        self._written_at: int | None = None
        # When this node looked for monitors of others last, in boot time.
        self._sought_at: int | None = None
        # What the record has to have by the next heartbeat, however young it is: how many such changes there were, and are
        # written.
        self._changes = self._written_changes = 0
        self._version: int | None = None
        self._turn = asyncio.Lock()
        # When shards were seen last with another owner that worked, in boot time.
        self._followed: dict[int, int] = {}
        context.outage = self._everywhere

    @property
    def _needed(self) -> bool:
        return self._context.monitors_seen or bool(self._others)

    async def keep(self) -> None:
        """Writes this node's record, if it is time to. Call it at each heartbeat."""
        boot_us, context = self._context.clock.boottime_us(), self._context
        if not self._needed:
            await self._seek(boot_us)
        if not self._needed or boot_us >= context.lease_until:
            return
        young = self._written_at is not None and boot_us - self._written_at < _INTERVAL_US
        if not young or self._changes != self._written_changes:
            try:
                await self._write()
            except StoreError as error:
                context.observe(HeartbeatFailed(f"writing until when this node worked failed: {error}"))

    async def _seek(self, boot_us: int) -> None:
        """Finds out, now and then, whether there are monitors that other nodes have: they may watch schedules of shards that
        this one owns."""
        if self._sought_at is not None and boot_us - self._sought_at < _INTERVAL_US:
            return
        context = self._context
        try:
            (version,) = await context.bounded(context.store.records_versions(MONITORS))
            if version:
                context.monitors_seen = True
            self._sought_at = boot_us
        except StoreError as error:
            context.observe(HeartbeatFailed(f"reading whether there are monitors failed: {error}"))

    async def of(self, shard_id: int) -> tuple[tuple[Outage, ...], int]:
        """The outages of a shard that any node owns, in any order, and until when they are known: until then, its owner
        certainly worked, or an outage is among them. Raises the store's errors."""
        own = next((each for each in self._context.owned() if each.shard_id == shard_id), None)
        if own is not None and own.window is not None and not own.closed:
            return own.window.monitors.outages, self._context.clock.now_us()
        await self._read()
        tenures = (*self._others.values(), self._own)
        outages = {
            Outage(each.from_us, each.until_us)
            for tenure in tenures
            for each in tenure.outages
            if shard_id in each.shards
        }
        return tuple(sorted(outages)), max(each.worked_on(shard_id) for each in tenures)

    def lost(self, shard_id: int, at_us: int) -> None:
        """This node worked on the shard until that instant."""
        self._own.released[shard_id] = at_us

    def followed(self, shard_id: int) -> None:
        """Another node that works owns the shard now. When it releases it, clients' requests wait for the next owner."""
        self._followed[shard_id] = self._context.clock.boottime_us()

    async def claimed(self, shard_id: int, former: bytes | None, lost_at_us: int) -> tuple[Outage, ...]:
        """The outages of a shard that this node has claimed, of which the present one is the last. `former` was its owner,
        None if it was released; this node itself worked on it until `lost_at_us`, 0 if it never did. Raises the store's
        errors."""
        context = self._context
        await self._read()
        if not self._needed:
            return ()
        now_us = context.clock.now_us()
        seen_at = self._followed.pop(shard_id, None)
        waited = seen_at is not None and context.clock.boottime_us() - seen_at < _WAITED_US_MAX
        lossy = former is not None or not waited
        others = self._others.values()
        from_us = max(max((each.worked_on(shard_id) for each in others), default=0), lost_at_us)
        if not from_us:
            # Nobody has recorded that it worked on it. After all others had stopped, nobody did.
            from_us = max((each.until for each in others), default=now_us)
        before = [
            Outage(each.from_us, each.until_us)
            for tenure in (*others, self._own)
            for each in tenure.outages
            if shard_id in each.shards
        ]
        present = Outage(min(from_us, now_us), now_us, lossy)
        if lossy:
            self._add(present, [shard_id])
            await self._write(unless_written_since=context.clock.boottime_us())
        # The shard is this node's only after this. A record without it would have the outage last, if this node died.
        self._changes += 1
        return (*sorted(before), present)

    def _everywhere(self, from_us: int, until_us: int) -> None:
        """The store took nothing for a while, though no shard was lost."""
        outage = Outage(from_us, until_us)
        owned = list(self._context.owned())
        for shard in owned:
            if shard.window is not None:
                shard.window.monitors.add_outage(outage)
        self._add(outage, [shard.shard_id for shard in owned])
        self._changes += 1

    def _add(self, outage: Outage, shards: list[int]) -> None:
        for each in self._own.outages:
            if each.from_us == outage.from_us and outage.until_us - each.until_us < _TOGETHER_US:
                each.until_us = max(each.until_us, outage.until_us)
                each.shards += shards
                return
        old = outage.until_us - _KEPT_US
        kept = [each for each in self._own.outages if each.until_us >= old]
        self._own.outages = [*kept, ShardsOutage(outage.from_us, outage.until_us, shards)][-_OUTAGES_MAX:]

    async def _read(self) -> None:
        """Reads the others' records, unless that was done just now."""
        context = self._context
        async with self._turn:
            boot_us = context.clock.boottime_us()
            if self._read_at is not None and boot_us - self._read_at < _KNOWN_FOR_US:
                return
            found = await context.bounded(self._stored())
            known = {key: tenure for key, tenure in found.items() if key != self._key}
            old = context.clock.now_us() - _KEPT_US
            gone = [key for key, tenure in known.items() if tenure.until < old]
            if gone:
                await context.bounded(delete_all(context.store, TENURES, gone))
            self._others = {key: tenure for key, tenure in known.items() if key not in gone}
            self._read_at = boot_us

    async def _stored(self) -> dict[str, Tenure]:
        records = [record async for record in every(self._context.store, TENURES)]
        return {
            record.key: tenure
            for record in records
            for tenure in decoded(_decoder, TENURES, [record], self._context.observe)
        }

    async def _write(self, unless_written_since: int | None = None) -> None:
        """Writes this node's record; one write for all that wait for it."""
        context = self._context
        async with self._turn:
            if unless_written_since is not None and (self._written_at or -1) > unless_written_since:
                return
            boot_us = context.clock.boottime_us()
            owned = [shard.shard_id for shard in context.owned()]
            released = {shard_id: at for shard_id, at in self._own.released.items() if shard_id not in owned}
            self._own = Tenure(context.clock.now_us(), self._own.outages, owned, released)
            value = encoded(self._own)
            changes = self._changes
            if not await context.bounded(context.store.put_record(TENURES, self._key, value, self._version)):
                # The outcome of a former write was unknown.
                stored = await context.bounded(context.store.record(TENURES, self._key))
                self._version = None if stored is None else stored.version
                await context.bounded(context.store.put_record(TENURES, self._key, value, self._version))
            self._version = (self._version or 0) + 1
            self._written_at, self._written_changes = boot_us, changes

    async def close(self) -> None:
        """The node has released its shards: it worked until now."""
        if self._needed:
            try:
                await self._write()
            except (StoreCallFailed, StoreError) as error:
                self._context.observe(HeartbeatFailed(f"writing until when this node worked failed: {error}"))
