"""Monitors in a browser: from the form to the first ping, the panel beside the list, and how the pages look."""

from __future__ import annotations

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.e2e.browser import Window, window
from tests.support.http import Client
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def reported(server: ServerProcess, namespace: str) -> None:
    """Two monitors: one whose job has run a few times and failed last, and one without a ping."""
    client = Client(server.address)
    await client.post("/api/v1/namespaces/create", {"name": namespace})
    for name, rule in (
        ("ledger-close", {"cron": "0 18 * * *", "timeZone": "Europe/Berlin"}),
        ("warehouse", {"every": "5m"}),
    ):
        await client.post("/api/v1/monitors/put", {"namespace": namespace, "id": name, **rule})
    named = {"namespace": namespace, "id": "ledger-close"}
    for code in (0, 0, 3):
        await client.post("/api/v1/monitors/ping", {**named, "event": "start"})
        end = {"event": "fail" if code else "success", "exitCode": code, "body": "the disk is full" if code else "done"}
        status, answer = await client.post("/api/v1/monitors/ping", {**named, **end})
        assert status == 200, answer
    client.close()


async def create(shown: Window, name: str) -> str:
    """Opens the form, is refused, corrects the field that has the focus, and sends it. Returns the ping URL."""
    page = shown.page
    await shown.go("/monitors")
    await page.get_by_role("link", name="New monitor").first.click()
    await shown.arrived("New monitor")
    await page.get_by_role("textbox", name="Id", exact=True).fill(name)
    await page.get_by_label("When, in words").fill("now and then")
    await page.get_by_role("button", name="Create monitor").click()
    await expect(page.get_by_role("alert")).to_contain_text("One field is invalid")
    await page.get_by_label("When, in words").fill("every day at 3 in Berlin")
    await page.get_by_role("button", name="Create monitor").click()
    await expect(page.get_by_role("heading", name="Monitor created")).to_be_visible()
    return await page.locator("#ping-url").inner_text()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
async def test_a_monitor_is_created_pinged_paused_and_deleted(
    browser: Browser, server: ServerProcess, scripts: bool
) -> None:
    name = f"backup-{scripts}".lower()
    async with window(browser, server.url, scripts=scripts) as shown:
        page = shown.page
        url = await create(shown, name)
        async with httpx.AsyncClient() as job:
            assert (await job.get(f"{url}/start")).text == "OK\n"
        await page.get_by_role("link", name="Open monitor").click()
        await expect(page.locator("#monitor")).to_contain_text("Every day at 03:00, Europe/Berlin")
        await page.get_by_role("button", name="Pause").click()
        await expect(page.locator(".lead")).to_contain_text("It expects nothing until it is resumed")
        await page.get_by_role("link", name="Monitors").first.click()
        row = page.get_by_role("row", name=name)
        await expect(row).to_contain_text("paused")
        await row.get_by_role("link", name=f"Show {name} beside the list").click()
        beside = page.get_by_role("complementary", name=f"Monitor {name}")
        await expect(beside).to_contain_text("tocsin exec")
        await beside.get_by_role("button", name="Resume").click()
        # What follows would be lost with what the answer replaces.
        await expect(page.get_by_role("button", name="Pause")).to_be_visible()
        await page.locator("summary", has_text="Delete").click()
        await page.get_by_role("button", name="Delete monitor").click()
        await expect(page.get_by_role("row", name=name)).to_have_count(0)
        assert shown.complaints == []


async def test_the_pages_are_accessible_and_fit_the_window(browser: Browser, server: ServerProcess) -> None:
    await reported(server, "monitors-shown")
    faults = {}
    async with window(browser, server.url) as shown:
        for name, path in (
            ("monitors", "/monitors?namespace=monitors-shown"),
            ("monitors-peek", "/monitors?namespace=monitors-shown&peek=monitors-shown/ledger-close"),
            ("monitor", "/monitors/monitors-shown/ledger-close"),
            ("monitor-edit", "/monitors/edit?namespace=monitors-shown&id=warehouse"),
            ("monitor-new", "/monitors/new"),
        ):
            await shown.look("light")
            assert await shown.go(path) == 200
            faults |= await shown.faults_by_look(name, ("light", "dark", "phone"))
        assert faults == {}, faults
        assert shown.complaints == []
