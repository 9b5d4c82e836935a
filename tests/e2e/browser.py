"""A real Chromium, and windows that collect the errors of scripts and of the browser."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright, expect

from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "tocsin" / "web" / "pages" / "static" / "manifest.json"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
#: The folder for the screenshots of a test run.
PICTURES = ROOT / "build" / "screenshots"
_PICTURES_WANTED = bool(os.environ.get("TOCSIN_TEST_PICTURES"))

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: Names of the program. The first, without the desktop browser around the engine, needs half of the processor's time.
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
#: What the page Now states when something has fired and nothing is wrong: on a busy machine that was late.
FIRED = re.compile(r"^(Everything fires on time|Timers fire on time again|.* began late, by up to .*)\.$")
#: What axe checks in which look; none stands for all. A dark page differs from a light one in its colours, and a wide one in
#: nothing that axe checks.
AXE_RULES = {"light": (), "dark": ("color-contrast",), "phone": ()}
SIZES = {
    "light": (1360, 860), "dark": (1360, 860), "phone": (360, 780), "wide": (2560, 1300), "1280": (1280, 900),
    "390": (390, 844),
}  # fmt: skip


def chromium_path() -> str:
    """The path of Chromium. Skips the test if Chromium or the built pages are missing."""
    if not STATIC.exists():
        lacking("pages", "the web pages are not built; run `make web`")
    found = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    return found or lacking("chromium", "no chromium on the path; Debian's packages: chromium-headless-shell, chromium")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Starts a browser."""
    path = chromium_path()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


class Window:
    """A browser window. `complaints` collects script errors and violations of the content security policy."""

    def __init__(self, context: BrowserContext, page: Page, base: str) -> None:
        self.context = context
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("console", self._console)
        page.on("dialog", lambda dialog: self.complaints.append(f"{page.url}: dialog {dialog.message}"))

    def _console(self, message: ConsoleMessage) -> None:
        # Failed and superseded requests are logged to the console too; the tests check responses themselves.
        expected = ("Failed to load resource", "Response Status Error", "htmx:afterRequest", "htmx:send")
        if message.type == "error" and not message.text.startswith(expected):
            self.complaints.append(f"{self.page.url}: {message.text}")

    async def go(self, path: str) -> int:
        """Opens a page. Returns its HTTP status."""
        answer = await self.page.goto(self.base + path)
        assert answer is not None
        return answer.status

    @asynccontextmanager
    async def stopped_clock(self) -> AsyncIterator[None]:
        """Stops the timers of the page, and of pages that it leads to. `page.clock` can move them on."""
        clock = self.page.clock
        await clock.install()
        # A clock can't be stopped in the past.
        await clock.pause_at(time.time() + 60)
        yield
        await clock.resume()

    async def arrived(self, heading: str) -> None:
        """Waits for a page that a click led to, and for its scripts: before, they miss what the user does."""
        await expect(self.page.get_by_role("heading", name=heading)).to_be_visible()
        await self.page.wait_for_load_state()

    async def painted(self) -> None:
        """Waits until the browser has painted the page: before, it drops key presses."""
        await self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    async def unfold(self, *labels: str) -> None:
        """Opens summary lines of a form."""
        for label in labels:
            await self.page.locator("details.option:not([open]) > summary", has_text=label).first.click()

    async def payload(self, text: str) -> None:
        """Types into the editor of a form, which is loaded once its field has the focus."""
        await self.unfold("Payload")
        await self.page.locator("[data-editor] textarea").focus()
        await self.page.locator(".cm-content").click()
        await self.page.keyboard.type(text)

    async def text(self, selector: str) -> str:
        """The visible text of the first match."""
        return (await self.page.locator(selector).first.inner_text()).strip()

    async def look(self, name: str) -> None:
        """Changes the size of the window and the colour scheme to those of a look."""
        width, height = SIZES[name]
        await self.page.set_viewport_size({"width": width, "height": height})
        await self.page.emulate_media(color_scheme="dark" if name == "dark" else "light")

    async def faults(self, *rules: str) -> list[dict[str, Any]]:
        """The serious and critical accessibility faults that axe finds, by these rules or by all."""
        if not AXE.exists():
            lacking("axe", "axe-core is not installed; run `make web`")
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE.read_text())
        options: dict[str, Any] = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
        if rules:
            options = {"resultTypes": ["violations"], "runOnly": {"type": "rule", "values": rules}}
        found = await self.page.evaluate("options => axe.run(document, options)", options)
        return [
            {"id": each["id"], "help": each["help"], "at": [node["target"] for node in each["nodes"]][:5]}
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    async def faults_by_look(self, name: str, looks: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """Shows the page in these looks and takes a picture of each. Returns what is wrong, by look."""
        faults = {}
        for look in looks:
            await self.look(look)
            await self.picture(f"{name}-{look}")
            found = await self.faults(*AXE_RULES[look]) if look in AXE_RULES else []
            width = await self.page.evaluate("document.documentElement.scrollWidth")
            if width > SIZES[look][0]:
                found.append({"id": "width", "pixels": width})
            if found:
                faults[f"{name}-{look}"] = found
        return faults

    async def picture(self, name: str) -> None:
        """Takes a screenshot of the window, if pictures are wanted: they take a sixth of the time."""
        if not _PICTURES_WANTED:
            return
        PICTURES.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=PICTURES / f"{name}.png")


@asynccontextmanager
async def window(
    browser: Browser, base: str, look: str = "light", *, scripts: bool = True, state: Any = None
) -> AsyncIterator[Window]:
    """Opens a window, without cookies unless `state` has some. `look` is one of SIZES."""
    width, height = SIZES[look]
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if look == "dark" else "light",
        reduced_motion="reduce",  # animations cost more than all the rest, without a graphics processor
        locale="en-GB",
        timezone_id="Europe/Berlin",
        java_script_enabled=scripts,
        accept_downloads=True,
        storage_state=state,
    )
    context.set_default_timeout(PATIENCE_S * 1_000)
    try:
        yield Window(context, await context.new_page(), base)
    finally:
        await context.close()
