"""The protocol's model keeps its promises, and notices each rule that is broken. `make model` plays many more seeds."""

from __future__ import annotations

import pytest

from .mutants import hunt
from .rules import Mutant
from .world import World

_RUNS = 500
#: Runs in which a mutant has to be noticed, from a seed on that is known to show it.
_HUNT = 2_000


def test_protocol_keeps_its_promises_under_faults() -> None:
    fired = repeats = epochs = 0
    for seed in range(_RUNS):
        world = World(seed)
        violation = world.run()
        assert violation is None, f"seed {seed}: {violation} (python -m tests.model 1 --first {seed} shows it)"
        fired += world.ledger.fired
        repeats += world.ledger.repeats
        epochs += world.store.epoch
    # Otherwise nothing was tried.
    assert fired > 2 * _RUNS and repeats > _RUNS / 10 and epochs > 2 * _RUNS


@pytest.mark.parametrize("mutant", Mutant, ids=lambda mutant: mutant.name)
def test_broken_rule_is_noticed(mutant: Mutant) -> None:
    assert hunt(mutant, _HUNT) is not None


def test_seed_is_reproducible() -> None:
    def replayed() -> list[str]:
        world = World(7)
        world.trace = []
        world.run()
        return world.trace

    assert replayed() == replayed() != []
