"""Two nodes on one database: the page Now names the one that does not respond."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.e2e.browser import FIRED, SIZES, chromium_path, window
from tests.support.calls import Api, Inbox
from tests.support.cluster import node, running, shared_by
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

TIMERS = 24


@pytest_asyncio.fixture(loop_scope="session")
async def pair(tmp_path: Path, postgresql_url: str) -> AsyncIterator[tuple[ServerProcess, ServerProcess]]:
    chromium_path()
    one, two = (node(tmp_path, name, postgresql_url) for name in ("belfry-1", "belfry-2"))
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


async def test_now_names_a_node_that_does_not_respond(
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
        sentence, band = page.locator("#sentence"), page.locator("#now .band").first
        await expect(sentence).to_have_text(FIRED)
        await two.kill()
        async with heartbeats_of("belfry-2", postgresql_url):
            await expect(sentence).to_contain_text("The node belfry-2 does not respond.")
            await expect(band).to_contain_text("in flight, without belfry-2")
            assert await shown.faults_by_look("now-missing", SIZES) == {}
            await shown.look("light")
        # Then the node is considered dead, and the other one owns its shards.
        await expect(sentence).not_to_contain_text("does not respond")
        await fire_timers(one, inbox[1], "b")
        await expect(band).not_to_contain_text("without")
        assert shown.complaints == []
