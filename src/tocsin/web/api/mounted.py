"""The mounted application's errors: plain-text error responses and exceptions become problem responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tocsin.web.http.errors import mounted_app_error
from tocsin.web.http.reading import Receive

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
SendProblem = Callable[[BaseException, Scope, Send, str], Awaitable[None]]


class Mounted:
    """An application whose plain-text errors are replaced. Other responses pass, with the correlation id added."""

    def __init__(self, app: Asgi, send_problem: SendProblem) -> None:
        self._app = app
        self._send_problem = send_problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send, correlation_id: str) -> None:
        """Serves one request."""
        replaced: BaseException | None = None
        started = False

        async def watch(message: MutableMapping[str, Any]) -> None:
            nonlocal replaced, started
            if message["type"] == "http.response.start":
                replaced = _failure(message, scope)
                if replaced is None:
                    started = True
                    own = (b"x-correlation-id", correlation_id.encode())
                    message = {**message, "headers": [*message.get("headers", ()), own]}
            if replaced is None:
                await send(message)

        scope.setdefault("state", {})["correlation_id"] = correlation_id
        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            if started:
                raise
            replaced = error
        if replaced is not None:
            await self._send_problem(replaced, scope, send, correlation_id)


def _failure(message: MutableMapping[str, Any], scope: Scope) -> BaseException | None:
    headers = dict(message.get("headers", ()))
    if message["status"] < 400 or not headers.get(b"content-type", b"").startswith(b"text/plain"):
        return None
    allow = headers.get(b"allow")
    return mounted_app_error(
        message["status"], scope["method"], scope["path"], None if allow is None else allow.decode("latin-1")
    )
