"""`tocsin serve`: a node as a process, from its start to its orderly end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys

import structlog

from tocsin.config import Settings
from tocsin.model.errors import TocsinError
from tocsin.server.node import Server
from tocsin.server.sockets import raise_descriptor_limit
from tocsin.server.workers import READY, STARTED, ControlPipe, serve_workers, worker_slot
from tocsin.telemetry.logs import configure_logging

#: Exit codes of `serve`, beside 0: it could not start (1), it met what it can't go on with (70).
EXIT_START = 1
EXIT_FATAL = 70
#: Ctrl-C for the second time.
EXIT_INTERRUPTED = 130

#: How often a worker looks whether it is ready, until it is.
_READY_LOOK_S = 0.1
#: A loop that never idles starves the database thread: each short release of the interpreter restarts its wait of (by
#: default) 5 ms. Measured beside a busy loop: 600 rows a second with the default, 52,000 with this.
_SWITCH_INTERVAL_S = 5e-6
#: Young objects before a collection: with the default, full collections walk the whole window many times a second.
_GC_THRESHOLDS = (50_000, 50, 100)


def spare_collections() -> None:
    """Takes what exists at the start (modules, classes, decoders) out of collections: the first full one would hold the event
    loop for 100 ms. Later ones come seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def serve(settings: Settings) -> int:
    """Runs a node, or the parent of several workers, until SIGTERM or SIGINT, drains, and returns the exit code."""
    import uvloop

    if settings.workers > 1:
        if worker_slot() is None:
            return serve_workers(settings)
        # Sent to the whole process group, it is the parent's, which replaces its workers one after another.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    configure_logging(settings.log_level, settings.log_format)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    if (obstacle := raise_descriptor_limit()) is not None:
        structlog.get_logger("tocsin.server").warning(obstacle)
    return uvloop.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    log = structlog.get_logger("tocsin.server")
    wanted = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        if wanted.is_set():
            # Whoever insists need not wait for slow receivers: it is no worse than a crash, and those lose nothing.
            log.warning("stopped at once; callbacks under way will be made again")
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)
        wanted.set()

    loop.add_signal_handler(signal.SIGTERM, wanted.set)
    loop.add_signal_handler(signal.SIGINT, interrupted)

    def on_fatal(error: BaseException) -> None:
        # What was not acknowledged is not promised, and what was is on disk: ending at once loses nothing.
        log.critical("the engine can't go on; the process ends", error=repr(error), exc_info=error)
        sys.stderr.flush()
        os._exit(EXIT_FATAL)

    try:
        place = worker_slot() if settings.workers > 1 else None
        if place is None:
            line, server = None, Server(settings, on_fatal=on_fatal)
        else:
            line = ControlPipe(place.control_pipe)
            listener = socket.socket(fileno=place.listener)
            listener.setblocking(False)
            server = Server(settings, on_fatal=on_fatal, listener=listener, worker=place.number)
        await server.start()
    except (TocsinError, OSError) as error:
        print(f"tocsin: can't start: {error}", file=sys.stderr)
        return EXIT_START
    spare_collections()
    if line is None:
        print(f"Tocsin serves on {server.url} (API docs: {server.url}/docs). Stop with Ctrl-C.", flush=True)
        await wanted.wait()
    else:
        tasks = [loop.create_task(_tell_when_ready(server, line)), loop.create_task(_follow(line, wanted))]
        await wanted.wait()
        for task in tasks:
            task.cancel()
    log.info("stopping: requests and callbacks under way end first")
    await server.stop()
    return 0


async def _tell_when_ready(server: Server, line: ControlPipe) -> None:
    """Keeps the parent informed of how far this worker is."""
    line.send(STARTED)
    assert server.service is not None
    while server.service.not_ready_because():  # noqa: ASYNC110 -- nobody tells; it is asked until then
        await asyncio.sleep(_READY_LOOK_S)
    line.send(READY)


async def _follow(line: ControlPipe, wanted: asyncio.Event) -> None:
    """A worker doesn't outlive its parent."""
    await line.orphaned()
    wanted.set()
