"""The page Now of a real node: what it claims, and what it leaves open."""

from __future__ import annotations

import pytest

from tests.integration.pages.conftest import Node
from tests.support.cluster import until
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
