"""The HTTP server of a node: the API and the pages on one port."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import uvicorn

from tocsin.model.errors import ConfigError
from tocsin.server.sockets import drain
from tocsin.web.api.app import Api
from tocsin.web.api.protocol import ApiProtocol

#: Seconds that an ordered shutdown leaves to requests in flight, in addition to the time that a write may wait.
_GRACE_S = 5


class QuietServer(uvicorn.Server):
    """uvicorn without its own signal handling: the process's handler also drains the engine. And without its check every
    tenth of a second whether it should stop: an idle node has few reasons to wake up."""

    def __init__(self, app: Any, **options: Any) -> None:
        """`options` are further ones of uvicorn.Config."""
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                **options,
            )
        )
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Stops listening once the start is complete, and ends `serve` when no request is in flight."""
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Serves until `stop`."""
        await self.on_tick(0)
        await self._stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Installs no signal handlers."""
        yield


class HttpServer:
    """Serves an application at a socket, from `start` to `close`."""

    def __init__(self, app: Api, listener: socket.socket, *, keep_alive_timeout_s: int, write_timeout_us: int) -> None:
        """`write_timeout_us`: a write may wait that long until its shard has a new owner."""
        self._listener = listener
        self._server = QuietServer(
            app,
            http=partial(ApiProtocol, app),
            backlog=2048,
            timeout_keep_alive=keep_alive_timeout_s,
            # As ApiProtocol announces it for the requests that it answers itself.
            headers=[("keep-alive", f"timeout={keep_alive_timeout_s}")],
            timeout_graceful_shutdown=_GRACE_S + write_timeout_us // 1_000_000,
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when it serves requests."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
                raise ConfigError("the HTTP server stopped during its start")
            await asyncio.sleep(0.005)

    async def ask_clients_to_leave(self, delay_s: float, *, own_port: bool) -> None:
        """Gives load balancers time to see that the node isn't ready, then clients that have just connected time for a
        request. If other processes listen on the port, not `own_port`, they take new connections."""
        if own_port:
            await asyncio.sleep(delay_s)
            await drain(self._listener)
        for server in self._server.servers:
            server.close()
        await asyncio.sleep(delay_s)

    async def close(self) -> None:
        """Stops listening and waits for the requests in flight."""
        self._server.stop()
        if self._serving is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving
