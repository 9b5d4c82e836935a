"""All waiting calls that a list shows are deleted by a job: with the list's filters, and after a question."""

from __future__ import annotations

import pytest

from tests.integration.pages.conftest import Browser, Node
from tests.integration.pages.test_pages_call_failures import new_id, submitted
from tests.integration.pages.test_pages_jobs import ended

NOWHERE = "http://127.0.0.1:9/"
LATER = "2040-01-01T00:00:00Z"


async def asked(browser: Browser, query: str) -> str:
    """The path of the dry run for what a list shows."""
    answer = await browser.post(f"/calls/delete/matching?{query}", {})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


async def test_job_deletes_what_the_list_shows(node: Node) -> None:
    browser, tenant = node.browser(), new_id()
    (first, *_) = await submitted(browser, tenant, 3, NOWHERE, dueAt=LATER, tags=["eu"])
    await submitted(browser, tenant, 1, NOWHERE, dueAt=LATER, tags=["eu", "star"], name="100% mail")
    await submitted(browser, new_id(), 1, NOWHERE, dueAt=LATER, tags=["eu"])
    of_tenant = f"tenant={tenant}&view=scheduled"
    shown = (await browser.get(f"/calls?{of_tenant}&tag=eu&q=Charge")).text
    assert f'formaction="/calls/delete/matching?tenant={tenant}&amp;view=scheduled&amp;q=Charge&amp;tag=eu"' in shown
    for query, number in (
        (of_tenant, 4),
        (f"{of_tenant}&tag=eu&q=CHARGE", 3),
        (f"{of_tenant}&q={first}", 1),
        (f"{of_tenant}&q=%25", 1),
        (f"{of_tenant}&starred=yes", 1),
        (f"{of_tenant}&submitted=last-1h", 4),
        (f"{of_tenant}&from=2020-01-01T00:00:00Z&to=2039-01-01T00:00:00Z", 4),
        (f"{of_tenant}&to=2020-01-01T00:00:00Z", 0),
        (f"tenant={tenant}&view=retrying", 0),
        ("view=scheduled", 5),
    ):
        assert (await ended(browser, await asked(browser, query)))["matched"] == number, query
    counted = await asked(browser, f"{of_tenant}&tag=eu&q=charge&from=2020-01-01T00:00:00Z")
    await ended(browser, counted)
    page = (await browser.get(counted)).text
    for text in (
        f"Delete waiting calls of tenant {tenant}",
        "Delete 3 calls",
        "are not sent",
        "Name has",
        "Submitted from",
    ):
        assert text in page, text
    # What comes between the count and the change stays.
    await submitted(browser, tenant, 1, NOWHERE, dueAt=LATER, tags=["eu"])
    begun = (await browser.post(f"{counted}/begin", {})).headers["location"]
    job = await ended(browser, begun)
    assert (job["state"], job["changed"], job["tenant"]) == ("completed", 3, tenant)
    left = await asked(browser, of_tenant)
    assert (await ended(browser, left))["matched"] == 2
    assert f"Delete waiting calls of tenant {tenant}" in (await browser.get("/jobs")).text


@pytest.mark.parametrize("query", ["view=failed", "view=succeeded", "view=all", "", "view=scheduled&from=soon"])
async def test_list_of_other_calls_begins_no_job(node: Node, query: str) -> None:
    browser = node.browser()
    answer = await browser.post(f"/calls/delete/matching?tenant={new_id()}&{query}", {})
    assert answer.status_code == 400
    assert (await browser.client.post("/api/v1/jobs/list", json={})).json()["jobs"] == []
