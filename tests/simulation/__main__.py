"""`python -m tests.simulation SEEDS [--first N] [--jobs N]`: runs seeds, prints progress, and the trace of a failure."""

from __future__ import annotations

from .runner import main
from .world import World

if __name__ == "__main__":
    raise SystemExit(main(World, "tests.simulation"))
