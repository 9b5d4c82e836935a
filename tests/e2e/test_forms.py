"""The form of a timer asks instead of guessing, says what a date comes to, and loses nothing that was typed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.e2e.browser import Window, window
from tests.support.calls import Api
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "http://127.0.0.1:9/hook"
ASKED = "A timer with this id exists"


async def fill(shown: Window, timer_id: str, url: str = URL) -> None:
    """A new form with its two required fields."""
    await shown.go("/timers/new")
    await shown.page.get_by_role("textbox", name="URL").fill(url)
    await shown.page.get_by_role("textbox", name="Id", exact=True).fill(timer_id)


async def create(shown: Window) -> None:
    await shown.page.get_by_role("button", name="Create the timer").click()


@asynccontextmanager
async def unanswered(page: Page, pattern: str) -> AsyncIterator[None]:
    """While it lasts, the server gets these requests and the page gets no answer."""

    async def swallow(route: Route) -> None:
        await route.fetch(max_redirects=0)
        await route.abort()

    await page.route(pattern, swallow)
    yield
    await page.unroute_all()


async def test_create_asks_before_it_replaces_a_timer(
    shown: Window, browser: Browser, server: ServerProcess, api: Api
) -> None:
    page = shown.page
    before = await api.create(
        "order-17", URL, executeAt="2040-07-01T10:00:00Z", headers={"Authorization": "Bearer s3cret"}
    )
    await fill(shown, "order-17")
    await page.locator(".cm-content").click()
    await page.keyboard.type('{"a": 1}')
    await create(shown)
    asks = page.locator("#asks")
    await expect(asks.get_by_role("heading", name=ASKED)).to_be_visible()
    await expect(asks).to_be_focused()
    await expect(asks).to_contain_text("2040-07-01 12:00:00")
    await shown.picture("form-exists")
    assert await shown.faults() == []
    assert await api.get("order-17") == before
    # What was typed is there, and can be created under another id at once.
    await expect(page.locator(".cm-line").first).to_have_text('{"a": 1}')
    await asks.get_by_role("button", name="Create it as order-17-copy").click()
    await expect(page.locator("h1")).to_have_text("order-17-copy")
    assert (await api.get("order-17-copy"))["payload"] == {"a": 1}
    assert await api.get("order-17") == before
    # A copy gets an id of its own, and the secrets that the form doesn't show.
    await shown.go("/timers/new?namespace=default&like=order-17")
    await expect(page.get_by_role("textbox", name="Id", exact=True)).to_have_value("order-17-copy-2")
    await create(shown)
    await expect(page.locator("h1")).to_have_text("order-17-copy-2")
    async with window(browser, server.url, scripts=False) as plain:
        await fill(plain, "order-17", f"{URL}/2")
        # Changed since it was shown: asked again.
        await create(plain)
        await expect(plain.page.get_by_role("heading", name=ASKED)).to_be_visible()
        await api("timers/update", namespace="default", timerId="order-17", tags=["changed"])
        await plain.page.get_by_role("button", name="Replace it").click()
        await expect(plain.page.get_by_role("heading", name=ASKED)).to_be_visible()
        await plain.page.get_by_role("button", name="Replace it").click()
        await expect(plain.page.locator("[data-said]")).to_contain_text("Replaced")
        assert (await api.get("order-17"))["callbackUrl"] == f"{URL}/2"
        # What has finished stays until its retention ends.
        await api("timers/delete", namespace="default", timerId="order-17")
        await fill(plain, "order-17")
        await create(plain)
        await expect(plain.page.get_by_role("heading", name=ASKED)).to_be_visible()
        await expect(plain.page.get_by_role("button", name="Replace it")).to_have_count(0)


async def test_a_date_is_what_the_form_says_it_is(shown: Window, api: Api) -> None:
    page = shown.page
    await fill(shown, "t")
    at, note = page.get_by_label("Date and time"), page.locator("[data-note-of='at']")
    equivalent = page.locator("#equivalent")
    # Typed at once: no change has been reported to the page yet.
    await at.focus()
    await at.fill("2040-07-01T12:00:00")
    await expect(equivalent).to_contain_text('"executeAt": "2040-07-01T10:00:00Z"')
    await at.fill("2027-03-28T02:30:00")
    await expect(note).to_contain_text("02:30 does not exist on that day, because clocks go forward: it fires at 03:30")
    await expect(equivalent).to_contain_text('"executeAt": "2027-03-28T01:30:00Z"')
    await at.fill("2027-10-31T02:30:00")
    await expect(note).to_contain_text("02:30 comes twice on that day")
    await expect(equivalent).to_contain_text('"executeAt": "2027-10-31T00:30:00Z"')
    await at.fill("2020-01-01T00:00:00")
    await expect(note).to_contain_text("it fires at once")
    await shown.picture("form-past-note")
    await create(shown)
    await expect(page.get_by_role("heading", name="That time has passed")).to_be_visible()
    await shown.picture("form-past")
    await expect(at).to_have_value(re.compile("2020-01-01T00:00"))
    await page.get_by_role("button", name="Create it, to fire at once").click()
    await expect(page.locator("h1")).to_have_text("t")
    # Moving one there is refused with the mend.
    await api.create("later", URL, delay="1h")
    await shown.go("/timers/default/later")
    await page.get_by_text("Reschedule").click()
    await page.locator(".sheet input[name='at']").fill("2020-01-01T00:00:00")
    await page.get_by_role("button", name="Move").click()
    await expect(page.get_by_role("alert")).to_contain_text("has passed; use “Fire now”")


async def test_retries_are_on_and_shown_as_instants(shown: Window, api: Api) -> None:
    page = shown.page
    await fill(shown, "t")
    await page.get_by_label("Time from now").fill("1h")
    plan = page.locator("#plan")
    await expect(page.get_by_label("Retry, as usual")).to_be_checked()
    await expect(plan).to_contain_text("10 attempts over about 8 h 33 min")
    await expect(plan.locator("li")).to_have_count(10)
    await expect(plan.locator("li").nth(2)).to_contain_text("+20 s")
    await page.get_by_label("Never retry").check()
    await expect(plan).to_contain_text("One attempt, whatever comes of it.")
    await expect(page.locator("#equivalent")).to_contain_text("--retry-attempts 1")
    await page.get_by_label("Retry, with a policy of its own").check()
    await page.get_by_label("Attempts in all").fill("3")
    await expect(plan).to_contain_text("3 attempts over about 20 s")
    await shown.picture("form-retries")
    await create(shown)
    await expect(page.locator("h1")).to_have_text("t")
    assert (await api.get("t"))["retryPolicy"]["maxAttempts"] == 3


async def test_a_lost_server_loses_nothing_that_was_typed(shown: Window, server: ServerProcess, api: Api) -> None:
    page = shown.page
    await api.create("old", URL, delay="1h")
    await fill(shown, "t")
    await page.locator(".cm-content").click()
    await page.keyboard.type('{"a": 1}')
    notice = page.locator("[data-notice]")
    # The server takes it, and only the answer is lost: sent once more, it is the same timer and no question.
    async with unanswered(page, "**/timers/new"):
        await create(shown)
        await expect(notice).to_contain_text("it isn’t known whether this was done. What you typed is still here.")
    await notice.get_by_role("button", name="Try again").click()
    await expect(page.locator("h1")).to_have_text("t")
    await fill(shown, "t2")
    await page.locator(".cm-content").click()
    await page.keyboard.type('{"a": 1}')
    port = server.port
    await server.stop()
    await create(shown)
    await expect(notice).to_contain_text("The server can’t be reached")
    await shown.picture("form-lost")
    again = ServerProcess(server.data_dir, "--port", str(port))
    await again.start()
    try:
        await notice.get_by_role("button", name="Try again").click()
        await expect(page.locator("h1")).to_have_text("t2")
        assert (await api.get("t2"))["payload"] == {"a": 1}
        await shown.go("/timers/default/old")
        await again.stop()
        await page.get_by_role("button", name="Cancel").click()
        await expect(notice).to_contain_text("The server can’t be reached")
        await shown.picture("timer-lost")
        await again.start()
        await notice.get_by_role("button", name="Try again").click()
        await expect(page.locator(".lead .state")).to_have_text("canceled")
    finally:
        await again.stop()
        shown.complaints.clear()


async def test_mistakes_are_listed_and_the_first_has_the_focus(shown: Window) -> None:
    page = shown.page
    await fill(shown, "", "http://user:pass@x.example/")
    await page.get_by_label("Time from now").fill("soon")
    await create(shown)
    asks = page.locator("#asks")
    await expect(asks).to_contain_text("3 fields need another look")
    await expect(page.get_by_role("textbox", name="URL")).to_be_focused()
    await expect(asks).to_be_in_viewport()
    await asks.get_by_role("link", name="Id").click()
    await expect(page.locator("#field-id")).to_be_focused()
    assert await shown.faults() == []
