"""The transfer drill: `python -m tests.drills.transfer`, or `make drill-transfer`.

A store is moved to another one, of another kind and with four times the shards, while its servers run and a client of the
Python SDK creates timers at a rate, and while the transfer is killed twice. The servers end by themselves, and a supervisor,
as systemd is one, starts them on the same port with the new store. In the end no create has failed, each timer was called
once, none early, under one `webhook-id`, and the new store has every timer, schedule and history row of the old one. If one
of these is violated, the exit status is 1. Before that it states how long the client got no answer to a create, and how long
it all took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from tocsin_client import AsyncClient

from tests.support import preloaded
from tests.support.calls import Call, Inbox
from tests.support.cassandra import CassandraServer
from tests.support.command import command
from tests.support.dynamodb import DynamoServer
from tests.support.http import Client, Receiver
from tests.support.mysql import MysqlServer
from tests.support.ports import free_port
from tests.support.postgresql import PostgresServer
from tests.support.program import ServerProgram, running
from tests.support.server import ServerProcess
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, format_instant
from tocsin.server.workers import EXIT_MOVED

SHARDS = 4
#: Under which secrets are encrypted, on both sides.
KEY = {"TOCSIN_SECRETS_KEY": "55" * 32}
_BATCH_TIMERS = 1_000
#: Creates that wait for their answers at once, as a service with so many workers has them.
_CREATES_MAX = 50
#: Runs that are not killed, at most.
_RUNS_MAX = 3
#: How late timers may be that are created meanwhile: the pause and a slow machine's start.
_LAG_S_MAX = 60.0


def now_us() -> int:
    """This machine's clock."""
    return time.time_ns() // 1_000


@dataclass
class Creator:
    """A client that creates timers at a rate. `answered` is when each create was answered, in seconds of the event loop."""

    url: str
    receiver: str
    rate: int
    due_s: tuple[int, int]
    due: dict[str, int] = field(default_factory=dict)
    answered: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    stopping: bool = False

    async def run(self) -> None:
        """Creates until it is stopped, and until all creates have an answer."""
        loop, number = asyncio.get_running_loop(), 0
        creates = set[asyncio.Task[None]]()
        next_at = loop.time()
        async with AsyncClient(self.url, timeout=120) as client:
            while not self.stopping:
                if len(creates) < _CREATES_MAX:
                    create = asyncio.create_task(self._create(client, f"c{number}"))
                    creates.add(create)
                    create.add_done_callback(creates.discard)
                    number += 1
                next_at = max(next_at + 1 / self.rate, loop.time())
                await asyncio.sleep(next_at - loop.time())
            await asyncio.gather(*creates)

    async def _create(self, client: AsyncClient, timer_id: str) -> None:
        loop = asyncio.get_running_loop()
        first, last = self.due_s
        due_us = now_us() + first * US_PER_SECOND + hash(timer_id) % ((last - first) * US_PER_SECOND)
        began = loop.time()
        try:
            await client.timers.create("default", timer_id, self.receiver, execute_at=format_instant(due_us))
        except Exception as error:  # noqa: BLE001 -- counted
            self.errors.append(repr(error))
            return
        self.due[timer_id] = due_us
        self.answered.append(loop.time())
        self.slowest_s = max(self.slowest_s, self.answered[-1] - began)

    def longest_gap_s(self) -> float:
        """The longest time without an answer to any create."""
        times = sorted(self.answered)
        return max((after - before for before, after in pairwise(times)), default=0.0)


class Supervised:
    """A server that is started again when it has ended because its store was moved: on the same port, with the new store."""

    def __init__(self, folder: Path, source: str, target: str, *flags: str, env: dict[str, str] | None = None) -> None:
        self._flags = (*flags, "--store", target)
        self._env = {**KEY, **(env or {})}
        of_source = {**self._env, "TOCSIN_SHARDS": str(SHARDS)}
        # One that is free for it between its end and the next start.
        port = str(free_port())
        self.server = ServerProcess(folder, *flags, "--store", source, "--port", port, env=of_source)
        self.moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when it serves."""
        await self.server.start()
        self._task = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        assert self.server.process is not None
        code = await self.server.process.wait()
        assert code == EXIT_MOVED, (code, self.server.log()[-2_000:])
        server = ServerProcess(self.server.data_dir, *self._flags, "--port", str(self.server.port), env=self._env)
        ended = time.monotonic()
        await server.start()
        print(f"the new server serves {time.monotonic() - ended:.1f} s after the end of the old one", flush=True)
        self.server = server
        self.moved.set()

    async def wait_until_moved(self) -> None:
        """Returns when it serves the new store; raises what has kept it from that."""
        assert self._task is not None
        await self._task

    async def end(self) -> None:
        """Kills it."""
        if self._task is not None:
            self._task.cancel()
        if self.server.process is not None and self.server.process.returncode is None:
            await self.server.kill()


@dataclass
class Wanted:
    """What a drill moves, and from where to where."""

    source: str
    target: str
    shards: int
    timers: int
    schedules: int
    history: int
    rate: int
    nodes: int = 1
    #: Seconds after their start at which the first runs of the transfer are killed.
    kills_s: tuple[float, ...] = ()
    env: dict[str, str] = field(default_factory=KEY.copy)
    #: Seconds after their creation at which timers that are created meanwhile are due, at least and at most.
    due_s: tuple[int, int] = (2, 20)


async def transferred(wanted: Wanted, kill_s: float | None) -> tuple[int, str]:
    """Runs the transfer. Exit code and output; a negative code if it was killed after so many seconds."""
    arguments = [
        "transfer",
        "--online",
        "--from",
        wanted.source,
        "--to",
        wanted.target,
        "--shards",
        str(wanted.shards),
        "--json",
    ]
    process = await preloaded.start(arguments, {**os.environ, **wanted.env})
    output = asyncio.ensure_future(process.communicate())
    if kill_s is not None:
        await asyncio.wait([output], timeout=kill_s)
        if not output.done():
            process.send_signal(signal.SIGKILL)
    out, err = await output
    assert process.returncode is not None
    return process.returncode, out.decode() + err.decode()


async def fill(wanted: Wanted, server: ServerProcess, inbox: Inbox, url: str) -> None:
    """Creates what the source has before the transfer. Raises AssertionError if something is refused."""
    client, begun = Client(server.address), time.monotonic()
    far_us = now_us() + US_PER_DAY
    for name, count, due_us in (("h", wanted.history, now_us()), ("f", wanted.timers, far_us)):
        for first in range(0, count, _BATCH_TIMERS):
            timers = [
                {"namespace": "default", "id": f"{name}{n}", "callbackUrl": url, "executeAt": format_instant(due_us)}
                for n in range(first, min(first + _BATCH_TIMERS, count))
            ]
            status, answer = await client.post("/api/v1/timers/batch/create", {"timers": timers})
            assert status == 200, answer
    for number in range(wanted.schedules):
        schedule = {"namespace": "default", "id": f"s{number}", "callbackUrl": url, "cron": "0 3 1 1 *"}
        status, answer = await client.post("/api/v1/schedules/create", schedule)
        assert status == 200, answer
    await inbox.count(wanted.history, 600.0)
    client.close()
    print(f"filled in {time.monotonic() - begun:.0f} s", flush=True)


async def drill(wanted: Wanted, folder: Path) -> list[str]:
    """Moves the store; what is wrong."""
    inbox, wrong = Inbox(), list[str]()
    async with AsyncExitStack() as ends:
        receiver = await ends.enter_async_context(Receiver(inbox))
        servers = []
        for number in range(wanted.nodes):
            flags = ("--no-agent",)
            env = {**wanted.env, "TOCSIN_NODE_NAME": f"n{number}"}
            place = folder / "source" if wanted.source.startswith("sqlite") else folder / f"n{number}"
            server = Supervised(place, wanted.source, wanted.target, *flags, env=env)
            ends.push_async_callback(server.end)
            await server.start()
            servers.append(server)
        await fill(wanted, servers[0].server, inbox, receiver.url)
        creator = Creator(servers[0].server.url, receiver.url, wanted.rate, wanted.due_s)
        creating = asyncio.create_task(creator.run())
        began = time.monotonic()
        for kill_s in (*wanted.kills_s, *[None] * _RUNS_MAX):
            code, output = await transferred(wanted, kill_s)
            if not code:
                break
            # As the documentation has it, the same command goes on: also where a store did not answer in time.
            print(f"killed after {kill_s} s" if code == -signal.SIGKILL else f"ended with {code}: {output}", flush=True)
        print(f"last run: {output}\nall runs took {time.monotonic() - began:.1f} s", flush=True)
        if code:
            creator.stopping = True
            await asyncio.wait([creating])
            return [f"the transfer ended with {code}: {output}"]
        await asyncio.gather(*(server.wait_until_moved() for server in servers))
        await asyncio.sleep(2.0)
        creator.stopping = True
        await creating
        wrong += creator.errors
        await inbox.wait(
            lambda calls: len({c.body["timerId"] for c in calls}) >= wanted.history + len(creator.due), 120.0
        )
        wrong += judged(creator, inbox.calls)
        for server in servers:
            code = await server.server.stop()
            wrong += [f"a server ended with {code}"] if code else []
        wrong += await counted(wanted, len(creator.due))
    print(
        f"{len(creator.due)} creates, none answered for {creator.longest_gap_s():.1f} s at most; the slowest took "
        f"{creator.slowest_s:.1f} s",
        flush=True,
    )
    return wrong


def judged(creator: Creator, calls: list[Call]) -> list[str]:
    """What is wrong with the calls."""
    by_id: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_id[call.body["timerId"]].append(call)
    wrong = [f"{timer} was never called" for timer in creator.due if timer not in by_id]
    wrong += [f"{timer} was called {len(found)} times" for timer, found in by_id.items() if len(found) > 1]
    wrong += [f"{timer} was called early" for timer, found in by_id.items() if min(call.lag_us for call in found) < 0]
    wrong += [f"{timer} was not created, it seems" for timer in by_id if timer[0] == "c" and timer not in creator.due]
    ids = {call.headers["webhook-id"] for call in calls}
    wrong += [] if len(ids) == len(by_id) else ["webhook-ids are not one for each timer"]
    lags = sorted(found[0].lag_us for timer, found in by_id.items() if timer in creator.due)
    if lags:
        print(f"calls late by at most {lags[-1] / 1e6:.1f} s, median {lags[len(lags) // 2] / 1e3:.0f} ms", flush=True)
        wrong += ["a timer was too late"] if lags[-1] > _LAG_S_MAX * 1e6 else []
    return wrong


async def counted(wanted: Wanted, created: int) -> list[str]:
    """What is wrong with the numbers of rows in the target."""
    arguments = ("--from", wanted.target, "--to", "sqlite:///nowhere/tocsin.db", "--dry-run", "--json")
    code, out, err = await command("transfer", *arguments, env=wanted.env, timeout_s=1_800.0)
    if code:
        return [err]
    found = json.loads(out)
    expected: dict[str, Any] = {
        "timers": wanted.timers, "schedules": wanted.schedules, "history": wanted.history + created, "failures": 0,
    }  # fmt: skip
    return [f"{found[each]} {each} instead of {n}" for each, n in expected.items() if found[each] != n]


_SERVERS: dict[str, Callable[[], ServerProgram]] = {
    "postgresql": PostgresServer, "mysql": MysqlServer, "cassandra": CassandraServer,
    # It has all in memory, and with less it spends its time on collecting garbage.
    "dynamodb": partial(DynamoServer, heap_mb=2_048),
}  # fmt: skip


@asynccontextmanager
async def store(kind: str, folder: Path) -> AsyncIterator[str]:
    """The URL of an empty store of this kind."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'tocsin.db'}"
        return
    with running(_SERVERS[kind]()) as server:
        yield await server.create_database() if isinstance(server, PostgresServer) else server.new_url()


async def run(options: argparse.Namespace) -> int:
    """The drill as its options want it. The exit status."""
    with tempfile.TemporaryDirectory(prefix="tocsin-drill-") as name:
        folder = Path(name)
        async with (
            store(options.source, folder / "source") as source,
            store(options.target, folder / "target") as target,
        ):
            # What it reads of the machine's environment.
            env = KEY | {key: value for key, value in os.environ.items() if key.startswith("AWS_")}
            wanted = Wanted(
                source, target, 4 * SHARDS, options.timers, options.schedules, options.history, options.rate, options.nodes,
                tuple(options.kill), env,
            )  # fmt: skip
            wrong = await drill(wanted, folder)
    for each in wrong[:20]:
        print(f"WRONG: {each}")
    print("violated" if wrong else "kept", flush=True)
    return 1 if wrong else 0


def main() -> int:
    """Runs the drill. The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = ["sqlite", *_SERVERS]
    parser.add_argument("--source", choices=kinds, default="sqlite")
    parser.add_argument("--target", choices=kinds, default="postgresql")
    parser.add_argument("--timers", type=int, default=1_000_000)
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--history", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=200, help="creates per second")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument(
        "--kill", type=float, nargs="*", default=[15.0, 30.0], help="seconds of the runs that are killed"
    )
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
