"""Pages that are open while what they show changes: nothing on them moves."""

from __future__ import annotations

import re
import signal
from contextlib import AsyncExitStack

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.browser import Window, window
from tests.e2e.tenant import Tenant, in_seconds
from tests.support.calls import Api, Inbox
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

NOWHERE = "http://127.0.0.1:9/hook"
ROWS = 30
#: Sums the layout shifts from now on, and notes what moved.
_WATCH = """() => {
  window.moved = { by: 0, what: [] };
  const words = ({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.textContent ?? "";
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) { moved.by += each.value; moved.what.push(...each.sources.map(words)); }
  }).observe({ type: "layout-shift" });
}"""
#: The clock that a test moves draws no frames.
_KEEP_FRAMES = "window.realFrame = requestAnimationFrame.bind(window)"
#: Chromium reports a frame's layout shift after the frame.
_MOVED = "new Promise((done) => realFrame(() => realFrame(() => done(moved))))"
#: Which rows stand where.
_ROWS = """[...document.querySelectorAll("main tbody tr")].map(
  (row) => [row.querySelector(".id").textContent, row.getBoundingClientRect().top])"""
_SHIFT_MAX = 0.01
#: What can be clicked where the button with the longest words is.
_COVERED = """() => {
  const button = document.getElementById("fresh");
  button.textContent = "1,000 or more new, 1,000 no longer completed";
  const place = button.getBoundingClientRect();
  const meets = (box) => box.left < place.right && box.right > place.left && box.top < place.bottom && box.bottom > place.top;
  return [...document.querySelectorAll("a, button, input, select, summary")]
    .filter((each) => each !== button && each.checkVisibility() && [...each.getClientRects()].some(meets))
    .map((each) => each.outerHTML);
}"""


async def stocked(api: Api, tenant: Tenant) -> list[str]:
    """More than a screen of timers, schedules, calls and monitors. The ids of the calls, the latest first."""
    timers = [
        {"namespace": "default", "id": f"t{number:02d}", "callbackUrl": NOWHERE, "delay": f"{3_600 + number}s"}
        for number in range(ROWS)
    ]
    assert (await api("timers/batch/create", timers=timers))[0] == 200
    for number in range(ROWS):
        named = {"namespace": "default", "id": f"x{number:02d}"}
        assert (await api("schedules/create", **named, cron="@yearly", callbackUrl=NOWHERE))[0] == 200
        assert (await api("monitors/put", **named, every="5m"))[0] == 200
    return [await tenant.submit(f"c{number}", NOWHERE, dueAt=in_seconds(3_600)) for number in range(ROWS)][::-1]


async def change(api: Api, tenant: Tenant, calls: list[str], url: str) -> None:
    """Of each kind, the first rows change, and what they show."""
    for number in range(4):
        timer = {"namespace": "default", "timerId": f"t{number:02d}"}
        assert (await api("timers/update", **timer, delay="0s", callbackUrl=url))[0] == 200
        named = {"namespace": "default", "scheduleId": f"x{number:02d}"}
        assert (await api("schedules/pause", **named))[0] == 200
        pinged = {"namespace": "default", "id": f"x{number:02d}", "event": "success"}
        assert (await api("monitors/ping", **pinged))[0] == 200
        assert await tenant.delete(calls[number]) == 204
    assert (await api("timers/delete", namespace="default", timerId="t06"))[0] == 204


@pytest.mark.parametrize("look", ["light", "phone"])
async def test_nothing_moves_on_a_live_page(
    browser: Browser, server: ServerProcess, api: Api, tenant: Tenant, inbox: tuple[Inbox, str], look: str
) -> None:
    calls = await stocked(api, tenant)
    # Which rows have changed, and what the button reads then. Neither Now nor Nodes, which show how busy the machine is.
    changed = {
        "/timers": ("tr:has-text('completed')", "5 finished"),
        "/schedules": ("tr:has-text('paused')", ""),
        tenant.list: ("tr[data-left]", "4 gone"),
        "/monitors": ("tr:has-text('on time')", None),
    }
    async with AsyncExitStack() as stack:
        pages: dict[str, Page] = {}
        for path in changed:
            shown = await stack.enter_async_context(window(browser, server.url, look))
            await shown.context.add_init_script(_KEEP_FRAMES)
            await shown.page.clock.install()
            await shown.go(path)
            await expect(shown.page.locator("#link-state")).to_have_attribute("data-state", "live")
            await shown.painted()
            await shown.page.evaluate(_WATCH)
            pages[path] = shown.page
        before = {path: await pages[path].evaluate(_ROWS) for path in changed}
        await change(api, tenant, calls, inbox[1])
        for path, page in pages.items():
            row, words = changed[path]
            await expect(page.locator(row)).to_have_count(4)
            # What a page does a moment later.
            await page.clock.run_for(5_000)
            if words is not None:
                await expect(page.locator("#fresh")).to_have_text(words)
            moved = await page.evaluate(_MOVED)
            assert await page.evaluate(_ROWS) == before[path], path
            assert moved["by"] <= _SHIFT_MAX, (path, moved)


@pytest.mark.parametrize("path", ["/", "/timers"])
async def test_page_states_that_a_stopped_server_does_not_answer(
    shown: Window, server: ServerProcess, path: str
) -> None:
    """A stopped process keeps its connections, so that neither the stream nor a request fails."""
    page, state = shown.page, shown.page.locator("#link-state")
    stated = page.locator("#sentence" if path == "/" else "#outage")
    await page.clock.install()
    await shown.go(path)
    await expect(state).to_have_text("Live")
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        await page.clock.run_for(30_000)
        await expect(state).to_have_text(re.compile(r"^As of \d\d:\d\d:\d\d$"))
        await expect(stated).to_contain_text("No answer from")
    finally:
        server.process.send_signal(signal.SIGCONT)
    await page.clock.run_for(5_000)
    await expect(state).to_have_text("Live")
    await expect(stated).not_to_contain_text("No answer from")


async def test_timers_that_left_no_trace_are_gone(shown: Window, api: Api, inbox: tuple[Inbox, str]) -> None:
    page = shown.page
    assert (await api("namespaces/create", name="traceless", history="none"))[0] == 200
    for number in range(4):
        await api.create(f"t{number}", NOWHERE, namespace="traceless", delay=f"{3_600 + number}s")
    await page.clock.install()
    await shown.go("/timers?namespace=traceless")
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    await page.get_by_label("Select t0").check()
    await page.get_by_label("Select t3").check()
    for number in range(2):
        sent = {"namespace": "traceless", "timerId": f"t{number}", "delay": "0s", "callbackUrl": inbox[1]}
        assert (await api("timers/update", **sent))[0] == 200
    gone = page.locator("#results .state:has-text('gone')")
    await expect(gone).to_have_count(2)
    await expect(page.locator("#results [data-left] [data-due], #results [data-left][data-due]")).to_have_count(0)
    await expect(page.locator("#fresh")).to_have_text("2 finished")
    await expect(page.locator("#shown")).to_have_text("2 timers")
    # They are not selected any more, and the line stands below them.
    await expect(page.get_by_label("Select t0")).to_be_disabled()
    await expect(page.locator("#picked-count")).to_have_text("1 timer selected")
    await expect(page.locator("tr.first-next")).to_have_attribute("data-id", "t2")
    # Nothing more is asked about them.
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    await page.clock.run_for(5_000)
    assert not [body for body in asked if "traceless%2Ft0" in body]


async def test_button_for_news_of_a_list_covers_nothing_that_can_be_clicked(
    shown: Window, api: Api, inbox: tuple[Inbox, str]
) -> None:
    page = shown.page
    for name in ("first", "second"):
        await api.create(name, NOWHERE, delay="1h")
    await shown.go("/timers")
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    sent = {"namespace": "default", "timerId": "first", "delay": "0s", "callbackUrl": inbox[1]}
    assert (await api("timers/update", **sent))[0] == 200
    await expect(page.locator("#fresh")).to_have_text("1 finished")
    for width in (360, 390, 720, 820, 1100, 1280):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await page.evaluate(_COVERED) == [], width


async def test_a_list_whose_rows_have_left_loads_itself(shown: Window, api: Api, inbox: tuple[Inbox, str]) -> None:
    page = shown.page
    assert (await api("namespaces/create", name="wall"))[0] == 200
    await api.create("first", NOWHERE, namespace="wall", delay="1h")
    await shown.go("/timers?namespace=wall")
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    row = page.locator("tr[data-id='first']")
    # While the pointer is on the list, it stays.
    await row.hover()
    await api.create("second", NOWHERE, namespace="wall", delay="2h")
    sent = {"namespace": "wall", "timerId": "first", "delay": "0s", "callbackUrl": inbox[1]}
    assert (await api("timers/update", **sent))[0] == 200
    await expect(page.locator("#fresh")).to_have_text("1 new, 1 finished")
    await expect(row).to_have_attribute("data-left", "")
    await page.mouse.move(0, 0)
    await expect(row).to_have_count(0)
    await expect(page.locator("tr[data-id='second']")).to_be_visible()


async def test_failed_run_stays_failed_when_its_timer_is_replayed(
    shown: Window, api: Api, inbox: tuple[Inbox, str]
) -> None:
    page = shown.page
    assert (await api("namespaces/create", name="runs"))[0] == 200
    for name in ("repaired", "broken"):
        await api.create(name, NOWHERE, namespace="runs", delay="0s", retryPolicy={"maxAttempts": 1})
        await api.settled(name, "failed", namespace="runs")
    replay = {"namespace": "runs", "ids": ["repaired"], "setUrl": inbox[1]}
    assert (await api("timers/replay", **replay, delay="1h"))[0] == 200
    await shown.go("/timers?namespace=runs&view=failed")
    row, since = page.locator("tr[data-id='repaired']"), page.locator("tr[data-id='repaired'] .since")
    await expect(since).to_have_text("→ pending")
    await row.locator(".c-when").click()
    await expect(page.locator("#peeked > .state")).to_have_text("pending")
    wanted = {"namespace": "runs", "timerId": "repaired", "delay": "0s"}
    assert (await api("timers/update", **wanted))[0] == 200
    await expect(since).to_have_text("→ completed")
    # The panel is about the timer, the row about its run.
    await expect(page.locator("#peeked > .state")).to_have_text("completed")
    await expect(row.locator(".c-state > .state")).to_have_text("failed")
    await expect(row.locator(".c-note")).to_contain_text("CONNECTION")
    await expect(page.locator("tr[data-left]")).to_have_count(0)
    await expect(page.locator("#shown")).to_have_text("2 timers")
    await expect(page.locator(".since")).to_have_count(1)
    await shown.picture("failed-runs")


async def test_panel_follows_a_timer_whose_run_ends(shown: Window, api: Api) -> None:
    page = shown.page
    assert (await api("namespaces/create", name="ending"))[0] == 200
    await api.create("t", NOWHERE, namespace="ending", delay="1h", retryPolicy={"maxAttempts": 1})
    await shown.go("/timers?namespace=ending")
    row, state = page.locator("tr[data-id='t']"), page.locator("#peeked > .state")
    await row.locator(".c-when").click()
    await expect(state).to_have_text("pending")
    assert (await api("timers/update", namespace="ending", timerId="t", delay="0s"))[0] == 200
    await expect(row).to_have_attribute("data-left", "")
    await expect(state).to_have_text("failed")
    assert (await api("timers/replay", namespace="ending", ids=["t"], delay="1h"))[0] == 200
    await expect(row.locator(".since")).to_have_text("→ pending")
    await expect(row.locator(".c-state > .state")).to_have_text("failed")
    await expect(state).to_have_text("pending")
