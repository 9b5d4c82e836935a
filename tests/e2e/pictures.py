"""Takes the pictures for the docs: python -m tests.e2e.pictures FOLDER. It starts a server with timers of a small shop."""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from tests.e2e.browser import Window, chromium, window
from tests.e2e.tenant import Tenant, in_seconds
from tests.support.calls import Api
from tests.support.http import Receiver
from tests.support.server import ServerProcess

#: How long timers fire before the first picture, so that the charts have data.
BUSY_S = 75
FIRES_PER_SECOND = 12
SHOTS = (
    ("now", "/", "light"),
    ("now-dark", "/", "dark"),
    ("timers", "/timers", "light"),
    ("timers-phone", "/timers", "phone"),
    ("timer", "/timers/default/invoice-4711-due", "light"),
    ("new", "/timers/new?namespace=default&like=order-1042-reminder", "light"),
    ("schedule-new", "/schedules/new?namespace=default&url=https://shop.example/hooks/report", "light"),
    ("calls", "/calls?tenant={tenant}", "light"),
    ("calls-phone", "/calls?tenant={tenant}", "phone"),
    ("call", "/calls/{tenant}/{call}", "light"),
    ("call-dark", "/calls/{tenant}/{call}", "dark"),
    ("call-new", "/calls/new?tenant={tenant}&like={call}", "light"),
)
CALLS_PER_SECOND = 4


def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
    """The shop's responses to callbacks, mostly successes."""
    if "timerId" not in body:
        return service(body)
    timer_id, attempt = body.get("timerId", ""), body.get("attempt", 1)
    if timer_id.startswith("invoice") and attempt < 3:
        return 503, b"busy"
    return (500, b"") if timer_id.endswith("7") and attempt == 1 else (200, b"")


_reservations = itertools.count()


def service(body: dict[str, Any]) -> tuple[int, bytes]:
    """The responses of the shop's services to calls."""
    if "items" in body and next(_reservations) % 5 == 4:
        return 409, b'{"error":"sold out","sku":"bell-3"}'
    if "order" in body:
        return 200, b'{"charge":"ch_81","order":17,"status":"paid","receipt":"https://pay.example/r/ch_81"}'
    return 200, b'{"accepted":true}'


async def stock(api: Api, url: str) -> None:
    """Creates timers of several kinds, and enough that fire before the first picture."""
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
            "delay": f"{number * 1_000 // FIRES_PER_SECOND}ms", "tags": ["mail"], "retryPolicy": policy,
        }
        for number in range((BUSY_S + 30) * FIRES_PER_SECOND)
    ]  # fmt: skip
    for start in range(0, len(timers), 1_000):
        await api("timers/batch/create", timers=timers[start : start + 1_000])
    await api.create(
        "invoice-4711-due", url, payload={"invoice": 4711, "due": "2027-01-31"}, tags=["billing"], retryPolicy=policy
    )
    await api("namespaces/create", name="billing", history="failures", retention="7d")


async def order(tenant: Tenant, url: str) -> str:
    """Submits the shop's service calls. Returns the id of the one on the pictures."""
    services = (
        ("Charge order {}", "charges", ["orders", "eu"], {"order": 17, "amount": "19.90", "currency": "EUR"}),
        ("Reserve items of order {}", "stock", ["stock"], {"items": [{"sku": "bell-3", "count": 2}]}),
        ("Mail the receipt of order {}", "mails", ["mail"], {"template": "receipt", "locale": "de"}),
    )
    for number in range((BUSY_S + 30) * CALLS_PER_SECOND):
        name, path, tags, body = services[number % 3]
        due_at = in_seconds(number / CALLS_PER_SECOND)
        await tenant.submit(name.format(4_000 + number), f"{url}/{path}", body=body, tags=tags, dueAt=due_at)
    await tenant.submit("Ask the bank", "http://127.0.0.1:9/limits", method="GET", tags=["bank"])
    for hours in (2, 26):
        await tenant.submit(
            "Remind of invoice 4711", f"{url}/mails", body={"invoice": 4711}, tags=["billing"],
            dueAt=in_seconds(3_600 * hours),
        )  # fmt: skip
    name, path, tags, body = services[0]
    headers = {"Authorization": "Bearer tk-of-the-shop", "X-Shop": "eu"}
    call = await tenant.submit(
        name.format(4711), f"{url}/{path}", headers=headers, body=body, tags=[*tags, "star"], dueAt=in_seconds(5)
    )
    await tenant.ended(call)
    return call


async def shoot(shown: Window, path: str, target: Path) -> None:
    """Takes one picture once the page is live."""
    await shown.go(path)
    page = shown.page
    if "/new" in path:
        await expect(page.locator("#outcome")).to_be_visible()
    elif "/calls/" in path:
        await expect(page.locator(".trace")).to_be_visible()
    elif path != "/namespaces":
        await expect(page.locator("#link-state")).to_have_attribute("data-state", "live")
    # The overview and a call in full; lists and forms as far as the window shows them.
    await page.screenshot(path=target, full_page=path == "/" or "/calls/0" in path)
    print(target)


async def main(folder: Path) -> None:
    """Takes all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tocsin-pictures-") as data:
        server = ServerProcess(
            Path(data) / "data", "--port", "0", env={"TOCSIN_NODE_NAME": "belfry-1", "TOCSIN_SHARDS": "16"}
        )
        await server.start()
        try:
            async with Receiver(answer) as receiver, chromium() as browser:
                tenant = Tenant(server)
                await stock(Api(server), receiver.url)
                call = await order(tenant, receiver.url)
                await asyncio.sleep(BUSY_S)
                for name, path, look in SHOTS:
                    async with window(browser, server.url, look) as shown:
                        await shoot(shown, path.format(tenant=tenant.id, call=call), folder / f"{name}.png")
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/pictures")))
