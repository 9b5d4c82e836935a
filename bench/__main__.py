"""`python -m bench`: measures, prints a table, writes JSON. docs/explanation/performance.md explains the results."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import agent, limits, processes, scenarios
from bench.database import database


def _plan(args: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    scale = 0.2 if args.quick else 1.0
    plan: dict[str, Callable[[], dict[str, Any]]] = {
        "raw": lambda: limits.raw_server(int(100_000 * scale)),
        "single": lambda: scenarios.create_single(int(100_000 * scale)),
        "batch": lambda: scenarios.create_batch(int(400_000 * scale)),
        "burst": lambda: scenarios.burst(int(50_000 * scale)),
        "steady": lambda: scenarios.steady(args.rate, 10 * max(scale, 0.5)),
        "schedules": lambda: scenarios.schedules(int(args.schedules * scale)),
        "pending": lambda: scenarios.pending(args.pending),
        "agent": lambda: agent.calls_now(int(20_000 * scale)),
        "agent-due": lambda: agent.calls_due(int(200 * scale), 60 * scale),
    }
    if args.only:
        return {name: plan[name] for name in args.only.split(",")}
    return plan


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument("--only", help="some of raw,single,batch,burst,steady,schedules,pending,agent,agent-due")
    parser.add_argument("--rate", type=int, default=5_000, help="timers a second for steady")
    parser.add_argument("--schedules", type=int, default=100_000, help="schedules every minute")
    parser.add_argument("--pending", type=int, default=1_000_000, help="timers for pending")
    parser.add_argument("--out", default="bench/results", help="folder for the JSON file")
    parser.add_argument(
        "--store",
        metavar="URL",
        help="postgresql://…: store timers there, in schemas bench_…, instead of in SQLite files",
    )
    parser.add_argument("--postgresql", action="store_true", help="start a PostgreSQL server and store timers there")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        processes.store_url = stack.enter_context(database()).url() if args.postgresql else args.store
        for name, measure in _plan(args).items():
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            results |= measure()
    table = Table("measurement", "result", title="Tocsin on this machine")
    table.columns[1].justify = "right"
    for name, value in results.items():
        table.add_row(name, f"{value:,.0f}" if value >= 100 else f"{value:,.3f}")
    Console(width=100).print(table)
    report = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "results": results,
    }
    path = Path(args.out) / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
