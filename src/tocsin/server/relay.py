"""Requests for the service agent, which runs in one of the nodes, while any of them may be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from tocsin.cluster.cluster import Cluster
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import Http, HttpAnswer
from tocsin.model.errors import Overloaded, Unavailable
from tocsin.server.agent import ServiceAgent

Message = MutableMapping[str, Any]
Asgi = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

#: Headers of a connection, not of what it carries.
_OF_THE_CONNECTION = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"expect", b"upgrade"})

#: What may be asked twice.
_SAFE = ("GET", "HEAD")
Headers = list[tuple[bytes, bytes]]


class AgentRelay:
    """Brings a request to wherever the agent runs, and waits while that is nowhere.

    `agent` is this node's, None where it never runs; `expected` says whether it has to run somewhere all the same. Without
    `cluster` other nodes can't be asked.
    """

    def __init__(
        self, agent: ServiceAgent | None, cluster: Cluster | None, limits: ClusterLimits, *, expected: bool
    ) -> None:
        self._agent = agent
        self._cluster = cluster
        self._limits = limits
        self._waiting = 0
        self._expected = expected
        #: This node's application. Before it is there, nothing is relayed.
        self.app: Asgi | None = None

    async def ask(self, method: str, target: bytes, headers: Headers, body: bytes) -> tuple[int, Headers, bytes] | None:
        """Status, headers, body. None when no node runs the agent, and none is known that should. Unavailable, also when
        the request may have been served."""
        if self._waiting >= self._limits.agent_waiting_max:
            raise Overloaded(f"{self._waiting} requests wait for the service agent already (cluster.agent_waiting_max)")
        self._waiting += 1
        try:
            return await self._ask(Http(0, method, target, headers, body))
        finally:
            self._waiting -= 1

    async def _ask(self, request: Http) -> tuple[int, Headers, bytes] | None:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._limits.agent_wait_us / 1e6
        while True:
            answer = await self._try(request, loop.time() < deadline_s)
            if answer is not None:
                return answer.status, answer.headers, answer.body
            if not self._expected:
                return None
            if loop.time() >= deadline_s or (self._cluster is None and self._elsewhere()):
                raise Unavailable(self._why_not())
            await asyncio.sleep(self._limits.agent_retry_interval_us / 1e6)

    async def _try(self, request: Http, again: bool) -> HttpAnswer | None:
        """The answer, or None when the request was certainly not served, or does no harm if it is served twice."""
        here = await self.serve(request)
        if here.status or self._cluster is None:
            return here if here.status else None
        try:
            answer = await self._cluster.ask_agent(request.method, request.target, request.headers, request.body)
        except Unavailable:
            if again and request.method in _SAFE:
                return None
            raise
        self._expected = self._expected or answer is not None
        return answer

    def _elsewhere(self) -> bool:
        return self._agent is not None and bool(self._agent.runs_at)

    def _why_not(self) -> str:
        agent = self._agent
        if self._cluster is None and agent is not None:
            return (
                f"the service agent runs on node {agent.runs_at}, and this one can't ask it without cluster.secret; ask "
                "that one"
            )
        known = f"; it was on node {agent.runs_at} last" if agent is not None and agent.runs_at else ""
        return f"no node runs the service agent now{known}; another takes over within seconds, try again"

    async def serve(self, request: Http) -> HttpAnswer:
        """The answer to a request that another node has brought; status 0 when the agent doesn't run here."""
        if self._agent is None or self.app is None:
            return HttpAnswer(request.id, 0, [], b"")
        with self._agent.serving() as here:
            if here:
                return await serve_relayed(self.app, request)
        return HttpAnswer(request.id, 0, [], b"")


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
