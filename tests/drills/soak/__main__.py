"""The soak: `python -m tests.drills.soak`, or `make soak STORE=postgresql MINUTES=75`.

One node on SQLite, or two on PostgreSQL, do everything that nodes do for users, for a long time and at a steady rate: timers,
also moved, deleted, debounced, sent together and in a flow, schedules of a second, monitors whose jobs lapse, failures with
notifications, jobs that cancel and replay, service calls, and pages with their live streams. What has ended is kept for a
short time, so that it turns over several times. Each half minute the nodes are measured. It ends with a table by quarters. If
a timer was lost, early, or fired twice without a reason, or if memory, descriptors, series or lag grew, the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.drills.soak.nodes import node
from tests.drills.soak.samples import Sample, Sampler
from tests.drills.soak.traffic import Plan, Traffic
from tests.drills.soak.verdict import table, verdict
from tests.support.cluster import ended, now_us, shared_by
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

SAMPLE_S = 30.0
#: A short run is measured more often, so that each quarter has something to show.
_SAMPLES_LEAST = 20
#: What has ended turns over so often; but what has failed is listed for a while before a job replays it.
_TURNOVERS, _RETENTION_LEAST_S = 8, 60


def _shown(sample: Sample, begun: int, traffic: Traffic) -> str:
    nodes = "; ".join(
        f"{each.used_kib / 1024:.2f} MiB in use, {each.rss_kib / 1024:.1f} resident ({each.heap_kib / 1024:.1f} without "
        f"files), {each.descriptors} descriptors and {each.connections} connections, {each.threads} threads, "
        f"{len(each.series)} series, {each.purged} rows purged, stall {each.stall_ms:.0f} ms"
        for each in sample.nodes
    )
    counted = traffic.ledger.counted
    return (
        f"{(sample.at - begun) / 60e6:5.1f} min: {nodes}; {sum(sample.files.values()) / 2**20:.1f} MiB of files; "
        f"{counted['calls']} calls, {len(traffic.ledger.owed)} owed, {counted['violations']} violations; "
        f"busy {sample.busy:.0%}, steal {sample.steal:.1%}"
    )


async def soak(servers: list[ServerProcess], database: str | None, plan: Plan, seconds: float) -> list[str]:
    """Runs it on nodes that are started here; prints what it measures, and returns what is wrong."""
    async with ended(*servers):
        for server in servers:
            await server.start()
        if len(servers) > 1:
            await shared_by(servers, {server.env["TOCSIN_NODE_NAME"] for server in servers})
        traffic = Traffic(servers, plan)
        counted = traffic.ledger.counted
        sampler = Sampler(servers, database, lambda: counted["duplicates"])
        begun, loop = now_us(), asyncio.get_running_loop()
        until = loop.time() + seconds
        async with traffic.running(), sampler.watching():
            while loop.time() < until:
                await asyncio.sleep(min(SAMPLE_S, seconds / _SAMPLES_LEAST))
                print(_shown(await sampler.take(), begun, traffic), flush=True)
        print(table(sampler.samples, traffic.ledger))
        print(", ".join(f"{name}: {count}" for name, count in sorted(counted.items())), flush=True)
        found = verdict(sampler.samples, traffic.ledger, now_us(), turnovers=seconds / plan.retention_s)
        for number, server in enumerate(servers):
            if (code := await server.stop()) != 0:
                found.wrong.append(f"node {number + 1} ended with {code}")
    for remark in found.remarks:
        print(f"Remark: {remark}")
    return found.wrong


async def _on_postgresql(server: PostgresServer, folder: Path, plan: Plan, seconds: float) -> list[str]:
    url = await server.create_database()
    return await soak([node(folder, name, url, plan.retention_s) for name in ("one", "two")], url, plan, seconds)


def main() -> int:
    """Runs the soak."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--minutes", type=float, default=75.0)
    parser.add_argument("--rate", type=int, default=100, help="timers created a second")
    given = parser.parse_args()
    seconds = given.minutes * 60
    plan = Plan(given.rate, max(_RETENTION_LEAST_S, int(seconds / _TURNOVERS)))
    folder = Path(tempfile.mkdtemp(prefix="tocsin-soak-"))
    server = PostgresServer(fsync=True) if given.store == "postgresql" else None
    try:
        if server is None:
            wrong = asyncio.run(soak([node(folder, "one", None, plan.retention_s)], None, plan, seconds))
        else:
            server.init()
            server.start()
            wrong = asyncio.run(_on_postgresql(server, folder, plan, seconds))
    finally:
        if server is not None:
            server.remove()
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(["Broken:", *wrong] if wrong else ["Every promise was kept."]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
