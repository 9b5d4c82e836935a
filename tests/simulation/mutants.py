"""`python -m tests.simulation.mutants [NAME…] [--seeds N] [--seconds S]`: does the proof notice each dropped rule?

Each mutation is applied to a copy of the package, which a subprocess runs against the tests that the mutation names, the
interleavings and the simulation, with as many seeds as `make test`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.agent_simulation import mutations as agent

from .mutation import SOURCE, Mutation, apply
from .mutations import MUTATIONS

_ROOT = SOURCE.parents[1]


def hunt(mutation: Mutation, *, seeds: int, seconds: float) -> tuple[str, str]:
    """(by what it was caught, and with which words); ("", "") for a survivor."""
    with tempfile.TemporaryDirectory(prefix="tocsin-mutant-") as folder:
        copy = Path(folder) / "tocsin"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "static", "node_modules"))
        apply(mutation, copy)
        programs = [(module, [str(count or seeds), "--tail", "0"], "seed ") for module, count in mutation.proofs]
        if mutation.tests:
            programs.insert(0, ("pytest", ["-q", "-x", "-p", "no:cacheprovider", *mutation.tests], "FAILED "))
        for module, arguments, mark in programs:
            command = [sys.executable, "-m", module, *arguments]
            environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                done = subprocess.run(
                    command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
                )
            except subprocess.TimeoutExpired:
                continue
            if done.returncode:
                words = [line for line in done.stdout.splitlines() if line.startswith(mark)]
                if not words:
                    raise RuntimeError(f"{mutation.name}: {module} did not run: {done.stdout}{done.stderr[-2000:]}")
                return module.rpartition(".")[2], words[0]
    return "", ""


def main() -> int:
    """The command; 1 when a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these mutations")
    parser.add_argument(
        "--seeds",
        type=int,
        default=300,
        help="seeds of the simulation for each, at most",
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="time for each program, at most")
    options = parser.parse_args()
    chosen = [each for each in (*MUTATIONS, *agent.MUTATIONS) if not options.names or each.name in options.names]
    # Where tests notice all of them, seeds need not be tried.
    proofs = {proof for each in chosen if not each.tests for proof in each.proofs}
    tests = {test for each in chosen for test in each.tests}
    unchanged = Mutation("nothing", 0, [], tuple(sorted(proofs)), tuple(sorted(tests)))
    broken, words = hunt(unchanged, seeds=options.seeds, seconds=options.seconds)
    if broken:
        print(f"the unchanged source fails, so that nothing can be told: {words}")
        return 1
    survivors = []
    for mutation in chosen:
        began = time.perf_counter()
        caught_by, words = hunt(mutation, seeds=options.seeds, seconds=options.seconds)
        if not caught_by:
            survivors.append(mutation.name)
        took = time.perf_counter() - began
        rule = f"rule {mutation.rule}" if mutation.rule else "agent" if mutation.proofs is agent.PROOFS else ""
        print(f"{mutation.name:52} {rule:8} {caught_by or 'SURVIVED':11} {took:5.1f} s  {words[:110]}", flush=True)
    print(f"{len(survivors)} survived: {survivors}" if survivors else "all caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
