"""End-to-end ledger check: creates very many timers through any node of a cluster, updates 30 % and deletes 10 % of them
while they fire and nodes join and leave, and finally accounts for each timer.

    python -m tests.crash.ledger_check --timers 1000000 [--seconds 500] [--database postgresql] [--sessions]

One node is killed and started again, one is restarted gracefully, a fourth joins and leaves, and another is killed, all while
timers are created, changed and fired. With `--sessions` there are two nodes instead, and the database ends one of their
sessions at random every few seconds. The exit status is 1 if a timer is not accounted for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tests.crash.ledger_check_receiver import CALL
from tests.crash.ledger_check_report import Report, WriteLog
from tests.support.cassandra import CassandraServer
from tests.support.cluster import DATABASES, AnyNode, balanced, node, now_us, running, shared_by
from tests.support.dynamodb import DynamoServer
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tests.support.sessions import Sessions
from tocsin.model.instants import format_instant, parse_instant

_BATCH_TIMERS = 500
_CREATORS, _CHANGERS = 3, 24
#: Timers that wait for their update or delete. When there are more, creating pauses.
_CHANGES_WAITING_MAX = 1_000
#: Shares of timers to change, somewhat more than the goal: some timers fire before their change.
_UPDATED, _DELETED = 0.33, 0.11
_SHARDS = 24
#: Timers that are created late are due within that many times the plan's time, at most this.
_LATE_SPREAD, _LATE_SPREAD_US_MAX = 2, 60_000_000
#: Results of calls are durable soon; on a busy machine a batch may take longer.
_BEFORE_FAULT_US = 5_000_000
#: Pause between two session faults, at least and at most.
_SESSION_PAUSE_S = (0.5, 4.0)
#: Pause before a client sends the rest of a batch again, doubled each time: a cluster that refuses is not asked more often.
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.05, 2.0
#: How long nodes may take to share the shards: several heartbeats of a database that others use, too.
_SHARED_WITHIN_S = 150.0
#: Starts of a node while the database does not answer; each takes as long as one statement may take.
_STARTS_MAX = 10


@dataclass(frozen=True)
class Plan:
    """What to run. `seconds` is the time over which the timers are due; creating them takes about half of it. `report` prints
    a line."""

    timers: int
    seconds: float
    seed: int
    report: Callable[[str], None]


class _Writers:
    """Clients that create all timers in batches, and change some of them one by one."""

    def __init__(
        self, plan: Plan, log: WriteLog, servers: list[ServerProcess], gone: set[ServerProcess], url: str
    ) -> None:
        self._plan, self._log, self._servers, self._gone, self._url = plan, log, servers, gone, url
        self._random = random.Random(plan.seed)
        self._begun_at = now_us()
        self._numbers = iter(range(plan.timers))
        self._to_change: asyncio.Queue[int | None] = asyncio.Queue(_CHANGES_WAITING_MAX)
        self.made = self.changed = 0

    async def work(self) -> None:
        """Returns when all timers are created and changed."""
        changers = [asyncio.create_task(self._change_all(AnyNode(self._servers, n))) for n in range(_CHANGERS)]
        try:
            await asyncio.gather(*(self._create_all(AnyNode(self._servers, 1_000 + n)) for n in range(_CREATORS)))
            for _ in changers:
                await self._to_change.put(None)
            await asyncio.gather(*changers)
        finally:
            for changer in changers:
                changer.cancel()

    def _due(self, least_s: float) -> int:
        """A random instant within the plan's time, at least `least_s` from now; after the plan's time, one that leaves time
        for changes."""
        now = now_us()
        spread_us = min(int(_LATE_SPREAD * self._plan.seconds * 1e6), _LATE_SPREAD_US_MAX)
        latest = max(self._begun_at + int(self._plan.seconds * 1e6), now + spread_us)
        return self._random.randint(now + int(least_s * 1e6), latest)

    async def _create_all(self, client: AnyNode) -> None:
        client.gone = self._gone
        while numbers := list(islice(self._numbers, _BATCH_TIMERS)):
            left, pause_s = numbers, _PAUSE_S_MIN
            while left := await self._create(client, left):
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            self.made += len(numbers)
            # Spread over half of the time, so that many timers fire meanwhile.
            ahead_s = self.made / self._plan.timers * self._plan.seconds / 2 - (now_us() - self._begun_at) / 1e6
            await asyncio.sleep(max(ahead_s, 0))
        client.close()

    async def _create(self, client: AnyNode, numbers: list[int]) -> list[int]:
        """Creates one batch, and has some of its timers changed; returns those whose creation is not certain."""
        sent_at, versions, timers = now_us(), [], []
        for number in numbers:
            execute_at = self._due(1)
            versions.append(self._log.sent(number, execute_at, sent_at))
            timers.append(
                {
                    "namespace": "default",
                    "id": str(number),
                    "executeAt": format_instant(execute_at),
                    "callbackUrl": self._url,
                    "payload": {"v": versions[-1]},
                }
            )
        answer = await self._ask(client, "/api/v1/timers/batch/create", {"timers": timers})
        if answer is None or answer[0] != 200:
            return numbers
        at, again = now_us(), []
        for number, version, result in zip(numbers, versions, answer[1]["results"], strict=True):
            if "timer" in result:
                self._log.acknowledged(version, at)
                if self._random.random() < _UPDATED + _DELETED:
                    await self._to_change.put(number)
            else:
                self._log.failures[f"{result['error']['status']} in a batch"] += 1
                again.append(number)
        return again

    async def _change_all(self, client: AnyNode) -> None:
        client.gone = self._gone
        while (number := await self._to_change.get()) is not None:
            deletes = self._random.random() < _DELETED / (_UPDATED + _DELETED)
            while not await self._change(client, number, deletes):
                pass
            self.changed += 1
        client.close()

    async def _change(self, client: AnyNode, number: int, deletes: bool) -> bool:
        """Updates or deletes a timer; False if the outcome is unknown."""
        body: dict[str, object] = {"namespace": "default", "timerId": str(number)}
        execute_at = 0 if deletes else self._due(0.2)
        version = self._log.sent(number, execute_at, now_us(), deletes=deletes)
        if not deletes:
            body |= {"executeAt": format_instant(execute_at), "payload": {"v": version}}
        answer = await self._ask(client, f"/api/v1/timers/{'delete' if deletes else 'update'}", body)
        if answer is None:
            return False
        if answer[0] in (404, 409):
            self._log.refused(version)
        else:
            self._log.acknowledged(version, now_us())
        return True

    async def _ask(self, client: AnyNode, path: str, body: object) -> tuple[int, Any] | None:
        """The answer; None, counted as a failure, if the outcome is unknown."""
        try:
            status, answer = await client.post(path, body)
        except (OSError, EOFError, TimeoutError) as error:
            self._log.failures[type(error).__name__] += 1
        else:
            if status in (200, 204, 404, 409):
                return status, answer
            self._log.failures[str(status)] += 1
        await asyncio.sleep(0.05)
        return None


@asynccontextmanager
async def _receiver(path: Path) -> AsyncIterator[str]:
    """Starts the receiver process, which logs calls to the file; yields its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crash.ledger_check_receiver", str(path),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/"
    finally:
        process.stdin.close()
        await process.wait()


class _SessionFaults:
    """Faults: the database ends sessions of the nodes."""

    def __init__(self, plan: Plan, log: WriteLog, store: str) -> None:
        self._plan, self._log = plan, log
        self._sessions = Sessions(store)
        self._random = random.Random(plan.seed)

    async def run(self) -> None:
        """Ends one session at a time, for nine tenths of the plan's time."""
        until, ended = time.monotonic() + 0.9 * self._plan.seconds, 0
        async with self._sessions:
            while time.monotonic() < until:
                await asyncio.sleep(self._random.uniform(*_SESSION_PAUSE_S))
                self._log.faults.append(now_us())
                ended += await self._sessions.end_one()
        self._plan.report(f"{ended} sessions were ended")


class _NodeFaults:
    """Faults of nodes, one after another."""

    def __init__(self, plan: Plan, log: WriteLog, servers: list[ServerProcess]) -> None:
        self._plan, self._log, self._servers = plan, log, servers

    async def run(self) -> None:
        """Injects each fault at its share of the plan's time."""
        begun = time.monotonic()
        two, one, four, three = self._servers[1], self._servers[0], self._servers[3], self._servers[2]
        for share, what in (
            (0.08, self._killed(two, [one, three])),
            (0.25, self._restarted(one)),
            (0.50, self._joins(four)),
            (0.6, self._leaves(four)),
            (0.7, self._killed(three, [one, two])),
        ):
            await asyncio.sleep(begun + share * self._plan.seconds - time.monotonic())
            await what

    async def _killed(self, server: ServerProcess, left: list[ServerProcess]) -> None:
        at = now_us()
        self._log.faults.append(at)
        await server.kill()
        await shared_by(left, {name(other) for other in left}, _SHARED_WITHIN_S)
        self._plan.report(f"{name(server)} was killed; its shards were taken over after {(now_us() - at) / 1e6:.1f} s")
        await self._start(server)

    async def _restarted(self, server: ServerProcess) -> None:
        at = now_us()
        await server.stop()
        await self._start(server)
        self._plan.report(f"{name(server)} was restarted gracefully in {(now_us() - at) / 1e6:.1f} s")

    async def _joins(self, server: ServerProcess) -> None:
        await self._start(server)
        await shared_by(self._servers, {name(other) for other in self._servers}, _SHARED_WITHIN_S)
        self._plan.report(f"{name(server)} joined")

    async def _start(self, server: ServerProcess) -> None:
        """Starts the node, again and again while the database does not answer it, as a service manager would."""
        for attempt in range(_STARTS_MAX):
            try:
                await server.start()
            except AssertionError:
                if attempt == _STARTS_MAX - 1:
                    raise
                self._plan.report(f"{name(server)} could not start, and is started again")
            else:
                return

    async def _leaves(self, server: ServerProcess) -> None:
        await server.stop()
        self._plan.report(f"{name(server)} left")


def name(server: ServerProcess) -> str:
    """The node's name."""
    return server.env["TOCSIN_NODE_NAME"]


async def check(plan: Plan, folder: Path, store: str, *, sessions: bool = False) -> Report:
    """Runs the plan on an empty database and returns the report. `sessions`: with session faults instead of node faults."""
    log = WriteLog()
    log.timers = plan.timers
    names = ("one", "two") if sessions else ("one", "two", "three", "four")
    servers = [node(folder, each, store, "--shards", str(_SHARDS)) for each in names]
    first = servers[: 2 if sessions else 3]
    calls = folder / "calls"
    gone: set[ServerProcess] = set(servers) - set(first)
    faults_source = _SessionFaults(plan, log, store) if sessions else _NodeFaults(plan, log, servers)
    async with _receiver(calls) as url, running(*first):
        try:
            await shared_by(first, {name(server) for server in first}, _SHARED_WITHIN_S)
            async with balanced(servers, gone):
                writers = _Writers(plan, log, servers, gone, url)
                progress = asyncio.create_task(_report_progress(plan, writers, calls))
                faults = asyncio.create_task(faults_source.run())
                await asyncio.gather(writers.work(), faults)
                plan.report(
                    f"all {plan.timers:,} timers created, {writers.changed:,} changed; waiting for the rest to fire"
                )
                await _all_fired(servers[0], calls, plan)
                progress.cancel()
        finally:
            for late in gone:
                if late.process is not None and late.process.returncode is None:
                    await late.kill()
    log.failed_writes = [at for server in servers for at in _failed_writes(server)]
    return await asyncio.to_thread(log.report, calls, _BEFORE_FAULT_US)


def _failed_writes(server: ServerProcess) -> Iterator[int]:
    """When the database failed a write of the node, or the node lost a claim, by its log."""
    for line in server.log().splitlines():
        if line.startswith("{") and (entry := json.loads(line))["event"] in ("batch failed", "shard lost"):
            yield parse_instant(entry["timestamp"])


def _arrived(calls: Path) -> int:
    return calls.stat().st_size // CALL.size if calls.exists() else 0


async def _report_progress(plan: Plan, writers: _Writers, calls: Path) -> None:
    begun = time.monotonic()
    while True:
        await asyncio.sleep(max(plan.seconds / 20, 2))
        plan.report(
            f"{time.monotonic() - begun:6.0f} s: {writers.made:,} created, {writers.changed:,} changed, "
            f"{_arrived(calls):,} calls received"
        )


async def _all_fired(server: ServerProcess, calls: Path, plan: Plan) -> None:
    """Returns when no timer is pending and no call has arrived for two seconds, at the latest after three times the plan's
    time; then the report shows what is missing."""
    client = AnyNode([server], 0)
    query = {"namespace": "default", "status": "pending", "limit": 1}
    deadline, before, quiet_s = time.monotonic() + 3 * plan.seconds + 60, -1, 0.0
    while time.monotonic() < deadline and quiet_s < 2:
        await asyncio.sleep(0.5)
        status, body = await client.post("/api/v1/timers/list", query)
        arrived = _arrived(calls)
        quiet_s = quiet_s + 0.5 if status == 200 and not body["timers"] and arrived == before else 0.0
        before = arrived
    client.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timers", type=int, default=1_000_000)
    parser.add_argument(
        "--seconds",
        type=float,
        help="time over which the timers are due; default: 1 for every 2,000 timers, at least 60",
    )
    parser.add_argument("--database", choices=DATABASES, default="postgresql")
    parser.add_argument("--sessions", action="store_true", help="end database sessions instead of stopping nodes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    return parser.parse_args()


def _print(text: str) -> None:
    print(text, flush=True)


def _server(database: str) -> PostgresServer | MysqlServer | DynamoServer | CassandraServer | MongoServer:
    """One whose data are on disk, not started; those of DynamoDB Local are in its memory, because it takes 30 transactions a
    second on a disk, and the service thousands."""
    if database == "dynamodb":
        return DynamoServer()
    if database == "cassandra":
        return CassandraServer()
    if database == "mongodb":
        return MongoServer()
    return PostgresServer(fsync=True) if database == "postgresql" else MysqlServer(fsync=True)


async def _main(options: argparse.Namespace) -> Report:
    seconds = options.seconds or max(options.timers / 2_000, 60)
    plan = Plan(options.timers, seconds, options.seed, _print)
    _print(f"{plan.timers:,} timers on {options.database}, due over {plan.seconds:.0f} s; seed {plan.seed}")
    server = _server(options.database)
    try:
        if isinstance(server, PostgresServer | MysqlServer):
            server.init()
        server.start()
        url = await server.create_database() if isinstance(server, PostgresServer) else server.new_url()
        with tempfile.TemporaryDirectory(prefix="tocsin-end-to-end-") as folder:
            return await check(plan, Path(folder), url, sessions=options.sessions)
    finally:
        server.remove()


if __name__ == "__main__":
    result = asyncio.run(_main(_options()))
    print("\n".join(result.lines()))
    sys.exit(0 if result.passed else 1)
