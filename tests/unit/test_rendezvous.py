"""Which node should own which shard, where the answers are remembered."""

from __future__ import annotations

import random

from tocsin.timers.engine.rendezvous import Rendezvous


def test_remembered_answers_are_those_of_a_fresh_computation_whatever_joins_leaves_or_is_renamed() -> None:
    rng = random.Random(1)
    kept, candidates, shards = Rendezvous(), dict[bytes, str](), range(40)
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
        fresh = Rendezvous()
        fresh.update(candidates)
        for shard_id in rng.sample(shards, 15):
            assert kept.best(shard_id) == fresh.best(shard_id), f"step {step}, shard {shard_id}"


def test_a_node_that_joins_or_leaves_moves_only_its_own_share() -> None:
    candidates = {bytes([number]): f"node-{number}" for number in range(200)}
    rendezvous = Rendezvous()
    rendezvous.update(candidates)
    before = {shard_id: rendezvous.best(shard_id) for shard_id in range(1_024)}
    without = {incarnation: node for incarnation, node in candidates.items() if incarnation[0] >= 10}
    rendezvous.update(without)
    moved = {shard_id for shard_id, best in before.items() if rendezvous.best(shard_id) != best}
    assert moved == {shard_id for shard_id, best in before.items() if best is not None and best[0] < 10}
    rendezvous.update(candidates)
    assert {shard_id: rendezvous.best(shard_id) for shard_id in range(1_024)} == before


def test_without_candidates_no_node_should_own_a_shard() -> None:
    rendezvous = Rendezvous()
    assert rendezvous.best(0) is None
    rendezvous.update({b"a": "a"})
    assert rendezvous.best(0) == b"a"
    rendezvous.update({})
    assert rendezvous.best(0) is None
