"""What a table that is a queue becomes in MySQL or MariaDB: millions of timers pass through it, as in `bench.churn`.

    python -m bench.churn_mysql mysql://root@127.0.0.1/churn --timers 10000000    # a database, which is dropped first

Prints the sizes of the tables' files and the length of the history list (what is deleted and not purged yet) now and then,
and how long loads took. How to read it: docs/how-to/mysql.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

from bench.churn import SHARDS, Queue, latencies
from bench.store import OWNER
from tocsin.stores.mysql import MysqlStore
from tocsin.stores.mysql_connection import connect
from tocsin.stores.mysql_driver import Connection

#: Commits between two looks at the sizes.
ROUNDS = 50

_SIZE = "SELECT FILE_SIZE / 1048576 FROM information_schema.{tablespaces} WHERE NAME = CONCAT(DATABASE(), '/timers')"
_UNPURGED = "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"


async def measure(url: str, args: argparse.Namespace) -> None:
    """Fills a new database, lets the timers pass, and prints what they leave."""
    store = MysqlStore(url)
    outside = await connect(store._settings, database=False)
    await outside.run(b"DROP DATABASE IF EXISTS `%b`" % store._settings.database.encode())
    await outside.close(timeout=5)
    await store.open(SHARDS)
    session = await connect(store._settings)
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
        figures = {"timers": queue.finished - finished, "seconds": round(time.monotonic() - began)}
        print(json.dumps(figures | await _sizes(session)), flush=True)
    loads = latencies("load from the mark", queue.from_mark_s)
    print(json.dumps(loads | latencies("load from the beginning", queue.from_beginning_s), indent=2))


async def _sizes(session: Connection) -> dict[str, Any]:
    tablespaces = "INNODB_SYS_TABLESPACES" if "MariaDB" in session.server.version else "INNODB_TABLESPACES"
    ((size,),) = await session.rows(_SIZE.format(tablespaces=tablespaces).encode())
    ((unpurged,),) = await session.rows(_UNPURGED.encode())
    return {"timers MiB": float(size), "transactions not purged": int(unpurged)}


def main() -> None:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="a database on a server of yours; it is dropped first")
    parser.add_argument("--timers", type=int, default=3_000_000, help="how many pass through")
    parser.add_argument("--pending", type=int, default=200_000, help="how many are pending all the time")
    parser.add_argument("--retries", type=float, default=0.1, help="the share that is rescheduled when it rings")
    parser.add_argument("--seconds-max", type=float, default=2_400, help="after which it ends")
    args = parser.parse_args()
    asyncio.run(measure(args.url, args))


if __name__ == "__main__":
    main()
