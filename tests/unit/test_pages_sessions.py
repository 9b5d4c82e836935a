"""Sign-ins: how long they last, that they hold on all nodes, and that a sign-out ends them on all nodes."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.support.faulty_store import Fault, FaultPlan, FaultyStore

from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.model.errors import StoreError, StoreUnavailable, Unavailable
from tocsin.ports.store import SignIn
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
        self.store = FaultyStore(self.inner, Random(1), FaultPlan(cut_timeout_s=0.0, late_s_max=0.0))

    def clock(self) -> float:
        return self.now_s

    def now_us(self) -> int:
        """The store's clock."""
        return round(self.now_s * 1e6)

    async def start(self) -> Node:
        """Another node, or the same after a restart."""
        if "k" not in {key.key_id for key in await self.inner.api_keys()}:
            await self.inner.put_api_key(ApiKey("k", hash_key("s"), Role.READ))
        node = Node(self)
        await node.keys.refresh()
        return node


class Node:
    def __init__(self, nodes: Nodes) -> None:
        self.keys = Keyring(nodes.inner, published=True, now_s=nodes.clock)
        self.sign_ins = SignIns(nodes.store, nodes.limits, nodes.clock)
        self.sessions = Sessions(self.keys, self.sign_ins, nodes.limits, nodes.clock)

    async def refresh(self) -> None:
        await self.keys.refresh()
        await self.sign_ins.refresh()

    async def sign_in(self) -> str:
        cookie = await self.sessions.sign_in("s")
        assert cookie is not None
        return cookie

    async def takes(self, cookie: str) -> bool:
        return await self.sessions.principal(cookie) is not None


async def test_sign_in_ends_when_idle_or_expired_or_its_key_is_deleted() -> None:
    nodes = Nodes(session_idle_timeout_s=10, session_lifetime_max_s=25)
    node, other = await nodes.start(), await nodes.start()
    assert await node.sessions.sign_in("wrong") is None
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
    await nodes.inner.delete_api_key("k")
    await other.refresh()
    assert (await other.takes(last), other.sessions.current(last)) == (False, None)


async def test_expired_key_ends_its_sign_ins() -> None:
    nodes = Nodes()
    await nodes.inner.put_api_key(ApiKey("k", hash_key("s"), Role.READ, expires_at=1_010_000_000))
    node = await nodes.start()
    cookie = await node.sign_in()
    nodes.now_s = 1_009.0
    assert await node.takes(cookie)
    nodes.now_s = 1_010.0
    assert (await node.takes(cookie), node.sessions.current(cookie)) == (False, None)
    assert await node.sessions.sign_in("s") is None
    assert (node.keys.required, node.keys.expired(hash_key("s"))) == (True, True)


async def test_stored_sign_ins_can_not_be_turned_into_cookies() -> None:
    nodes = Nodes()
    node = await nodes.start()
    cookie, other = await node.sign_in(), await node.sign_in()
    kept = repr(vars(nodes.inner))
    assert cookie not in kept
    assert cookie.removeprefix("s.") not in kept
    for row in nodes.inner._sign_ins.values():
        assert not await node.takes(row.token_hash)
        assert not await node.takes(f"s.{row.token_hash[:43]}")
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
    assert await one.sessions.sign_out(cookie)
    assert (await one.takes(cookie), one.sessions.current(cookie)) == (False, None)
    await other.refresh()
    assert (await other.takes(cookie), other.sessions.current(cookie)) == (False, None)
    restarted = await nodes.start()
    assert not await restarted.takes(cookie)
    for each in (one, other, restarted):
        assert await each.takes(kept)
    # A sign-out without a sign-in, or a second one, succeeds.
    assert await one.sessions.sign_out(one.sessions.new_cookie())
    assert await one.sessions.sign_out(cookie)


async def test_known_cookies_are_read_from_memory_and_unknown_ones_share_one_read() -> None:
    nodes = Nodes()
    node, other = await nodes.start(), await nodes.start()
    cookie = await node.sign_in()
    reads: list[int] = []
    reading, go_on = asyncio.Event(), asyncio.Event()

    class Counting(MemoryStore):
        async def sign_ins(self, token_hashes: list[str]) -> list[SignIn]:  # type: ignore[override]
            reads.append(len(token_hashes))
            reading.set()
            await go_on.wait()
            return await nodes.inner.sign_ins(token_hashes)

    nodes.store.inner = Counting()
    assert await node.takes(cookie)
    assert reads == []
    first = asyncio.create_task(other.takes(cookie))
    await reading.wait()
    made_up = [asyncio.create_task(other.takes(f"s.{number:043}")) for number in range(50)]
    await asyncio.sleep(0)
    go_on.set()
    assert await first
    assert not any(await asyncio.gather(*made_up))
    assert reads == [1, 50]
    assert await other.takes(cookie)
    assert reads == [1, 50]


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.UNKNOWN_LOST, Fault.UNKNOWN_DONE])
async def test_sign_out_during_a_store_failure_holds_on_this_node_and_is_written_later(fault: Fault) -> None:
    nodes = Nodes()
    one, other = await nodes.start(), await nodes.start()
    cookie = await one.sign_in()
    assert await other.takes(cookie)
    nodes.store.script("delete_sign_in", fault, Fault.FAIL)
    assert not await one.sessions.sign_out(cookie)
    with pytest.raises(StoreError):
        await one.refresh()
    assert not await one.takes(cookie)
    await one.refresh()
    await other.refresh()
    assert (await one.takes(cookie), await other.takes(cookie)) == (False, False)


async def test_read_that_overlaps_a_sign_out_does_not_undo_it() -> None:
    nodes = Nodes()
    one, other = await nodes.start(), await nodes.start()
    cookie = await one.sign_in()
    reading, go_on = asyncio.Event(), asyncio.Event()

    class Slow(MemoryStore):
        async def sign_ins(self, token_hashes: list[str]) -> list[SignIn]:  # type: ignore[override]
            rows = await nodes.inner.sign_ins(token_hashes)
            reading.set()
            await go_on.wait()
            return rows

        async def delete_sign_in(self, token_hash: str) -> bool:
            return await nodes.inner.delete_sign_in(token_hash)

    nodes.store.inner = Slow()
    for node, work in ((one, one.sign_ins.refresh()), (other, other.takes(cookie))):
        task = asyncio.create_task(work)  # type: ignore[arg-type]
        await reading.wait()
        assert await node.sessions.sign_out(cookie)
        go_on.set()
        assert not await task
        assert not await node.takes(cookie)
        reading.clear()
        go_on.clear()


async def test_without_the_store_sign_ins_hold_for_a_while_and_new_ones_on_one_node() -> None:
    nodes = Nodes(session_stale_max_s=60)
    one, other = await nodes.start(), await nodes.start()
    before, elsewhere = await one.sign_in(), await other.sign_in()
    nodes.store.cut()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await one.sign_ins.refresh()
        nodes.now_s += 30
    assert (one.sessions.unknown_since_s, await one.takes(before)) == (None, True)
    # A sign-in that the node has never read may have ended.
    with pytest.raises(Unavailable, match="try again"):
        await one.takes(elsewhere)
    nodes.now_s += 1
    assert one.sessions.unknown_since_s == 1_000.0
    with pytest.raises(Unavailable):
        await one.takes(before)
    local = await one.sign_in()
    assert await one.takes(local)
    nodes.store.heal()
    await one.refresh()
    assert (await one.takes(before), await one.takes(local), await other.takes(local)) == (True, True, False)
    assert await one.sessions.sign_out(local)
    assert not await one.takes(local)


async def test_key_can_not_fill_the_table_or_end_sign_ins_of_other_keys() -> None:
    nodes = Nodes(sessions_per_key_max=3, sessions_cached_max=2)
    await nodes.inner.put_api_key(ApiKey("l", hash_key("t"), Role.READ))
    node = await nodes.start()
    mine = await node.sessions.sign_in("t") or ""
    cookies = []
    for _ in range(5):
        nodes.now_s += 1
        cookies.append(await node.sign_in())
    await node.refresh()
    assert [await node.takes(each) for each in cookies] == [False, False, True, True, True]
    assert await node.takes(mine)
    assert len(node.sign_ins._cached) == 2
