"""Security of the call pages: permissions, escaping of foreign text, and CSRF protection."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

from tests.integration.pages.conftest import Browser, Node, Start
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tocsin.administration import put_api_key
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.server.node import open_store
from tocsin.settings import load_settings

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
MINE = "01890a5d-ac96-774b-bcce-b302099a8057"
OTHERS = "01890a5d-ac96-774b-bcce-b302099a8058"
URL = "http://127.0.0.1:9/"


@pytest.fixture
async def answering() -> AsyncIterator[str]:
    """A service with hostile responses."""
    async with Receiver(lambda body, headers: (500, f"<html>{HOSTILE}</html>".encode())) as receiver:
        yield receiver.url


async def submit(browser: Browser, tenant: str = MINE, **fields: Any) -> str:
    spec = {"method": "POST", "url": URL, **fields.pop("spec", {})}
    sent = {"name": "one", "dueAt": "2040-01-01T00:00:00Z", "requestSpec": spec, **fields}
    answer = await browser.client.post(f"/api/v1/tenants/{tenant}/service-calls", json=sent)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["serviceCallId"])


async def keyed(start: Start, tmp_path: Any) -> Node:
    """A node that requires keys, with keys for all tenants, for one tenant and for one namespace."""
    chosen: dict[str, Any] = {"host": "0.0.0.0", "store": None, "data_dir": tmp_path, "port": 0, "shards": 4}
    store = open_store(load_settings(chosen))
    await store.open(None)
    for secret, role, limits in (
        ("tk_admin", Role.ADMIN, {}),
        ("tk_write", Role.WRITE, {}),
        ("tk_read", Role.READ, {}),
        ("tk_mine", Role.WRITE, {"tenants": (MINE.upper(),)}),
        ("tk_peek", Role.READ, {"tenants": (MINE,)}),
        ("tk_ns", Role.WRITE, {"namespaces": ("default",)}),
    ):
        await put_api_key(store, ApiKey(secret, hash_key(secret), role, **limits))
    await store.close()
    return await start(None, **chosen)


async def signed_in(node: Node, secret: str) -> Browser:
    browser = node.browser()
    assert (await browser.sign_in(secret)).status_code == 303
    return browser


async def token_of(browser: Browser, page: str = "/calls") -> str:
    found = re.search(r'name="csrf" content="(\w+)', (await browser.client.get(page, follow_redirects=True)).text)
    assert found is not None
    return found[1]


async def new_call(browser: Browser, tenant: str, **fields: str) -> str:
    """Submits a call through the form. Returns the path of its page."""
    sent = {"csrf": await token_of(browser), "tenant": tenant, "url": "http://93.184.215.14/", "when": "in",
            "delay": "1h", "method": "POST", **fields}  # fmt: skip
    answer = await browser.post("/calls/new", sent)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"].split("?")[0])


async def test_text_of_users_and_services_is_escaped(node: Node, answering: str) -> None:
    browser = node.browser()
    tags = [HOSTILE[:60], "star"]
    spec = {"url": answering + "?q=%22'-->", "headers": {"x-note": HOSTILE}, "body": {HOSTILE: HOSTILE}}
    ended = await submit(browser, name=HOSTILE, tags=tags, spec=spec, dueAt="2020-01-01T00:00:00Z")
    waiting = await submit(browser, name=HOSTILE, tags=tags, spec=spec)
    async with asyncio.timeout(PATIENCE_S):
        # Polls, because the API sends no notification.
        while (await browser.client.get(f"/api/v1/tenants/{MINE}/service-calls/{ended}")).json()["status"] != "Failed":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    pages = [
        await browser.get(f"/calls?tenant={MINE}"),
        await browser.get("/calls", params={"tenant": MINE, "q": HOSTILE, "tag": HOSTILE, "from": HOSTILE}),
        await browser.get("/calls", params={"tenant": MINE, "tag": HOSTILE[:60]}),
        await browser.get("/calls", params={"tenant": HOSTILE}),
        *[await browser.get(f"/calls/{MINE}/{each}") for each in (ended, waiting)],
        await browser.get(f"/calls/{MINE}/{ended}", headers={"hx-request": "true"}),
        await browser.get(f"/calls/{MINE}/{ended}/trace"),
        await browser.get(f"/calls/new?tenant={MINE}&like={ended}"),
        await browser.get("/calls/new", params={"tenant": HOSTILE, "url": HOSTILE}),
        await browser.post("/calls/new", {"tenant": HOSTILE, "name": HOSTILE, "url": HOSTILE, "body": HOSTILE,
                                          "header_name": HOSTILE, "header_value": HOSTILE, "tags": HOSTILE}),
        await browser.post("/ui/calls/equivalent", {"tenant": MINE, "name": HOSTILE, "url": HOSTILE, "tags": HOSTILE}),
        await browser.post("/ui/calls/rows", {"tenant": MINE, "rows": f'[["{ended}", ""], ["{waiting}", ""]]'}),
        await browser.post("/calls/tag", {"tenant": MINE, "id": waiting, "tag": HOSTILE * 9}),
        await browser.post("/calls/star", {"tenant": MINE, "id": waiting, "on": "yes", "back": HOSTILE},
                           **{"hx-request": "true"}),
        await browser.get("/"),
    ]  # fmt: skip
    for page in pages:
        assert "<script>alert" not in page.text, page.url
        assert "<img" not in page.text, page.url
    shown = escape(HOSTILE, quote=False).replace('"', "&#34;")
    assert shown in pages[0].text
    assert f"&lt;html&gt;{shown}" in pages[4].text


async def test_form_requires_the_csrf_token_of_its_session(node: Node) -> None:
    browser = node.browser()
    one = await submit(browser)
    fields = {"tenant": MINE, "id": one}
    for path in ("/calls/delete", "/calls/star", "/calls/tag", "/calls/untag", "/calls/new", "/calls/tenants"):
        assert (await browser.post(path, {**fields, "csrf": "0" * 64})).status_code == 403, path
        assert (await browser.client.post(path, data=fields)).status_code == 403, path
        assert (await browser.post(path, dict(fields), origin="http://evil.example")).status_code == 403, path
    assert (await browser.get(f"/calls/{MINE}/{one}")).status_code == 200
    assert (await browser.post("/calls/delete", fields)).status_code == 303
    assert (await browser.get(f"/calls/{MINE}/{one}")).status_code == 404


async def test_form_submitted_twice_creates_one_call(node: Node) -> None:
    browser = node.browser()
    sent = {"tenant": MINE, "id": "01890a5d-ac96-774b-bcce-b302099a8059", "url": URL, "when": "at",
            "at": "2040-01-01T00:00:00", "method": "POST"}  # fmt: skip
    first, second = await browser.post("/calls/new", dict(sent)), await browser.post("/calls/new", dict(sent))
    assert first.headers["location"] == second.headers["location"]
    other = await browser.post("/calls/new", {**sent, "name": "another"})
    assert other.status_code == 409
    assert f'<a href="/calls/{MINE}/{sent["id"]}">' in other.text
    new_id = re.search(r'name="id" value="([^"]+)"', other.text)
    assert new_id is not None
    assert (await browser.post("/calls/new", {**sent, "name": "another", "id": new_id[1]})).status_code == 303


async def test_no_page_shows_secrets(node: Node) -> None:
    browser = node.browser()
    secret = "s3cretvalue"
    spec = {"url": f"{URL}?token={secret}", "headers": {"Authorization": f"Bearer {secret}", "x-api-key": secret}}
    one = await submit(browser, spec=spec)
    for path in (f"/calls?tenant={MINE}", f"/calls/{MINE}/{one}", f"/calls/{MINE}/{one}/trace",
                 f"/calls/new?tenant={MINE}&like={one}"):  # fmt: skip
        page = await browser.get(path)
        assert page.status_code == 200
        assert secret not in page.text, path


async def test_read_key_sees_no_actions_and_is_refused(start: Start, tmp_path: Any) -> None:
    node = await keyed(start, tmp_path)
    writer, reader = await signed_in(node, "tk_write"), await signed_in(node, "tk_read")
    path = await new_call(writer, MINE, name="kept")
    assert "/calls/new" in (await writer.get(f"/calls?tenant={MINE}")).text
    for page in (f"/calls?tenant={MINE}", path, "/calls/tenants", f"{path}/trace"):
        shown = await reader.get(page)
        assert shown.status_code == 200, page
        assert re.findall(r'<form method="post" action="([^"]+)"', shown.text) == ["/logout"], page
        assert "/calls/new" not in shown.text, page
    name = {"csrf": await token_of(reader, f"/calls?tenant={MINE}"), "tenant": MINE, "id": path.rsplit("/", 1)[1]}
    key = f"{MINE}/{name['id']}"
    name |= {"star": key, "label": "Shop", "tag": "x", "url": URL}
    for action in ("/calls/star", "/calls/tag", "/calls/untag", "/calls/delete", "/calls/new", "/calls/tenants",
                   "/calls/retry", "/calls/tenants/label", "/calls/delete-many", "/calls/retry-many",
                   f"/calls/delete/matching?tenant={MINE}&view=scheduled",
                   "/calls/delete/matching?view=scheduled"):  # fmt: skip
        many = {"id": key} if action.endswith("-many") else {}
        assert (await reader.post(action, {**name, **many})).status_code == 403, action
    assert (await reader.get(f"/calls/new?tenant={MINE}")).status_code == 403
    assert "scheduled" in (await reader.get(path)).text


async def test_key_of_one_tenant_sees_only_that_tenant(start: Start, tmp_path: Any) -> None:
    node = await keyed(start, tmp_path)
    writer, owner = await signed_in(node, "tk_write"), await signed_in(node, "tk_mine")
    mine, others = await new_call(writer, MINE), await new_call(writer, OTHERS, name="none of your business")
    assert (await owner.get("/")).headers["location"] == "/calls"
    every = (await owner.get("/calls")).text
    assert f'data-key="{MINE}/' in every
    assert "none of your business" not in every
    shown = await owner.get(f"/calls?tenant={MINE}")
    assert shown.status_code == 200
    links = [link for link in re.findall(r'<a href="(/[a-z]*)"', shown.text) if link != "/docs"]
    assert links == ["/calls", "/failures", "/jobs"]
    assert [(await owner.get(link)).status_code for link in links] == [200, 200, 200]
    assert (await owner.get(mine)).status_code == 200
    assert (await owner.post("/calls/delete", {"csrf": await token_of(owner), "tenant": MINE,
                                               "id": mine.rsplit("/", 1)[1]})).status_code == 303  # fmt: skip
    name = {"tenant": OTHERS, "id": others.rsplit("/", 1)[1], "tag": "x", "on": "yes", "url": URL, "rows": "[]"}
    for path in (f"/calls?tenant={OTHERS}", others, f"{others}/trace", f"/calls/new?tenant={OTHERS}",
                 f"/ui/live/calls?tenant={OTHERS}", "/timers", "/nodes", f"/failures?tenant={OTHERS}",
                 f"/failures/calls/group?tenant={OTHERS}", f"/failures/calls/export.csv?tenant={OTHERS}"):  # fmt: skip
        answer = await owner.get(path)
        assert answer.status_code == 403, path
        assert "none of your business" not in answer.text
    name |= {"star": f"{OTHERS}/{name['id']}", "label": "Mine"}
    for path in ("/calls/star", "/calls/tag", "/calls/untag", "/calls/delete", "/calls/new", "/ui/calls/rows",
                 "/ui/calls/equivalent", "/calls/tenants", "/calls/retry", "/calls/tenants/label",
                 "/calls/delete-many", "/calls/retry-many",
                 f"/calls/delete/matching?tenant={OTHERS}&view=scheduled", "/calls/delete/matching?view=scheduled",
                 f"/calls/retry/matching?tenant={OTHERS}", "/calls/retry/matching?view=failed",
                 "/failures/calls/replay", "/failures/calls/dismiss"):  # fmt: skip
        many = {"id": name["star"]} if path.endswith("-many") else {}
        assert (await owner.post(path, {"csrf": await token_of(owner), **name, **many})).status_code == 403, path
    # Under the key's own tenant, the id of another tenant's call does not exist.
    assert (await owner.get(f"/calls/{MINE}/{name['id']}")).status_code == 404
    for scope in (MINE, "*"):
        wanted = f'[["{MINE}/{name["id"]}", ""], ["{OTHERS}/{name["id"]}", ""]]'
        rows = await owner.post("/ui/calls/rows", {"csrf": await token_of(owner), "tenant": scope, "rows": wanted})
        assert rows.text.count("<td") == 0 and rows.text.count("data-left></tbody>") == 2
    reader, outsider = await signed_in(node, "tk_peek"), await signed_in(node, "tk_ns")
    assert "/calls/new" not in (await reader.get(f"/calls?tenant={MINE}")).text
    for path in ("/calls", "/failures", "/failures/calls/group", "/failures/calls/export.csv"):
        assert (await outsider.get(f"{path}?tenant={MINE}")).status_code == 403, path
    assert 'href="/calls"' not in (await outsider.get("/timers")).text


async def test_only_admins_change_calls_of_all_tenants_together(start: Start, tmp_path: Any) -> None:
    node = await keyed(start, tmp_path)
    for secret, is_disabled in (("tk_admin", False), ("tk_write", True), ("tk_mine", True)):
        browser = await signed_in(node, secret)
        await new_call(browser, MINE)
        every, one = [(await browser.get(f"/calls?view=scheduled{scope}")).text for scope in ("", f"&tenant={MINE}")]
        assert ('disabled title="Choose a tenant' in every) == is_disabled
        assert 'disabled title="Choose a tenant' not in one
        counted = await browser.post("/calls/delete/matching?view=scheduled", {"csrf": await token_of(browser)})
        assert counted.status_code == (403 if is_disabled else 303), secret


async def test_recent_tenants_are_remembered_in_a_cookie(start: Start) -> None:
    node = await start(ui_origins=["https://tocsin.example"], insecure=True)
    browser = node.browser()
    cookie = (await browser.get(f"/calls?tenant={MINE}")).headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=strict", f"={MINE};"):
        assert part in cookie
    await browser.get(f"/calls?tenant={OTHERS.upper()}")
    for path in ("/calls", f"/calls?tenant={OTHERS}"):
        page = (await browser.get(path)).text
        assert page.index(f'<option value="{OTHERS}"') < page.index(f'<option value="{MINE}"')
    made = await browser.post("/calls/tenants", {})
    assert f'value="{made.headers["location"].rpartition("=")[2]}"' in (await browser.get("/calls")).text
    secure = await browser.get(f"/calls?tenant={MINE}", headers={"host": "tocsin.example"})
    assert "__Host-tocsin-tenants=" in secure.headers["set-cookie"]
    browser.client.cookies.clear()
    assert (await browser.get("/calls", headers={"cookie": f"tocsin-tenants-1=x.{HOSTILE}"})).status_code == 200


async def test_label_of_a_tenant_is_shown_checked_and_audited(start: Start, tmp_path: Any) -> None:
    node = await keyed(start, tmp_path)
    writer = await signed_in(node, "tk_write")
    path = await new_call(writer, MINE, name="labelled")

    async def label(text: str, tenant: str = MINE) -> Any:
        return await writer.post(
            "/calls/tenants/label", {"csrf": await token_of(writer), "tenant": tenant, "label": text}
        )

    assert (await label(HOSTILE)).status_code == 303
    for page in ("/calls", f"/calls?tenant={MINE}", path, "/calls/tenants"):
        shown = (await writer.get(page)).text
        assert "&lt;script&gt;alert" in shown, page
        assert "<script>alert" not in shown, page
    assert (await label("Shop")).status_code == 303
    assert ">Shop</a>" in (await writer.get("/calls")).text
    for text, tenant, reason in (
        ("x" * 61, MINE, "The label"),
        ("a\u202eb", MINE, "invisible"),
        ("Shop", "shop", "UUID of version 7"),
    ):
        refused = await label(text, tenant)
        assert refused.status_code == 400
        assert reason in refused.text
    assert ">Shop</a>" in (await writer.get("/calls")).text
    assert (await label("")).status_code == 303
    assert "Shop" not in (await writer.get("/calls")).text
    trail = await writer.client.post(
        "/api/v1/audit/list", json={"action": "tenant_labeled"}, headers={"authorization": "Bearer tk_admin"}
    )
    assert [(entry["subject"], entry["details"]) for entry in trail.json()["entries"]] == [
        (MINE, {"label": ""}),
        (MINE, {"label": "Shop"}),
        (MINE, {"label": HOSTILE}),
    ]


async def test_pages_explain_a_disabled_agent(start: Start) -> None:
    node = await start(agent_enabled=False)
    browser = node.browser()
    for path in ("/calls", "/calls/new", f"/calls/{MINE}/{OTHERS}", f"/ui/live/calls?tenant={MINE}"):
        answer = await browser.get(path)
        assert answer.status_code == 404
        assert "Service calls are disabled" in answer.text
    # Now has no numbers of calls then.
    assert "Service calls, last" not in (await browser.get("/")).text


async def test_pages_explain_an_unreachable_agent(start: Start, tmp_path: Path, postgresql_url: str) -> None:
    chosen = {"store": postgresql_url, "agent_enabled": False, "cluster_agent_wait": "100ms"}
    alone = await start(node_name="alone", data_dir=tmp_path / "alone", **chosen)
    answer = await alone.browser().get("/calls")
    assert answer.status_code == 404
    assert "Service calls are disabled" in answer.text
    expecting = await start(node_name="expecting", data_dir=tmp_path / "expecting", **{**chosen, "agent_enabled": True})
    server = expecting.server
    assert server.agent is not None
    # As if the agent had lost its database.
    await server.agent.stop()
    answer = await expecting.browser().get("/calls")
    assert answer.status_code == 503
    assert "Service calls are unavailable" in answer.text
    assert "no node runs the service agent now" in answer.text.lower()
