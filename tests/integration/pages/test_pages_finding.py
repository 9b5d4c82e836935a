"""What the palette finds: timers, schedules and calls by ids, beginnings of ids, webhook-ids and correlation ids; and the
counts of tabs."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx

from tests.integration.pages.conftest import Browser, Node, Start
from tests.integration.pages.test_pages_calls_safety import MINE, OTHERS, keyed, signed_in, submit
from tests.integration.pages.test_pages_schedules import create
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S

CALLBACK = "http://93.184.215.14/"


async def found(browser: Browser, text: str) -> list[tuple[str, str, str]]:
    answer = await browser.get("/ui/find", params={"q": text})
    assert answer.status_code == 200, answer.text
    hits = answer.json()["found"]
    for hit in hits:
        assert (await browser.get(hit["href"])).status_code == 200
    return [(hit["what"], hit["where"], hit["name"]) for hit in hits]


async def post(browser: Browser, path: str, **body: Any) -> Any:
    answer = await browser.client.post(f"/api/v1/{path}", json=body)
    assert answer.status_code in (200, 204), answer.text
    return answer.json() if answer.content else None


async def test_timers_and_schedules_are_found_in_every_namespace(node: Node) -> None:
    browser = node.browser()
    await post(browser, "namespaces/create", name="shop", numShards=1)
    uuids = {}
    for namespace in ("default", "shop"):
        for timer_id in ("order-1", "order-12", "other"):
            body = {"namespace": namespace, "id": timer_id, "callbackUrl": CALLBACK, "delay": "1h"}
            uuids[namespace, timer_id] = (await post(browser, "timers/create", **body))["timerUuid"]
        await create(browser, "order-1s", namespace=namespace)
    await post(browser, "timers/delete", namespace="shop", timerId="order-1")
    # The exact ones first, finished ones, too; then what begins so.
    hits = await found(browser, "order-1")
    assert set(hits[:2]) == {("timer", "default", "order-1"), ("timer", "shop", "order-1")}
    assert set(hits[2:]) == {
        (what, namespace, each)
        for namespace in ("default", "shop")
        for what, each in (("timer", "order-12"), ("schedule", "order-1s"))
    }
    assert await found(browser, "order-1s") == [("schedule", "default", "order-1s"), ("schedule", "shop", "order-1s")]
    uuid = uuids["shop", "order-12"]
    for text in (uuid, uuid.upper(), f"msg_{uuid.replace('-', '')}_1-2a", f"  {uuid} "):
        assert await found(browser, text) == [("timer", "shop", "order-12")]
    answer = (await browser.get("/ui/find", params={"q": "nothing"})).json()
    assert answer["found"] == []
    assert "among the next 5,000 pending timers" in answer["left_out"]
    assert await found(browser, "") == await found(browser, "x" * 10_000) == []


async def test_only_what_the_principal_may_read_is_found(start: Start, tmp_path: Path) -> None:
    node = await keyed(start, tmp_path)
    write = await signed_in(node, "tk_write")
    write.client.headers["authorization"] = "Bearer tk_write"
    calls = {tenant: await submit(write, tenant, spec={"url": CALLBACK}) for tenant in (MINE, OTHERS)}
    await write.create("order-1", callbackUrl=CALLBACK)
    call = await write.client.get(f"/api/v1/tenants/{MINE}/service-calls/{calls[MINE]}")
    for secret, of in (("tk_read", {MINE, OTHERS}), ("tk_peek", {MINE}), ("tk_ns", set())):
        browser = await signed_in(node, secret)
        for tenant, call_id in calls.items():
            assert await found(browser, call_id) == ([("call", "one", call_id)] if tenant in of else [])
        named = [("call", "one", calls[MINE])] if MINE in of else []
        assert await found(browser, call.json()["correlationId"]) == named
        assert await found(browser, "order-1") == ([] if secret == "tk_peek" else [("timer", "default", "order-1")])


async def test_tabs_have_their_counts_unless_the_list_is_narrowed(node: Node) -> None:
    browser = node.browser()
    await post(browser, "namespaces/create", name="shop")
    for namespace, timers in (("default", 3), ("shop", 2)):
        for number in range(timers):
            body = {"namespace": namespace, "id": f"t{number}", "callbackUrl": CALLBACK, "delay": "1h"}
            await post(browser, "timers/create", **body)
            await create(browser, f"s{number}", namespace=namespace)
        await post(browser, "timers/delete", namespace=namespace, timerId="t0")
        await post(browser, "schedules/pause", namespace=namespace, scheduleId="s0")

    async def tabs(path: str) -> dict[str, str]:
        page = (await browser.get(path)).text
        return dict(re.findall(r'<a href="[^"]*view=(\w+)[^"]*"[^>]*>[^<]+<i[^>]*>([^<]*)</i></a>', page))

    assert await tabs("/timers") == {
        "pending": "3",
        "completed": "0",
        "failed": "0",
        "expired": "0",
        "canceled": "2",
        "waiting": "0",
    }
    assert (await tabs("/timers?namespace=shop"))["pending"] == "1"
    # Those that an open page asks for again.
    assert await tabs("/ui/tabs/timers?namespace=shop") == await tabs("/timers?namespace=shop")
    assert await tabs("/timers?q=t") == {}
    assert await tabs("/schedules") == {"all": "5", "active": "3", "paused": "2", "failing": "0"}


async def test_new_rows_are_counted_up_to_the_last_known_one(node: Node) -> None:
    browser = node.browser()
    for number, name in enumerate("abcde"):
        await browser.create(name, delay=f"{number + 1}h")
    assert await browser.fresh("/timers?rows=4", "default/a", "default/c") == "1 new"
    # Those after the last known one come by scrolling, unless the page has the whole list.
    assert await browser.fresh("/timers", "default/a", "default/b") == ""
    assert await browser.fresh("/timers", "default/a", "default/b", whole="yes") == "3 new"
    # If none is known, all come by scrolling, unless the latest come first.
    assert await browser.fresh("/timers?rows=4", "default/z") == ""
    assert await browser.fresh("/timers?rows=4&order=desc", "default/z") == "4 or more new"
    for wrong in ("[", '["' + '","'.join("x" * 501) + '"]'):
        assert (await browser.post("/ui/fresh/timers", {"known": wrong})).status_code == 400


async def test_only_rows_that_the_principal_may_read_are_counted_as_new(start: Start, tmp_path: Path) -> None:
    node = await keyed(start, tmp_path)
    admin, limited = await signed_in(node, "tk_admin"), await signed_in(node, "tk_ns")
    admin.client.headers["authorization"] = "Bearer tk_admin"
    await post(admin, "namespaces/create", name="shop")
    for namespace in ("default", "shop"):
        await admin.create("order-1", namespace=namespace, callbackUrl=CALLBACK)
    assert await admin.fresh("/timers", whole="yes") == "2 new"
    assert await limited.fresh("/timers", whole="yes") == "1 new"
    assert (await limited.post("/ui/fresh/timers?namespace=shop", {"known": "[]"})).status_code == 403
    assert (await limited.get("/ui/tabs/timers?namespace=shop")).status_code == 403
    # Likewise a namespace that the search text names, and that the field does not take before the word is whole.
    typing = {"hx-request": "true", "hx-trigger": "q"}
    assert "hx-redirect" not in (await limited.get("/timers?q=ns:shop", headers=typing)).headers
    assert (await limited.get("/timers?q=ns:shop")).headers["location"] == "/timers?namespace=shop&view=pending"
    assert (await limited.get("/timers?namespace=shop&view=pending")).status_code == 403


async def test_words_of_the_search_field_become_chips(node: Node) -> None:
    browser = node.browser()
    await post(browser, "namespaces/create", name="shop")

    async def searched(text: str, *, typing: bool = True, path: str = "/timers") -> httpx.Response:
        headers = {"hx-request": "true", "hx-trigger": "q" if typing else "filters"}
        return await browser.get(path, params={"q": text, "tag": "old"}, headers=headers)

    def chips(answer: httpx.Response) -> list[tuple[str, str]] | None:
        assert answer.status_code == 200, answer.text
        part = re.search(r'<span id="chips" hx-swap-oob="true">(.*?)<div id="results"', answer.text, re.DOTALL)
        return re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"><a', part[1]) if part else None

    # A word is taken after a space, if it is one that is offered, or when the form is sent.
    for text, typing, taken, left in (
        ("a tag:e", True, None, None),
        ("a tag:e ", True, [("tag", "old"), ("tag", "e")], "a"),
        ("a tag:e", False, [("tag", "old"), ("tag", "e")], "a"),
        ("tag:e b", True, [("tag", "old"), ("tag", "e")], "b"),
        ("error:HTTP 50", True, [("tag", "old"), ("error", "HTTP")], "50"),
        ("error:HTTP 500", True, [("tag", "old"), ("error", "HTTP 500")], ""),
        ("to:/a to:/b ", True, [("tag", "old"), ("destination", "/b")], ""),
        ("tag: x:y ", True, [("tag", "old")], None),
    ):
        answer = await searched(text, typing=typing)
        assert chips(answer) == taken, text
        events = json.loads(answer.headers.get("hx-trigger", "{}"))
        assert events == ({} if left is None else {"tocsin:taken": {"sent": text, "left": left}}), text
    # Another namespace has a page of its own, which keeps the other filters.
    for text, typing in (("a ns:shop", True), ("a ns:nowhere ", True), ("a ns:nowhere", False)):
        named = text.split(":")[1].strip()
        link = f"/timers?namespace={named}&view=pending&q=a&tag=old"
        assert (await searched(text, typing=typing)).headers["hx-redirect"] == link
    assert chips(await searched("a ns:sho")) is None
    plain = await browser.get("/timers?q=ns:shop")
    assert (plain.status_code, plain.headers["location"]) == (303, "/timers?namespace=shop&view=pending")
    # Schedules and calls have fewer words; anything else is a part of an id or a name.
    assert chips(await searched("error:x ", path="/calls")) == [("tag", "old")]


async def test_waiting_timers_are_due_without_an_attempt_in_flight(node: Node) -> None:
    browser = node.browser()
    await post(browser, "namespaces/create", name="shop")
    await post(browser, "namespaces/update", name="shop", paused=True)
    reached = asyncio.Event()

    def receive(_body: dict[str, Any], _headers: dict[str, str]) -> tuple[int, bytes]:
        reached.set()
        return 200, b""

    async with Receiver(receive) as receiver:
        receiver.responding.clear()
        for namespace, timer_id, delay in (("default", "slow", "0s"), ("shop", "held", "0s"), ("shop", "later", "1h")):
            body = {"namespace": namespace, "id": timer_id, "callbackUrl": receiver.url, "delay": delay}
            await post(browser, "timers/create", **body)
        async with asyncio.timeout(PATIENCE_S):
            await reached.wait()
        page = (await browser.get("/timers")).text
        tabs = dict(re.findall(r'data-id="(\w+)"[^>]* data-tab="([^"]+)"', page))
        assert tabs == {"slow": "pending due", "held": "pending due waiting", "later": "pending next"}
        assert re.search(r"view=waiting[^>]*>Waiting <i>1</i>", page)
        for order in ("asc", "desc"):
            waiting = (await browser.get(f"/timers?view=waiting&order={order}")).text
            assert re.findall(r'<tr [^>]*data-id="(\w+)"', waiting) == ["held"]
        assert await browser.fresh("/timers?view=waiting", whole="yes") == "1 new"
        assert await browser.fresh("/timers?view=waiting", "shop/held", whole="yes") == ""
        exported = (await browser.get("/timers/export.json?view=waiting")).json()
        assert [each["id"] for each in exported] == ["held"]
        receiver.responding.set()
