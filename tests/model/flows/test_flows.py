"""The model of flow control keeps its promises, and notices each rule that is broken. `make model` plays many more seeds."""

from __future__ import annotations

import pytest

from .__main__ import hunt
from .rules import Mutant
from .world import World

_RUNS = 300


def test_limits_hold_under_faults() -> None:
    attempts = homes = 0
    for seed in range(_RUNS):
        world = World(seed)
        violation = world.run()
        assert violation is None, f"seed {seed}: {violation} (python -m tests.model.flows 1 --first {seed} shows it)"
        attempts, homes = attempts + world.attempts, homes + world.homes
    # Otherwise nothing was tried.
    assert attempts > 5 * _RUNS and homes > 2 * _RUNS


@pytest.mark.parametrize("mutant", Mutant, ids=lambda mutant: mutant.name)
def test_broken_rule_is_noticed(mutant: Mutant) -> None:
    assert hunt(mutant, 100) is not None
