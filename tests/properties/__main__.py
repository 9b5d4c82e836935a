"""`python -m tests.properties SEEDS [--first N] [--jobs N]`: random interleavings of the window."""

from __future__ import annotations

from tests.properties.interleavings import Interleaving
from tests.simulation.runner import main

if __name__ == "__main__":
    raise SystemExit(main(Interleaving, "tests.properties"))
