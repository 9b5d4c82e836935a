"""`python -m tests.simulation.debounced SEEDS …`: the simulation with debounced creates in every seed."""

from __future__ import annotations

from functools import partial

from .runner import main
from .world import World

if __name__ == "__main__":
    raise SystemExit(main(partial(World, debounced=True), "tests.simulation.debounced"))
