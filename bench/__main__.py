"""`python -m bench [run|stages|compare REVISION|sdks|receivers|dynamodb-units|peers]`: measures, prints tables, writes JSON.
docs/explanation/performance.md explains the results.

    run       the measurements of --only, for each --store and --workers
    stages    CPU time and memory blocks of each stage of each operation, on SQLite and PostgreSQL
    compare   the present working tree beside another revision, in alternating runs
    sdks      processor time of a single create by each SDK, beside a bare HTTP client of that language
    receivers processor time and memory of a large callback with many signatures, by the receiver of each SDK
    dynamodb-units  capacity units that a timer takes in DynamoDB, by what becomes of it
    peers     other tools for delayed work, which it installs, beside this one on the same work; --only names some of them
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import (
    agent,
    clients,
    compare,
    database,
    dynamodb_units,
    limits,
    on_nats,
    pings,
    processes,
    scenarios,
    stages,
)
from bench.clients import callbacks
from bench.peers import measuring
from bench.peers.install import PeerUnavailable
from bench.peers.tools import PEERS

Plan = dict[str, Callable[[], dict[str, Any]]]

#: What `compare` measures unless --only names others.
COMPARED = "single,batch,update,delete,mixed,burst,steady"


def _plan(args: argparse.Namespace) -> Plan:
    scale = 0.2 if args.quick else 1.0
    rates = [int(rate) for rate in args.rate.split(",")]
    plan: Plan = {
        "raw": lambda: limits.raw_server(int(100_000 * scale)),
        "bare": lambda: limits.bare_durable(int(100_000 * scale)),
        "bare-scattered": lambda: limits.bare_durable(int(100_000 * scale), scattered=True),
        "single": lambda: scenarios.create_single(int(100_000 * scale)),
        "single-scattered": lambda: scenarios.create_single(int(100_000 * scale), scattered=True),
        "batch": lambda: scenarios.create_batch(int(400_000 * scale)),
        "batch-scattered": lambda: scenarios.create_batch(int(400_000 * scale), scattered=True),
        "update": lambda: scenarios.change("update", int(50_000 * scale)),
        "update-scattered": lambda: scenarios.change("update", int(50_000 * scale), scattered=True),
        "delete": lambda: scenarios.change("delete", int(50_000 * scale)),
        "mixed": lambda: scenarios.mixed(int(50_000 * scale)),
        "mixed-scattered": lambda: scenarios.mixed(int(50_000 * scale), scattered=True),
        "burst": lambda: scenarios.burst(int(50_000 * scale)),
        "burst-batches": lambda: scenarios.burst_in_batches(int(50_000 * scale)),
        "burst-flows": lambda: scenarios.burst_with_flows(int(50_000 * scale)),
        "burst-nats": lambda: on_nats.burst_on_nats(int(50_000 * scale)),
        "steady": lambda: _merged(scenarios.steady(rate, 10 * max(scale, 0.5)) for rate in rates),
        "schedules": lambda: scenarios.schedules(int(args.schedules * scale)),
        "pings": lambda: pings.pings(int(10_000 * scale), 30 * scale),
        "pending": lambda: scenarios.pending(args.pending),
        "pending-scattered": lambda: scenarios.pending(args.pending, scattered=True),
        "agent": lambda: agent.calls_now(int(20_000 * scale)),
        "agent-due": lambda: agent.calls_due(int(200 * scale), 60 * scale),
    }
    only = args.only or (COMPARED if args.command == "compare" else ",".join(plan))
    if unknown := [name for name in only.split(",") if name not in plan]:
        raise SystemExit(f"--only: unknown {', '.join(unknown)}; measurements are: {', '.join(plan)}")
    return {name: plan[name] for name in only.split(",")}


def _merged(parts: Iterator[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


@contextlib.contextmanager
def _stored(store: str, workers: int = 1) -> Iterator[str]:
    """Servers store their timers there; yields what to call it. A name other than sqlite starts a database server."""
    with contextlib.ExitStack() as stack:
        server: database.Database | database.Mysql | database.JavaServer | database.MongoStandIn | None = None
        if store == "postgresql":
            server = stack.enter_context(database.database())
        elif store == "mysql":
            server = stack.enter_context(database.mysql())
        elif store == "dynamodb":
            server = stack.enter_context(database.dynamodb())
        elif store == "cassandra":
            server = stack.enter_context(database.cassandra())
        elif store == "mongodb":
            server = stack.enter_context(database.mongodb())
        url = server.url() if server is not None else None if store == "sqlite" else store
        if url is None and workers > 1:
            raise SystemExit("--workers: several processes need a store that they can share, not SQLite")
        if url is not None and "://" not in url:
            kinds = "sqlite, postgresql, mysql, dynamodb, mongodb, cassandra"
            raise SystemExit(f"--store: {store} is neither one of {kinds} nor a URL")
        processes.served = processes.Served(store_url=url, database=server, workers=workers)
        yield store.split(":")[0] + (f", {workers} workers" if workers > 1 else "")
        processes.served = processes.Served()


def _run(args: argparse.Namespace, columns: dict[str, Any]) -> None:
    """Adds results by column: a store, with a number of workers. What fails on one store, such as a burst that its server
    can't take, leaves its cells empty; raises SystemExit with its errors in the end."""
    failed: list[str] = []
    stores, counts = (args.store or "sqlite").split(","), [int(count) for count in args.workers.split(",")]
    for store in stores:
        for workers in counts:
            if store == "sqlite" and workers > 1 and len(stores) * len(counts) > 1:
                continue
            with _stored(store, workers) as title:
                columns[title] = {}
                for name, measure in _plan(args).items():
                    print(f"measuring {name} on {title} …", file=sys.stderr, flush=True)
                    try:
                        columns[title] |= measure()
                    except (RuntimeError, OSError) as error:
                        failed.append(f"{name} on {title}: {error}")
    table = Table("measurement", *columns, title="Tocsin on this machine")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in dict.fromkeys(name for results in columns.values() for name in results):
        table.add_row(name, *(_cell(results.get(name)) for results in columns.values()))
    Console(width=100 + 16 * (len(columns) - 1)).print(table)
    if failed:
        raise SystemExit("\n".join(failed))


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3f}"


def _compare(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Adds the values of both versions by measurement."""
    if args.revision is None:
        raise SystemExit("compare: name a revision, such as the last release's tag")
    with _stored(args.store or "sqlite", int(args.workers)):
        compare.compare(args.revision, _plan(args), args.rounds, results)
    compare.show(args.revision, results)


def _stages(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Adds what each stage of each operation uses, by store."""
    operations = args.only.split(",") if args.only else list(stages.OPERATIONS)
    if unknown := [name for name in operations if name not in stages.OPERATIONS]:
        raise SystemExit(f"--only: unknown {', '.join(unknown)}; operations are: {', '.join(stages.OPERATIONS)}")
    for store in (args.store or "sqlite,postgresql").split(","):
        with _stored(store) as column:
            results[column] = {}
            for operation in operations:
                print(f"measuring {operation} on {column} …", file=sys.stderr, flush=True)
                results[column] |= stages.measure(operation, 4_000 if args.quick else 20_000)
        stages.show(column, results[column])


def _sdks(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Adds what a create costs by language, with each number in flight."""
    for language in _languages(args, clients.LANGUAGES):
        for in_flight in map(int, args.in_flight.split(",")):
            print(f"measuring {language}, {in_flight} in flight …", file=sys.stderr, flush=True)
            results[f"{language}, {in_flight}"] = clients.measure(language, in_flight, scale=0.2 if args.quick else 1.0)
    clients.show(results)


def _receivers(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Adds what a callback costs by language."""
    for language in _languages(args, callbacks.LANGUAGES):
        print(f"measuring {language} …", file=sys.stderr, flush=True)
        results[language] = callbacks.measure(language, callbacks.ROUNDS)
    callbacks.show(results)


def _dynamodb_units(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Adds the units by who removes what has expired."""
    for title, time_to_live in (("history removed by Tocsin", False), ("history removed by DynamoDB", True)):
        print(f"measuring, {title} …", file=sys.stderr, flush=True)
        found = dynamodb_units.measure(time_to_live=time_to_live, idle_s=10 if args.quick else 60)
        results[title] = found
        dynamodb_units.show(title, found)


def _peers(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Adds the results of Tocsin on each store, and of each peer. Names those that are unavailable; raises SystemExit with
    what failed in the end."""
    names = args.only.split(",") if args.only else list(PEERS)
    if unknown := [name for name in names if name not in PEERS]:
        raise SystemExit(f"--only: unknown {', '.join(unknown)}; peers are: {', '.join(PEERS)}")
    count = max((args.timers // 5 if args.quick else args.timers) // 64, 1) * 64
    missing, failed = [], []

    def add(name: str, title: str) -> None:
        print(f"measuring {title} …", file=sys.stderr, flush=True)
        try:
            results[title] = measuring.measure(name, count)
        except PeerUnavailable as error:
            missing.append(f"{title} is unavailable: {error}")
        except (RuntimeError, OSError) as error:
            failed.append(f"{title}: {error}")
            print(failed[-1], file=sys.stderr, flush=True)

    try:
        for store in (args.store or "sqlite").split(","):
            with _stored(store) as column:
                add("tocsin", f"Tocsin, {column}")
        for name in names:
            add(name, PEERS[name].title)
    finally:
        measuring.show(results)
        for line in missing:
            print(line)
    if failed:
        raise SystemExit("\n".join(failed))


def _languages(args: argparse.Namespace, known: tuple[str, ...]) -> list[str]:
    languages = args.only.split(",") if args.only else list(known)
    if unknown := [name for name in languages if name not in known]:
        raise SystemExit(f"--only: unknown {', '.join(unknown)}; languages are: {', '.join(known)}")
    return languages


_COMMANDS = {
    "run": _run,
    "stages": _stages,
    "compare": _compare,
    "sdks": _sdks,
    "receivers": _receivers,
    "dynamodb-units": _dynamodb_units,
    "peers": _peers,
}


def main() -> int:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=_COMMANDS, default="run")
    parser.add_argument("revision", nargs="?", help="compare: a revision of this repository")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument(
        "--only",
        help="some of the measurements; stages: of the operations; sdks, receivers: of the languages; peers: of the tools; "
        "separated by commas",
    )
    parser.add_argument("--rate", default="200,2000,5000", help="timers a second for steady, one or several")
    parser.add_argument("--schedules", type=int, default=100_000, help="schedules every minute")
    parser.add_argument("--pending", type=int, default=1_000_000, help="timers for pending")
    parser.add_argument("--timers", type=int, default=20_000, help="peers: timers that each creates and fires")
    parser.add_argument("--rounds", type=int, default=5, help="compare: runs of each revision")
    parser.add_argument("--in-flight", default="1,32", help="sdks: creates at a time, one or several numbers")
    parser.add_argument("--out", default="bench/results", help="folder for the JSON file")
    parser.add_argument(
        "--store",
        help="sqlite, postgresql, mysql, dynamodb, mongodb, cassandra (starts a server), or a URL, where schemas, databases, "
        "tables or keyspaces bench_… are created; run and stages: one or several",
    )
    parser.add_argument("--workers", default="1", help="processes that share a port and a store; run: one or several")
    args = parser.parse_args()
    # Ends the processes that were started, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    report: dict[str, Any] = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "load average before": os.getloadavg()[0],
        "command": sys.argv[1:],
        "results": {},
    }
    path = Path(args.out) / f"{args.command}-{time.strftime('%Y%m%dT%H%M%S')}.json"
    try:
        _COMMANDS[args.command](args, report["results"])
    finally:
        # A failure leaves the results so far.
        if report["results"]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(report, indent=2) + "\n")
            print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
