"""What a table that is a queue becomes: millions of timers pass through PostgreSQL, under one variant of it after another.

    python -m bench.churn                                 # every variant, 3 million timers each: about fifteen minutes
    python -m bench.churn --variants shipped --timers 10000000 --history
    python -m bench.churn --postgresql postgresql://…     # a server of yours instead of one started here

The store's own adapter creates, loads, reschedules and finishes timers as the engine does, by a clock that advances with the
timers made, so that as many are pending at the end as were near the beginning. Whatever grows meanwhile is bloat.
Prints a table and writes JSON to bench/results/. How to read it: docs/how-to/postgresql.md.
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
from tocsin.stores.postgresql import PostgresStore
from tocsin.stores.sql_keys import LeftEdges

SHARDS = 16
#: Rows made in one commit, and so, on the average, finished in one.
BATCH_ROWS = 4_000
PAGE_ROWS = 1_000
#: Every so many rounds a shard is read from its beginning, as its next owner would.
FROM_BEGINNING_EVERY = 10
#: Virtual microseconds from one timer's creation to the next one's.
STEP_US = 20
START_US = 1_800_000_000_000_000
FAR_US = 365 * 86_400 * 1_000_000


class NoEdges(LeftEdges):
    """Range deletes begin at the beginning of the shard: what the store did without its hint."""

    def take(self, batch: ShardBatch) -> FireKey:
        """See LeftEdges."""
        return KEY_MIN


class Queue:
    """Timers that come and go. `pending` are waiting in the steady state, `retries` is the share that is not done when it
    rings and comes again later."""

    def __init__(self, store: Store, pending: int, retries: float, history: bool) -> None:
        self._store = store
        self._random = random.Random(11)
        self._spread = 2 * pending
        self._retries = retries
        self._history = history
        self._after: list[FireKey] = [KEY_MIN] * SHARDS
        self.made = self.finished = self._stored = 0
        self.write_s: list[float] = []
        self.from_mark_s: list[float] = []
        self.from_beginning_s: list[float] = []

    @property
    def now_us(self) -> int:
        """The virtual clock."""
        return START_US + self.made * STEP_US

    async def fill(self, far: int) -> None:
        """Only creates, until as many are pending as will be: at first `far` that will not ring in this run."""
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
        """Fills, and goes on until what is due in a round is what is made in one. Measuring begins afterwards."""
        await self.fill(far)
        while self.made < 3 * self._spread // 2:
            await self.round()
        for kept in (self.write_s, self.from_mark_s, self.from_beginning_s):
            kept.clear()

    async def round(self) -> None:
        """One commit: what is due is done or comes again, and new timers are created."""
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
        """As the engine loads: above what was loaded before."""
        due: list[StoredRow] = []
        while True:
            began = time.perf_counter()
            page = await self._store.load(shard_id, self._after[shard_id], (self.now_us, b""), PAGE_ROWS)
            self.from_mark_s.append(time.perf_counter() - began)
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
    """What the server says of the tables of a schema."""

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
        """Bytes of the log so far."""
        return int(await self._session.fetchval("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


async def measure(url: str, variant: Variant, args: argparse.Namespace, cpu_s: Callable[[], float]) -> dict[str, Any]:
    """Fills a new schema, lets the timers pass, and tells what they left."""
    schema = f"churn_{variant.name.replace('-', '_')}"
    store = PostgresStore(url, schema=schema)
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
        figures = await _pass(store, Sizes(session, schema), args)
        # With what filled the table: three times as many as are pending, and those far from due.
        timers = figures["timers passed"] + 3 * args.pending + args.far
        return figures | {"CPU s of database per 1,000": (cpu_s() - cpu) / timers * 1_000}
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
        # Nothing else than the fence updates rows without moving them in the index.
        "fences in place, share": (last["updates in place"] - first["updates in place"])
        / (len(queue.write_s) * SHARDS),
        **latencies("load from the mark", queue.from_mark_s),
        **latencies("load from the beginning", queue.from_beginning_s),
        "WAL bytes a timer": (await sizes.wal() - wal) / passed,
        "seconds": time.monotonic() - began,
        "samples": samples,
    }


def latencies(name: str, each_s: list[float]) -> dict[str, float]:
    """How long something took in the beginning, in the end and at worst, in ms."""
    tenth = max(len(each_s) // 10, 1)
    return {
        f"{name} ms, p50 of the first tenth": statistics.median(each_s[:tenth]) * 1e3,
        f"{name} ms, p50 of the last tenth": statistics.median(each_s[-tenth:]) * 1e3,
        f"{name} ms, p99": sorted(each_s)[len(each_s) * 99 // 100] * 1e3,
        f"{name} ms, max": max(each_s) * 1e3,
    }


@contextlib.contextmanager
def _server(url: str | None) -> Iterator[tuple[str, Callable[[], float]]]:
    """Its URL, and what tells its processor seconds: of another's server, nothing."""
    if url is not None:
        yield url, lambda: 0.0
    else:
        with database() as own:
            yield own.url(), own.cpu_s


def main() -> None:
    """Parses the command line and runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timers", type=int, default=3_000_000, help="how many pass through each variant")
    parser.add_argument("--pending", type=int, default=200_000, help="how many are pending all the time")
    parser.add_argument("--far", type=int, default=0, help="how many more are pending, far from due")
    parser.add_argument("--retries", type=float, default=0.1, help="the share that is rescheduled when it rings")
    parser.add_argument("--history", action="store_true", help="with history rows, which are purged in their turn")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="some of " + ", ".join(VARIANTS))
    parser.add_argument("--seconds-max", type=float, default=1_200, help="bound of each variant")
    parser.add_argument("--postgresql", metavar="URL", help="a superuser's URL of a server that is there already")
    args = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    with _server(args.postgresql) as (url, cpu_s):
        for name in args.variants.split(","):
            print(f"{name}: {VARIANTS[name].meaning} …", flush=True)
            results[name] = asyncio.run(measure(url, VARIANTS[name], args, cpu_s))
            print(json.dumps({key: value for key, value in results[name].items() if key != "samples"}), flush=True)
    table = Table("figure", *results)
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
