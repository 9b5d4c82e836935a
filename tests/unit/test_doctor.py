"""Which members `tocsin doctor` takes for alive, and what it reports of keys that expire."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tocsin.ports.store import Member
from tocsin.server.doctor import Verdict, check_keys, check_store
from tocsin.server.neighbours import alive_members
from tocsin.server.transfer_mark import TransferMark, put_mark
from tocsin.settings import load_settings
from tocsin.stores.memory import MemoryStore
from tocsin.stores.sqlite.store import SqliteStore
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
        return check_keys(load_settings(settings), expiries).verdict

    assert verdict([]) is Verdict.OK
    assert verdict([], host="0.0.0.0") is Verdict.FAIL
    assert verdict([now_us - 1], host="0.0.0.0") is Verdict.FAIL
    assert verdict([], host="0.0.0.0", insecure=True) is Verdict.OK
    assert verdict([None, now_us + 400 * DAY_US], host="0.0.0.0") is Verdict.OK
    assert verdict([None, now_us + DAY_US]) is Verdict.WARN


def test_without_keys_the_check_passes_where_the_server_starts(tmp_path: Path):
    published = {"ui_origins": ["https://tocsin.example"]}

    def found(**settings: object) -> tuple[Verdict, str]:
        finding = check_keys(load_settings(settings), [])
        return finding.verdict, finding.text

    assert found() == (Verdict.OK, "none; from this machine none is required")
    verdict, text = found(**published)
    assert verdict is Verdict.FAIL
    assert "reachable from other machines (ui.origins: https://tocsin.example)" in text
    assert found(**published, insecure=True)[0] is Verdict.OK
    assert (
        found(host="0.0.0.0", oidc_issuer="https://idp", oidc_client_id="t", oidc_grants=["ops=admin"])[0] is Verdict.OK
    )
    key = tmp_path / "admin-key"
    key.write_text("short")
    assert found(**published, admin_key_file=key)[0] is Verdict.FAIL
    key.write_text("k" * 40)
    verdict, text = found(**published, admin_key_file=key)
    assert verdict is Verdict.OK
    assert "admin_key_file" in text


async def test_a_transfer_that_is_under_way_is_a_warning(tmp_path: Path):
    settings = load_settings({"data_dir": tmp_path})

    async def found() -> list[str]:
        return [each.text async for each in check_store(settings) if each.verdict is Verdict.WARN]

    store = SqliteStore(settings.sqlite_path())
    await store.open(2)
    await store.close()
    assert await found() == []
    await store.open(None)
    await put_mark(store, TransferMark("source", "ab" * 16, "postgresql://db", 0, phase="copying"))
    await store.close()
    (text,) = await found()
    assert "a transfer to postgresql://db has been under way since 1970-01-01T00:00:00Z" in text
