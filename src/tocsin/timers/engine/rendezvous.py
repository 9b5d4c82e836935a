"""Which node should own which shard: rendezvous hashing (Thaler and Ravishankar 1998) with equal shares, like consistent
hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam 2018). Pure."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Mapping

#: (score, incarnation).
_Choice = tuple[int, bytes]
_MASK = (1 << 64) - 1


class Rendezvous:
    """Gives each shard one of the candidates. All get equally many, or one more: by hashing alone, one of eight nodes would
    have none of 16 shards in two clusters of three.

    Each pair of a shard and a candidate has a score. The pair with the highest comes first, then the next one, unless its
    shard is taken or its candidate has its share. A node that joins or leaves moves its own share, and of other shards a few:
    one of twelve nodes moves 30 of 256 shards instead of 21.

    The best candidate of each shard is remembered, because a node looks at all shards each second, and to compute the scores
    of 200 nodes and 4,096 shards takes half a second of CPU. A change costs what it moves: a candidate that joins is
    compared once for each shard, one that leaves has its own shards computed again, and those shards whose best candidate
    has its share already look for another.
    """

    def __init__(self, shards: int) -> None:
        self._shards = [_hash(f"shard {shard_id}") for shard_id in range(shards)]
        self._hashes: dict[bytes, int] = {}
        self._names: dict[bytes, str] = {}
        # The best choice of each shard; empty before the first is needed.
        self._best: list[_Choice] = []
        # The candidate of each shard; empty after a change.
        self._owners: list[bytes] = []

    def update(self, candidates: Mapping[bytes, str]) -> None:
        """Goes on with these candidates: names by incarnation. Of those with the same name, the one with the greatest
        incarnation counts."""
        newest = {name: incarnation for incarnation, name in sorted(candidates.items())}
        names = {incarnation: name for name, incarnation in newest.items()}
        if names == self._names:
            return
        known = {incarnation for incarnation, name in names.items() if self._names.get(incarnation) == name}
        self._names, self._owners = names, []
        former, self._hashes = self._hashes, {}
        for incarnation, name in names.items():
            self._hashes[incarnation] = former[incarnation] if incarnation in known else _hash(f"node {name}")
        if not known:
            self._best = []
        joined = self._hashes.keys() - known
        for shard_id, best in enumerate(self._best):
            if best[1] not in known:
                self._best[shard_id] = self._choice(shard_id, self._hashes)
            elif joined:
                self._best[shard_id] = max(best, self._choice(shard_id, joined))

    def owner(self, shard_id: int) -> bytes | None:
        """The incarnation of the candidate that should own the shard; None without candidates."""
        if not self._hashes:
            return None
        if not self._owners:
            self._best = self._best or [self._choice(each, self._hashes) for each in range(len(self._shards))]
            self._owners = self._shared()
        return self._owners[shard_id]

    def _shared(self) -> list[bytes]:
        """The owner of each shard."""
        share, larger = divmod(len(self._shards), len(self._hashes))
        counts = dict.fromkeys(self._hashes, 0)
        open_to = set(self._hashes)
        owners = [b""] * len(self._shards)
        queue = [(-best[0], best[1], shard_id) for shard_id, best in enumerate(self._best)]
        heapq.heapify(queue)
        while queue:
            _, incarnation, shard_id = queue[0]
            if incarnation not in open_to:
                score, incarnation = self._choice(shard_id, open_to)
                heapq.heapreplace(queue, (-score, incarnation, shard_id))
                continue
            heapq.heappop(queue)
            owners[shard_id] = incarnation
            counts[incarnation] += 1
            if counts[incarnation] > share:
                larger -= 1
                open_to.discard(incarnation)
            if larger <= 0 and counts[incarnation] >= share:
                # No share is larger any more.
                open_to = {each for each in open_to if counts[each] < share}
        return owners

    def _choice(self, shard_id: int, among: Iterable[bytes]) -> _Choice:
        """The best of these candidates for the shard."""
        shard, hashes = self._shards[shard_id], self._hashes
        return max((_score(shard, hashes[incarnation]), incarnation) for incarnation in among)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _score(shard: int, node: int) -> int:
    """Mixes two hashes by SplitMix64's finalizer (Steele, Lea and Flood 2014); to hash the pair takes four times as long."""
    mixed = shard ^ node
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31
