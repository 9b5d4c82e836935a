"""Lists of timers and calls: layout, time ranges, new rows, and actions on selected rows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from tests.e2e.browser import Window, window
from tests.e2e.conftest import serving
from tests.e2e.tenant import Tenant, in_seconds
from tests.support.calls import Api, Inbox
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "http://127.0.0.1:9/hook"
LONG_URL = "https://shop.example/hooks/reminder?source=tocsin"
WIDTHS = (360, 720, 820, 1000, 1241, 1280, 1440, 1920, 2560)
#: Pairs of elements that overlap, cells that are cut off, and content wider than the window.
LAYOUT = """() => {
  const seen = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== 'hidden';
  const name = (element) => element.className || element.id || element.textContent.trim();
  const parts = [...document.querySelectorAll('.filters :is(input, select, button, .plain, .copy), .bar nav a, .tools > *')];
  const places = parts.filter((part) => seen(part) && !part.matches('[type=hidden]'));
  const clashes = [];
  for (const [i, one] of places.entries()) for (const other of places.slice(i + 1)) {
    const [a, b] = [one, other].map((each) => each.getBoundingClientRect());
    const apart = a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
    if (!apart && !one.contains(other) && !other.contains(one)) clashes.push([name(one), name(other)]);
  }
  const cells = '#results tbody tr:first-child :is(a.id, .c-when, .c-submitted, .c-run, .c-state), .tabs';
  const cut = [...document.querySelectorAll(cells)]
    .filter((each) => seen(each) && each.scrollWidth > each.clientWidth + 1).map(name);
  const rows = [...document.querySelectorAll('#results tbody tr')].map((row) => row.getBoundingClientRect().height);
  return {
    clashes, cut, wide: document.documentElement.scrollWidth > innerWidth, row: Math.max(...rows),
    title: document.querySelector('h1').getBoundingClientRect().toJSON(),
    nav: [...document.querySelectorAll('.bar nav a')].map((each) => each.getBoundingClientRect().left),
    foot: document.querySelector('.foot > *').getBoundingClientRect().left,
  };
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """One server for this module; each test has its own namespace or tenant."""
    async with serving(tmp_path_factory.mktemp("lists"), TOCSIN_UI_CHART_INTERVAL="1s") as running:
        yield running


async def named(api: Api, namespace: str, *timers: dict[str, Any]) -> None:
    """Creates a namespace with these timers, by default due from in an hour on, a second apart."""
    await api("namespaces/create", name=namespace)
    wanted = [
        {
            "namespace": namespace,
            "callbackUrl": URL,
            **({} if "executeAt" in timer else {"delay": f"{3_600 + number}s"}),
            **timer,
        }
        for number, timer in enumerate(timers)
    ]
    status, answer = await api("timers/batch/create", timers=wanted)
    assert status == 200, answer


async def test_lists_fit_every_window_width(shown: Window, api: Api, tenant: Tenant) -> None:
    ids = [f"550e8400-e29b-41d4-a716-4466554400{number:02d}" for number in range(30)]
    await named(api, "room", *({"id": each, "callbackUrl": LONG_URL, "tags": ["orders", "eu"]} for each in ids))
    for number in range(3):
        await tenant.submit(f"Remind order {number}", LONG_URL, dueAt=in_seconds(3_600), tags=["orders", "eu"])
    page, lefts = shown.page, {}
    for path in ("/timers?namespace=room", tenant.list, "/namespaces", "/nodes"):
        await shown.go(path)
        for width in WIDTHS if "results" in await page.content() else (1920,):
            await page.set_viewport_size({"width": width, "height": 900})
            found = await page.evaluate(LAYOUT)
            where = f"{path} at {width}"
            # In narrow windows an id may be cut off; a time never.
            cut = [each for each in found["cut"] if not (width < 1241 and "id" in each.split())]
            assert (found["clashes"], cut, found["wide"]) == ([], [], False), where
            assert width <= 720 or path == "/nodes" or found["row"] <= (56 if "calls" in path else 40), where
            if width == 1920:
                lefts[path] = (found["title"]["left"], found["title"]["top"], found["foot"], found["nav"])
    # Titles, navigation and footer are at the same position on all pages.
    assert len({str(each) for each in lefts.values()}) == 1, lefts


async def test_an_id_is_copied_by_keyboard(shown: Window, api: Api) -> None:
    await named(api, "copied", {"id": "first"}, {"id": "second"})
    page = shown.page
    await shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await shown.go("/timers?namespace=copied")
    button = page.locator("#results tbody tr").nth(1).get_by_role("button", name="Copy id")
    await expect(button).to_be_hidden()
    await page.get_by_role("link", name="second", exact=True).focus()
    await expect(button).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(button).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(button).to_have_attribute("data-copied", "")
    assert await page.evaluate("navigator.clipboard.readText()") == "second"


async def test_time_range_is_in_the_time_zone_of_the_rows(browser: Browser, shown: Window, api: Api) -> None:
    await named(
        api, "range", *({"id": f"h{hour}", "executeAt": f"2040-07-01T{hour:02d}:30:00Z"} for hour in (9, 10, 11))
    )
    page, rows = shown.page, shown.page.locator("#results tbody tr")
    await shown.go("/timers?namespace=range")
    await expect(rows.nth(1).locator("time")).to_have_text("2040-07-01 12:30:00")
    await page.locator("#due").select_option("custom")
    await page.get_by_label("From (Europe/Berlin)").fill("2040-07-01T12:00:00")
    await page.get_by_label("To (Europe/Berlin)").fill("2040-07-01T13:00:00")
    await expect(rows).to_have_count(1)
    await expect(rows).to_have_attribute("data-id", "h10")
    # The URL contains UTC.
    await expect(page).to_have_url(re.compile("from=2040-07-01T10%3A00%3A00Z&to=2040-07-01T11%3A00%3A00Z"))
    await page.reload()
    await expect(page.get_by_label("From (Europe/Berlin)")).to_have_value(re.compile("2040-07-01T12:00"))
    await page.locator("[data-act='zone']").click()
    await expect(page.get_by_label("From (UTC)")).to_have_value(re.compile("2040-07-01T10:00"))
    async with window(browser, shown.base, scripts=False) as plain:
        await plain.go(page.url.removeprefix(shown.base))
        await expect(plain.page.get_by_label("From (UTC)")).to_have_value(re.compile("2040-07-01T10:00"))
        await plain.page.get_by_label("From (UTC)").fill("2040-07-01T11:00:00")
        await plain.page.get_by_label("To (UTC)").fill("2040-07-01T12:00:00")
        await plain.page.get_by_role("button", name="Search").click()
        await expect(plain.page.locator("#results tbody tr")).to_have_attribute("data-id", "h11")


async def test_words_become_chips_while_more_is_typed(shown: Window, api: Api) -> None:
    page, rows, search = shown.page, shown.page.locator("#results tbody tr"), shown.page.locator("#q")
    await tagged(api, "chips")
    await api("namespaces/create", name="chips-too")
    await shown.go("/timers?namespace=chips")
    await search.click()
    # A word narrows the list before it is whole.
    await page.keyboard.type("tag:e")
    await expect(page.get_by_role("heading", name="No matching timers")).to_be_visible()
    await expect(page.locator(".filter-chip")).to_have_count(0)
    await page.keyboard.type("u order")
    await expect(page.locator(".filter-chip")).to_have_text("tageu")
    await expect(search).to_have_value("order")
    await expect(search).to_be_focused()
    await expect(rows).to_have_attribute("data-id", "order-1")
    await shown.picture("list-chips")
    # To leave the field replaces no rows.
    await page.get_by_label("Select order-1").check()
    await expect(page.locator("#picked-count")).to_have_text("1 timer selected")
    await search.focus()
    for _ in "order":
        await page.keyboard.press("Backspace")
    await expect(rows).to_have_count(2)
    await page.keyboard.press("Backspace")
    await expect(page.locator(".filter-chip")).to_have_count(0)
    await expect(rows).to_have_count(3)
    await expect(search).to_be_focused()
    await page.keyboard.type("to:hook")
    await page.keyboard.press("Enter")
    await expect(page.locator(".filter-chip")).to_have_text("tohook")
    await page.get_by_label("Remove to hook").click()
    await expect(page.locator(".filter-chip")).to_have_count(0)
    await expect(search).to_be_focused()
    await page.keyboard.type("ns:chips-too")
    await expect(page).to_have_url(re.compile("namespace=chips-too"))


async def test_a_slow_answer_to_enter_makes_chips_too(shown: Window, api: Api) -> None:
    page, released = shown.page, asyncio.Event()
    await tagged(api, "slow")
    await shown.go("/timers?namespace=slow")

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    async with shown.stopped_clock():
        await page.route("**/timers?*", hold)
        await page.locator("#q").press_sequentially("to:hook")
        async with page.expect_request("**/timers?*"):
            await page.keyboard.press("Enter")
        # The pause after the last key ends meanwhile.
        await page.clock.run_for(1_000)
        released.set()
        await expect(page.locator(".filter-chip")).to_have_text("tohook")
        # What is typed from here on is asked for again.
        await page.locator("#q").press_sequentially("order-1")
        await page.clock.run_for(1_000)
        await expect(page).to_have_url(re.compile("q=order-1"))


async def test_words_become_chips_without_scripts(browser: Browser, server: ServerProcess, api: Api) -> None:
    await tagged(api, "plain")
    async with window(browser, server.url, scripts=False) as plain:
        page, rows = plain.page, plain.page.locator("#results tbody tr")
        await plain.go("/timers?namespace=plain")
        await page.locator("#q").fill("order tag:eu")
        await page.get_by_role("button", name="Search").click()
        await expect(page.locator(".filter-chip")).to_have_text("tageu")
        await expect(page.locator("#q")).to_have_value("order")
        await expect(rows).to_have_attribute("data-id", "order-1")
        await page.get_by_role("link", name="Remove tag eu").click()
        await expect(page.locator(".filter-chip")).to_have_count(0)
        await expect(rows).to_have_count(2)
        await page.locator("#q").fill("ns:default")
        await page.get_by_role("button", name="Search").click()
        await expect(page).to_have_url(re.compile("namespace=default"))
        await expect(page.locator("#q")).to_have_value("")


async def tagged(api: Api, namespace: str) -> None:
    """Creates a namespace with three timers, two of which have the tag `eu`, and two an id that begins with `order`."""
    timers = (("order-1", "eu"), ("order-2", "us"), ("invoice-1", "eu"))
    await named(api, namespace, *({"id": each, "tags": [tag]} for each, tag in timers))


async def test_new_rows_are_counted_for_the_current_filters(shown: Window, api: Api) -> None:
    page = shown.page
    await named(api, "fresh", *({"id": f"a{number}"} for number in range(40)), {"id": "b0"})
    await shown.go("/timers?namespace=fresh")
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    requested, proceed, responded = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        found = await route.fetch()
        requested.set()
        await proceed.wait()
        await route.fulfill(response=found)
        responded.set()

    # The list requests its new rows without a filter, and gets the response after a filter is set.
    await page.route("**/ui/fresh/**", hold, times=1)
    await api.create("a-new", URL, namespace="fresh", delay="1h")
    await requested.wait()
    # Replaced results are removed over several frames; here they stay.
    await page.evaluate("window.requestAnimationFrame = () => 0")
    await page.locator("#q").fill("b")
    await expect(page.locator("#results tbody tr")).to_have_count(1)
    texts = await page.evaluate_handle(
        "(window.texts = new Set(), new MutationObserver(() => { const fresh = document.getElementById('fresh');"
        " if (fresh.textContent) window.texts.add(fresh.textContent); }).observe(document.getElementById('results'),"
        " {subtree: true, childList: true, attributes: true}), window.texts)"
    )
    proceed.set()
    await responded.wait()
    await api.create("b-new", URL, namespace="fresh", delay="2h")
    await expect(page.locator("#fresh")).to_have_text("1 new")
    assert await texts.evaluate("texts => [...texts]") == ["1 new"]


async def test_finished_timers_are_marked_on_the_list(shown: Window, api: Api, inbox: tuple[Inbox, str]) -> None:
    calls, url = inbox
    page, rows = shown.page, shown.page.locator("#results tbody tr")
    calls.default = (503, b"busy")
    await named(
        api, "over", {"id": "later"}, {"id": "canceled", "delay": "58d"},
        {"id": "sad", "callbackUrl": url, "delay": "0s", "retryPolicy": {"maxAttempts": 1}},
    )  # fmt: skip
    await api.settled("sad", "failed", namespace="over")
    await shown.go("/timers?namespace=over")
    await expect(rows).to_have_count(2)
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    await page.locator("tr[data-id='later']").hover()
    await api("timers/delete", namespace="over", timerId="canceled")
    # The row stays in place, and shows when the timer was canceled, not when it would have fired.
    gone = page.locator("tr[data-id='canceled']")
    await expect(gone).to_have_attribute("data-left", "")
    await expect(gone.locator(".c-when .relative-time")).to_have_text(re.compile("ago|now"))
    await expect(page.locator("#fresh")).to_have_text("1 finished")
    # Finished timers can't be canceled.
    cancel = page.get_by_role("button", name="Cancel selected…")
    await page.get_by_label("Select canceled").check()
    await expect(page.locator("#picked-count")).to_have_text("1 timer selected, finished")
    await expect(cancel).to_be_disabled()
    await page.get_by_label("Select later").check()
    await expect(page.locator("#picked-count")).to_have_text("2 timers selected, 1 finished")
    # While the server is unreachable, the selection stays.
    await page.context.set_offline(True)
    await cancel.click()
    await expect(page.locator(".toast")).to_contain_text("The server does not respond. The page shows earlier data.")
    await expect(page.locator("#picked-count")).to_have_text("2 timers selected, 1 finished")
    await page.context.set_offline(False)
    await cancel.click()
    dialog = page.locator("#dialog")
    await expect(dialog.get_by_role("heading")).to_have_text("Cancel 1 timer?")
    await page.context.set_offline(True)
    await dialog.get_by_role("button", name="Cancel 1 timer").click()
    await expect(dialog).to_contain_text("It may have done what was asked for: look at the list before you ask again.")
    await page.context.set_offline(False)
    await dialog.get_by_role("button", name="Cancel 1 timer").click()
    await expect(dialog.get_by_role("heading")).to_have_text("1 of 1 canceled")
    await dialog.get_by_role("button", name="Close").click()
    await page.locator(".tabs a", has_text="Failed").click()
    await expect(page.locator("tr[data-id='sad'] .c-note")).to_contain_text("HTTP_503")
    # Failed timers can be replayed.
    calls.default = (200, b"")
    await page.get_by_label("Select sad").check()
    await page.get_by_role("button", name="Replay…").click()
    await expect(dialog).to_contain_text("under the same webhook-id")
    await dialog.get_by_role("button", name="Replay 1 timer").click()
    await expect(dialog.get_by_role("heading")).to_have_text("1 of 1 replayed")
    await api.settled("sad", "completed", namespace="over")


async def test_focused_row_is_never_covered_by_the_list_head(shown: Window, api: Api) -> None:
    page = shown.page
    await named(api, "keys", *({"id": f"k{number:02d}"} for number in range(50)))
    await shown.go("/timers?namespace=keys")
    await shown.painted()
    for _ in range(45):
        await page.keyboard.press("j")
    for _ in range(30):
        await page.keyboard.press("k")
        assert await covered(page) is False


async def covered(page: Page) -> Any:
    """Whether another element covers the focused link."""
    return await page.evaluate(
        "() => { const at = document.activeElement, place = at.getBoundingClientRect();"
        " return document.elementFromPoint(place.left + 4, place.top + place.height / 2) !== at; }"
    )
