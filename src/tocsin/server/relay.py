"""Requests for the service agent, which runs in one of the nodes, while any of them may be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from tocsin.agent.adapters.agent_caller import AgentCaller
from tocsin.cluster.cluster import Cluster
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import Http, HttpAnswer
from tocsin.http.access import KEY_HASH, RELAYED
from tocsin.model.answer import NoResponse, Outcome, Response
from tocsin.model.errors import Overloaded, Unavailable
from tocsin.server.agent import ServiceAgent

Message = MutableMapping[str, Any]
Asgi = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

#: Headers of a connection, not of what it carries.
_OF_THE_CONNECTION = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"expect", b"upgrade"})

_TOLD = 200
#: What may be asked twice.
_SAFE = ("GET", "HEAD")
Headers = list[tuple[bytes, bytes]]

#: What nodes bring to one another besides clients' requests: the rings of timers that are the agent's. The API relays only
#: paths of its own, so that no client can come by this one.
_DUE, _DUE_METHOD = b"agent:due", "RING"
#: Telling of a due time that is longer under way is rung again.
_DUE_TIMEOUT_US = 20_000_000


class AgentRelay:
    """Brings a request to wherever the agent runs, and waits while that is nowhere.

    It is made before what it brings together. `expected` says whether the agent has to run somewhere.
    """

    def __init__(self, limits: ClusterLimits, *, expected: bool) -> None:
        self._limits = limits
        self._expected = expected
        self._waiting = 0
        #: This node's agent; None where it never runs.
        self.agent: ServiceAgent | None = None
        #: Without it, other nodes can't be asked.
        self.cluster: Cluster | None = None
        #: Takes rings of the agent's timers, where the agent runs here.
        self.caller: AgentCaller | None = None
        #: This node's application. Before it is there, nothing is served to others.
        self.app: Asgi | None = None

    async def ask(
        self, method: str, target: bytes, headers: Headers, body: bytes, client: str
    ) -> tuple[int, Headers, bytes] | None:
        """Status, headers, body. `client` is the address of whoever asks, whose Host header this node has checked.
        None when no node runs the agent, and none is known that should. Unavailable, also when the request may have been
        served."""
        if self._waiting >= self._limits.agent_waiting_max:
            raise Overloaded(f"{self._waiting} requests wait for the service agent already; try again later")
        self._waiting += 1
        try:
            return await self._ask(Http(0, method, target, headers, body, client=client))
        finally:
            self._waiting -= 1

    async def report_due(self, payload: bytes) -> Outcome:
        """Brings the ring of one of the agent's timers to the node that runs it. Raises Unavailable."""
        answer = None
        if self.cluster is not None:
            answer = await self.cluster.ask_agent(_DUE_METHOD, _DUE, [], payload)
        if answer is None:
            raise Unavailable("no node that runs the service agent can be reached now")
        return Response(answer.status) if answer.status == _TOLD else NoResponse("AGENT_REFUSED", answer.body.decode())

    async def _ask(self, request: Http) -> tuple[int, Headers, bytes] | None:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._limits.agent_wait_us / 1e6
        while True:
            answer = await self._try(request, loop.time() < deadline_s)
            if answer is not None:
                return answer.status, answer.headers, answer.body
            if not self._expected:
                return None
            if loop.time() >= deadline_s or (self.cluster is None and self._elsewhere()):
                raise Unavailable(self._why_not())
            await asyncio.sleep(self._limits.agent_retry_interval_us / 1e6)

    async def _try(self, request: Http, again: bool) -> HttpAnswer | None:
        """The answer, or None when the request was certainly not served, or does no harm if it is served twice."""
        here = await self.serve(request)
        if here.status or self.cluster is None:
            return here if here.status else None
        try:
            answer = await self.cluster.ask_agent(
                request.method, request.target, request.headers, request.body, request.client
            )
        except Unavailable:
            if again and request.method in _SAFE:
                return None
            raise
        self._expected = self._expected or answer is not None
        return answer

    def _elsewhere(self) -> bool:
        return self.agent is not None and bool(self.agent.runs_at)

    def _why_not(self) -> str:
        agent = self.agent
        if self.cluster is None and agent is not None:
            return f"the service agent runs on node {agent.runs_at}; this one stands by, and has no link to it: ask that one"
        known = f"; it was on node {agent.runs_at} last" if agent is not None and agent.runs_at else ""
        return f"no node runs the service agent now{known}; another takes over within seconds, try again"

    async def serve(self, request: Http) -> HttpAnswer:
        """The answer to a request that another node has brought; status 0 when the agent doesn't run here."""
        if self.agent is None or self.app is None:
            return HttpAnswer(request.id, 0, [], b"")
        with self.agent.serving() as here:
            if here and request.method == _DUE_METHOD:
                return await self._told(request)
            if here:
                return await serve_relayed(self.app, request)
        return HttpAnswer(request.id, 0, [], b"")

    async def _told(self, request: Http) -> HttpAnswer:
        assert self.caller is not None
        outcome = await self.caller.told(request.body, _DUE_TIMEOUT_US)
        if isinstance(outcome, Response):
            return HttpAnswer(request.id, outcome.status, [], b"")
        return HttpAnswer(request.id, 503, [], f"{outcome.code}: {outcome.detail}".encode())


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
        "client": (request.client, 0) if request.client else None,
        "server": None,
        KEY_HASH: request.key_hash,
        RELAYED: bool(request.client),
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
