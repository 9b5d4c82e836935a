"""The database stops answering and returns: open pages and fresh ones show it, and afterwards what it did, also after a
restart of the node."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.e2e.browser import Window, chromium_path, window
from tests.support.calls import Api, Inbox
from tests.support.cluster import node, running
from tests.support.ports import free_port
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

#: One a second, so that some come due while nothing fires, however long a slow machine takes for it.
TIMERS = 600
#: By this number the outage is known from others that a machine has which halts for seconds.
REFUSED = 2
AS_OF = re.compile(r"^As of \d\d:\d\d:\d\d$")
#: Long enough for a timer that came due meanwhile to be late.
LASTS = re.compile(r"^(\d+ min.*|([3-9]|\d\d) s) so far$")
NO_ANSWER = re.compile(r"PostgreSQL at \S+ does not answer, or too slowly\.")
STOPPED = re.compile(rf"^{NO_ANSWER.pattern} Nothing fires\.$")
CALM = re.compile("Nothing needs attention|Everything fires on time")


async def stocked(api: Api, url: str) -> None:
    """Timers that come due one after the other, and a monitor whose job has reported once and no more."""
    assert (await api("monitors/put", namespace="default", id="silent", every="1s", grace="1s"))[0] == 200
    assert (await api("monitors/ping", namespace="default", id="silent", event="success"))[0] == 200
    timers = [
        {"namespace": "default", "id": f"t{number}", "callbackUrl": url, "delay": f"{number}s"}
        for number in range(TIMERS)
    ]
    assert (await api("timers/batch/create", timers=timers))[0] == 200


#: Records what the page states of itself from now on.
RECORD = """
  window.stated = [];
  new MutationObserver(() => stated.push(document.getElementById("link-state").textContent))
    .observe(document.getElementById("link-state"), { subtree: true, childList: true, characterData: true });
"""


@asynccontextmanager
async def opened(browser: Browser, server: ServerProcess, *paths: str) -> AsyncIterator[list[Window]]:
    """Windows with these pages, live."""
    if not paths:
        yield []
        return
    async with window(browser, server.url) as shown:
        await shown.go(paths[0])
        await expect(shown.page.locator("#link-state")).to_have_text("Live")
        async with opened(browser, server, *paths[1:]) as others:
            yield [shown, *others]
        assert shown.complaints == []


async def shown_of(page: Page) -> list[str]:
    """What Now shows of the outage that is over, once its numbers are final: how many attempts were late, by how much at
    most, and how many creates were refused."""
    row = page.locator(".incident", has_text=f"{REFUSED} creates were refused")
    await expect(row).to_contain_text("did not answer, or too slowly")
    await expect(row.locator(".number")).to_have_text(re.compile(r"^\d+ late by at most [^,]+$"))
    number, _, most = (await row.locator(".number").inner_text()).partition("late by at most")
    return [number.strip(), most.strip(), str(REFUSED)]


async def of_store(shown: Window) -> list[str]:
    """What the page of the store shows of it."""
    await shown.go("/store")
    rows = shown.page.get_by_role("region", name="Outages").locator("tbody tr")
    row = rows.filter(has=shown.page.locator("td.num:last-child", has_text=re.compile(rf"^{REFUSED}$")))
    return [(await cell.inner_text()).strip() for cell in await row.locator("td.num").all()]


async def test_an_outage_of_the_database_is_reported_while_it_lasts_and_afterwards(
    browser: Browser, tmp_path: Path, postgresql: PostgresServer, inbox: tuple[Inbox, str]
) -> None:
    chromium_path()
    # After its restart, the pages that are open find it again.
    server = node(tmp_path, "belfry-1", await postgresql.create_database(), "--port", str(free_port()))
    async with running(server):
        api = Api(server)
        await stocked(api, inbox[1])
        async with (
            opened(browser, server, "/", "/timers", "/monitors") as (now, timers, monitors),
            window(browser, server.url) as fresh,
        ):
            body, sentence = now.page.locator("#main"), now.page.locator("#sentence")
            # A monitor that misses its report needs attention.
            await expect(sentence).to_contain_text("he monitor silent is late")
            alarm = now.page.locator(".incident", has_text="The monitor silent is late")
            await expect(alarm.get_by_role("link")).to_have_attribute("href", "/monitors/default/silent")

            postgresql.pause()
            await expect(sentence).to_have_text(STOPPED)
            for shown in (timers, monitors):
                # One learns it from its stream, the other finds out when it is read again.
                await expect(shown.page.locator("#link-state")).to_have_text(AS_OF)
                await expect(shown.page.locator("#outage")).to_contain_text(NO_ANSWER)
                await shown.page.evaluate(RECORD)
            assert await fresh.go("/timers") == 503
            await expect(fresh.page.locator("#outage")).to_contain_text(NO_ANSWER)
            for number in range(REFUSED):
                timer = {"namespace": "default", "id": f"refused-{number}", "callbackUrl": inbox[1], "delay": "1h"}
                status, _ = await api("timers/create", **timer)
                assert status == 503
            assert await fresh.go("/store") == 200
            await expect(fresh.page.locator("#main")).to_contain_text("until now")
            await expect(now.page.locator(".incident .number").first).to_have_text(LASTS)
            await expect(sentence).to_have_text(STOPPED)
            await expect(body).not_to_contain_text(CALM)
            # It asks again and again, and gets no more.
            async with monitors.page.expect_response("**/monitors"):
                pass
            for shown in (timers, monitors):
                assert "Live" not in await shown.page.evaluate("stated")

            postgresql.resume()
            await expect(sentence).not_to_have_text(STOPPED)
            for shown in (timers, monitors):
                await expect(shown.page.locator("#link-state")).to_have_text("Live")
                await expect(shown.page.locator("#outage")).to_be_empty()
            numbers = await shown_of(now.page)
            assert int(numbers[0]) > 0
            await expect(body).not_to_contain_text(CALM)
            assert numbers == await of_store(fresh)

            await server.stop()
            for shown in (timers, monitors):
                await expect(shown.page.locator("#link-state")).to_have_text(AS_OF)
            await server.start()
            for shown in (now, timers, monitors):
                await expect(shown.page.locator("#link-state")).to_have_text("Live")
            assert await shown_of(now.page) == numbers == await of_store(fresh)
            await expect(sentence).to_contain_text("he monitor silent is late")
            # The requests that failed meanwhile.
            for shown in (now, timers, monitors, fresh):
                shown.complaints.clear()
