"""The pages in a browser, on a server that is a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.e2e.browser import Window, chromium, chromium_path, window
from tests.e2e.tenant import Tenant
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One for all tests of a process, whose event loop they therefore share; each has windows of its own."""
    async with chromium() as running:
        yield running


@asynccontextmanager
async def serving(folder: Path, **env: str) -> AsyncIterator[ServerProcess]:
    """A server. A list that has not been looked through in time shows fewer rows, which only the tests of that are about."""
    chromium_path()
    running = ServerProcess(folder / "data", env={"TOCSIN_UI_LIST_SEARCH_TIMEOUT": f"{PATIENCE_S}s", **env})
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """One for each test. Where tests keep to namespaces or tenants of their own, their module has one for all of them."""
    async with serving(tmp_path) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def api(server: ServerProcess) -> Api:
    return Api(server)


@pytest_asyncio.fixture(loop_scope="session")
async def inbox() -> AsyncIterator[tuple[Inbox, str]]:
    """A receiver: what came, and its URL."""
    inbox = Inbox()
    async with Receiver(inbox) as receiver:
        yield inbox, receiver.url


@pytest_asyncio.fixture(loop_scope="session")
async def shown(browser: Browser, server: ServerProcess) -> AsyncIterator[Window]:
    """A window whose script must have nothing to complain about in the end."""
    async with window(browser, server.url) as opened:
        yield opened
        assert opened.complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def tenant(server: ServerProcess) -> Tenant:
    return Tenant(server)


#: Pages show what happened a second or so later; a busy machine may take several.
expect.set_options(timeout=PATIENCE_S * 1_000)
