"""`tocsin serve`: a node as a process, from start to graceful shutdown."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from dataclasses import replace

import structlog

from tocsin.model.errors import TocsinError
from tocsin.model.instants import format_instant
from tocsin.server.clock_mover import DevClock
from tocsin.server.dev_folder import open_dev_folder
from tocsin.server.node import Server
from tocsin.server.sockets import raise_descriptor_limit
from tocsin.server.transfer_mark import TransferRefused
from tocsin.server.workers import (
    EXIT_FORCED,
    EXIT_MOVED,
    READY,
    STARTED,
    ControlPipe,
    StopRequests,
    serve_workers,
    worker_slot,
)
from tocsin.settings import Settings
from tocsin.tasks import end_tasks
from tocsin.telemetry.logs import configure_logging

#: Exit codes of `serve` besides 0: it could not start (1), a fatal error (70); its store was moved (EXIT_MOVED).
EXIT_START = 1
EXIT_FATAL = 70

#: How often a starting worker checks whether it is ready.
_READY_POLL_S = 0.1
#: An event loop that never idles starves the database thread: each short release of the interpreter lock restarts its
#: wait, 5 ms by default. Measured with a busy loop: 600 rows per second with the default, 52,000 with this.
_SWITCH_INTERVAL_S = 5e-6
#: Thresholds of the garbage collector: with the default, full collections walk the whole window many times a second. The
#: first one bounds what waits to be collected where little happens: each page that is read leaves a hundred objects and more
#: in cycles of its template's, and 50,000 of them take 15 MiB, in which a quiet node grows for hours.
_GC_THRESHOLDS = (10_000, 50, 500)


def reduce_collections() -> None:
    """Excludes the objects that exist at the start (modules, classes, decoders) from garbage collection, whose first full
    run would block the event loop for 100 ms, and makes later runs rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def serve(settings: Settings, *, movable_clock: bool = False) -> int:
    """Runs a node, or the parent of several workers, until SIGTERM or SIGINT, shuts down, and returns the exit code. With
    `movable_clock` it is one node in a separate folder, whose clock the API moves."""
    import uvloop

    if settings.workers > 1:
        if worker_slot() is None:
            return serve_workers(settings)
        # A SIGHUP to the process group is for the parent, which replaces its workers one after another.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    configure_logging(settings.log)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    if (obstacle := raise_descriptor_limit()) is not None:
        structlog.get_logger("tocsin.server").warning("open-file limit not raised", error=obstacle)
    return uvloop.run(_serve(settings, movable_clock=movable_clock))


async def _serve(settings: Settings, *, movable_clock: bool) -> int:
    log = structlog.get_logger("tocsin.server")
    if movable_clock:
        # Where time is moved forward, a wait for the next probe would keep it from moving, as would one for neighbors of a
        # finished timer behind one that waits for its flow.
        breaker, engine = replace(settings.breaker, enabled=False), replace(settings.engine, exact_delete_after_us=0)
        settings = replace(settings, breaker=breaker, engine=engine)
    wanted = asyncio.Event()
    loop = asyncio.get_running_loop()

    place = worker_slot() if settings.workers > 1 else None

    requests = StopRequests()

    def stop(number: int) -> None:
        if requests.insists():
            # A second signal does not wait for slow receivers: this is no worse than a crash, which loses nothing.
            log.warning("shutdown forced", effect="callbacks in flight are repeated after the next start")
            sys.stderr.flush()
            os._exit(EXIT_FORCED + number)
        wanted.set()

    # A worker may get the first SIGTERM twice, from its parent and with the process group. Its parent forces it by SIGKILL.
    loop.add_signal_handler(signal.SIGTERM, *((stop, signal.SIGTERM) if place is None else (wanted.set,)))
    loop.add_signal_handler(signal.SIGINT, stop, signal.SIGINT)

    def on_fatal(error: BaseException) -> None:
        # Acknowledged writes are on disk, and others are not promised: exiting immediately loses nothing.
        log.critical("fatal engine error", effect="the process exits", error=repr(error), exc_info=error)
        sys.stderr.flush()
        os._exit(EXIT_FATAL)

    paused = asyncio.Event()
    tasks = []
    try:
        dev = DevClock(open_dev_folder(settings), settings) if movable_clock else None
        if place is None:
            pipe, server = None, Server(settings, on_fatal=on_fatal, on_pause=paused.set, dev=dev)
        else:
            pipe = ControlPipe(place.control_pipe)
            # From the start: one that waits for its store would keep the port from its parent's successor.
            tasks.append(loop.create_task(_follow(pipe, wanted)))
            listener = socket.socket(fileno=place.listener)
            listener.setblocking(False)
            server = Server(settings, on_fatal=on_fatal, on_pause=paused.set, listener=listener, place=place)
        if not await server.start(wanted):
            return 0
    except (TocsinError, OSError) as error:
        print(f"tocsin: can't start: {error}", file=sys.stderr)
        return EXIT_START
    reduce_collections()
    if pipe is None:
        loop.add_signal_handler(signal.SIGHUP, server.reload)
        print(f"Tocsin serves on {server.url} (API docs: {server.url}/docs). Stop with Ctrl-C.", flush=dev is None)
        if dev is not None:
            shown = format_instant(dev.read().now_us)
            print(f"Its clock shows {shown}; `tocsin clock advance 1h` moves it. Data: {dev.folder.folder}", flush=True)
    else:
        tasks.append(loop.create_task(_report_when_ready(server, pipe)))
    while await _paused_first(paused, wanted):
        listener = server.hand_over()
        await server.stop()
        paused.clear()
        # The stopped server has closed its clock; the folder knows how far it was ahead.
        dev = None if dev is None else DevClock(dev.folder, settings)
        server = Server(settings, on_fatal=on_fatal, on_pause=paused.set, listener=listener, place=place, dev=dev)
        try:
            if not await server.start(wanted):
                return 0
        except (TocsinError, OSError) as error:
            print(f"tocsin: ends: {error}", file=sys.stderr)
            return EXIT_MOVED if isinstance(error, TransferRefused) else EXIT_START
        if pipe is None:
            loop.add_signal_handler(signal.SIGHUP, server.reload)
    for task in tasks:
        task.cancel()
    log.info("shutdown started", waiting_for="requests and callbacks in flight")
    await server.stop()
    return 0


async def _paused_first(paused: asyncio.Event, wanted: asyncio.Event) -> bool:
    """Waits until a transfer pauses the server (True), or it is wanted to stop."""
    waiting = [asyncio.ensure_future(event.wait()) for event in (paused, wanted)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await end_tasks(*waiting)
    return not wanted.is_set()


async def _report_when_ready(server: Server, pipe: ControlPipe) -> None:
    """Reports to the parent when this worker has started and when it is ready."""
    pipe.send(STARTED)
    assert server.service is not None
    while server.service.not_ready_because():  # noqa: ASYNC110 -- readiness has no event to await
        await asyncio.sleep(_READY_POLL_S)
    pipe.send(READY)


async def _follow(pipe: ControlPipe, wanted: asyncio.Event) -> None:
    """Stops this worker when its parent has exited."""
    await pipe.orphaned()
    wanted.set()
