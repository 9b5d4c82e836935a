"""Sign-ins: how long they last, that they hold on all nodes, and that a sign-out ends them on all nodes."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.faulty_store import Fault, FaultyStore

from tocsin.administration import SIGN_INS, api_keys, delete_api_key, put_api_key
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.model.errors import StoreUnavailable, Unavailable
from tocsin.ports.records import RECORD_KEY_END, Record
from tocsin.server.access import Keyring
from tocsin.server.sign_ins import SignIns
from tocsin.stores.memory import MemoryStore
from tocsin.web.pages.admin.sessions import Sessions, masked
from tocsin.web.pages.limits import UiLimits


class Nodes:
    """Nodes of one store, and the clock that they share."""

    def __init__(self, **limits: float) -> None:
        self.now_s = 1_000.0
        self.limits = UiLimits(**limits)  # type: ignore[arg-type]
        self.inner = MemoryStore(self)  # type: ignore[arg-type]
        self.store = FaultyStore(self.inner)

    def clock(self) -> float:
        return self.now_s

    def now_us(self) -> int:
        """The store's clock."""
        return round(self.now_s * 1e6)

    async def start(self) -> Node:
        """Another node, or the same after a restart."""
        if "k" not in {key.key_id for key in await api_keys(self.inner)}:
            await put_api_key(self.inner, ApiKey("k", hash_key("s"), Role.READ))
        node = Node(self)
        await node.keys.refresh()
        return node


class Node:
    def __init__(self, nodes: Nodes) -> None:
        self.keys = Keyring(nodes.inner, published=True, now_s=nodes.clock)
        self.sign_ins = SignIns(nodes.store, nodes.limits, now_s=nodes.clock)
        self.sessions = Sessions(self.keys, self.sign_ins, nodes.limits, nodes.clock)

    async def refresh(self) -> None:
        await self.keys.refresh()
        await self.sign_ins.refresh()

    async def sign_in(self) -> str:
        cookie = await self.sessions.sign_in("s", "")
        assert cookie is not None
        return cookie

    async def takes(self, cookie: str) -> bool:
        return await self.sessions.principal(cookie) is not None


async def test_sign_in_ends_when_idle_or_expired_or_its_key_is_deleted() -> None:
    nodes = Nodes(session_idle_timeout_s=10, session_lifetime_max_s=25)
    node, other = await nodes.start(), await nodes.start()
    assert await node.sessions.sign_in("wrong", "") is None
    cookie = await node.sign_in()
    for nodes.now_s in (1_009.0, 1_018.0, 1_024.0):
        # Use on any node keeps the sign-in active.
        assert await node.takes(cookie)
        await node.refresh()
        assert await other.takes(cookie)
        await other.refresh()
    nodes.now_s = 1_026.0
    assert (await node.takes(cookie), await other.takes(cookie)) == (False, False)
    idle = await node.sign_in()
    nodes.now_s = 1_040.0
    assert not await node.takes(idle)
    # A response that stays open is not subject to the idle timeout.
    assert node.sessions.current(idle) is not None
    last = await node.sign_in()
    assert await other.takes(last)
    await delete_api_key(nodes.inner, "k")
    await other.refresh()
    assert (await other.takes(last), other.sessions.current(last)) == (False, None)


async def test_what_an_open_page_asks_for_by_itself_does_not_keep_its_sign_in() -> None:
    nodes = Nodes(session_idle_timeout_s=10)
    node = await nodes.start()
    cookie = await node.sign_in()
    for nodes.now_s in (1_004.0, 1_008.0):
        assert await node.sessions.principal(cookie, used=False) is not None
    nodes.now_s = 1_011.0
    assert await node.sessions.principal(cookie, used=False) is None


async def test_expired_key_ends_its_sign_ins() -> None:
    nodes = Nodes()
    await put_api_key(nodes.inner, ApiKey("k", hash_key("s"), Role.READ, expires_at=1_010_000_000))
    node = await nodes.start()
    cookie = await node.sign_in()
    nodes.now_s = 1_009.0
    assert await node.takes(cookie)
    nodes.now_s = 1_010.0
    assert (await node.takes(cookie), node.sessions.current(cookie)) == (False, None)
    assert await node.sessions.sign_in("s", "") is None
    assert (node.keys.required, node.keys.expired(hash_key("s"))) == (True, True)


async def test_stored_sign_ins_can_not_be_turned_into_cookies() -> None:
    nodes = Nodes()
    node = await nodes.start()
    cookie, other = await node.sign_in(), await node.sign_in()
    kept = repr(vars(nodes.inner))
    assert cookie not in kept
    assert cookie.removeprefix("s.k.") not in kept
    for record in await nodes.inner.records(SIGN_INS, limit=9):
        stored = record.key.removeprefix("k/")
        assert not await node.takes(stored)
        assert not await node.takes(f"s.k.{stored[:43]}")
    # A CSRF token is valid for its sign-in only, on every node.
    restarted = await nodes.start()
    token = masked(node.sessions.csrf(cookie))
    assert restarted.sessions.csrf_holds(cookie, token)
    # The masked token differs each time, so that the length of a compressed response does not leak it.
    assert masked(node.sessions.csrf(cookie))[:64] != token[:64] != token[64:]
    assert not any(
        node.sessions.csrf_holds(cookie, wrong) for wrong in ("", "é", "ab", "abc", token[:-2], token + "00")
    )
    assert not node.sessions.csrf_holds(other, token)
    assert token not in cookie


async def test_sign_out_holds_on_every_node_and_after_a_restart() -> None:
    nodes = Nodes()
    one, other = await nodes.start(), await nodes.start()
    cookie, kept = await one.sign_in(), await one.sign_in()
    # The other node has the sign-in in memory.
    assert await other.takes(cookie)
    await one.sessions.sign_out(cookie)
    assert (await one.takes(cookie), one.sessions.current(cookie)) == (False, None)
    await other.refresh()
    assert (await other.takes(cookie), other.sessions.current(cookie)) == (False, None)
    restarted = await nodes.start()
    assert not await restarted.takes(cookie)
    for each in (one, other, restarted):
        assert await each.takes(kept)
    # A sign-out without a sign-in, or a second one, succeeds.
    await one.sessions.sign_out(one.sessions.new_cookie())
    await one.sessions.sign_out(cookie)


async def test_known_cookies_are_read_from_memory_and_invented_ones_cost_the_store_nothing() -> None:
    nodes = Nodes()
    node, other = await nodes.start(), await nodes.start()
    cookie = await node.sign_in()
    reads: list[str] = []

    class Counting(MemoryStore):
        async def record(self, kind: str, key: str) -> Record | None:
            reads.append(key)
            return await nodes.inner.record(kind, key)

    nodes.store.inner = Counting()
    assert await node.takes(cookie)
    assert not await other.takes(f"s.unknown.{0:043}")
    assert reads == []
    assert await other.takes(cookie)
    assert await other.takes(cookie)
    assert len(reads) == 1


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.UNKNOWN_LOST, Fault.UNKNOWN_DONE])
async def test_sign_out_during_a_store_failure_is_refused_and_can_be_repeated(fault: Fault) -> None:
    nodes = Nodes()
    one, other = await nodes.start(), await nodes.start()
    cookie = await one.sign_in()
    assert await other.takes(cookie)
    nodes.store.script("delete_records", fault)
    with pytest.raises(Unavailable, match="you can't be signed out; try again"):
        await one.sessions.sign_out(cookie)
    assert await one.takes(cookie) is (fault is not Fault.UNKNOWN_DONE)
    await one.sessions.sign_out(cookie)
    await other.refresh()
    assert (await one.takes(cookie), await other.takes(cookie)) == (False, False)


async def test_read_that_overlaps_a_sign_out_does_not_undo_it() -> None:
    nodes = Nodes()
    one, other = await nodes.start(), await nodes.start()
    cookie = await one.sign_in()
    reading, go_on = asyncio.Event(), asyncio.Event()

    class Slow(MemoryStore):
        async def record(self, kind: str, key: str) -> Record | None:
            found = await nodes.inner.record(kind, key)
            reading.set()
            await go_on.wait()
            return found

        async def records(
            self, kind: str, after: str = "", before: str = RECORD_KEY_END, *, limit: int, descending: bool = False
        ) -> list[Record]:
            found = await nodes.inner.records(kind, after, before, limit=limit, descending=descending)
            reading.set()
            await go_on.wait()
            return found

    slow = Slow(nodes)  # type: ignore[arg-type]
    slow._records, slow._record_versions = nodes.inner._records, nodes.inner._record_versions
    nodes.store.inner = slow
    for node, work in ((one, one.sign_ins.refresh()), (other, other.takes(cookie))):
        task = asyncio.create_task(work)  # type: ignore[arg-type]
        await reading.wait()
        await node.sessions.sign_out(cookie)
        go_on.set()
        await task
        assert not await node.takes(cookie)
        cookie = await one.sign_in()
        reading.clear()
        go_on.clear()


async def test_without_the_store_sign_ins_hold_for_a_while_and_none_begins() -> None:
    nodes = Nodes(session_stale_max_s=60)
    one, other = await nodes.start(), await nodes.start()
    before, elsewhere = await one.sign_in(), await other.sign_in()
    nodes.store.is_cut = True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await one.sign_ins.refresh()
        nodes.now_s += 30
    assert await one.takes(before)
    # A sign-in that the node has never read may have ended.
    with pytest.raises(Unavailable, match="try again"):
        await one.takes(elsewhere)
    nodes.now_s += 1
    with pytest.raises(Unavailable):
        await one.takes(before)
    assert one.sessions.current(before) is None
    with pytest.raises(Unavailable, match="you can't be signed in; try again"):
        await one.sign_in()
    nodes.store.is_cut = False
    await one.refresh()
    assert await one.takes(before)


async def test_expired_sign_ins_are_removed_a_few_at_a_time() -> None:
    nodes = Nodes(session_lifetime_max_s=25)
    node = await nodes.start()
    for _ in range(150):
        await node.sign_in()
    nodes.now_s += 26
    left = []
    for _ in range(3):
        await node.refresh()
        left.append(len(await nodes.inner.records(SIGN_INS, limit=200)))
    assert left == [50, 0, 0]


async def test_key_can_not_fill_the_table_or_end_sign_ins_of_other_keys() -> None:
    nodes = Nodes(sessions_per_key_max=3, sessions_cached_max=2)
    await put_api_key(nodes.inner, ApiKey("l", hash_key("t"), Role.READ))
    node = await nodes.start()
    mine = await node.sessions.sign_in("t", "") or ""
    cookies = []
    for _ in range(5):
        nodes.now_s += 1
        cookies.append(await node.sign_in())
    await node.refresh()
    assert [await node.takes(each) for each in cookies] == [False, False, True, True, True]
    assert await node.takes(mine)
    assert len(node.sign_ins._cached) == 2


async def test_a_refresh_reads_the_sign_ins_of_a_key_together() -> None:
    nodes = Nodes()
    node, other = await nodes.start(), await nodes.start()
    kept = [await node.sign_in() for _ in range(5)]
    for cookie in kept:
        assert await other.takes(cookie)
    await node.sessions.sign_out(kept.pop(0))

    class Counting(MemoryStore):
        async def records(
            self, kind: str, after: str = "", before: str = RECORD_KEY_END, *, limit: int, descending: bool = False
        ) -> list[Record]:
            found = await nodes.inner.records(kind, after, before, limit=limit, descending=descending)
            if before != RECORD_KEY_END:
                nodes.store.inner = nodes.inner
                # It begins after the read, whose answer lacks it.
                kept.append(await other.sign_in())
            return found

    counting = Counting(nodes)  # type: ignore[arg-type]
    counting._records, counting._record_versions = nodes.inner._records, nodes.inner._record_versions
    nodes.store.inner = counting
    await other.refresh()
    # Had the refresh read each sign-in by itself, it would not have met the range.
    assert len(kept) == 5
    assert [await other.takes(cookie) for cookie in kept] == [True] * 5
