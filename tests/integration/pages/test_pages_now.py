"""The page Now of a real node: what it claims, and what it leaves open."""

from __future__ import annotations

import pytest

from tests.integration.pages.conftest import Node
from tests.support.cluster import until
from tocsin.timers import monitors
from tocsin.timers.engine.dispatcher import Dispatcher
from tocsin.timers.engine.placement import ObservedPlacement


async def test_a_shard_that_nobody_owns_is_named(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, owner = node.browser(), ObservedPlacement.owner
    await browser.create("t")
    assert "Quiet: nothing fired" in (await browser.get("/")).text
    monkeypatch.setattr(
        ObservedPlacement, "owner", lambda self, shard_id: None if shard_id == 3 else owner(self, shard_id)
    )
    page = (await browser.get("/")).text
    assert "Nothing fired in the last minute. One shard has no owner." in page
    assert "A shard has no owner" in page
    assert "Quiet" not in page and "Nothing needs attention" not in page and "overdue" not in page


async def test_a_schedule_without_its_credential_is_named(node: Node) -> None:
    browser, name = node.browser(), {"namespace": "default", "name": "api"}
    created = await browser.post("/credentials/new", {**name, "type": "bearer", "token": "t", "hosts": ""})
    assert created.status_code == 303
    schedule = {"namespace": "default", "id": "nightly"}
    fields = {**schedule, "callbackUrl": "http://127.0.0.1:9/", "every": "1d", "credential": "api"}
    answer = await browser.client.post("/api/v1/schedules/create", json=fields)
    assert answer.status_code == 200, answer.text
    assert (await browser.post("/credentials/delete", name)).status_code == 303
    assert (await browser.post("/schedules/trigger", schedule)).status_code == 303

    async def suspended() -> bool:
        return "The credential api can’t be sent" in (await browser.get("/schedules/default/nightly")).text

    await until(suspended)
    page = (await browser.get("/")).text
    assert "A schedule is suspended" in page and "Schedules are suspended: credentials" in page
    assert "Nothing needs attention" not in page and "/schedules/default/nightly" in page


async def test_a_monitor_that_no_node_looks_at_is_not_called_on_time(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, name = node.browser(), {"namespace": "default", "id": "backup"}
    put = await browser.client.post("/api/v1/monitors/put", json={**name, "every": "1s", "grace": "1s"})
    assert put.status_code == 200
    # Nothing that is due is acted on any more.
    monkeypatch.setattr(Dispatcher, "dispatch_due", lambda *_: None)
    monkeypatch.setattr(monitors, "_UNWATCHED_US", 0)
    assert (await browser.client.post("/api/v1/monitors/ping", json=name)).status_code == 200

    async def unknown() -> bool:
        page = (await browser.get("/monitors?peek=default/backup")).text
        return ">unknown<" in page and "No node has looked at it for" in page

    assert not await unknown()
    await until(unknown)
    shown = (await browser.client.post("/api/v1/monitors/get", json=name)).json()["monitor"]
    assert (shown["state"], shown["unwatchedSince"]) == ("up", shown["deadline"])
    assert "Its last known state: on time" in (await browser.get("/monitors/default/backup")).text
    page = (await browser.get("/")).text
    assert "1 monitor is not watched" in page and "The monitor backup is not watched" in page
    assert "no monitor is late" not in page
