"""Keys, the audit trail, the settings and the API reference: who may see them, and what they show and change."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.pages.conftest import Browser, Node, Start
from tocsin.model.access import Role

TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"
ADMIN_PAGES = ("/keys", "/keys/new", "/keys/revoke?key=admin", "/audit", "/settings")


async def guarded(start: Start, **more: Any) -> Node:
    keys = {f"tk_{role.value}": (role, ()) for role in Role} | {"tk_limited": (Role.ADMIN, ("default",))}
    return await start(keys, host="0.0.0.0", store=None, **more)


async def signed_in(node: Node, secret: str) -> Browser:
    browser = node.browser()
    assert (await browser.sign_in(secret)).status_code == 303
    return browser


async def posted(browser: Browser, path: str, **fields: Any) -> Any:
    token = re.search(r'name="csrf" content="(\w+)', (await browser.get("/namespaces")).text)
    assert token is not None
    return await browser.post(path, {"csrf": token[1], **fields})


async def test_system_pages_are_for_unlimited_admins_and_only_in_their_rail(start: Start) -> None:
    node = await guarded(start)
    for secret, status in (("tk_admin", 200), ("tk_write", 403), ("tk_limited", 403)):
        browser = await signed_in(node, secret)
        rail = (await browser.get("/namespaces")).text
        for path in ADMIN_PAGES:
            answer = await browser.get(path)
            assert answer.status_code == status, (secret, path)
            assert status == 200 or "requires an API key of role admin" in answer.text
            assert "?" in path or path == "/keys/new" or (f'<a href="{path}"' in rail) is (status == 200), (
                secret,
                path,
            )
        if status == 403:
            for path in ("/keys/new", "/keys/revoke"):
                assert (await posted(browser, path, role="read", key="read")).status_code == 403, (secret, path)


async def test_key_is_created_shown_once_and_revoked(start: Start) -> None:
    node = await guarded(start)
    admin = await signed_in(node, "tk_admin")
    refused = await posted(admin, "/keys/new", role="write", name="x", namespaces="no spaces", expires="")
    assert refused.status_code == 400 and 'id="wrong-namespaces">Is not a valid' in refused.text
    refused = await posted(admin, "/keys/new", role="write", name="x", namespaces="", expires="soon")
    assert refused.status_code == 400 and 'id="wrong-expiresAt">Is not a duration' in refused.text
    created = await posted(
        admin,
        "/keys/new",
        role="write",
        name="billing <service>",
        namespaces="billing, default",
        tenants=TENANT,
        expires="90d",
    )
    secret = re.search(r"tk_(\w{12})_[\w-]+", created.text)
    assert secret is not None and created.headers["cache-control"] == "no-store"
    listed = (await admin.get("/keys?q=BILLING")).text
    assert secret[0] not in listed and "billing &lt;service&gt;" in listed and "billing, default" in listed
    user = await signed_in(node, secret[0])
    assert (await user.get("/timers")).status_code == 200
    asked = (await admin.get(f"/keys/revoke?key={secret[1]}")).text
    assert "This can’t be undone" in asked and "yours included" not in asked
    assert (await posted(admin, "/keys/revoke", key=secret[1])).headers["location"] == "/keys?notice=revoked"
    assert (await user.get("/timers")).status_code == 303
    assert (await posted(admin, "/keys/revoke", key=secret[1])).status_code == 404
    trail = (await admin.get("/audit")).text.split("<tbody>")[1]
    assert trail.index("Revoked key") < trail.index("Created key")


async def test_a_server_without_keys_explains_how_the_first_one_is_created(node: Node) -> None:
    browser = node.browser()
    shown = (await browser.get("/keys")).text
    assert "tocsin keys create --role admin" in shown and "/keys/new" not in shown
    assert (await browser.get("/keys/new")).status_code == 403
    assert (await browser.post("/keys/new", {"role": "admin", "name": "x"})).status_code == 403


async def test_audit_is_filtered_leads_to_its_objects_and_has_pages(start: Start) -> None:
    node = await guarded(start)
    admin = await signed_in(node, "tk_admin")
    bearer = {"authorization": "Bearer tk_admin"}
    for number in range(52):
        sent = {"name": f"n{number}", "retention": f"{number + 1}d"}
        answer = await admin.client.post("/api/v1/namespaces/create", json=sent, headers=bearer)
        assert answer.status_code == 200
    page = (await admin.get("/audit")).text
    subjects = re.findall(r'Created namespace <a class="mono break" href="/namespaces/(\w+)">', page)
    assert subjects == [f"n{number}" for number in range(51, 1, -1)]
    following = re.search(r'rel="next" href="([^"]+)"', page)
    assert following is not None
    older = (await admin.get(following[1].replace("&amp;", "&"))).text
    assert re.findall(r"Created namespace <a[^>]*>(\w+)<", older) == ["n1", "n0"] and "Signed in" in older
    found = (await admin.get("/audit?subject=n7")).text
    assert re.findall(r'<th scope="row">([\w ]+) <a', found) == ["Created namespace"]
    assert "<dt>retention</dt><dd>8d</dd>" in found
    assert "Created namespace" not in (await admin.get("/audit?action=sign_in")).text.split("<tbody>")[1]
    assert "Nothing matches" in (await admin.get("/audit?keyId=nobody")).text
    for query in ("action=nothing", "cursor=nonsense"):
        assert (await admin.get(f"/audit?{query}")).status_code == 400, query


async def test_settings_are_shown_with_their_sources_and_without_secrets(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tocsin.toml"
    file.write_text(
        'broker = "nats://user:s3cret-1@127.0.0.1:4222"\n[cluster]\nsecret = "s3cret-2-s3cret-2-s3cret-2-s3cret-2"\n'
    )
    monkeypatch.setenv("TOCSIN_KEYS_EXPIRY_NOTICE", "3d")
    node = await start(config=file, agent_enabled=False)
    browser = node.browser()
    page = (await browser.get("/settings")).text
    rows = re.findall(
        r'title="TOCSIN_(\w+)">.*?<td[^>]*>([^<]*)</td>\s*<td[^>]*>(?:<span[^>]*>)?([^<]*)<', page, re.DOTALL
    )
    shown = {name: (value, source) for name, value, source in rows}
    assert "s3cret" not in page
    assert shown["KEYS_EXPIRY_NOTICE"] == ("3d", "TOCSIN_KEYS_EXPIRY_NOTICE")
    assert shown["CLUSTER_SECRET"] == ("…", f"{file}, line 3")
    assert shown["BROKER"] == ("nats://user:…@127.0.0.1:4222", f"{file}, line 1")
    assert shown["SHARDS"] == ("4", "--shards") and shown["HOST"] == ("127.0.0.1", "default")
    changed = (await browser.get("/settings?view=changed&q=notice")).text
    assert re.findall(r'title="TOCSIN_(\w+)"', changed) == ["KEYS_EXPIRY_NOTICE"]
    assert "No setting matches" in (await browser.get("/settings?q=nosuchthing")).text


async def test_api_reference_needs_no_sign_in_and_shows_no_other_page(start: Start) -> None:
    node = await guarded(start)
    anyone = node.browser()
    page = await anyone.get("/docs")
    assert page.status_code == 200
    rail = page.text.split("</aside>")[0]
    assert re.findall(r'<a href="(/[^"]*)"', rail) == ["/docs"] and 'href="/login?to=/docs"' in rail
    document = await anyone.client.get("/openapi.json")
    assert (document.headers["content-encoding"], document.headers["cache-control"]) == ("gzip", "no-cache")
    again = await anyone.client.get("/openapi.json", headers={"if-none-match": document.headers["etag"]})
    assert again.status_code == 304
    reader = await signed_in(node, "tk_read")
    assert '<a href="/timers"' in (await reader.get("/docs")).text
