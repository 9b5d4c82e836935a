"""What a node does while its store can't be reached at its start, or is about to be switched over by a transfer: it tries
again, and answers health checks until then."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from tocsin.model.errors import OutcomeUnknown, StoreUnreachable
from tocsin.model.ids import Uuid7Source
from tocsin.model.retry import backoff_us
from tocsin.server.front import QuietServer
from tocsin.server.transfer_mark import TransferPending
from tocsin.tasks import end_tasks
from tocsin.web.http.errors import NotReady, problem

#: Pauses between two tries: the first, which doubles, and the longest. A node is back that soon after its store.
_PAUSE_FIRST_US, _PAUSE_MAX_US = 500_000, 10_000_000
#: The same while a transfer switches over, which takes seconds.
_PAUSE_TRANSFER_US = 250_000
#: What another try of a start may change. Opening a store can be repeated, so it does not matter what an unknown outcome was.
_AWAITED = (StoreUnreachable, OutcomeUnknown, TransferPending)
#: Connections at once: health checks are few.
_CONNECTIONS_MAX = 100
_WHY = "the node waits for its store, which can't be used at the moment; the server's log has the reason"

_log = structlog.get_logger("tocsin.server")


async def start_when_reachable(
    start: Callable[[], Awaitable[None]], listener: socket.socket, stopping: asyncio.Event
) -> bool:
    """Calls `start` until it does not fail because of a store that can't be reached or is being transferred; raises its other
    errors. Returns False, at once, if `stopping` is set before a start has succeeded.

    From the first failure until the end, health checks are answered on the socket: the process is alive and not ready.
    """
    stop = asyncio.ensure_future(stopping.wait())
    tries = 0
    async with contextlib.AsyncExitStack() as ends:
        ends.push_async_callback(end_tasks, stop)
        while True:
            trying = asyncio.ensure_future(start())
            # Whatever a try waits for, such as a port that never responds, a stop does not.
            await asyncio.wait({trying, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not trying.done():
                await end_tasks(trying)
                return False
            try:
                trying.result()
            except _AWAITED as error:
                reason, pending = str(error), isinstance(error, TransferPending)
            else:
                return True
            if not tries:
                ends.push_async_callback(await _answer_health_checks(listener))
            tries += 1
            pause_us = _PAUSE_TRANSFER_US if pending else backoff_us(tries, _PAUSE_FIRST_US, _PAUSE_MAX_US)
            if not pending:
                _log.warning("store not reachable, waiting", error=reason, tries=tries, pause_s=pause_us / 1e6)
            elif tries == 1:
                _log.warning("store being transferred, waiting", reason=reason)
            await asyncio.wait({stop}, timeout=pause_us / 1e6)
            if stopping.is_set():
                return False


async def _answer_health_checks(listener: socket.socket) -> Callable[[], Awaitable[None]]:
    """Answers requests at a copy of the socket. Returns what ends it; connections that come then wait for the node."""
    server = QuietServer(_application, limit_concurrency=_CONNECTIONS_MAX)
    serving = asyncio.ensure_future(server.serve(sockets=[listener.dup()]))

    async def close() -> None:
        server.stop()
        await serving

    return close


_new_id = Uuid7Source(lambda: time.time_ns() // 1_000)


async def _application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    path: str = scope["path"]
    if path == "/healthz":
        status, body = 200, b'{"status":"ok"}'
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    else:
        status, headers, body = problem(
            NotReady([_WHY]), instance=path, correlation_id=_new_id(), now_us=time.time_ns() // 1_000
        )
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
