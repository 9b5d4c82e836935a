"""The database that the nodes of a simulation share, with the weakest reads and transactions that any of our stores has."""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from tocsin.model.errors import OutcomeUnknown
from tocsin.ports.clock import Clock
from tocsin.ports.store import Applied, Loaded, ShardBatch
from tocsin.stores.memory import MemoryStore, _check_batches

#: Why the outcome of a batch is unknown that was written in part.
BROKEN_OFF = "a part of the batch was written"

#: How long the rows of a transaction may take effect after its fence, in seconds. Milliseconds in truth; longer here, so that
#: something happens meanwhile.
_SPREAD_S_MAX = 2.0


class WeakStore(MemoryStore):
    """Some transactions are applied piece by piece, as DynamoDB does: the fence and a part of the rows first, the others
    later, and reads see whatever is there. A claim in between succeeds. It is answered when nothing is under way any more,
    or its outcome is unknown, and it stands all the same; other writes to the shard wait.

    Some batches are cut into transactions, of which only the first ones are made, as on DynamoDB when a later one fails. A
    load may be two reads, as on Cassandra: `load` has the entries, and `led_to` the rows at a later moment."""

    def __init__(self, clock: Clock, rng: random.Random, rng_of_breaks: random.Random) -> None:
        super().__init__(clock)
        #: The share of batches that are applied piece by piece, and of claims in between that remain unanswered.
        self.spread_rate = 0.0
        self.unsettled_rate = 0.5
        #: The share of batches that break off.
        self.break_rate = 0.0
        #: Whether a load is two reads, and how long the second one waits at most, in seconds.
        self.reads_apart = False
        self.apart_s = 0.0
        self._rng = rng
        self._rng_of_breaks = rng_of_breaks
        # What is still to be applied of each shard's last transaction, and when (loop time).
        self._under_way: dict[int, tuple[ShardBatch, float]] = {}

    def unsettled_s(self, shard_ids: Sequence[int]) -> float:
        """How long until nothing of these shards is under way any more, in seconds."""
        now = asyncio.get_running_loop().time()
        return max((self._under_way[each][1] - now for each in shard_ids if each in self._under_way), default=0.0)

    def is_settled(self, shard_id: int) -> bool:
        """Whether no transaction of the shard is under way."""
        return shard_id not in self._under_way

    def counter(self, incarnation: bytes) -> int | None:
        """The member's heartbeat counter."""
        member = self._members.get(incarnation)
        return None if member is None else member.counter

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        epoch = await super().claim(shard_id, expected_epoch=expected_epoch, owner=owner, presumed_dead=presumed_dead)
        if epoch is not None and not self.is_settled(shard_id) and self._rng.random() < self.unsettled_rate:
            raise OutcomeUnknown("a transaction of the former owner has not ended")
        return epoch

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        self._finish(shard_id)
        return await super().release(shard_id, epoch=epoch, owner=owner)

    async def apply(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        _check_batches(batches)
        for batch in batches:
            self._finish(batch.shard_id)
        chunks = [self._first_chunk(batch) for batch in batches]
        applied = await self.transact([chunk or batch for batch, chunk in zip(batches, chunks, strict=True)])
        if any(chunks):
            raise OutcomeUnknown(BROKEN_OFF)
        return applied

    async def transact(self, batches: Sequence[ShardBatch]) -> list[Applied]:
        """Writes the batches, each as one transaction."""
        return await super().apply([self._first_piece(batch) for batch in batches])

    async def led_to(self, shard_id: int, entries: Loaded) -> Loaded:
        """The page with the rows that its entries lead to now: without those that were moved, suspended, resumed or deleted
        since."""
        live = self._shards[shard_id].live if entries.rows else {}
        rows = [
            row
            for entry in entries.rows
            if (row := live.get(entry.uuid)) is not None
            and row.key == entry.key
            and (row.suspended is None) == (entry.suspended is None)
        ]
        return Loaded(rows, entries.complete_to)

    def _first_chunk(self, batch: ShardBatch) -> ShardBatch | None:
        """What is written of a batch that breaks off: all that happens to some of its timers, with what belongs to them,
        those that are not deleted first. None if it doesn't break off."""
        if self._rng_of_breaks.random() >= self.break_rate:
            return None
        shard = self._fenced(batch.shard_id, batch.epoch, batch.owner)
        if shard is None:
            return None

        def subject(uuid: bytes) -> bytes:
            return batch.together.get(uuid, uuid)

        rows = (batch.upserts, batch.history, batch.runs, batch.failures)
        written = [subject(row.uuid) for some in rows for row in some]
        written += [uuid for uuid, _ in batch.resolved]
        covered = () if batch.delete_to is None else shard.keys[: bisect_right(shard.keys, batch.delete_to)]
        deleted = {*batch.deletes, *(uuid for _, uuid in covered)} - {row.uuid for row in batch.upserts}
        uuids = list(
            dict.fromkeys([*(uuid for uuid in written if uuid not in deleted), *sorted(map(subject, deleted))])
        )
        if len(uuids) < 2:
            return None
        made = set(uuids[: self._rng_of_breaks.randint(1, len(uuids) - 1)])
        return ShardBatch(
            batch.shard_id,
            batch.epoch,
            batch.owner,
            upserts=[row for row in batch.upserts if subject(row.uuid) in made],
            deletes=sorted(uuid for uuid in deleted if subject(uuid) in made),
            history=[row for row in batch.history if row.uuid in made],
            runs=[row for row in batch.runs if row.uuid in made],
            failures=[row for row in batch.failures if row.uuid in made],
            resolved=[each for each in batch.resolved if each[0] in made],
        )

    def _first_piece(self, batch: ShardBatch) -> ShardBatch:
        """What is applied at once; the rest follows if the fence holds."""
        if self._rng.random() >= self.spread_rate or self._fenced(batch.shard_id, batch.epoch, batch.owner) is None:
            return batch
        loop, delay_s = asyncio.get_running_loop(), self._rng.uniform(0.0, _SPREAD_S_MAX)
        at_once = self._rng.randint(0, len(batch.upserts))
        rest = replace(batch, upserts=batch.upserts[at_once:])
        self._under_way[batch.shard_id] = rest, loop.time() + delay_s
        loop.call_later(delay_s, self._finish, batch.shard_id, rest)
        return ShardBatch(batch.shard_id, batch.epoch, batch.owner, upserts=batch.upserts[:at_once])

    def _finish(self, shard_id: int, only: ShardBatch | None = None) -> None:
        """Applies what is left of the shard's last transaction; with `only`, if it is this one's."""
        rest, _ = self._under_way.get(shard_id, (None, 0.0))
        if rest is not None and only in (None, rest):
            del self._under_way[shard_id]
            self._take(self._shards[shard_id], rest)
