"""The replay drill: `python -m tests.drills.replay`, or `make drill-replay`.

Three nodes share a PostgreSQL database. A receiver is broken until all timers of one namespace have failed there; then it
is repaired, and a job replays them at a rate, while the node that works on the job is killed. Beside it, timers of another
namespace fall due at a steady rate, also before the job, and after it while plain timers fall due at the job's rate. In the
end each failed timer was replayed exactly once, or the job reports why not; the healthy timers were all called, and on
time, but for those of the killed node's shards, which may wait for another node to claim them. If one of these is violated,
the exit status is 1. A table shows for each second how late healthy timers were, and which process was busy. Where others
of the machine use much of a processor, healthy timers are late because of them.

The receiver stands for another machine. Its own wait for a processor would count as lateness of the nodes, so it runs before
them, where the system lets it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.wire import Answerer

from tests.drills.postgresql import on_a_new_server
from tests.drills.seconds import Load
from tests.support.cluster import AnyNode, balanced, ended, node, now_us, shared_by, until, view
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid
from tocsin.model.instants import format_instant, parse_instant

NAMES = ("one", "two", "three")
BROKEN, HEALTHY, PLAIN = "broken", "healthy", "plain"
SHARDS = 24
_BATCH_TIMERS = 500
#: Healthy timers due a second, as many before the job as beside it, and for how long without it: 2,500 lags for a p99 that
#: repeats. So many are created at once: what one request costs delays few of them.
_HEALTHY_RATE, _BEFORE_S, _HEALTHY_TIMERS = 100, 30, 10
#: How long before they are due healthy timers are created: longer than a create waits for the shards of a killed node.
_AHEAD_S = 15
#: After the job, timers are created and fall due at its rate for so long, to compare with: by so many clients, in requests of
#: about as many timers as the job's slices have, so long before they are due.
_PLAIN_S, _PLAIN_CLIENTS, _PLAIN_TIMERS, _PLAIN_AHEAD_US = 20, 4, 20, 2_000_000
#: The job has replayed this share of the failures when its node is killed.
_KILLED_AT = 0.3
#: What is too late, but for timers of the killed node: beside the p99 before, at least so much.
_LAG_RATIO, _LAG_LEAST_MS = 1.5, 50.0
#: The priority of the receiver's process: before the nodes and the database, which have 0.
_RECEIVER_NICE = -10
#: Timers of the killed node's shards are at most that late.
_CLAIMED_S = 7.0
#: Timers of which the history is compared with what the receiver got, beside those that were called more than once.
_HISTORIES = 1_000
_BALANCE_S = 600.0


@dataclass
class Calls:
    """What the receiver got: how many calls it answered 500, how many of each timer since its repair, how many of them and of
    plain timers in each second, and of each healthy timer its instant and when it arrived."""

    failed: int = 0
    is_repaired: bool = False
    repaired: Counter[str] = field(default_factory=Counter)
    healthy: dict[str, tuple[int, int]] = field(default_factory=dict)
    repaired_at: Counter[int] = field(default_factory=Counter)

    def seen(self, body: bytes) -> bytes | None:
        """Takes a call; returns the answer."""
        arrived, call = now_us(), json.loads(body)
        if call["namespace"] == HEALTHY:
            self.healthy.setdefault(call["timerId"], (parse_instant(call["executeAt"]), arrived))
        elif call["namespace"] == PLAIN:
            self.repaired_at[arrived // 1_000_000] += 1
        elif self.is_repaired:
            self.repaired[call["timerId"]] += 1
            self.repaired_at[arrived // 1_000_000] += 1
        else:
            self.failed += 1
            return b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n"
        return None

    def lags_ms(self, created: dict[str, int], first: int, last: int) -> list[tuple[int, float, int]]:
        """Of the healthy timers that were created before they were due, in between: due instant, lag and shard."""
        return [
            (due, (arrived - due) / 1e3, shard(timer))
            for timer, (due, arrived) in self.healthy.items()
            if first <= due < last and created.get(timer, due) < due
        ]


def shard(timer: str) -> int:
    """The shard of a healthy timer."""
    return shard_of(namespace_hash(HEALTHY), timer_uuid(HEALTHY, timer), SHARDS, SHARDS)


def p99(lags: Iterable[float]) -> float:
    """The 99th percentile; 0 of none."""
    ordered = sorted(lags)
    return ordered[len(ordered) * 99 // 100] if ordered else 0.0


@dataclass
class Drill:
    """The drill on running nodes."""

    servers: list[ServerProcess]
    gone: set[ServerProcess]
    url: str
    calls: Calls
    failures: int
    rate: int
    load: Load
    #: When each healthy timer had been created.
    created: dict[str, int] = field(default_factory=dict)

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
        beside = [asyncio.create_task(each) for each in (self.create_healthy(), self.load.watch())]
        try:
            await asyncio.sleep(_BEFORE_S)
            job, killed_at, shards = await self.replay_and_kill()
            done = now_us()
            plain_at = await self.create_plain()
            ended = now_us()
        finally:
            for each in beside:
                each.cancel()
            ends = await asyncio.gather(*beside, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end
        await until(self.nothing_is_pending, _BALANCE_S)
        wrong = await self.balance(job)
        return wrong + self.punctuality((begun + 5_000_000, killed_at, done, plain_at, ended), shards)

    async def fail(self) -> None:
        """Creates the timers, and waits until all have failed."""
        for name in (BROKEN, HEALTHY, PLAIN):
            await self.api("namespaces/create", name=name, numShards=SHARDS)
        for first in range(0, self.failures, _BATCH_TIMERS):
            call = {"namespace": BROKEN, "callbackUrl": self.url, "retryPolicy": {"maxAttempts": 1}}
            # Due at the same instant, they would fail shard by shard, and so be replayed.
            timers = [
                {**call, "id": f"f{number}", "delay": f"{1_000 + number % _BATCH_TIMERS}ms"}
                for number in range(first, min(first + _BATCH_TIMERS, self.failures))
            ]
            answer = await self.api("timers/batch/create", timers=timers)
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
        listed = [await self.api("timers/list", namespace=each, **pending) for each in (BROKEN, HEALTHY, PLAIN)]
        return not any(each["timers"] for each in listed)

    async def create_healthy(self) -> None:
        """Goes on creating timers that are due later, one after the other, until it is canceled."""
        create, call = self.caller(), {"namespace": HEALTHY, "callbackUrl": self.url}
        begun = now_us() + 3_000_000
        for first in itertools.count(step=_HEALTHY_TIMERS):
            due = {each: begun + each * 1_000_000 // _HEALTHY_RATE for each in range(first, first + _HEALTHY_TIMERS)}
            timers = [{**call, "id": f"h{each}", "executeAt": format_instant(at)} for each, at in due.items()]
            answer = await create("timers/batch/create", timers=timers)
            now = now_us()
            taken = [each for each, result in zip(due, answer["results"], strict=True) if "error" not in result]
            self.created |= {f"h{each}": now for each in taken}
            await asyncio.sleep(max(due[first] - _AHEAD_S * 1_000_000 - now, 0) / 1e6)

    async def create_plain(self) -> int:
        """Creates timers that are due at the job's rate, and returns when they have been: since when they were."""
        begun = now_us() + _PLAIN_AHEAD_US + 1_000_000
        numbers = iter(range(0, self.rate * _PLAIN_S, _PLAIN_TIMERS))

        async def create() -> None:
            api, call = self.caller(), {"namespace": PLAIN, "callbackUrl": self.url}
            for first in numbers:
                due = {each: begun + each * 1_000_000 // self.rate for each in range(first, first + _PLAIN_TIMERS)}
                await asyncio.sleep(max(due[first] - _PLAIN_AHEAD_US - now_us(), 0) / 1e6)
                timers = [{**call, "id": f"p{each}", "executeAt": format_instant(at)} for each, at in due.items()]
                await api("timers/batch/create", timers=timers)

        await asyncio.gather(*(create() for _ in range(_PLAIN_CLIENTS)))
        await asyncio.sleep(max(begun + _PLAIN_S * 1_000_000 - now_us(), 0) / 1e6)
        return begun

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

    def punctuality(self, instants: tuple[int, int, int, int, int], shards: frozenset[int]) -> list[str]:
        """Prints how late healthy timers were; what is too late. The instants are the beginning, the kill, the end of
        the job, and the beginning and end of the plain timers."""
        begun, killed_at, done, plain_at, ended = instants
        lags = self.calls.lags_ms(self.created, begun, ended)
        job_at = begun + (_BEFORE_S - 5) * 1_000_000
        phases = (begun, job_at), (job_at, done), (plain_at, ended)
        used = [self.load.others(first // 1_000_000, last // 1_000_000) for first, last in phases]
        before = [lag for due, lag, _ in lags if due < job_at]
        beside = [lag for due, lag, of in lags if job_at <= due < done and of not in shards]
        lost = [lag for due, lag, of in lags if job_at <= due < done and of in shards]
        plain = [lag for due, lag, _ in lags if due >= plain_at]
        worst = max(lost, default=0.0)
        # The first ones are created while they are due.
        leads = [
            due - self.created[each]
            for each, (due, _) in self.calls.healthy.items()
            if each in self.created and due >= job_at
        ]
        others = ((due // 1_000_000, lag, of) for due, lag, of in lags if of not in shards)
        print(
            self.load.table(
                begun // 1_000_000, ended // 1_000_000, killed_at // 1_000_000, self.calls.repaired_at, others
            ),
            f"healthy timers: p99 {p99(before):.1f} ms late before the job ({len(before)}), {p99(beside):.1f} beside it "
            f"({len(beside)}), {p99(plain):.1f} beside as many plain timers ({len(plain)}); "
            f"of the killed node's shards at most {worst / 1e3:.1f} s ({len(lost)})",
            f"others of the machine used {used[0]}% of a processor before the job, {used[1]}% beside it, {used[2]}% "
            "beside plain timers",
            f"they were created at least {min(leads, default=0) / 1e6:.1f} s before they were due",
            sep="\n",
            flush=True,
        )
        wrong = [] if killed_at else ["the job ended before its node was killed"]
        allowed = max(p99(before) * _LAG_RATIO, _LAG_LEAST_MS)
        wrong += [f"healthy timers were {p99(beside):.1f} ms late at p99"] if p99(beside) > allowed else []
        wrong += ["healthy timers were created after they were due"] if min(leads, default=0) <= 0 else []
        uncalled = [each for each in self.created if each not in self.calls.healthy]
        wrong += [f"healthy timers were not called: {uncalled[:10]}"] if uncalled else []
        return wrong + (
            [f"timers of the killed node were {worst / 1e3:.1f} s late"] if worst > _CLAIMED_S * 1e3 else []
        )


def come_first() -> None:
    """Gives this process precedence over those that it has started."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _RECEIVER_NICE)
    except PermissionError:
        print("the receiver waits for a processor like the nodes: a lower nice value is not permitted", flush=True)


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
                processes = dict(
                    zip((*NAMES, "store"), (*(each.process for each in servers), database.process), strict=True)
                )
                pids = {name: each.pid for name, each in processes.items() if each is not None}
                load = Load({"drill": os.getpid(), **pids})
                come_first()
                drill = Drill(servers, gone, f"http://127.0.0.1:{port}/hook", calls, failures, rate, load)
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
