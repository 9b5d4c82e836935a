"""`python -m bench compare REVISION`: the present working tree beside another revision of the package, in alternating runs.

The revision is checked out into a temporary folder; only the server comes from there. Interpreter, installed dependencies,
load and receiver are the present ones, and so are the built pages.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import processes

ROOT = Path(__file__).parents[1]
_STATIC = Path("src/tocsin/web/pages/static")

#: Named numbers of one run.
Run = dict[str, float]


@contextlib.contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """The sources of a revision. Raises CalledProcessError if git has none of this name."""
    with tempfile.TemporaryDirectory(prefix="tocsin-compare-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(
            ["git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(tree), revision], check=True
        )
        try:
            if (ROOT / _STATIC).exists() and not (tree / _STATIC).exists():
                shutil.copytree(ROOT / _STATIC, tree / _STATIC)
            yield tree / "src"
        finally:
            subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=True)


def compare(
    revision: str, plan: Mapping[str, Callable[[], Run]], rounds: int, results: dict[str, dict[str, list[float]]]
) -> None:
    """Runs the plan on both versions, `rounds` times each; the one that begins alternates. Adds the values of both (`base`,
    `new`) by measurement, in the order of the rounds."""
    with checked_out(revision) as former:
        sources = {"base": former, "new": ROOT / "src"}
        for number in range(rounds):
            for name, run in plan.items():
                for side in sorted(sources, reverse=bool(number % 2)):
                    print(f"round {number + 1} of {rounds}: {name}, {side} …", file=sys.stderr, flush=True)
                    processes.served.source = sources[side]
                    for measurement, value in run().items():
                        results.setdefault(measurement, {"base": [], "new": []})[side].append(value)
    processes.served.source = None


def show(revision: str, results: Mapping[str, Mapping[str, list[float]]]) -> None:
    """Prints the median of both versions, and the median and range of their ratio within each round."""
    table = Table("measurement", revision, "new", "new ÷ base", "range", title="Medians of alternating runs")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, values in results.items():
        pairs = list(zip(values["base"], values["new"], strict=True))
        ratios = [new / base for base, new in pairs if base]
        cells = [_number(statistics.median(side)) for side in (values["base"], values["new"])]
        if ratios:
            cells += [f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
        table.add_row(name, *cells)
    Console(width=120).print(table)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3f}"
