"""`make bench-cluster`: 1, 2 and 4 nodes on one PostgreSQL server, started here, synced as in production.

    python -m bench.cluster                    # everything, less than five minutes
    python -m bench.cluster --only limited     # some of limited,free,shards
    python -m bench.cluster --quick            # a third of the load

*limited*: each node has the same small share of a core (`--share`), so that nodes are the limit although load, nodes and
database share one machine. *free*: nodes take what they get; the machine is the limit. *shards*: what it costs one node
that there are many. Prints a table and writes JSON to bench/results/. How to read it: docs/explanation/scale.md.
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
from bench.figures import stats_of, wait_for
from bench.nodes import Cluster, Used, cluster

Statistics = dict[str, Any]

NODES = (1, 2, 4)
SHARDS = 64
MANY_SHARDS = (16, 256, 1024)
IDLE_S = 10.0
_HOUR_US = 3_600_000_000
#: Timers a second that a node manages on a whole core, about: so much load as takes some seconds.
BATCH_PER_S, SINGLE_PER_S, FIRES_PER_S = 32_000, 9_000, 11_000
#: Timers a request where they are created to become due at once.
DUE_BATCH = 100
#: A second, in the comparison of owners with any node.
FORWARD_RATE = 1_500


class Bench:
    """One cluster under each kind of load in turn. `cores` is what its nodes may use together, `seconds` of each load."""

    def __init__(self, nodes: Cluster, receiver_port: int, cores: float, seconds: float) -> None:
        self.cluster = nodes
        self._receiver_port = receiver_port
        self._cores = cores
        self._seconds = seconds
        self._runs = 0
        # Until it is measured.
        self._batch_per_s = cores * BATCH_PER_S / 4

    def creates(self, kind: str, *, batch: int = 0, owners: bool = False) -> Statistics:
        """Timers for an hour from now, as fast as they are taken; and in how few messages the forwarded ones travelled."""
        connections = len(self.cluster.nodes) * (4 if batch else 32)
        count = int(self._cores * self._seconds * (BATCH_PER_S if batch else SINGLE_PER_S))
        count -= count % (connections * max(batch, 1))
        writes, messages = self._forwarded()
        used, result = self._load(count, batch, connections, owners)
        forwarded, sent = (now - before for now, before in zip(self._forwarded(), (writes, messages), strict=True))
        self._batch_per_s = result["per_s"] if batch else self._batch_per_s
        figures = {
            f"{kind}, per s": result["per_s"],
            f"{kind}, p50 ms": result["p50_ms"],
            f"{kind}, p99 ms": result["p99_ms"],
            **_costs(kind, used, result["timers"]),
        }
        return figures | ({f"{kind}, messages a forwarded write": sent / forwarded} if forwarded else {})

    def forwarding(self) -> Statistics:
        """The same bearable load to owners only, then to any node."""
        figures: Statistics = {}
        count = int(FORWARD_RATE * self._seconds)
        for kind, owners in (("create to owners", True), ("create to any node", False)):
            writes, messages = self._forwarded()
            used, result = self._load(count, 0, 32, owners, rate=FORWARD_RATE)
            forwarded, sent = (now - before for now, before in zip(self._forwarded(), (writes, messages), strict=True))
            figures |= {
                f"{kind} at {FORWARD_RATE}/s, p50 ms": result["p50_ms"],
                f"{kind} at {FORWARD_RATE}/s, p99 ms": result["p99_ms"],
                **_costs(f"{kind} at {FORWARD_RATE}/s", used, result["timers"]),
                f"{kind} at {FORWARD_RATE}/s, share forwarded": forwarded / result["timers"],
                f"{kind} at {FORWARD_RATE}/s, messages a forwarded write": sent / max(forwarded, 1),
            }
        return figures

    def fires(self) -> Statistics:
        """Timers due at one instant, called as fast as can be; then such that are due evenly, at half of that rate."""
        count = int(self._cores * self._seconds * FIRES_PER_S)
        count -= count % (len(self.cluster.nodes) * 4 * DUE_BATCH)
        _, used, stats = self._due(count, spread_s=0.0)
        rate = stats["count"] / max(stats["seconds"], 1e-9)
        even = int(rate / 2 * self._seconds)
        even -= even % (len(self.cluster.nodes) * 4 * DUE_BATCH)
        lost, half_used, half = self._due(even, spread_s=self._seconds)
        return {
            "fires, per s": rate,
            "fires, lost or early": count - stats["count"] + stats["early"] + lost + half["early"],
            **_costs("fires", used, count),
            "lag at half of that, p50 ms": half["lag_p50_ms"],
            "lag at half of that, p99 ms": half["lag_p99_ms"],
            **_costs("fires at half of that", half_used, even),
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
            raise RuntimeError("creating took longer than planned; timers were due before all were there")
        time.sleep(max(ahead_s - 0.3, 0))
        before = self.cluster.used()
        seen = wait_for(self._receiver_port, count, 60 + spread_s)
        self.cluster.wait_until_quiet()
        return count - seen, self.cluster.used() - before, stats_of(self._receiver_port)

    def _prefix(self) -> str:
        self._runs += 1
        return f"r{self._runs}"


def _costs(kind: str, used: Used, timers: int) -> Statistics:
    return {
        f"{kind}, CPU s of nodes per 1,000": used.nodes_s / timers * 1_000,
        f"{kind}, CPU s of database per 1,000": used.database_s / timers * 1_000,
        f"{kind}, log bytes each": used.wal_bytes / timers,
        f"{kind}, network bytes each, database": used.database_octets / timers,
        **({f"{kind}, network bytes each, nodes": used.peers_octets / timers} if used.peers_octets else {}),
    }


def loaded(server: Database, count: int, share: float | None, seconds: float) -> Statistics:
    """All figures of so many nodes under load."""
    with (
        processes.folder() as folder,
        processes.receiver() as receiver,
        cluster(server, folder, count, SHARDS, share) as nodes,
    ):
        bench = Bench(nodes, receiver.port, share * count if share else 1.0, seconds)
        figures: Statistics = {"largest part of the shards": max(map(len, nodes.owned)) / SHARDS}
        if nodes.limited_by is not None:
            figures["limited by"] = nodes.limited_by
        figures |= bench.creates("create single")
        figures |= bench.creates("create batch", batch=500)
        if share is not None and count > 1:
            figures |= bench.creates("create single to owners", owners=True)
            figures |= bench.creates("create batch to owners", batch=500, owners=True)
        if share is None and count == NODES[-1]:
            figures |= bench.forwarding()
        figures |= bench.fires()
        if share is None:
            figures["MiB of a node"] = max(node.memory_mib() for node in nodes.nodes)
        if share is None and count > 1:
            figures["shards taken over after SIGKILL, s"] = nodes.take_over_s()
        return figures


def by_shards(server: Database, shards: int, seconds: float) -> Statistics:
    """A node that owns so many shards: when nothing happens, and under load."""
    with (
        processes.folder() as folder,
        processes.receiver() as receiver,
        cluster(server, folder, 1, shards) as nodes,
    ):
        time.sleep(3)
        before = nodes.used()
        time.sleep(IDLE_S)
        used = nodes.used() - before
        figures = {
            "idle, CPU share of the node": used.nodes_s / IDLE_S,
            "idle, CPU share of the database": used.database_s / IDLE_S,
            "idle, log bytes a second": used.wal_bytes / IDLE_S,
            "idle, network bytes a second": used.database_octets / IDLE_S,
            "idle, node MiB": nodes.nodes[0].memory_mib(),
        }
        bench = Bench(nodes, receiver.port, 1.0, seconds)
        figures |= bench.creates("create single")
        made, (table, indexes) = nodes.metric("tocsin_timers_created_total"), nodes.timers_bytes()
        figures |= bench.creates("create batch", batch=500)
        made = nodes.metric("tocsin_timers_created_total") - made
        grown_table, grown_indexes = nodes.timers_bytes()
        return figures | {
            "disk bytes a pending timer, table": (grown_table - table) / made,
            "disk bytes a pending timer, indexes": (grown_indexes - indexes) / made,
        }


def run(args: argparse.Namespace) -> dict[str, Statistics]:
    """Every part that was asked for, in turn, on one server."""
    results: dict[str, Statistics] = {}
    seconds = 1.5 if args.quick else 4.0
    plan: dict[str, Callable[[], Statistics]] = {}
    with database() as server:
        for part, share in (("limited", args.share), ("free", None)):
            for count in NODES:
                plan[f"{part}, {count} nodes"] = lambda count=count, share=share: loaded(server, count, share, seconds)
        for shards in MANY_SHARDS:
            plan[f"shards, {shards}"] = lambda shards=shards: by_shards(server, shards, seconds)
        for name, measure in plan.items():
            if name.split(",")[0] in args.only.split(","):
                print(f"measuring {name} …", file=sys.stderr, flush=True)
                results[name] = measure()
    return results


def show(results: dict[str, Statistics]) -> None:
    """One table for each part, its columns side by side."""
    for part in dict.fromkeys(name.split(",")[0] for name in results):
        columns = {name: figures for name, figures in results.items() if name.startswith(part + ",")}
        table = Table("figure", *(name.removeprefix(part + ", ") for name in columns), title=part)
        for key in dict.fromkeys(key for figures in columns.values() for key in figures):
            table.add_row(key, *(_cell(figures.get(key)) for figures in columns.values()))
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
    parser.add_argument("--only", default="limited,free,shards", help="some of limited,free,shards")
    parser.add_argument("--share", type=float, default=0.15, help="of a core, for each node, in the limited part")
    parser.add_argument("--quick", action="store_true", help="a third of the load")
    parser.add_argument("--out", default="bench/results", help="folder of the JSON")
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
        "figures": results,
    }
    path = Path(args.out) / f"cluster-{time.strftime('%Y%m%dT%H%M%S')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
