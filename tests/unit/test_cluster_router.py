"""Where a write goes while its shard has an owner, moves, or has none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from tests.support.completions import Noted
from tests.support.peers import SECOND, TIMER

from tocsin.cluster.channel import ThisNode
from tocsin.cluster.cluster import Cluster
from tocsin.cluster.handshake import ClusterSecrets
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.router import Router
from tocsin.model.errors import Overloaded, RequestExpired, ShardMoved, ShardUnavailable, TocsinError
from tocsin.ports.forward import NodeReport, Owner, Write, WriteCompletion, WriteKind, Written
from tocsin.testing.clock import FakeClock

HERE, THERE, ELSEWHERE = b"h" * 16, b"t" * 16, b"e" * 16


class Map:
    """The owners of shards as the node knows them."""

    incarnation = HERE

    def __init__(self) -> None:
        self.owners: dict[int, Owner] = {}
        self.members: dict[bytes, str] = {}
        self.refreshes = 0
        self._watchers: list[Callable[[], None]] = []

    def owner(self, shard_id: int) -> Owner | None:
        return self.owners.get(shard_id)

    def refresh(self) -> None:
        self.refreshes += 1

    def watch(self, refreshed: Callable[[], None]) -> None:
        self._watchers.append(refreshed)

    def others(self) -> Mapping[bytes, str]:
        return self.members

    def address(self, incarnation: bytes) -> str:
        return self.members.get(incarnation, "")

    def refreshed(self) -> None:
        for watcher in self._watchers:
            watcher()


class Link:
    """A link that records writes, and refuses them when instructed."""

    def __init__(self) -> None:
        self.sent: list[tuple[Write, int, WriteCompletion]] = []
        self.error: TocsinError | None = None

    def send(self, write: Write, epoch: int, completion: WriteCompletion) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((write, epoch, completion))


class Desk:
    """A router with everything around it."""

    def __init__(self, **limits: int) -> None:
        self.map, self.clock = Map(), FakeClock(boottime_us=SECOND)
        self.links = {THERE: Link(), ELSEWHERE: Link()}
        self.accepted: list[tuple[Write, int | None, WriteCompletion]] = []
        self.own = True
        self.answers: dict[str, object] = {}
        self.router = Router(self.map, self, lambda node, _: self.links[node], self.clock, ClusterLimits(**limits))  # type: ignore[arg-type, return-value]

    def accept(self, write: Write, epoch: int | None, completion: WriteCompletion) -> None:
        if not self.own:
            raise ShardMoved("not here")
        self.accepted.append((write, epoch, completion))

    def forward(self, name: str, shard_id: int = 1, *, budget_us: int = 10 * SECOND) -> None:
        deadline_us = self.clock.boottime_us() + budget_us
        write = Write(WriteKind.CREATE, shard_id, name.encode(), "default", TIMER, None, deadline_us)
        self.router.forward(write, Noted(partial(self.answers.__setitem__, name)))

    async def refresh(self) -> None:
        self.map.refreshed()
        await asyncio.sleep(0)

    def names(self, node: bytes) -> list[str]:
        return [write.uuid.decode() for write, _, _ in self.links[node].sent]


@pytest.fixture
async def desk():
    desk = Desk()
    yield desk
    desk.router.close()


async def test_a_write_goes_to_the_owner_with_the_known_epoch(desk: Desk) -> None:
    desk.map.owners[1] = Owner(THERE, 3, "there")
    desk.forward("a")
    ((_, epoch, completion),) = desk.links[THERE].sent
    assert epoch == 3
    completion.resolve(Written(TIMER, 5))
    assert desk.answers == {"a": Written(TIMER, 5)}


async def test_a_write_to_an_own_shard_is_accepted_in_any_epoch(desk: Desk) -> None:
    desk.map.owners[1] = Owner(HERE, 3, "")
    desk.forward("a")
    assert [(write.uuid, version) for write, version, _ in desk.accepted] == [(b"a", None)]


async def test_an_undone_write_goes_to_the_next_owner_and_an_unknown_one_does_not(desk: Desk) -> None:
    desk.map.owners[1] = Owner(THERE, 3, "there")
    desk.forward("moved")
    desk.forward("unknown")
    moved, unknown = desk.links[THERE].sent
    unknown[2].refuse(ShardUnavailable("nobody knows"))
    moved[2].refuse(ShardMoved("not here"))
    assert (type(desk.answers["unknown"]), desk.router.waiting, desk.map.refreshes) == (ShardUnavailable, 1, 1)
    desk.map.owners[1] = Owner(ELSEWHERE, 4, "elsewhere")
    await desk.refresh()
    assert desk.names(ELSEWHERE) == ["moved"]
    assert desk.links[ELSEWHERE].sent[0][1] == 4
    assert desk.router.waiting == 0


@pytest.mark.parametrize("owner", [None, Owner(THERE, 3, "")])
async def test_writes_wait_for_an_owner_in_order_until_their_deadline(desk: Desk, owner: Owner | None) -> None:
    if owner is not None:
        desk.map.owners[1] = owner
    desk.forward("a")
    desk.forward("short", budget_us=SECOND)
    desk.forward("b")
    assert desk.router.waiting == 3
    desk.clock.advance(SECOND)
    await desk.refresh()
    assert isinstance(desk.answers["short"], RequestExpired)
    assert desk.router.waiting == 2
    desk.forward("expires", budget_us=1)
    desk.clock.advance(1)
    desk.map.owners[1] = Owner(THERE, 3, "there")
    # A new write does not overtake waiting ones.
    desk.forward("c")
    await desk.refresh()
    assert desk.names(THERE) == ["a", "b", "c"]
    assert isinstance(desk.answers["expires"], RequestExpired)
    assert desk.router.waiting == 0


async def test_an_expired_write_is_not_sent_to_a_new_owner(desk: Desk) -> None:
    desk.forward("expires", budget_us=1)
    desk.clock.advance(1)
    desk.map.owners[1] = Owner(THERE, 3, "there")
    await desk.refresh()
    assert desk.names(THERE) == []
    assert isinstance(desk.answers["expires"], RequestExpired)


async def test_waiting_writes_are_retried_without_a_refresh(desk: Desk) -> None:
    desk.forward("a")
    desk.map.owners[1] = Owner(THERE, 3, "there")
    assert desk.router._timer is not None
    desk.router._timer.cancel()
    desk.router._on_timer()
    assert desk.names(THERE) == ["a"]
    assert desk.router._timer is None


async def test_a_shard_without_owner_does_not_block_others(desk: Desk) -> None:
    desk.forward("waits", 1)
    desk.map.owners[2] = Owner(THERE, 3, "there")
    desk.forward("goes", 2)
    assert desk.names(THERE) == ["goes"]


async def test_the_waiting_limit_applies_only_to_writes_that_wait() -> None:
    desk = Desk(waiting_writes_max=2)
    desk.forward("a")
    desk.forward("b")
    desk.forward("c")
    assert isinstance(desk.answers["c"], Overloaded)
    assert "waiting_writes_max" in str(desk.answers["c"])
    desk.map.owners[2] = Owner(THERE, 3, "there")
    desk.forward("owned", 2)
    assert desk.names(THERE) == ["owned"]
    desk.router.close()


async def test_refusals_of_link_and_local_node_are_returned(desk: Desk) -> None:
    desk.map.owners[1] = Owner(THERE, 3, "there")
    desk.links[THERE].error = Overloaded("full")
    desk.forward("a")
    assert isinstance(desk.answers["a"], Overloaded)
    desk.map.owners[1] = Owner(HERE, 4, "")
    desk.own = False
    desk.forward("b")
    assert desk.router.waiting == 1


async def test_close_refuses_all_waiting_writes() -> None:
    desk = Desk()
    desk.map.owners[2] = Owner(THERE, 3, "there")
    desk.forward("waits", 1)
    desk.forward("sent", 2)
    desk.router.close()
    desk.links[THERE].sent[0][2].refuse(ShardMoved("not here"))
    assert [type(answer) for answer in desk.answers.values()] == [ShardMoved, ShardMoved]
    desk.forward("late")
    assert isinstance(desk.answers["late"], ShardMoved)
    assert desk.router.waiting == 0


# ---------------------------------------------------------------------- the cluster around it


def cluster(where: Map, **limits: int) -> Cluster:
    async def dial(incarnation: bytes, address: str, end: object) -> None:
        await asyncio.Event().wait()

    report = NodeReport("1", True, None, False, [])
    here = ThisNode(where, Desk(), lambda: report, FakeClock(), ClusterLimits(**limits), lambda event: None)  # type: ignore[arg-type]
    return Cluster(HERE, here, secrets=ClusterSecrets(""), dial_with=dial)


async def test_links_to_removed_nodes_are_closed() -> None:
    where = Map()
    nodes = cluster(where)
    for number in range(50):
        where.members = {bytes([number]) * 16: f"10.0.0.{number}:1"}
        assert nodes.link(bytes([number]) * 16, where.members[bytes([number]) * 16]).idle
        where.refreshed()
    assert len(nodes._links) == 1
    nodes.close()


async def test_a_link_in_use_is_kept() -> None:
    where = Map()
    nodes = cluster(where)
    write = Write(WriteKind.DELETE, 1, b"u" * 16, "default", None, None, 10 * SECOND)
    nodes.link(THERE, "there:1").send(write, 3, Noted(print))
    where.refreshed()
    assert list(nodes._links) == [THERE]
    nodes.close()


async def test_a_cancelled_request_for_reports_leaves_nothing_behind() -> None:
    where = Map()
    where.members = {THERE: "there:1"}
    nodes = cluster(where)
    asking = asyncio.ensure_future(nodes.reports())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert nodes.link(THERE, "")._asked
    asking.cancel()
    await asyncio.wait({asking})
    await asyncio.sleep(0)
    assert not nodes.link(THERE, "")._asked
    nodes.close()


async def test_a_late_node_is_missing_from_the_reports() -> None:
    where = Map()
    where.members = {THERE: "there:1"}
    nodes = cluster(where, report_timeout_us=1)
    assert await nodes.reports() == {}
    nodes.close()
