"""`python -m tests.simulation.batched SEEDS …`: the simulation with batches of callbacks in every seed."""

from __future__ import annotations

from functools import partial

from .runner import main
from .world import World

if __name__ == "__main__":
    raise SystemExit(main(partial(World, batched=True), "tests.simulation.batched"))
