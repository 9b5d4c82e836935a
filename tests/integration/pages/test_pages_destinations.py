"""The page of destinations: what it shows, and what it changes."""

from __future__ import annotations

import asyncio

from tests.integration.pages.conftest import Node
from tests.support.patience import PATIENCE_S

NAME = "http://127.0.0.1:9"


async def test_destination_is_shown_paused_and_resumed(node: Node) -> None:
    browser = node.browser()
    assert "No destinations" in (await browser.get("/destinations")).text
    answer = await browser.post("/destinations/pause", {"destination": f"{NAME}/hook"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/destinations")
    shown = (await browser.get("/destinations")).text
    assert NAME in shown
    assert "paused" in shown
    assert f'aria-label="Resume {NAME}"' in shown
    # The page does not wait for long reads.
    async with asyncio.timeout(PATIENCE_S):
        while "The destination 127.0.0.1:9 is paused." not in (now := (await browser.get("/")).text):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    # A timer that is due meanwhile waits there.
    await browser.create("waits", callbackUrl=f"{NAME}/hook", delay="0s")
    async with asyncio.timeout(PATIENCE_S):
        while "The first was due" not in (now := (await browser.get("/")).text):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    assert "<b>1</b> waiting" in now
    assert 'action="/destinations/resume"' in now and f'name="destination" value="{NAME}"' in now
    assert (await browser.post("/destinations/resume", {"destination": NAME})).status_code == 303
    assert f'aria-label="Resume {NAME}"' not in (await browser.get("/destinations")).text
    assert (await browser.post("/destinations/probe", {"destination": NAME})).status_code == 303
    assert (await browser.post("/destinations/pause", {"destination": "nothing"})).status_code == 400
    assert (await browser.post("/destinations/other", {"destination": NAME})).status_code == 404
