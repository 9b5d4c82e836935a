"""Forwards requests for the service agent to the node that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tocsin.cluster.cluster import Cluster
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import RelayedRequest, RelayedResponse
from tocsin.model.access import ApiKey
from tocsin.model.answer import NoResponse, Outcome, Response
from tocsin.model.errors import Overloaded, Unavailable
from tocsin.web.http.access import IDENTITY, KEY_HASH, RELAYED, without_key
from tocsin.web.http.errors import Headers
from tocsin.web.http.in_process import Asgi, scope_of, serve

if TYPE_CHECKING:
    from tocsin.server.agent import ServiceAgent

#: Headers of a connection, which are not forwarded.
_OF_THE_CONNECTION = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"expect", b"upgrade"})

_PUBLISHED = 200
#: Methods that may be repeated.
_SAFE = ("GET", "HEAD")

#: Besides clients' requests, nodes forward invocations of the agent's timers, with this target and method (part of the
#: protocol between nodes). The API forwards only its own paths, so no client can use this one.
_DUE, _DUE_METHOD = b"agent:due", "DUE"
#: How long publishing a forwarded due time may take. After that the engine retries the invocation.
_DUE_TIMEOUT_US = 20_000_000


class AgentRelay:
    """Forwards a request to the node that runs the agent, and waits while no node does.

    It is created before the objects it connects. `expected`: this node is configured to run the agent.
    """

    def __init__(self, limits: ClusterLimits, *, expected: bool) -> None:
        self._limits = limits
        self._expected = expected
        self._waiting = 0
        #: This node's agent; None where it never runs.
        self.agent: ServiceAgent | None = None
        #: Connects to the other nodes; None: requests cannot be forwarded.
        self.cluster: Cluster | None = None
        #: Whom the identity provider knows by a token with this SHA-256, if this node has checked it.
        self.identified: Callable[[str], ApiKey | None] = lambda hash: None
        #: This node's application. Until it is set, nothing is served to other nodes.
        self.app: Asgi | None = None

    async def ask(
        self, method: str, target: bytes, headers: Headers, body: bytes, client: str
    ) -> tuple[int, Headers, bytes] | None:
        """Status, headers and body of the response. `client` is the client's address; this node has checked its Host
        header. None if no node is configured to run the agent. Raises Unavailable, also if the request may have
        been served."""
        if self._waiting >= self._limits.agent_waiting_max:
            raise Overloaded(f"{self._waiting} requests already wait for the service agent; try again later")
        self._waiting += 1
        try:
            return await self._ask(RelayedRequest(0, method, target, headers, body, client=client))
        finally:
            self._waiting -= 1

    async def report_due(self, payload: bytes) -> Outcome:
        """Forwards the invocation of one of the agent's timers to the node that runs the agent. Raises Unavailable."""
        answer = None
        if self.cluster is not None:
            answer = await self.cluster.ask_agent(_DUE_METHOD, _DUE, [], payload)
        if answer is None:
            raise Unavailable("no node that runs the service agent is reachable")
        return (
            Response(answer.status)
            if answer.status == _PUBLISHED
            else NoResponse("AGENT_REFUSED", answer.body.decode())
        )

    async def _ask(self, request: RelayedRequest) -> tuple[int, Headers, bytes] | None:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._limits.agent_wait_us / 1e6
        while True:
            answer = await self._try(request, loop.time() < deadline_s)
            if answer is not None:
                return answer.status, answer.headers, answer.body
            if not self._expected and (self.cluster is None or not self.cluster.agent_possible):
                return None
            if loop.time() >= deadline_s or (self.cluster is None and self._runs_elsewhere()):
                raise Unavailable(self._why_not())
            await asyncio.sleep(self._limits.agent_retry_interval_us / 1e6)

    async def _try(self, request: RelayedRequest, again: bool) -> RelayedResponse | None:
        """The response, or None if the request was certainly not served or may be served twice."""
        here = await self.serve(request)
        if here.status or self.cluster is None:
            return here if here.status else None
        try:
            return await self.cluster.ask_agent(
                request.method,
                request.target,
                request.headers,
                request.body,
                request.client,
                self.identified(without_key(request.headers)[1]),
            )
        except Unavailable:
            if again and request.method in _SAFE:
                return None
            raise

    def _runs_elsewhere(self) -> bool:
        return self.agent is not None and bool(self.agent.runs_at)

    def _why_not(self) -> str:
        agent = self.agent
        if self.cluster is None and agent is not None:
            return f"the service agent runs on node {agent.runs_at}, to which this node has no link; send the request there"
        known = f"; it last ran on node {agent.runs_at}" if agent is not None and agent.runs_at else ""
        return f"no node runs the service agent now{known}; a node takes over within seconds, try again"

    async def serve(self, request: RelayedRequest) -> RelayedResponse:
        """The response to a request that another node forwarded; status 0 if the agent does not run here."""
        if self.agent is None or self.app is None:
            return RelayedResponse(request.id, 0, [], b"")
        with self.agent.serving() as here:
            if here and request.method == _DUE_METHOD:
                return await _receive_due(self.agent, request)
            if here:
                return await serve_relayed(self.app, request)
        return RelayedResponse(request.id, 0, [], b"")


async def _receive_due(agent: ServiceAgent, request: RelayedRequest) -> RelayedResponse:
    outcome = await agent.due_caller.receive_due(request.body, _DUE_TIMEOUT_US)
    if isinstance(outcome, Response):
        return RelayedResponse(request.id, outcome.status, [], b"")
    return RelayedResponse(request.id, 503, [], f"{outcome.code}: {outcome.detail}".encode())


async def serve_relayed(app: Asgi, request: RelayedRequest) -> RelayedResponse:
    """The application's response to a request that another node forwarded."""
    headers = [(name, value) for name, value in request.headers if name not in _OF_THE_CONNECTION]
    scope = scope_of(request.method, request.target, headers, (request.client, 0) if request.client else None)
    scope.update({KEY_HASH: request.key_hash, RELAYED: bool(request.client), IDENTITY: request.identity})
    answer = await serve(app, scope, request.body)
    return RelayedResponse(request.id, answer.status, answer.headers, answer.body)
