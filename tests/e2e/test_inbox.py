"""Dead rows of the inbox in a browser, with and without scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.browser import window
from tests.e2e.conftest import serving
from tests.support.inbox import new_program

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
async def test_dead_rows_are_replayed_and_deleted(
    browser: Browser, tmp_path: Path, request: pytest.FixtureRequest, scripts: bool
) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    for n in range(3):
        program.execute(
            "INSERT INTO tocsin_outbox VALUES (%s, 'orders', %s, '{}', 1800000000000000, 0, %s)",
            f"0197a3c0-0000-7000-8000-00000000000{n}",
            f"remind-{n}",
            "NAMESPACE_NOT_FOUND: no namespace 'orders'",
        )
    async with (
        serving(tmp_path, **program.settings("default")) as server,
        window(browser, server.url, scripts=scripts) as shown,
    ):
        page = shown.page
        if scripts:
            # A database under load may take too long for one page.
            number = ""
            while not number:
                async with page.expect_response("**/ui/inbox") as answer:
                    await shown.go("/timers")
                number = await (await answer.value).text()
                # Nobody has asked for it.
                assert (await answer.value).request.headers["tocsin-background"] == "true"
        else:
            await shown.go("/timers")
        entry = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Inbox")
        if scripts:
            await expect(entry.locator(".badge")).to_have_text("3")
        await entry.click()
        await shown.arrived("Inbox")
        if scripts:
            assert await shown.faults_by_look("inbox", ("light", "dark", "wide", "phone")) == {}
            await shown.look("light")
        row = page.get_by_role("row", name="remind-1")
        await expect(row).to_contain_text("no namespace 'orders'")
        await row.get_by_role("button", name="Delete remind-1").click()
        await page.get_by_role("link", name="Keep").click()
        await row.get_by_role("button", name="Delete remind-1").click()
        await page.get_by_role("button", name="Delete", exact=True).click()
        await expect(page.get_by_role("status").filter(has_text="1 row deleted")).to_be_visible()
        await expect(row).to_have_count(0)
        await page.get_by_role("button", name="Replay all dead rows").click()
        await expect(page.get_by_role("status").filter(has_text="2 rows are tried again")).to_be_visible()
        assert program.left() == ["remind-0", "remind-2"]
        assert shown.complaints == []
