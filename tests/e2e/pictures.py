"""Takes the pictures of the pages: python -m tests.e2e.pictures. It starts a server with the data of a small shop.

Those that the docs show go to docs/images, the others to build/screenshots."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

from playwright.async_api import Browser, expect

from tests.e2e import shop, states
from tests.e2e.browser import PICTURES, ROOT, Window, chromium, window
from tests.e2e.tenant import Tenant
from tests.support.calls import Api
from tests.support.command import command
from tests.support.http import Receiver
from tests.support.inbox import Program
from tests.support.postgresql import PostgresServer
from tests.support.program import running
from tests.support.server import ServerProcess

#: The server's first picture, before it has other data.
INCIDENT = ("incident", "/", "light")
SHOTS = (
    ("now", "/", "light"),
    ("now-dark", "/", "dark"),
    ("timers", "/timers", "light"),
    ("timers-phone", "/timers", "phone"),
    ("timer", "/timers/default/invoice-4711-due", "light"),
    ("new", "/timers/new?namespace=default&like=order-1042-reminder", "light"),
    ("schedules", "/schedules", "light"),
    ("schedules-day", "/schedules/day", "light"),
    ("schedule", "/schedules/default/stock-feed", "light"),
    ("schedule-new", "/schedules/new?namespace=default&url=https://shop.example/hooks/report", "light"),
    ("calendars", "/calendars", "light"),
    ("calls", "/calls?tenant={tenant}", "light"),
    ("calls-phone", "/calls?tenant={tenant}", "phone"),
    ("call", "/calls/{tenant}/{call}", "light"),
    ("call-dark", "/calls/{tenant}/{call}", "dark"),
    ("call-new", "/calls/new?tenant={tenant}&like={call}", "light"),
    ("monitors", "/monitors", "light"),
    ("monitor", "/monitors/default/warehouse-import", "light"),
    ("failures", "/failures", "light"),
    ("failure", "/failures/group?namespace=default&destination={url}/psp/charge&error=HTTP+402&kind=timer", "light"),
    ("destinations", "/destinations", "light"),
    ("flows", "/flows", "light"),
    ("flow", "/flows/edit?namespace=default&match=vendor", "light"),
    ("inbox", "/inbox", "light"),
    ("jobs", "/jobs", "light"),
    ("job", "/jobs/{job}", "light"),
    ("nodes", "/nodes", "light"),
    ("store", "/store", "light"),
    ("namespaces", "/namespaces", "light"),
    ("namespace", "/namespaces/default", "light"),
    ("settings", "/settings", "light"),
    ("docs", "/docs", "light"),
)
#: For these somebody is signed in. They are the last ones: from the first key on, each request needs one.
SIGNED_IN_SHOTS = (
    ("keys", "/keys", "light"),
    ("audit", "/audit", "light"),
)


def shown_by_docs() -> set[str]:
    """The names of the pictures that the docs show."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {name for page in pages for name in re.findall(r"images/([\w-]+)\.png\)", page.read_text())}


async def shoot(shown: Window, name: str, path: str) -> None:
    """Takes one picture once the page is complete and live."""
    assert await shown.go(path) == 200, path
    page = shown.page
    if "/new" in path:
        await expect(page.locator("#outcome")).to_be_visible()
    elif "/calls/" in path:
        await expect(page.locator(".trace")).to_be_visible()
    elif path == "/docs":
        await expect(page.locator("#createTimer pre")).to_be_visible()
    await expect(page.locator("#link-state")).not_to_have_attribute("data-state", "waiting")
    await expect(page.locator(".htmx-request")).to_have_count(0)
    target = (ROOT / "docs" / "images" if name in shown_by_docs() else PICTURES) / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    # The overview and a call in full; lists and forms as far as the window shows them.
    await page.screenshot(path=target, full_page=path == "/" or "/calls/0" in path)
    print(target.relative_to(ROOT))


async def sign_in(shown: Window, server: ServerProcess) -> None:
    """Creates API keys, and signs in with that of an admin."""
    keys = []
    for note, flags in (
        ("Anna", ("--role", "admin")),
        ("wall display", ("--role", "read")),
        ("the shop", ("--role", "write", "--namespace", "default", "--expires-in", "90d")),
    ):
        code, out, err = await command(
            "keys", "create", "--yes", "--note", note, "--data-dir", str(server.data_dir), *flags
        )
        assert code == 0, err
        keys.append(out.strip())
    # The server reads its keys every two seconds.
    while (await Api(server)("namespaces/list"))[0] != 401:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    await shown.go("/login?to=/keys")
    await expect(shown.page.get_by_label("API key")).to_be_visible()
    await shown.page.get_by_label("API key").fill(keys[0])
    await shown.page.get_by_role("button", name="Sign in").click()
    await expect(shown.page.get_by_role("link", name="New key")).to_be_visible()


async def take(browser: Browser, server: ServerProcess, program: Program) -> None:
    """Fills the server with data and takes all pictures."""
    api, tenant = Api(server), Tenant(server)
    async with Receiver(shop.answer) as receiver:
        url = receiver.url.removesuffix("/hook")
        await shop.fail(api, url)
        async with window(browser, server.url) as shown:
            await shoot(shown, *INCIDENT[:2])
        await shop.recover(api)
        # No such namespace exists, so these rows are refused.
        program.write("wholesale", f"{url}/hook", "quote-17-ends", "quote-18-ends", "quote-23-ends")
        await shop.stock(api, url)
        call = await shop.order(tenant, url)
        await shop.work(api)
        job = await shop.change_many(api)
        for name, path, look in SHOTS:
            async with window(browser, server.url, look) as shown:
                await shoot(shown, name, path.format(tenant=tenant.id, call=call, job=job, url=url))
        async with window(browser, server.url) as shown:
            await sign_in(shown, server)
            for name, path, _ in SIGNED_IN_SHOTS:
                await shoot(shown, name, path)


async def main() -> None:
    """Takes all pictures."""
    with running(PostgresServer()) as postgresql, tempfile.TemporaryDirectory(prefix="tocsin-pictures-") as data:
        program = Program(await postgresql.create_database())
        await program.cli("migrate")
        settings = {"TOCSIN_NODE_NAME": "belfry-1", "TOCSIN_SHARDS": "16"} | program.settings("default", "wholesale")
        server = ServerProcess(Path(data) / "data", "--port", "0", env=settings)
        await server.start()
        try:
            async with chromium() as browser:
                await take(browser, server, program)
                await states.take(browser, list(states.STATES))
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
