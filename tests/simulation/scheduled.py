"""`python -m tests.simulation.scheduled SEEDS …`: the simulation with schedules in every seed."""

from __future__ import annotations

from functools import partial

from .runner import main
from .world import World

if __name__ == "__main__":
    raise SystemExit(main(partial(World, scheduled=True), "tests.simulation.scheduled"))
