"""Security of the pages: permissions, sign-in, host names, escaping of foreign text, and CSRF protection."""

from __future__ import annotations

import asyncio
import json
import re
import time
from html import escape
from pathlib import Path

import httpx
import pytest

from tests.integration.pages.conftest import Browser, Node, Start
from tests.support.patience import PATIENCE_S
from tocsin.administration import delete_api_key
from tocsin.model.access import Role
from tocsin.server.node import open_store
from tocsin.server.sign_ins import SignIns
from tocsin.settings import load_settings
from tocsin.statistics.outages import Outage
from tocsin.statistics.records import put_outage
from tocsin.web.pages.admin import sessions

TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


async def keyed(start: Start) -> Node:
    """A node that requires keys, with a key for each role and keys for one namespace."""
    keys: dict[str, tuple[Role, tuple[str, ...]]] = {f"tk_{role.value}": (role, ()) for role in Role}
    keys |= {"tk_own": (Role.WRITE, ("own",)), "tk_peek": (Role.READ, ("own",))}
    return await start(keys, host="0.0.0.0", store=None)


async def signed_in(node: Node, secret: str) -> Browser:
    browser = node.browser()
    answer = await browser.sign_in(secret)
    assert (answer.status_code, answer.headers["location"]) == (303, "/timers")
    return browser


async def test_every_page_has_a_content_security_policy(node: Node) -> None:
    browser = node.browser()
    for path in (
        *(
            "/",
            "/timers",
            "/timers/new",
            "/schedules",
            "/schedules/new",
            "/failures",
            "/failures/group?namespace=default",
            "/nodes",
            "/store",
            "/namespaces",
            "/namespaces/new",
            "/flows/new",
            "/monitors",
            "/monitors/new",
            "/namespaces/default",
            "/keys",
            "/audit",
            "/settings",
            "/docs",
            "/login",
            "/nowhere",
        ),
        *("/calls", f"/calls?tenant={TENANT}", "/calls/new", "/calls/tenants", "/calls?tenant=x"),
    ):
        answer = await browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy, path
        assert "unsafe" not in policy, path
        assert "frame-ancestors 'none'" in policy, path
        assert answer.headers["x-content-type-options"] == "nosniff", path
        assert answer.headers["referrer-policy"] == "same-origin", path
        assert answer.headers["cache-control"] == "no-store", path
        assert answer.headers["content-encoding"] == "gzip", path
        assert "accept-encoding" in answer.headers["vary"], path
        # Nothing inline: every script comes from a file, and no element has a style or a handler.
        assert re.findall(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", answer.text) == [], path


async def test_text_of_users_is_escaped(node: Node) -> None:
    browser = node.browser()
    await browser.create(
        HOSTILE,
        payload={"x": HOSTILE, HOSTILE: 1},
        tags=[HOSTILE],
        headers={"x-note": HOSTILE},
        callbackUrl="http://127.0.0.1:9/?q=%22%3E'<script>alert(3)</script>".replace("<", "%3C").replace(">", "%3E")
        + "'\"",
    )
    pages = [
        await browser.get("/timers"),
        await browser.get("/timers", params={"q": HOSTILE, "tag": HOSTILE, "from": HOSTILE, "namespace": "default"}),
        await browser.get("/timers", params={"namespace": HOSTILE}),
        await browser.client.get(
            f"/timers/default/{httpx.URL('/').copy_with(path='/' + HOSTILE).raw_path[1:].decode()}"
        ),
        await browser.get("/timers/edit", params={"namespace": "default", "id": HOSTILE}),
        await browser.get("/timers/new", params={"namespace": "default", "like": HOSTILE}),
        await browser.post("/timers/cancel-many", {"id": f"default/{HOSTILE}"}),
        await browser.get("/" + HOSTILE),
        await browser.get("/login", params={"to": "/" + HOSTILE}),
    ]
    for page in pages:
        assert "<script>alert" not in page.text, page.url
        assert "<img" not in page.text, page.url
        assert "'\"" not in page.text, page.url
    assert escape(HOSTILE, quote=False).replace('"', "&#34;") in pages[0].text


async def test_form_requires_the_csrf_token_of_its_session(node: Node) -> None:
    browser, other = node.browser(), node.browser()
    await browser.create("t")
    fields = {"namespace": "default", "id": "t"}
    foreign = await other.token()
    assert (await browser.post("/timers/cancel", {**fields, "csrf": "0" * 64})).status_code == 403
    assert (await browser.post("/timers/cancel", {**fields, "csrf": foreign})).status_code == 403
    assert (await browser.client.post("/timers/cancel", data=fields)).status_code == 403
    # An open page of an earlier sign-in states that.
    by_itself = {"hx-request": "true", "tocsin-background": "true"}
    answer = await browser.post("/ui/rows", {"namespace": "default", "rows": "[]", "csrf": foreign}, **by_itself)
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/json")
    assert answer.json()["message"].startswith("This page belongs to an earlier sign-in")
    for headers in (
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        assert (await browser.post("/timers/cancel", dict(fields), **headers)).status_code == 403, headers
    assert "pending" in (await browser.get("/timers/default/t")).text
    assert (await browser.post("/timers/cancel", dict(fields))).status_code == 303
    assert "canceled" in (await browser.get("/timers/default/t")).text


async def test_pages_refuse_unknown_host_names(start: Start) -> None:
    node = await start(ui_origins=["https://tocsin.example"], insecure=True)
    browser = node.browser()
    port = node.server.url.rsplit(":", 1)[1]
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "x@localhost",
    ):
        answer = await browser.get("/timers", headers={"host": host})
        assert answer.status_code == 421, host
        assert "Timers" not in answer.text
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "tocsin.example"):
        assert (await browser.get("/timers", headers={"host": host})).status_code == 200, host


async def test_without_keys_the_api_refuses_unknown_host_names(node: Node) -> None:
    client = node.browser().client
    port = node.server.url.rsplit(":", 1)[1]
    evil, own = {"host": f"evil.example:{port}"}, {"host": f"localhost:{port}"}
    timers = {"namespace": "default"}
    answer = await client.post("/api/v1/timers/list", json=timers, headers=evil)
    assert (answer.status_code, answer.json()["error"]) == (403, "FORBIDDEN")
    assert "ui.origins" in answer.json()["detail"]
    create = {"namespace": "default", "id": "x", "delay": "1h", "callbackUrl": "http://127.0.0.1:9/"}
    assert (await client.post("/api/v1/timers/create", json=create, headers=evil)).status_code == 403
    for path in ("/api/v1/cluster", "/metrics"):
        assert (await client.get(path, headers=evil)).status_code == 403
        assert (await client.get(path, headers=own)).status_code == 200
    # Health probes are accepted under any name; they reveal nothing.
    assert (await client.get("/healthz", headers=evil)).status_code == 200


async def test_without_keys_proxied_requests_are_refused(node: Node) -> None:
    client = node.browser().client
    for header in ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"):
        for path in ("/api/v1/cluster", "/metrics", "/timers"):
            answer = await client.get(path, headers={header: "192.0.2.7"})
            assert answer.status_code == 403, (header, path)
            assert "tocsin keys create" in answer.text
            assert header.lower() in answer.text
        assert (await client.get("/healthz", headers={header: "192.0.2.7"})).status_code == 200


async def test_proxied_requests_are_accepted_with_a_key_or_if_insecure(start: Start) -> None:
    proxied = {"x-forwarded-for": "192.0.2.7"}
    node = await keyed(start)
    bearer = {**proxied, "authorization": "Bearer tk_admin"}
    assert (await node.browser().client.get("/api/v1/cluster", headers=bearer)).status_code == 200
    node = await start(insecure=True)
    for path in ("/api/v1/cluster", "/timers"):
        assert (await node.browser().client.get(path, headers=proxied)).status_code == 200


async def test_cookie_is_secure_behind_https(start: Start) -> None:
    node = await start(ui_origins=["https://tocsin.example"], insecure=True)
    browser = node.browser()
    plain = (await browser.get("/timers")).headers["set-cookie"]
    secure = (await node.browser().get("/timers", headers={"host": "tocsin.example"})).headers["set-cookie"]
    assert "Secure" not in plain
    assert secure.startswith("__Host-tocsin=")
    for cookie in (plain, secure):
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
    assert "; Secure" in secure


async def test_cookie_is_secure_where_a_trusted_proxy_has_it_that_the_browser_uses_https(start: Start) -> None:
    """On a port that is not among the origins, too. The same cookie is read again."""
    keys = {"tk_admin": (Role.ADMIN, ())}
    chosen = {"host": "0.0.0.0", "store": None, "ui_origins": ["https://tocsin.example"]}
    sent = {"host": "tocsin.example:8443", "x-forwarded-for": "192.0.2.7", "x-forwarded-proto": "https"}
    node = await start(keys, **chosen, trusted_proxies=["127.0.0.1"])
    browser = node.browser()
    page = await browser.get("/login", headers=sent)
    anonymous = page.headers["set-cookie"]
    assert anonymous.startswith("__Host-tocsin-8443=")
    assert "; Secure" in anonymous
    token = re.search(r'name="csrf" (?:content|value)="(\w+)', page.text)
    assert token is not None
    signed = await browser.post(
        "/login",
        {"csrf": token[1], "key": "tk_admin", "to": "/"},
        **sent,
        cookie=anonymous.partition(";")[0],
        origin="https://tocsin.example:8443",
    )
    cookie = signed.headers["set-cookie"]
    assert (signed.status_code, "; Secure" in cookie) == (303, True)
    sent |= {"cookie": cookie.partition(";")[0]}
    assert (await browser.get("/timers", headers=sent)).status_code == 200
    assert (await browser.get("/timers", headers={**sent, "x-forwarded-proto": "http"})).status_code == 303
    assert "https://tocsin.example:8443/api/v1/" in (await browser.get("/timers/new", headers=sent)).text


async def test_without_trust_in_the_proxy_its_word_on_https_does_not_count(start: Start) -> None:
    node = await start(insecure=True)
    answer = await node.browser().get("/timers", headers={"x-forwarded-proto": "https"})
    assert "Secure" not in answer.headers["set-cookie"]


async def test_without_a_key_every_page_redirects_to_the_sign_in(start: Start) -> None:
    node = await keyed(start)
    browser = node.browser()
    for path in (
        "/",
        "/timers",
        "/timers/default/x",
        "/timers/export.csv",
        "/failures",
        "/failures/export.csv?namespace=default",
        "/nodes",
        "/store",
        "/namespaces",
        "/keys",
        "/audit",
        "/settings",
        "/calls",
        f"/calls?tenant={TENANT}",
        "/calls/new",
        f"/calls/{TENANT}/{TENANT}",
        "/calls/tenants",
    ):
        answer = await browser.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/login"), path
    stream = await browser.get("/ui/live?namespace=default", headers={"accept": "text/event-stream"})
    assert stream.status_code == 401
    refused = await browser.sign_in("tk_wrong")
    assert refused.status_code == 403
    assert "This API key is unknown" in refused.text


async def test_sign_in_replaces_the_cookie_and_does_not_store_the_key(start: Start) -> None:
    node = await keyed(start)
    browser = node.browser()
    await browser.token()
    before = set(browser.client.cookies.values())
    answer = await browser.sign_in("tk_admin")
    assert not before & set(browser.client.cookies.values())
    assert "tk_admin" not in answer.headers["set-cookie"]
    assert (await browser.get("/timers")).status_code == 200
    await browser.post(
        "/logout", {"csrf": re.search(r'name="csrf" content="(\w+)', (await browser.get("/timers")).text)[1]}
    )
    assert (await browser.get("/timers")).status_code == 303


async def test_open_pages_neither_use_the_sign_in_by_themselves_nor_leave_when_it_has_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await keyed(start)
    browser = await signed_in(node, "tk_admin")
    monkeypatch.setattr(sessions, "_TOUCHED_AFTER", 0.0)
    used: list[str] = []
    touch = SignIns.touch

    async def recorded(self: SignIns, token: str) -> None:
        used.append(token)
        await touch(self, token)

    monkeypatch.setattr(SignIns, "touch", recorded)
    page = (await browser.get("/timers")).text
    assert len(used) == 1
    badges = re.findall(r'<span class="badge" hx-get="([^"]+)"[^>]* hx-headers=\'([^\']+)\'', page)
    assert len(badges) == page.count('class="badge"') > 0
    headers = {"hx-request": "true", "tocsin-background": "true"}
    assert all(json.loads(sent).items() <= headers.items() for _, sent in badges)
    paths = (*(path for path, _ in badges), "/ui/tabs/timers", "/timers", "/monitors")
    for path in paths:
        assert (await browser.get(path, headers=headers)).status_code == 200, path
    stream = {"accept": "text/event-stream"}
    async with browser.client.stream("GET", "/ui/live?namespace=default", headers=stream) as live:
        assert live.status_code == 200
    assert len(used) == 1
    assert (await browser.get("/timers", headers={"hx-request": "true"})).status_code == 200
    assert len(used) == 2
    await browser.post("/logout", {})
    for path in paths:
        answer = await browser.get(path, headers=headers)
        assert (answer.status_code, answer.headers.get("hx-redirect")) == (401, None), path
    answer = await browser.get("/timers", headers={"hx-request": "true"})
    assert (answer.status_code, answer.headers.get("hx-redirect")) == (401, "/login")


async def test_sign_in_does_not_redirect_to_other_sites(start: Start) -> None:
    node = await keyed(start)
    for to in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", ""):
        answer = await node.browser().post("/login", {"key": "tk_read", "to": to})
        assert answer.headers["location"] == "/", to


@pytest.mark.parametrize("path", ["/timers/default/gr%C3%B6%C3%9Fe-17", "/timers/default/a%3Fb%25c?view=all&q=%C3%BC"])
async def test_sign_in_leads_to_any_address(start: Start, path: str) -> None:
    browser = (await keyed(start)).browser()
    led = httpx.URL((await browser.get(path)).headers["location"])
    assert led.path == "/login"
    answer = await browser.post("/login", {"key": "tk_read", "to": led.params["to"]})
    assert answer.headers["location"] == path


async def test_deleted_key_ends_its_session(start: Start) -> None:
    node = await keyed(start)
    browser = await signed_in(node, "tk_read")
    assert (await browser.get("/timers")).status_code == 200
    assert node.server.engine is not None
    await delete_api_key(node.server.engine.context.store, "read")
    async with asyncio.timeout(PATIENCE_S):
        while (await browser.get("/timers")).status_code != 303:  # noqa: ASYNC110 -- there is no signal for it
            await asyncio.sleep(0.02)


async def test_read_key_sees_no_actions_and_is_refused(start: Start) -> None:
    node = await keyed(start)
    admin, reader = await signed_in(node, "tk_admin"), await signed_in(node, "tk_read")
    assert "/timers/new" in (await admin.get("/timers")).text
    token = re.search(r'name="csrf" content="(\w+)', (await admin.get("/timers")).text)[1]
    created = await admin.post(
        "/timers/new",
        {
            "csrf": token,
            "namespace": "default",
            "id": "t",
            "url": "http://93.184.215.14/",
            "delay": "1h",
            "timeout": "10",
        },
    )
    assert created.status_code == 303
    for path in ("/timers", "/timers/default/t", "/namespaces"):
        shown = (await reader.get(path)).text
        assert re.findall(r'<form method="post" action="([^"]+)"', shown) == ["/logout"], path
        assert "Cancel" not in shown.replace("Canceled", "")
    token = re.search(r'name="csrf" content="(\w+)', (await reader.get("/timers")).text)[1]
    name = {"csrf": token, "namespace": "default", "id": "t"}
    for path, fields in {
        "/timers/cancel": {},
        "/timers/fire": {},
        "/timers/reschedule": {"when": "in", "delay": "1s"},
        "/timers/replay": {},
        "/timers/new": {"url": "http://127.0.0.1:9/", "delay": "1h"},
        "/timers/edit": {"url": "http://127.0.0.1:9/", "when": "keep"},
        "/timers/cancel-many": {"confirmed": "yes", "id": "default/t"},
        "/timers/replay-many": {"confirmed": "yes", "id": "default/t"},
        "/failures/dismiss": {"confirmed": "yes"},
        "/jobs/new": {"of": "timers", "action": "cancel", "all": "yes"},
        "/namespaces/new": {"name": "x"},
        "/flows/new": {"namespace": "default", "match": "x"},
        "/monitors/new": {"rule": "1h"},
        "/monitors/edit": {"rule": "1h", "version": "1"},
        "/monitors/pause": {},
        "/monitors/rotate": {},
        "/monitors/delete": {},
        "/namespaces/change": {"name": "default", "paused": "yes"},
        "/namespaces/rotate": {"name": "default"},
    }.items():
        assert (await reader.post(path, {**name, **fields})).status_code == 403, path
    for path in ("/timers/new", "/timers/edit?namespace=default&id=t", "/jobs/new", "/monitors/new"):
        assert (await reader.get(path)).status_code == 403, path
    assert "pending" in (await reader.get("/timers/default/t")).text


async def test_key_of_one_namespace_sees_only_that_namespace(start: Start) -> None:
    node = await keyed(start)
    assert node.server.service is not None
    await node.server.service.namespaces.create("own")
    owner = await signed_in(node, "tk_own")
    shown = await owner.get("/timers")
    assert shown.status_code == 200
    assert re.findall(r'<option value="(ns:[^"]*)"', shown.text) == ["ns:own"]
    assert re.findall(r'href="/timers\?namespace=([^"]*)"', (await owner.get("/ui/scopes")).text) == ["own"]
    assert "/nodes" not in shown.text
    for path in ("/timers?namespace=default", "/timers/default/x", "/timers/export.json?namespace=default", "/nodes",
                 "/failures?namespace=default", "/failures/group?namespace=default", "/ui/failures?namespace=default",
                 "/failures/export.csv?namespace=default", "/monitors?namespace=default", "/monitors/default/x",
                 "/ui/monitors?namespace=default", "/monitors/edit?namespace=default&id=x",
                 "/?namespace=default", "/ui/live?namespace=default", "/ui/live/overview?namespace=default"):  # fmt: skip
        assert (await owner.get(path)).status_code == 403, path
    now = await owner.get("/")
    assert now.status_code == 200
    assert "Quiet" in now.text
    names = (await owner.get("/namespaces")).text
    assert ">own</a>" in names
    assert ">default</a>" not in names


async def test_key_of_one_namespace_sees_no_numbers_of_the_whole_service(start: Start, tmp_path: Path) -> None:
    await (await keyed(start)).server.stop()
    store = open_store(load_settings({"data_dir": tmp_path}))
    await store.open(None)
    now_us = time.time_ns() // 1_000
    await put_outage(
        store, b"another", Outage("n2", "lease", now_us - 120_000_000, now_us - 60_000_000, "", 21_400_214, 50_000_000)
    )
    await store.close()
    node = await start(host="0.0.0.0", store=None)
    assert node.server.service is not None
    await node.server.service.namespaces.create("own")
    reader, owner = await signed_in(node, "tk_read"), await signed_in(node, "tk_own")
    for at in range(3):
        fields = {"namespace": "default", "id": f"t{at}", "delay": "5m", "callbackUrl": "https://example.com/x"}
        answer = await owner.client.post(
            "/api/v1/timers/create", json=fields, headers={"authorization": "Bearer tk_write"}
        )
        assert answer.status_code == 200, answer.text
    whole, own = (await reader.get("/")).text, (await owner.get("/")).text
    assert "did not answer, or too slowly" in whole
    assert "21,400,214" in whole
    assert "3 timers are due in the next 60 minutes" in whole
    assert "0 in flight" in whole
    assert "Service calls, last 60 minutes" in whole
    assert "did not answer, or too slowly" not in own
    assert "21,400,214" not in own
    assert "Apart from schedules, no timer is due in the next 60 minutes" in own
    # The lists of all that a key may read count its own changes in what they stream.
    for browser, created in ((reader, 3), (owner, 0)):
        async with browser.client.stream("GET", "/ui/live?namespace=*") as stream:
            assert f'"created":{created},' in await anext(
                each async for each in stream.aiter_lines() if "created" in each
            )
    assert "in flight" not in own
    assert "Service calls, last" not in own


async def test_unknown_paths_get_the_apis_errors(node: Node) -> None:
    browser = node.browser()
    for path in ("/api/v1/nothing", "/api/nothing"):
        answer = await browser.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "ROUTE_NOT_FOUND")
    assert (await browser.client.get("/nothing")).json()["error"] == "ROUTE_NOT_FOUND"
    assert (await browser.client.put("/timers")).status_code in (403, 405)


async def test_selected_timers_are_asked_about_and_changed_without_scripts(start: Start) -> None:
    node = await start(ui_selected_max=3)
    browser = node.browser()
    for number in range(4):
        await browser.create(f"t{number}")
    path, ids = "/timers/cancel-many", [f"default/t{number}" for number in range(4)]
    for wrong, words in (({"id": ids}, "4 timers are too many"), ({}, "no timer is selected")):
        answer = await browser.post(path, {"confirmed": "yes", **wrong})
        assert (answer.status_code, words in answer.text.lower()) == (400, True)
    assert (await browser.client.post(path, data={"confirmed": "yes", "id": ids[0]})).status_code == 403
    some = {"id": ["default/t1", "default/t1", "default/nobody", "default/t0"], "back": "/timers?q=t"}
    asked = (await browser.post(path, some)).text
    left = "1 of the selected timers was not pending when listed, or is no longer"
    for words in ("Cancel 2 timers?", left, 'href="/timers?q=t"'):
        assert words in asked
    assert re.findall(r'name="id" value="([^"]+)"', asked) == ["default/t1", "default/t0"]
    assert "2 of 3 canceled" in (await browser.post(path, {**some, "confirmed": "yes"})).text
    assert "None of the selected timers was pending when listed and still is" in (await browser.post(path, some)).text
    canceled = re.findall(r'name="id" value="([^"]+)"', (await browser.get("/timers?view=canceled")).text)
    again = {"id": [*canceled, "default/nobody"], "confirmed": "yes"}
    assert "2 of 3 replayed" in (await browser.post("/timers/replay-many", again)).text
    assert "4 timers" in (await browser.get("/timers")).text


async def test_the_form_of_a_job_escapes_its_filters(node: Node) -> None:
    browser = node.browser()
    sent = {"namespace": "default", "q": HOSTILE, "tag": HOSTILE, "from": HOSTILE}
    assert HOSTILE not in (await browser.get("/jobs/new", params=sent)).text


async def test_edit_keeps_redacted_secrets(node: Node) -> None:
    browser, service = node.browser(), node.server.service
    assert service is not None
    url, shown = "http://127.0.0.1:9/?token=s3cret-1", "http://127.0.0.1:9/?token=[redacted]"
    await browser.create("paid", callbackUrl=url, headers={"authorization": "Bearer s3cret-2", "x-plain": "a"})
    form = (await browser.get("/timers/edit?namespace=default&id=paid")).text
    assert "s3cret" not in form
    fields = {
        "namespace": "default", "id": "paid", "when": "keep", "url": shown, "method": "POST", "timeout": "10",
        "header_name": ["authorization", "x-plain"], "header_value": ["[redacted]", "b"],
        **await browser.version("/timers/edit?namespace=default&id=paid"),
    }  # fmt: skip
    assert (await browser.post("/timers/edit", fields)).status_code == 303
    timer = (await service.get("default", "paid")).timer
    assert (timer.url, timer.headers) == (url, {"authorization": "Bearer s3cret-2", "x-plain": "b"})


async def test_audit_trail_has_sign_ins_failed_sign_ins_and_sign_outs(start: Start) -> None:
    node = await start({"tk_admin": (Role.ADMIN, ())}, host="0.0.0.0", store=None)
    browser = node.browser()
    for _ in range(25):
        refused = await browser.sign_in("tk_wrong")
    assert (refused.status_code, int(refused.headers["retry-after"]) >= 1) == (429, True)
    # A valid key is accepted despite the limit.
    assert (await browser.sign_in("tk_admin")).status_code == 303
    fields = {"name": "orders", "numShards": "", "history": "all", "retention": "3d", "secret": ""}
    assert (await browser.post("/namespaces/new", fields)).status_code == 303
    assert (await browser.post("/logout", {})).status_code == 303
    answer = await browser.client.post("/api/v1/audit/list", json={}, headers={"authorization": "Bearer tk_admin"})
    entries = [
        (entry["action"], entry["keyId"], entry["source"], entry["address"]) for entry in answer.json()["entries"]
    ]
    assert entries[:3] == [
        ("sign_out", "admin", "pages", "127.0.0.1"),
        ("namespace_created", "admin", "pages", "127.0.0.1"),
        ("sign_in", "admin", "pages", "127.0.0.1"),
    ]
    assert 1 <= len(entries[3:]) <= 10
    assert set(entries[3:]) == {("sign_in_failed", None, "pages", "127.0.0.1")}
    assert "tk_wrong" not in answer.text
