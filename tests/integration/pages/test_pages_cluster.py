"""Several nodes behind one address: every node accepts a sign-in and serves all pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.pages.conftest import Browser, Node, Start
from tests.support.cluster import until
from tocsin.model.access import Role
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import US_PER_SECOND, format_instant
from tocsin.telemetry.clock import SystemClock


async def pair(start: Start, folder: Path, store: str, **chosen: Any) -> tuple[Node, Node]:
    """Two nodes of one store; the first runs the service agent."""
    one = await start({"tk_write": (Role.WRITE, ())}, store=store, node_name="one", data_dir=folder / "one", **chosen)
    other = await start(store=store, node_name="other", data_dir=folder / "other", agent_enabled=False, **chosen)
    return one, other


def beside(node: Node, browser: Browser) -> Browser:
    """The same browser, on another node."""
    other = node.browser()
    for cookie in browser.client.cookies.jar:
        other.client.cookies.set(
            cookie.name.replace(browser.base.rsplit(":")[-1], other.base.rsplit(":")[-1]), cookie.value or ""
        )
    return other


@pytest.fixture
async def nodes(start: Start, tmp_path: Path, postgresql_url: str) -> tuple[Node, Node]:
    return await pair(start, tmp_path, postgresql_url, host="0.0.0.0", advertise="127.0.0.1")


async def test_sign_in_holds_on_every_node(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    browser = one.browser()
    assert (await browser.sign_in("tk_write")).status_code == 303
    token = await browser.token()
    there = beside(other, browser)
    assert (await there.get("/timers")).status_code == 200
    fields = {"namespace": "default", "id": "t", "url": "http://93.184.215.14/", "delay": "1h", "timeout": "10"}
    assert (await there.post("/timers/new", {**fields, "csrf": token})).status_code == 303
    assert "pending" in (await browser.get("/timers/default/t")).text
    # No node accepts a forged cookie.
    forged = other.browser()
    name, value = next((cookie.name, cookie.value or "") for cookie in there.client.cookies.jar)
    forged.client.cookies.set(name, value[:-1] + ("0" if value[-1] != "0" else "1"))
    assert (await forged.get("/timers")).status_code == 303


async def test_every_node_serves_the_pages_of_calls(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    browser = one.browser()
    await browser.sign_in("tk_write")
    there = beside(other, browser)
    clock = SystemClock()
    tenant = Uuid7Source(clock.now_us)()
    call = {
        "name": "Charge order 17",
        "requestSpec": {"method": "POST", "url": "http://93.184.215.14/"},
        "dueAt": format_instant(clock.now_us() + 3_600 * US_PER_SECOND),
    }
    answer = await there.client.post(
        f"/api/v1/tenants/{tenant}/service-calls", json=call, headers={"authorization": "Bearer tk_write"}
    )
    assert answer.status_code == 202, answer.text
    call_id = answer.json()["serviceCallId"]
    shown = await there.get(f"/calls?tenant={tenant}")
    assert shown.status_code == 200
    assert "Charge order 17" in shown.text
    starred = await there.post(
        "/calls/star",
        {
            "tenant": tenant,
            "star": f"{tenant}/{call_id}",
            "back": f"/calls?tenant={tenant}",
            "csrf": await there.token(),
        },
    )
    assert starred.status_code == 303
    assert "Charge order 17" in (await browser.get(f"/calls?tenant={tenant}&starred=yes")).text
    async with there.client.stream("GET", f"/ui/live/calls?tenant={tenant}") as stream:
        assert stream.status_code == 200
        assert [line async for line in _first(stream.aiter_lines(), 3)][-1].startswith("data: ")


async def test_overview_of_every_node_has_the_statistics_of_calls(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    browser = one.browser()
    await browser.sign_in("tk_write")
    there = beside(other, browser)
    # Until there is a timer, the first step stands there.
    timer = {"namespace": "default", "id": "t", "callbackUrl": "http://93.184.215.14/", "delay": "30m"}
    key = {"authorization": "Bearer tk_write"}
    assert (await browser.client.post("/api/v1/timers/create", json=timer, headers=key)).status_code == 200

    async def both_have_statistics() -> bool:
        pages = [(await each.get("/")).text for each in (browser, there)]
        return all("Service calls, last 60 minutes" in page for page in pages)

    await until(both_have_statistics)


async def test_sign_out_holds_on_every_node(nodes: tuple[Node, Node]) -> None:
    one, other = nodes
    browser = one.browser()
    await browser.sign_in("tk_write")
    there, token = beside(other, browser), await browser.token()
    assert (await there.get("/timers")).status_code == 200
    answer = await browser.post("/logout", {"csrf": token})
    assert answer.headers["location"] == "/login"

    async def is_out() -> bool:
        return (await there.get("/timers")).status_code == 303

    await until(is_out)
    # A form of that sign-in has no effect.
    fields = {"namespace": "default", "id": "t", "url": "http://93.184.215.14/", "delay": "1h", "csrf": token}
    answer = await there.post("/timers/new", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    # The API still accepts the key.
    assert (await there.client.get("/api/v1/cluster", headers={"authorization": "Bearer tk_write"})).status_code == 200


async def _first(lines: Any, count: int) -> Any:
    found = 0
    async for line in lines:
        yield line
        found += 1
        if found == count:
            return
