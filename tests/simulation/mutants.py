"""`python -m tests.simulation.mutants [NAME…] [--seeds N] [--seconds S]`: does the proof notice each dropped rule?

Each mutation is applied to a copy of the package, which a subprocess runs against the interleavings and the simulation.
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

from .mutations import MUTATIONS, SOURCE, Mutation, apply

_ROOT = SOURCE.parents[1]


def hunt(mutation: Mutation, *, seeds: int, seconds: float) -> tuple[str, str]:
    """(by what it was caught, and after how many seeds, with which words); ("", "") for a survivor."""
    with tempfile.TemporaryDirectory(prefix="tocsin-mutant-") as folder:
        copy = Path(folder) / "tocsin"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "static", "node_modules"))
        apply(mutation, copy)
        for module, fixed in mutation.proofs:
            count = fixed or (10 * seeds if module == "tests.properties" else seeds)
            command = [sys.executable, "-m", module, str(count), "--tail", "0"]
            environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                done = subprocess.run(
                    command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
                )
            except subprocess.TimeoutExpired:
                continue
            if done.returncode:
                words = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
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
        default=1_500,
        help="seeds of the simulation for each, at most; ten times as many interleavings",
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="time for each, at most")
    options = parser.parse_args()
    broken, words = hunt(Mutation("nothing", 0, []), seeds=options.seeds, seconds=options.seconds)
    if broken:
        print(f"the unchanged source fails, so that nothing can be told: {words}")
        return 1
    survivors = []
    for mutation in [*MUTATIONS, *agent.MUTATIONS]:
        if options.names and mutation.name not in options.names:
            continue
        began = time.perf_counter()
        caught_by, words = hunt(mutation, seeds=options.seeds, seconds=options.seconds)
        if not caught_by:
            survivors.append(mutation.name)
        took = time.perf_counter() - began
        rule = f"rule {mutation.rule}" if mutation.rule else "agent" if mutation.proofs is agent.PROOFS else "store"
        print(f"{mutation.name:52} {rule:8} {caught_by or 'SURVIVED':11} {took:5.1f} s  {words[:110]}", flush=True)
    print(f"{len(survivors)} survived: {survivors}" if survivors else "all caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
