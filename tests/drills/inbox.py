"""The inbox drill: `python -m tests.drills.inbox`, or `make drill-inbox ARGS="--kind mysql"`; with `--library` that of the
outbox, whose rows a drain of the Python SDK takes, which is killed too.

Processes take orders in transactions of which they roll some back, each with a row of the inbox; they and Tocsin are killed
meanwhile. In the end exactly the timers of committed orders have fired, each under one `webhook-id`, and no row is left. If
one of these is violated, the exit status is 1. It prints how long after its commit a timer was called: the engine has
accepted it before that. Without kills, the median has to be below 50 ms in PostgreSQL, which announces commits.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from tests.crash.inbox_run import InboxRun, Result
from tests.support.cluster import ended
from tests.support.inbox import KINDS, Program
from tests.support.mysql import MysqlServer
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

#: For a database that announces commits.
_LATENCY_MS_MAX = 50.0


async def _run(url: str, folder: Path, given: argparse.Namespace) -> Result:
    program = Program(url)
    env = None if given.library else program.settings("default", poll="500ms")
    server = ServerProcess(folder / "data", "--no-agent", env=env)
    async with ended(server):
        run = InboxRun(program, server, given.orders, given.processes, given.rate, given.seed, given.library)
        return await run.run(given.kills)


def _wrong(result: Result, given: argparse.Namespace) -> list[str]:
    """Prints the balance; what is wrong with it."""
    print(
        f"{given.orders} orders by {given.processes} processes in {given.kind}: {result.committed} committed; "
        f"{result.shop_kills} kills of a process, {result.server_kills} of Tocsin; {len(result.missing)} timers missing, "
        f"{len(result.wrongly)} without a commit, {len(result.renamed)} created twice, {result.repeated} called twice\n"
        f"from the commit to the callback: p50 {result.percentile(0.5):.1f} ms, p99 {result.percentile(0.99):.1f} ms"
    )
    wrong = [
        f"{name}: {sorted(found)[:10]}"
        for name, found in (
            ("missing", result.missing), ("without a commit", result.wrongly), ("created twice", result.renamed),
        )
        if found
    ]  # fmt: skip
    slow = (
        given.kind == "postgresql" and not (given.kills or given.library) and result.percentile(0.5) > _LATENCY_MS_MAX
    )
    return wrong + ([f"the median is above {_LATENCY_MS_MAX:.0f} ms"] if slow else [])


def main() -> int:
    """Runs the drill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="postgresql", help="database of the orders")
    parser.add_argument("--orders", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rate", type=int, default=100, help="orders a second, all processes together")
    parser.add_argument("--kills", type=int, default=10, help="kills of Tocsin; processes are killed twice as often")
    parser.add_argument("--library", action="store_true", help="a drain of the Python SDK instead of the server's")
    parser.add_argument("--seed", default="inbox", help="of what commits")
    given = parser.parse_args()
    database = PostgresServer(fsync=True) if given.kind == "postgresql" else MysqlServer(fsync=True)
    folder = Path(tempfile.mkdtemp(prefix="tocsin-drill-"))
    try:
        database.init()
        database.start()
        if isinstance(database, MysqlServer):
            Program(database.url("mysql")).execute("CREATE DATABASE shop")
        url = database.url() if isinstance(database, PostgresServer) else database.url("shop")
        result = asyncio.run(_run(url, folder, given))
    finally:
        database.remove()
        shutil.rmtree(folder, ignore_errors=True)
    wrong = _wrong(result, given)
    print("\n".join(["The balance is wrong:", *wrong] if wrong else ["The balance is right."]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
