"""Pages of `tocsin dev` in the browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.browser import chromium_path, window
from tests.support.calls import Api
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_open_page_goes_by_the_clock_when_it_moves(browser: Browser, tmp_path: Path) -> None:
    chromium_path()
    server = ServerProcess(tmp_path / "dev", "--no-agent", command="dev")
    await server.start()
    try:
        api = Api(server)
        await api("dev/clock/advance", by="365d")
        await api.create("a", "http://127.0.0.1:9/hook", delay="60h")
        async with window(browser, server.url) as shown:
            await shown.go("/timers")
            await expect(shown.page.locator("#results").get_by_text("in 2 d")).to_be_visible()
            await api("dev/clock/advance", by="24h")
            await expect(shown.page.locator("#results").get_by_text("in 1 d")).to_be_visible()
            assert shown.complaints == []
    finally:
        await server.stop()
