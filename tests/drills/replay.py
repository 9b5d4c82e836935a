"""The replay drill: `python -m tests.drills.replay`, or `make drill-replay`.

Three nodes share a PostgreSQL database. A receiver is broken until all timers of one namespace have failed there; then it is
repaired, and a job replays them at a rate, while the node that works on the job is killed. Beside it, timers of another
namespace fall due at a steady rate. In the end each failed timer was replayed exactly once, or the job reports why not; the
healthy timers were on time, but for those of the killed node's shards, which may wait for another node to claim them. If one
of these is violated, the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.wire import Answerer

from tests.drills.postgresql import on_a_new_server
from tests.support.cluster import AnyNode, balanced, ended, node, now_us, shared_by, until, view
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid
from tocsin.model.instants import format_instant, parse_instant

NAMES = ("one", "two", "three")
BROKEN, HEALTHY = "broken", "healthy"
SHARDS = 24
_BATCH_TIMERS = 500
#: Healthy timers due a second, and for how long without the job, to compare with.
_HEALTHY_RATE, _BEFORE_S = 40, 30
#: The job has replayed this share of the failures when its node is killed.
_KILLED_AT = 0.3
#: What is too late, but for timers of the killed node: beside the p99 before, at least so much.
_LAG_RATIO, _LAG_LEAST_MS = 1.5, 50.0
#: Timers of the killed node's shards are at most that late.
_CLAIMED_S = 7.0
#: Timers of which the history is compared with what the receiver got, beside those that were called more than once.
_HISTORIES = 1_000
_BALANCE_S = 600.0


@dataclass
class Calls:
    """What the receiver got: how many calls it answered 500, how many of each timer since its repair, and of each healthy
    timer its instant and when it arrived."""

    failed: int = 0
    is_repaired: bool = False
    repaired: Counter[str] = field(default_factory=Counter)
    healthy: dict[str, tuple[int, int]] = field(default_factory=dict)

    def seen(self, body: bytes) -> bytes | None:
        """Takes a call; returns the answer."""
        arrived, call = now_us(), json.loads(body)
        if call["namespace"] == HEALTHY:
            self.healthy.setdefault(call["timerId"], (parse_instant(call["executeAt"]), arrived))
        elif self.is_repaired:
            self.repaired[call["timerId"]] += 1
        else:
            self.failed += 1
            return b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n"
        return None

    def lags_ms(self, first: int, last: int, shards: frozenset[int], *, of_shards: bool) -> list[float]:
        """The lags of healthy timers that were due in between, sorted: of those in these shards, or of the others."""
        return sorted(
            (arrived - due) / 1e3
            for timer, (due, arrived) in self.healthy.items()
            if first <= due < last and (shard(timer) in shards) is of_shards
        )


def shard(timer: str) -> int:
    """The shard of a healthy timer."""
    return shard_of(namespace_hash(HEALTHY), timer_uuid(HEALTHY, timer), SHARDS, SHARDS)


def p99(lags: list[float]) -> float:
    """The 99th percentile of sorted lags; 0 of none."""
    return lags[len(lags) * 99 // 100] if lags else 0.0


@dataclass
class Drill:
    """The drill on running nodes."""

    servers: list[ServerProcess]
    gone: set[ServerProcess]
    url: str
    calls: Calls
    failures: int
    rate: int

    def __post_init__(self) -> None:
        self.api = self.caller()

    def caller(self) -> Callable[..., Awaitable[dict[str, Any]]]:
        """A client of any node: its call returns as soon as one answers, or raises AssertionError if it refuses."""
        client = AnyNode(self.servers, 1)
        client.gone = self.gone

        async def call(path: str, **body: Any) -> dict[str, Any]:
            while True:
                try:
                    status, answer = await client.post(f"/api/v1/{path}", body)
                except (OSError, EOFError, TimeoutError):
                    continue
                if status != 503:
                    break
                await asyncio.sleep(0.2)
            assert status in (200, 202), (path, status, answer)
            return dict(answer)

        return call

    async def run(self) -> list[str]:
        """What is wrong."""
        await self.fail()
        begun = now_us()
        healthy = asyncio.create_task(self.create_healthy())
        try:
            await asyncio.sleep(_BEFORE_S)
            job, killed_at, shards = await self.replay_and_kill()
        finally:
            healthy.cancel()
        done = now_us()
        await asyncio.gather(healthy, return_exceptions=True)
        await until(self.nothing_is_pending, _BALANCE_S)
        wrong = await self.balance(job)
        return wrong + self.punctuality(begun + 5_000_000, killed_at, done, shards)

    async def fail(self) -> None:
        """Creates the timers, and waits until all have failed."""
        for name in (BROKEN, HEALTHY):
            await self.api("namespaces/create", name=name, numShards=SHARDS)
        for first in range(0, self.failures, _BATCH_TIMERS):
            ids = (f"f{number}" for number in range(first, min(first + _BATCH_TIMERS, self.failures)))
            call = {"namespace": BROKEN, "callbackUrl": self.url, "delay": "1s", "retryPolicy": {"maxAttempts": 1}}
            answer = await self.api("timers/batch/create", timers=[{**call, "id": each} for each in ids])
            refused = [each for each in answer["results"] if "error" in each]
            assert not refused, refused[:3]
        await until(self.all_have_failed, _BALANCE_S)
        self.calls.is_repaired = True
        print(f"{self.failures} timers have failed", flush=True)

    async def all_have_failed(self) -> bool:
        """Whether the receiver has answered each, and nothing waits for its result to be durable."""
        return self.calls.failed >= self.failures and await self.nothing_is_pending()

    async def nothing_is_pending(self) -> bool:
        """Whether no timer waits any more."""
        pending = {"status": "pending", "limit": 1}
        listed = [await self.api("timers/list", namespace=each, **pending) for each in (BROKEN, HEALTHY)]
        return not any(each["timers"] for each in listed)

    async def create_healthy(self) -> None:
        """Goes on creating timers that are due a few seconds later, one after the other, until it is canceled."""
        create, call = self.caller(), {"namespace": HEALTHY, "callbackUrl": self.url}
        begun = now_us() + 3_000_000
        for first in itertools.count(step=_HEALTHY_RATE):
            due = {each: begun + each * 1_000_000 // _HEALTHY_RATE for each in range(first, first + _HEALTHY_RATE)}
            timers = [{**call, "id": f"h{each}", "executeAt": format_instant(at)} for each, at in due.items()]
            await create("timers/batch/create", timers=timers)
            await asyncio.sleep(max(due[first] - 2_000_000 - now_us(), 0) / 1e6)

    async def replay_and_kill(self) -> tuple[dict[str, Any], int, frozenset[int]]:
        """Replays the failures; kills the node that works on the job. Returns the job when it has ended, when the node was
        killed, and the shards that were its own."""
        wanted = {"namespace": BROKEN, "action": "replay", "of": "failures", "all": True, "ratePerSecond": self.rate}
        begun = now_us()
        job = (await self.api("jobs/create", **wanted, idempotencyKey="drill"))["job"]
        killed_at, shards = 0, frozenset[int]()
        while job["state"] == "running":
            await asyncio.sleep(0.2)
            job = (await self.api("jobs/get", jobId=job["id"]))["job"]
            if not killed_at and job["matched"] >= self.failures * _KILLED_AT:
                owners = {each["shardId"]: each["owner"] for each in (await view(self.servers[-1]))["shards"]}
                runner = NAMES.index(owners[0])
                shards = frozenset(each for each, owner in owners.items() if owner == owners[0])
                killed_at = now_us()
                await self.servers[runner].kill()
                print(
                    f"{owners[0]}, which worked on the job, killed at {job['matched']} of {self.failures}", flush=True
                )
        seconds = (now_us() - begun) / 1e6
        print(f"the job took {seconds:.1f} s: {self.failures / seconds:.0f} a second", flush=True)
        return job, killed_at, shards

    async def balance(self, job: dict[str, Any]) -> list[str]:
        """Prints what became of the failures; what is wrong with it."""
        calls = self.calls.repaired
        missing = [each for each in map("f{}".format, range(self.failures)) if each not in calls]
        repeated = [timer for timer, count in calls.items() if count > 1]
        checked = [*repeated, *list(calls)[:_HISTORIES]]
        runs = await self.replays_of(checked)
        several = [timer for timer, count in runs.items() if count != 1]
        left = (await self.api("failures/list", namespace=BROKEN))["count"]
        print(
            f"job {job['state']}: {job['matched']} matched, {job['changed']} changed, {job['skipped']} skipped, "
            f"{job['errors']} errors\n{len(calls)} timers called again, {len(repeated)} of them more than once; of "
            f"{len(checked)} histories {len(several)} have another number of replays than one\n"
            f"{len(missing)} not called, {left} failures left",
            flush=True,
        )
        wrong = [] if job["state"] == "completed" else [f"the job is {job['state']}: {job}"]
        wrong += [f"not replayed: {missing[:10]}"] if len(missing) > job["errors"] else []
        wrong += [f"replayed more than once: {several[:10]}"] if several else []
        return wrong + ([f"{left} failures are left"] if left > job["errors"] else [])

    async def replays_of(self, timers: list[str]) -> dict[str, int]:
        """How often each of these timers was replayed, by their histories."""
        found = {}
        for each in timers:
            history = await self.api("timers/history", namespace=BROKEN, timerId=each)
            found[each] = sum(run.get("replay", False) for run in history["runs"])
        return found

    def punctuality(self, begun: int, killed_at: int, done: int, shards: frozenset[int]) -> list[str]:
        """Prints how late healthy timers were; what is too late."""
        before = self.calls.lags_ms(begun, begun + (_BEFORE_S - 5) * 1_000_000, shards, of_shards=False)
        beside = self.calls.lags_ms(begun + _BEFORE_S * 1_000_000, done, shards, of_shards=False)
        lost = self.calls.lags_ms(begun + _BEFORE_S * 1_000_000, done, shards, of_shards=True)
        worst = lost[-1] if lost else 0.0
        print(
            f"healthy timers: p99 {p99(before):.1f} ms late before the job ({len(before)}), {p99(beside):.1f} beside it "
            f"({len(beside)}); of the killed node's shards at most {worst / 1e3:.1f} s ({len(lost)})",
            flush=True,
        )
        wrong = [] if killed_at else ["the job ended before its node was killed"]
        allowed = max(p99(before) * _LAG_RATIO, _LAG_LEAST_MS)
        wrong += [f"healthy timers were {p99(beside):.1f} ms late at p99"] if p99(beside) > allowed else []
        return wrong + (
            [f"timers of the killed node were {worst / 1e3:.1f} s late"] if worst > _CLAIMED_S * 1e3 else []
        )


async def run(database: PostgresServer, folder: Path, failures: int, rate: int) -> list[str]:
    """The drill on a new database."""
    url, calls, gone = await database.create_database(), Calls(), set[ServerProcess]()
    servers = [node(folder, name, url, "--shards", str(SHARDS)) for name in NAMES]
    receiver = await asyncio.get_running_loop().create_server(
        lambda: Answerer(calls.seen), "127.0.0.1", 0, backlog=1024
    )
    try:
        async with ended(*servers):
            for server in servers:
                # Its breaker would spare the broken receiver, and the timers would wait instead of failing.
                server.env["TOCSIN_BREAKER_ENABLED"] = "false"
                await server.start()
            await shared_by(servers, set(NAMES))
            async with balanced(servers, gone):
                port = receiver.sockets[0].getsockname()[1]
                drill = Drill(servers, gone, f"http://127.0.0.1:{port}/hook", calls, failures, rate)
                return await drill.run()
    finally:
        receiver.close()


def main() -> int:
    """Runs the drill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=100_000, help="timers that fail and are replayed")
    parser.add_argument("--rate", type=int, default=2_000, help="replays a second")
    given = parser.parse_args()
    return on_a_new_server(lambda database, folder: run(database, folder, given.failures, given.rate))


if __name__ == "__main__":
    sys.exit(main())
