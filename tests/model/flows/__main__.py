"""`python -m tests.model.flows [RUNS|mutants]`: plays seeds and prints the trace of a violation; or breaks each rule."""

from __future__ import annotations

import argparse

from .rules import Mutant
from .world import World

_TRACE_LINES = 60


def hunt(mutant: Mutant, runs: int) -> tuple[int, str] | None:
    """The first seed, from the mutant's own on, that shows the broken rule, and the violation; None if none does."""
    for seed in range(mutant.seed, mutant.seed + runs):
        if (violation := World(seed, mutant).run()) is not None:
            return seed, violation
    return None


def _break_each(runs: int) -> int:
    survived = 0
    for mutant in Mutant:
        found = hunt(mutant, runs)
        survived += found is None
        print(f"{mutant.name:28} {'SURVIVED' if found is None else f'seed {found[0]:6}  {found[1]}'}", flush=True)
    return 1 if survived else 0


def main() -> int:
    """The command; 1 when a promise was broken, or when a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.model.flows", description=__doc__)
    parser.add_argument("runs", nargs="?", default="4000", help="how many seeds, or `mutants`")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--mutant", choices=[each.name for each in Mutant], help="the rule to break")
    options = parser.parse_args()
    if options.runs == "mutants":
        return _break_each(4_000)
    mutant = Mutant[options.mutant] if options.mutant else None
    attempts = homes = 0
    for seed in range(options.first, options.first + int(options.runs)):
        world = World(seed, mutant)
        if (violation := world.run()) is not None:
            again = World(seed, mutant)
            again.trace = []
            again.run()
            print(*again.trace[-_TRACE_LINES:], sep="\n")
            print(f"seed {seed}: {violation}")
            return 1
        attempts, homes = attempts + world.attempts, homes + world.homes
    print(f"{options.runs} runs, {attempts} attempts under {homes} homes: every promise was kept")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
