"""Schedules on the pages: lists by id and prefix, refusals with their reasons, permissions, hostile text."""

from __future__ import annotations

import asyncio
import html
import json
import re
from typing import Any

import pytest

from tests.integration.pages.conftest import Browser, Node, Start
from tests.integration.pages.test_pages_safety import HOSTILE, keyed, signed_in
from tests.support.patience import PATIENCE_S
from tocsin.model.access import Role
from tocsin.web.pages.schedules import listing

CALLBACK = "http://93.184.215.14/"
NAME = {"namespace": "default", "id": "report-1"}


async def create(browser: Browser, schedule_id: str, **definition: Any) -> None:
    sent = {"namespace": "default", "id": schedule_id, "callbackUrl": CALLBACK, "cron": "0 9 * * *", **definition}
    sent = {field: value for field, value in sent.items() if value is not None}
    answer = await browser.client.post("/api/v1/schedules/create", json=sent)
    assert answer.status_code == 200, answer.text


def ids(page: str) -> list[str]:
    return re.findall(r'<tr role="row" [^>]*data-id="([^"]+)"', page)


async def test_list_follows_its_cursor_and_finds_prefixes(node: Node) -> None:
    browser = node.browser()
    for number in (3, 1, 2):
        await create(browser, f"report-{number}")
    for other in ("report", "sweep"):
        await create(browser, other)
    first = (await browser.get("/schedules?rows=3")).text
    assert ids(first) == ["report", "report-1", "report-2"]
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following is not None
    assert ids((await browser.get(f"/ui/more{following[1].replace('&amp;', '&')}")).text) == ["report-3", "sweep"]
    # The schedule whose id is the search text comes first; then those whose ids begin with it.
    assert ids((await browser.get("/schedules?namespace=default&q=report&rows=3")).text) == [
        "report",
        "report-1",
        "report-2",
        "report-3",
    ]
    assert ids((await browser.get("/schedules?q=report-")).text) == ["report-1", "report-2", "report-3"]
    assert "No matching schedules" in (await browser.get("/schedules?q=report-4")).text
    assert await browser.fresh("/schedules?namespace=default&rows=2", whole="yes") == "2 or more new"
    assert await browser.fresh("/schedules?namespace=default&rows=2", "default/report-1") == "1 new"
    # An open page gets the rows that differ from those it shows.
    keys = [[f"default/{name}", "-"] for name in ids(first)]
    whole = (await browser.post("/ui/schedules/rows", {"namespace": "default", "rows": json.dumps(keys)})).text
    assert ids(whole) == ids(first)
    known = dict(re.findall(r'data-key="([^"]+)"[^>]* data-v="([^"]+)"', whole))
    paused = {"namespace": "default", "scheduleId": "report-1"}
    assert (await browser.client.post("/api/v1/schedules/pause", json=paused)).status_code == 200
    rows = json.dumps([*known.items(), ["never", ""]])
    changed = await browser.post("/ui/schedules/rows", {"namespace": "default", "rows": rows})
    assert ids(changed.text) == ["report-1"]
    assert '<tbody data-of="never" data-left></tbody>' in changed.text
    assert ids((await browser.get("/schedules?view=paused")).text) == ["report-1"]
    assert ids((await browser.get("/schedules?view=active&q=report")).text) == ["report", "report-2", "report-3"]
    # The schedule with the searched id is shown on every tab.
    assert ids((await browser.get("/schedules?view=active&q=report-1")).text) == ["report-1"]
    assert "No paused schedule in" in (await browser.get("/schedules?view=paused&q=s")).text


async def test_an_occurrence_has_a_page_with_its_attempts_and_neighbours(node: Node) -> None:
    browser = node.browser()
    await create(browser, "beat", cron="@yearly", callbackUrl="http://127.0.0.1:9/", retryPolicy={"maxAttempts": 1})
    api = "/api/v1/schedules/"
    name = {"namespace": "default", "scheduleId": "beat"}

    async def history() -> list[Any]:
        return list((await browser.client.post(f"{api}history", json=name)).json()["occurrences"])

    for _ in range(3):
        assert (await browser.client.post(f"{api}trigger", json=name)).status_code == 200
    async with asyncio.timeout(PATIENCE_S):
        # The API sends no notification.
        while sum(each["status"] == "failed" for each in await history()) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert (await browser.client.post(f"{api}pause", json=name)).status_code == 200
    first, second, third = (
        f"/schedules/default/beat/occurrences/{each['instant']}?firing={each['run']}"
        for each in (await history())[:0:-1]
    )
    page = (await browser.get(second)).text
    assert "Failed in one attempt" in page
    assert "fired by hand" in page
    assert f'rel="prev" href="{first}"' in page
    assert f'rel="next" href="{third}"' in page
    # It is replayed from there, and the replay has a page of its own.
    csrf = re.search(r'name="csrf" value="(\w+)"', page)[1]
    sent = {"csrf": csrf, "namespace": "default", "id": "beat", "instant": (await history())[-1]["instant"]}
    assert 'action="/schedules/replay"' in page
    answer = await browser.post("/schedules/replay", sent)
    assert (answer.status_code, "notice=replayed" in answer.headers["location"]) == (303, True)
    # What waits for the schedule to be resumed is not due.
    detail = (await browser.get("/schedules/default/beat")).text
    assert "waits for the schedule to be resumed" in detail
    assert detail.count("data-cell=") == 3
    assert ids((await browser.get("/schedules?view=failing")).text) == ["beat"]
    for wrong in ("2020-01-01T00:00:00Z", "soon"):
        assert (await browser.get(f"/schedules/default/beat/occurrences/{wrong}")).status_code == 404
    # An id can look like the path of an occurrence.
    await create(browser, "odd/occurrences/x")
    assert "odd/occurrences/x" in (await browser.get("/schedules/default/odd%2Foccurrences%2Fx")).text


async def test_day_has_a_lane_for_each_schedule_and_lists_those_that_start_together(node: Node) -> None:
    browser = node.browser()
    for name in ("one", "two"):
        await create(browser, name, cron="0 9 * * *", timeZone="America/New_York")
    await create(browser, "dense", cron="* 10-11,20 * * *", timeZone="America/New_York")
    await create(browser, "never", cron="0 0 29 2 *")
    await create(browser, "off")
    off = {"namespace": "default", "scheduleId": "off"}
    assert (await browser.client.post("/api/v1/schedules/pause", json=off)).status_code == 200
    # Its clocks are set back then: 25 hours.
    here = "/schedules/day?zone=America/New_York&date=2037-11-01"
    page = (await browser.get(here)).text
    assert 'data-hours="25"' in page
    assert "3 schedules fire on this day in America/New_York" in page
    lanes = dict(
        re.findall(r'/schedules/default/(\w+)".*?<svg viewBox="0 0 1500 12".*?</title>(.*?)</svg>', page, re.DOTALL)
    )
    # 09:00 is the tenth hour after midnight.
    assert lanes == {
        "one": '<path d="M600 0v12"/>',
        "two": '<path d="M600 0v12"/>',
        "dense": '<rect x="660" y="3" width="120" height="6"/><rect x="1260" y="3" width="60" height="6"/>',
    }
    assert "1 paused schedule is left out" in page
    (at,) = set(re.findall(r"&amp;at=(\d+)", page))
    chosen = (await browser.get(f"{here}&at={at}")).text
    assert "2 schedules start at 09:00" in chosen
    # What can't be read is today in UTC.
    assert "on this day in UTC" in (await browser.get("/schedules/day?zone=Nowhere&date=soon&at=x")).text


async def test_a_copy_of_a_schedule_has_its_settings_and_secrets_under_a_new_id(node: Node) -> None:
    browser = node.browser()
    secret = {"authorization": "Bearer of-the-receiver"}
    await create(
        browser, "report-1", headers=secret, jitter="5m", catchUp="all", payload={"report": 1}, description="A report",
        flowKey="reports:1", onFailure={"url": "http://127.0.0.1:9/alerts", "headers": {"x-key": "of-the-hook"}},
    )  # fmt: skip
    shown = await browser.get("/schedules/new?namespace=default&like=report-1")
    assert shown.status_code == 200
    fields = re.findall(r'<input(?: type="hidden")? name="(\w+)"[^>]* value="([^"]*)"', shown.text)
    form = {name: html.unescape(value) for name, value in fields}
    assert re.fullmatch(r"report-1-[0-9a-f]{8}", form["id"])
    assert (form["like"], form["jitter"]) == ("report-1", "5m")
    assert "of-the-receiver" not in shown.text and "of-the-hook" not in shown.text
    assert 'title="A report"' in (await browser.get("/schedules")).text
    assert ">A report</p>" in (await browser.get("/schedules/default/report-1")).text
    form |= {"namespace": "default", "catch_up": "all", "payload": '{"report": 1}'}
    form |= {"header_name": "authorization", "header_value": "[redacted]"}
    made = await browser.post("/schedules/new", form)
    assert made.status_code == 303, re.findall('id="wrong-.*?<', made.text)
    first, second = [
        (await browser.client.post("/api/v1/schedules/get", json={"namespace": "default", "scheduleId": name})).json()
        for name in ("report-1", form["id"])
    ]
    for field in (
        "cron",
        "jitter",
        "catchUp",
        "description",
        "flowKey",
        "callbackUrl",
        "headers",
        "payload",
        "onFailure",
    ):
        assert first[field] == second[field], field
    # Without its original, a copy's secrets are unknown.
    refused = await browser.post("/schedules/new", {**form, "id": "other", "like": "report-9"})
    assert refused.status_code == 400
    # Another schedule of that id may have other secrets, though the form shows the same.
    assert (await browser.post("/schedules/new", form)).status_code == 409


async def test_refusals_state_the_reason_and_keep_what_was_entered(node: Node) -> None:
    browser = node.browser()
    await create(browser, NAME["id"])
    fields = {"namespace": "default", "id": "new", "url": CALLBACK, "cron": "soon", "zone": "UTC"}
    refused = await browser.post("/schedules/new", {**fields, "timeout": "10"})
    assert refused.status_code == 400
    assert 'value="soon" placeholder="0 9 * * MON-FRI"' in refused.text
    assert '<span class="wrong" id="wrong-cron">Must have five fields' in refused.text
    for query, reason in (
        ("after=2027-01-02T00:00:00&before=2027-01-01T00:00:00", "No instants in this range"),
        ("after=yesterday&before=2027-01-01T00:00:00", "From is not an RFC 3339 instant"),
    ):
        asked = await browser.get(f"/schedules/backfill?namespace=default&id=report-1&{query}")
        assert reason in asked.text, re.findall('role="alert">(.*?)<', asked.text)
    ahead = {"after": "2999-01-01T00:00:00Z", "before": "2999-02-01T00:00:00Z"}
    future = await browser.post("/schedules/backfill", {**NAME, **ahead})
    assert future.status_code == 400
    assert "To has no instant of the schedule" in future.text
    assert (await browser.post("/schedules/delete", dict(NAME))).status_code == 303
    ended = await browser.post("/schedules/pause", dict(NAME))
    assert ended.status_code == 409
    assert "has ended" in ended.text
    assert (await browser.get("/schedules/default/never")).status_code == 404


async def test_read_key_sees_no_actions_on_schedules_and_is_refused(start: Start) -> None:
    node = await keyed(start)
    admin, reader = await signed_in(node, "tk_admin"), await signed_in(node, "tk_read")
    token = re.search(r'name="csrf" content="(\w+)', (await admin.get("/timers")).text)
    assert token is not None
    fields = {"url": CALLBACK, "cron": "0 9 * * *", "timeout": "10", "csrf": token[1]}
    assert (await admin.post("/schedules/new", {**NAME, **fields})).status_code == 303
    for path in ("/schedules", "/schedules/default/report-1"):
        page = (await reader.get(path)).text
        assert "report-1" in page
        assert re.findall(r'<form method="post" action="([^"]+)"', page) == ["/logout"], path
        assert "/schedules/new" not in page
    token = re.search(r'name="csrf" content="(\w+)', (await reader.get("/timers")).text)
    assert token is not None
    for path in ("new", "edit", "pause", "resume", "trigger", "backfill", "delete"):
        refused = await reader.post(f"/schedules/{path}", {**NAME, **fields, "csrf": token[1]})
        assert refused.status_code == 403, path
    for path in ("/schedules/new", "/schedules/edit?namespace=default&id=report-1"):
        assert (await reader.get(path)).status_code == 403, path
    own = await signed_in(node, "tk_own")
    assert (await own.get("/schedules/default/report-1")).status_code == 403


async def test_text_of_users_in_schedules_is_escaped(node: Node) -> None:
    browser = node.browser()
    await create(
        browser, HOSTILE, payload={HOSTILE: HOSTILE}, description=HOSTILE, tags=[HOSTILE], headers={"x-note": HOSTILE}
    )
    name = {"namespace": "default", "id": HOSTILE}
    for path, query in (
        ("/schedules", {}),
        ("/schedules", {"q": HOSTILE}),
        ("/schedules/default/", {"id": HOSTILE}),
        ("/schedules/edit", name),
        ("/schedules/backfill", {**name, "after": HOSTILE, "before": HOSTILE}),
    ):
        page = await browser.get(path, params=query)
        assert "<script>alert" not in page.text, page.url
        assert "<img" not in page.text, page.url
    shown = await browser.post("/schedules/new", {**name, "cron": HOSTILE, "zone": HOSTILE})
    assert shown.status_code == 400
    assert "<script>alert" not in shown.text


async def test_list_in_the_order_of_next_instants(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = node.browser()
    assert (await browser.client.post("/api/v1/namespaces/create", json={"name": "shop"})).status_code == 200
    await create(browser, "a", cron="0 0 29 2 *")
    await create(browser, "b", cron=None, every="365d")
    await create(browser, "c", cron=None, every="1h", namespace="shop")
    await create(browser, "d", cron=None, every="2h")
    await create(browser, "off", cron=None, every="1m")
    off = {"namespace": "default", "scheduleId": "off"}
    assert (await browser.client.post("/api/v1/schedules/pause", json=off)).status_code == 200
    # What fires when it comes due is not what fires next.
    await create(browser, "now", cron=None, every="3h", callbackUrl="http://127.0.0.1:9/")
    api = "/api/v1/schedules/trigger"
    triggered = {"namespace": "default", "scheduleId": "now"}
    assert (await browser.client.post(api, json=triggered)).status_code == 200

    async def pages(path: str) -> list[str]:
        found: list[str] = []
        while path:
            page = (await browser.get(path)).text
            found += ids(page)
            following = re.search(r'rel="next" href="([^"]+)"', page)
            path = following[1].replace("&amp;", "&") if following else ""
        return found

    soonest = ids((await browser.get("/schedules?order=next")).text)
    assert (soonest[:3], soonest[5:]) == (["c", "d", "now"], ["off"])
    assert await pages("/schedules?order=next&rows=2") == soonest
    assert await pages("/schedules?order=next&namespace=default") == [each for each in soonest if each != "c"]
    assert ids((await browser.get("/schedules?order=next&view=paused")).text) == ["off"]
    # The exact id first, then those that begin with the text; not only if these are the first of the namespace.
    for text, found in (("o", ["off"]), ("off", ["off"]), ("of", ["off"])):
        assert ids((await browser.get(f"/schedules?order=next&namespace=default&q={text}")).text) == found
    assert (await browser.get("/schedules?order=next&cursor=a")).status_code == 400
    # New ones are found where the page has all.
    assert [await browser.fresh(f"/schedules?order=next&rows={rows}") for rows in (5, 6)] == ["", "6 new"]
    # Too many to be sorted are ordered by id.
    monkeypatch.setattr(listing, "SORTED_MAX", 5)
    page = (await browser.get("/schedules?order=next")).text
    assert "These are more than 5 schedules, too many to sort" in page
    assert await pages("/schedules?order=next&rows=4") == await pages("/schedules?rows=4")
    assert await pages("/schedules?order=next&namespace=default") == [each for each in soonest if each != "c"]


async def test_a_schedule_that_paused_itself_needs_attention_on_now(start: Start) -> None:
    node = await start({f"tk_{name}": (role, of) for name, role, of in (
        ("all", Role.WRITE, ()), ("mine", Role.READ, ("default",)), ("other", Role.WRITE, ("other",)),
    )}, host="0.0.0.0", store=None, egress_allow=["127.0.0.1:9"])  # fmt: skip
    browser = await signed_in(node, "tk_all")
    browser.client.headers["authorization"] = "Bearer tk_all"
    failing = {"callbackUrl": "http://127.0.0.1:9/", "retryPolicy": {"maxAttempts": 1}, "pauseAfterFailures": 2}
    await create(browser, "beat", cron="@yearly", **failing)
    name = {"namespace": "default", "scheduleId": "beat"}
    for _ in range(2):
        assert (await browser.client.post("/api/v1/schedules/trigger", json=name)).status_code == 200
    async with asyncio.timeout(PATIENCE_S):
        # The API sends no notification.
        while (await browser.client.post("/api/v1/schedules/get", json=name)).json()["status"] != "paused":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    page = (await browser.get("/")).text
    assert "a schedule has paused itself." in page
    row = page[page.index("beat has paused itself") :]
    assert "It paused itself <span" in row
    assert "<b>2</b> failures in a row" in row
    assert 'action="/schedules/resume"' in row
    assert "beat" not in (await browser.get("/?namespace=other")).text
    # A key sees those of its namespaces, and resumes what it may change.
    theirs = (await (await signed_in(node, "tk_mine")).get("/")).text
    assert 'href="/schedules/default/beat" aria-label="Show' in theirs
    assert "/schedules/resume" not in theirs
    others = (await (await signed_in(node, "tk_other")).get("/")).text
    assert "paused itself" not in others.replace("no schedule has paused itself", "")
    resumed = await browser.post("/schedules/resume", {"namespace": "default", "id": "beat"})
    assert resumed.headers["location"] == "/schedules/default/beat?notice=resumed"
