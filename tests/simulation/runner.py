"""Runs many seeds in parallel processes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from typing import Any, Protocol

from .ledger import Violation

_CHUNK_SEEDS = 20


class Run(Protocol):
    """A seeded run with a trace whose lines begin with the time."""

    trace: list[tuple[Any, ...]]

    def run(self) -> Violation | None:
        """The violation, or None."""


def run_seed(make: Callable[[int], Run], seed: int) -> tuple[int, str | None]:
    """(seed, violation)."""
    violation = make(seed).run()
    return seed, None if violation is None else str(violation)


def _run_chunk(make: Callable[[int], Run], seeds: range) -> list[tuple[int, str | None]]:
    return [run_seed(make, seed) for seed in seeds]


def _results(make: Callable[[int], Run], seeds: range, jobs: int) -> Iterable[tuple[int, str | None]]:
    chunks = [seeds[i : i + _CHUNK_SEEDS] for i in range(0, len(seeds), _CHUNK_SEEDS)]
    if jobs == 1:
        for chunk in chunks:
            yield from (run_seed(make, seed) for seed in chunk)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for results in pool.map(partial(_run_chunk, make), chunks):
            yield from results


def main(make: Callable[[int], Run], program: str) -> int:
    """The command; 1 when a seed failed."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=__doc__)
    parser.add_argument("seeds", type=int, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many failing seeds")
    parser.add_argument("--tail", type=int, default=80, help="lines of the failing trace to print")
    options = parser.parse_args()
    began = time.perf_counter()
    failed: list[int] = []
    tally = count(1)
    done = 0
    for seed, broken in _results(make, range(options.first, options.first + options.seeds), options.jobs):
        done = next(tally)
        if broken is not None:
            failed.append(seed)
            print(f"seed {seed}: {broken}", flush=True)
            if len(failed) >= options.failures:
                break
        if done % 500 == 0:
            print(f"{done} seeds, {done / (time.perf_counter() - began):.1f} a second", flush=True)
    seconds = time.perf_counter() - began
    print(f"{done} seeds in {seconds:.1f} s ({done / seconds:.1f} a second), {len(failed)} failed: {failed}")
    if failed and options.tail:
        print_tail(make(failed[0]), options.tail)
    return 1 if failed else 0


def print_tail(run: Run, lines: int) -> None:
    """The last lines of a run's trace."""
    run.run()
    for line in run.trace[-lines:]:
        sys.stdout.write(f"{line[0] / 1e6:12.6f}  {' '.join(str(part) for part in line[1:])}\n")
