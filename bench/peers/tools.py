"""The peers: which server each needs, and how its client and its workers are started. All sync what they acknowledge."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from tests.support.program import ServerProgram, running
from tests.support.redis import RedisServer

from bench import database, processes
from bench.peers.install import PeerUnavailable, bullmq, environment, python_of

_ROOT = Path(__file__).parents[2]
_END_S = 30.0
#: How long a client may take for what it is to create.
_ANSWER_S = 600.0


class Creates(ABC):
    """A tool that runs: creates timers, whose bodies it posts to the receiver when they are due."""

    @abstractmethod
    def create(self, count: int, *, due_us: int, spread_s: float = 0.0, batch: int = 0, callers: int = 64) -> float:
        """Creates timers that are due at an instant, or scattered over a time that begins then. Returns once all are
        acknowledged, with the seconds that it took. With `batch`, so many are created by one call."""

    @abstractmethod
    def cpu_s(self) -> float:
        """Processor seconds so far of its server and workers, without the client."""


class Tocsin(Creates):
    """A server of Tocsin, started as `processes.served` defines, with the load process of the other measurements."""

    def __init__(self, server: processes.Running, receiver: processes.Running) -> None:
        self._server = server
        self._receiver = receiver

    def create(self, count: int, *, due_us: int, spread_s: float = 0.0, batch: int = 0, callers: int = 64) -> float:
        order = "random" if spread_s else "instant"
        result = processes.load(
            self._server.port, self._receiver.port, due_us=due_us, count=count, spread=spread_s, order=order, batch=batch,
            connections=callers, prefix=str(due_us),
        )  # fmt: skip
        return float(result["seconds"])

    def cpu_s(self) -> float:
        beside = processes.served.database
        return self._server.cpu_s() + (beside.cpu_s() if beside is not None else 0.0)


@dataclass(frozen=True)
class Address:
    """Where a peer's server is, and its processor seconds so far."""

    url: str
    cpu_s: Callable[[], float] = lambda: 0.0


@contextlib.contextmanager
def _postgresql(_: Path) -> Iterator[Address]:
    with database.database() as server:
        yield Address(server.url(), server.cpu_s)


@contextlib.contextmanager
def _program(server: ServerProgram, url: str) -> Iterator[Address]:
    with running(server):
        assert server.process is not None
        pid = server.process.pid
        yield Address(url.format(server.port), lambda: sum(processes.times(pid)[:2]) * processes.TICK_S)


@contextlib.contextmanager
def _sqlite(folder: Path) -> Iterator[Address]:
    yield Address(f"sqlite:///{folder.resolve()}/jobs.sqlite")


@dataclass(frozen=True)
class Peer:
    """A tool, and how it is used. With `installs`, its program prepares the server first."""

    title: str
    server: Callable[[Path], AbstractContextManager[Address]]
    installs: bool = False
    workers: int = 1
    batches: bool = True
    #: Whether its client fires, too.
    one_process: bool = False


PEERS: Mapping[str, Peer] = {
    "bullmq": Peer("BullMQ, Redis", lambda _: _program(RedisServer(synced=True), "{}")),
    "pgqueuer": Peer("PgQueuer, PostgreSQL", _postgresql, installs=True),
    "celery": Peer("Celery, Redis", lambda _: _program(RedisServer(synced=True), "redis://127.0.0.1:{}/0"), workers=2),
    "apscheduler": Peer("APScheduler 3, SQLite", _sqlite, batches=False, one_process=True),
}


class _Programs(Creates):
    """A peer's server, client and workers."""

    def __init__(self, address: Address, client: subprocess.Popen[str], counted: list[subprocess.Popen[str]]) -> None:
        self._address = address
        self._client = client
        self._counted = counted

    def create(self, count: int, *, due_us: int, spread_s: float = 0.0, batch: int = 0, callers: int = 64) -> float:
        order = {"count": count, "due_us": due_us, "spread_s": spread_s, "batch": batch, "callers": callers}
        assert self._client.stdin is not None
        self._client.stdin.write(json.dumps(order) + "\n")
        self._client.stdin.flush()
        return float(_line(self._client)["seconds"])

    def cpu_s(self) -> float:
        return self._address.cpu_s() + sum(processes.Running(process, 0).cpu_s() for process in self._counted)


@contextlib.contextmanager
def started(name: str, folder: Path, receiver: processes.Running) -> Iterator[Creates]:
    """A peer that creates and fires; its log is in the folder. Raises PeerUnavailable, and RuntimeError if it ends."""
    peer = PEERS[name]
    if name == "bullmq":
        node, script = bullmq()
        program: list[str] = [node, str(script)]
    else:
        program = [str(python_of(name)), "-m", f"bench.peers.programs.{name}"]
    hook = f"http://127.0.0.1:{receiver.port}/hook"
    with ExitStack() as stack:
        log = stack.enter_context((folder / f"{name}.log").open("a+"))
        try:
            address = stack.enter_context(peer.server(folder))
        except pytest.skip.Exception as lacking:
            raise PeerUnavailable(str(lacking)) from lacking
        if peer.installs:
            command = [*program, "install", address.url]
            if subprocess.run(command, stdout=log, stderr=log, env=environment(), cwd=_ROOT, check=False).returncode:
                log.seek(0)
                raise RuntimeError(f"its database could not be prepared: {log.read()[-2000:]}")
        count = 0 if peer.one_process else peer.workers
        workers = [_start(stack, [*program, "work", address.url, hook], log, log) for _ in range(count)]
        own = [hook] if peer.one_process else []
        client = _start(stack, [*program, "create", address.url, *own], log, subprocess.PIPE)
        try:
            _line(client)
            yield _Programs(address, client, workers or [client])
        except RuntimeError as error:
            log.seek(0)
            raise RuntimeError(f"{error}: {log.read()[-2000:]}") from error


def _start(stack: ExitStack, command: list[str], log: IO[str], output: IO[str] | int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=output, stderr=log, text=True, env=environment(), cwd=_ROOT
    )
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line that it prints. Raises RuntimeError if it has ended, or prints none in time."""
    assert process.stdout is not None
    deadline = threading.Timer(_ANSWER_S, process.kill)
    deadline.start()
    try:
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                return dict(json.loads(line))
    finally:
        deadline.cancel()
    raise RuntimeError(f"the program has ended, or printed nothing for {_ANSWER_S:.0f} s")
