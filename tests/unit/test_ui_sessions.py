"""Sign-ins: how long they last, where they hold, and that they end where somebody signs out."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.model.errors import DefiniteFailure, StoreUnavailable
from tocsin.ports.store import SignOut
from tocsin.server.access import SignOuts
from tocsin.stores.memory import MemoryStore
from tocsin.testing.faulty_store import Fault, FaultPlan, FaultyStore
from tocsin.ui.limits import UiLimits
from tocsin.ui.sessions import Sessions


class Keys:
    required = True

    def __init__(self) -> None:
        self.known = {hash_key("s"): ApiKey("k", hash_key("s"), Role.READ)}

    def lookup(self, hash: str) -> ApiKey | None:
        return self.known.get(hash)


class Nodes:
    """Nodes of one store, and the clock that they share."""

    def __init__(self, **limits: float) -> None:
        self.now_s = 1_000.0
        self.limits = UiLimits(**limits)  # type: ignore[arg-type]
        self.inner = MemoryStore(self)  # type: ignore[arg-type]
        self.store = FaultyStore(self.inner, Random(1), FaultPlan(cut_timeout_s=0.0, late_s_max=0.0))
        self.keys = Keys()

    def clock(self) -> float:
        return self.now_s

    def now_us(self) -> int:
        """The store's clock."""
        return round(self.now_s * 1e6)

    async def start(self, secret: bytes = b"a") -> tuple[Sessions, SignOuts]:
        """Another node, or the same after a restart."""
        sign_outs = SignOuts(self.store, self.limits, self.clock)
        await sign_outs.refresh()
        return Sessions(self.keys, sign_outs, self.limits, self.clock, secret), sign_outs


async def test_sessions_end_when_idle_when_old_and_with_their_key() -> None:
    nodes = Nodes(session_idle_timeout_s=10, session_lifetime_max_s=25)
    sessions, _ = await nodes.start()
    assert sessions.sign_in("wrong") is None
    cookie = sessions.sign_in("s")
    assert cookie is not None
    assert sessions.renewed(cookie) is None
    token = sessions.csrf(cookie)
    for nodes.now_s in (1_009.0, 1_018.0, 1_024.0):
        assert sessions.visitor(cookie) is not None
        cookie = sessions.renewed(cookie) or ""
        # Forms of before stay good.
        assert sessions.csrf_holds(cookie, token)
    nodes.now_s = 1_026.0
    assert sessions.visitor(cookie) is None
    idle = sessions.sign_in("s") or ""
    nodes.now_s = 1_040.0
    assert sessions.visitor(idle) is None
    assert sessions.still(idle) is not None
    last = sessions.sign_in("s") or ""
    assert sessions.visitor(last) is not None
    nodes.keys.known.clear()
    assert (sessions.visitor(last), sessions.still(last)) == (None, None)


async def test_sessions_hold_wherever_the_secret_is_known_and_nowhere_else() -> None:
    nodes = Nodes()
    (one, _), (other, _), (stranger, _) = [await nodes.start(secret) for secret in (b"a", b"a", b"b")]
    cookie = one.sign_in("s") or ""
    assert other.visitor(cookie) == one.visitor(cookie) is not None
    assert other.csrf_holds(cookie, one.csrf(cookie))
    assert not stranger.well_formed(cookie)
    assert stranger.visitor(cookie) is None
    assert not stranger.csrf_holds(cookie, one.csrf(cookie))
    # Nothing of it can be changed.
    for at in range(0, len(cookie), 7):
        forged = f"{cookie[:at]}{'1' if cookie[at] == '0' else '0'}{cookie[at + 1 :]}"
        assert (one.visitor(forged), one.well_formed(forged)) == (None, False), at


async def test_a_sign_out_holds_on_every_node_also_after_a_restart() -> None:
    nodes = Nodes(session_lifetime_max_s=100)
    (one, _), (other, others) = await nodes.start(), await nodes.start()
    cookie, kept = one.sign_in("s") or "", one.sign_in("s") or ""
    nodes.now_s += 50
    copy = one.renewed(cookie) or cookie
    assert await one.sign_out(cookie)
    assert (one.visitor(cookie), one.visitor(copy), one.still(copy), one.well_formed(copy)) == (None, None, None, False)
    assert other.visitor(copy) is not None
    await others.refresh()
    assert (other.visitor(cookie), other.visitor(copy), other.still(copy)) == (None, None, None)
    again, _ = await nodes.start()
    assert again.visitor(copy) is None
    for each in (one, other, again):
        assert each.visitor(kept) is not None
    # Who signs out without having signed in, or twice, is out.
    assert await one.sign_out(one.new_cookie())
    assert await one.sign_out(cookie)
    assert len(await nodes.inner.sign_outs()) == 1
    # It is forgotten when the sign-in would be over by itself.
    nodes.now_s += 51
    await others.refresh()
    assert await nodes.inner.sign_outs() == []
    assert other.visitor(copy) is None


async def test_a_node_whose_clock_is_wrong_brings_no_sign_in_back() -> None:
    nodes = Nodes(session_lifetime_max_s=100)
    (one, _), (_, others) = await nodes.start(), await nodes.start()
    cookie = one.sign_in("s") or ""
    assert await one.sign_out(cookie)
    others._now_s = lambda: nodes.now_s + 1_000
    await others.refresh()
    again, _ = await nodes.start()
    assert again.visitor(cookie) is None


async def test_a_sign_out_that_the_store_did_not_take_holds_here_and_is_written_later() -> None:
    nodes = Nodes()
    (one, ones), (other, others) = await nodes.start(), await nodes.start()
    cookie = one.sign_in("s") or ""
    nodes.store.script("put_sign_out", Fault.FAIL, Fault.UNKNOWN_LOST)
    assert not await one.sign_out(cookie)
    assert one.visitor(cookie) is None
    with pytest.raises(Exception, match="lost by plan"):
        await ones.refresh()
    assert one.visitor(cookie) is None
    await others.refresh()
    assert other.visitor(cookie) is not None
    await ones.refresh()
    await others.refresh()
    assert (one.visitor(cookie), other.visitor(cookie)) == (None, None)


async def test_a_read_that_overlaps_a_sign_out_does_not_undo_it() -> None:
    nodes = Nodes()
    one, ones = await nodes.start()
    cookie = one.sign_in("s") or ""
    reads = asyncio.Event()

    class Slow(MemoryStore):
        async def sign_outs(self) -> list[SignOut]:  # type: ignore[override]
            rows = await nodes.inner.sign_outs()
            await reads.wait()
            return rows

    nodes.store.inner = Slow()
    reading = asyncio.ensure_future(ones.refresh())
    for _ in range(5):
        await asyncio.sleep(0)
    assert await one.sign_out(cookie)
    reads.set()
    await reading
    assert one.visitor(cookie) is None


async def test_a_store_that_does_not_answer_keeps_nobody_waiting() -> None:
    nodes = Nodes(sign_out_timeout_s=0.01)
    one, ones = await nodes.start()
    cookie = one.sign_in("s") or ""
    silent = asyncio.Event()

    class Silent(MemoryStore):
        async def put_sign_out(self, sign_out: SignOut) -> None:
            await silent.wait()
            await nodes.inner.put_sign_out(sign_out)

    nodes.store.inner = Silent()
    assert not await one.sign_out(cookie)
    assert one.visitor(cookie) is None
    silent.set()
    await ones.refresh()
    assert [row.name for row in await nodes.inner.sign_outs()] == [cookie.partition(".")[0]]


async def test_a_node_that_does_not_hear_of_sign_outs_takes_only_new_sign_ins_after_a_while() -> None:
    nodes = Nodes(sign_outs_unread_max_s=60)
    one, ones = await nodes.start()
    before = one.sign_in("s") or ""
    # Where reads are rare nothing is wrong between them.
    nodes.now_s += 500
    assert (one.unknown_since_s, one.visitor(before) is not None) == (None, True)
    nodes.store.cut()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await ones.refresh()
        nodes.now_s += 30
    assert (one.unknown_since_s, one.visitor(before) is not None) == (None, True)
    nodes.now_s += 1
    assert (one.unknown_since_s, one.visitor(before), one.still(before)) == (1_500.0, None, None)
    # The browser keeps its cookie meanwhile; who knows the key gets in.
    assert one.well_formed(before)
    assert one.visitor(one.sign_in("s") or "") is not None
    nodes.store.heal()
    await ones.refresh()
    assert one.unknown_since_s is None
    assert one.visitor(before) is not None
    nodes.store.script("sign_outs", Fault.FAIL)
    with pytest.raises(DefiniteFailure):
        await ones.refresh()
    assert one.visitor(before) is not None


async def test_filling_the_table_brings_no_sign_in_back() -> None:
    nodes = Nodes(sign_outs_max=3)
    (one, _), (other, others) = await nodes.start(), await nodes.start()
    stolen = one.sign_in("s") or ""
    assert await one.sign_out(stolen)
    nodes.now_s += 10
    early = one.sign_in("s") or ""
    for _ in range(5):
        nodes.now_s += 10
        assert await one.sign_out(one.sign_in("s") or "")
        await others.refresh()
        assert len(await nodes.inner.sign_outs()) <= 3
        assert (one.visitor(stolen), other.visitor(stolen)) == (None, None)
    # Nobody knows any more who of then has signed out.
    assert other.visitor(early) is None
    nodes.now_s += 10
    late = one.sign_in("s") or ""
    assert other.visitor(late) is not None


async def test_what_a_node_could_not_write_is_bounded_too() -> None:
    nodes = Nodes(sign_outs_max=2)
    one, ones = await nodes.start()
    nodes.store.cut()
    cookies = []
    for _ in range(4):
        nodes.now_s += 1
        cookies.append(one.sign_in("s") or "")
        assert not await one.sign_out(cookies[-1])
    assert [one.visitor(each) for each in cookies] == [None] * 4
    nodes.store.heal()
    await ones.refresh()
    assert len(await nodes.inner.sign_outs()) == 2
    assert [one.visitor(each) for each in cookies] == [None] * 4
