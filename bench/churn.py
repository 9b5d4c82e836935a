"""Measures bloat in a table used as a queue: millions of timers pass through PostgreSQL, once for each table variant.

    python -m bench.churn                                 # every variant, 3 million timers each: about fifteen minutes
    python -m bench.churn --variants shipped --timers 10000000 --history
    python -m bench.churn --postgresql postgresql://…     # an existing server instead of one started here

The store's own adapter creates, loads, reschedules and finishes timers as the engine does. Its clock advances with the
number of created timers, so the number of pending timers is constant, and any growth is bloat. Prints a table and writes
JSON to bench/results/. docs/how-to/postgresql.md explains the results.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
from rich.console import Console
from rich.table import Table

from bench.churn_variants import VARIANTS, Variant, prepared, put_back
from bench.database import database
from bench.store import OWNER, RECORD
from tocsin.model.timer import Status
from tocsin.ports.store import KEY_MIN, FireKey, HistoryRow, ShardBatch, Store, StoredRow, generation
from tocsin.sql.keys import LeftEdges
from tocsin.stores.options import PostgresOptions
from tocsin.stores.postgresql.store import PostgresStore

SHARDS = 16
#: Rows created in one commit and so, on average, also finished in one.
BATCH_ROWS = 4_000
PAGE_ROWS = 1_000
#: Every n-th round reads a shard from its beginning, as a new owner does.
FROM_BEGINNING_EVERY = 10
#: Virtual microseconds between the creation of two timers.
STEP_US = 20
START_US = 1_800_000_000_000_000
FAR_US = 365 * 86_400 * 1_000_000


class NoEdges(LeftEdges):
    """Makes range deletes begin at the beginning of the shard, without the store's hint."""

    def take(self, batch: ShardBatch) -> FireKey:
        """The least key of any shard, whatever the batch."""
        return KEY_MIN


class Queue:
    """A steady stream of timers through a store. `pending` is the number of pending timers in the steady state, `retries` the
    share that is rescheduled when it fires."""

    def __init__(self, store: Store, pending: int, retries: float, history: bool) -> None:
        self._store = store
        self._random = random.Random(11)
        self._spread = 2 * pending
        self._retries = retries
        self._history = history
        self._after: list[FireKey] = [KEY_MIN] * SHARDS
        self.made = self.finished = self._stored = 0
        self.write_s: list[float] = []
        self.from_last_load_s: list[float] = []
        self.from_beginning_s: list[float] = []

    @property
    def now_us(self) -> int:
        """The virtual clock."""
        return START_US + self.made * STEP_US

    async def fill(self, far: int) -> None:
        """Creates timers until the steady number is pending, after `far` timers that do not fire in this run."""
        for first in range(0, far, BATCH_ROWS):
            parts = [ShardBatch(shard_id, 1, OWNER) for shard_id in range(SHARDS)]
            for number in range(first, min(first + BATCH_ROWS, far)):
                row = self._row(self._random.randbytes(16), f"far-{number:09d}-reminder")
                parts[number % SHARDS].upserts.append(row._replace(execute_at=row.execute_at + FAR_US))
            await self._store.apply([part for part in parts if part.upserts])
        while self.made < self._spread // 2:
            parts = [ShardBatch(shard_id, 1, OWNER) for shard_id in range(SHARDS)]
            self._create(parts)
            await self._store.apply([part for part in parts if part.upserts])

    async def settle(self, far: int = 0) -> None:
        """Fills the table, and runs rounds until each fires as many timers as it creates. Measuring begins afterwards."""
        await self.fill(far)
        while self.made < 3 * self._spread // 2:
            await self.round()
        for kept in (self.write_s, self.from_last_load_s, self.from_beginning_s):
            kept.clear()

    async def round(self) -> None:
        """One commit: finishes or reschedules the due timers and creates new ones."""
        parts = [ShardBatch(shard_id, 1, OWNER) for shard_id in range(SHARDS)]
        for part in parts:
            self._conclude(part, await self._due(part.shard_id))
        self._create(parts)
        began = time.perf_counter()
        await self._store.apply(parts)
        if self._history:
            await self._store.purge_history(self.now_us, BATCH_ROWS * 2)
        self.write_s.append(time.perf_counter() - began)
        if len(self.write_s) % FROM_BEGINNING_EVERY == 0:
            began = time.perf_counter()
            await self._store.load(len(self.write_s) % SHARDS, KEY_MIN, (self.now_us, b""), PAGE_ROWS)
            self.from_beginning_s.append(time.perf_counter() - began)

    def _row(self, uuid: bytes, name: str) -> StoredRow:
        self._stored += 1
        at = self.now_us + self._random.randrange(self._spread) * STEP_US
        return StoredRow(at, uuid, generation(1, OWNER, self._stored), "default", name, (), RECORD)

    def _create(self, parts: list[ShardBatch]) -> None:
        for _ in range(BATCH_ROWS):
            self.made += 1
            row = self._row(self._random.randbytes(16), f"order-{self.made:09d}-reminder")
            parts[self.made % SHARDS].upserts.append(row)

    async def _due(self, shard_id: int) -> list[StoredRow]:
        """Loads due rows as the engine does: only above the last loaded key."""
        due: list[StoredRow] = []
        while True:
            began = time.perf_counter()
            page = await self._store.load(shard_id, self._after[shard_id], (self.now_us, b""), PAGE_ROWS)
            self.from_last_load_s.append(time.perf_counter() - began)
            due += page.rows
            self._after[shard_id] = page.complete_to
            if len(page.rows) < PAGE_ROWS:
                return due

    def _conclude(self, part: ShardBatch, due: list[StoredRow]) -> None:
        if not due:
            return
        part.delete_to = due[-1].key
        for row in due:
            if self._random.random() < self._retries:
                part.upserts.append(self._row(row.uuid, row.timer_id))
                continue
            self.finished += 1
            if self._history:
                expires = self.now_us + self._spread * STEP_US
                part.history.append(HistoryRow(*row[:7], Status.COMPLETED, self.now_us, expires))


class Sizes:
    """The server's statistics of the tables of a schema."""

    def __init__(self, session: Any, schema: str) -> None:
        self._session = session
        self._schema = schema

    async def now(self) -> dict[str, float]:
        """MiB of tables and of their indexes, dead tuples, vacuums so far."""
        sizes: dict[str, float] = {}
        for table in ("timers", "history"):
            for kind, word in (("r", "table"), ("i", "indexes")):
                sizes[f"{table} {word} MiB"] = float(
                    await self._session.fetchval(
                        "SELECT coalesce(sum(pg_relation_size(c.oid)), 0) / 1048576.0 FROM pg_class AS c "
                        "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
                        "WHERE n.nspname = $1 AND c.relkind::text = $2 AND c.relname LIKE $3",
                        self._schema,
                        kind,
                        f"{table}%",
                    )
                )
        row = await self._session.fetchrow(
            "SELECT sum(n_dead_tup), sum(autovacuum_count), sum(n_tup_hot_upd) FROM pg_stat_user_tables "
            "WHERE schemaname = $1 AND relname LIKE 'timers%'",
            self._schema,
        )
        return {**sizes, "dead tuples": float(row[0]), "vacuums": float(row[1]), "updates in place": float(row[2])}

    async def wal(self) -> int:
        """Bytes of write-ahead log so far."""
        return int(await self._session.fetchval("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


async def measure(url: str, variant: Variant, args: argparse.Namespace, cpu_s: Callable[[], float]) -> dict[str, Any]:
    """Fills a new schema, passes the timers through it, and returns the measurements."""
    schema = f"churn_{variant.name.replace('-', '_')}"
    store = PostgresStore(url, postgres=PostgresOptions(schema=schema))
    session = await asyncpg.connect(url, statement_cache_size=0)
    try:
        await session.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        await store.open(SHARDS)
        await prepared(session, schema, variant)
        if not variant.left_edges:
            store._edges = NoEdges()
        for shard_id in range(SHARDS):
            await store.claim(shard_id, expected_epoch=0, owner=OWNER)
        cpu = cpu_s()
        results = await _pass(store, Sizes(session, schema), args)
        # Includes the timers that filled the table: three times the pending ones, and those far from due.
        timers = results["timers passed"] + 3 * args.pending + args.far
        return results | {"CPU s of database per 1,000": (cpu_s() - cpu) / timers * 1_000}
    finally:
        await store.close()
        await session.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        await put_back(session, variant)
        await session.close()


async def _pass(store: PostgresStore, sizes: Sizes, args: argparse.Namespace) -> dict[str, Any]:
    queue = Queue(store, args.pending, args.retries, args.history)
    await queue.settle(args.far)
    first, wal, finished, began = await sizes.now(), await sizes.wal(), queue.finished, time.monotonic()
    dead_max, samples = 0.0, []
    while queue.finished - finished < args.timers and time.monotonic() - began < args.seconds_max:
        for _ in range(25):
            await queue.round()
        samples.append({"timers": queue.finished - finished, "at_s": time.monotonic() - began, **await sizes.now()})
        dead_max = max(dead_max, samples[-1]["dead tuples"])
    passed, last = queue.finished - finished, await sizes.now()
    tenth = max(len(queue.write_s) // 10, 1)
    return {
        "timers passed": passed,
        "timers/s, first tenth": BATCH_ROWS * tenth / sum(queue.write_s[:tenth]),
        "timers/s, last tenth": BATCH_ROWS * tenth / sum(queue.write_s[-tenth:]),
        "worst commit ms": max(queue.write_s) * 1e3,
        **{f"{name}, before": value for name, value in first.items() if "MiB" in name},
        **{f"{name}, after": value for name, value in last.items() if "MiB" in name},
        "dead tuples, most": dead_max,
        "vacuums": last["vacuums"] - first["vacuums"],
        # Only the fence updates rows without moving them in the index.
        "fences in place, share": (last["updates in place"] - first["updates in place"])
        / (len(queue.write_s) * SHARDS),
        **latencies("load from the last key", queue.from_last_load_s),
        **latencies("load from the beginning", queue.from_beginning_s),
        "WAL bytes a timer": (await sizes.wal() - wal) / passed,
        "seconds": time.monotonic() - began,
        "samples": samples,
    }


def latencies(name: str, each_s: list[float]) -> dict[str, float]:
    """Latencies at the beginning, at the end and at worst, in ms."""
    tenth = max(len(each_s) // 10, 1)
    return {
        f"{name} ms, p50 of the first tenth": statistics.median(each_s[:tenth]) * 1e3,
        f"{name} ms, p50 of the last tenth": statistics.median(each_s[-tenth:]) * 1e3,
        f"{name} ms, p99": sorted(each_s)[len(each_s) * 99 // 100] * 1e3,
        f"{name} ms, max": max(each_s) * 1e3,
    }


@contextlib.contextmanager
def _server(url: str | None) -> Iterator[tuple[str, Callable[[], float]]]:
    """Its URL and a function that returns its processor seconds, which is always 0 for an existing server."""
    if url is not None:
        yield url, lambda: 0.0
    else:
        with database() as own:
            yield own.url(), own.cpu_s


def main() -> None:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timers", type=int, default=3_000_000, help="number of timers that pass through each variant")
    parser.add_argument("--pending", type=int, default=200_000, help="number of pending timers")
    parser.add_argument("--far", type=int, default=0, help="number of additional pending timers that do not become due")
    parser.add_argument(
        "--retries", type=float, default=0.1, help="share of timers that are rescheduled when they fire"
    )
    parser.add_argument("--history", action="store_true", help="write history rows, and purge them")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="some of " + ", ".join(VARIANTS))
    parser.add_argument("--seconds-max", type=float, default=1_200, help="time limit of each variant")
    parser.add_argument("--postgresql", metavar="URL", help="URL of an existing server, as a superuser")
    args = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    with _server(args.postgresql) as (url, cpu_s):
        for name in args.variants.split(","):
            print(f"{name}: {VARIANTS[name].meaning} …", flush=True)
            results[name] = asyncio.run(measure(url, VARIANTS[name], args, cpu_s))
            print(json.dumps({key: value for key, value in results[name].items() if key != "samples"}), flush=True)
    table = Table("measurement", *results)
    for key in next(iter(results.values())):
        if key != "samples":
            values = [result[key] for result in results.values()]
            table.add_row(key, *(f"{value:,.0f}" if value >= 100 else f"{value:,.2f}" for value in values))
    Console(width=60 + 16 * len(results)).print(table)
    path = Path(__file__).parent / "results" / f"churn-{time.strftime('%Y%m%dT%H%M%S')}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"options": vars(args), "variants": results}, indent=2) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
