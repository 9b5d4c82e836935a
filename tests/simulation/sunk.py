"""`python -m tests.simulation.sunk SEEDS …`: the simulation with sinks of events in every seed."""

from __future__ import annotations

from functools import partial

from .runner import main
from .world import World

if __name__ == "__main__":
    raise SystemExit(main(partial(World, sunk=True), "tests.simulation.sunk"))
