"""The page of the inbox: dead rows, what changes them, and who may see it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.integration.pages.conftest import Start
from tests.support.inbox import new_program
from tests.support.patience import PATIENCE_S
from tocsin.model.access import Role
from tocsin.web.pages import inbox

HOSTILE = "<img src=x onerror=alert(1)>"


async def test_dead_rows_are_shown_replayed_and_deleted(
    start: Start, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _ = await new_program(request, "postgresql")
    for name, value in program.settings("default").items():
        monkeypatch.setenv(name, value)
    browser = (await start()).browser()
    assert "tocsin inbox migrate" in (await browser.get("/inbox")).text
    assert (await browser.get("/ui/inbox")).text == ""
    await program.cli("migrate")
    assert "No dead rows" in (await browser.get("/inbox")).text
    for row_id, namespace, timer_id in (("1", "orders", "one"), ("2", "orders", HOSTILE), ("3", "shop", "three")):
        program.execute(
            "INSERT INTO tocsin_outbox VALUES (%s, %s, %s, '{}', 1800000000000000, 0, %s)",
            row_id,
            namespace,
            timer_id,
            f"NAMESPACE_NOT_FOUND: {HOSTILE}",
        )
    shown = (await browser.get("/inbox")).text
    assert 'aria-label="Replay one"' in shown and "2027-01-15" in shown
    assert HOSTILE not in shown and "&lt;img" in shown
    assert '<a href="/inbox" aria-current="page"' in shown and 'hx-get="/ui/inbox"' in shown
    scoped = (await browser.get("/inbox?namespace=shop")).text
    assert "three" in scoped and 'aria-label="Replay one"' not in scoped

    answer = await browser.post("/inbox/delete", {"id": "1", "namespace": ""})
    assert answer.status_code == 200 and "Delete this dead row?" in answer.text
    assert len(program.left()) == 3
    answer = await browser.post("/inbox/delete", {"id": "1", "namespace": "", "confirmed": "yes"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/inbox?deleted=1")
    assert "1 row deleted" in (await browser.get(answer.headers["location"])).text
    assert program.left() == [HOSTILE, "three"]
    answer = await browser.post("/inbox/delete", {"namespace": "orders"})
    assert "All dead rows of orders are" in re.sub(r"\s+", " ", answer.text)
    # What is replayed is refused again, since these namespaces are not among those of the inbox.
    answer = await browser.post("/inbox/replay", {"namespace": "shop"})
    assert answer.headers["location"] == "/inbox?namespace=shop&replayed=1"
    answer = await browser.post("/inbox/replay", {"id": "2", "namespace": ""})
    assert answer.headers["location"] == "/inbox?replayed=1"
    answer = await browser.post("/inbox/delete", {"namespace": "orders", "confirmed": "yes"})
    assert answer.status_code == 303 and "namespace=orders" in answer.headers["location"]
    trail = (await browser.get("/audit")).text
    assert "Replayed dead rows of" in trail and "Deleted dead rows of" in trail


async def test_a_form_changes_all_rows_only_if_it_has_all(
    start: Start, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    for row_id, timer_id in (("", "empty"), ("2", "two"), ("3", "three")):
        program.execute("INSERT INTO tocsin_outbox VALUES (%s, 'orders', %s, '{}', 0, 0, 'X: y')", row_id, timer_id)
    for name, value in program.settings("default").items():
        monkeypatch.setenv(name, value)
    browser = (await start()).browser()
    for change in ("replay", "delete"):
        answer = await browser.post(f"/inbox/{change}", {"namespace": "", "confirmed": "yes"})
        assert answer.status_code == 400 and "all=yes" in answer.text
    answer = await browser.post("/inbox/delete", {"id": "", "namespace": ""})
    assert "Delete this dead row?" in answer.text and 'name="id" value=""' in answer.text
    answer = await browser.post("/inbox/delete", {"id": "", "namespace": "", "confirmed": "yes"})
    assert answer.headers["location"] == "/inbox?deleted=1"
    assert program.left() == ["two", "three"]
    # One field for each row's buttons, and one for those of all.
    shown = (await browser.get("/inbox")).text
    assert shown.count('name="id" value="2"') == shown.count('name="all" value="yes"') == 2
    answer = await browser.post("/inbox/delete", {"all": "yes", "namespace": ""})
    assert "Delete all dead rows?" in answer.text and 'name="all" value="yes"' in answer.text
    answer = await browser.post("/inbox/delete", {"all": "yes", "namespace": "", "confirmed": "yes"})
    assert answer.headers["location"] == "/inbox?deleted=2"
    assert program.left() == []


async def test_the_number_in_the_rail_is_waited_for_and_gone_while_the_database_does_not_answer(
    start: Start, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    for row_id in ("1", "2"):
        program.execute("INSERT INTO tocsin_outbox VALUES (%s, 'orders', 't', '{}', 0, 0, 'X: y')", row_id)
    for name, value in program.settings("default").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(inbox, "_INTERVAL_S", 0.0)
    monkeypatch.setattr(inbox, "_WAIT_S", PATIENCE_S)
    browser = (await start()).browser()
    assert (await browser.get("/ui/inbox")).text == "2"
    with program.connected() as holding:
        # The server has a transaction of its own, on this event loop.
        await asyncio.to_thread(holding.cursor().execute, "LOCK TABLE tocsin_outbox IN ACCESS EXCLUSIVE MODE")
        with monkeypatch.context() as impatient:
            impatient.setattr(inbox, "_WAIT_S", 0.0)
            assert (await browser.get("/ui/inbox")).text == ""
        asked = asyncio.ensure_future(browser.get("/ui/inbox"))
        # Longer than pages wait for other numbers.
        assert (await asyncio.wait([asked], timeout=0.3))[1] == {asked}
        holding.commit()
        assert (await asked).text == "2"
    await asyncio.to_thread(program.execute, "DROP TABLE tocsin_outbox")
    assert (await browser.get("/ui/inbox")).text == ""


async def test_only_admins_see_the_inbox_and_only_where_there_is_one(
    tmp_path: Path, start: Start, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = (await start()).browser()
    assert 'href="/inbox"' not in (await browser.get("/timers")).text
    assert (await browser.get("/inbox")).status_code == 404
    program, _ = await new_program(request, "postgresql")
    for name, value in program.settings("default").items():
        monkeypatch.setenv(name, value)
    keys = {"tk_admin": (Role.ADMIN, ()), "tk_write": (Role.WRITE, ()), "tk_some": (Role.ADMIN, ("default",))}
    node = await start(keys, host="0.0.0.0", store=None, data_dir=tmp_path / "keyed")
    for secret, status in (("tk_admin", 200), ("tk_write", 403), ("tk_some", 403)):
        browser = node.browser()
        await browser.sign_in(secret)
        assert ('href="/inbox"' in (await browser.get("/timers")).text) == (status == 200), secret
        assert (await browser.get("/inbox")).status_code == status, secret
        assert (await browser.get("/ui/inbox")).status_code == status, secret
        for change in ("replay", "delete"):
            answer = await browser.post(f"/inbox/{change}", {"all": "yes", "confirmed": "yes"})
            # The table is missing: whoever may ask learns that.
            assert answer.status_code == (503 if status == 200 else 403), (secret, change)
