"""The pages of credentials."""

from __future__ import annotations

from tests.integration.pages.conftest import Node

FIELDS = {
    "namespace": "default",
    "name": "api",
    "type": "bearer",
    "token": "a-secret-token",
    "hosts": "api.example.com",
}
PAGE = "/credentials?namespace=default"


async def test_a_form_creates_a_credential_changes_tests_and_deletes_it(node: Node) -> None:
    browser = node.browser()
    assert "No credentials" in (await browser.get(PAGE)).text
    assert PAGE in (await browser.get("/namespaces/default")).text
    # An address without a namespace shows one.
    assert "No credentials" in (await browser.get("/credentials")).text
    assert (await browser.get("/credentials/new")).status_code == 200
    for kind, field in (("oauth2ClientCredentials", "clientSecret"), ("mtls", "privateKey"), ("jwt", "lifetime")):
        form = (await browser.get(f"/credentials/new?namespace=default&type={kind}")).text
        assert f'name="{field}"' in form and 'name="token"' not in form
    bad = await browser.post("/credentials/new", FIELDS | {"token": "Bearer x", "hosts": "a/b"})
    assert bad.status_code == 400 and "without Bearer" in bad.text and "is no host" in bad.text
    assert "Bearer x" not in bad.text
    answer = await browser.post("/credentials/new", FIELDS)
    assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
    shown = (await browser.get(PAGE)).text
    assert "api.example.com" in shown and "a-secret-token" not in shown
    again = await browser.post("/credentials/new", FIELDS)
    assert (again.status_code, "edit that one" in again.text) == (409, True)
    page = "/credentials/edit?namespace=default&name=api"
    edited, version = (await browser.get(page)).text, await browser.version(page)
    assert "api.example.com" in edited and "a-secret-token" not in edited
    kept = FIELDS | version | {"token": "", "hosts": "", "description": "An API"}
    elsewhere = await browser.post("/credentials/edit", kept)
    assert (elsewhere.status_code, "send it again" in elsewhere.text) == (400, True)
    saved = await browser.post("/credentials/edit", FIELDS | version | {"hosts": "", "description": "An API"})
    assert saved.status_code == 303
    name = {"namespace": "default", "name": "api"}
    tested = await browser.post("/credentials/test", name)
    assert (tested.status_code, "api works" in tested.text) == (200, True)
    assert (await browser.post("/credentials/delete", name)).status_code == 303
    assert "No credentials" in (await browser.get(PAGE)).text


async def test_form_of_a_timer_keeps_its_credential(node: Node) -> None:
    browser = node.browser()
    await browser.post("/credentials/new", FIELDS | {"hosts": ""})
    timer = {
        "namespace": "default",
        "id": "t",
        "callbackUrl": "http://127.0.0.1:1/",
        "delay": "1h",
        "credential": "api",
    }
    assert (await browser.client.post("/api/v1/timers/create", json=timer)).status_code == 200
    page = (await browser.get("/timers/edit?namespace=default&id=t")).text
    assert 'name="credential"' in page and 'value="api"' in page
