"""Measures commits on Cassandra: what a timer costs the client and the servers, by shards and by timers in a commit.

    python -m bench.cassandra_commits                            # one server, 1, 4, 16 and 64 shards, commits of 50 timers
    python -m bench.cassandra_commits --shards 16 --sizes 1,10,50,250 --paxos v2
    python -m bench.cassandra_commits --sizes "" --in-flight 64,4096    # commits as large as so many clients make them
    python -m bench.cassandra_commits --servers 3
    python -m bench.cassandra_commits --brief    # servers as the tests start them

Each commit of a shard creates timers, and finishes those that its last commit created, with history. With `--in-flight`, so
many clients create one timer at a time, in random shards, and a commit takes those that wait. Prints a table and writes JSON
to bench/results. docs/how-to/cassandra.md has results.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.support.cassandra import CassandraServer, cluster
from tests.support.program import running

from bench.processes import TICK_S, times
from tocsin.model.timer import Status
from tocsin.ports.store import Applied, HistoryRow, ShardBatch, StoredRow, generation
from tocsin.stores.cassandra.store import CassandraStore
from tocsin.stores.options import CassandraOptions

_OWNER = b"bench-incarnatio"
_RECORD = b'{"v":1,"url":"http://127.0.0.1:9000/hook","payload":{"text":"' + b"x" * 180 + b'"},"timeout_us":10000000}'
_RETENTION_US = 3_600_000_000
#: Until a server's compiler has done most of its work, if it has one that takes long.
_WARM_UP_S, _WARM_UP_BRIEF_S = 60.0, 5.0


@dataclass(frozen=True)
class Found:
    """What one measurement found. A timer is created and finished."""

    shards: int
    #: Timers of each commit, or the number of clients.
    load: str
    commits_per_s: float
    timers_per_s: float
    timers_per_commit: float
    commit_ms: float
    client_us_per_timer: float
    server_us_per_timer: float

    @property
    def rows_per_s(self) -> float:
        """Timers created or finished."""
        return 2 * self.timers_per_s


class Shard:
    """Commits of one shard. Its timers are due in the order in which they are created."""

    def __init__(self, store: CassandraStore, shard_id: int) -> None:
        self._store = store
        self._shard_id = shard_id
        self._random = random.Random(shard_id)
        self._made = 0
        self._pending: list[StoredRow] = []
        self.commits = self.timers = 0
        self.seconds = 0.0

    async def claim(self) -> None:
        """Claims it, once."""
        assert await self._store.claim(self._shard_id, expected_epoch=0, owner=_OWNER) == 1

    async def commit(self, size: int) -> None:
        """Creates so many timers, and finishes those of the last commit."""
        now_us = time.time_ns() // 1_000
        batch = ShardBatch(self._shard_id, 1, _OWNER)
        batch.upserts = [self._row(now_us) for _ in range(size)]
        if self._pending:
            batch.delete_to = self._pending[-1].key
            batch.deletes = [row.uuid for row in self._pending]
            batch.history = [
                HistoryRow(*row[:7], Status.COMPLETED, now_us, now_us + _RETENTION_US) for row in self._pending
            ]
        began = time.perf_counter()
        assert await self._store.apply([batch]) == [Applied.DURABLE]
        self.seconds += time.perf_counter() - began
        self._pending = batch.upserts
        self.commits += 1
        self.timers += size

    def _row(self, now_us: int) -> StoredRow:
        self._made += 1
        uuid = self._random.randbytes(16)
        name = f"order-{self._made:09d}-reminder"
        return StoredRow(now_us + self._made, uuid, generation(1, _OWNER, self._made), "default", name, (), _RECORD)

    def reset(self) -> None:
        """Sets the counts to zero."""
        self.commits = self.timers = 0
        self.seconds = 0.0


async def _of_size(shard: Shard, size: int) -> None:
    while True:
        await shard.commit(size)


async def _of_clients(shards: Sequence[Shard], clients: int, commit_max: int) -> None:
    """Commits of what waits, without end. A client whose timer is durable creates the next one."""
    chosen = random.Random(1)
    waiting = [0] * len(shards)
    arrived = [asyncio.Event() for _ in shards]

    def create(count: int) -> None:
        for _ in range(count):
            number = chosen.randrange(len(shards))
            waiting[number] += 1
            arrived[number].set()

    async def run(number: int) -> None:
        while True:
            await arrived[number].wait()
            size = min(waiting[number], commit_max)
            waiting[number] -= size
            if not waiting[number]:
                arrived[number].clear()
            await shards[number].commit(size)
            create(size)

    create(clients)
    async with asyncio.TaskGroup() as group:
        for number in range(len(shards)):
            group.create_task(run(number))


async def measure(
    servers: Sequence[CassandraServer],
    shards: int,
    *,
    warm_up_s: float,
    seconds: float,
    size: int = 0,
    clients: int = 0,
) -> Found:
    """Commits of a new keyspace: of `size` timers in each shard, or as `clients` make them."""
    store = CassandraStore(servers[0].new_url(), CassandraOptions())
    await store.open(shards)
    parts = [Shard(store, shard_id) for shard_id in range(shards)]
    for part in parts:
        await part.claim()
    work: list[asyncio.Task[None]] = []
    if size:
        work = [asyncio.create_task(_of_size(part, size)) for part in parts]
    else:
        # Each timer counts twice: when it is created and when it is finished.
        rows_max = store.capabilities.batch_rows_max
        assert rows_max is not None
        work = [asyncio.create_task(_of_clients(parts, clients, rows_max // 2))]
    try:
        await _time(work, warm_up_s)
        for part in parts:
            part.reset()
        began, client_s, server_s = time.perf_counter(), time.process_time(), _cpu_s(servers)
        await _time(work, seconds)
        elapsed_s = time.perf_counter() - began
        client_s, server_s = time.process_time() - client_s, _cpu_s(servers) - server_s
        commits, timers = sum(part.commits for part in parts), sum(part.timers for part in parts)
    finally:
        for task in work:
            task.cancel()
        await asyncio.wait(work)
        await store.close()
    return Found(
        shards,
        f"{size} each" if size else f"{clients} clients",
        commits / elapsed_s,
        timers / elapsed_s,
        timers / commits,
        sum(part.seconds for part in parts) / commits * 1e3,
        client_s / timers * 1e6,
        server_s / timers * 1e6,
    )


async def _time(work: Sequence[asyncio.Task[None]], seconds: float) -> None:
    """Lets them work; raises their error."""
    done, _ = await asyncio.wait(work, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


def _cpu_s(servers: Sequence[CassandraServer]) -> float:
    pids = [server.process.pid for server in servers if server.process is not None]
    return sum(sum(times(pid)[:2]) for pid in pids) * TICK_S


@contextlib.contextmanager
def _servers(count: int, sync: str, heap: str, paxos: str, *, lasting: bool) -> Iterator[list[CassandraServer]]:
    if count == 1:
        with running(CassandraServer(sync=sync, heap=heap, paxos=paxos, lasting=lasting)) as server:
            yield [server]
    else:
        hosts = [f"127.0.0.{number + 1}" for number in range(count)]
        with cluster(hosts, sync=sync, heap=heap, paxos=paxos, lasting=lasting) as servers:
            yield servers


def show(title: str, found: Sequence[Found]) -> None:
    """Prints a table."""
    table = Table(
        "shards", "load", "commits/s", "timers/s", "rows/s", "timers a commit", "ms a commit", "client µs/timer",
        "server µs/timer", title=title,
    )  # fmt: skip
    for each in found:
        values = (each.commits_per_s, each.timers_per_s, each.rows_per_s, each.timers_per_commit, each.commit_ms,
                  each.client_us_per_timer, each.server_us_per_timer)  # fmt: skip
        table.add_row(str(each.shards), each.load, *(f"{value:,.0f}" for value in values))
    Console(width=130).print(table)


def main() -> None:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=1, help="servers of Cassandra, on loopback addresses")
    parser.add_argument("--sync", default="batch", choices=("batch", "group", "periodic"), help="commitlog_sync")
    parser.add_argument("--paxos", default="v1", choices=("v1", "v2"), help="paxos_variant")
    parser.add_argument("--heap", default="1G", help="of each server")
    parser.add_argument(
        "--brief", action="store_true", help="servers with the settings of tests, which start fast and are slow"
    )
    parser.add_argument("--shards", default="1,4,16,64", help="one or several numbers")
    parser.add_argument("--sizes", default="50", help="timers of each commit, one or several numbers")
    parser.add_argument(
        "--in-flight", default="", help="clients that create one timer at a time, one or several numbers"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement, after a warm-up")
    parser.add_argument("--out", type=Path, default=Path("bench/results"), help="folder for the JSON file")
    args = parser.parse_args()
    loads = [{"size": int(number)} for number in args.sizes.split(",") if number]
    loads += [{"clients": int(number)} for number in args.in_flight.split(",") if number]
    title = f"servers: {args.servers}, heap: {args.heap}, commitlog_sync: {args.sync}, paxos_variant: {args.paxos}"
    title += ", settings of tests" if args.brief else ""
    found = []
    with _servers(args.servers, args.sync, args.heap, args.paxos, lasting=not args.brief) as servers:
        warm_up_s = _WARM_UP_BRIEF_S if args.brief else _WARM_UP_S
        for shards in map(int, args.shards.split(",")):
            for load in loads:
                print(f"measuring {shards} shards, {load} …", file=sys.stderr, flush=True)
                found.append(asyncio.run(measure(servers, shards, warm_up_s=warm_up_s, seconds=args.seconds, **load)))
                # The next ones find warm servers.
                warm_up_s = _WARM_UP_BRIEF_S
    show(title, found)
    path = args.out / f"cassandra-{time.strftime('%Y%m%dT%H%M%S')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"title": title, "results": [asdict(each) for each in found]}, indent=2) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
