"""Several workers behind one port: the parent holds the listening socket and looks after the processes.

All of them accept from the one socket, so that no connection is lost when a worker comes or goes. Each worker is a node of
its own; the first runs the service agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from tocsin.cluster.limits import ClusterLimits
from tocsin.config import Settings
from tocsin.model.errors import ConfigError
from tocsin.server.sockets import bind, url_of
from tocsin.telemetry.logs import configure_logging

#: Tells a worker its number and the descriptors of the listening socket and of its line to the parent.
VARIABLE = "TOCSIN_WORKER"
#: What a worker says on its line: that it answers requests; that it has its share of the shards.
STARTED, READY = b"s", b"r"
_BACKLOG = 2_048


class Place(NamedTuple):
    """A worker's place, as its environment tells it."""

    number: int
    listener: int
    line: int


def place_of_worker() -> Place | None:
    """This process's, if it is a worker."""
    text = os.environ.get(VARIABLE)
    return Place(*map(int, text.split(","))) if text else None


class _Ended(NamedTuple):
    """How a process in a place ended, and whether it had been ready."""

    code: int
    was_ready: bool


class _Worker:
    """One place and whoever fills it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: asyncio.subprocess.Process | None = None
        self.started = asyncio.Event()
        self.ready = asyncio.Event()
        self.wanted = True

    def signal(self, number: int) -> None:
        """Sends it a signal, if it lives."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class Parent:
    """Starts the workers, starts those anew that die, ends all in order on SIGTERM, and rolls over them on SIGHUP."""

    def __init__(
        self,
        settings: Settings,
        command: list[str],
        listener: socket.socket,
        url: str,
        limits: ClusterLimits | None = None,
    ) -> None:
        self._settings = settings
        self._limits = limits or settings.cluster_limits()
        self._command = command
        self._listener = listener
        self._url = url
        self._workers = [_Worker(number) for number in range(settings.workers)]
        self._log = structlog.get_logger("tocsin.workers")
        self._stop = asyncio.Event()
        self._stops = 0
        self._rolling: asyncio.Task[None] | None = None
        self._roll_again = False
        self._failed: int | None = None

    async def run(self) -> int:
        """Until it is told to end; the exit code."""
        loop = asyncio.get_running_loop()
        handlers: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self._stop.set,
            signal.SIGINT: self._interrupted,
            signal.SIGHUP: self._roll_soon,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        keepers = [asyncio.ensure_future(self._keep(worker)) for worker in self._workers]
        started = asyncio.ensure_future(self._all_started())
        stopped = asyncio.ensure_future(self._stop.wait())
        # A keeper ends before that only by a defect, which must not leave its place empty.
        await asyncio.wait([started, stopped, *keepers], return_when=asyncio.FIRST_COMPLETED)
        if started.done() and not self._stop.is_set():
            print(
                f"Tocsin serves on {self._url} (API docs: {self._url}/docs) with {len(self._workers)} workers. "
                "Stop with Ctrl-C.",
                flush=True,
            )
        await asyncio.wait([stopped, *keepers], return_when=asyncio.FIRST_COMPLETED)
        self._stop.set()
        await _ended(started, stopped, self._rolling)
        for worker in self._workers:
            worker.wanted = False
            worker.signal(signal.SIGTERM)
        await asyncio.wait(keepers)
        self._listener.close()
        for keeper in keepers:
            keeper.result()
        return self._failed or 0

    async def _all_started(self) -> None:
        for worker in self._workers:
            await worker.started.wait()

    def _interrupted(self) -> None:
        self._stops += 1
        self._stop.set()
        if self._stops > 1:
            for worker in self._workers:
                worker.signal(signal.SIGKILL)

    # ------------------------------------------------------------------ one place

    async def _keep(self, worker: _Worker) -> None:
        """Fills the place again and again; after who did not get ready, with ever longer pauses."""
        first_us = pause_us = self._limits.worker_restart_backoff_us
        while worker.wanted and not self._stop.is_set():
            answered = worker.started.is_set()
            ended = await self._fill(worker)
            if not worker.wanted or self._stop.is_set():
                return
            if not answered and not worker.started.is_set():
                # It never got to work: another try would end the same way.
                self._failed = ended.code if ended.code > 0 else 1
                self._stop.set()
                return
            pause_us = first_us if ended.was_ready else pause_us
            if ended.code or not ended.was_ready:
                self._log.error(
                    "a worker died; it is started again",
                    worker=worker.number,
                    exit_code=ended.code,
                    pause_s=pause_us / 1e6,
                )
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_us / 1e6):
                        await self._stop.wait()
                pause_us = min(2 * pause_us, max(first_us, self._limits.worker_restart_backoff_max_us))

    async def _fill(self, worker: _Worker) -> _Ended:
        """Runs a process in the place, until it ends."""
        mine, theirs = socket.socketpair()
        worker.ready.clear()
        try:
            worker.process = await self._start(worker, theirs.fileno())
        except OSError as error:
            self._log.error("no process could be made for a worker", worker=worker.number, error=str(error))
            mine.close()
            return _Ended(1, False)
        finally:
            theirs.close()
        if not worker.wanted:
            # All were told to end while this one began.
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
            self._log.debug("a worker's line broke", worker=worker.number, error=str(error))
        finally:
            writer.close()
        code = await worker.process.wait()
        worker.ready.clear()
        return _Ended(code, was_ready)

    async def _start(self, worker: _Worker, line: int) -> asyncio.subprocess.Process:
        descriptors = (self._listener.fileno(), line)
        return await asyncio.create_subprocess_exec(
            *self._command,
            pass_fds=descriptors,
            env={
                **os.environ,
                VARIABLE: f"{worker.number},{descriptors[0]},{descriptors[1]}",
            },
        )

    # ------------------------------------------------------------------ rolling restart

    def _roll_soon(self) -> None:
        # Whoever asks while one is going on may have changed something since: those replaced already are, once more.
        self._roll_again = True
        if self._rolling is None or self._rolling.done():
            self._rolling = asyncio.ensure_future(self._roll())

    async def _roll(self) -> None:
        # A worker that is told to end before it began would look like one that can't start.
        await self._all_started()
        while self._roll_again:
            self._roll_again = False
            await self._roll_once()

    async def _roll_once(self) -> None:
        """One worker after another ends in order and is followed by a new one, which gets its share before the next."""
        for worker in self._workers:
            if self._stop.is_set():
                return
            self._log.info("rolling restart", worker=worker.number)
            former = worker.process
            worker.signal(signal.SIGTERM)
            if former is not None:
                await former.wait()
            # Whatever the former said at its end says nothing of the next one.
            worker.ready.clear()
            try:
                async with asyncio.timeout(self._limits.worker_ready_timeout_us / 1e6):
                    await worker.ready.wait()
            except TimeoutError:
                self._log.error("rolling restart given up: a worker did not get ready", worker=worker.number)
                return
        self._log.info("rolling restart done")


async def _ended(*tasks: asyncio.Future[Any] | None) -> None:
    for task in tasks:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def serve_workers(settings: Settings) -> int:
    """Runs the parent; the exit code."""
    configure_logging(settings.log_level, settings.log_format)
    try:
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


class Line:
    """A worker's line to its parent."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)

    def say(self, word: bytes) -> None:
        """STARTED or READY. A parent that is gone is noticed by `orphaned`."""
        with contextlib.suppress(OSError):
            self._socket.send(word)

    async def orphaned(self) -> None:
        """Returns when the parent is gone."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while await loop.sock_recv(self._socket, 16):
                pass
