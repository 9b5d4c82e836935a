"""Several workers behind one port: the parent process holds the listening socket and supervises the worker processes.

All workers accept from the same socket, so that no connection is lost when a worker starts or ends. Each worker is a
node of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from tocsin.cluster.limits import ClusterLimits
from tocsin.model.errors import ConfigError
from tocsin.model.retry import backoff_us
from tocsin.server.extras import require_extras
from tocsin.server.sockets import bind, url_of
from tocsin.settings import Settings
from tocsin.tasks import end_tasks
from tocsin.telemetry.logs import configure_logging

#: The environment variable with a worker's number, the file descriptors of the listening socket and its control pipe, and
#: the folder of the workers' own sockets.
VARIABLE = "TOCSIN_WORKER"
#: What a worker sends on its control pipe: it serves requests; it owns its share of the shards.
STARTED, READY = b"s", b"r"
#: Added to the number of the signal, the exit code after a second SIGTERM or Ctrl-C: 143 or 130.
EXIT_FORCED = 128
#: Exit code of `serve` when its store was moved while it ran: it has to be started with the new one.
EXIT_MOVED = 75
_BACKLOG = 2_048
#: A terminal, a supervisor and a script may each send the signal for one request: those within this time are one.
_ONE_REQUEST_S = 1.0


class WorkerSlot(NamedTuple):
    """A worker's number, its inherited file descriptors, and the folder of the workers' own sockets."""

    number: int
    listener: int
    control_pipe: int
    folder: Path


def worker_slot() -> WorkerSlot | None:
    """This process's slot, if it is a worker."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    number, listener, control_pipe, folder = text.split(",", 3)
    return WorkerSlot(int(number), int(listener), int(control_pipe), Path(folder))


class _Ended(NamedTuple):
    """How a worker process ended, and whether it had been ready."""

    code: int
    was_ready: bool


class _Worker:
    """One slot and its current process."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: asyncio.subprocess.Process | None = None
        self.started = asyncio.Event()
        self.ready = asyncio.Event()
        self.wanted = True

    def signal(self, number: int) -> None:
        """Sends the process a signal, if it is alive."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class Parent:
    """Starts the workers, restarts those that die, stops all in order on SIGTERM, and restarts them one by one on
    SIGHUP."""

    def __init__(
        self,
        settings: Settings,
        command: list[str],
        listener: socket.socket,
        url: str,
        limits: ClusterLimits | None = None,
    ) -> None:
        self._settings = settings
        self._limits = limits or settings.cluster
        self._command = command
        self._listener = listener
        self._url = url
        self._folder = tempfile.TemporaryDirectory(prefix="tocsin-workers-", ignore_cleanup_errors=True)
        self._workers = [_Worker(number) for number in range(settings.workers)]
        self._log = structlog.get_logger("tocsin.workers")
        self._stop = asyncio.Event()
        self._stop_requests = StopRequests()
        self._rolling: asyncio.Task[None] | None = None
        self._roll_again = False
        self._failed: int | None = None

    async def run(self) -> int:
        """Runs until it is asked to stop. Returns the exit code."""
        loop = asyncio.get_running_loop()
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: partial(self._stop_wanted, signal.SIGTERM),
            signal.SIGINT: partial(self._stop_wanted, signal.SIGINT),
            signal.SIGHUP: self._roll_soon,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        keepers = [asyncio.ensure_future(self._keep(worker)) for worker in self._workers]
        started = asyncio.ensure_future(self._all_started())
        stopped = asyncio.ensure_future(self._stop.wait())
        # A keeper ends earlier only through a defect, which must not leave its slot empty.
        await asyncio.wait([started, stopped, *keepers], return_when=asyncio.FIRST_COMPLETED)
        if started.done() and not self._stop.is_set():
            print(
                f"Tocsin serves on {self._url} (API docs: {self._url}/docs) with {len(self._workers)} workers. "
                "Stop with Ctrl-C.",
                flush=True,
            )
        await asyncio.wait([stopped, *keepers], return_when=asyncio.FIRST_COMPLETED)
        self._stop.set()
        await end_tasks(started, stopped, *([] if self._rolling is None else [self._rolling]))
        for worker in self._workers:
            worker.wanted = False
            worker.signal(signal.SIGTERM)
        # From now on the port is open as long as a worker accepts connections from it.
        self._listener.close()
        await asyncio.wait(keepers)
        self._folder.cleanup()
        for keeper in keepers:
            keeper.result()
        return self._failed or 0

    async def _all_started(self) -> None:
        for worker in self._workers:
            await worker.started.wait()

    def _stop_wanted(self, number: int) -> None:
        self._stop.set()
        if self._stop_requests.insists():
            self._failed = EXIT_FORCED + number
            for worker in self._workers:
                worker.signal(signal.SIGKILL)

    # ------------------------------------------------------------------ one slot

    async def _keep(self, worker: _Worker) -> None:
        """Restarts the worker whenever it ends; with growing pauses while it ends before it is ready."""
        deaths, first_us = 0, self._limits.worker_restart_backoff_us
        while worker.wanted and not self._stop.is_set():
            answered = worker.started.is_set()
            ended = await self._fill(worker)
            if not worker.wanted or self._stop.is_set():
                return
            if not answered and not worker.started.is_set():
                # It never served a request: another try would end the same way.
                self._failed = ended.code if ended.code > 0 else 1
                self._stop.set()
                return
            if ended.code == EXIT_MOVED:
                # Each worker ends so by itself; a new one could not start.
                self._failed = ended.code
                self._stop.set()
                return
            deaths = 0 if ended.was_ready else deaths
            if ended.code or not ended.was_ready:
                deaths += 1
                pause_us = backoff_us(deaths, first_us, max(first_us, self._limits.worker_restart_backoff_max_us))
                self._log.error(
                    "worker died, restarting",
                    worker=worker.number,
                    exit_code=ended.code,
                    pause_s=pause_us / 1e6,
                )
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_us / 1e6):
                        await self._stop.wait()

    async def _fill(self, worker: _Worker) -> _Ended:
        """Runs a process in the slot until it ends."""
        mine, theirs = socket.socketpair()
        worker.ready.clear()
        try:
            worker.process = await self._start(worker, theirs.fileno())
        except OSError as error:
            self._log.error("worker process not started", worker=worker.number, error=str(error))
            mine.close()
            return _Ended(1, False)
        finally:
            theirs.close()
        if not worker.wanted:
            # All workers were asked to stop while this one started.
            worker.signal(signal.SIGTERM)
        was_ready = False
        reader, writer = await asyncio.open_connection(sock=mine)
        try:
            while word := await reader.read(1):
                worker.started.set()
                if word == READY:
                    was_ready = True
                    worker.ready.set()
        except ConnectionError as error:
            self._log.debug("worker control pipe closed", worker=worker.number, error=str(error))
        finally:
            writer.close()
        code = await worker.process.wait()
        worker.ready.clear()
        return _Ended(code, was_ready)

    async def _start(self, worker: _Worker, control_pipe: int) -> asyncio.subprocess.Process:
        descriptors = (self._listener.fileno(), control_pipe)
        return await asyncio.create_subprocess_exec(
            *self._command,
            pass_fds=descriptors,
            env={
                **os.environ,
                VARIABLE: f"{worker.number},{descriptors[0]},{descriptors[1]},{self._folder.name}",
            },
        )

    # ------------------------------------------------------------------ rolling restart

    def _roll_soon(self) -> None:
        # A request during a rolling restart may follow a change: workers that were replaced already are replaced again.
        self._roll_again = True
        if self._rolling is None or self._rolling.done():
            self._rolling = asyncio.ensure_future(self._roll())

    async def _roll(self) -> None:
        # A worker that is stopped before it has started would look like one that cannot start.
        await self._all_started()
        while self._roll_again:
            self._roll_again = False
            await self._roll_once()

    async def _roll_once(self) -> None:
        """Replaces one worker after another. The next one follows when the new worker is ready."""
        for worker in self._workers:
            if self._stop.is_set():
                return
            self._log.info("rolling restart", worker=worker.number)
            former = worker.process
            worker.signal(signal.SIGTERM)
            if former is not None:
                await former.wait()
            # READY came from the former process, not from the new one.
            worker.ready.clear()
            try:
                async with asyncio.timeout(self._limits.worker_ready_timeout_us / 1e6):
                    await worker.ready.wait()
            except TimeoutError:
                self._log.error("rolling restart aborted: worker not ready", worker=worker.number)
                return
        self._log.info("rolling restart done")


class StopRequests:
    """The signals that a process has received. `now_s` is a clock that is never set."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._first_s: float | None = None

    def insists(self) -> bool:
        """Notes a signal; whether it asks once more, after the first request was made a second ago or longer."""
        now_s = self._now_s()
        if self._first_s is None:
            self._first_s = now_s
        return now_s - self._first_s >= _ONE_REQUEST_S


def serve_workers(settings: Settings) -> int:
    """Runs the parent process. Returns the exit code."""
    configure_logging(settings.log)
    try:
        require_extras(settings)
        listener = bind(settings.host, settings.port)
        listener.listen(_BACKLOG)
    except (ConfigError, OSError) as error:
        print(f"tocsin: can't start: {error}", file=sys.stderr)
        return 1
    url = url_of(settings.host, listener.getsockname()[1])
    command = [sys.executable, "-m", "tocsin", *sys.argv[1:]]

    async def run() -> int:
        return await Parent(settings, command, listener, url).run()

    return asyncio.run(run())


class ControlPipe:
    """A worker's end of the control pipe to its parent."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)

    def send(self, word: bytes) -> None:
        """Sends STARTED or READY. A parent that has ended is detected by `orphaned`."""
        with contextlib.suppress(OSError):
            self._socket.send(word)

    async def orphaned(self) -> None:
        """Returns when the parent has ended."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while await loop.sock_recv(self._socket, 16):
                pass
