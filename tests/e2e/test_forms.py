"""The form of a timer: it asks before it replaces, explains dates, and keeps all input."""

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
ASKED = "A timer with this id already exists"
COPY = re.compile(r"^order-17-[0-9a-f]{8}$")


async def fill(shown: Window, timer_id: str, url: str = URL) -> None:
    """Opens a new form and fills in its required fields."""
    await shown.go("/timers/new")
    await shown.page.get_by_role("textbox", name="URL").fill(url)
    await shown.unfold("Id")
    await shown.page.get_by_role("textbox", name="Id", exact=True).fill(timer_id)


async def create(shown: Window) -> None:
    await shown.page.get_by_role("button", name="Create timer").click()


@asynccontextmanager
async def unanswered(page: Page, pattern: str) -> AsyncIterator[None]:
    """The server receives these requests, and the page gets no response."""

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
    await shown.payload('{"a": 1}')
    await create(shown)
    asks = page.locator("#asks")
    await expect(asks.get_by_role("heading", name=ASKED)).to_be_visible()
    await expect(asks).to_be_focused()
    await expect(asks).to_contain_text("2040-07-01 12:00:00")
    await shown.picture("form-exists")
    assert await shown.faults() == []
    assert await api.get("order-17") == before
    # The form keeps its input, and offers another id.
    await expect(page.locator("textarea")).to_have_value('{"a": 1}')
    await asks.get_by_role("button", name="Create as order-17-").click()
    await expect(page.locator("h1")).to_have_text(COPY)
    first = await page.locator("h1").inner_text()
    assert (await api.get(first))["payload"] == {"a": 1}
    assert await api.get("order-17") == before
    # A copy gets a new id, and the secrets that the form doesn't show.
    await shown.go("/timers/new?namespace=default&like=order-17")
    await expect(page.locator("input[name='id']")).to_have_value(COPY)
    await create(shown)
    await expect(page.locator("h1")).to_have_text(COPY)
    await expect(page.locator("h1")).not_to_have_text(first)
    async with window(browser, server.url, scripts=False) as plain:
        await fill(plain, "order-17", f"{URL}/2")
        # The timer has changed since it was shown, so the form asks again.
        await create(plain)
        await expect(plain.page.get_by_role("heading", name=ASKED)).to_be_visible()
        await api("timers/update", namespace="default", timerId="order-17", tags=["changed"])
        await plain.page.get_by_role("button", name="Replace timer").click()
        await expect(plain.page.get_by_role("heading", name=ASKED)).to_be_visible()
        await plain.page.get_by_role("button", name="Replace timer").click()
        await expect(plain.page.locator("[data-action-notice]")).to_contain_text("Timer replaced")
        assert (await api.get("order-17"))["callbackUrl"] == f"{URL}/2"
        # A finished timer can't be replaced.
        await api("timers/delete", namespace="default", timerId="order-17")
        await fill(plain, "order-17")
        await create(plain)
        await expect(plain.page.get_by_role("heading", name=ASKED)).to_be_visible()
        await expect(plain.page.get_by_role("button", name="Replace timer")).to_have_count(0)


async def test_a_form_offers_an_instant_in_the_zone_that_the_page_shows(shown: Window) -> None:
    page = shown.page
    await shown.go("/timers/new")
    await page.locator("[data-act='zone']").dispatch_event("click")
    await page.locator("input[name='when'][value='at']").check()
    await expect(page.locator("[data-note-of='at']")).to_contain_text(re.compile("That is in (29|30) min"))


async def test_form_explains_skipped_repeated_and_past_dates(shown: Window, api: Api) -> None:
    page = shown.page
    await fill(shown, "t")
    at, note = page.get_by_label("Date and time"), page.locator("[data-note-of='at']")
    equivalent = page.locator("#equivalent")
    # No change event has been sent to the page yet.
    await at.focus()
    await at.fill("2040-07-01T12:00:00")
    await expect(equivalent).to_contain_text('"executeAt": "2040-07-01T10:00:00Z"')
    await at.fill("2040-03-25T02:30:00")
    await expect(note).to_contain_text("02:30 does not exist on that day, because clocks go forward. It fires at 03:30")
    await expect(equivalent).to_contain_text('"executeAt": "2040-03-25T01:30:00Z"')
    await at.fill("2040-10-28T02:30:00")
    await expect(note).to_contain_text("02:30 occurs twice on that day")
    await expect(equivalent).to_contain_text('"executeAt": "2040-10-28T00:30:00Z"')
    await at.fill("2020-01-01T00:00:00")
    await expect(note).to_contain_text("It fires at once")
    await shown.picture("form-past-note")
    await create(shown)
    await expect(page.get_by_role("heading", name="This time is in the past")).to_be_visible()
    await shown.picture("form-past")
    await expect(at).to_have_value(re.compile("2020-01-01T00:00"))
    await page.get_by_role("button", name="Create and fire at once").click()
    await expect(page.locator("h1")).to_have_text("t")
    # Rescheduling a timer to the past is refused, with advice.
    await api.create("later", URL, delay="1h")
    await shown.go("/timers/default/later")
    await page.locator("summary", has_text="Reschedule").click()
    await page.locator(".sheet input[name='at']").fill("2020-01-01T00:00:00")
    await expect(page.locator(".sheet .note")).to_have_text(
        re.compile(r"^That was \d+ y .*ago\. Use “Fire now” instead\.$")
    )
    await page.locator(".sheet").get_by_role("button", name="Reschedule").click()
    await expect(page.get_by_role("alert")).to_contain_text("is in the past; use “Fire now”")


async def test_form_shows_the_plan_of_attempts(shown: Window, api: Api) -> None:
    page = shown.page
    await fill(shown, "t")
    await page.get_by_label("Time from now").fill("1h")
    plan = page.locator("#plan")
    await shown.unfold("Retries")
    await expect(page.get_by_label("Use the retry policy of the namespace")).to_be_checked()
    await expect(plan).to_contain_text("10 attempts over about 8 h 33 min")
    await expect(plan.locator("li")).to_have_count(10)
    await expect(plan.locator("li").nth(2)).to_contain_text("+20 s")
    await page.get_by_label("Don’t retry").check()
    await expect(plan).to_contain_text("One attempt, no retries.")
    await expect(page.locator("#equivalent")).to_contain_text("--retry-attempts 1")
    await page.get_by_label("Use a custom retry policy").check()
    await page.get_by_label("Max attempts").fill("3")
    await expect(plan).to_contain_text("3 attempts over about 20 s")
    await shown.picture("form-retries")
    await create(shown)
    await expect(page.locator("h1")).to_have_text("t")
    assert (await api.get("t"))["retryPolicy"]["maxAttempts"] == 3


async def test_form_keeps_input_while_the_server_is_unreachable(shown: Window, server: ServerProcess, api: Api) -> None:
    page = shown.page
    await api.create("old", URL, delay="1h")
    await fill(shown, "t")
    await shown.payload('{"a": 1}')
    notice = page.locator("[data-notice]")
    # The server creates the timer, and only the response is lost: sent again, the form creates no second timer and asks
    # nothing.
    async with unanswered(page, "**/timers/new"):
        await create(shown)
        await expect(notice).to_contain_text("It is unknown whether the request was processed. Your input is kept.")
    await notice.get_by_role("button", name="Try again").click()
    await expect(page.locator("h1")).to_have_text("t")
    await fill(shown, "t2")
    await shown.payload('{"a": 1}')
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


async def test_form_works_without_its_editor(shown: Window, api: Api) -> None:
    """Which a node of another release does not have, to which a page may come during an upgrade."""
    page = shown.page
    await page.route("**/editor-*.js", lambda route: route.fulfill(status=404))
    await fill(shown, "t")
    await shown.unfold("Payload")
    field, toast = page.locator("[data-editor] textarea"), page.locator("#toasts .toast")
    await field.focus()
    await expect(toast).to_contain_text("The editor could not be loaded. The field works without it.")
    await field.fill('{"a": 1}')
    await page.get_by_role("button", name="Format").click()
    await expect(toast).to_have_count(2)
    await create(shown)
    await expect(page.locator("h1")).to_have_text("t")
    assert (await api.get("t"))["payload"] == {"a": 1}


async def test_form_lists_errors_and_focuses_the_first(shown: Window) -> None:
    page = shown.page
    await fill(shown, "", "http://user:pass@x.example/")
    await page.get_by_label("Time from now").fill("soon")
    await create(shown)
    asks = page.locator("#asks")
    await expect(asks).to_contain_text("3 fields are invalid")
    await expect(page.get_by_role("textbox", name="URL")).to_be_focused()
    await expect(asks).to_be_in_viewport()
    await asks.get_by_role("link", name="Id").click()
    await expect(page.locator("#field-id")).to_be_focused()
    await expect(page.locator("#wrong-callbackUrl")).to_contain_text("credentials")
    await expect(page.locator("#wrong-delay")).to_contain_text("not a duration")
    await expect(page.get_by_label("Time from now")).to_have_value("soon")
    assert await shown.faults() == []
    await shown.picture("form-wrong")
    await page.get_by_role("textbox", name="URL").fill(URL)
    await expect(page.locator("#wrong-callbackUrl")).to_be_empty()
