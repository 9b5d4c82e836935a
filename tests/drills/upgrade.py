"""The upgrade drill: `python -m tests.drills.upgrade`, or `make drill-upgrade`.

Three nodes of an earlier revision share a PostgreSQL database with timers. While these fire, and clients create, change and
delete others through whichever node is ready, each node is stopped and started again with the present code, one by one. No
request may fail, and in the end every timer must have fired, none early and none by a state that had been replaced. The exit
status is 1 if one of these is violated. Nodes of both revisions run with this interpreter and its packages.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from pathlib import Path

from bench.compare import checked_out

from tests.crash.cluster_load import ClusterLoad, latest
from tests.drills.postgresql import on_a_new_server
from tests.drills.traffic import Traffic, balanced_out, create, repeated, traffic
from tests.support.cluster import balanced, ended, is_ready, node, shared_by, until
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

#: A commit whose stored data has the present format; `tests/repo/test_tidy.py` compares the two.
REVISION = "71e70024"
NAMES = ("one", "two", "three")
#: Timers created beforehand are due throughout the drill.
_DUE_S = (5.0, 90.0)
#: Traffic before the first node is replaced, between two of them, and after the last.
_BETWEEN_S = 4.0
_START_S = 90.0
_BALANCE_S = 240.0


async def drill(former: Path, folder: Path, url: str, timers: int) -> list[str]:
    """What is wrong."""
    servers = [node(folder, name, url, "--shards", "24") for name in NAMES]
    for server in servers:
        server.env["PYTHONPATH"] = os.fspath(former)
    gone: set[ServerProcess] = set()
    async with traffic() as found, ended(*servers):
        for server in servers:
            await server.start()
        await shared_by(servers, set(NAMES))
        await create(found, servers, timers, _DUE_S)
        load = found.load(servers)
        load.gone = gone
        async with balanced(servers, gone):
            load.start()
            for server in servers:
                await asyncio.sleep(_BETWEEN_S)
                await replace(server, servers)
            await asyncio.sleep(_BETWEEN_S)
            await load.stop()
        await balanced_out(found.ledger, servers[0], _BALANCE_S)
        wrong = [
            f"{name} logged an error"
            for name, server in zip(NAMES, servers, strict=True)
            if "Traceback" in server.log()
        ]
        for server in servers:
            assert await server.stop() == 0, server.log()[-4000:]
        return wrong + balance(found, load)


async def replace(server: ServerProcess, servers: list[ServerProcess]) -> None:
    """Stops a node in order, and starts it with the present code; returns when it has its share of the shards."""
    ended = await server.stop()
    assert ended == 0, server.log()[-4000:]
    del server.env["PYTHONPATH"]
    await server.start()
    await until(lambda: is_ready(server), _START_S)
    await shared_by(servers, set(NAMES))
    print(f"{server.env['TOCSIN_NODE_NAME']}: replaced", flush=True)


def balance(found: Traffic, load: ClusterLoad) -> list[str]:
    """Prints the balance; what is wrong with it."""
    ledger = found.ledger
    missing, early, after = ledger.missing(), ledger.early(), ledger.after_change()
    calls = sum(map(len, ledger.receipts.values()))
    print(
        f"{ledger.acknowledged} writes acknowledged, {sum(load.failures.values())} requests failed\n"
        f"{calls} calls, {repeated(ledger)} repeated, {len(early)} early, the latest {latest(ledger):.1f} s late\n"
        f"{len(missing)} timers did not fire",
        flush=True,
    )
    wrong = [f"requests failed: {dict(load.failures)}"] if load.failures else []
    wrong += [f"timers did not fire: {missing[:10]}"] if missing else []
    wrong += [f"calls were early: {early[:10]}"] if early else []
    return wrong + ([f"calls by a state that had been replaced: {after[:10]}"] if after else [])


def main() -> int:
    """Runs the drill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revision", default=REVISION, help="the revision of the nodes that are replaced")
    parser.add_argument("--timers", type=int, default=10_000, help="created beforehand, beside those of the clients")
    given = parser.parse_args()
    try:
        with checked_out(given.revision) as former:
            return on_a_new_server(lambda database, folder: run(database, former, folder, given.timers))
    except subprocess.CalledProcessError:
        print(f"Git has no revision {given.revision}; --revision names another.")
        return 1


async def run(database: PostgresServer, former: Path, folder: Path, timers: int) -> list[str]:
    """The drill on a new database."""
    return await drill(former, folder, await database.create_database(), timers)


if __name__ == "__main__":
    sys.exit(main())
