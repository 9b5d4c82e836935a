"""Pages while the database does not answer: which one, since when, what it means; what stays in its place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.integration.pages.conftest import Browser, Node
from tests.support.patience import PATIENCE_S
from tocsin.model.errors import StoreUnreachable
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.dispatcher import Dispatcher

WORDS = "The store in memory does not answer, or too slowly."


async def _refuse(_context: Context, call: Coroutine[Any, Any, Any]) -> None:
    call.close()
    raise StoreUnreachable("postgresql://user@db:5432/x: connection refused")


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database answers nothing any more."""
    monkeypatch.setattr(Context, "bounded", _refuse)


async def pictured(browser: Browser, path: str) -> str:
    answer = await browser.get(path)
    assert answer.status_code == 503, path
    assert WORDS in answer.text
    assert "nothing is lost" in answer.text
    assert 'href="https://tocsin.dev/docs/latest/runbooks/TocsinNothingFires"' in answer.text
    assert "db:5432" not in answer.text
    return answer.text


@pytest.mark.parametrize("path", ["/timers", "/timers?namespace=default&view=waiting", "/schedules?order=next"])
async def test_list_that_cannot_be_read_keeps_tabs_and_filters(
    node: Node, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    browser = node.browser()
    refuse(monkeypatch)
    page = await pictured(browser, path)
    assert 'id="tabs"' in page and 'id="filters"' in page and "data-unread" in page
    assert "Nothing fires." not in page
    # Without a script it is requested again.
    assert '<noscript><meta http-equiv="refresh"' in page
    # A script gets the results alone, and states the outage itself.
    part = await browser.get(path, headers={"hx-request": "true"})
    assert (part.status_code, "data-unread" in part.text, WORDS in part.text) == (200, True, False)


async def test_page_of_one_timer_names_the_database_and_is_requested_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = node.browser()
    await browser.create("one")
    refuse(monkeypatch)
    page = await pictured(browser, "/timers/default/one")
    assert '<meta http-equiv="refresh" content="5">' in page
    toast = await browser.get("/timers/default/one", headers={"hx-request": "true"})
    assert json.loads(toast.headers["hx-trigger"])["tocsin:toast"]["text"] == WORDS
    # An open page without a stream learns of it by asking.
    assert WORDS in toast.text and "<main" not in toast.text
    assert toast.headers["tocsin-outage"] == "yes"
    shown = (await browser.get("/store")).text
    assert WORDS in shown


async def test_open_pages_are_notified_of_an_outage_and_of_its_end(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = node.browser()
    dispatcher = node.server.service._supervisor.dispatcher
    sent: list[str] = []
    async with (
        asyncio.timeout(PATIENCE_S),
        browser.client.stream("GET", "/ui/live?namespace=default", headers={"accept": "text/event-stream"}) as stream,
    ):
        lines = stream.aiter_lines()
        refuse(monkeypatch)
        dispatcher.pause("lease")
        async for line in lines:
            if line == "event: outage":
                sent.append(json.loads((await anext(lines)).removeprefix("data: ")))
                if not sent[-1]:
                    break
                if len(sent) > 1:
                    # The lease had ended meanwhile; a heartbeat renews it.
                    continue
                page = await pictured(browser, "/timers")
                assert f"{WORDS} Nothing fires." in page and "It began at <time" in page
                monkeypatch.undo()
                dispatcher.resume(dispatcher._clock_base)
    assert f"{WORDS} Nothing fires." in sent[0]
    assert "What is shown here is as of <time" in sent[0] and "data-as-of=" in sent[0]


async def test_a_list_states_it_while_the_node_fires_nothing_for_another_reason(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = node.browser()
    await browser.create("one")
    # The next heartbeat would.
    monkeypatch.setattr(Dispatcher, "resume", lambda _dispatcher, _clock_base_us: None)
    node.server.service._supervisor.dispatcher.pause("clock_skew")
    answer = await browser.get("/timers")
    assert answer.status_code == 200 and 'data-id="one"' in answer.text
    assert "The node&#39;s clock differs from the store&#39;s. Nothing fires." in answer.text
    assert "as-of" not in answer.text
    now = (await browser.get("/")).text
    assert "It began at <time" in now and "/runbooks/TocsinNothingFires" in now
