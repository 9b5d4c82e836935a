"""From red to zero: failures of a repaired destination are found from Now, one is sent again, then all of them."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.e2e.browser import Window
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.timeout(400)
async def test_failures_are_found_from_now_and_replayed_until_none_is_left(shown: Window, api: Api) -> None:
    page, inbox = shown.page, Inbox(default=(500, b'{"error": "no funds"}'))
    async with Receiver(inbox) as receiver:
        once = {"maxAttempts": 1}
        timers = [
            {"namespace": api.namespace, "id": f"t{i}", "delay": "0s", "callbackUrl": receiver.url, "retryPolicy": once}
            for i in range(60)
        ]
        assert (await api("timers/batch/create", timers=timers))[0] == 200
        await inbox.count(60)
        await shown.go(f"/?namespace={api.namespace}")
        row = page.locator(".incident", has_text="HTTP 500")
        await expect(row).to_contain_text("60")
        await row.get_by_role("link").last.click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("HTTP 500")
        await expect(page.get_by_text("no funds")).to_be_visible()
        inbox.default = (200, b"")
        await page.get_by_role("button", name="Send one").click()
        await expect(page.locator(".lead .state")).to_have_text("completed")
        await page.go_back()
        await page.reload()
        await page.get_by_role("button", name="Replay 59").click()
        await expect(page.locator("#job .state").first).to_have_text("completed")
        await expect(page.locator("#job")).to_contain_text("59")
        calls = await inbox.count(120)
        assert {call.headers["webhook-id"] for call in calls[:60]} == {
            call.headers["webhook-id"] for call in calls[60:]
        }
        # Neither the verdict nor a row states what is in order again.
        await shown.go(f"/?namespace={api.namespace}")
        # What failed in a minute is known to be dealt with some seconds after that minute.
        await expect(page.locator(".incident", has_text="HTTP 500")).to_have_count(0, timeout=3_000 * PATIENCE_S)
        await expect(page.locator("#sentence")).not_to_contain_text("failing")
        await shown.go(f"/failures?namespace={api.namespace}")
        await expect(page.get_by_text("HTTP 500")).to_have_count(0)


async def test_a_failing_destination_of_any_namespace_is_two_clicks_away_from_now(shown: Window, api: Api) -> None:
    page = shown.page
    refusing, well = Inbox(default=(500, b'{"error": "acquirer pool exhausted"}')), Inbox()
    async with Receiver(refusing) as psp, Receiver(well) as wms:
        once = {"maxAttempts": 1}
        for namespace, url in (("billing", psp.url), ("fulfilment", wms.url)):
            assert (await api("namespaces/create", name=namespace))[0] == 200
            await api.create("t", url, namespace=namespace, retryPolicy=once)
        await api.settled("t", "failed", namespace="billing")
        await shown.go("/")
        await expect(page.locator("#sentence")).to_contain_text("ne destination")
        row = page.locator(".incident", has_text="HTTP 500")
        await expect(row).to_contain_text(f"billing, {psp.url.removeprefix('http://').removesuffix('/hook')}.")
        # The first one shows what it was sent and what it answered; the second one the first request that failed.
        await row.get_by_role("link", name="Show").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("HTTP 500 · ")
        await expect(page.get_by_text("acquirer pool exhausted")).to_be_visible()
        await page.locator("#main tbody").get_by_role("link", name="t", exact=True).click()
        await expect(page.locator(".lead .state")).to_have_text("failed")
        await expect(page.locator("#timer")).to_contain_text(psp.url)
