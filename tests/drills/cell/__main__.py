"""The cell drill: `python -m tests.drills.cell`, or `make drill-cell`.

One tenth of a cell of docs/explanation/scale.md, with all its parts together: two nodes on a PostgreSQL server, in which
millions of timers wait. Timers are created in batches at any node at a steady rate, and as many fire, while others read
lists of them. Beside this stream runs the traffic of the soak: schedules, monitors, flows, failures with notifications, jobs
that cancel and replay, service calls, pages with their live streams. `--standby` adds a streaming replica of the database.

Each minute it prints what was created and fired, how late, and what it cost; in the end the same by quarters. If a promise to
a client was broken, or the stream's timers did not all fire, each once and none early, the exit status is 1.

A million pending timers take some 600 MB of disk, and as much again with a standby; each server keeps up to 8 GB of
write-ahead log.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
from bench import processes
from bench.database import Database

from tests.drills.cell.minutes import Meter, head, line, together
from tests.drills.postgresql import on_a_new_server, standby
from tests.drills.soak import traffic
from tests.drills.soak.nodes import node
from tests.drills.soak.samples import Sampler
from tests.drills.soak.verdict import broken, table
from tests.support.cluster import ended, now_us, shared_by
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

NAMES = ("one", "two")
SHARDS = 32
SAMPLE_S = 60.0
#: The stream's timers in a request, and how often each client sends one: so seldom that it has time to catch up.
_BATCH, _CLIENTS_LEAST, _INTERVAL_S = 100, 4, 4
#: What waits from the beginning on is created as fast as possible, and at least so fast.
_FILL_BATCH, _FILL_CLIENTS, _FILL_LEAST_PER_S = 500, 16, 8_000
_BEGIN_S = 10
#: Lists of 100 timers.
_LISTS_PER_S, _LIST_CLIENTS = 5, 4
#: What is not due before the end is due so long after the beginning, within such a time.
_FAR_AFTER_US, _FAR_SPREAD_S = 4 * 3_600_000_000, 24 * 3_600
#: How long the last calls may take to arrive.
_ARRIVED_US = 60_000_000
#: Turnovers of what has ended.
_TURNOVERS = 8


@dataclass(frozen=True)
class Plan:
    """The stream's timers are created at `rate` a second for `seconds`, each `lead_s` before it is due. So many are `pending`
    at any time, those of the stream included. The traffic beside it creates `beside` timers a second."""

    rate: int
    pending: int
    lead_s: int
    seconds: int
    beside: int

    @property
    def clients(self) -> int:
        """The stream's."""
        return max(_INTERVAL_S * self.rate // _BATCH, _CLIENTS_LEAST)

    @property
    def retention_s(self) -> int:
        """For how long what has ended is kept."""
        return max(self.seconds // _TURNOVERS, 60)


class Cell:
    """The drill on running nodes, whose database has this URL. `receiver` is the port of the stream's receiver."""

    def __init__(self, servers: list[ServerProcess], url: str, receiver: int, plan: Plan) -> None:
        self.servers, self.plan = servers, plan
        self._url, self._receiver = url, receiver
        self._failed: list[str] = []

    async def fill(self) -> None:
        """Creates the timers that are not due before the end."""
        count = self.plan.pending - self.plan.rate * self.plan.lead_s
        if count <= 0:
            return
        filled = await self._load(
            due_us=now_us() + _FAR_AFTER_US, count=count, batch=_FILL_BATCH, connections=_FILL_CLIENTS,
            spread=_FAR_SPREAD_S, order="random", prefix="far",
        )  # fmt: skip
        print(f"{filled['timers']:,} timers created, {filled['per_s']:,.0f} a second", flush=True)

    async def run(self, meter: Meter) -> list[str]:
        """Keeps the stream running, with the traffic beside it; returns what is wrong."""
        plan = self.plan
        beside = traffic.Traffic(self.servers, traffic.Plan(plan.beside, plan.retention_s))
        counted = beside.ledger.counted
        sampler = Sampler(self.servers, self._url, lambda: counted["duplicates"])
        due, ahead = await self._begin()
        async with sampler.watching(), beside.running():
            await asyncio.sleep(max(due - now_us(), 0) / 1e6)
            await meter.begin()
            stream, lists = asyncio.create_task(self._stream(due)), asyncio.create_task(self._lists(due))
            print(head(), flush=True)
            while not stream.done():
                await asyncio.wait({stream}, timeout=SAMPLE_S)
                print(line(f"{len(meter.minutes) + 1}", await meter.take()), flush=True)
                await sampler.take()
            created, read = await stream, await lists
        wrong = await self._balance(meter, due, ahead + created["timers"])
        for number in range(4):
            first, last = (len(meter.minutes) * each // 4 for each in (number, number + 1))
            if first < last:
                print(line(f"quarter {number + 1}", together(meter.minutes[first:last])))
        print(table(sampler.samples, beside.ledger))
        print(", ".join(f"{name}: {count}" for name, count in sorted(counted.items())))
        for name, of in (("batches", created), ("lists", read)):
            print(f"{of['requests']:,} {name}, p50 {of['p50_ms']:.1f} ms, p99 {of['p99_ms']:.1f} ms", flush=True)
        return wrong + self._failed + broken(beside.ledger, now_us())

    async def _begin(self) -> tuple[int, int]:
        """Creates those of the stream that are due in its first seconds; returns when the first one is, and how many."""
        plan = self.plan
        count = plan.rate * plan.lead_s
        due = now_us() + (_BEGIN_S + count // _FILL_LEAST_PER_S) * 1_000_000
        ahead = await self._load(
            due_us=due, count=count, batch=_BATCH, connections=plan.clients, spread=plan.lead_s, prefix="ahead"
        )
        if now_us() > due:
            raise RuntimeError("the first timers were due before all of them were created")
        return due, ahead["timers"]

    async def _stream(self, due: int) -> dict[str, Any]:
        plan = self.plan
        return await self._load(
            due_us=due + plan.lead_s * 1_000_000, count=plan.rate * plan.seconds, batch=_BATCH, connections=plan.clients,
            spread=plan.seconds, rate=plan.rate / _BATCH, prefix="stream",
        )  # fmt: skip

    async def _lists(self, due: int) -> dict[str, Any]:
        count = _LISTS_PER_S * self.plan.seconds
        return await self._load(
            due_us=due, count=count, connections=_LIST_CLIENTS, spread=self.plan.seconds, rate=_LISTS_PER_S,
            operation="list",
        )  # fmt: skip

    async def _load(self, *, count: int, connections: int, batch: int = 0, **options: Any) -> dict[str, Any]:
        """One load process until its end. `count` is rounded down to whole requests of each connection."""
        whole = connections * max(batch, 1)
        process = processes.start_load(
            ",".join(str(each.address()[1]) for each in self.servers), self._receiver, batch=batch,
            count=max(count // whole, 1) * whole, connections=connections, seconds=24 * 3_600, **options,
        )  # fmt: skip
        # Where requests fail, the rest of what was measured counts all the same.
        result = await asyncio.to_thread(processes.finish, process, failing=True)
        if result["failures"]:
            self._failed.append(f"{result['failures']} requests failed, the first: {result['first_failure']}")
        return result

    async def _balance(self, meter: Meter, due: int, created: int) -> list[str]:
        """What is wrong with the stream when its last timer has had time to arrive."""
        last = due + (self.plan.lead_s + self.plan.seconds) * 1_000_000 + _ARRIVED_US
        # The traffic beside it may have taken longer than that to settle.
        await meter.receive()
        while meter.arrived < created and now_us() < last:
            await asyncio.sleep(1)
            await meter.receive()
        print(f"{created:,} timers of the stream, {meter.arrived:,} calls, {meter.early} early", flush=True)
        wrong = [f"{meter.early} timers of the stream came early"] if meter.early else []
        # No node dies and no commit fails, so nothing is a reason for a second call.
        return wrong + ([f"{created} timers of the stream, {meter.arrived} calls"] if meter.arrived != created else [])


async def drill(database: PostgresServer, folder: Path, plan: Plan, *, with_standby: bool) -> list[str]:
    """The drill on a new database."""
    url = await database.create_database()
    servers = [node(folder, name, url, plan.retention_s, "--shards", str(SHARDS)) for name in NAMES]
    async with ended(*servers):
        for server in servers:
            server.env["TOCSIN_NAMESPACE_NUM_SHARDS"] = str(SHARDS)
            await server.start()
        await shared_by(servers, set(NAMES))
        session = await asyncpg.connect(url)
        try:
            with processes.receiver() as receiver, contextlib.ExitStack() as replica:
                cell = Cell(servers, url, receiver.port, plan)
                await cell.fill()
                if with_standby:
                    replica.enter_context(standby(database))
                return await cell.run(Meter(servers, Database(database), session, receiver.port))
        finally:
            await session.close()


def main() -> int:
    """Runs the drill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=40.0)
    parser.add_argument("--rate", type=int, default=6_250, help="timers of the stream created, and fired, a second")
    parser.add_argument("--pending", type=int, default=6_250_000, help="timers that wait at any time")
    parser.add_argument("--lead", type=int, default=300, help="seconds from the stream's creates to their instants")
    parser.add_argument("--beside", type=int, default=50, help="timers created a second by the traffic beside it")
    parser.add_argument("--standby", action="store_true", help="with a streaming replica")
    given = parser.parse_args()
    plan = Plan(given.rate, given.pending, given.lead, int(given.minutes * 60), given.beside)
    return on_a_new_server(lambda database, folder: drill(database, folder, plan, with_standby=given.standby))


if __name__ == "__main__":
    sys.exit(main())
