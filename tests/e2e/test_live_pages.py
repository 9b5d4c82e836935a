"""Pages that are open while what they show changes: nothing on them moves."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.browser import window
from tests.e2e.tenant import Tenant, in_seconds
from tests.support.calls import Api, Inbox
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

NOWHERE = "http://127.0.0.1:9/hook"
ROWS = 30
#: Sums the layout shifts from now on, and notes what moved and whether a part of the page was drawn again.
_WATCH = """() => {
  window.moved = { by: 0, what: [], changed: false };
  document.body.addEventListener("tocsin:changed", () => { moved.changed = true; });
  const words = ({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.textContent ?? "";
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) { moved.by += each.value; moved.what.push(...each.sources.map(words)); }
  }).observe({ type: "layout-shift" });
}"""
#: Chromium reports a frame's layout shift after the frame.
_MOVED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(moved))))"
#: Which rows stand where.
_ROWS = "[...document.querySelectorAll('#results tbody tr')].map((row) => [row.dataset.id, row.getBoundingClientRect().top])"
_SHIFT_MAX = 0.01


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
        await api("monitors/ping", namespace="default", id=f"x{number:02d}", event="success")
        assert await tenant.delete(calls[number]) == 204
    assert (await api("timers/delete", namespace="default", timerId="t06"))[0] == 204


@pytest.mark.parametrize("look", ["light", "phone"])
async def test_nothing_moves_on_a_live_page(
    browser: Browser, server: ServerProcess, api: Api, tenant: Tenant, inbox: tuple[Inbox, str], look: str
) -> None:
    calls = await stocked(api, tenant)
    # Which rows have changed. Nodes changes by itself. Not Now, which says so where a busy machine fires late.
    changed = {
        "/timers": "tr:has-text('completed')",
        "/schedules": "tr:has-text('paused')",
        tenant.list: "tr[data-left]",
        "/monitors": "tr:has-text('on time')",
        "/nodes": "",
    }
    async with AsyncExitStack() as stack:
        pages: dict[str, Page] = {}
        for path in changed:
            shown = await stack.enter_async_context(window(browser, server.url, look))
            await shown.page.clock.install()
            await shown.go(path)
            await expect(shown.page.locator("#link-state")).to_have_attribute("data-state", "live")
            await shown.painted()
            await shown.page.evaluate(_WATCH)
            pages[path] = shown.page
        before = {path: await pages[path].evaluate(_ROWS) for path in changed}
        await change(api, tenant, calls, inbox[1])
        for path, page in pages.items():
            if changed[path]:
                await expect(page.locator(changed[path])).to_have_count(4)
            else:
                await page.wait_for_function("() => moved.changed")
            # What a page does a moment later.
            await page.clock.run_for(5_000)
            assert await page.evaluate(_ROWS) == before[path], path
            moved = await page.evaluate(_MOVED)
            assert moved["by"] <= _SHIFT_MAX, (path, moved)
