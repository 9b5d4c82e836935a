"""A node among others: its connections, its leaving, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace
from tests.support.completions import Noted
from tests.support.peers import SECOND, TIMER, Map, Owned, Pair, Pipe

from tocsin.cluster.channel import PeerUnreachable, ThisNode
from tocsin.cluster.cluster import Cluster
from tocsin.cluster.handshake import ClusterSecrets
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import (
    Goodbye,
    LocateTimers,
    OwnershipChanged,
    PeerReport,
    PeerWrites,
    RelayedRequest,
    ReportRequest,
    TimersLocated,
    decode_reply,
    decode_request,
    encode,
    encode_write,
)
from tocsin.model.access import hash_key
from tocsin.ports.forward import NodeReport, RowPlace, Whereabouts, Write, WriteKind
from tocsin.ports.observer import Event, PeerRefused
from tocsin.testing.clock import FakeClock

OWN, A, B = b"n" * 16, b"a" * 16, b"b" * 16
REPORT = NodeReport("1", True, None, False, [])


class Placed(Map):
    """Ownership as this node knows it, and how often it was refreshed."""

    def __init__(self) -> None:
        super().__init__()
        self.refreshes = 0
        self.living: list[bytes] = []
        self.read = True

    def refresh(self) -> None:
        self.refreshes += 1

    def watch(self, refreshed: object) -> None:
        pass

    def others(self) -> dict[bytes, str]:
        return dict.fromkeys(self.living, "there")

    def all_others(self) -> set[bytes] | None:
        return set(self.living) if self.read else None

    def address(self, incarnation: bytes) -> str:
        return "there"

    def name(self, incarnation: bytes) -> str:
        return "a"


class Node:
    """A cluster whose other nodes are pipes."""

    def __init__(self, **limits: int) -> None:
        self.clock, self.placed, self.events = FakeClock(boottime_us=SECOND), Placed(), list[Event]()
        self.owned = Owned(self.clock)
        self.dialed: list[bytes] = []
        here = ThisNode(
            self.placed, self.owned, lambda: REPORT, self.clock, ClusterLimits(**limits), self.events.append
        )
        self.cluster = Cluster(OWN, here, secrets=ClusterSecrets(""), dial_with=self._dial)

    async def _dial(self, incarnation: bytes, address: str, end: object) -> None:
        self.dialed.append(incarnation)
        await asyncio.Event().wait()

    async def meets(self, incarnation: bytes) -> tuple[Pipe, object]:
        pipe = Pipe()
        session = self.cluster.arrived(incarnation, pipe)
        await asyncio.sleep(0)
        return pipe, session

    def ops(self, name: bytes) -> bytes:
        write = Write(WriteKind.CREATE, 1, name, "default", TIMER, None, 0)
        return encode(PeerWrites(1, 0, [encode_write(write, 1, 3, 5 * SECOND)]))


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    node = Node()
    yield node
    node.cluster.close()


async def test_a_new_connection_voids_only_the_former_one_of_the_same_node(node: Node) -> None:
    first, former = await node.meets(A)
    other, session_b = await node.meets(B)
    second, present = await node.meets(A)
    assert (first.open, second.open, other.open) == (False, True, True)
    former.received(node.ops(b"old"))
    present.received(node.ops(b"new"))
    session_b.received(node.ops(b"b"))
    assert [write.uuid for write, _ in node.owned.accepted] == [b"new", b"b"]
    # The end of the former connection does not affect the present one.
    former.lost("broken")
    third, _ = await node.meets(A)
    assert (second.open, third.open) == (False, True)


@pytest.mark.parametrize("closed", [False, True])
async def test_a_closed_node_announces_nothing(node: Node, closed: bool) -> None:
    node.placed.living = [A, B]
    node.cluster.announce()
    if closed:
        node.cluster.close()
        node.cluster.announce()
    for _ in range(3):
        await asyncio.sleep(0)
    assert node.dialed == ([] if closed else [A, B])


async def test_links_and_sessions_of_former_nodes_are_removed(node: Node) -> None:
    for number in range(300):
        _, session = await node.meets(number.to_bytes(16, "big"))
        session.lost("gone")
    assert node.cluster._sessions == {}
    assert node.events == []


async def test_connections_beyond_sessions_max_are_refused() -> None:
    node = Node(connections_max=2)
    pipes = [(await node.meets(bytes([number]) * 16))[0] for number in range(3)]
    assert [pipe.open for pipe in pipes] == [True, True, False]
    assert [type(event) for event in node.events] == [PeerRefused]
    # A node that is connected may reconnect.
    again, _ = await node.meets(bytes([1]) * 16)
    assert again.open
    node.cluster.close()


async def test_requests_are_answered_and_an_announcement_refreshes_the_placement(node: Node) -> None:
    pipe, session = await node.meets(A)
    session.received(encode(ReportRequest(7)))
    assert decode_reply(pipe.sent[-1]) == PeerReport(7, REPORT)
    session.received(encode(LocateTimers(8, [(1, b"u" * 16), (2, b"v" * 16)])))
    assert decode_reply(pipe.sent[-1]) == TimersLocated(8, [Whereabouts(RowPlace.WINDOW), None])
    session.received(encode(OwnershipChanged()))
    assert node.placed.refreshes == 1


async def test_a_leaving_node_answers_accepted_writes_and_reports_the_last_id(node: Node) -> None:
    pipe, session = await node.meets(A)
    session.received(node.ops(b"a"))
    leaving = asyncio.ensure_future(node.cluster.leave(60 * SECOND))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not leaving.done()
    node.owned.accepted[0][1].resolve(None)
    await leaving
    assert decode_reply(pipe.sent[-1]) == Goodbye(1)
    assert not pipe.open


async def test_a_leaving_node_does_not_wait_beyond_its_timeout(node: Node) -> None:
    pipe, session = await node.meets(A)
    session.received(node.ops(b"a"))
    await node.cluster.leave(1)
    assert decode_reply(pipe.sent[-1]) == Goodbye(1)


async def test_a_closed_cluster_sends_and_receives_nothing(node: Node) -> None:
    pipe, _ = await node.meets(A)
    reported: list[object] = []
    link = node.cluster.link(B, "b:1")
    link.send(Write(WriteKind.DELETE, 1, b"u" * 16, "default", None, None, 9 * SECOND), 3, Noted(reported.append))
    await asyncio.sleep(0)
    tasks = set(node.cluster.here.tasks)
    assert tasks
    node.cluster.close()
    node.cluster.announce()
    await asyncio.wait(tasks)
    assert (pipe.open, len(reported)) == (False, 1)
    assert all(task.cancelled() for task in tasks)


async def test_a_request_that_the_agents_node_did_not_process_may_go_to_the_next(node: Node) -> None:
    async def refused(incarnation: bytes, address: str, end: object) -> None:
        raise PeerUnreachable("connection refused")

    gone = Cluster(OWN, node.cluster.here, secrets=ClusterSecrets(""), dial_with=refused)
    # Where it was last found.
    gone._agent_at = A
    assert await gone.ask_agent("POST", b"/x", [], b"") is None
    assert gone._agent_at is None
    gone.close()


@pytest.mark.parametrize(
    ("configured", "reachable", "possible"), [(False, True, False), (True, True, True), (False, False, True)]
)
async def test_the_agent_is_ruled_out_only_where_every_node_answers_so(
    pair: Pair, configured: bool, reachable: bool, possible: bool
) -> None:
    placed = Placed()
    placed.living = [A]
    here = ThisNode(placed, pair.owned, lambda: REPORT, pair.here, ClusterLimits(), pair.events.append)
    cluster = Cluster(OWN, here, secrets=ClusterSecrets(""), dial_with=pair._dial)
    cluster._links[A] = pair.link
    pair.report, pair.reachable = replace(REPORT, agent_configured=configured), reachable
    asking = asyncio.create_task(cluster.ask_agent("POST", b"/x", [], b""))
    while not asking.done():
        await pair.turn()
    assert (await asking, cluster.agent_possible) == (None, possible)
    # A node that is gone may have been the only one: it is back soon.
    placed.living.clear()
    assert (await cluster.ask_agent("POST", b"/x", [], b""), cluster.agent_possible) == (None, configured)
    placed.read = False
    assert (await cluster.ask_agent("POST", b"/x", [], b""), cluster.agent_possible) == (None, True)
    # It is back under its name, and no longer configured to.
    placed.living, placed.read = [B], True
    cluster._links[B] = pair.link
    pair.report, pair.reachable = REPORT, True
    asking = asyncio.create_task(cluster.ask_agent("POST", b"/x", [], b""))
    while not asking.done():
        await pair.turn()
    assert (await asking, cluster.agent_possible) == (None, False)
    cluster.close()


async def test_the_api_key_itself_is_never_forwarded(pair: Pair) -> None:
    here = ThisNode(Placed(), pair.owned, lambda: REPORT, pair.here, ClusterLimits(), pair.events.append)
    cluster = Cluster(OWN, here, secrets=ClusterSecrets(""), dial_with=pair._dial)
    cluster._links[A] = pair.link
    cluster._agent_at = A
    headers = [(b"authorization", b"bearer tk_1"), (b"accept", b"*/*")]
    asking = asyncio.create_task(cluster.ask_agent("GET", b"/x", headers, b""))
    await pair.turn(to_owner=False)
    (request,) = [message for frame in pair.ours.sent if isinstance(message := decode_request(frame), RelayedRequest)]
    assert (request.headers, request.key_hash) == (headers[1:], hash_key("tk_1"))
    await pair.turn()
    await asking
    cluster.close()
