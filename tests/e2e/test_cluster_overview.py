"""Two nodes on one database: the overview covers both and marks missing data."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.e2e.browser import SIZES, chromium_path, window
from tests.support.calls import Api, Inbox
from tests.support.cluster import node, running, shared_by, until
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

#: Buckets of a second, so that the charts get points soon.
POINTS = {"TOCSIN_UI_CHART_INTERVAL": "1s"}
TIMERS = 24


@pytest_asyncio.fixture(loop_scope="session")
async def pair(tmp_path: Path, postgresql_url: str) -> AsyncIterator[tuple[ServerProcess, ServerProcess]]:
    chromium_path()
    one, two = (node(tmp_path, name, postgresql_url) for name in ("belfry-1", "belfry-2"))
    for server in (one, two):
        server.env |= POINTS
    async with running(one, two):
        await shared_by([one, two], {"belfry-1", "belfry-2"})
        yield one, two


async def fire_timers(server: ServerProcess, url: str, name: str, count: int = TIMERS) -> None:
    """Fires timers in all shards."""
    api = Api(server)
    for number in range(count):
        await api.create(f"{name}-{number}", url)
    for number in range(count):
        await api.settled(f"{name}-{number}", "completed")


async def series(server: ServerProcess, query: str = "") -> dict[str, Any]:
    """The data of a node's charts."""
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        answer = await client.get(f"/ui/statistics{query}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def fires_of(server: ServerProcess, query: str = "") -> int:
    """The number of fires in the charts."""
    shown = await series(server, query)
    return round(sum(shown["done"]) * shown["width"])


def this_hour(page: Page) -> Locator:
    """The number of created timers on the page."""
    return tile(page, "created").locator("span")


def tile(page: Page, name: str) -> Locator:
    return page.locator(f"#tile-{name}")


async def test_overview_covers_the_whole_cluster(
    browser: Browser, pair: tuple[ServerProcess, ServerProcess], inbox: tuple[Inbox, str]
) -> None:
    one, two = pair
    await fire_timers(one, inbox[1], "a")
    names = ("belfry-1", "belfry-2")

    async def fires_by_node(server: ServerProcess) -> dict[str, int]:
        return {name: await fires_of(server, f"?node={name}") for name in names}

    async def nodes_agree() -> bool:
        seen = [await fires_by_node(server) for server in pair]
        return seen[0] == seen[1] and sum(seen[0].values()) == TIMERS

    # Each node has fired some timers, and both report the same statistics.
    await until(nodes_agree)
    parts = await fires_by_node(one)
    assert all(parts.values()), parts

    async def all_complete() -> bool:
        # The charts end with the last bucket that all nodes have completed.
        fires = [await fires_of(server) for server in pair]
        return fires == [TIMERS, TIMERS] and not any([(await series(server))["gaps"] for server in pair])

    await until(all_complete)
    async with window(browser, one.url) as shown:
        page = shown.page
        await shown.go("/")
        await expect(page.locator(".uplot")).to_have_count(4)
        await expect(this_hour(page)).to_have_text(f"{TIMERS} this hour")
        await expect(page.locator("#gaps")).to_be_hidden()
        choice = page.get_by_label("Node", exact=True)
        await expect(choice.locator("option")).to_have_text(["All nodes", "belfry-1", "belfry-2"])
        for name, fires in parts.items():
            await choice.select_option(name)
            await expect(page).to_have_url(re.compile(f"node={name}"))
            # The owner of a shard creates and fires its timers.
            await expect(this_hour(page)).to_have_text(f"{fires} this hour")
            await page.wait_for_load_state()
        await choice.select_option("")
        await expect(page).to_have_url(f"{one.url}/")
        # The page shows the fires of all nodes.
        await fire_timers(two, inbox[1], "b")
        await expect(this_hour(page)).to_have_text(f"{2 * TIMERS} this hour")
        async with window(browser, two.url, scripts=False) as plain:
            await plain.go("/")
            await plain.page.get_by_label("Node", exact=True).select_option("belfry-1")
            await plain.page.get_by_role("button", name="Show").click()
            await expect(plain.page).to_have_url(re.compile("node=belfry-1"))
            await plain.go("/?node=nobody")
            assert "Unknown node: nobody" in await plain.text(".sentence")
        # A node that has stopped may have fired timers since the last poll.
        await two.stop()
        await expect(page.locator("#gaps")).to_contain_text("belfry-2 has stopped")
        await expect(this_hour(page)).to_have_text(f"≥\u00a0{2 * TIMERS} this hour, without belfry-2")
        assert shown.complaints == []


@asynccontextmanager
async def heartbeats_of(name: str, postgresql_url: str) -> AsyncIterator[None]:
    """Writes a killed node's heartbeats, so that the others don't consider it dead."""
    connection = await asyncpg.connect(postgresql_url)

    async def beat() -> None:
        while True:
            await connection.execute(
                "UPDATE tocsin.members SET member_counter = member_counter + 1 WHERE member_node = $1", name
            )
            await asyncio.sleep(0.25)

    beating = asyncio.create_task(beat())
    try:
        yield
        # Otherwise a failed heartbeat would only show as a test that waits in vain.
        assert not beating.done(), beating
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        await connection.close()


async def test_overview_marks_data_missing_from_a_stopped_node(
    browser: Browser,
    postgresql_url: str,
    pair: tuple[ServerProcess, ServerProcess],
    inbox: tuple[Inbox, str],
) -> None:
    one, two = pair
    await fire_timers(one, inbox[1], "a")
    async with window(browser, one.url) as shown:
        page = shown.page
        await shown.go("/")
        gaps, sentence = page.locator("#gaps"), page.locator("#sentence")
        fires = tile(page, "fires")
        await expect(this_hour(page)).to_have_text(f"{TIMERS} this hour")
        await two.kill()
        async with heartbeats_of("belfry-2", postgresql_url):
            await expect(sentence).to_contain_text("belfry-2 does not respond. Otherwise: ")
            await expect(gaps).to_contain_text(
                re.compile(r"belfry-2 does not respond: its data is missing since \d{4}-")
            )
            # The data received before stays, marked as incomplete.
            await expect(this_hour(page)).to_have_text(f"≥\u00a0{TIMERS} this hour, without belfry-2")
            await expect(fires.locator("b")).to_have_text(re.compile("≥\u00a0[0-9]+"))
            await expect(fires.locator("span")).to_contain_text("without belfry-2")
            await expect(tile(page, "overdue").locator("b")).to_have_text("none known")
            assert [gap[2] for gap in (await series(one))["gaps"]] == ["belfry-2"]
        # Then the node is considered dead, and the current values are complete again.
        await expect(gaps).to_contain_text(re.compile("belfry-2 has stopped: its data from .* to .* is missing"))
        await expect(tile(page, "overdue").locator("b")).to_have_text("none")
        await expect(tile(page, "failed").locator("b")).to_have_text("≥\u00a00")
        await expect(page.locator(".uplot")).to_have_count(4)
        assert await shown.faults_by_look("overview-missing", SIZES) == {}
        await shown.look("light")
        # The node starts again. The data of its earlier start stays missing.
        await two.start()
        await shared_by([one, two], {"belfry-1", "belfry-2"})
        await fire_timers(two, inbox[1], "b")
        await expect(sentence).not_to_contain_text("does not respond")
        await expect(page.locator("section[aria-labelledby=timers-title] > .hint")).to_contain_text("2 nodes")
        assert await fires_of(one) >= TIMERS
        assert [gap[2] for gap in (await series(one))["gaps"]] == ["belfry-2"]
        assert shown.complaints == []
