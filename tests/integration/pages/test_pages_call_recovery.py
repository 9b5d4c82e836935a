"""Service calls on Now: they need no more attention once they have been dealt with, or have succeeded in the end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.integration.pages.conftest import Browser
from tests.integration.pages.test_pages_call_failures import failed, new_id, submitted
from tests.support.calls import Inbox
from tests.support.http import Receiver
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tocsin.server.clock_mover import DevClock
from tocsin.server.dev_folder import open_dev_folder
from tocsin.server.node import Server
from tocsin.settings import load_settings
from tocsin.statistics import counting
from tocsin.statistics.counting import Statistics
from tocsin.web.pages.assets import Assets
from tocsin.web.pages.overview import open_failures, retries


@pytest.fixture
async def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Browser]:
    """The browser of a node whose clock the API moves. Now reads failures and retries whenever it is drawn."""
    if not Assets().built:
        lacking("pages", "the web pages are not built; run `make web`")
    for module in (open_failures, retries):
        monkeypatch.setattr(module, "_READ_INTERVAL_S", 0.0)
    settings = load_settings({"port": 0, "data_dir": tmp_path / "dev", "shards": 4})
    server = Server(settings, dev=DevClock(open_dev_folder(settings), settings))
    await server.start()
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S, verify=False) as client:
        yield Browser(client, server.url)
    await server.stop()


async def advance(browser: Browser, by: str) -> None:
    answer = await browser.client.post("/api/v1/dev/clock/advance", json={"by": by})
    assert answer.status_code == 200, answer.text


async def listed(browser: Browser) -> str:
    """What Now shows of service calls that failed; empty if it shows nothing."""
    page = (await browser.get("/")).text
    found = re.search(r'<li class="incident"(?:(?!</li>).)*service calls to.*?</li>', page, re.DOTALL)
    return "" if found is None else " ".join(re.sub("<[^>]*>", " ", found[0]).split())


async def shows(browser: Browser, *words: str) -> None:
    """Returns once Now shows this of service calls; without words, once it shows nothing of them."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await listed(browser)
            if all(word in found for word in words) and bool(words) == bool(found):
                return
            await asyncio.sleep(0.02)


async def calm(browser: Browser, words: str) -> str:
    """What Now states where nothing needs attention, once it has these words."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = re.search(r'<p class="calm">.*?</p>', (await browser.get("/")).text, re.DOTALL)
            if found is not None and words in (text := re.sub("<[^>]*>", "", found[0])):
                return text
            await asyncio.sleep(0.02)


async def test_calls_that_were_retried_stay_until_none_waits_for_another_attempt(browser: Browser) -> None:
    inbox, tenant = Inbox(answers=[(500, b""), (500, b"")]), new_id()
    policy = {"maxAttempts": 3, "initialInterval": "10m", "backoffMultiplier": 1}
    async with Receiver(inbox) as receiver:
        spec = {"method": "POST", "url": receiver.url, "body": {}, "retryPolicy": policy}
        await submitted(browser, tenant, 1, "", requestSpec=spec)
        await shows(browser, "HTTP 500", "1 execution failed, retried")
        await advance(browser, "5m")
        await shows(browser, "1 execution failed, retried")
        await advance(browser, "10m")
        await shows(browser, "2 executions failed, retried")
        await advance(browser, "10m")
        assert len(inbox.calls) == 3
        await shows(browser)


async def test_failed_calls_stay_until_each_was_dealt_with(browser: Browser) -> None:
    inbox, tenant = Inbox(answers=[(500, b""), (500, b"")]), new_id()
    async with Receiver(inbox) as receiver:
        calls = await submitted(browser, tenant, 2, receiver.url)
        await failed(browser, 2, tenant=tenant)
        await shows(browser, "2 failed this hour")
        await advance(browser, "5m")
        await shows(browser, "2 failed this hour")
        path = f"/api/v1/tenants/{tenant}/service-calls"
        assert (await browser.client.post(f"{path}/{calls[0]}/retry")).status_code < 300
        await shows(browser, "1 left of 2 failed this hour")
        assert (await browser.client.post(f"{path}/{calls[1]}/retry")).status_code < 300
        await shows(browser)


async def test_failed_call_stays_although_another_node_saw_its_last_attempt(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a node that takes the agent over between the attempt and the end.
    monkeypatch.setattr(counting, "_FAILED_MAX", 0)
    tenant = new_id()
    async with Receiver(Inbox(answers=[(500, b"")])) as receiver:
        (call,) = await submitted(browser, tenant, 1, receiver.url)
        await failed(browser, 1, tenant=tenant)
        await advance(browser, "5m")
        await shows(browser, "HTTP 500", "1 failed this hour")
        path = f"/api/v1/tenants/{tenant}/service-calls/{call}/retry"
        assert (await browser.client.post(path)).status_code < 300
        await shows(browser)


async def test_failed_call_is_not_denied_where_nothing_is_known_of_its_attempts(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a node that was killed after the attempt: what it counted in its last minute is lost.
    monkeypatch.setattr(Statistics, "call_failed", lambda *_values, **_more: None)
    tenant = new_id()
    async with Receiver(Inbox(answers=[(500, b"")])) as receiver:
        (call,) = await submitted(browser, tenant, 1, receiver.url)
        await failed(browser, 1, tenant=tenant)
        assert "no failure" not in await calm(browser, "1 failure of the last hour is listed")
        path = f"/api/v1/tenants/{tenant}/service-calls/{call}/retry"
        assert (await browser.client.post(path)).status_code < 300
        await calm(browser, "no failure of the last hour is left")
