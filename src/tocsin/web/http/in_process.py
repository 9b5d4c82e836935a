"""Requests to an ASGI application of this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from tocsin.web.http.errors import Headers, Response

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]


def scope_of(method: str, target: bytes, headers: Headers, client: tuple[str, int] | None) -> Message:
    """The ASGI scope of a request. `target` is percent-encoded, as a client sends it."""
    path, _, query = target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": client,
        "server": None,
    }


async def serve(app: Asgi, scope: Message, body: bytes) -> Response:
    """The application's response to a request whose body is complete. Raises what the application raises."""
    status, headers, parts = 500, Headers(), list[bytes]()
    whole = False

    async def receive() -> Message:
        nonlocal whole
        if whole:
            return {"type": "http.disconnect"}
        whole = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return Response(status, headers, b"".join(parts))
