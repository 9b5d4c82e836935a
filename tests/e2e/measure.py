"""Measures the pages over a million timers: python -m tests.e2e.measure [TIMERS]. Prints a table; asserts nothing.

`--data FOLDER` keeps the data of the first run there; later runs measure a copy of it. `--only` selects the measurements.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import Page, expect

from tests.e2e.browser import Window, chromium, window
from tests.e2e.tenant import in_seconds, new_id
from tests.support.http import Receiver
from tests.support.server import ServerProcess

PATHS = (
    ("first page", "/timers"),
    ("prefix, rare (one match)", "/timers?q=order-0999999"),
    ("prefix, common", "/timers?q=order-05"),
    ("prefix, none", "/timers?q=nothing"),
    ("tag, one in a hundred", "/timers?tag=vip"),
    ("tag, one in 100,000", "/timers?tag=rare"),
    ("tag, none", "/timers?tag=none"),
    ("prefix and tag", "/timers?q=order-09&tag=rare"),
    ("two tags, none with both", "/timers?tag=vip,rare"),
    ("next hour", "/timers?due=next-1h"),
    ("a range far ahead", "/timers?from=2036-01-01T00:00&to=2036-01-02T00:00"),
    ("a range of all, rare prefix", "/timers?from=2020-01-01T00:00&to=2036-01-02T00:00&q=order-0900001"),
    ("all, latest first", "/timers?view=all"),
    ("all, latest first, rare tag", "/timers?view=all&tag=rare"),
    ("all, latest first, no match", "/timers?view=all&q=nothing"),
    ("pending, latest first, rare", "/timers?order=desc&q=order-000000"),
    ("failed, tag", "/timers?view=failed&tag=rare"),
    ("500 rows", "/timers?rows=500"),
    ("500 rows of a rare tag", "/timers?rows=500&tag=rare"),
)
SCROLL_ROWS = 10_000
BURST_RATE = 1_000
BURST_S = 20
_FIRST_PAINT = """
new Promise((done) => new PerformanceObserver((list) => {
  const found = list.getEntriesByName("first-contentful-paint")[0];
  if (found) done(found.startTime);
}).observe({ type: "paint", buffered: true }))
"""
_SEARCHED = """
new Promise((done) => {
  let idle = 0;
  const check = () => {
    // A full screen ends it, too: the search goes on when somebody scrolls.
    idle = document.querySelector(".pager[aria-busy]") ? 0 : idle + 1;
    if (document.querySelector("#follow[data-searching]") && idle < 50) setTimeout(check, 10);
    else done();
  };
  check();
})
"""
_SHOWN = "Number(document.getElementById('shown').textContent.match(/[\\d,]+/)[0].replace(',', ''))"
_LONG_TASKS = """
window.long = []; new PerformanceObserver((list) => { for (const e of list.getEntries()) long.push(e.duration); })
  .observe({ type: "longtask", buffered: true });
window.shifted = 0; new PerformanceObserver((list) => { for (const e of list.getEntries()) shifted += e.value; })
  .observe({ type: "layout-shift", buffered: true });
window.frames = []; let last = performance.now();
const tick = (now) => { frames.push(now - last); last = now; requestAnimationFrame(tick); }; requestAnimationFrame(tick);
"""


async def fill(client: httpx.AsyncClient, timers: int) -> float:
    """Creates timers over ninety days from tomorrow on, a thousand per request. Returns how many per second."""
    begun = time.monotonic()

    async def batch(start: int) -> None:
        body = [
            {
                "namespace": "default",
                "id": f"order-{number:07d}",
                "delay": f"{86_400 + number * 7_776_000 // timers}s",
                "callbackUrl": "http://127.0.0.1:9/hook",
                "payload": {"order": number},
                "tags": [
                    "orders",
                    *(["vip"] if number % 100 == 0 else []),
                    *(["rare"] if number % 100_000 == 7 else []),
                ],
            }
            for number in range(start, min(start + 1_000, timers))
        ]
        answer = await client.post("/api/v1/timers/batch/create", json={"timers": body})
        answer.raise_for_status()

    for start in range(0, timers, 4_000):
        await asyncio.gather(*(batch(each) for each in range(start, min(start + 4_000, timers), 1_000)))
    return timers / (time.monotonic() - begun)


async def pages(client: httpx.AsyncClient, shown: Window) -> None:
    """Measures for each page the time to the last byte, to the first paint in the browser, and until the search has ended or
    the screen is full."""
    for title, path in PATHS:
        took = []
        for _ in range(3):
            begun = time.monotonic()
            answer = await client.get(path, headers={"accept": "text/html"})
            took.append((time.monotonic() - begun) * 1e3)
            assert answer.status_code == 200, answer.text[:500]
        begun = time.monotonic()
        await shown.go(path)
        paint = await shown.page.evaluate(_FIRST_PAINT)
        await shown.page.evaluate(_SEARCHED)
        whole = (time.monotonic() - begun) * 1e3
        rows = await shown.page.locator("#results tbody tr").count()
        print(
            f"{title:28} first {took[0]:5.0f} ms, then {min(took[1:]):5.0f} ms; painted {paint:5.0f} ms, "
            f"searched {whole:5.0f} ms; {answer.text.count(' data-v=')} rows, {rows} in the end"
        )


async def submit_calls(client: httpx.AsyncClient, calls: int) -> str:
    """Submits calls for tomorrow under a new tenant. Returns the path of its list."""
    tenant = new_id()
    due_at = in_seconds(86_400)

    async def one(number: int) -> None:
        spec = {"method": "POST", "url": "http://127.0.0.1:9/charge", "body": {"order": number}}
        body = {"name": f"Charge order {number}", "requestSpec": spec, "dueAt": due_at, "tags": ["orders"]}
        (await client.post(f"/api/v1/tenants/{tenant}/service-calls", json=body)).raise_for_status()

    for start in range(0, calls, 50):
        await asyncio.gather(*(one(number) for number in range(start, min(start + 50, calls))))
    return f"/calls?tenant={tenant}"


async def scroll(shown: Window, path: str, narrow: str) -> None:
    """Scrolls through a list until it has SCROLL_ROWS rows, then back to its top, and filters it."""
    page = shown.page
    sizes: list[int] = []
    page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    await shown.go(path)
    await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    await page.mouse.move(600, 500)
    await page.evaluate(_LONG_TASKS)
    begun = time.monotonic()
    # The check must not cost the page time: neither the page nor the driver may walk over all rows.
    while await page.evaluate(_SHOWN) < SCROLL_ROWS:
        await page.mouse.wheel(0, 1_500)
    took, sent = time.monotonic() - begun, sum(sizes)
    await report(
        page, f"{path.split('?')[0]}: {SCROLL_ROWS:,} rows in {took:.1f} s of scrolling, {sent / 1024:,.0f} KB"
    )
    height = await page.evaluate("document.documentElement.scrollHeight")
    for _ in range(60):
        await page.mouse.wheel(0, -height / 60)
        await page.evaluate("new Promise(requestAnimationFrame)")
    await report(page, "  back to the top in 60 steps")
    await page.evaluate("document.getElementById('pick-all')?.click()")
    await page.evaluate("new Promise(requestAnimationFrame)")
    await report(page, "  all selected")
    await page.evaluate(
        "void (window.swapped = new Promise((d) => document.addEventListener('htmx:afterSwap', d, {once: true})))"
    )
    await page.evaluate("document.getElementById('q').focus({preventScroll: true})")
    await report(page, "  the field has the focus")
    begun = time.monotonic()
    await page.keyboard.insert_text(narrow)
    await page.evaluate("swapped.then(() => new Promise(requestAnimationFrame))")
    await report(
        page,
        f"  filtered to what matches {(time.monotonic() - begun) * 1e3:.0f} ms after the last key (300 of them waited)",
    )


async def report(page: Page, title: str) -> None:
    """Prints the frame rate and the long tasks since the last report."""
    found = await page.evaluate(
        "(() => { const found = {long, worst: Math.max(...frames), slow: frames.filter(f => f > 50).length, frames:"
        " frames.length, mean: frames.reduce((a, b) => a + b, 0) / frames.length}; long = []; frames = []; return found; })()"
    )
    print(
        f"{title}; long tasks {[round(each) for each in found['long']]} ms; {1e3 / found['mean']:.0f} frames a second, "
        f"longest {found['worst']:.0f} ms, {found['slow']} of {found['frames']} over 50 ms"
    )


async def burst(client: httpx.AsyncClient, url: str, shown: Window) -> None:
    """Fires a thousand timers per second while the list is open."""
    for second in range(BURST_S):
        body = [
            {
                "namespace": "default",
                "id": f"burst-{second:02d}-{number:04d}",
                "delay": f"{12_000 + second * 1_000 + number * 1_000 // BURST_RATE}ms",
                "callbackUrl": url,
            }
            for number in range(BURST_RATE)
        ]
        (await client.post("/api/v1/timers/batch/create", json={"timers": body})).raise_for_status()
    for path in ("/timers?rows=200", "/"):
        await shown.go(path)
        await shown.page.evaluate(_LONG_TASKS)
        await asyncio.sleep(BURST_S / 2 + (8 if path != "/" else -2))
        found: dict[str, Any] = await shown.page.evaluate(
            "({long, shifted, worst: Math.max(...frames), slow: frames.filter(f => f > 50).length, frames: frames.length})"
        )
        changed = await shown.page.locator("tr .state[data-tone='done']").count()
        print(
            f"{path}: {len(found['long'])} long tasks {[round(each) for each in found['long']]} ms, "
            f"longest frame {found['worst']:.0f} ms, {found['slow']} of {found['frames']} over 50 ms, "
            f"layout shift {found['shifted']:.3f}, {changed} rows turned completed"
        )


async def main(timers: int, data: Path | None, only: list[str]) -> None:
    """Runs all measurements, or the selected ones."""
    with tempfile.TemporaryDirectory(prefix="tocsin-pages-") as folder:
        run_data = Path(folder) / "data"
        known = data is not None and data.exists()
        if known:
            shutil.copytree(data, run_data)
        server = ServerProcess(run_data)
        await server.start()
        try:
            async with (
                httpx.AsyncClient(base_url=server.url, timeout=120) as client,
                Receiver(lambda body, headers: (200, b"")) as receiver,
                chromium() as browser,
                window(browser, server.url) as shown,
            ):
                if not known:
                    print(f"{timers:,} timers, {await fill(client, timers):,.0f} created a second")
                if data is not None and not known:
                    await server.stop()
                    shutil.copytree(run_data, data)
                    await server.start()
                    client.base_url, shown.base = httpx.URL(server.url), server.url
                if "pages" in only:
                    await pages(client, shown)
                if "timers" in only:
                    await scroll(shown, "/timers", "order-05")
                if "calls" in only:
                    await scroll(shown, await submit_calls(client, SCROLL_ROWS + 500), new_id())
                if "burst" in only:
                    await burst(client, receiver.url, shown)
                print(json.dumps(shown.complaints))
        finally:
            await server.stop()


if __name__ == "__main__":
    parts = ["pages", "timers", "calls", "burst"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("timers", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    given = parser.parse_args()
    asyncio.run(main(given.timers, given.data, given.only))
