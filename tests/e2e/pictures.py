"""Pictures for the docs: python -m tests.e2e.pictures FOLDER. A server of its own, timers of a small shop, a real browser."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from tests.e2e.browser import Window, chromium, window
from tests.support.calls import Api
from tests.support.http import Receiver
from tests.support.server import ServerProcess

#: How long the shop runs before the first picture, so that the charts have something to show.
BUSY_S = 75
RINGS_PER_SECOND = 12
SHOTS = (
    ("overview", "/", "light"),
    ("overview-dark", "/", "dark"),
    ("timers", "/timers", "light"),
    ("timers-phone", "/timers", "phone"),
    ("timer", "/timers/default/invoice-4711-due", "light"),
    ("new", "/timers/new?namespace=default&like=order-1042-reminder", "light"),
)


def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
    """The shop's: good, most of the time."""
    timer_id, attempt = body.get("timerId", ""), body.get("attempt", 1)
    if timer_id.startswith("invoice") and attempt < 3:
        return 503, b"busy"
    return (500, b"") if timer_id.endswith("7") and attempt == 1 else (200, b"")


async def stock(api: Api, url: str) -> None:
    """Timers of every kind, and enough that ring while we wait."""
    policy = {"maxAttempts": 5, "initialInterval": "1s"}
    kinds = (
        ("order-{}-reminder", ["orders", "eu"], {"order": 17, "amount": "19.90", "currency": "EUR"}),
        ("basket-{}-abandoned", ["baskets"], {"basket": "b-81", "items": [{"sku": "bell-3", "count": 2}]}),
        ("trial-{}-ends", ["accounts", "mail"], {"account": "a-17"}),
    )
    timers = [
        {
            "namespace": "default", "id": kinds[number % 3][0].format(1_000 + 7 * number), "callbackUrl": url,
            "delay": f"{150 + number * number * 11}s", "tags": kinds[number % 3][1], "payload": kinds[number % 3][2],
            "retryPolicy": policy,
        }
        for number in range(40)
    ]  # fmt: skip
    timers += [
        {
            "namespace": "default", "id": f"mail-{number:05d}", "callbackUrl": url,
            "delay": f"{number * 1_000 // RINGS_PER_SECOND}ms", "tags": ["mail"], "retryPolicy": policy,
        }
        for number in range((BUSY_S + 30) * RINGS_PER_SECOND)
    ]  # fmt: skip
    for start in range(0, len(timers), 1_000):
        await api("timers/batch/create", timers=timers[start : start + 1_000])
    await api.create(
        "invoice-4711-due", url, payload={"invoice": 4711, "due": "2027-01-31"}, tags=["billing"], retryPolicy=policy
    )
    await api("namespaces/create", name="billing", history="failures", retention="7d")


async def shoot(shown: Window, path: str, target: Path) -> None:
    """One picture, once the page is alive."""
    await shown.go(path)
    page = shown.page
    if path == "/":
        await expect(page.locator(".uplot")).to_have_count(4)
    if "/new" in path:
        await expect(page.locator(".cm-content")).to_be_visible()
    elif path != "/namespaces":
        await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    await page.screenshot(path=target)
    print(target)


async def main(folder: Path) -> None:
    """All of them."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tocsin-pictures-") as data:
        server = ServerProcess(
            Path(data) / "data", "--port", "0", env={"TOCSIN_NODE_NAME": "belfry-1", "TOCSIN_SHARDS": "16"}
        )
        await server.start()
        try:
            async with Receiver(answer) as receiver, chromium() as browser:
                await stock(Api(server), receiver.url)
                await asyncio.sleep(BUSY_S)
                for name, path, look in SHOTS:
                    async with window(browser, server.url, look) as shown:
                        await shoot(shown, path, folder / f"{name}.png")
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/pictures")))
