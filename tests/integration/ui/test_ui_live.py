"""What an open page is told, and that nothing falls between what it shows and what it is told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.integration.ui.conftest import Node, Browser
from tests.support.patience import PATIENCE_S
from tocsin.ui.limits import UiLimits
from tocsin.ui.live import Streams

TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"


async def submit(browser: Browser, name: str) -> str:
    wish = {
        "name": name,
        "dueAt": "2040-01-01T00:00:00Z",
        "requestSpec": {"method": "POST", "url": "http://127.0.0.1:9/"},
    }
    answer = await browser.client.post(f"/api/tenants/{TENANT}/service-calls", json=wish)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["serviceCallId"])


def followed_by(
    monkeypatch: pytest.MonkeyPatch, asked: object, name: str, happens: Callable[[], Awaitable[object]]
) -> None:
    """Something happens between the answer to a page's first question and the page."""
    ask = getattr(asked, name)

    async def and_then(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(asked, name, ask)
        answer = await ask(*given, **named)
        await happens()
        return answer

    monkeypatch.setattr(asked, name, and_then)


def known_to(page: str) -> tuple[str, ...]:
    """How much has happened as far as the page knows: what it is told later is compared with that."""
    found = re.search(r'data-created="(\d+)" data-changed="(\d+)"', page)
    assert found is not None
    return found.groups()


@pytest.mark.parametrize("path", ["/timers", "/timers/default/one"])
async def test_timers_that_change_while_a_page_is_made_are_news_to_it(
    node: Node, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    browser, other = node.browser(), node.browser()
    await browser.create("one")
    service = node.server.service
    followed_by(monkeypatch, service, "list" if path == "/timers" else "get", lambda: other.create("two"))
    page = (await browser.get(path)).text
    assert "two" not in page
    assert known_to(page) == ("1", "0")
    assert known_to((await browser.get(path)).text) == ("2", "0")


@pytest.mark.parametrize("page_of_one", [False, True])
async def test_calls_that_change_while_a_page_is_made_are_news_to_it(
    node: Node, monkeypatch: pytest.MonkeyPatch, page_of_one: bool
) -> None:
    browser, other = node.browser(), node.browser()
    path = f"/calls/{TENANT}/{await submit(browser, 'one')}" if page_of_one else f"/calls?tenant={TENANT}"
    calls = node.server._service_calls()
    followed_by(monkeypatch, calls, "get" if page_of_one else "list", lambda: submit(other, "two"))
    before = known_to((await browser.get(path)).text)
    assert known_to((await browser.get(path)).text) != before


async def test_a_change_is_told_once_more_when_nothing_follows() -> None:
    """What has just happened is durable a moment later: who looked at once may have missed it."""
    rounds, told = 0, []

    def news() -> dict[str, Any]:
        nonlocal rounds
        rounds += 1
        return {"changed": rounds >= 4}

    events = Streams(UiLimits(live_interval_s=0.001)).events(news)
    assert await anext(events) == b"retry: 2000\n\n"
    async with asyncio.timeout(PATIENCE_S):
        while len(told) < 4:
            event = await anext(events)
            told.append((rounds, event))
    await events.aclose()
    before, after = b'data: {"changed":false}\n\n', b'data: {"changed":true}\n\n'
    assert told == [(1, before), (2, before), (4, after), (5, after)]
