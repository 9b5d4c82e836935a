"""Two nodes on one database: the overview describes both, and names one that does not respond."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.e2e.browser import SIZES, chromium_path, window
from tests.support.cluster import node, running, shared_by
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def pair(tmp_path: Path, postgresql_url: str) -> AsyncIterator[tuple[ServerProcess, ServerProcess]]:
    chromium_path()
    one, two = (node(tmp_path, name, postgresql_url) for name in ("belfry-1", "belfry-2"))
    async with running(one, two):
        await shared_by([one, two], {"belfry-1", "belfry-2"})
        yield one, two


def tile(page: Page, name: str) -> Locator:
    return page.locator(f"#tile-{name}")


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


async def test_overview_names_a_node_that_does_not_respond(
    browser: Browser, postgresql_url: str, pair: tuple[ServerProcess, ServerProcess]
) -> None:
    one, two = pair
    async with window(browser, one.url) as shown:
        page = shown.page
        await shown.go("/")
        sentence = page.locator("#sentence")
        await expect(page.locator(".uplot")).to_have_count(4)
        await expect(sentence).to_contain_text("Quiet. Nothing fired")
        await two.kill()
        async with heartbeats_of("belfry-2", postgresql_url):
            await expect(sentence).to_contain_text("belfry-2 does not respond. Otherwise: ")
            # What is of this moment lacks it.
            await expect(tile(page, "window").locator("b")).to_have_text("≥\u00a00")
            await expect(tile(page, "overdue").locator("b")).to_have_text("none known")
            await expect(tile(page, "overdue").locator("span")).to_contain_text("without belfry-2")
        # Then the node is considered dead, and the current values are complete again.
        await expect(tile(page, "overdue").locator("b")).to_have_text("none")
        await expect(sentence).not_to_contain_text("does not respond")
        assert await shown.faults_by_look("overview", SIZES) == {}
        assert shown.complaints == []
