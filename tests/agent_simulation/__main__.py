"""`python -m tests.agent_simulation SEEDS [--first N] [--jobs N]` runs seeds and prints the trace of a failure."""

from __future__ import annotations

from tests.simulation.runner import main

from .world import World

if __name__ == "__main__":
    raise SystemExit(main(World, "tests.agent_simulation"))
