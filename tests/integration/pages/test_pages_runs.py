"""Runs that have ended, in the lists of timers: each stays what it is, whatever becomes of its timer."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from tests.integration.pages.conftest import Browser, Node
from tests.integration.pages.test_pages_finding import post
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S


async def settled(browser: Browser, status: str) -> None:
    """Returns once the timer has this status. The API has no notifications, so this polls."""
    async with asyncio.timeout(PATIENCE_S):
        while (await post(browser, "timers/get", namespace="default", timerId="t"))["status"] != status:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def replay(browser: Browser) -> None:
    (result,) = (await post(browser, "timers/replay", namespace="default", ids=["t"], delay="1h"))["results"]
    assert "error" not in result


async def listed(browser: Browser, query: str) -> list[tuple[str, str, str]]:
    """The rows of a list: their keys, versions and states."""
    page = (await browser.get(f"/timers?{query}")).text
    row = r'<tr role="row" data-key="([^"]+)"[^>]* data-v="([^"]+)".*?<i></i><span>(\w+)</span>'
    return re.findall(row, page, re.DOTALL)


async def changed(browser: Browser, view: str, *rows: tuple[str, str]) -> str:
    """What an open page gets that shows these keys in these versions."""
    sent = {"namespace": "default", "view": view, "rows": json.dumps(rows)}
    return (await browser.post("/ui/rows", sent)).text


async def since(browser: Browser, key: str, version: str) -> tuple[str, str]:
    """What became of the timer since that run: in words, and the version that the page has then."""
    answer = await changed(browser, "failed", (key, version))
    # The row itself neither changes nor leaves.
    assert 'role="row"' not in answer and "data-left" not in answer
    ((of, now, cell),) = re.findall(r'<tbody data-of="([^"]+)" data-since="([^"]+)"><tr><td>(.*)</td>', answer)
    assert of == key
    return re.sub("<[^>]*>", "", cell), now


@pytest.fixture
async def browser(node: Node) -> Browser:
    """The browser of a node with a timer that has failed."""
    browser = node.browser()
    await browser.create("t", delay="0s", retryPolicy={"maxAttempts": 1})
    await settled(browser, "failed")
    return browser


async def test_failed_run_stays_failed_when_its_timer_is_replayed(browser: Browser) -> None:
    (run,) = await listed(browser, "view=failed")
    key, version, state = run
    assert state == "failed"
    # Nothing has become of the timer since.
    assert "<tbody" not in await changed(browser, "failed", (key, version))
    await replay(browser)
    assert await listed(browser, "view=failed") == [run]
    words, now = await since(browser, key, version)
    assert words == "→ pending"
    # The page shows that now.
    assert "<tbody" not in await changed(browser, "failed", (key, now))
    await post(browser, "timers/delete", namespace="default", timerId="t")
    words, now = await since(browser, key, now)
    assert words == "→ canceled"
    # Created again under its id, it is pending again.
    await browser.create("t")
    assert (await since(browser, key, now))[0] == "→ pending"


async def test_timer_that_failed_twice_has_two_rows(browser: Browser) -> None:
    (first,) = await listed(browser, "view=failed")
    await replay(browser)
    await post(browser, "timers/update", namespace="default", timerId="t", delay="0s")
    await settled(browser, "failed")
    second, again = await listed(browser, "view=failed")
    assert again == first and second[0] != first[0]
    assert (await since(browser, *first[:2]))[0] == "→ failed"
    assert "<tbody" not in await changed(browser, "failed", second[:2])
    assert await browser.fresh("/timers?view=failed", first[0]) == "1 new"
    assert await browser.fresh("/timers?view=failed", second[0], first[0]) == ""
    # The timer whose id is searched for comes first, and after it the others of its runs that failed.
    assert await listed(browser, "view=failed&q=t") == [second, first]


async def test_pending_timer_becomes_its_run_when_that_ends(browser: Browser) -> None:
    await replay(browser)
    (live,) = await listed(browser, "view=pending")
    assert live[0] == "default/t"
    await post(browser, "timers/update", namespace="default", timerId="t", delay="0s")
    await settled(browser, "failed")
    run = (await listed(browser, "view=failed"))[0]
    # On the tab of pending timers it leaves, on that of all it stays.
    for view, left in (("pending", " data-left"), ("all", "")):
        answer = await changed(browser, view, live[:2])
        assert f'<tbody data-of="default/t"{left}><tr role="row" data-key="{run[0]}"' in " ".join(answer.split())


async def test_end_of_a_replayed_timer_that_is_not_kept_is_stated(browser: Browser) -> None:
    await post(browser, "namespaces/update", name="default", history="failures")
    ((key, version, _),) = await listed(browser, "view=failed")
    await replay(browser)
    words, now = await since(browser, key, version)
    assert words == "→ pending"
    await post(browser, "timers/delete", namespace="default", timerId="t")
    words, now = await since(browser, key, now)
    assert (words, now) == ("→ ended, not kept", version)
    # The page keeps that, also when the namespace is paused.
    await post(browser, "namespaces/update", name="default", paused=True)
    assert "<tbody" not in await changed(browser, "failed", (key, now))


async def test_run_that_an_open_page_still_has_as_pending_is_not_new(browser: Browser) -> None:
    path = "/timers?view=all"
    assert await browser.fresh(path, "default/t") == ""
    assert await browser.fresh(path, "default/t", whole="yes") == ""
    # Pending again, it has two rows.
    await replay(browser)
    assert await browser.fresh(path, "default/t", whole="yes") == "1 new"


async def test_run_that_is_not_kept_any_more_is_gone(browser: Browser) -> None:
    (run,) = await listed(browser, "view=failed")
    key = run[0].replace("/t", "/other")
    assert f'<tbody data-of="{key}" data-left></tbody>' in await changed(browser, "failed", (key, run[1]))
    assert 'data-left-word="gone"' in (await browser.get("/timers?view=failed")).text


async def picked(browser: Browser, query: str) -> list[str]:
    """What the checkboxes of a list send."""
    page = (await browser.get(f"/timers?{query}")).text
    return re.findall(r'type="checkbox" name="id" value="([^"]+)"', page)


async def act(browser: Browser, path: str, *keys: str) -> str:
    """What the page states after the confirmed action on these rows."""
    answer = (await browser.post(path, {"id": keys, "confirmed": "yes"})).text
    return " ".join(re.sub("<[^>]*>", " ", answer).split())


async def test_failed_run_is_not_replayed_once_its_timer_has_completed(browser: Browser) -> None:
    (failed,) = await picked(browser, "view=failed")
    await replay(browser)
    async with Receiver(lambda body, headers: (200, b"")) as receiver:
        await post(browser, "timers/update", namespace="default", timerId="t", delay="0s", callbackUrl=receiver.url)
        await settled(browser, "completed")
    answer = await act(browser, "/timers/replay-many", failed)
    assert "0 of 1 replayed" in answer
    assert "1 of the selected timers was pending when listed, or has changed since" in answer
    assert (await post(browser, "timers/get", namespace="default", timerId="t"))["status"] == "completed"
    # The run that completed can be.
    assert "1 of 1 replayed" in await act(browser, "/timers/replay-many", *await picked(browser, "view=completed"))


async def test_ended_run_is_not_its_pending_timer(browser: Browser) -> None:
    (failed,) = await picked(browser, "view=failed")
    await replay(browser)
    await browser.create("other", delay="1h")
    answer = await act(browser, "/timers/cancel-many", failed, "default/other")
    assert "1 of 2 canceled" in answer
    assert "1 of the selected timers was not pending when listed, or is no longer" in answer
    assert (await post(browser, "timers/get", namespace="default", timerId="t"))["status"] == "pending"
    assert (await post(browser, "timers/get", namespace="default", timerId="other"))["status"] == "canceled"


async def test_of_two_failed_runs_of_a_timer_the_last_one_is_replayed(browser: Browser) -> None:
    await replay(browser)
    await post(browser, "timers/update", namespace="default", timerId="t", delay="0s")
    await settled(browser, "failed")
    runs = await picked(browser, "view=failed")
    assert len(runs) == 2
    asked = (await browser.post("/timers/replay-many", {"id": runs})).text
    assert "Replay 1 timer?" in asked and "1 of the selected timers was pending when listed, or has" in asked
    assert re.findall(r'name="id" value="([^"]+)"', asked) == runs[:1]
