"""Which members `tocsin doctor` takes for alive, and what it reports of keys that expire."""

from __future__ import annotations

import asyncio
import time

from tocsin.ports.store import Member
from tocsin.server.doctor import Verdict, check_keys
from tocsin.server.neighbours import alive_members
from tocsin.settings import load_settings
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock

DAY_US = 86_400_000_000


async def test_a_member_is_alive_while_its_heartbeats_move():
    store = MemoryStore(SystemClock(), exclusive=False)
    await store.open(4)
    assert await alive_members(store, 60) == ([], [])
    one, two = Member(b"1" * 16, "one", "", 1), Member(b"2" * 16, "two", "", 1)
    await store.heartbeat(one)
    await store.heartbeat(two)
    asked = asyncio.create_task(alive_members(store, 0))
    # Its first step reads the members.
    await asyncio.sleep(0)
    await store.heartbeat(one._replace(counter=2))
    assert await asked == ([one._replace(counter=2)], [two])


def test_keys_that_expire_soon_and_a_public_server_without_any_are_reported():
    now_us = time.time_ns() // 1_000

    def verdict(expiries: list[int | None], **settings: object) -> Verdict:
        (found,) = check_keys(load_settings(settings), expiries)
        return found.verdict

    assert verdict([]) is Verdict.OK
    assert verdict([], host="0.0.0.0") is Verdict.FAIL
    assert verdict([now_us - 1], host="0.0.0.0") is Verdict.FAIL
    assert verdict([], host="0.0.0.0", insecure=True) is Verdict.OK
    assert verdict([None, now_us + 400 * DAY_US], host="0.0.0.0") is Verdict.OK
    assert verdict([None, now_us + DAY_US]) is Verdict.WARN
