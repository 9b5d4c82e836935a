"""The form of a flow's rule in a browser, with and without scripts."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.browser import Window, window
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def create(shown: Window, match: str) -> None:
    """Opens the form, is refused, corrects the field that has the focus, and sends it."""
    page = shown.page
    await shown.go("/flows")
    await page.get_by_role("link", name="New flow").first.click()
    await shown.arrived("New flow")
    await page.get_by_role("textbox", name="Flow").fill(match)
    limits = page.get_by_role("group", name="Each key")
    await limits.get_by_role("textbox", name="Attempts").fill("many")
    await page.get_by_role("button", name="Create flow").click()
    await expect(page.get_by_role("alert")).to_contain_text("One field is invalid")
    await expect(limits.get_by_role("textbox", name="Attempts")).to_have_value("many")
    await limits.get_by_role("textbox", name="Attempts").fill("100")
    await page.get_by_role("button", name="Create flow").click()
    row = page.get_by_role("row", name=match)
    await expect(row).to_contain_text("100 in 1 min")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
async def test_a_rule_is_created_paused_changed_and_deleted(
    browser: Browser, server: ServerProcess, scripts: bool
) -> None:
    match = f"tenant-{scripts}:".lower()
    async with window(browser, server.url, scripts=scripts) as shown:
        page = shown.page
        await create(shown, match)
        row = page.get_by_role("row", name=match)
        # The name leads to the form from the whole row, but not from its button.
        await row.get_by_role("button", name=f"Pause {match}").click()
        await expect(row).to_contain_text("paused")
        await row.get_by_role("link", name=match).click()
        together = page.get_by_role("group", name="All keys together")
        await together.get_by_role("textbox", name="In flight").fill("7")
        await page.get_by_role("button", name="Save flow").click()
        await expect(row).to_contain_text("7 in flight")
        await expect(row).to_contain_text("paused")
        await row.get_by_role("link", name=match).click()
        await page.locator("summary", has_text="Delete flow").click()
        await page.get_by_role("button", name="Delete flow").click()
        await expect(row).to_have_count(0)
        assert shown.complaints == []
