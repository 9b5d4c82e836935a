"""The application that serves the paths of no operation: its plain-text error responses and exceptions become problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tocsin.web.http.errors import mounted_app_error
from tocsin.web.http.reading import Receive

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


async def serve_mounted(app: Asgi, scope: Scope, receive: Receive, send: Send, correlation_id: str) -> Exception | None:
    """Serves one request; returns the error to respond with instead, if there is one. Responses that pass get the correlation
    id, unless they were relayed from another node, which has added it."""
    replaced: Exception | None = None
    started = False

    async def watch(message: MutableMapping[str, Any]) -> None:
        nonlocal replaced, started
        if message["type"] == "http.response.start":
            replaced = _failure(message, scope)
            if replaced is None:
                started = True
                headers = list(message.get("headers", ()))
                if all(name != b"x-correlation-id" for name, _ in headers):
                    headers.append((b"x-correlation-id", correlation_id.encode()))
                message = {**message, "headers": headers}
        if replaced is None:
            await send(message)

    scope.setdefault("state", {})["correlation_id"] = correlation_id
    try:
        await app(scope, receive, watch)
    except Exception as error:
        if started:
            raise
        return error
    return replaced


def _failure(message: MutableMapping[str, Any], scope: Scope) -> Exception | None:
    headers = dict(message.get("headers", ()))
    if message["status"] < 400 or not headers.get(b"content-type", b"").startswith(b"text/plain"):
        return None
    allow = headers.get(b"allow")
    return mounted_app_error(
        message["status"], scope["method"], scope["path"], None if allow is None else allow.decode("latin-1")
    )
