"""`python -m tests.model [RUNS] [--first N] [--mutant NAME]`: plays seeds, and prints the trace of the first violation."""

from __future__ import annotations

import argparse

from .rules import Mutant
from .world import World

_TRACE_LINES = 80


def trace_of(seed: int, mutant: Mutant | None = None) -> list[str]:
    """What happens in a run, line by line."""
    world = World(seed, mutant)
    world.trace = []
    world.run()
    return world.trace


def main() -> int:
    """The command; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=10_000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--mutant", choices=[each.name for each in Mutant], help="the rule to break")
    options = parser.parse_args()
    mutant = Mutant[options.mutant] if options.mutant else None
    fired = repeats = 0
    for seed in range(options.first, options.first + options.runs):
        world = World(seed, mutant)
        if (violation := world.run()) is not None:
            print(*trace_of(seed, mutant)[-_TRACE_LINES:], sep="\n")
            print(f"seed {seed}: {violation}")
            return 1
        fired += world.ledger.fired
        repeats += world.ledger.repeats
    print(f"{options.runs} runs, {fired} calls of which {repeats} were repeats after a fault: every promise was kept")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
