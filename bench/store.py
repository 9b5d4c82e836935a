"""Measures how fast a store writes, reads and deletes, beside an idle and a busy event loop.

    python bench/store.py                       # all measurements, SQLite in a temporary folder of the working directory
    python bench/store.py --rows 50000 --set page_bytes=8192 --set wal_checkpoint_pages=1000
    python bench/store.py --postgresql postgresql://user@host/database    # a schema named bench, which is dropped first
    python bench/store.py --mysql mysql://user@host/bench                 # a database, which is dropped first
    python bench/store.py --dynamodb 'dynamodb://bench?endpoint=http://127.0.0.1:8000' --rows 2000   # a new table
    python bench/store.py --cassandra cassandra://127.0.0.1:9042/bench --rows 2000   # a new keyspace
    python bench/store.py --mongodb mongodb://127.0.0.1/bench --rows 2000  # a new database

The machine's own limits are measured in the same run: fsyncs a second, and bytes a second in synced writes of a large batch's
size. Prints a table and writes JSON to bench/results/store.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from tocsin.model.timer import Status
from tocsin.ports.store import KEY_MAX, KEY_MIN, HistoryRow, ListQuery, ShardBatch, Store, StoredRow, generation
from tocsin.sql.pool import ServerOptions
from tocsin.stores.cassandra.store import CassandraStore
from tocsin.stores.dynamodb.store import DynamoStore
from tocsin.stores.memory import MemoryStore
from tocsin.stores.mongodb.store import MongoStore
from tocsin.stores.mysql.connection import connect
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.options import (
    CassandraOptions,
    DynamoOptions,
    MongoOptions,
    MysqlOptions,
    PostgresOptions,
    SqliteOptions,
)
from tocsin.stores.postgresql.store import PostgresStore
from tocsin.stores.sqlite.store import SqliteStore

T = TypeVar("T")

OWNER = b"bench-incarnatio"
RECORD = b'{"v":1,"url":"http://127.0.0.1:9000/hook","payload":{"text":"' + b"x" * 180 + b'"},"timeout_us":10000000}'
NOW_US = 1_800_000_000_000_000
SHARDS = 16


class Rows:
    """Generates rows with random instants within `spread_us` of a virtual time that advances with each row."""

    def __init__(self, spread_us: int) -> None:
        self.random = random.Random(7)
        self.spread_us = spread_us
        self.made = 0

    def row(self) -> StoredRow:
        self.made += 1
        at = NOW_US + self.made * 20 + self.random.randrange(self.spread_us)
        name = f"order-{self.made:09d}-reminder"
        return StoredRow(at, self.random.randbytes(16), generation(1, OWNER, self.made), "default", name, (), RECORD)

    def batch(self, rows: int, shards: int) -> list[ShardBatch]:
        parts = [ShardBatch(shard_id, 1, OWNER) for shard_id in range(shards)]
        for i in range(rows):
            parts[i % shards].upserts.append(self.row())
        return [part for part in parts if part.upserts]


def disk_limits(folder: Path) -> dict[str, float]:
    """Synced small writes a second, and MB a second in synced writes of 8 MB."""
    path = folder / "limits"
    limits = {}
    for name, size, repeats in (("fsyncs/s", 4096, 200), ("MB/s in synced 8 MB", 8_000_000, 20)):
        block = os.urandom(size)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
        for timed in (False, True):
            began = time.perf_counter()
            for i in range(repeats):
                os.pwrite(descriptor, block, i * size)
                os.fdatasync(descriptor)
            if timed:
                per_s = repeats / (time.perf_counter() - began)
                limits[name] = per_s if size == 4096 else per_s * size / 1e6
        os.close(descriptor)
    path.unlink()
    return limits


@asynccontextmanager
async def beside(load: float) -> AsyncIterator[None]:
    """Keeps the event loop busy for the share `load` of the time, in slices of about 100 µs of Python work."""

    async def spin() -> None:
        while True:
            until = time.perf_counter() + 100e-6
            while time.perf_counter() < until:
                sum(range(50))
            await asyncio.sleep(100e-6 * (1 - load) / load if load < 1 else 0)

    task = asyncio.create_task(spin()) if load else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def timed(calls: Iterator[Callable[[], Awaitable[Any]]]) -> tuple[float, list[float]]:
    """Runs the calls one after another; returns the total seconds and those of each call."""
    each = []
    for call in calls:
        began = time.perf_counter()
        await call()
        each.append(time.perf_counter() - began)
    return sum(each), each


async def measure_upserts(store: Store, rows: Rows, total: int, size: int, shards: int) -> dict[str, float]:
    commits = max(3, total // size)
    # Generated one by one, outside of the measured time, so that batches do not add to the process's memory.
    batches = (rows.batch(size, shards) for _ in range(commits))
    seconds, each = await timed((lambda b=b: store.apply(b)) for b in batches)
    each.sort()
    return {
        "rows/s": commits * size / seconds,
        "commits/s": commits / seconds,
        "p50 ms": statistics.median(each) * 1e3,
        "p99 ms": each[int(len(each) * 0.99)] * 1e3,
        "worst ms": each[-1] * 1e3,
    }


async def measure_loads(store: Store, total: int, page: int) -> dict[str, float]:
    loaded, pages = 0, 0
    began = time.perf_counter()
    for shard_id in range(SHARDS):
        after = KEY_MIN
        while after < KEY_MAX and loaded < total:
            rows, after = await store.load(shard_id, after, KEY_MAX, page)
            loaded += len(rows)
            pages += 1
    seconds = time.perf_counter() - began
    return {"rows/s": loaded / seconds, "ms a page": seconds / pages * 1e3}


async def measure_range_deletes(store: Store, total: int) -> dict[str, float]:
    batches = []
    for shard_id in range(SHARDS):
        page = await store.load(shard_id, KEY_MIN, KEY_MAX, total // SHARDS)
        batches.append(ShardBatch(shard_id, 1, OWNER, delete_to=page.rows[-1].key))
    seconds, _ = await timed(iter([lambda: store.apply(batches)]))
    return {"rows/s": total / seconds}


async def measure_finishes(store: Store, total: int, size: int, *, exact: bool) -> dict[str, float]:
    """Deletes timers by range or by uuid, and writes a history row for each."""
    batches = []
    after = [KEY_MIN] * SHARDS
    for _ in range(total // size):
        parts = []
        for shard_id in range(SHARDS):
            page = await store.load(shard_id, after[shard_id], KEY_MAX, size // SHARDS)
            after[shard_id] = page.rows[-1].key
            part = ShardBatch(shard_id, 1, OWNER, delete_to=None if exact else after[shard_id])
            part.deletes = [row.uuid for row in page.rows] if exact else []
            part.history = [
                HistoryRow(*row[:7], Status.COMPLETED, NOW_US, NOW_US + 1_000_000 + i)
                for i, row in enumerate(page.rows)
            ]
            parts.append(part)
        batches.append(parts)
    seconds, _ = await timed((lambda b=b: store.apply(b)) for b in batches)
    return {"rows/s": len(batches) * size / seconds}


async def measure_purge(store: Store, limit: int) -> dict[str, float]:
    removed = 0
    began = time.perf_counter()
    while count := await store.purge_history(2 * NOW_US, limit):
        removed += count
    return {"rows/s": removed / (time.perf_counter() - began)}


async def measure_list(store: Store) -> dict[str, float]:
    query = ListQuery(("default",), range(SHARDS), frozenset(Status), limit=100)
    seconds, each = await timed((lambda: store.list(query)) for _ in range(50))
    return {"pages/s": 50 / seconds, "worst ms": max(each) * 1e3}


def chosen(kind: type[T], settings: dict[str, Any]) -> T:
    """Options of this kind with those of the values that it has."""
    return kind(**{each.name: settings[each.name] for each in fields(kind) if each.name in settings})


async def make_store(options: argparse.Namespace, folder: Path, settings: dict[str, Any]) -> Store:
    """The selected store, empty and not yet open."""
    if options.memory:
        return MemoryStore()
    if options.mysql is not None:
        store = MysqlStore(options.mysql, chosen(ServerOptions, settings), chosen(MysqlOptions, settings))
        connection = await connect(store._server, database=False)
        await connection.run(b"DROP DATABASE IF EXISTS `%b`" % store._server.database.encode())
        await connection.close(timeout=5)
        return store
    if options.dynamodb is not None:
        return DynamoStore(options.dynamodb, chosen(DynamoOptions, settings))
    if options.cassandra is not None:
        return CassandraStore(options.cassandra, chosen(CassandraOptions, settings))
    if options.mongodb is not None:
        return MongoStore(options.mongodb, chosen(MongoOptions, {"operation_timeout_s": 600.0, **settings}))
    if options.postgresql is None:
        return SqliteStore(folder / "bench.db", chosen(SqliteOptions, settings))
    session = await asyncpg.connect(options.postgresql)
    await session.execute("DROP SCHEMA IF EXISTS bench CASCADE")
    await session.close()
    return PostgresStore(options.postgresql, chosen(ServerOptions, settings), PostgresOptions(schema="bench"))


async def run(options: argparse.Namespace, folder: Path) -> list[tuple[str, dict[str, float]]]:
    """Runs all measurements in turn, on one growing store."""
    results: list[tuple[str, dict[str, float]]] = []

    def note(name: str, values: dict[str, float]) -> None:
        results.append((name, values))
        print(f"{name:44}", "  ".join(f"{value:12,.1f} {unit}" for unit, value in values.items()), flush=True)

    note("disk", disk_limits(folder))
    settings = {name: int(value) if value.isdigit() else value for name, value in options.set}
    store = await make_store(options, folder, settings)
    await store.open(SHARDS)
    for shard_id in range(SHARDS):
        await store.claim(shard_id, expected_epoch=0, owner=OWNER)
    rows = Rows(int(options.spread_s * 1e6))
    if options.pending:
        note(f"{options.pending} pending, by 5000", await measure_upserts(store, rows, options.pending, 5000, SHARDS))
    for load in options.busy:
        async with beside(load):
            where = f"loop {load:.0%} busy"
            sizes = ((5000, options.rows), (1000, options.rows), (64, 12_800), (32, 6_400), (1, 200))
            for size, total in ((size, min(total, options.rows)) for size, total in sizes):
                note(f"upserts by {size}, {where}", await measure_upserts(store, rows, total, size, min(size, SHARDS)))
            note(f"loads of 1000, {where}", await measure_loads(store, options.rows, 1000))
            if store.capabilities.range_delete:
                note(f"finishes by range and 2000, {where}", await measure_finishes(store, 20_000, 2000, exact=False))
            finishes = min(10_000, options.rows)
            note(f"finishes by uuid and 2000, {where}", await measure_finishes(store, finishes, 2000, exact=True))
            note(f"lists of 100, {where}", await measure_list(store))
    if store.capabilities.range_delete:
        note("range delete of 50000", await measure_range_deletes(store, 50_000))
    note("purge by 2000", await measure_purge(store, 2000))
    files = sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())
    note(
        "after", {"MB of files": files / 1e6, "MB of memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}
    )
    await store.close()
    return results


def main() -> None:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="rows per measurement")
    parser.add_argument("--pending", type=int, default=0, help="rows to insert first")
    parser.add_argument(
        "--busy", type=float, nargs="+", default=[0.0, 0.5, 0.95], help="shares of the event loop's time"
    )
    parser.add_argument("--spread-s", type=float, default=3600, help="range of the instants, in seconds")
    parser.add_argument(
        "--set", action="append", default=[], type=lambda text: text.split("=", 1), metavar="NAME=VALUE"
    )
    parser.add_argument("--switch-interval-ms", type=float, default=5.0, help="the interpreter's switch interval")
    parser.add_argument("--memory", action="store_true", help="measure the memory store instead")
    parser.add_argument("--postgresql", metavar="URL", help="measure PostgreSQL in this database instead")
    parser.add_argument("--mysql", metavar="URL", help="measure MySQL or MariaDB in this database instead")
    parser.add_argument(
        "--dynamodb", metavar="URL", help="measure DynamoDB in this table instead, which must not exist yet"
    )
    parser.add_argument(
        "--cassandra", metavar="URL", help="measure Cassandra in this keyspace instead, which must not exist yet"
    )
    parser.add_argument(
        "--mongodb", metavar="URL", help="measure MongoDB in this database instead, which must not exist yet"
    )
    parser.add_argument("--folder", type=Path, default=Path.cwd() / "build")
    options = parser.parse_args()
    sys.setswitchinterval(options.switch_interval_ms / 1e3)
    options.folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = asyncio.run(run(options, Path(folder)))
    target = Path(__file__).parent / "results" / "store.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"options": vars(options), "results": results}, indent=2, default=str))


if __name__ == "__main__":
    main()
