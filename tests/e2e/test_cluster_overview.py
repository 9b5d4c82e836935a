"""Two nodes on one database: the overview is the cluster's, and says what is missing; a sign-out holds on both."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.e2e.browser import SIZES, Window, chromium_path, window
from tests.support.calls import Api, Inbox
from tests.support.cluster import SOON, node, running, shared_by, until
from tests.support.command import command
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

#: Points of a second, so that charts have some soon.
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


async def rung(server: ServerProcess, url: str, name: str, count: int = TIMERS) -> None:
    """Has timers ring in all shards."""
    api = Api(server)
    for number in range(count):
        await api.create(f"{name}-{number}", url)
    for number in range(count):
        await api.settled(f"{name}-{number}", "completed")


async def figures(server: ServerProcess, query: str = "") -> dict[str, Any]:
    """What a node's charts are drawn from."""
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        answer = await client.get(f"/ui/statistics{query}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def have_rung(server: ServerProcess, query: str = "") -> int:
    """How many rings the charts show."""
    shown = await figures(server, query)
    return round(sum(shown["done"]) * shown["width"])


def this_hour(page: Page) -> Locator:
    """How many timers were created, as the page says."""
    return tile(page, "created").locator("span")


def tile(page: Page, name: str) -> Locator:
    return page.locator(f"#tile-{name}")


async def test_the_overview_is_the_whole_clusters(
    browser: Browser, pair: tuple[ServerProcess, ServerProcess], inbox: tuple[Inbox, str]
) -> None:
    one, two = pair
    await rung(one, inbox[1], "a")
    names = ("belfry-1", "belfry-2")

    async def rings_by(server: ServerProcess) -> dict[str, int]:
        return {name: await have_rung(server, f"?node={name}") for name in names}

    async def all_are_told() -> bool:
        told = [await rings_by(server) for server in pair]
        return told[0] == told[1] and sum(told[0].values()) == TIMERS

    # Each has rung some, and what one says of the other is what the other says.
    await until(all_are_told)
    parts = await rings_by(one)
    assert all(parts.values()), parts

    async def all_is_there() -> bool:
        # The charts of all end where the last of them has ended its point.
        rings = [await have_rung(server) for server in pair]
        return rings == [TIMERS, TIMERS] and not any([(await figures(server))["gaps"] for server in pair])

    await until(all_is_there)
    async with window(browser, one.url) as shown:
        page = shown.page
        await shown.go("/")
        await expect(page.locator(".uplot")).to_have_count(4)
        await expect(this_hour(page)).to_have_text(f"{TIMERS} this hour")
        await expect(page.locator("#gaps")).to_be_hidden()
        choice = page.get_by_label("Statistics of")
        await expect(choice.locator("option")).to_have_text(["all nodes", "belfry-1", "belfry-2"])
        for name, rings in parts.items():
            await choice.select_option(name)
            await expect(page).to_have_url(re.compile(f"node={name}"))
            # Whoever owns a shard creates its timers, and rings them.
            await expect(this_hour(page)).to_have_text(f"{rings} this hour")
        await choice.select_option("")
        await expect(page).to_have_url(f"{one.url}/")
        # What happens is told of all, wherever it does.
        await rung(two, inbox[1], "b")
        await expect(this_hour(page)).to_have_text(f"{2 * TIMERS} this hour")
        async with window(browser, two.url, scripts=False) as plain:
            await plain.go("/")
            await plain.page.get_by_label("Statistics of").select_option("belfry-1")
            await plain.page.get_by_role("button", name="Show").click()
            await expect(plain.page).to_have_url(re.compile("node=belfry-1"))
            await plain.go("/?node=nobody")
            assert "No node called nobody" in await plain.text(".sentence")
        # One that stops in order may have done something since it was asked last.
        await two.stop()
        await expect(page.locator("#gaps")).to_contain_text("belfry-2 has ended")
        await expect(this_hour(page)).to_have_text(f"≥\u00a0{2 * TIMERS} this hour, without belfry-2")
        assert shown.complaints == []


async def test_a_node_that_ends_or_does_not_answer_is_missed(
    browser: Browser, pair: tuple[ServerProcess, ServerProcess], inbox: tuple[Inbox, str]
) -> None:
    one, two = pair
    await rung(one, inbox[1], "a")
    async with window(browser, one.url) as shown:
        page = shown.page
        await shown.go("/")
        gaps, sentence = page.locator("#gaps"), page.locator("#sentence")
        rings = tile(page, "rings")
        await expect(this_hour(page)).to_have_text(f"{TIMERS} this hour")
        await two.kill()
        await expect(sentence).to_contain_text("belfry-2 does not answer. As far as is known: ")
        await expect(gaps).to_contain_text(re.compile(r"belfry-2 does not answer: its part is missing since \d{4}-"))
        # What had come of its part stays, and is said to be no more than a part.
        await expect(this_hour(page)).to_have_text(f"≥\u00a0{TIMERS} this hour, without belfry-2")
        await expect(rings.locator("b")).to_have_text(re.compile("≥\u00a0[0-9]+"))
        await expect(rings.locator("span")).to_contain_text("without belfry-2")
        await expect(tile(page, "overdue").locator("b")).to_have_text("none known")
        assert [gap[2] for gap in (await figures(one))["gaps"]] == ["belfry-2"]
        # Then it is taken for dead, and the rest is whole again.
        await expect(gaps).to_contain_text(re.compile("belfry-2 has ended: what it did between .* and .* is missing"))
        await expect(tile(page, "overdue").locator("b")).to_have_text("none")
        await expect(tile(page, "failed").locator("b")).to_have_text("≥\u00a00")
        await expect(page.locator(".uplot")).to_have_count(4)
        for look in SIZES:
            await picture(browser, one.url, f"overview-missing-{look}", look)
        assert await shown.faults() == []
        # It comes back: another start of it, and what the former did in between stays missing.
        await two.start()
        await shared_by([one, two], {"belfry-1", "belfry-2"})
        await rung(two, inbox[1], "b")
        await expect(sentence).not_to_contain_text("does not answer")
        await expect(page.locator("main > .hint")).to_contain_text("2 nodes")
        assert await have_rung(one) >= TIMERS
        assert [gap[2] for gap in (await figures(one))["gaps"]] == ["belfry-2"]
        assert shown.complaints == []


async def picture(browser: Browser, base: str, name: str, look: str) -> None:
    """Keeps what the page shows, once it is alive."""
    async with window(browser, base, look) as shown:
        await shown.go("/")
        await expect(shown.page.locator(".uplot")).to_have_count(4)
        await expect(shown.page.locator("#link-state")).to_have_attribute("data-state", "live")
        await shown.picture(name)
        assert await shown.page.evaluate("document.documentElement.scrollWidth") <= SIZES[look][0]
        assert await shown.faults() == []


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(tmp_path: Path, postgresql_url: str) -> AsyncIterator[tuple[ServerProcess, ServerProcess, str]]:
    """Two nodes that want keys, and a reader's key."""
    chromium_path()
    code, out, err = await command("keys", "create", "--role", "read", "--store", postgresql_url)
    assert code == 0, err
    one, two = (
        ServerProcess(
            tmp_path / name, "--store", postgresql_url, "--no-agent", "--host", "0.0.0.0",
            env={**SOON, "TOCSIN_NODE_NAME": name, "TOCSIN_ADVERTISE": "127.0.0.1", "TOCSIN_KEYS_REFRESH": "200ms"},
        )
        for name in ("belfry-1", "belfry-2")
    )  # fmt: skip
    async with running(one, two):
        yield one, two, out.strip()


async def test_who_signs_out_at_one_node_is_asked_to_sign_in_by_the_other(
    browser: Browser, guarded: tuple[ServerProcess, ServerProcess, str]
) -> None:
    one, two, key = guarded
    async with window(browser, one.url) as shown, window(browser, two.url) as copied:
        page = shown.page
        await shown.go("/timers")
        await page.get_by_label("API key").fill(key)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        # Somebody has a copy of the cookie.
        (cookie,) = await shown.context.cookies()
        await copied.context.add_cookies(
            [{"name": f"tocsin-{two.port}", "value": cookie["value"], "url": two.url, "httpOnly": True}]
        )
        await copied.go("/")
        await expect(copied.page.get_by_role("button", name="Sign out")).to_be_visible()
        await expect(copied.page.locator("#link-state")).to_have_attribute("data-state", "live")
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        # The page that is open there ends by itself, and leads nowhere any more.
        await expect(copied.page.locator("#link-state")).to_have_text("Signed out")
        await copied.go("/timers")
        await expect(copied.page.get_by_role("heading", name="Sign in")).to_be_visible()
        # So it is after a restart.
        await two.stop()
        two.flags = (*two.flags, "--port", str(two.port))
        await two.start()
        await signed_out(copied)
        assert shown.complaints == []


async def signed_out(shown: Window) -> None:
    await shown.go("/timers")
    await expect(shown.page.get_by_role("heading", name="Sign in")).to_be_visible()
