"""The simulation with flows in each seed: `python -m tests.simulation.flowed 1000 --jobs 2`."""

from __future__ import annotations

import sys
from functools import partial

from .runner import main
from .world import World

if __name__ == "__main__":
    sys.exit(main(partial(World, flowed=True), "tests.simulation.flowed"))
