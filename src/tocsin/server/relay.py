"""Requests for the service agent between nodes: it runs in one of them, and any of them may be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from tocsin.cluster.wire import Http, HttpAnswer

Message = MutableMapping[str, Any]
Asgi = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

#: Headers of a connection, not of what it carries.
_OF_THE_CONNECTION = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"expect", b"upgrade"})


async def serve_relayed(app: Asgi, request: Http) -> HttpAnswer:
    """The application's answer to a request that another node has brought."""
    path, _, query = request.target.partition(b"?")
    scope: Message = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name, value) for name, value in request.headers if name not in _OF_THE_CONNECTION],
        "client": None,
        "server": None,
    }
    answer = HttpAnswer(request.id, 500, [], b"")
    whole = False

    async def receive() -> Message:
        nonlocal whole
        if whole:
            return {"type": "http.disconnect"}
        whole = True
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer
