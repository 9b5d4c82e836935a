"""Takes the pictures of the pages: python -m tests.e2e.pictures. It starts a server with the data of a small shop.

Those that the docs show go to docs/images, the others to build/screenshots. With --all it takes every page, or those named
after it, at five widths in light and dark, into build/screenshots/all, and prints how much of each page moved."""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from tests.e2e import shop
from tests.e2e.browser import PICTURES, ROOT, Window, chromium, window
from tests.e2e.tenant import Tenant
from tests.support.calls import Api
from tests.support.command import command
from tests.support.http import Receiver
from tests.support.inbox import Program
from tests.support.patience import PATIENCE_S
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
#: The pages of which --all takes pictures beside those above.
MORE = (
    ("timers-peek", "/timers?view=failed", "light"),
    ("timers-all", "/timers?view=all", "light"),
    ("timers-empty", "/timers?q=nothing", "light"),
    ("timer-failed", "/timers/default/charge-4001", "light"),
    ("timer-edit", "/timers/edit?namespace=default&id=order-1042-reminder", "light"),
    ("timer-missing", "/timers/default/never", "light"),
    ("schedule-edit", "/schedules/edit?namespace=default&id=nightly-report", "light"),
    ("schedule-failing", "/schedules/billing/bank-statement", "light"),
    ("calendar-edit", "/calendars/edit?namespace=default&name=holidays-de", "light"),
    ("calls-tenants", "/calls/tenants", "light"),
    ("call-failed", "/calls/{other}/{failed}", "light"),
    ("monitor-new", "/monitors/new", "light"),
    ("failure-of-calls", "/failures/calls/group?tenant={tenant}&error=HTTP+409", "light"),
    ("flow-new", "/flows/new", "light"),
    ("job-new", "/jobs/new", "light"),
    ("credentials", "/credentials", "light"),
    ("credential-new", "/credentials/new", "light"),
    ("namespace-new", "/namespaces/new", "light"),
)
SIGNED_IN_MORE = (("key-new", "/keys/new", "light"),)
SIGNED_OUT = ("login", "/login")
WIDTHS = (390, 820, 1280, 1920, 2560)
#: Of what a list goes on with, a picture shows no more than this.
HIGHEST = 1_600
#: The layout shifts of a page, and what moved: what was drawn later than the rest, and live updates.
_SHIFTS = """window.moved = { by: 0, what: [] };
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) {
    moved.by += each.value;
    moved.what.push(...each.sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.textContent ?? ""));
  }
}).observe({ type: "layout-shift", buffered: true });"""


#: The tables that are wider than what shows of them.
_CUT = """[...document.querySelectorAll(".scroll")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => `${each.ariaLabel} is ${each.scrollWidth} in ${each.clientWidth}`)"""


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


async def draw(shown: Window, name: str, path: str, theme: str, *widths: int) -> None:
    """Takes the pictures of one page at these widths. Prints what moved while it was new, if something did."""
    page = shown.page
    await page.set_viewport_size({"width": widths[-1], "height": 900})
    await shown.go(path)
    await page.evaluate(_SHIFTS)
    await expect(page.locator(".htmx-request")).to_have_count(0)
    moved = await page.evaluate("new Promise((done) => setTimeout(() => done(moved), 1500))")
    if moved["by"]:
        print(f"{name} {theme} {widths[-1]}: {moved['by']:.4f} {moved['what'][:2] if moved['by'] > 0.002 else ''}")
    # On a phone a row opens its page.
    if name.endswith("-peek") and widths[-1] >= 720:
        await page.locator("tbody .state").nth(1).click()
        await expect(page.locator("#peeked")).to_be_visible()
    for width in widths:
        await page.set_viewport_size({"width": width, "height": 844 if width == 390 else 900})
        size = await page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        if size[0] > width:
            print(f"{name} {theme} {width}: is {size[0]} wide")
        if cut := await page.evaluate(_CUT):
            print(f"{name} {theme} {width}: {', '.join(cut)}")
        area: Any = {"x": 0, "y": 0, "width": width, "height": min(size[1], HIGHEST)}
        await page.screenshot(path=PICTURES / "all" / f"{name}-{width}-{theme}.png", full_page=True, clip=area)


async def draw_each(browser: Browser, base: str, shots: Iterable[tuple[str, str]], state: Any = None) -> None:
    """Takes the pictures of these pages: in light, each width is loaded; in dark, the window changes its size."""
    for name, path in shots:
        async with AsyncExitStack() as stack:
            windows = [
                (await stack.enter_async_context(window(browser, base, theme, state=state)), theme, widths)
                for theme, widths in (*(("light", (width,)) for width in WIDTHS), ("dark", WIDTHS))
            ]
            for fault in await asyncio.gather(
                *(draw(shown, name, path, theme, *widths) for shown, theme, widths in windows), return_exceptions=True
            ):
                if fault is not None:
                    print(f"{name}: {fault!r}")


async def draw_all(browser: Browser, server: ServerProcess, program: Program, names: Iterable[str]) -> None:
    """Fills the server with data and takes the pictures of all pages, or of those named."""
    wanted = set(names)
    api, tenant, other = Api(server), Tenant(server), Tenant(server)
    async with Receiver(shop.answer) as receiver:
        url = receiver.url.removesuffix("/hook")
        await shop.fail(api, url)
        await shop.recover(api)
        program.write("wholesale", f"{url}/hook", "quote-17-ends", "quote-18-ends", "quote-23-ends")
        await shop.stock(api, url)
        await shop.branch(api, url)
        failed = await shop.order_elsewhere(other, url)
        call = await shop.order(tenant, url)
        await shop.work(api)
        places = {
            "tenant": tenant.id,
            "other": other.id,
            "call": call,
            "failed": failed,
            "url": url,
            "job": await shop.change_many(api),
        }
        shots = [(name, path.format(**places)) for name, path, look in (*SHOTS, *MORE) if look == "light"]
        await draw_each(browser, server.url, (each for each in shots if not wanted or each[0] in wanted))
        signed_in = [each[:2] for each in (*SIGNED_IN_SHOTS, *SIGNED_IN_MORE) if not wanted or each[0] in wanted]
        if signed_in:
            async with window(browser, server.url) as shown:
                await sign_in(shown, server)
                await draw_each(browser, server.url, signed_in, await shown.context.storage_state())
                await draw_each(browser, server.url, [SIGNED_OUT])


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


async def main(pages: list[str] | None) -> None:
    """Takes the pictures of the docs and the tests, or those of all pages."""
    expect.set_options(timeout=PATIENCE_S * 1_000)
    with running(PostgresServer()) as postgresql, tempfile.TemporaryDirectory(prefix="tocsin-pictures-") as data:
        program = Program(await postgresql.create_database())
        await program.cli("migrate")
        settings = {"TOCSIN_NODE_NAME": "belfry-1", "TOCSIN_SHARDS": "16"} | program.settings("default", "wholesale")
        server = ServerProcess(Path(data) / "data", "--port", "0", env=settings)
        await server.start()
        try:
            async with chromium() as browser:
                if pages is None:
                    await take(browser, server, program)
                else:
                    await draw_all(browser, server, program, pages)
        finally:
            await server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", nargs="*", metavar="PAGE")
    asyncio.run(main(parser.parse_args().all))
