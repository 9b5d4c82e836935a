"""Timers in the browser: watch, find, edit, cancel, export."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Error, Page, Route, expect

from tests.e2e.browser import Window, window
from tests.e2e.conftest import in_new_namespace, serving
from tests.support.calls import Api, Inbox
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "http://127.0.0.1:9/hook"
LATER = {"delay": "1h"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """One for all tests here: each has a namespace of its own."""
    async with serving(tmp_path_factory.mktemp("timers")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def api(server: ServerProcess) -> Api:
    return await in_new_namespace(server)


class Slow:
    """Responses that are held back until `release`."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._released, self._sent = asyncio.Event(), asyncio.Event()
        self.requested = asyncio.Event()

    async def hold(self, route: Route) -> None:
        self.requested.set()
        found = await route.fetch()
        await self._released.wait()
        # The page may have aborted the request meanwhile.
        with contextlib.suppress(Error):
            await route.fulfill(response=found)
        self._sent.set()

    async def release(self) -> None:
        """Releases the responses, and returns once the page has processed them: after another round trip."""
        self._released.set()
        await self._sent.wait()
        await self._page.evaluate(
            "fetch('/healthz').then(() => new Promise((d) => requestAnimationFrame(() => setTimeout(d))))"
        )


@asynccontextmanager
async def held_back(page: Page, pattern: str | re.Pattern[str]) -> AsyncIterator[Slow]:
    """Holds back the responses to these requests."""
    slow = Slow(page)
    await page.route(pattern, slow.hold)
    yield slow
    await page.unroute_all()


async def test_notice_of_an_action_stays_until_it_can_be_read(shown: Window, api: Api) -> None:
    page = shown.page
    await api.create("t", URL, **LATER)
    async with shown.stopped_clock():
        await shown.go(f"/timers/{api.namespace}/t?notice=created")
        # The timer changes at once, faster than anybody reads.
        await api("timers/delete", namespace=api.namespace, timerId="t")
        await expect(page.locator(".lead .state")).to_have_text("canceled")
        await expect(page.get_by_text("Timer created.")).to_be_visible()
        await page.clock.run_for(5_000)
        await expect(page.locator("[data-action-notice]")).to_have_count(0)


async def test_timer_list_updates_in_place_when_a_timer_fires(
    shown: Window, inbox: tuple[Inbox, str], api: Api
) -> None:
    _, url = inbox
    page = shown.page
    await api.create("later", URL, **LATER)
    await api.create("soon", url, **LATER)
    await shown.go(f"/timers?namespace={api.namespace}")
    row = page.locator("tr[data-id='soon']")
    await row.get_by_role("checkbox").check()
    before = await page.locator("tr[data-id='later']").bounding_box()
    await api("timers/update", namespace=api.namespace, timerId="soon", delay="0s")
    await expect(row.locator(".state")).to_have_text("completed")
    await expect(row.get_by_role("checkbox")).to_be_checked()
    assert await page.locator("tr[data-id='later']").bounding_box() == before
    await expect(page.locator("#link-state")).to_have_text("Live")
    # What no longer belongs on the tab leaves when the list is loaded again.
    await page.locator("#fresh", has_text="1 finished").click()
    await expect(row).to_have_count(0)
    await expect(page.locator("#shown")).to_have_text("1 timer")


async def test_new_timers_wait_behind_a_button(shown: Window, api: Api) -> None:
    page = shown.page
    await api.create("a", URL, delay="2h", tags=["eu"])
    await shown.go(f"/timers?namespace={api.namespace}&tag=eu")
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    before = await page.locator("tr[data-id='a']").bounding_box()
    for number in range(3):
        await api.create(f"b{number}", URL, tags=["eu"], **LATER)
    # A timer that the filters exclude is not counted.
    await api.create("other", URL, tags=["us"], **LATER)
    fresh = page.locator("#fresh")
    await expect(fresh).to_have_text("3 new")
    assert await page.locator("tr[data-id='a']").bounding_box() == before
    assert await page.locator("#results tbody tr").count() == 1
    await fresh.click()
    await expect(page.locator("#results tbody tr")).to_have_count(4)
    await expect(page.locator("#fresh")).to_be_hidden()
    await expect(page).to_have_url(re.compile("tag=eu"))


async def test_new_failure_is_announced_on_the_failed_tab(shown: Window, api: Api) -> None:
    page = shown.page
    once = {"maxAttempts": 1}
    await api.create("old", URL, delay="0s", retryPolicy=once)
    await api.settled("old", "failed")
    await api.create("next", URL, retryPolicy=once, **LATER)
    await shown.go(f"/timers?namespace={api.namespace}&view=failed")
    await expect(page.locator("tr[data-id='old']")).to_be_visible()
    await api("timers/update", namespace=api.namespace, timerId="next", delay="0s")
    await expect(page.locator("#fresh")).to_have_text("1 new")
    await page.locator("#fresh").click()
    await expect(page.locator("tr[data-id='next'] .state")).to_have_text("failed")


async def test_timer_search_and_filters_are_in_the_url(shown: Window, api: Api) -> None:
    page = shown.page
    for name, tags in (("order-1", ["eu"]), ("order-10", ["us"]), ("invoice-1", ["eu"])):
        await api.create(name, URL, tags=tags, **LATER)
    await shown.go(f"/timers?namespace={api.namespace}")
    await shown.painted()
    await page.keyboard.press("/")
    await page.keyboard.type("order-1")
    rows = page.locator("#results tbody tr")
    await expect(rows).to_have_count(2)
    # The timer with exactly this id comes first, found by a lookup.
    await expect(page.locator("tbody.exact tr")).to_have_attribute("data-id", "order-1")
    # Replaced results are removed over several frames; here they stay.
    await page.evaluate("window.requestAnimationFrame = () => 0")
    await page.keyboard.type(" tag:us ")
    await expect(page.locator(".filter-chip")).to_have_text("tagus")
    await expect(page).to_have_url(re.compile("q=order-1.*&tag=us"))
    await expect(rows).to_have_count(2)
    other = page.locator("#results tbody:not(.exact) tr")
    await expect(other).to_have_attribute("data-id", "order-10")
    await page.reload()
    await expect(page.locator("#q")).to_have_value("order-1")
    await expect(rows).to_have_count(2)
    await page.get_by_role("link", name=re.compile("^Failed")).click()
    await expect(page.locator("#results")).to_have_attribute("data-view", "failed")
    await expect(rows).to_have_attribute("data-id", "order-1")
    await page.go_back()
    await expect(other).to_have_attribute("data-id", "order-10")
    await page.wait_for_load_state()
    await page.locator("#q").fill("nothing-like-this")
    await expect(page.get_by_role("heading", name="No matching timers")).to_be_visible()


async def test_timer_list_is_filtered_by_namespace_and_time(shown: Window, api: Api) -> None:
    page = shown.page
    await api("namespaces/create", name="billing")
    await api.create("soon", URL, delay="30m")
    await api.create("tomorrow", URL, delay="23h")
    await api.create("far", URL, executeAt="2040-06-01T00:00:00Z")
    await api.create("bill", URL, namespace="billing", **LATER)
    await shown.go(f"/timers?namespace={api.namespace}")
    rows = page.locator("#results tbody tr")
    await expect(rows).to_have_count(3)
    await page.locator("#due").select_option("next-1h")
    await expect(rows).to_have_count(1)
    await expect(rows).to_have_attribute("data-id", "soon")
    await expect(page).to_have_url(re.compile("due=next-1h"))
    await page.locator("#due").select_option("custom")
    await page.get_by_label("From (Europe/Berlin)").fill("2040-05-31T00:00:00")
    await page.get_by_label("To (Europe/Berlin)").fill("2040-06-02T00:00:00")
    await expect(rows).to_have_count(1)
    await expect(rows).to_have_attribute("data-id", "far")
    await page.reload()
    await expect(rows).to_have_count(1)
    await expect(page.get_by_label("From (Europe/Berlin)")).to_have_value(re.compile("2040-05-31T00:00"))
    await page.locator("#due").select_option("")
    await expect(rows).to_have_count(3)
    await page.locator("#scope summary").click()
    await page.locator("#scope").get_by_role("link", name="billing").click()
    await expect(page).to_have_url(re.compile("namespace=billing"))
    await expect(rows).to_have_count(1)
    await expect(rows).to_have_attribute("data-id", "bill")
    # Over all namespaces, each row names its own.
    await page.locator("#scope summary").click()
    await page.locator("#scope").get_by_role("link", name="All namespaces").click()
    await expect(page.locator("tr[data-id='bill'] .c-ns")).to_have_text("billing")
    await shown.go(f"/timers?namespace={api.namespace}")
    await page.locator("select[name='rows']").select_option("25")
    await expect(page).to_have_url(re.compile("rows=25"))
    await expect(rows).to_have_count(3)


async def test_tab_chosen_last_is_shown_whichever_response_comes_first(shown: Window, api: Api) -> None:
    page = shown.page
    await api.create("waiting", URL, **LATER)
    await api.create("gone", URL, **LATER)
    await api("timers/delete", namespace=api.namespace, timerId="gone")
    await shown.go(f"/timers?namespace={api.namespace}")
    async with held_back(page, "**/timers?*view=failed*") as slow:
        await page.locator(".tabs a", has_text="Failed").click()
        await slow.requested.wait()
        await page.locator(".tabs a", has_text="Canceled").click()
        await expect(page.locator("#results")).to_have_attribute("data-view", "canceled")
        await slow.release()
    await expect(page.locator("#results")).to_have_attribute("data-view", "canceled")
    await expect(page.locator("#results tbody tr")).to_have_attribute("data-id", "gone")
    assert "view=canceled" in page.url


async def test_filter_applies_to_the_tab_that_is_loading(shown: Window, api: Api) -> None:
    page = shown.page
    for name in ("gone-1", "gone-2", "waiting"):
        await api.create(name, URL, **LATER)
    for name in ("gone-1", "gone-2"):
        await api("timers/delete", namespace=api.namespace, timerId=name)
    await shown.go(f"/timers?namespace={api.namespace}")
    async with held_back(page, re.compile(r"/timers\?(?!.*q=gone).*view=canceled")) as slow:
        await page.locator(".tabs a", has_text="Canceled").click()
        await slow.requested.wait()
        await page.locator("#q").fill("gone-2")
        await expect(page.locator("#results tbody tr")).to_have_attribute("data-id", "gone-2")
        await slow.release()
    await expect(page.locator("#results tbody tr")).to_have_attribute("data-id", "gone-2")
    assert "view=canceled" in page.url
    assert "q=gone-2" in page.url


async def test_selected_timers_are_canceled_after_confirmation(shown: Window, api: Api) -> None:
    page = shown.page
    for number in range(15):
        await api.create(f"t{number:02d}", URL, delay=f"{3_600 + number}s")
    await shown.go(f"/timers?namespace={api.namespace}")
    await page.get_by_label("Select all rows shown").check()
    await page.get_by_label("Select t14").uncheck()
    await expect(page.locator("#picked")).to_contain_text("14 timers selected")
    await shown.picture("list-selected")
    await page.get_by_role("button", name="Cancel selected…").click()
    dialog = page.locator("#dialog")
    await expect(dialog.get_by_role("heading")).to_have_text("Cancel 14 timers?")
    await expect(dialog).to_contain_text("and 6 more")
    await expect(dialog).to_contain_text("127.0.0.1:9 (14)")
    await shown.picture("list-cancel")
    # One of them is canceled meanwhile, which the result reports.
    await api("timers/delete", namespace=api.namespace, timerId="t03")
    await dialog.get_by_role("button", name="Cancel 14 timers").click()
    await expect(dialog.get_by_role("heading")).to_have_text("13 of 14 canceled")
    await expect(dialog).to_contain_text("1 of the selected timers was not pending when listed, or is no longer.")
    await dialog.get_by_role("button", name="Close").click()
    await page.locator("#fresh").click()
    await expect(page.locator("#results tbody tr")).to_have_count(1)


async def test_timer_is_rescheduled_edited_canceled_and_brought_back(shown: Window, api: Api) -> None:
    page = shown.page
    await api.create("t", URL, payload={"a": 1}, **LATER)
    first = await api.get("t")
    await shown.go(f"/timers/{api.namespace}/t")
    await expect(page.get_by_text("The timer is in the store")).to_be_visible()
    explained = page.locator("details", has=page.get_by_text("Internals"))
    await explained.locator("summary").click()
    for fact in ("Shard", "Owner", "Shard epoch", "Shard lag", "In flight", "UUID"):
        await expect(explained.get_by_text(fact, exact=True)).to_be_visible()
    await page.locator("summary", has_text="Reschedule").click()
    await page.get_by_role("button", name="in 1 day").click()
    await expect(page.get_by_text("Timer rescheduled.")).to_be_visible()
    await page.wait_for_load_state()
    assert (await api.get("t"))["executeAt"] != first["executeAt"]
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(".lead-row time")).to_have_attribute("datetime", first["executeAt"])
    await page.wait_for_load_state()
    await page.locator("summary", has_text="Reschedule").click()
    await page.locator(".sheet input[name='at']").fill("2040-07-01T12:00:00")
    await page.locator(".sheet").get_by_role("button", name="Reschedule").click()
    # Noon in Berlin's summer.
    await expect(page.locator(".lead-row time")).to_have_attribute("datetime", "2040-07-01T10:00:00Z")
    await page.get_by_role("link", name="Edit").click()
    await expect(page.locator("#equivalent")).to_contain_text("No changes yet.")
    await page.wait_for_load_state()
    await shown.unfold("Description, tags and flow", "Expires")
    await page.get_by_role("textbox", name="Tags").fill("eu, vip")
    await page.get_by_role("textbox", name="Expires after").fill("15m")
    await expect(page.locator("#equivalent")).to_contain_text("--expire-after 15m")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_text("Timer updated.", exact=True)).to_be_visible()
    got = await api.get("t")
    assert (got["tags"], got["payload"], got["executeAt"]) == (["eu", "vip"], {"a": 1}, "2040-07-01T10:00:00Z")
    assert got["expireAfter"] == "15m"
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator(".lead .state")).to_have_text("canceled")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(".lead .state")).to_have_text("pending")
    got = await api.get("t")
    assert (got["status"], got["tags"], got["executeAt"]) == ("pending", ["eu", "vip"], "2040-07-01T10:00:00Z")


async def test_late_action_on_a_timer_is_refused(shown: Window, api: Api, inbox: tuple[Inbox, str]) -> None:
    page = shown.page
    await api.create("t", URL, **LATER)
    await shown.go(f"/timers/{api.namespace}/t")
    async with no_updates(shown):
        await api("timers/delete", namespace=api.namespace, timerId="t")
        await page.get_by_role("button", name="Fire now").click()
    await expect(page.get_by_role("alert")).to_contain_text("finished")
    await expect(page.locator(".lead .state")).to_have_text("canceled")


async def test_action_that_is_refused_in_the_panel_leaves_the_list(shown: Window, api: Api) -> None:
    page = shown.page
    await api.create("t", URL, **LATER)
    await api.create("other", URL, **LATER)
    await shown.go(f"/timers?namespace={api.namespace}")
    await page.get_by_label("Select other").check()
    await page.locator("tr[data-id='t'] .c-when").click()
    state, toast = page.locator("#peeked > .state"), page.locator("#toasts")
    await expect(state).to_have_text("pending")
    await page.locator("#peek summary", has_text="Reschedule").click()
    await page.locator("#peek .sheet input[name='at']").fill("2020-01-01T00:00:00")
    await page.locator("#peek .sheet").get_by_role("button", name="Reschedule").click()
    await expect(toast).to_contain_text("is in the past; use “Fire now”")
    # The row is not updated, and the panel shows nevertheless what became of the timer.
    await page.route("**/ui/rows", lambda route: route.abort())
    await api("timers/delete", namespace=api.namespace, timerId="t")
    await page.locator("#peek").get_by_role("button", name="Fire now").click()
    await expect(toast).to_contain_text("finished")
    await expect(state).to_have_text("canceled")
    await expect(page.get_by_label("Select other")).to_be_checked()


async def test_update_that_fails_is_made_up_for(shown: Window, api: Api) -> None:
    page = shown.page
    await api.create("t", URL, **LATER)
    await shown.go(f"/timers/{api.namespace}/t")
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    async with page.expect_event("requestfailed"):
        await page.route("**/timers/*/t", lambda route: route.abort(), times=1)
        await api("timers/delete", namespace=api.namespace, timerId="t")
    await expect(page.locator(".lead .state")).to_have_text("canceled")


@asynccontextmanager
async def no_updates(shown: Window) -> AsyncIterator[None]:
    """Blocks the page's live updates."""

    async def hold(route: Route) -> None:
        await (route.abort() if route.request.resource_type == "fetch" else route.continue_())

    await shown.page.route("**/timers/*/**", hold)
    yield
    await shown.page.unroute_all()


async def test_failed_timer_shows_its_attempts(shown: Window, api: Api, inbox: tuple[Inbox, str]) -> None:
    calls, url = inbox
    calls.default = (503, b"busy")
    policy = {"maxAttempts": 2, "initialInterval": "10ms"}
    await api.create("sad", url, retryPolicy=policy)
    await api.settled("sad", "failed")
    page = shown.page
    await shown.go(f"/timers/{api.namespace}/sad")
    await expect(page.locator(".line li")).to_have_count(4)
    await expect(page.locator(".line")).to_contain_text("Response 503")
    await expect(page.locator(".line")).to_contain_text("Attempts exhausted.")
    await page.locator("summary", has_text="Replay with").click()
    await page.locator(".sheet input[name='url']").fill(f"{url}/repaired")
    await page.locator(".sheet input[name='at']").fill("2040-07-01T12:00:00")
    await shown.picture("timer-replay")
    await page.locator(".sheet").get_by_role("button", name="Replay").click()
    await expect(page.locator(".lead .state")).to_have_text("pending")
    assert (await api.get("sad"))["callbackUrl"] == f"{url}/repaired"
    await expect(page.locator("#runs")).to_contain_text("Response 503")
    calls.default = (200, b"")
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name="Replay", exact=True).click()
    await expect(page.locator(".lead .state")).to_have_text("completed")
    assert len({call.headers["webhook-id"] for call in calls.calls}) == 1
    await shown.go("/")
    await expect(page.locator("main")).to_contain_text("HTTP 503")


async def test_editor_checks_and_formats_json(shown: Window, api: Api) -> None:
    page = shown.page
    await shown.go(f"/timers/new?namespace={api.namespace}")
    await page.get_by_label("URL", exact=True).fill(URL)
    await shown.unfold("Id")
    await page.get_by_label("Id", exact=True).fill("t")
    content = page.locator(".cm-content")
    await shown.payload('{"a":1.10,"b":')
    await expect(page.locator("#wrong-payload")).to_contain_text("not JSON")
    await expect(page.locator(".cm-lint-marker-error").first).to_be_visible()
    await page.get_by_role("button", name="Format").click()
    await expect(page.locator(".toast")).to_contain_text("Not valid JSON")
    await content.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type("[2]}")
    await page.get_by_role("button", name="Format").click()
    await expect(page.locator(".cm-line").nth(1)).to_have_text('  "a": 1.10,')
    await expect(page.locator(".cm-lineNumbers .cm-gutterElement").last).to_have_text("6")
    # The column of line numbers is as high as the text, even if the text is short.
    heights = [await page.locator(part).bounding_box() for part in (".cm-gutters", ".cm-content")]
    assert heights[0] and heights[1] and heights[0]["height"] == heights[1]["height"]
    await page.get_by_role("button", name="Create timer").click()
    await page.wait_for_url(f"**/timers/{api.namespace}/t*")
    await expect(page.locator(".code code")).to_contain_text('"a": 1.10')
    assert (await api.get("t"))["payload"] == {"a": 1.1, "b": [2]}


async def test_exports_contain_the_filtered_list(shown: Window, api: Api, tmp_path: Path) -> None:
    page = shown.page
    timers = [
        {
            "namespace": api.namespace,
            "id": f"{'=1+1' if number == 0 else 'x'}-{number}",
            "callbackUrl": URL,
            "delay": f"{3_600 + number}s",
            "payload": {"n": number},
        }
        for number in range(1_200)
    ]
    for start in (0, 600):
        assert (await api("timers/batch/create", timers=timers[start : start + 600]))[0] == 200
    await shown.go(f"/timers?namespace={api.namespace}&view=pending")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="CSV").click()
    await (await download.value).save_as(tmp_path / "t.csv")
    lines = list(csv.DictReader((tmp_path / "t.csv").open(newline="")))
    assert [line["id"].lstrip("'") for line in lines] == [each["id"] for each in timers]
    assert lines[0]["id"] == "'=1+1-0"
    await shown.go(f"/timers?namespace={api.namespace}&q=x-11")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="JSON").click()
    await (await download.value).save_as(tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text())
    assert [each["id"] for each in found] == [each["id"] for each in timers if str(each["id"]).startswith("x-11")]


async def test_pages_work_without_scripts(browser: Browser, server: ServerProcess, api: Api) -> None:
    async with window(browser, server.url, scripts=False) as plain:
        page = plain.page
        await plain.go(f"/timers/new?namespace={api.namespace}")
        await page.get_by_role("textbox", name="URL").fill(URL)
        await plain.unfold("Id", "Payload")
        await page.get_by_role("textbox", name="Id", exact=True).fill("plain")
        await page.get_by_label("Time from now").fill("1h")
        await page.locator("textarea").fill('{"a": 1}')
        await page.get_by_role("button", name="Create timer").click()
        await expect(page.locator("h1")).to_contain_text("plain")
        zone = await page.locator("time").first.evaluate("(time) => getComputedStyle(time, '::after').content")
        assert zone == '" UTC"'
        await plain.go(f"/timers?namespace={api.namespace}")
        await page.locator("#q").fill("pl")
        await page.get_by_role("button", name="Search").click()
        await page.get_by_label("Select plain").check()
        await page.get_by_role("button", name="Cancel selected…").click()
        await page.get_by_role("button", name="Cancel 1 timer").click()
        await expect(page.get_by_role("heading", name="1 of 1 canceled")).to_be_visible()
        await plain.go("/")
        assert "Last 60 minutes" in await plain.text("main")
    assert (await api.get("plain"))["status"] == "canceled"
