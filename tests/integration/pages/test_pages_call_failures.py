"""Failed service calls on the pages: beside those of timers, as a group, sent again one by one or by a job, dismissed."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.integration.pages.conftest import Browser, Node, Start
from tests.integration.pages.test_pages_jobs import ended
from tocsin.model.ids import Uuid7Source

new_id = Uuid7Source(lambda: 1_800_000_000_000_000)


async def submitted(browser: Browser, tenant: str, number: int, url: str, **more: Any) -> list[str]:
    """The ids of new calls."""
    body = {"name": "Charge order 17", "requestSpec": {"method": "POST", "url": url, "body": {"order": 17}}, **more}
    path = f"/api/v1/tenants/{tenant}/service-calls"
    return [(await browser.client.post(path, json=body)).json()["serviceCallId"] for _ in range(number)]


async def failed(browser: Browser, count: int, **scope: str) -> Any:
    """The failures, once there are so many."""
    while True:
        found = (await browser.client.post("/api/v1/failures/list", json=scope)).json()
        if found["count"] == count:
            return found
        await asyncio.sleep(0.02)


async def test_groups_of_calls_stand_beside_those_of_timers(node: Node) -> None:
    browser, tenant, other = node.browser(), new_id(), new_id()
    # The node itself refuses it.
    gone = f"{node.server.url}/gone"
    ids = await submitted(browser, tenant, 3, gone, tags=["eu"])
    (foreign,) = await submitted(browser, other, 1, gone)
    await browser.create("t", callbackUrl=gone, delay="0s", retryPolicy={"maxAttempts": 1})
    group = (await failed(browser, 3, tenant=tenant))["groups"][0]
    await failed(browser, 1, tenant=other)
    await failed(browser, 1, namespace="default")
    page = (await browser.get("/failures")).text
    assert page.count('class="incident"') == 3
    assert page.count("Service calls of") == 2
    assert (await browser.get("/failures", params={"namespace": "default"})).text.count('class="incident"') == 1
    of_tenant = (await browser.get("/failures", params={"tenant": tenant})).text
    assert (of_tenant.count('class="incident"'), "Service calls of" in of_tenant) == (1, True)
    assert (await browser.get("/ui/failures")).text == "5"

    query = {name: group[name] for name in ("tenant", "destination", "error", "kind")}
    shown = (await browser.get("/failures/calls/group", params=query)).text
    for text in (group["error"], "Charge order 17", "Service calls", "Send one", "Replay 3", '{"order":17}'):
        assert text.replace('"', "&#34;") in shown or text in shown, text
    # On phones, whole ids would leave no room for the rest.
    assert all(f' title="{each}">…{each[-8:]}</a>' in shown for each in ids)
    exported = (await browser.get("/failures/calls/export.csv", params=query)).text.splitlines()
    assert (len(exported), exported[0].split(",")[2]) == (4, "tenant")

    # The newest one is sent again, and its page shows what becomes of it.
    sent = (await browser.post("/failures/calls/replay", {**query, "one": "yes"})).headers["location"]
    assert (await browser.get(sent)).status_code == 200
    await failed(browser, 3, tenant=tenant)
    begun = await browser.post("/failures/calls/replay", {**query, "rate": "5000"})
    assert begun.status_code == 303, begun.text
    job = await ended(browser, begun.headers["location"])
    assert (job["tenant"], job["changed"]) == (tenant, 3)
    assert f"Replay failures of tenant {tenant}" in (await browser.get(begun.headers["location"])).text
    await failed(browser, 3, tenant=tenant)

    # What the list of failed calls offers begins with a dry run.
    listed = (await browser.get("/calls", params={"tenant": tenant, "view": "failed"})).text
    assert "Retry all that match…" in listed
    narrowed = (await browser.get("/calls", params={"tenant": tenant, "view": "failed", "q": "Charge"})).text
    assert 'disabled title="Remove the search text' in narrowed
    refused = await browser.post(f"/calls/retry/matching?tenant={tenant}&view=failed&q=Charge", {})
    assert refused.status_code == 400
    dry = await browser.post(f"/calls/retry/matching?tenant={tenant}&view=failed&tag=eu", {})
    assert (await ended(browser, dry.headers["location"]))["matched"] == 3
    again = (await browser.post(f"{dry.headers['location']}/begin", {})).headers["location"]
    assert (await ended(browser, again))["changed"] == 3
    await failed(browser, 3, tenant=tenant)

    asked = await browser.post("/failures/calls/dismiss", query)
    assert "The calls stay failed" in asked.text
    done = await browser.post("/failures/calls/dismiss", {**query, "confirmed": "yes"})
    assert "dismissed=3" in done.headers["location"]
    assert (await failed(browser, 0, tenant=tenant))["groups"] == []
    assert (await failed(browser, 1, tenant=other))["groups"][0]["newest"][0]["id"] == foreign


async def test_page_without_the_agent_has_the_failures_of_timers(start: Start) -> None:
    node = await start(agent_enabled=False)
    browser = node.browser()
    await browser.create("t", callbackUrl=f"{node.server.url}/gone", delay="0s", retryPolicy={"maxAttempts": 1})
    await failed(browser, 1, namespace="default")
    page = await browser.get("/failures")
    assert (page.status_code, page.text.count('class="incident"')) == (200, 1)
    assert (await browser.get("/failures/calls/group", params={"tenant": new_id()})).status_code == 404
