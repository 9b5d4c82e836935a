"""Which node should own which shard, by rendezvous hashing (Thaler and Ravishankar 1998). Pure."""

from __future__ import annotations

import hashlib


class Rendezvous:
    """The candidate with the highest score for each shard, so that a node that joins or leaves moves only its own share.

    Best candidates are remembered. Otherwise each pass over all shards would compute the score of every candidate for each of
    them: with 200 nodes and 4,096 shards that takes a second of CPU, each second. A change costs what it moves: a candidate
    that joins is compared once for each remembered shard, and one that leaves has only its own shards computed again.
    """

    def __init__(self) -> None:
        # Names by incarnation.
        self._candidates: dict[bytes, str] = {}
        # The best (score, incarnation) of the shards that were asked for.
        self._best: dict[int, tuple[bytes, bytes]] = {}

    def update(self, candidates: dict[bytes, str]) -> None:
        """Goes on with these candidates: names by incarnation."""
        former, self._candidates = self._candidates, candidates
        if candidates == former:
            return
        gone = {incarnation for incarnation, node in former.items() if candidates.get(incarnation) != node}
        if gone:
            self._best = {shard_id: best for shard_id, best in self._best.items() if best[1] not in gone}
        for incarnation, node in candidates.items():
            if former.get(incarnation) != node:
                self._join(incarnation, node)

    def _join(self, incarnation: bytes, node: str) -> None:
        for shard_id, best in self._best.items():
            score = _score(node, shard_id), incarnation
            if score > best:
                self._best[shard_id] = score

    def best(self, shard_id: int) -> bytes | None:
        """The incarnation of the shard's best candidate; None without candidates. Of two with the same name, which have the
        same score, it is the one with the greater incarnation."""
        best = self._best.get(shard_id)
        if best is None:
            scores = ((_score(node, shard_id), incarnation) for incarnation, node in self._candidates.items())
            best = max(scores, default=None)
            if best is None:
                return None
            self._best[shard_id] = best
        return best[1]


def _score(node: str, shard_id: int) -> bytes:
    return hashlib.blake2b(f"{node}\0{shard_id}".encode(), digest_size=16).digest()
