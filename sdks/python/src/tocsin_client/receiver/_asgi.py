"""ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from tocsin_client.receiver._answers import Answer
from tocsin_client.receiver._receiver import BODY_BYTES_MAX, AsyncHandler, Handler, Receiver

_Message: TypeAlias = MutableMapping[str, Any]
#: As ASGI defines an application.
AsgiApp: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]],
    Awaitable[None],
]


class _Application:
    """The application. A handler that is not asynchronous runs in a thread.

    An object and not a function: Starlette's `Route` takes a function for a handler of its own requests, and anything else
    for an application, which so has exactly the path of the route. What is mounted instead has a slash behind its path, and
    a callback without it gets a redirect, which is not followed.
    """

    def __init__(self, receiver: Receiver, handler: Handler | AsyncHandler) -> None:
        self._receiver = receiver
        self._handler = handler

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"a receiver serves HTTP requests only, not {scope['type']}")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if len(body) <= BODY_BYTES_MAX:  # what is longer is refused, and need not be kept
                body += message.get("body", b"")
            more = message.get("more_body", False)
        await _respond(await self._receiver.handle_async(headers, bytes(body), self._handler), send)


def asgi_app(receiver: Receiver, handler: Handler | AsyncHandler) -> AsgiApp:
    """The application that calls the handler."""
    return _Application(receiver, handler)


async def _respond(answer: Answer, send: Callable[[_Message], Awaitable[None]]) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
    headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
