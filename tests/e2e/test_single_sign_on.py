"""Somebody signs in by an identity provider of another site, in a browser that keeps strict cookies to their own site."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.browser import chromium_path, window
from tests.support.identity_provider import CLIENT_SECRET, identity_provider
from tests.support.ports import free_port
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_somebody_comes_back_signed_in_and_signs_out_of_both(browser: Browser, tmp_path: Path) -> None:
    chromium_path()
    port = free_port()
    url = f"http://localhost:{port}"
    async with identity_provider(f"{url}/login/oidc/callback", "https://tocsin.test/api") as issuer:
        env = {"ISSUER": issuer, "CLIENT_ID": "tocsin", "CLIENT_SECRET": CLIENT_SECRET, "GRANTS": "ops=admin"}
        named = {f"TOCSIN_OIDC_{name}": value for name, value in env.items()}
        server = ServerProcess(tmp_path / "data", "--no-agent", "--port", str(port), env=named)
        await server.start()
        try:
            async with window(browser, url) as shown:
                page = shown.page
                await shown.go("/keys")
                await page.get_by_role("link", name="Sign in with 127.0.0.1").click()
                await page.locator("input[name='login']").fill("anna+ops")
                await page.locator("input[name='password']").fill("-")
                await page.get_by_role("button", name="Sign-in").click()
                await page.get_by_role("button", name="Continue").click()
                await expect(page).to_have_url(f"{url}/keys")
                await page.get_by_role("button", name="Sign out").click()
                await page.get_by_role("button", name="Yes, sign me out").click()
                await expect(page).to_have_url(f"{url}/login")
                await shown.go("/keys")
                await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        finally:
            await server.stop()
