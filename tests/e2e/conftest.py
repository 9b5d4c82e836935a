"""Fixtures for tests of the pages in a browser, with the server in a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.e2e.browser import Window, chromium, chromium_path, window
from tests.e2e.tenant import Tenant, new_id
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.support.server import ServerProcess


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a process, which therefore share an event loop; each test has its own windows."""
    async with chromium() as running:
        yield running


@asynccontextmanager
async def serving(folder: Path, **env: str) -> AsyncIterator[ServerProcess]:
    """Starts a server, whose port is free for it when a test starts it again. Its lists search without a short time limit,
    except in tests that set one."""
    chromium_path()
    env = {"TOCSIN_UI_LIST_SEARCH_TIMEOUT": f"{PATIENCE_S}s", **env}
    running = ServerProcess(folder / "data", "--port", str(free_port()), env=env)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """One server per test. A module whose tests use separate namespaces or tenants has one for all."""
    async with serving(tmp_path) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def api(server: ServerProcess) -> Api:
    return Api(server)


async def in_new_namespace(server: ServerProcess) -> Api:
    """The API of a server that tests share, for a new namespace."""
    api = Api(server, namespace=f"of-{new_id()}")
    assert (await api("namespaces/create", name=api.namespace))[0] == 200
    return api


@pytest_asyncio.fixture(loop_scope="session")
async def inbox() -> AsyncIterator[tuple[Inbox, str]]:
    """A receiver: its inbox and its URL."""
    inbox = Inbox()
    async with Receiver(inbox) as receiver:
        yield inbox, receiver.url


@pytest_asyncio.fixture(loop_scope="session")
async def shown(browser: Browser, server: ServerProcess) -> AsyncIterator[Window]:
    """A window. Errors in its scripts fail the test."""
    async with window(browser, server.url) as opened:
        yield opened
        assert opened.complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def tenant(server: ServerProcess) -> Tenant:
    return Tenant(server)


#: Live updates take about a second, on a busy machine several.
expect.set_options(timeout=PATIENCE_S * 1_000)
