"""Somebody's first minute: a timer that fires at them, a tenant that is made, and a word about keys."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.async_api import expect

from tests.e2e.browser import Window
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_empty_server_fires_one_at_you(shown: Window, server: ServerProcess) -> None:
    page = shown.page
    await shown.go("/")
    await shown.picture("first")
    assert await shown.faults() == []
    await page.get_by_role("button", name="Fire one at me in 5 seconds").click()
    await expect(page.get_by_role("heading", name="Your first timer")).to_be_visible()
    await shown.picture("first-waits")
    url = page.url
    await expect(page.locator("#welcome")).to_contain_text("It arrived")
    await expect(page.locator("#welcome")).to_contain_text('"hello": "from Tocsin"')
    await expect(page.locator("#welcome")).to_contain_text("webhook-id: ")
    await shown.picture("first-arrived")
    assert await shown.faults() == []
    await page.get_by_role("link", name="See this timer").click()
    await expect(page.locator(".lead .state")).to_have_text("done")
    await shown.go("/")
    await expect(page.locator("#sentence")).to_be_visible()
    await expect(page.get_by_role("button", name="Fire one at me")).to_have_count(0)
    # The receiver takes what comes under a token that it made, and little of that.
    async with httpx.AsyncClient(base_url=server.url) as client:
        assert (await client.post("/welcome/guessed", content=b"{}")).status_code == 404
        assert (await client.post(url, content=b"x" * 20_000)).status_code == 413
        assert (await client.post(url, content=b"{}", headers={"host": "evil.example"})).status_code == 421


async def test_calls_begin_with_a_tenant_and_pages_say_that_no_key_is_asked_for(shown: Window) -> None:
    page = shown.page
    for path in ("/cluster", "/namespaces", "/login"):
        await shown.go(path)
        await expect(page.locator(".notice.suspended")).to_contain_text("API keys are not asked for")
    await shown.go("/calls")
    link = page.get_by_role("link", name=re.compile("^[0-9a-f]{8}-[0-9a-f]{4}-7"))
    tenant = await link.inner_text()
    await shown.picture("first-calls")
    assert await shown.faults() == []
    await page.get_by_role("link", name="Make a call").click()
    await expect(page.get_by_label("Tenant")).to_have_value(tenant)
