"""This node in the cluster: its listener, its links to other nodes, and the operations that use them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from tocsin.cluster.channel import Channel, Dial
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.link import NotSent, PeerLink
from tocsin.cluster.router import Router
from tocsin.cluster.session import PeerSession
from tocsin.cluster.stream import AcceptedConnection, dial
from tocsin.cluster.wire import RelayedRequest, RelayedResponse
from tocsin.model.errors import Unavailable
from tocsin.ports.clock import Clock
from tocsin.ports.forward import LocalWrites, NodeReport, Placement, StatisticsReport
from tocsin.ports.observer import Event, PeerRefused
from tocsin.web.http.access import without_key

Serve = Callable[[RelayedRequest], Awaitable[RelayedResponse]]


async def _serves_nothing(request: RelayedRequest) -> RelayedResponse:
    return RelayedResponse(request.id, 0, [], b"")


def _counts_nothing(after_us: int) -> None:
    return None


class Cluster:
    """Implements the ports Forwarder (as `router`) and Peers. `own` is this node's incarnation; `report` returns its
    report.

    All methods may be called before `listen`, or without it; other nodes cannot reach this node then.
    """

    def __init__(
        self,
        own: bytes,
        placement: Placement,
        local: LocalWrites,
        report: Callable[[], NodeReport],
        *,
        secret: str,
        clock: Clock,
        limits: ClusterLimits,
        observe: Callable[[Event], None],
        dial_with: Dial | None = None,
    ) -> None:
        self._own = own
        self._placement = placement
        self._local = local
        self._report = report
        self._secret = secret
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._dial: Dial = dial_with or partial(dial, limits, secret, own)
        self._links: dict[bytes, PeerLink] = {}
        self._sessions: dict[bytes, PeerSession] = {}
        self._unauthenticated: dict[AcceptedConnection, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        #: The node that was last found to run the service agent; None when that proved wrong.
        self._agent_at: bytes | None = None
        self._agent_takes_hashes = False
        self._search: asyncio.Future[bytes | None] | None = None
        self._announcing = False
        #: Serves HTTP requests that other nodes forward.
        self.serve: Serve = _serves_nothing
        #: This node's statistics in points that began after an instant.
        self.statistics_here: Callable[[int], StatisticsReport | None] = _counts_nothing
        self.router = Router(placement, local, self.link, clock, limits)
        placement.watch(self._forget_gone)

    # ------------------------------------------------------------------ life

    async def listen(self, listener: socket.socket) -> None:
        """Accepts connections of other nodes on a bound socket."""
        self._server = await asyncio.get_running_loop().create_server(self._called, sock=listener, backlog=128)

    async def leave(self, timeout_us: int) -> None:
        """Answers the pending requests of other nodes, for at most this long, and closes their connections in order.
        Call it when this node owns no shards any more."""
        if self._server is not None:
            self._server.close()
        sessions = list(self._sessions.values())
        try:
            async with asyncio.timeout(timeout_us / 1e6):
                for session in sessions:
                    await session.quiet.wait()
        except TimeoutError:
            pass
        for session in sessions:
            session.leave()

    def close(self) -> None:
        """Closes everything at once. Idempotent."""
        if self._server is not None:
            self._server.close()
        self._announcing = True
        self.router.close()
        for link in self._links.values():
            link.close()
        for session in list(self._sessions.values()):
            session.void()
        self._sessions.clear()
        for task in self._tasks:
            task.cancel()
        if self._search is not None:
            self._search.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ------------------------------------------------------------------ the serving side

    def _called(self) -> AcceptedConnection:
        return AcceptedConnection(
            self._limits, self._secret, self._own, self.arrived, self._refused, self._unauthenticated
        )

    def _refused(self, address: str, reason: str) -> None:
        self._observe(PeerRefused(address, reason))

    def arrived(self, incarnation: bytes, channel: Channel) -> PeerSession:
        """Another node has connected. Its former connection is void from now on, including everything unread on it."""
        former = self._sessions.pop(incarnation, None)
        if former is not None:
            former.void()
        session = PeerSession(
            channel,
            local=self._local,
            placement=self._placement,
            report=self._report,
            statistics=self._statistics,
            serve=self._serve,
            clock=self._clock,
            limits=self._limits,
            spawn=self._spawn,
            ended=partial(self._ended, incarnation),
        )
        if len(self._sessions) >= self._limits.connections_max:
            self._refused("", f"{len(self._sessions)} nodes are already connected")
            session.void()
            return session
        self._sessions[incarnation] = session
        asyncio.get_running_loop().call_soon(session.begin)
        return session

    def _ended(self, incarnation: bytes, session: PeerSession) -> None:
        if self._sessions.get(incarnation) is session:
            del self._sessions[incarnation]

    def _statistics(self, after_us: int) -> StatisticsReport | None:
        return self.statistics_here(after_us)

    async def _serve(self, request: RelayedRequest) -> RelayedResponse:
        return await self.serve(request)

    # ------------------------------------------------------------------ the requesting side

    def link(self, incarnation: bytes, address: str) -> PeerLink:
        """The link to a node; created if there is none."""
        link = self._links.get(incarnation)
        if link is None:
            link = self._links[incarnation] = PeerLink(
                incarnation,
                address,
                dial=self._dial,
                placement=self._placement,
                clock=self._clock,
                limits=self._limits,
                observe=self._observe,
                spawn=self._spawn,
            )
        return link

    def announce(self) -> None:
        """Makes the other nodes read the ownership of shards again, soon."""
        if not self._announcing:
            self._announcing = True
            asyncio.get_running_loop().call_soon(self._announce_now)

    def _announce_now(self) -> None:
        self._announcing = False
        others = self._placement.others()
        for incarnation, address in others.items():
            self.link(incarnation, address).announce_ownership()

    def _forget_gone(self) -> None:
        """Closes links to nodes that no longer exist. Each start of a node has a new incarnation and so a new link."""
        if self._links:
            others = self._placement.others()
            for incarnation in [known for known, link in self._links.items() if known not in others and link.idle]:
                self._links.pop(incarnation).close()

    async def reports(self) -> Mapping[bytes, NodeReport]:
        """The reports of the other nodes, by incarnation, without those that do not answer in time."""
        asked = {
            incarnation: asyncio.ensure_future(self.link(incarnation, address).ask())
            for incarnation, address in self._placement.others().items()
        }
        if not asked:
            return {}
        try:
            done, _ = await asyncio.wait(asked.values(), timeout=self._limits.report_timeout_us / 1e6)
        finally:
            # Also if the caller was cancelled.
            for question in asked.values():
                question.cancel()
        return {
            incarnation: question.result()
            for incarnation, question in asked.items()
            if question in done and question.exception() is None
        }

    async def statistics(self, incarnation: bytes, after_us: int) -> tuple[NodeReport, StatisticsReport | None]:
        """A node's report, and its statistics in points that began after an instant; None from a release without them.
        Raises Unavailable."""
        address = self._placement.address(incarnation)
        if not address:
            raise Unavailable("the node announces no address for other nodes")
        try:
            async with asyncio.timeout(self._limits.report_timeout_us / 1e6):
                return await self.link(incarnation, address).ask_statistics(after_us)
        except TimeoutError:
            raise Unavailable(f"node {address} did not answer in time") from None

    async def refresh_namespaces(self, nodes: Mapping[bytes, str]) -> set[bytes]:
        """Makes the nodes (addresses by incarnation) read the namespaces. Returns the incarnations that confirmed it in
        time."""
        asked = {
            asyncio.ensure_future(self.link(incarnation, address).refresh()): incarnation
            for incarnation, address in nodes.items()
            if address
        }
        if not asked:
            return set()
        try:
            done, _ = await asyncio.wait(asked, timeout=self._limits.report_timeout_us / 1e6)
        finally:
            for question in asked:
                question.cancel()
        return {asked[question] for question in done if question.exception() is None}

    async def ask_agent(
        self, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes, client: str = ""
    ) -> RelayedResponse | None:
        """The response of the node that runs the service agent. None if no node runs it: the request was certainly not
        served. Raises Unavailable if it may have been served."""
        node = self._agent_at or await self._find_agent()
        address = self._placement.address(node or b"")
        if node is None or not address:
            self._agent_at = None
            return None
        try:
            key_hash = ""
            if self._agent_at == node and self._agent_takes_hashes:
                # Traffic between nodes is not encrypted.
                headers, key_hash = without_key(headers)
            link = self.link(node, address)
            answer = await self._request(link.request(method, target, headers, body, key_hash, client))
        except NotSent:
            # The node is gone; the request may be sent to the node that takes over.
            return None
        if answer.status:
            return answer
        if self._agent_at == node:
            self._agent_at = None
        return None

    async def _find_agent(self) -> bytes | None:
        """The first node that reports that it runs the agent. Concurrent callers share one search."""
        if self._search is None or self._search.done():
            self._search = asyncio.ensure_future(self._search_agent())
        return await asyncio.shield(self._search)

    async def _search_agent(self) -> bytes | None:
        asked = {
            asyncio.ensure_future(self.link(incarnation, address).ask()): incarnation
            for incarnation, address in self._placement.others().items()
        }
        waiting, deadline = set(asked), asyncio.get_running_loop().time() + self._limits.report_timeout_us / 1e6
        try:
            while waiting and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
                done, waiting = await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                for question in done:
                    if question.exception() is None and question.result().agent:
                        self._agent_at = asked[question]
                        self._agent_takes_hashes = question.result().takes_key_hashes
                        return self._agent_at
        finally:
            for question in waiting:
                question.cancel()
        return None

    async def _request(self, request: Coroutine[Any, Any, RelayedResponse]) -> RelayedResponse:
        try:
            async with asyncio.timeout(self._limits.agent_timeout_us / 1e6):
                return await request
        except TimeoutError:
            self._agent_at = None
            raise Unavailable("the node that runs the service agent did not answer in time") from None
        except Unavailable:
            self._agent_at = None
            raise
