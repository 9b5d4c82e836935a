"""This node in the cluster: its listener, its links to other nodes, and the operations that use them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from tocsin.cluster import wire
from tocsin.cluster.channel import CallerEnd, Channel, Dial, PeerRefuses, ThisNode
from tocsin.cluster.handshake import ClusterSecrets
from tocsin.cluster.link import NotSent, PeerLink
from tocsin.cluster.router import Router
from tocsin.cluster.session import PeerSession
from tocsin.cluster.stream import AcceptedConnection, TlsListener, dial
from tocsin.cluster.tls import PeerTls
from tocsin.model.access import ApiKey
from tocsin.model.errors import Unavailable
from tocsin.ports.destinations import DestinationQuestion, DestinationReport
from tocsin.ports.flows import FlowAnswer, FlowReport, HomePlace
from tocsin.ports.forward import FlowCounts, Located, NodeReport, Whereabouts
from tocsin.ports.observer import PeerRefused
from tocsin.web.http.access import without_key

R = TypeVar("R")


class Cluster:
    """Implements the ports Forwarder (as `router`) and Peers. `own` is this node's incarnation.

    All methods may be called before `listen`, or without it; other nodes cannot reach this node then.
    """

    def __init__(
        self,
        own: bytes,
        here: ThisNode,
        *,
        secrets: ClusterSecrets,
        dial_with: Dial | None = None,
        tls: PeerTls | None = None,
    ) -> None:
        self._own = own
        self.here = here
        self._placement = here.placement
        self._limits = here.limits
        self._secrets = secrets
        self._own_tls = tls
        self._dial: Dial = dial_with or self._dial_node
        self._links: dict[bytes, PeerLink] = {}
        self._sessions: dict[bytes, PeerSession] = {}
        self._unauthenticated: dict[AcceptedConnection, None] = {}
        self._server: asyncio.Server | TlsListener | None = None
        #: The node that was last found to run the service agent; None when that proved wrong.
        self._agent_at: bytes | None = None
        self._search: asyncio.Future[bytes | None] | None = None
        #: Whether some other node may run the service agent, by the last search: one was seen that is configured to, or one
        #: did not answer.
        self.agent_possible = True
        # The names of those that were configured to when they last answered, and may be starting again.
        self._agents_configured: set[str] = set()
        self._announcement: asyncio.Handle | None = None
        self._closed = False
        self.router = Router(here.placement, here.local, self.link, here.clock, here.limits)
        here.placement.watch(self._forget_gone)

    # ------------------------------------------------------------------ life

    async def listen(self, listener: socket.socket) -> None:
        """Accepts connections of other nodes on a bound socket."""
        if self._own_tls is None:
            self._server = await asyncio.get_running_loop().create_server(self._called, sock=listener, backlog=128)
        else:
            self._server = TlsListener(listener, self._own_tls, self._called, self._limits, self._refused)

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
        self._closed = True
        if self._announcement is not None:
            self._announcement.cancel()
        self.router.close()
        for link in self._links.values():
            link.close()
        for session in list(self._sessions.values()):
            session.void()
        self._sessions.clear()
        for task in self.here.tasks:
            task.cancel()
        if self._search is not None:
            self._search.cancel()

    # ------------------------------------------------------------------ the serving side

    def _called(self) -> AcceptedConnection:
        return AcceptedConnection(
            self._limits, self._secrets, self._own, self.arrived, self._refused, self._unauthenticated
        )

    def _refused(self, address: str, reason: str, kind: str = "secret") -> None:
        self.here.observe(PeerRefused(address, reason, kind))

    def arrived(self, incarnation: bytes, channel: Channel) -> PeerSession:
        """Another node has connected. Its former connection is void from now on, including everything unread on it."""
        former = self._sessions.pop(incarnation, None)
        if former is not None:
            former.void()
        session = PeerSession(channel, self.here, partial(self._ended, incarnation))
        if len(self._sessions) >= self._limits.connections_max:
            self._refused("", f"{len(self._sessions)} nodes are already connected", "connections")
            session.void()
            return session
        self._sessions[incarnation] = session
        asyncio.get_running_loop().call_soon(session.begin)
        return session

    def _ended(self, incarnation: bytes, session: PeerSession) -> None:
        if self._sessions.get(incarnation) is session:
            del self._sessions[incarnation]

    # ------------------------------------------------------------------ the requesting side

    async def _dial_node(self, incarnation: bytes, address: str, end: CallerEnd) -> None:
        secret = self._secrets.known_to(self._placement.secret_marks(incarnation))
        if secret is None:
            raise PeerRefuses("cluster.secret differs between that node and this one")
        await dial(self._limits, secret, self._own, incarnation, address, end, self._own_tls)

    def link(self, incarnation: bytes, address: str) -> PeerLink:
        """The link to a node; created if there is none."""
        link = self._links.get(incarnation)
        if link is None:
            link = self._links[incarnation] = PeerLink(incarnation, address, self.here, self._dial)
        return link

    def announce(self) -> None:
        """Makes the other nodes read the ownership of shards again, soon."""
        if self._announcement is None and not self._closed:
            self._announcement = asyncio.get_running_loop().call_soon(self._announce_now)

    def _announce_now(self) -> None:
        self._announcement = None
        others = self._placement.others()
        for incarnation, address in others.items():
            self.link(incarnation, address).notify(wire.OwnershipChanged())

    def _forget_gone(self) -> None:
        """Closes links to nodes that no longer exist. Each start of a node has a new incarnation and so a new link."""
        if self._links:
            others = self._placement.others()
            for incarnation in [known for known, link in self._links.items() if known not in others and link.idle]:
                self._links.pop(incarnation).close()

    async def _each(
        self, nodes: Mapping[bytes, str], kind: type[R], question: Callable[[int], wire.Question]
    ) -> AsyncGenerator[tuple[bytes, R], None]:
        """Asks the nodes (addresses by incarnation). The answers, as they come, without those that do not come in time."""
        loop = asyncio.get_running_loop()
        asked = {
            asyncio.ensure_future(self.link(incarnation, address).ask(kind, question)): incarnation
            for incarnation, address in nodes.items()
            if address
        }
        waiting, deadline = set(asked), loop.time() + self._limits.report_timeout_us / 1e6
        try:
            while waiting and (left_s := deadline - loop.time()) > 0:
                done, waiting = await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                for answer in done:
                    if answer.exception() is None:
                        yield asked[answer], answer.result()
        finally:
            # Also if the caller was cancelled, or needs no further answer.
            for answer in asked:
                answer.cancel()

    async def reports(self) -> Mapping[bytes, NodeReport]:
        """The reports of the other nodes, by incarnation, without those that do not answer in time."""
        answers = self._each(self._placement.others(), wire.PeerReport, wire.ReportRequest)
        return {incarnation: answer.report async for incarnation, answer in answers}

    async def destinations(self, question: DestinationQuestion) -> Mapping[bytes, list[DestinationReport]]:
        """What the other nodes know of destinations, by incarnation, without nodes that do not answer in time."""
        others, kind = self._placement.others(), wire.DestinationsReported
        answers = self._each(others, kind, lambda number: wire.AskDestinations(number, question))
        return {incarnation: answer.reports async for incarnation, answer in answers}

    async def flow_counts(self, namespace: str) -> Mapping[bytes, Mapping[str, FlowCounts]]:
        """What the other nodes have of the namespace's flows, by incarnation and match, without nodes that do not answer in
        time."""
        others, kind = self._placement.others(), wire.FlowsCounted
        answers = self._each(others, kind, lambda number: wire.CountFlows(number, namespace))
        return {incarnation: answer.counts async for incarnation, answer in answers}

    async def locate(self, incarnation: bytes, timers: Located, timeout_us: int) -> list[Whereabouts | None]:
        """What a node knows of each of the timers in its memory; None if it does not own the shard. Raises Unavailable."""
        kind = wire.TimersLocated
        answer = await self._one(incarnation, kind, lambda number: wire.LocateTimers(number, timers), timeout_us)
        return answer.whereabouts

    async def report_flows(self, incarnation: bytes, reports: Sequence[FlowReport]) -> list[FlowAnswer]:
        """Reports to homes on that node, and returns their answers. Raises Unavailable."""
        kind = wire.FlowAnswers
        return (await self._one(incarnation, kind, lambda number: wire.ReportFlows(number, list(reports)))).answers

    async def ask_flows(self, incarnation: bytes, homes: Sequence[HomePlace]) -> list[FlowReport]:
        """The node's reports to these homes, which are this node's. Raises Unavailable."""
        kind, own = wire.FlowReports, self._placement.incarnation
        return (await self._one(incarnation, kind, lambda number: wire.AskFlows(number, own, list(homes)))).reports

    def flows_are_free(self, incarnation: bytes, shard_ids: Sequence[int]) -> None:
        """Notifies the node, if it can be reached, that homes here may grant more."""
        address = self._placement.address(incarnation)
        if address:
            self.link(incarnation, address).notify(wire.FlowsFreed(list(shard_ids)))

    async def _one(
        self,
        incarnation: bytes,
        kind: type[R],
        question: Callable[[int], wire.Question],
        timeout_us: int | None = None,
    ) -> R:
        """A node's answer. Raises Unavailable, also if it does not come in time, by default that of reports."""
        address = self._placement.address(incarnation)
        if not address:
            raise Unavailable("the node announces no address for other nodes")
        try:
            async with asyncio.timeout((timeout_us or self._limits.report_timeout_us) / 1e6):
                return await self.link(incarnation, address).ask(kind, question)
        except TimeoutError:
            raise Unavailable(f"node {address} did not answer in time") from None

    async def refresh_namespaces(self, nodes: Mapping[bytes, str]) -> set[bytes]:
        """Makes the nodes (addresses by incarnation) read the namespaces. Returns the incarnations that confirmed it in
        time."""
        answers = self._each(nodes, wire.NamespacesRefreshed, wire.RefreshNamespaces)
        return {incarnation async for incarnation, _ in answers}

    async def ask_agent(
        self,
        method: str,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        body: bytes,
        client: str = "",
        identity: ApiKey | None = None,
    ) -> wire.RelayedResponse | None:
        """The response of the node that runs the service agent; `identity` is whose token this node has checked. None if no
        node runs it: the request was certainly not served. Raises Unavailable if it may have been served."""
        node = self._agent_at or await self._find_agent()
        address = self._placement.address(node or b"")
        if node is None or not address:
            self._agent_at = None
            return None
        try:
            # Traffic between nodes may not be encrypted.
            headers, key_hash = without_key(headers)
            question = self.link(node, address).ask(
                wire.RelayedResponse,
                lambda number: wire.RelayedRequest(number, method, target, headers, body, key_hash, client, identity),
            )
            answer = await self._request(node, question)
        except NotSent:
            # The node is gone; the request may be sent to the node that takes over.
            return None
        if answer.status:
            return answer
        self._forget_agent(node)
        return None

    async def _find_agent(self) -> bytes | None:
        """The first node that reports that it runs the agent. Concurrent callers share one search."""
        if self._search is None or self._search.done():
            self._search = asyncio.ensure_future(self._search_agent())
        return await asyncio.shield(self._search)

    async def _search_agent(self) -> bytes | None:
        silent = self._placement.all_others()
        async with contextlib.aclosing(
            self._each(self._placement.others(), wire.PeerReport, wire.ReportRequest)
        ) as answers:
            async for incarnation, answer in answers:
                report, name = answer.report, self._placement.name(incarnation)
                if report.agent_configured and name:
                    self._agents_configured.add(name)
                else:
                    self._agents_configured.discard(name)
                if report.agent:
                    self._agent_at, self.agent_possible = incarnation, True
                    return incarnation
                if silent is not None:
                    silent.discard(incarnation)
        # One that was configured to may be starting again: whoever asks is asked to wait, and not turned away for good.
        self.agent_possible = bool(self._agents_configured) or silent is None or bool(silent)
        return None

    async def _request(self, node: bytes, request: Coroutine[Any, Any, wire.RelayedResponse]) -> wire.RelayedResponse:
        try:
            async with asyncio.timeout(self._limits.agent_timeout_us / 1e6):
                return await request
        except TimeoutError:
            self._forget_agent(node)
            raise Unavailable("the node that runs the service agent did not answer in time") from None
        except Unavailable:
            self._forget_agent(node)
            raise

    def _forget_agent(self, node: bytes) -> None:
        """The agent does not run there any more; another search may have found it elsewhere since."""
        if self._agent_at == node:
            self._agent_at = None
