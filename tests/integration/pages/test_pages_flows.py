"""The page of flows: what it shows, and what it changes."""

from __future__ import annotations

from tests.integration.pages.conftest import Node


async def test_rules_are_shown_paused_resumed_and_deleted(node: Node) -> None:
    browser = node.browser()
    assert "No flows" in (await browser.get("/flows")).text
    rate = {"rate": {"count": 100, "per": "1m"}, "burst": 5}
    rule = {
        "namespace": "default",
        "match": "customer:",
        "perKey": {**rate, "parallelism": 2},
        "total": {"parallelism": 9},
    }
    assert (await browser.client.post("/api/v1/flows/put", json=rule)).status_code == 200
    for path in ("/flows", "/flows?namespace=default"):
        shown = (await browser.get(path)).text
        for words in ("customer:", "100 in 1m, 5 at once; 2 in flight", "9 in flight", "in order"):
            assert words in shown
    changed = {"namespace": "default", "match": "customer:", "scope": "default"}
    answer = await browser.post("/flows/pause", changed)
    assert (answer.status_code, answer.headers["location"]) == (303, "/flows?namespace=default")
    shown = (await browser.get("/flows")).text
    assert "paused" in shown
    assert 'aria-label="Resume customer:"' in shown
    assert (await browser.post("/flows/resume", changed)).status_code == 303
    assert 'aria-label="Pause customer:"' in (await browser.get("/flows")).text
    assert (await browser.post("/flows/other", changed)).status_code == 404
    assert (await browser.post("/flows/delete", {**changed, "scope": ""})).headers["location"] == "/flows"
    assert "No flows" in (await browser.get("/flows")).text
    assert (await browser.post("/flows/pause", changed)).status_code == 404
