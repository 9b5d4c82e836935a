"""Live updates: an open page is notified of every change that it does not show yet."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.integration.pages.conftest import Browser, Node
from tests.support.patience import PATIENCE_S
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.live import Streams

TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"


async def submit(browser: Browser, name: str) -> str:
    call = {
        "name": name,
        "dueAt": "2040-01-01T00:00:00Z",
        "requestSpec": {"method": "POST", "url": "http://127.0.0.1:9/"},
    }
    answer = await browser.client.post(f"/api/v1/tenants/{TENANT}/service-calls", json=call)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["serviceCallId"])


def after_first_call(
    monkeypatch: pytest.MonkeyPatch, target: object, name: str, action: Callable[[], Awaitable[object]]
) -> None:
    """Awaits `action` after the first call of a method that a page makes, before the page is rendered."""
    method = getattr(target, name)

    async def and_then(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(target, name, method)
        result = await method(*given, **named)
        await action()
        return result

    monkeypatch.setattr(target, name, and_then)


def known_to(page: str) -> tuple[str, ...]:
    """The change counters in a page, with which it compares later events."""
    found = re.search(r'data-created="(\d+)" data-changed="(\d+)"', page)
    assert found is not None
    return found.groups()


@pytest.mark.parametrize("path", ["/timers", "/timers/default/one"])
async def test_page_is_notified_of_timers_that_change_while_it_is_rendered(
    node: Node, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    browser, other = node.browser(), node.browser()
    await browser.create("one")
    service = node.server.service
    after_first_call(monkeypatch, service, "list" if path == "/timers" else "get", lambda: other.create("two"))
    page = (await browser.get(path)).text
    assert "two" not in page
    assert known_to(page) == ("1", "0")
    assert known_to((await browser.get(path)).text) == ("2", "0")


@pytest.mark.parametrize("page_of_one", [False, True])
async def test_page_is_notified_of_calls_that_change_while_it_is_rendered(
    node: Node, monkeypatch: pytest.MonkeyPatch, page_of_one: bool
) -> None:
    browser, other = node.browser(), node.browser()
    path = f"/calls/{TENANT}/{await submit(browser, 'one')}" if page_of_one else f"/calls?tenant={TENANT}"
    calls = node.server.calls()
    after_first_call(monkeypatch, calls, "get" if page_of_one else "list", lambda: submit(other, "two"))
    before = known_to((await browser.get(path)).text)
    assert known_to((await browser.get(path)).text) != before


async def test_change_event_is_repeated_once() -> None:
    """A change may not be durable yet when a page reads it right after the first event."""
    rounds, received = 0, []

    def update() -> dict[str, Any]:
        nonlocal rounds
        rounds += 1
        return {"changed": rounds >= 4}

    events = Streams(UiLimits(live_interval_s=0.001)).events(update)
    assert await anext(events) == b"retry: 2000\n\n"
    async with asyncio.timeout(PATIENCE_S):
        while len(received) < 4:
            event = await anext(events)
            received.append((rounds, event))
    await events.aclose()
    before, after = b'data: {"changed":false}\n\n', b'data: {"changed":true}\n\n'
    assert received == [(1, before), (2, before), (4, after), (5, after)]
