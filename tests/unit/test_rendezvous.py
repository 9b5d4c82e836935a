"""Which node should own which shard: equal shares, and what a change of the nodes moves."""

from __future__ import annotations

import random
from collections import Counter

from tests.support.cases import each

from tocsin.timers.engine.rendezvous import Rendezvous


def owners(candidates: dict[bytes, str], shards: int) -> list[bytes | None]:
    rendezvous = Rendezvous(shards)
    rendezvous.update(candidates)
    return [rendezvous.owner(shard_id) for shard_id in range(shards)]


def test_remembered_answers_are_those_of_a_fresh_computation_whatever_joins_leaves_or_is_renamed() -> None:
    rng = random.Random(1)
    kept, candidates, shards = Rendezvous(40), dict[bytes, str](), 40
    for step in range(300):
        candidates = dict(candidates)
        for _ in range(rng.choice((0, 1, 1, 3))):
            incarnation = rng.randbytes(1)
            if rng.random() < 0.5:
                candidates.pop(incarnation, None)
            else:
                # Names are shared and change.
                candidates[incarnation] = f"node-{rng.randrange(8)}"
        kept.update(candidates)
        if rng.random() < 0.7:
            fresh = owners(candidates, shards)
            assert [kept.owner(shard_id) for shard_id in range(shards)] == fresh, f"step {step}"


@each("shards", [1, 16, 37, 256])
def test_shares_differ_by_one_shard_at_most(shards: int) -> None:
    for nodes in (1, 2, 3, 5, 8, 16, 20, 100):
        # Names as a deployment has them, which differ in one digit.
        shares = Counter(owners({bytes([number]): f"host:{8_080 + number}" for number in range(nodes)}, shards))
        least, more = divmod(shards, nodes)
        assert Counter(shares.values()) == Counter({least: nodes - more if least else 0, least + 1: more}), nodes


@each("nodes, shards, most", [(3, 16, 8), (4, 64, 24), (12, 256, 40), (100, 1_024, 60)])
def test_a_node_that_joins_or_leaves_moves_little_else(nodes: int, shards: int, most: int) -> None:
    for cluster in range(10):
        candidates = {bytes([number]): f"{cluster}-node-{number}" for number in range(nodes)}
        before = owners(candidates, shards)
        del candidates[b"\0"]
        after = owners(candidates, shards)
        assert sum(new != old for new, old in zip(after, before, strict=True)) <= most


def test_without_candidates_no_node_should_own_a_shard() -> None:
    rendezvous = Rendezvous(1)
    assert rendezvous.owner(0) is None
    rendezvous.update({b"a": "a"})
    assert rendezvous.owner(0) == b"a"
    rendezvous.update({})
    assert rendezvous.owner(0) is None
