"""Long lists: they load rows on scrolling, keep their position, and stay live."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.e2e.browser import Window, window
from tests.e2e.conftest import serving
from tests.e2e.tenant import Tenant, in_seconds
from tests.support.calls import Api
from tests.support.server import ServerProcess
from tocsin.web.pages.limits import UiLimits

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "http://127.0.0.1:9/hook"
#: The page receives no changes, also not of those elsewhere on its server.
_NO_NEWS = "window.EventSource = class extends EventTarget { close() {} }"
#: Notes from now on which rows scripts look at, and how often they search the whole page for what has an id.
_NOTE_ROWS = """() => {
  window.looked = new Set();
  window.searches = 0;
  const search = Document.prototype.querySelectorAll;
  Document.prototype.querySelectorAll = function (...given) {
    if (this === document && given[0].includes("#")) searches += 1;
    return search.apply(this, given);
  };
  const note = (of) => { if (of.localName === "tr") looked.add(of); };
  const dataset = Object.getOwnPropertyDescriptor(HTMLElement.prototype, "dataset").get;
  Object.defineProperty(HTMLElement.prototype, "dataset", { get() { note(this); return dataset.call(this); } });
  for (const name of ["matches", "querySelector", "querySelectorAll", "getAttribute", "hasAttribute"]) {
    const plain = Element.prototype[name];
    Element.prototype[name] = function (...given) { note(this); return plain.apply(this, given); };
  }
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """One server for this module; each test has its own namespace or tenant."""
    async with serving(tmp_path_factory.mktemp("long")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def long(server: ServerProcess) -> list[str]:
    """The ids of the timers in a namespace `long`, which no test changes."""
    return await many(Api(server), "long", 700)


async def many(api: Api, namespace: str, count: int) -> list[str]:
    """Creates a namespace with timers due from in an hour on, a second apart. Returns their ids."""
    await api("namespaces/create", name=namespace)
    ids = [f"t{number:05d}" for number in range(count)]
    for start in range(0, count, 1_000):
        timers = [
            {"namespace": namespace, "id": name, "callbackUrl": URL, "delay": f"{3_600 + int(name[1:])}s"}
            for name in ids[start : start + 1_000]
        ]
        assert (await api("timers/batch/create", timers=timers))[0] == 200
    return ids


async def scroll_on(page: Page, rows: int) -> None:
    """Scrolls to the end repeatedly, until the list has so many rows."""
    # The limit is the test's own.
    while await page.locator("#results tbody tr").count() < rows:
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await page.evaluate("new Promise(requestAnimationFrame)")


async def show_row(page: Page, name: str, block: str) -> None:
    """Scrolls to a row, and waits until the URL names the chunk that it is in."""
    row = page.locator(f"tr[data-id='{name}']")
    # While the list was scrolled here, the URL may have come to name another chunk.
    cursor = await row.evaluate(
        "(row, block) => (row.scrollIntoView({block}), row.parentElement.dataset.cursor)",
        block,
    )
    assert cursor
    await page.wait_for_function("cursor => new URLSearchParams(location.search).get('cursor') === cursor", arg=cursor)


async def test_rows_after_the_last_one_shown_are_not_new(shown: Window, api: Api) -> None:
    page = shown.page
    await many(api, "behind", 300)
    await shown.go("/timers?namespace=behind&rows=25")
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    await api.create("last", URL, namespace="behind", delay="9h")
    await api.create("first", URL, namespace="behind", delay="10m")
    await expect(page.locator("#fresh")).to_have_text("1 new")


async def test_list_loads_rows_on_scrolling_and_keeps_its_position(shown: Window, long: list[str]) -> None:
    page = shown.page
    await shown.go("/timers?namespace=long&rows=100")
    rows = page.locator("#results tbody tr")
    await scroll_on(page, len(long))
    assert await page.evaluate("[...document.querySelectorAll('#results tbody tr')].map(row => row.dataset.id)") == long
    await expect(page.locator("#shown")).to_have_text("700 timers")
    await expect(page.locator("#follow a")).to_have_count(0)
    # The URL names the rows in view. Reloading and going back restore the position, and rows further up load again.
    await show_row(page, "t00450", "center")
    await page.locator("tr[data-id='t00450'] a.id").click()
    await expect(page.locator("h1")).to_contain_text("t00450")
    await page.go_back()
    await expect(page.locator("tr[data-id='t00450']")).to_be_in_viewport()
    await page.reload()
    await expect(page.locator("tr[data-id='t00450']")).to_be_in_viewport()
    while not await page.locator("tr[data-id='t00000']").count():
        await page.evaluate("scrollTo(0, 0)")
        await page.evaluate("new Promise(requestAnimationFrame)")
    await page.evaluate("scrollTo(0, 0)")
    await expect(page.locator("tr[data-id='t00000']")).to_be_in_viewport()
    await expect(page).not_to_have_url(re.compile("cursor="))
    # A message over the list is not what is at its upper edge.
    await page.evaluate("""() => {
        const cover = document.body.appendChild(document.createElement("div"));
        cover.style.cssText = "position: fixed; inset: 0; z-index: 99";
    }""")
    await show_row(page, "t00150", "center")
    await page.evaluate("document.body.lastElementChild.remove()")
    await page.locator("#q").fill("t0069")
    await expect(rows).to_have_count(10)


async def test_rows_are_split_into_parts_for_layout(browser: Browser, shown: Window, api: Api, tenant: Tenant) -> None:
    ids = await many(api, "parted", 190)
    page = shown.page
    parts = "[...document.querySelectorAll('#results tbody')].map(part => part.rows.length)"
    await shown.go("/timers?namespace=parted&rows=60")
    await scroll_on(page, len(ids))
    chunk = [25, 25, 10]
    assert await page.evaluate(parts) == [*chunk, *chunk, *chunk, 10]
    roles = "[...new Set([...document.querySelectorAll('#results tbody')].map(part => part.getAttribute('role')))]"
    assert await page.evaluate(roles) == ["rowgroup"]
    # The URL names the chunk in view, whichever of its parts is visible.
    await show_row(page, ids[105], "start")
    async with window(browser, shown.base) as other:
        await other.go(page.url.removeprefix(shown.base))
        await expect(other.page.locator("#results tbody tr").first).to_have_attribute("data-id", ids[60])
    await page.reload()
    await expect(page.locator(f"tr[data-id='{ids[105]}']")).to_be_in_viewport()
    for number in range(30):
        await tenant.submit(f"c{number}", URL, dueAt=in_seconds(3_600))
    await shown.go(f"{tenant.list}&rows=100")
    assert await page.evaluate(parts) == [25, 5]


async def test_rows_are_added_without_a_look_at_those_before(shown: Window, long: list[str]) -> None:
    page = shown.page
    await shown.context.add_init_script(_NO_NEWS)
    await shown.go("/timers?namespace=long&rows=500")
    await page.evaluate(_NOTE_ROWS)
    await scroll_on(page, len(long))
    await expect(page.locator("#shown")).to_have_text("700 timers")
    assert await page.evaluate("searches") == 0
    rows = "[...document.querySelectorAll('#results tbody tr')]"
    # Those that were in view neither before nor after.
    assert await page.evaluate(f"{rows}.slice(150, 400).filter(row => looked.has(row)).length") == 0
    assert await page.evaluate(f"{rows}.slice(500).filter(row => looked.has(row)).length") == 200


async def test_scrolling_does_not_count_what_is_selected(shown: Window, long: list[str]) -> None:
    page = shown.page
    await shown.context.add_init_script(_NO_NEWS)
    await shown.go("/timers?namespace=long&rows=500")
    await page.locator("#pick-all").check()
    await scroll_on(page, len(long))
    # What was added is counted.
    await page.wait_for_function("document.getElementById('pick-all').indeterminate")
    await page.evaluate("""() => {
      window.counted = 0;
      const plain = Document.prototype.querySelectorAll;
      Document.prototype.querySelectorAll = function (selector) {
        if (selector.includes(".pick")) counted += 1;
        return plain.call(this, selector);
      };
    }""")
    for top in range(1_000, 6_000, 1_000):
        await page.evaluate("top => scrollTo(0, top)", top)
        # Within it, the browser reports what has come into view.
        await shown.painted()
    assert await page.evaluate("counted") == 0


async def test_few_parts_of_a_row_are_clipped(shown: Window, long: list[str], tenant: Tenant) -> None:
    await tenant.submit("one", URL, dueAt=in_seconds(3_600))
    # A browser paints what is in a clip on its own. What always fits into its column needs none.
    clipped = """[...document.querySelector('#results tbody tr').querySelectorAll('*')].filter(
      (each) => getComputedStyle(each).overflowX !== 'visible').map((each) => each.className)"""
    most = {"/timers?namespace=long": 5, tenant.list: 7}
    for path in most:
        await shown.go(path)
        found = await shown.page.evaluate(clipped)
        assert len(found) <= most[path], found


async def test_replaced_results_are_removed_completely(shown: Window, long: list[str]) -> None:
    page = shown.page
    await shown.go("/timers?namespace=long&rows=100")
    await scroll_on(page, 600)
    # Old results can't be reached by keyboard while they are being removed.
    await page.evaluate(
        # They may have been removed by the time it is called.
        "void (window.inertly = new Promise((resolve) => new MutationObserver((changes) => changes.some((change) =>"
        " change.target.matches('.leaving[inert]')) && resolve(true)).observe(document, {subtree: true, attributes: true,"
        " attributeFilter: ['inert']})))"
    )
    await page.locator("#q").fill("t0069")
    assert await page.evaluate("inertly")
    await expect(page.locator(".leaving")).to_have_count(0)
    await expect(page.locator("tr[data-id]")).to_have_count(10)


async def test_failed_loading_of_rows_is_shown_and_can_be_retried(shown: Window, long: list[str]) -> None:
    page = shown.page
    await page.route("**/ui/more/**", lambda route: route.abort())
    await shown.go("/timers?namespace=long&rows=50")
    await shown.painted()
    await page.keyboard.press("End")
    await expect(page.get_by_role("link", name="Try again")).to_be_visible()
    await expect(page.locator(".toast")).to_contain_text("could not be loaded")
    await page.unroute_all()
    await page.get_by_role("link", name="Try again").click()
    await expect(page.locator("tr[data-id='t00050']")).to_be_attached()


async def test_list_grows_to_its_limit(shown: Window, api: Api) -> None:
    ids = await many(api, "thousands", 2_300)
    page = shown.page
    await shown.go("/timers?namespace=thousands&rows=500")
    results, rows = page.locator("#results"), page.locator("#results tbody tr")
    await expect(results).to_have_attribute("data-shown-max", str(UiLimits().list_rows_shown_max))
    # With the default of ten thousand the test would only take longer.
    await results.evaluate("results => results.dataset.shownMax = 2000")
    await scroll_on(page, 2_000)
    await expect(page.locator("#shown")).to_have_text("Showing 2,000")
    # Rows in view are updated, wherever they are.
    last = page.locator(f"tr[data-id='{ids[1_990]}']")
    await last.scroll_into_view_if_needed()
    await api("timers/update", namespace="thousands", timerId=ids[1_990], callbackUrl="http://127.0.0.1:9/elsewhere")
    await expect(last.locator(".c-to")).to_contain_text("elsewhere")
    # The list ends there, with a link to the next page. The locator uses the id: by role it would be slow with so many rows.
    await expect(page.locator("#follow a")).to_have_text("Next 500")
    await page.locator("#follow a").click()
    await expect(rows.first).to_have_attribute("data-id", ids[2_000])
    await expect(rows).to_have_count(300)


async def test_without_scripts_the_next_page_continues_the_list(
    browser: Browser, server: ServerProcess, api: Api
) -> None:
    ids = await many(api, "plain", 60)
    async with window(browser, server.url, scripts=False) as plain:
        page = plain.page
        await plain.go("/timers?namespace=plain&rows=25")
        seen: list[str | None] = []
        for count in (25, 25, 10):
            rows = page.locator("#results tbody tr")
            await expect(rows).to_have_count(count)
            seen += [await row.get_attribute("data-id") for row in await rows.all()]
            if count == 25:
                await page.get_by_role("link", name="Next 25").click()
                await expect(page.locator(f"tr[data-id='{seen[-25]}']")).to_have_count(0)
        assert seen == ids
        assert "cursor=" in page.url
        await page.get_by_role("link", name="Back to start").click()
        await expect(page.locator("#results tbody tr").first).to_have_attribute("data-id", ids[0])
        await plain.go("/timers?namespace=plain&rows=25&view=all")
        assert await page.locator("#results tbody tr").first.get_attribute("data-id") == ids[-1]


async def test_call_list_loads_rows_on_scrolling(shown: Window, tenant: Tenant) -> None:
    ids = [await tenant.submit(f"c{number}", URL, dueAt=in_seconds(3_600)) for number in range(120)][::-1]
    page = shown.page
    await shown.go(f"{tenant.list}&rows=25")
    rows = page.locator("#results tbody tr")
    await scroll_on(page, len(ids))
    assert await page.evaluate("[...document.querySelectorAll('#results tbody tr')].map(row => row.dataset.id)") == ids
    await expect(page.locator("#shown")).to_have_text("120 calls")
    # Rows loaded by scrolling are live too.
    last = page.locator(f"tr[data-id='{ids[-1]}']")
    async with page.expect_response("**/calls/star"):
        await last.get_by_role("button", name="Favourite").click()
    await expect(last.get_by_role("button", name="Favourite")).to_have_attribute("aria-pressed", "true")
    assert (await tenant.get(ids[-1]))["tags"] == ["star"]
    await last.locator("a.named").click()
    await expect(page.locator("h1")).to_have_text("c0")
    await page.go_back()
    await expect(last).to_be_in_viewport()
    await tenant.submit("one more", URL, dueAt=in_seconds(3_600))
    await expect(page.locator("#fresh")).to_have_text("1 new")
    await expect(page.locator("#fresh")).to_be_in_viewport()
    await page.locator("#fresh").click()
    await expect(rows.first.locator("a.named")).to_have_text("one more")


@pytest.mark.timeout(400)
async def test_long_search_shows_matches_and_continues(browser: Browser, tmp_path: Path) -> None:
    # The list needs more than one read of the store; with so short a timeout, each response covers one read.
    async with serving(tmp_path, TOCSIN_UI_LIST_SEARCH_TIMEOUT="1ms") as server:
        await search_in_steps(browser, server)


async def search_in_steps(browser: Browser, server: ServerProcess) -> None:
    api = Api(server)
    for start in range(0, 52_000, 1_000):
        timers = [
            {
                "namespace": "default",
                "id": f"t{number:06d}",
                "callbackUrl": URL,
                "delay": f"{3_600 + number}s",
                "tags": ["rare"] if number in (51_000, 51_999) else [],
            }
            for number in range(start, start + 1_000)
        ]
        assert (await api("timers/batch/create", timers=timers))[0] == 200
    async with window(browser, server.url, scripts=False) as plain:
        page = plain.page
        await plain.go("/timers?tag=rare")
        await expect(page.locator("#shown")).to_have_text("0 found so far")
        await expect(page.locator("#follow")).to_contain_text("Searched everything due before")
        await page.get_by_role("link", name="Continue search").click()
        await expect(page.locator("#results tbody tr")).to_have_count(2)
    async with window(browser, server.url) as live:
        page = live.page
        rows = page.locator("#results tbody tr")
        for order, ids in (("asc", ["t051000", "t051999"]), ("desc", ["t051999", "t051000"])):
            await live.go(f"/timers?tag=rare&order={order}")
            await expect(page.locator("#shown")).to_have_text("2 timers")
            assert [await row.get_attribute("data-id") for row in await rows.all()] == ids
        await live.go("/timers?tag=nobody&view=all")
        await expect(page.get_by_role("heading", name="No matching timers")).to_be_visible()
        await expect(page.locator("#follow a")).to_have_count(0)
        await expect(page.locator("#many")).to_be_hidden()
        assert live.complaints == []
