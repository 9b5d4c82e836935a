"""`make bench-cluster`: 1, 2 and 4 nodes on one PostgreSQL server, started here, which syncs as in production.

    python -m bench.cluster                    # everything, about eight minutes
    python -m bench.cluster --only limited     # some of limited,free,shards,sdk
    python -m bench.cluster --quick            # a third of the load

*limited*: each node has the same small share of a core (`--share`), so that nodes are the limit although load, nodes and
database share one machine. *free*: no limit per node, so that the machine is the limit. *shards*: the cost of many shards
on one node. *sdk*: creates by the Python SDK on 2 and 4 nodes with a smaller share each, its owner routing off and on.
Prints a table and writes JSON to bench/results/. docs/explanation/scale.md explains the results.
"""

from __future__ import annotations

import argparse
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

from bench import processes
from bench.database import Database, database
from bench.nodes import Cluster, Used, cluster
from bench.scenarios import Results, stats_of, wait_for

NODES = (1, 2, 4)
SHARDS = 64
MANY_SHARDS = (16, 256, 1024)
IDLE_S = 10.0
_HOUR_US = 3_600_000_000
#: Approximate throughput of a node on a whole core, timers a second; determines how many timers take some seconds.
BATCH_PER_S, SINGLE_PER_S, FIRES_PER_S = 32_000, 9_000, 11_000
#: Timers per request for the fire measurements.
DUE_BATCH = 100
#: A node's share of a core for the SDK, which takes several times as long for a create as the load process; and the timers
#: of one of its calls.
SDK_SHARE, SDK_BATCH = 0.04, 100
#: Creates a second in the comparison of owners with any node.
FORWARD_RATE = 1_500


class Bench:
    """One cluster under each kind of load in turn. Its nodes may use `cores` together; each load lasts about `seconds`."""

    def __init__(self, nodes: Cluster, receiver_port: int, cores: float, seconds: float) -> None:
        self.cluster = nodes
        self._receiver_port = receiver_port
        self._cores = cores
        self._seconds = seconds
        self._runs = 0
        # An estimate until the rate is measured.
        self._batch_per_s = cores * BATCH_PER_S / 4

    def creates(self, kind: str, *, batch: int = 0, owners: bool = False) -> Results:
        """Creates timers that are due in an hour, at full speed; also counts messages per forwarded write."""
        connections = len(self.cluster.nodes) * (4 if batch else 32)
        count = int(self._cores * self._seconds * (BATCH_PER_S if batch else SINGLE_PER_S))
        count -= count % (connections * max(batch, 1))
        writes, messages = self._forwarded()
        used, result = self._load(count, batch, connections, owners)
        forwarded, sent = (now - before for now, before in zip(self._forwarded(), (writes, messages), strict=True))
        self._batch_per_s = result["per_s"] if batch else self._batch_per_s
        measured = {
            f"{kind}, per s": result["per_s"],
            f"{kind}, p50 ms": result["p50_ms"],
            f"{kind}, p99 ms": result["p99_ms"],
            **_costs(kind, used, result["timers"]),
        }
        return measured | ({f"{kind}, messages a forwarded write": sent / forwarded} if forwarded else {})

    def forwarding(self) -> Results:
        """The same moderate load to owners only, then to any node."""
        measured: Results = {}
        count = int(FORWARD_RATE * self._seconds)
        for kind, owners in (("create to owners", True), ("create to any node", False)):
            writes, messages = self._forwarded()
            used, result = self._load(count, 0, 32, owners, rate=FORWARD_RATE)
            forwarded, sent = (now - before for now, before in zip(self._forwarded(), (writes, messages), strict=True))
            measured |= {
                f"{kind} at {FORWARD_RATE}/s, p50 ms": result["p50_ms"],
                f"{kind} at {FORWARD_RATE}/s, p99 ms": result["p99_ms"],
                **_costs(f"{kind} at {FORWARD_RATE}/s", used, result["timers"]),
                f"{kind} at {FORWARD_RATE}/s, share forwarded": forwarded / result["timers"],
                f"{kind} at {FORWARD_RATE}/s, messages a forwarded write": sent / max(forwarded, 1),
            }
        return measured

    def fires(self) -> Results:
        """Timers due at one instant, fired at full speed; then timers due evenly, at 50% of that rate."""
        count = int(self._cores * self._seconds * FIRES_PER_S)
        count -= count % (len(self.cluster.nodes) * 4 * DUE_BATCH)
        _, used, stats = self._due(count, spread_s=0.0)
        rate = stats["count"] / max(stats["seconds"], 1e-9)
        even = int(rate / 2 * self._seconds)
        even -= even % (len(self.cluster.nodes) * 4 * DUE_BATCH)
        lost, even_used, even_stats = self._due(even, spread_s=self._seconds)
        return {
            "fires, per s": rate,
            "fires, lost or early": count - stats["count"] + stats["early"] + lost + even_stats["early"],
            **_costs("fires", used, count),
            "lag at 50% load, p50 ms": even_stats["lag_p50_ms"],
            "lag at 50% load, p99 ms": even_stats["lag_p99_ms"],
            **_costs("fires at 50% load", even_used, even),
        }

    def _forwarded(self) -> tuple[float, float]:
        metric = self.cluster.metric
        return metric("tocsin_writes_forwarded_total"), metric("tocsin_forward_messages_total")

    def _load(
        self, count: int, batch: int, connections: int, owners: bool, *, rate: int = 0
    ) -> tuple[Used, dict[str, Any]]:
        options: dict[str, Any] = {"owned": self.cluster.owned_text} if owners else {}
        before = self.cluster.used()
        result = processes.load(
            self.cluster.ports, self._receiver_port, due_us=processes.now_us() + _HOUR_US, count=count, batch=batch,
            connections=connections, spread=10, rate=rate, prefix=self._prefix(), total_shards=self.cluster.total_shards,
            **options,
        )  # fmt: skip
        return self.cluster.used() - before, result

    def _due(self, count: int, *, spread_s: float) -> tuple[int, Used, dict[str, Any]]:
        connections = len(self.cluster.nodes) * 4
        due = processes.now_us() + 3_000_000 + int(2e6 * count / self._batch_per_s)
        processes.load(
            self.cluster.ports, self._receiver_port, due_us=due, count=count, batch=DUE_BATCH,
            connections=connections, spread=spread_s, prefix=self._prefix(),
        )  # fmt: skip
        ahead_s = (due - processes.now_us()) / 1e6
        if ahead_s < 0:
            raise RuntimeError("creating took longer than planned; timers were due before all were created")
        time.sleep(max(ahead_s - 0.3, 0))
        before = self.cluster.used()
        seen = wait_for(self._receiver_port, count, 60 + spread_s)
        self.cluster.wait_until_quiet()
        return count - seen, self.cluster.used() - before, stats_of(self._receiver_port)

    def _prefix(self) -> str:
        self._runs += 1
        return f"r{self._runs}"


def _costs(kind: str, used: Used, timers: int) -> Results:
    return {
        f"{kind}, CPU s of nodes per 1,000": used.nodes_s / timers * 1_000,
        f"{kind}, CPU s of database per 1,000": used.database_s / timers * 1_000,
        f"{kind}, WAL bytes each": used.wal_bytes / timers,
        f"{kind}, network bytes each, database": used.database_bytes / timers,
        **({f"{kind}, network bytes each, nodes": used.peers_bytes / timers} if used.peers_bytes else {}),
    }


def loaded(server: Database, count: int, share: float | None, seconds: float) -> Results:
    """All measurements of `count` nodes under load."""
    with (
        processes.folder() as folder,
        processes.receiver() as receiver,
        cluster(server, folder, count, SHARDS, share) as nodes,
    ):
        bench = Bench(nodes, receiver.port, share * count if share else 1.0, seconds)
        measured: Results = {"largest share of the shards": max(map(len, nodes.owned)) / SHARDS}
        if nodes.limited_by is not None:
            measured["limited by"] = nodes.limited_by
        measured |= bench.creates("create single")
        measured |= bench.creates("create batch", batch=500)
        if share is not None and count > 1:
            measured |= bench.creates("create single to owners", owners=True)
            measured |= bench.creates("create batch to owners", batch=500, owners=True)
        if share is None and count == NODES[-1]:
            measured |= bench.forwarding()
        measured |= bench.fires()
        if share is None:
            measured["MiB of a node"] = max(node.memory_mib() for node in nodes.nodes)
        if share is None and count > 1:
            measured["shards taken over after SIGKILL, s"] = nodes.take_over_s()
        return measured


def by_sdk(server: Database, count: int, seconds: float) -> Results:
    """Creates by the Python SDK, through any of `count` nodes and with owner routing."""
    measured: Results = {}
    with processes.folder() as folder, cluster(server, folder, count, SHARDS, SDK_SHARE) as nodes:
        for kind, batch in (("single", 0), ("batch", SDK_BATCH)):
            tasks = count * (2 if batch else 32)
            per_s = count * SDK_SHARE * (BATCH_PER_S if batch else SINGLE_PER_S)
            timers = max(int(per_s * seconds) // (tasks * max(batch, 1)), 2) * tasks * max(batch, 1)
            for owners in (False, True):
                name = f"create {kind} by SDK, {'to owners' if owners else 'any node'}"
                before = nodes.used()
                result = processes.sdk_load(
                    nodes.ports, f"{kind}-{owners}", owners=owners, count=timers, batch=batch, tasks=tasks
                )
                used = nodes.used() - before
                if result["timers"] != timers:
                    raise RuntimeError(f"{timers - result['timers']} of {timers} creates failed")
                measured |= {
                    f"{name}, per s": result["per_s"],
                    f"{name}, p50 ms": result["p50_ms"],
                    f"{name}, CPU s of nodes per 1,000": used.nodes_s / timers * 1_000,
                    f"{name}, CPU s of client per 1,000": result["client_cpu_s"] / timers * 1_000,
                }
    return measured


def by_shards(server: Database, shards: int, seconds: float) -> Results:
    """One node that owns all `shards`: idle, and under load."""
    with (
        processes.folder() as folder,
        processes.receiver() as receiver,
        cluster(server, folder, 1, shards) as nodes,
    ):
        time.sleep(3)
        before = nodes.used()
        time.sleep(IDLE_S)
        used = nodes.used() - before
        measured = {
            "idle, CPU share of the node": used.nodes_s / IDLE_S,
            "idle, CPU share of the database": used.database_s / IDLE_S,
            "idle, WAL bytes a second": used.wal_bytes / IDLE_S,
            "idle, network bytes a second": used.database_bytes / IDLE_S,
            "idle, node MiB": nodes.nodes[0].memory_mib(),
        }
        bench = Bench(nodes, receiver.port, 1.0, seconds)
        measured |= bench.creates("create single")
        made, (table, indexes) = nodes.metric("tocsin_timers_created_total"), nodes.timers_bytes()
        measured |= bench.creates("create batch", batch=500)
        made = nodes.metric("tocsin_timers_created_total") - made
        grown_table, grown_indexes = nodes.timers_bytes()
        return measured | {
            "disk bytes a pending timer, table": (grown_table - table) / made,
            "disk bytes a pending timer, indexes": (grown_indexes - indexes) / made,
        }


def run(args: argparse.Namespace) -> dict[str, Results]:
    """Runs the selected parts in turn on one server."""
    results: dict[str, Results] = {}
    seconds = 1.5 if args.quick else 4.0
    plan: dict[str, Callable[[], Results]] = {}
    with database() as server:
        for part, share in (("limited", args.share), ("free", None)):
            for count in NODES:
                plan[f"{part}, {count} nodes"] = lambda count=count, share=share: loaded(server, count, share, seconds)
        for count in NODES[1:]:
            plan[f"sdk, {count} nodes"] = lambda count=count: by_sdk(server, count, seconds)
        for shards in MANY_SHARDS:
            plan[f"shards, {shards}"] = lambda shards=shards: by_shards(server, shards, seconds)
        for name, measure in plan.items():
            if name.split(",")[0] in args.only.split(","):
                print(f"measuring {name} …", file=sys.stderr, flush=True)
                results[name] = measure()
    return results


def show(results: dict[str, Results]) -> None:
    """Prints one table for each part."""
    for part in dict.fromkeys(name.split(",")[0] for name in results):
        columns = {name: measured for name, measured in results.items() if name.startswith(part + ",")}
        table = Table("measurement", *(name.removeprefix(part + ", ") for name in columns), title=part)
        for key in dict.fromkeys(key for measured in columns.values() for key in measured):
            table.add_row(key, *(_cell(measured.get(key)) for measured in columns.values()))
        Console(width=120).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value >= 100 else f"{value:,.4f}"


def main() -> int:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="limited,free,shards,sdk", help="some of limited,free,shards,sdk")
    parser.add_argument("--share", type=float, default=0.15, help="share of a core for each node in the limited part")
    parser.add_argument("--quick", action="store_true", help="a third of the load")
    parser.add_argument("--out", default="bench/results", help="folder for the JSON file")
    args = parser.parse_args()
    began = time.monotonic()
    load_average = os.getloadavg()[0]
    results = run(args)
    show(results)
    report = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "load average before": load_average,
        "seconds": time.monotonic() - began,
        "share": args.share,
        "results": results,
    }
    path = Path(args.out) / f"cluster-{time.strftime('%Y%m%dT%H%M%S')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
