"""Measures bloat in a table used as a queue, in MySQL or MariaDB: millions of timers pass through it, as in `bench.churn`.

    python -m bench.churn_mysql mysql://root@127.0.0.1/churn --timers 10000000    # a database, which is dropped first

Periodically prints the size of the table's file and the length of the history list (transactions whose deleted rows are
not purged yet), and at the end the latencies of loads. docs/how-to/mysql.md explains the results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

from bench.churn import SHARDS, Queue, latencies
from bench.store import OWNER
from tocsin.stores.mysql.connection import connect
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.store import MysqlStore

#: Commits between two measurements of the sizes.
ROUNDS = 50

_SIZE = "SELECT FILE_SIZE / 1048576 FROM information_schema.{tablespaces} WHERE NAME = CONCAT(DATABASE(), '/timers')"
_UNPURGED = "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"


async def measure(url: str, args: argparse.Namespace) -> None:
    """Fills a new database, passes the timers through it, and prints the measurements."""
    store = MysqlStore(url)
    outside = await connect(store._server, database=False)
    await outside.run(b"DROP DATABASE IF EXISTS `%b`" % store._server.database.encode())
    await outside.close(timeout=5)
    await store.open(SHARDS)
    session = await connect(store._server)
    try:
        for shard_id in range(SHARDS):
            await store.claim(shard_id, expected_epoch=0, owner=OWNER)
        await _pass(Queue(store, args.pending, args.retries, history=False), session, args)
    finally:
        await session.close(timeout=5)
        await store.close()


async def _pass(queue: Queue, session: Connection, args: argparse.Namespace) -> None:
    await queue.settle()
    print(json.dumps({"timers": 0, **await _sizes(session)}), flush=True)
    finished, began = queue.finished, time.monotonic()
    while queue.finished - finished < args.timers and time.monotonic() - began < args.seconds_max:
        for _ in range(ROUNDS):
            await queue.round()
        progress = {"timers": queue.finished - finished, "seconds": round(time.monotonic() - began)}
        print(json.dumps(progress | await _sizes(session)), flush=True)
    loads = latencies("load from the last key", queue.from_last_load_s)
    print(json.dumps(loads | latencies("load from the beginning", queue.from_beginning_s), indent=2))


async def _sizes(session: Connection) -> dict[str, Any]:
    tablespaces = "INNODB_SYS_TABLESPACES" if "MariaDB" in session.server.version else "INNODB_TABLESPACES"
    ((size,),) = await session.rows(_SIZE.format(tablespaces=tablespaces).encode())
    ((unpurged,),) = await session.rows(_UNPURGED.encode())
    return {"timers MiB": float(size), "transactions not purged": int(unpurged)}


def main() -> None:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="a database on an existing server; it is dropped first")
    parser.add_argument("--timers", type=int, default=3_000_000, help="number of timers that pass through")
    parser.add_argument("--pending", type=int, default=200_000, help="number of pending timers")
    parser.add_argument(
        "--retries", type=float, default=0.1, help="share of timers that are rescheduled when they fire"
    )
    parser.add_argument("--seconds-max", type=float, default=2_400, help="time limit")
    args = parser.parse_args()
    asyncio.run(measure(args.url, args))


if __name__ == "__main__":
    main()
