"""The pages of jobs and failures: from the form by a dry run to the change, and where a failure leads."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from tests.integration.pages.conftest import Browser, Node, Start

NOWHERE = "http://127.0.0.1:9/"
FORM = {"namespace": "default", "of": "timers", "action": "cancel", "q": "a", "rate": "5000"}


async def ended(browser: Browser, path: str) -> dict[str, Any]:
    """The job whose page a form has led to, once it has ended."""
    while True:
        answer = await browser.client.post("/api/v1/jobs/get", json={"jobId": path.rsplit("/", 1)[-1]})
        job: dict[str, Any] = answer.json()["job"]
        if "endedAt" in job:
            return job
        await asyncio.sleep(0.02)


async def test_form_counts_first_and_then_changes_what_was_counted(node: Node) -> None:
    browser = node.browser()
    for timer_id in ("a1", "a2", "b"):
        await browser.create(timer_id)
    shown = await browser.post("/jobs/new", FORM)
    assert shown.status_code == 303
    dry = shown.headers["location"]
    assert (await ended(browser, dry))["matched"] == 2
    page = (await browser.get(dry)).text
    assert "Cancel 2 timers" in page
    # What comes between the count and the change stays.
    await browser.create("a3")
    begun = (await browser.post(f"{dry}/begin", {})).headers["location"]
    job = await ended(browser, begun)
    assert (job["state"], job["changed"]) == ("completed", 2)
    # Sent twice, it is one job; and what is no dry run begins nothing.
    assert (await browser.post(f"{dry}/begin", {})).headers["location"] == begun
    assert "problem=" in (await browser.post(f"{begun}/begin", {})).headers["location"]
    assert len((await browser.client.post("/api/v1/jobs/list", json={})).json()["jobs"]) == 2
    left = (
        await browser.client.post("/api/v1/timers/list", json={"namespace": "default", "status": ["pending"]})
    ).json()
    assert sorted(timer["id"] for timer in left["timers"]) == ["a3", "b"]


async def test_url_with_a_secret_that_was_counted_can_be_set(start: Start, tmp_path: Path) -> None:
    """The job's record has the secret encrypted, under its own id."""
    node = await start(store=f"sqlite:///{tmp_path}/tocsin.db")
    browser = node.browser()
    await browser.create("a1")
    url = "http://127.0.0.1:9/hooks?token=s3cret"
    shown = await browser.post("/jobs/new", {**FORM, "action": "setUrl", "url": url})
    dry = shown.headers["location"]
    assert (await ended(browser, dry))["matched"] == 1
    assert node.server.engine is not None
    record = await node.server.engine.context.store.record("job", dry.rsplit("/", 1)[-1])
    assert record is not None
    assert ("token=tsl1." in record.value, "s3cret" in record.value) == (True, False)
    begun = (await browser.post(f"{dry}/begin", {})).headers["location"]
    assert (await ended(browser, begun))["changed"] == 1
    assert (await browser.post(f"{dry}/begin", {})).headers["location"] == begun
    sent = {"namespace": "default", "timerId": "a1"}
    assert "hooks" in (await browser.client.post("/api/v1/timers/get", json=sent)).json()["callbackUrl"]


async def test_wrong_form_comes_back_with_its_problem(node: Node) -> None:
    browser = node.browser()
    answer = await browser.post("/jobs/new", {**FORM, "action": "shift", "shift_by": "soon"})
    assert answer.status_code == 400
    assert 'value="soon"' in answer.text
    answer = await browser.post("/jobs/new", {**FORM, "q": ""})
    assert answer.status_code == 400
    assert "is empty" in answer.text


async def test_failed_notification_leads_to_what_it_is_about(node: Node) -> None:
    browser = node.browser()
    once = {"maxAttempts": 1}
    gone = {
        "callbackUrl": f"{node.server.url}/none",
        "retryPolicy": once,
        "onFailure": {"url": f"{node.server.url}/gone"},
    }
    await browser.create("t", **{**gone, "delay": "0s"})
    schedule = {"namespace": "default", "id": "s", "every": "1h", **gone}
    assert (await browser.client.post("/api/v1/schedules/create", json=schedule)).status_code == 200
    triggered = {"namespace": "default", "scheduleId": "s"}
    assert (await browser.client.post("/api/v1/schedules/trigger", json=triggered)).status_code == 200
    while True:
        found = (await browser.client.post("/api/v1/failures/list", json={"namespace": "default"})).json()
        if found["count"] == 4:
            break
        await asyncio.sleep(0.02)
    (notes,) = [group for group in found["groups"] if group["kind"] == "notification"]
    query = {name: notes[name] for name in ("namespace", "destination", "error", "kind")}
    page = (await browser.get("/failures/group", params=query)).text
    paths = sorted(re.findall(r'<th scope="row" class="mono"><a href="([^"]+)"', page))
    assert paths == ["/schedules/default/s", "/timers/default/t"]
    assert [(await browser.get(path)).status_code for path in paths] == [200, 200]
