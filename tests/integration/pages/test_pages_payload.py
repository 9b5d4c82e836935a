"""The payload on the page of a timer."""

from __future__ import annotations

from tests.integration.pages.conftest import Node


async def test_timer_without_a_payload_has_none(node: Node) -> None:
    browser = node.browser()
    await browser.create("none")
    await browser.create("digit", payload=7)
    page = (await browser.get("/timers/default/none")).text
    assert "No payload" in page and "Payload, " not in page
    assert "Payload, 1 byte<" in (await browser.get("/timers/default/digit")).text
