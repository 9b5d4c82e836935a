"""Pictures of Now, the list of timers, a timer and the store in states that are not the healthy one, two widths each:
python -m tests.e2e.states [STATE...]. They go to build/screenshots/states.

Where the server or its database goes out, the pages are open before. They are pictured a moment and a while later, then
beside pages that are opened meanwhile, and when it is back."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, expect

from tests.e2e.browser import PICTURES, ROOT, SIZES, Window, chromium, window
from tests.support.calls import Api
from tests.support.http import Receiver
from tests.support.ports import free_port
from tests.support.postgresql import PostgresServer
from tests.support.program import running
from tests.support.server import ServerProcess

WIDTHS = ("1280", "390")
#: What open pages show so long after the outage began.
SOON_S, LATER_S = 5, 60
_RECOVERS_S = 10
_BUSY_S = 20


async def picture(shown: Window, name: str, looks: tuple[str, ...] = WIDTHS) -> None:
    """Takes pictures of the page as it is, a list as far as the window shows it."""
    for look in looks:
        await shown.look(look)
        if "list" not in name:
            # A higher window, since bars at its foot would stand in the middle of a picture of the whole page.
            height = await shown.page.evaluate("document.documentElement.scrollHeight")
            await shown.page.set_viewport_size({"width": SIZES[look][0], "height": height})
        await shown.painted()
        target = PICTURES / "states" / f"{name}-{look}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        await shown.page.screenshot(path=target)
        print(target.relative_to(ROOT), flush=True)


async def settled(shown: Window) -> None:
    """Waits until the page is complete, and as live as it can be."""
    await expect(shown.page.locator("#link-state")).not_to_have_attribute("data-state", "waiting")
    await expect(shown.page.locator(".htmx-request")).to_have_count(0)


class Scene:
    """A server in a state, and the browser that looks at it."""

    def __init__(self, state: str, browser: Browser, server: ServerProcess, postgresql: PostgresServer) -> None:
        self.state, self.browser, self.server, self.postgresql = state, browser, server, postgresql
        self.api = Api(server)

    async def ask(self, path: str, **body: object) -> None:
        """A request to the API that succeeds."""
        status, answer = await self.api(path, **body)
        assert status in (200, 202), (path, answer)

    async def namespaces(self) -> None:
        """Two beside the one that every server has."""
        for name in ("billing", "fulfilment"):
            await self.ask("namespaces/create", name=name)

    async def timers(
        self, namespace: str, name: str, count: int, url: str, *, every_s: float = 0, **more: object
    ) -> None:
        """Creates timers, one due each so many seconds."""
        timers = [
            {"namespace": namespace, "id": f"{name}-{5000 + n}", "callbackUrl": url, "delay": f"{round(every_s * n * 1e3)}ms"}
            | more
            for n in range(count)
        ]  # fmt: skip
        status, answer = await self.api("timers/batch/create", timers=timers)
        assert status == 200 and not any("error" in each for each in answer["results"]), answer

    async def shoot(self, timer: str, **more: str) -> None:
        """Pictures of the four pages and of `more`, Now in dark, too."""
        paths = {"now": "/", "list": "/timers", "timer": f"/timers/{timer}", "store": "/store", **more}
        async with window(self.browser, self.server.url, "1280") as shown:
            for name, path in paths.items():
                await shown.look("1280")
                await shown.go(path)
                await settled(shown)
                await picture(shown, f"{self.state}-{name}", (*WIDTHS, "dark") if name == "now" else WIDTHS)

    async def shoot_open(self, timer: str, begin: Callable[[], Awaitable[None]], end: Callable[[], Awaitable[None]], *,
                         opens: bool) -> None:  # fmt: skip
        """Pictures of pages that are open while something is out, and when it is back. `opens`: pages can be opened
        meanwhile."""
        paths = {"now": "/", "list": "/timers", "timer": f"/timers/{timer}", "store": "/store"}
        async with AsyncExitStack() as stack:
            pages = {}
            for name, path in paths.items():
                shown = await stack.enter_async_context(window(self.browser, self.server.url, "1280"))
                await shown.go(path)
                await settled(shown)
                pages[name] = shown
            await begin()
            began = asyncio.get_running_loop().time()
            for words, after_s in (("soon", SOON_S), ("later", LATER_S)):
                await asyncio.sleep(max(0, began + after_s - asyncio.get_running_loop().time()))
                for name, shown in pages.items():
                    looks = (*WIDTHS, "dark") if name == "now" and words == "later" else WIDTHS
                    await picture(shown, f"{self.state}-{name}-{words}", looks)
            if opens:
                shown = await stack.enter_async_context(window(self.browser, self.server.url, "1280"))
                for name, path in paths.items():
                    await shown.look("1280")
                    await shown.page.goto(self.server.url + path)
                    await settled(shown)
                    await picture(shown, f"{self.state}-{name}-opened")
            await end()
            await asyncio.sleep(_RECOVERS_S)
            for name, shown in pages.items():
                await picture(shown, f"{self.state}-{name}-back")


async def failing(scene: Scene) -> None:
    """A destination answers 500: some timers have failed, others are retried."""
    body = b'{"error": "upstream_unavailable", "detail": "acquirer pool exhausted"}'
    async with (
        Receiver(lambda _body, _headers: (500, body)) as broken,
        Receiver(lambda _body, _headers: (200, b"")) as well,
    ):
        await scene.namespaces()
        psp, wms = broken.url.removesuffix("/hook"), well.url.removesuffix("/hook")
        await scene.timers("fulfilment", "wms-sync", 40, f"{wms}/wms/sync", every_s=0.2)
        retries = {"maxAttempts": 2, "initialInterval": "100ms"}
        await scene.timers("billing", "charge", 30, f"{psp}/psp/charge", every_s=0.3, retryPolicy=retries)
        retries = {"maxAttempts": 10, "initialInterval": "40s"}
        await scene.timers("billing", "capture", 12, f"{psp}/psp/capture", every_s=0.5, retryPolicy=retries)
        await scene.timers("fulfilment", "pickup", 20, f"{wms}/v1/pickup", every_s=90)
        await scene.api.settled("charge-5000", "failed", namespace="billing")
        await asyncio.sleep(_BUSY_S)
        await scene.shoot(
            "billing/charge-5000", failed="/timers?view=failed", failures="/failures", retried="/timers/billing/capture-5000",
            destinations="/destinations",
        )  # fmt: skip


async def late(scene: Scene) -> None:
    """Receivers hang: timers wait for a slot of their destination, others for one of the node."""
    async with (
        Receiver(lambda _body, _headers: (200, b"")) as wms,
        Receiver(lambda _body, _headers: (200, b"")) as carrier,
    ):
        await scene.namespaces()
        for name, count, receiver, path in (("wms-sync", 40, wms, "/wms/sync"), ("pickup", 20, carrier, "/v1/pickup")):
            receiver.responding.clear()
            url = receiver.url.replace("/hook", path)
            await scene.timers("fulfilment", name, count, url, every_s=0.1, callbackTimeoutSeconds=300)
        await scene.timers("billing", "charge", 20, "http://127.0.0.1:9/psp/charge", every_s=90)
        await asyncio.sleep(_BUSY_S)
        await scene.shoot(
            "fulfilment/wms-sync-5039", waiting="/timers?view=waiting", node="/timers/fulfilment/pickup-5019",
            inflight="/timers/fulfilment/wms-sync-5000", destinations="/destinations",
        )  # fmt: skip
        for receiver in (wms, carrier):
            receiver.responding.set()


async def paused(scene: Scene) -> None:
    """A namespace and a destination are paused."""
    async with Receiver(lambda _body, _headers: (200, b"")) as receiver:
        await scene.namespaces()
        url = receiver.url.removesuffix("/hook")
        await scene.ask("namespaces/update", name="fulfilment", paused=True)
        await scene.ask("destinations/pause", destination="https://carrier.example")
        await scene.timers("fulfilment", "wms-sync", 30, f"{url}/wms/sync", every_s=0.2)
        await scene.timers("billing", "pickup", 8, "https://carrier.example/v1/pickup", every_s=0.5)
        await scene.timers("billing", "charge", 40, f"{url}/psp/charge", every_s=1)
        await asyncio.sleep(_BUSY_S)
        await scene.shoot(
            "fulfilment/wms-sync-5000", destination="/timers/billing/pickup-5000", ahead="/timers/fulfilment/wms-sync-5029",
            namespaces="/namespaces", destinations="/destinations",
        )  # fmt: skip


async def empty(scene: Scene) -> None:
    """Nobody has used the server yet."""
    await scene.shoot("default/first", failures="/failures", destinations="/destinations", schedules="/schedules")


async def _go_out(scene: Scene, begin: Callable[[], Awaitable[None]], end: Callable[[], Awaitable[None]], *,
                  opens: bool) -> None:  # fmt: skip
    """Timers fire each second, until something is out."""
    async with Receiver(lambda _body, _headers: (200, b"")) as receiver:
        await scene.namespaces()
        url = receiver.url.removesuffix("/hook")
        await scene.timers("billing", "charge", 300, f"{url}/psp/charge", every_s=0.5)
        await scene.timers("fulfilment", "pickup", 20, f"{url}/v1/pickup", every_s=90)
        await asyncio.sleep(_BUSY_S)
        # It comes due during the outage.
        await scene.api.create("settle-1", f"{url}/psp/settle", namespace="billing", delay="25s")
        await scene.shoot_open("billing/settle-1", begin, end, opens=opens)


async def silent(scene: Scene) -> None:
    """The database does not answer."""
    await _go_out(scene, _of(scene.postgresql.pause), _of(scene.postgresql.resume), opens=True)


async def refused(scene: Scene) -> None:
    """The database has stopped."""
    await _go_out(scene, _of(scene.postgresql.stop), _of(scene.postgresql.start), opens=True)


async def dead(scene: Scene) -> None:
    """The server is killed."""
    await _go_out(scene, scene.server.kill, scene.server.start, opens=False)


def _of(action: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    return lambda: asyncio.to_thread(action)


STATES = {each.__name__: each for each in (failing, late, silent, refused, paused, empty, dead)}
#: Low limits, at which timers wait.
_SETTINGS = {
    "late": {
        "TOCSIN_DESTINATION_IN_FLIGHT_MAX": "8", "TOCSIN_CALLBACKS_IN_FLIGHT_MAX": "12",
        "TOCSIN_CALLBACK_TIMEOUT_MAX": "5m", "TOCSIN_DRAIN_TIMEOUT": "6m",
    }
}  # fmt: skip


@asynccontextmanager
async def _scene(state: str, browser: Browser) -> AsyncIterator[Scene]:
    with running(PostgresServer()) as postgresql, tempfile.TemporaryDirectory(prefix="tocsin-states-") as folder:
        settings = {"TOCSIN_NODE_NAME": "belfry-1", "TOCSIN_STORE": await postgresql.create_database()}
        settings |= _SETTINGS.get(state, {})
        server = ServerProcess(Path(folder) / "data", "--port", str(free_port()), env=settings)
        await server.start()
        try:
            yield Scene(state, browser, server, postgresql)
        finally:
            await server.kill()


async def take(browser: Browser, states: list[str]) -> None:
    """Takes the pictures of these states."""
    for state in states:
        async with _scene(state, browser) as scene:
            await STATES[state](scene)


async def main() -> None:
    """Takes the pictures of the states that the command names, or of all."""
    async with chromium() as browser:
        await take(browser, sys.argv[1:] or list(STATES))


if __name__ == "__main__":
    asyncio.run(main())
