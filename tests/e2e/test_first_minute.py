"""The first minute of a new user: a test timer, a first timer, a new tenant, and the notice about API keys."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.async_api import expect

from tests.e2e.browser import Window
from tests.support.calls import Api, Inbox
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_empty_server_fires_a_test_timer(shown: Window, server: ServerProcess) -> None:
    page = shown.page
    await shown.go("/")
    await shown.picture("first")
    assert await shown.faults() == []
    await page.get_by_role("button", name="Fire a test timer in 5 seconds").click()
    await expect(page.get_by_role("heading", name="Your first timer")).to_be_visible()
    await shown.picture("first-waits")
    url = page.url
    await expect(page.locator("#welcome")).to_contain_text("The request arrived")
    await expect(page.locator("#welcome")).to_contain_text('"hello": "from Tocsin"')
    await expect(page.locator("#welcome")).to_contain_text("webhook-id: ")
    await shown.picture("first-arrived")
    assert await shown.faults() == []
    await page.get_by_role("link", name="Show this timer").click()
    await expect(page.locator(".lead .state")).to_have_text("completed")
    await shown.go("/")
    await expect(page.locator("#sentence")).to_be_visible()
    await expect(page.get_by_role("button", name="Fire a test timer")).to_have_count(0)
    # The receiver accepts small requests under its own tokens only.
    async with httpx.AsyncClient(base_url=server.url) as client:
        assert (await client.post("/welcome/guessed", content=b"{}")).status_code == 404
        assert (await client.post(url, content=b"x" * 20_000)).status_code == 413
        assert (await client.post(url, content=b"{}", headers={"host": "evil.example"})).status_code == 421


async def test_first_timer_is_created_and_fires(shown: Window, inbox: tuple[Inbox, str], api: Api) -> None:
    calls, url = inbox
    page = shown.page
    await shown.go("/")
    await expect(page.locator("#sentence")).to_contain_text("Quiet")
    await page.get_by_role("link", name="Timers").first.click()
    await expect(page.get_by_role("heading", name="No pending timers")).to_be_visible()
    await page.get_by_role("link", name="New timer").first.click()
    await shown.arrived("New timer")
    await page.get_by_label("URL", exact=True).fill(url)
    await shown.unfold("Id")
    await page.get_by_label("Id", exact=True).fill("first")
    await page.get_by_label("Time from now").fill("1m")
    await expect(page.locator("#equivalent")).to_contain_text('"delay": "1m"')
    await expect(page.locator("#equivalent")).to_contain_text("tocsin timers create")
    async with shown.stopped_clock():
        await page.get_by_role("button", name="Create timer").click()
        await expect(page.get_by_text("Timer created.")).to_be_visible()
        await expect(page).not_to_have_url(re.compile("notice="))
    await expect(page.locator(".lead .relative-time")).to_have_text(re.compile(r"in \d+ s"))
    await shown.picture("journey-counting")
    # The title shows it for some seconds only.
    await page.evaluate(
        "void new MutationObserver(() => { window.titled ||= document.title.startsWith('● completed · ') })"
        ".observe(document.querySelector('title'), {childList: true})"
    )
    await api("timers/update", namespace="default", timerId="first", delay="1s")
    await calls.count(1)
    await page.wait_for_function("() => window.titled")
    await expect(page.locator(".lead .state")).to_have_text("completed")
    await expect(page.locator(".line")).to_contain_text("Response 200")
    # The notice of the action disappears when the timer changes.
    await expect(page.locator("[data-action-notice]")).to_have_count(0)
    await expect(page.get_by_role("button", name="Replay", exact=True)).to_be_visible()


async def test_first_call_needs_a_tenant_and_pages_show_that_keys_are_not_required(shown: Window) -> None:
    page = shown.page
    for path in ("/nodes", "/keys", "/login"):
        await shown.go(path)
        await expect(page.locator(".notice.suspended")).to_contain_text("API keys are not required")
    await shown.go("/calls")
    await shown.picture("first-calls")
    assert await shown.faults() == []
    await page.get_by_role("link", name="New call").first.click()
    # Nobody has to think of a tenant: there is one, ready to use.
    await expect(page.locator("input[name='tenant']")).to_have_value(re.compile("^[0-9a-f]{8}-[0-9a-f]{4}-7"))
