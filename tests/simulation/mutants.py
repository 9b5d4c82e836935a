"""`python -m tests.simulation.mutants [NAME…] [--seeds N] [--seconds S]`: does the proof notice each dropped rule?

Each mutation is applied to a copy of the package, which a subprocess runs against the tests that the mutation names, the
interleavings and the simulation, with as many seeds as `make test-all`. A mutation whose own code fails, because it has an
unknown name, proves nothing: it counts as broken, not as caught.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.agent_simulation import mutations as agent

from .mutation import SOURCE, Mutation, apply, misfits
from .mutations import MUTATIONS

_ROOT = SOURCE.parents[1]
_BROKEN = "BROKEN"
_OWN_ERROR = re.compile(
    r"\b(NameError|UnboundLocalError|SyntaxError|IndentationError|ImportError|ModuleNotFoundError)\b|"
    r"(?<!'NoneType' object) has no attribute '(\w+)'"
)


def hunt(mutation: Mutation, *, seeds: int, seconds: float) -> tuple[str, str]:
    """(by what it was caught, and with which words); ("", "") for a survivor; ("BROKEN", why) where its own code failed."""
    with tempfile.TemporaryDirectory(prefix="tocsin-mutant-") as folder:
        copy = Path(folder) / "tocsin"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "static", "node_modules"))
        apply(mutation, copy)
        programs = [(module, [str(count or seeds), "--tail", "0"]) for module, count in mutation.proofs]
        if mutation.tests:
            programs.insert(0, ("pytest", ["-q", "-x", "-p", "no:cacheprovider", *mutation.tests]))
        for module, arguments in programs:
            command = [sys.executable, "-m", module, *arguments]
            environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                done = subprocess.run(
                    command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
                )
            except subprocess.TimeoutExpired:
                continue
            if done.returncode:
                return _judged(mutation, module, done)
    return "", ""


def _judged(mutation: Mutation, module: str, failed: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    lines = failed.stdout.splitlines()
    words = [line for line in lines if line.startswith(("FAILED ", "seed "))]
    if not words:
        return _BROKEN, f"{module} did not run: {failed.stdout[-1000:]}{failed.stderr[-2000:]}"
    if own := [line for line in lines if line.startswith(("E ", "seed ")) and _is_own_error(mutation, line)]:
        return _BROKEN, own[0]
    return module.rpartition(".")[2], words[0][:110]


def _is_own_error(mutation: Mutation, line: str) -> bool:
    """Whether the line is about a name that isn't defined, or an attribute that the mutation's code asks for."""
    found = _OWN_ERROR.search(line)
    return found is not None and (found[2] is None or any(found[2] in edit.code for edit in mutation.edits))


def main() -> int:
    """The command; 1 when a mutant survives or is broken."""
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
    if unknown := set(options.names) - {each.name for each in chosen}:
        parser.error(f"there are no mutations {sorted(unknown)}")
    if unfit := [fault for each in chosen for fault in misfits(each)]:
        print(*unfit, sep="\n")
        return 1
    # Where tests notice all of them, seeds need not be tried.
    proofs = {proof for each in chosen if not each.tests for proof in each.proofs}
    tests = {test for each in chosen for test in each.tests}
    unchanged = Mutation("nothing", 0, (), tuple(sorted(proofs)), tuple(sorted(tests)))
    broken, words = hunt(unchanged, seeds=options.seeds, seconds=options.seconds)
    if broken:
        print(f"the unchanged source fails, so that the hunt would prove nothing: {words}")
        return 1
    missed = []
    for mutation in chosen:
        began = time.perf_counter()
        caught_by, words = hunt(mutation, seeds=options.seeds, seconds=options.seconds)
        if caught_by in ("", _BROKEN):
            missed.append(mutation.name)
        took = time.perf_counter() - began
        rule = f"rule {mutation.rule}" if mutation.rule else "agent" if mutation.proofs is agent.PROOFS else ""
        print(f"{mutation.name:72} {rule:8} {caught_by or 'SURVIVED':16} {took:5.1f} s  {words}", flush=True)
    print(f"{len(missed)} survived or broken: {missed}" if missed else "all caught")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
