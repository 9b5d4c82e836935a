"""The page of flows: what it shows, and what it changes."""

from __future__ import annotations

import re

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
        for words in ("customer:", "100 in 1\u00a0min, 5 at once; 2 in flight", "9 in flight", "below its limit"):
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


async def test_a_form_creates_a_rule_and_changes_it(node: Node) -> None:
    browser = node.browser()
    shown = (await browser.get("/flows")).text
    assert 'href="/flows/new"' in shown
    shown = (await browser.get("/flows/new")).text
    assert 'name="perKey.rate.per" value="1m"' in shown
    fields = {
        "namespace": "default",
        "match": "customer:",
        "perKey.rate.count": "100",
        "perKey.rate.per": "1m",
        "perKey.parallelism": "2",
        "total.rate.per": "1m",
        "closeOnRetryAfter": "yes",
    }
    answer = await browser.post("/flows/new", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/flows?namespace=default")
    link = 'href="/flows/edit?namespace=default&amp;match=customer%3A"'
    shown = (await browser.get("/flows")).text
    for words in ("100 in 1\u00a0min; 2 in flight", "closes on Retry-After", link):
        assert words in shown
    # One that exists is not replaced by mistake.
    answer = await browser.post("/flows/new", {**fields, "perKey.rate.count": "5"})
    assert (answer.status_code, "has a rule already" in answer.text) == (409, True)
    assert 'value="5"' in answer.text
    page = "/flows/edit?namespace=default&match=customer%3A"
    shown, version = (await browser.get(page)).text, await browser.version(page)
    for words in ('value="100"', 'name="perKey.burst" value="1"', "checked", "Delete flow"):
        assert words in shown
    changed = {**fields, "perKey.rate.count": "", "total.rate.count": "9", "total.burst": "3", "closeOnRetryAfter": ""}
    assert (await browser.post("/flows/edit", changed | version)).status_code == 303
    name = {"namespace": "default", "match": "customer:"}
    stored = (await browser.client.post("/api/v1/flows/get", json=name)).json()
    assert stored["perKey"] == {"parallelism": 2}
    assert stored["total"] == {"rate": {"count": 9, "per": "1m"}, "burst": 3}
    assert stored["closeOnRetryAfter"] is False


async def test_the_form_makes_a_rule_ordered(node: Node) -> None:
    browser = node.browser()
    made = await browser.client.post("/api/v1/namespaces/create", json={"name": "orders", "numShards": 1})
    assert made.status_code == 200
    fields = {"namespace": "orders", "match": "order:", "perKey.ordered": "yes"}
    assert (await browser.post("/flows/new", fields)).status_code == 303
    assert 'data-label="Each key">in order<' in (await browser.get("/flows?namespace=orders")).text
    page = "/flows/edit?namespace=orders&match=order%3A"
    shown, version = (await browser.get(page)).text, await browser.version(page)
    assert 'name="perKey.ordered" value="yes" checked' in shown
    answer = await browser.post("/flows/edit", {**fields, **version, "perKey.parallelism": "3"})
    assert (answer.status_code, "Allows one attempt at a time" in answer.text) == (400, True)
    assert (
        await browser.post("/flows/edit", {**fields, **version, "perKey.ordered": "", "perKey.parallelism": "3"})
    ).status_code == 303
    name = {"namespace": "orders", "match": "order:"}
    assert (await browser.client.post("/api/v1/flows/get", json=name)).json()["perKey"] == {"parallelism": 3}


async def test_the_form_keeps_what_was_entered_and_names_what_is_wrong(node: Node) -> None:
    browser = node.browser()
    fields = {"namespace": "default", "match": "a b", "perKey.rate.count": "0", "perKey.rate.per": "2 moons"}
    answer = await browser.post("/flows/new", fields)
    assert answer.status_code == 400
    for words in ('id="wrong-match">Is no key', 'value="2 moons"', 'href="#field-perKey.rate.count"', 'value="a b"'):
        assert words in answer.text, words
    answer = await browser.post("/flows/new", {**fields, "match": "a", "perKey.rate.count": "many"})
    assert (answer.status_code, "Must be a whole number" in answer.text) == (400, True), answer.text
    answer = await browser.post("/flows/new", {"namespace": "default", "match": "a", "perKey.rate.per": "1m"})
    assert (answer.status_code, "Nothing is limited" in answer.text) == (400, True)
    assert "No flows" in (await browser.get("/flows")).text
    assert (await browser.get("/flows/edit?namespace=default&match=a")).status_code == 404


async def test_the_end_of_a_pause_is_shown(node: Node) -> None:
    browser = node.browser()
    for match, until in (("soon", {"until": "2099-01-31T12:00:00Z"}), ("held", {})):
        rule = {"namespace": "default", "match": match}
        put = {**rule, "total": {"parallelism": 1}}
        assert (await browser.client.post("/api/v1/flows/put", json=put)).status_code == 200
        assert (await browser.client.post("/api/v1/flows/pause", json={**rule, **until})).status_code == 200
    shown = (await browser.get("/flows")).text
    assert shown.count("paused until") == 1
    assert 'datetime="2099-01-31T12:00:00' in shown


async def test_forms_choose_what_is_sent_together_and_keep_it(node: Node) -> None:
    browser = node.browser()
    fields = {"namespace": "default", "match": "digest:", "perKey.rate.per": "1m", "total.rate.per": "1m"}
    answer = await browser.post("/flows/new", {**fields, "callbackBatch.max": "1"})
    assert answer.status_code == 400
    assert "Sent together: timers" in answer.text
    answer = await browser.post("/flows/new", {**fields, "callbackBatch.max": "200", "callbackBatch.linger": "1s"})
    assert answer.status_code == 303, answer.text
    assert "up to 200 in a request, within 1\u00a0s" in (await browser.get("/flows")).text
    shown = (await browser.get("/flows/edit?namespace=default&match=digest%3A")).text
    assert 'name="callbackBatch.max" value="200"' in shown
    assert 'name="callbackBatch.linger" value="1s"' in shown
    settings = {"name": "default", "callbackBatch.max": "100", "callbackBatch.linger": ""}
    assert (await browser.post("/namespaces/change", settings)).status_code == 303
    listed = (await browser.client.post("/api/v1/namespaces/get", json={"name": "default"})).json()
    assert listed["callbackBatch"] == {"max": 100, "linger": "100ms"}
    assert 'name="callbackBatch.max" value="100"' in (await browser.get("/namespaces/default")).text
    assert (await browser.post("/namespaces/change", {**settings, "callbackBatch.max": ""})).status_code == 303
    listed = (await browser.client.post("/api/v1/namespaces/get", json={"name": "default"})).json()
    assert "callbackBatch" not in listed


async def test_an_attempt_names_the_batch_that_it_was_part_of(node: Node) -> None:
    browser = node.browser()
    changed = {"name": "default", "callbackBatch": {"max": 2, "linger": "0s"}}
    assert (await browser.client.post("/api/v1/namespaces/update", json=changed)).status_code == 200
    # Nobody listens there, so each of its attempts fails.
    await browser.create("t", delay="0s", callbackUrl="http://127.0.0.1:9/", retryPolicy={"maxAttempts": 1})
    page = ""
    while "CONNECTION_FAILED" not in page:
        page = (await browser.get("/timers/default/t")).text
    assert re.search(r'Part of <span class="mono break">batch_[0-9a-f]{32}</span>', page)
