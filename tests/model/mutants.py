"""`python -m tests.model.mutants [NAME…] [--runs N]`: does the model notice each rule that is broken?"""

from __future__ import annotations

import argparse

from .rules import Mutant
from .world import World


def hunt(mutant: Mutant, runs: int) -> tuple[int, str] | None:
    """The first seed, from the mutant's own on, that shows the broken rule, and the violation; None if no run does."""
    for seed in range(mutant.seed, mutant.seed + runs):
        if (violation := World(seed, mutant).run()) is not None:
            return seed, violation
    return None


def main() -> int:
    """The command; 1 when a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.model.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--runs", type=int, default=20_000, help="runs for each, at most")
    options = parser.parse_args()
    survivors = []
    for mutant in Mutant:
        if options.names and mutant.name not in options.names:
            continue
        found = hunt(mutant, options.runs)
        if found is None:
            survivors.append(mutant.name)
        shown = "SURVIVED" if found is None else f"seed {found[0]:6}  {found[1]}"
        print(f"rule {mutant.rule:2}  {mutant.name:34} {shown}", flush=True)
    print(f"{len(survivors)} survived: {survivors}" if survivors else "all caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
