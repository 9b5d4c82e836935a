"""The receiver of callbacks: it answers them itself, or passes each to the driver."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from typing import Any

from .http import Request, Response


class Receiver:
    """Records callbacks of one scenario at a time, those to `path`; others are only answered. While `by_driver`, each waits
    until its answer is given."""

    def __init__(self) -> None:
        self.path = ""
        self.by_driver = False
        #: Set while a callback waits for the driver.
        self.waiting = asyncio.Event()
        #: Callbacks since the last `begin`.
        self.callbacks: list[dict[str, Any]] = []
        self._answers: deque[dict[str, Any]] = deque()
        self._queue: deque[tuple[Request, asyncio.Future[Response | None]]] = deque()

    def begin(self, path: str) -> None:
        """Forgets everything; callbacks that wait are cut."""
        self.path = path
        self.by_driver = False
        self.callbacks = []
        self._answers.clear()
        while self._queue:
            self._queue.popleft()[1].cancel()
        self.waiting.clear()

    def answer_with(self, answers: list[dict[str, Any]]) -> None:
        """The next callbacks get these answers (`status`, `headers`, `body`), later ones an empty 200."""
        self._answers.extend(answers)

    async def __call__(self, request: Request) -> Response | None:
        """Handles a callback."""
        if request.target != self.path:
            return Response(200)
        body = json.loads(request.body) if request.body else None
        headers = {name.lower(): value for name, value in request.headers}
        self.callbacks.append({"method": request.method, "headers": headers, "body": body})
        if self.by_driver:
            future: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()
            self._queue.append((request, future))
            self.waiting.set()
            try:
                return await future
            except asyncio.CancelledError:
                return None
        answer = self._answers.popleft() if self._answers else {}
        content = json.dumps(answer["body"]).encode() if "body" in answer else b""
        return Response(answer.get("status", 200), list(answer.get("headers", {}).items()), content)

    async def next(self) -> tuple[dict[str, Any], asyncio.Future[Response | None]]:
        """The next callback for the driver, and the future that takes its answer; None as answer cuts the connection."""
        await self.waiting.wait()
        request, future = self._queue.popleft()
        if not self._queue:
            self.waiting.clear()
        sent = {
            "method": request.method,
            "headers": [list(header) for header in request.headers],
            "body": base64.b64encode(request.body).decode(),
        }
        return sent, future
