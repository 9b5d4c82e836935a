"""What a connection may do before its request is one: uvicorn's protocol with limits on heads, and our error answers.

uvicorn keeps a request's head for as long as its sender goes on sending, however slowly, and answers what is not HTTP
with a plain text. Here a head has a size and a time, a connection that says nothing is closed, and every refusal is a
problem answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from tocsin.api.app import Api
from tocsin.contract.errors import HeadersTooLarge, HeadTimeout, MalformedRequest
from tocsin.model.errors import TocsinError


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `api` is the application that uvicorn serves, too: its limits hold, and it words the refusals."""

    def __init__(
        self, api: Api, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._guard = api
        self._head_open = False
        #: Bytes of the head that is open, not counting those that came with the end of the request before.
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._head_ends()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        was_open = self._head_open
        super().data_received(data)
        if not self._head_open or self.transport.is_closing():
            return
        limits = self._guard.limits
        if was_open:
            self._head_bytes += len(data)
            if self._head_bytes > limits.request_head_bytes_max:
                self._refuse(HeadersTooLarge(f"the request's head exceeds {limits.request_head_bytes_max} bytes"))
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(limits.request_head_timeout_s, self._head_late)

    def on_message_begin(self) -> None:
        """Called by the parser."""
        self._head_begins()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._head_ends()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what its parser refuses."""
        self._refuse(MalformedRequest("the request is not valid HTTP/1.1"))

    def _head_begins(self) -> None:
        self._head_open = True
        self._head_bytes = 0

    def _head_ends(self) -> None:
        self._head_open = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_late(self) -> None:
        self._head_timer = None
        if self._head_open and not self.transport.is_closing():
            seconds = self._guard.limits.request_head_timeout_s
            self._refuse(HeadTimeout(f"the request's head was not complete after {seconds:g} s"))

    def _refuse(self, error: TocsinError) -> None:
        """Answers and closes: where the next request would begin can't be known."""
        self._head_ends()
        status, headers, body = self._guard.refusal(error)
        content = [STATUS_LINE[status]]
        for name, value in headers:
            if name != b"connection":
                content += (name, b": ", value, b"\r\n")
        self.transport.write(b"".join((*content, b"connection: close\r\n\r\n", body)))
        self.transport.close()
