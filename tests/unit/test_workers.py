"""The parent process of workers: restarts, rolling restarts, and stops at any moment. The workers are small programs
with the same control pipe."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import structlog
from tests.support.patience import PATIENCE_S

from tocsin.cluster.limits import ClusterLimits
from tocsin.server import running
from tocsin.server.sockets import bind
from tocsin.server.workers import (
    READY,
    STARTED,
    VARIABLE,
    ControlPipe,
    Parent,
    StopRequests,
    WorkerSlot,
    worker_slot,
)
from tocsin.settings import load_settings

#: Appends its process id to a file, then follows its words: `s`, `r`, `w` (waits for SIGTERM), `c` (closes the port), `f`
#: (waits for the file `go`) or an exit code. Before its first word SIGTERM kills it.
_WORKER = """
import os, pathlib, signal, socket, sys, time
number, port, line = map(int, os.environ["TOCSIN_WORKER"].split(",")[:3])
line = socket.socket(fileno=line)
folder = pathlib.Path(sys.argv[1])
with (folder / f"pids-{number}").open("a") as pids:
    print(os.getpid(), file=pids)
for word in sys.argv[2].split():
    if word in ("s", "r"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        line.send(word.encode())
    elif word == "w":
        signal.sigwait({signal.SIGTERM})
    elif word == "c":
        os.close(port)
    elif word == "f":
        while not (folder / "go").exists():
            time.sleep(0.01)
    else:
        sys.exit(int(word))
"""


class Family:
    """A running parent, with the traces of the workers."""

    def __init__(
        self, folder: Path, words: str, *, workers: int = 2, command: list[str] | None = None, **limits: int
    ) -> None:
        settings = load_settings({"store": "postgresql://x@127.0.0.1/x", "workers": workers})
        self.folder, self.workers = folder, workers
        self.listener = bind("127.0.0.1", 0)
        program = command or [sys.executable, "-c", _WORKER, str(folder), words]
        self.parent = Parent(settings, program, self.listener, "http://x", ClusterLimits(**limits))
        self.running: asyncio.Task[int] = asyncio.ensure_future(self.parent.run())

    def pids(self, number: int) -> list[int]:
        """The processes that were in the slot, in order."""
        with contextlib.suppress(FileNotFoundError):
            return [int(pid) for pid in (self.folder / f"pids-{number}").read_text().split()]
        return []

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition() and not self.running.done():  # noqa: ASYNC110 -- other processes report by files
                await asyncio.sleep(0.01)
        assert condition()

    async def all_ready(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            for worker in self.parent._workers:
                await worker.ready.wait()

    async def end(self) -> int:
        self.parent._stop.set()
        async with asyncio.timeout(PATIENCE_S):
            return await self.running


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)


@pytest.fixture
async def family(tmp_path: Path) -> AsyncIterator[Callable[..., Family]]:
    """Creates one; everything it started is ended."""
    made: list[Family] = []

    def make(words: str, **options: object) -> Family:
        made.append(Family(tmp_path, words, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.running.cancel()
        for worker in one.parent._workers:
            worker.wanted = False
            worker.signal(signal.SIGKILL)
            if worker.process is not None:
                await worker.process.wait()
        one.listener.close()


async def test_all_workers_start_and_stop_in_order(
    family: Callable[..., Family], capfd: pytest.CaptureFixture[str]
) -> None:
    one = family("s r w 0")
    await one.all_ready()
    output = ""
    async with asyncio.timeout(PATIENCE_S):
        while not output:
            await asyncio.sleep(0.01)
            output = capfd.readouterr().out
    assert await one.end() == 0
    assert [len(one.pids(number)) for number in (0, 1)] == [1, 1]
    assert (output + capfd.readouterr().out).count("Tocsin serves on http://x") == 1


async def test_a_stop_during_the_start_of_workers_is_obeyed(
    family: Callable[..., Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    known, make_process = asyncio.Event(), asyncio.create_subprocess_exec

    async def slowly(*words: str, **options: object) -> asyncio.subprocess.Process:
        process = await make_process(*words, **options)  # type: ignore[arg-type]
        await known.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    one = family("s r w 0")
    await one.until(lambda: len(one.pids(0)) == len(one.pids(1)) == 1)
    assert [worker.process for worker in one.parent._workers] == [None, None]
    one.parent._stop.set()
    await one.until(lambda: not any(worker.wanted for worker in one.parent._workers))
    known.set()
    assert await one.end() == 0


async def test_the_port_is_closed_when_no_worker_accepts_connections_any_more(
    family: Callable[..., Family], tmp_path: Path
) -> None:
    one = family("s r w c f 0")
    await one.all_ready()
    one.listener.listen()
    address = one.listener.getsockname()
    one.parent._stop.set()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(ConnectionRefusedError):
            while True:
                socket.create_connection(address, PATIENCE_S).close()
                await asyncio.sleep(0.01)
    assert not one.running.done()
    (tmp_path / "go").touch()
    assert await one.end() == 0


async def test_a_worker_that_fails_to_start_stops_all(family: Callable[..., Family]) -> None:
    one = family("3")
    async with asyncio.timeout(PATIENCE_S):
        assert await one.running == 3


async def test_a_missing_program_stops_all(family: Callable[..., Family]) -> None:
    one = family("", command=["/nonexistent/tocsin"])
    with structlog.testing.capture_logs() as logs:
        async with asyncio.timeout(PATIENCE_S):
            assert await one.running == 1
    assert any("/nonexistent/tocsin" in entry.get("error", "") for entry in logs)


async def test_restarts_of_a_crashing_worker_are_delayed_increasingly(family: Callable[..., Family]) -> None:
    with structlog.testing.capture_logs() as logs:
        one = family("s 7", workers=2, worker_restart_backoff_us=10_000, worker_restart_backoff_max_us=40_000)
        await one.until(lambda: len(one.pids(0)) > 4)
        assert await one.end() == 0
    pauses = [entry["pause_s"] for entry in logs if entry["event"].startswith("worker died") and entry["worker"] == 0]
    assert pauses[:4] == [0.01, 0.02, 0.04, 0.04]


async def test_a_worker_that_was_ready_is_restarted_soon(family: Callable[..., Family]) -> None:
    with structlog.testing.capture_logs() as logs:
        one = family("s r 7", workers=2, worker_restart_backoff_us=10_000)
        await one.until(lambda: len(one.pids(0)) > 3)
        assert await one.end() == 0
    assert {entry["pause_s"] for entry in logs if "pause_s" in entry} == {0.01}


async def test_a_restart_replaces_each_worker_and_a_second_request_follows(
    family: Callable[..., Family],
) -> None:
    one = family("s r w 0")
    await one.all_ready()
    one.parent._roll_soon()
    one.parent._roll_soon()
    await one.until(lambda: len(one.pids(0)) == 2)
    one.parent._roll_soon()
    rolling = one.parent._rolling
    assert rolling is not None
    async with asyncio.timeout(PATIENCE_S):
        await rolling
    assert [len(one.pids(number)) for number in (0, 1)] == [3, 3]
    assert await one.end() == 0


async def test_a_restart_requested_during_the_start_waits(family: Callable[..., Family], tmp_path: Path) -> None:
    one = family("f s r w 0")
    await one.until(lambda: len(one.pids(0)) == len(one.pids(1)) == 1)
    one.parent._roll_soon()
    await asyncio.sleep(0)
    (tmp_path / "go").touch()
    await one.until(lambda: len(one.pids(0)) == len(one.pids(1)) == 2)
    await one.all_ready()
    assert not one.running.done()
    assert await one.end() == 0


async def test_a_restart_stops_at_a_worker_that_does_not_become_ready(
    family: Callable[..., Family], tmp_path: Path
) -> None:
    with structlog.testing.capture_logs() as logs:
        # Long enough for the new worker to start on a busy machine.
        one = family("s r w 0", worker_ready_timeout_us=3_000_000)
        await one.all_ready()
        one.parent._command[-1] = "s w 0"
        one.parent._roll_soon()
        assert one.parent._rolling is not None
        async with asyncio.timeout(PATIENCE_S):
            await one.parent._rolling
        assert [len(one.pids(number)) for number in (0, 1)] == [2, 1]
        assert await one.end() == 0
    assert any("aborted" in entry["event"] for entry in logs)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_second_signal_kills_workers_that_do_not_stop(
    family: Callable[..., Family], number: signal.Signals, code: int
) -> None:
    one = family("s r f")
    await one.all_ready()
    one.parent._stop_requests = StopRequests(iter((5.0, 5.1, 6.0)).__next__)
    # One request: a service manager may signal all processes.
    one.parent._stop_wanted(number)
    one.parent._stop_wanted(number)
    assert one.parent._failed is None
    one.parent._stop_wanted(number)
    async with asyncio.timeout(PATIENCE_S):
        assert await one.running == code


async def test_a_worker_detects_the_exit_of_its_parent() -> None:
    mine, theirs = socket.socketpair()
    line = ControlPipe(theirs.detach())
    line.send(STARTED)
    line.send(READY)
    assert mine.recv(10) == STARTED + READY
    waiting = asyncio.ensure_future(line.orphaned())
    await asyncio.sleep(0)
    assert not waiting.done()
    mine.close()
    async with asyncio.timeout(PATIENCE_S):
        await waiting
    line.send(READY)


async def test_a_worker_that_waits_for_its_store_detects_the_exit_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, worker = socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()
    slot = WorkerSlot(0, listener.detach(), worker.detach(), tmp_path)
    monkeypatch.setattr(running, "worker_slot", lambda: slot)
    with socket.socket() as unreachable:
        # Nobody listens there.
        unreachable.bind(("127.0.0.1", 0))
        store = f"postgresql://nobody@127.0.0.1:{unreachable.getsockname()[1]}/tocsin"
        settings = load_settings({"store": store, "workers": 2, "data_dir": tmp_path, "agent_enabled": False})
        serving = asyncio.ensure_future(running._serve(settings, movable_clock=False))
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()
            parent.close()
            assert await serving == 0


def test_a_worker_reads_its_number_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worker_slot() is None
    monkeypatch.setenv(VARIABLE, "2,5,6,/tmp/a,b")
    assert worker_slot() == (2, 5, 6, Path("/tmp/a,b"))
