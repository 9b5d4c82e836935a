"""People sign in by a real OpenID Connect provider, and programs bring its access tokens."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import pytest_asyncio

from tests.support.cluster import until
from tests.support.identity_provider import CLIENT_SECRET, PROGRAM_SECRET, identity_provider, sign_in
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.support.server import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")

AUDIENCE = "https://tocsin.test/api"


class Place(NamedTuple):
    """The server and the provider."""

    url: str
    issuer: str
    export: Path

    @property
    def callback(self) -> str:
        return f"{self.url}/login/oidc/callback"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    port, folder = free_port(), tmp_path_factory.mktemp("single-sign-on")
    url = f"http://127.0.0.1:{port}"
    async with identity_provider(f"{url}/login/oidc/callback", AUDIENCE) as issuer:
        config, secret = folder / "tocsin.toml", folder / "secret"
        secret.write_text(CLIENT_SECRET + "\n")
        secret.chmod(0o600)
        config.write_text(
            f'[oidc]\nissuer = "{issuer}"\nclient_id = "tocsin"\nclient_secret_file = "{secret}"\naudience = "{AUDIENCE}"\n'
            'grants = ["ops=admin", "sales=read:orders,bills"]\n'
        )
        export = folder / "audit.jsonl"
        env = {"TOCSIN_AUDIT_EXPORT_FILE": str(export)}
        server = ServerProcess(folder / "data", "--no-agent", "--port", str(port), "--config", str(config), env=env)
        await server.start()
        yield Place(url, issuer, export)
        assert await server.stop() == 0


def browser() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=PATIENCE_S)


async def signed_in(someone: httpx.AsyncClient, place: Place, name: str, to: str = "/") -> httpx.Response:
    """The answer to somebody's return from the provider."""
    begun = f"{place.url}/login/oidc?to={to}"
    return await someone.get(await sign_in(someone, begun, name, place.callback))


def own_cookies(someone: httpx.AsyncClient) -> dict[str, str]:
    """The server's cookies, without those of the provider."""
    return {each.name: each.value or "" for each in someone.cookies.jar if each.name.startswith("tocsin")}


def next_page(answer: httpx.Response) -> str:
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]*)"', answer.text)
    assert found is not None, answer.text
    return found[1]


async def test_somebody_signs_in_sees_what_their_group_may_and_signs_out(place: Place) -> None:
    async with browser() as someone:
        shown = await someone.get(f"{place.url}/keys")
        assert (shown.status_code, "/login" in shown.headers["location"]) == (303, True)
        assert "Sign in with 127.0.0.1" in (await someone.get(f"{place.url}/login")).text
        answer = await signed_in(someone, place, "anna+ops+cooks", "/keys")
        assert (answer.status_code, next_page(answer)) == (200, "/keys"), answer.text
        keys = await someone.get(f"{place.url}/keys")
        assert keys.status_code == 200
        audit = (await someone.get(f"{place.url}/audit")).text
        assert "anna@example.com" in audit
        assert "cooks" not in audit
        csrf = re.search(r'name="csrf" value="(\w+)"', keys.text)
        assert csrf is not None
        kept = own_cookies(someone)
        out = await someone.post(f"{place.url}/logout", data={"csrf": csrf[1]})
        # Also from the provider, which asks.
        assert next_page(out).startswith(f"{place.issuer}/session/end?client_id=tocsin"), out.text
        assert (await someone.get(f"{place.url}/keys")).status_code == 303
    async with browser() as copy:
        copy.cookies.update(kept)
        assert (await copy.get(f"{place.url}/keys")).status_code == 303

    def exported() -> list[dict[str, Any]]:
        lines = map(json.loads, place.export.read_text().splitlines() if place.export.exists() else ())
        return [line for line in lines if line["name"] == "anna@example.com"]

    async def both() -> bool:
        return len(exported()) == 2

    await until(both)
    assert [each["action"] for each in exported()] == ["sign_in", "sign_out"]
    assert all(each["keyId"].startswith("oidc-") for each in exported())


async def test_a_group_limits_to_its_namespaces(place: Place) -> None:
    async with browser() as someone:
        await signed_in(someone, place, "bert+sales")
        for path, status in (("/keys", 403), ("/schedules", 200)):
            assert (await someone.get(place.url + path)).status_code == status, path
        shown = (await someone.get(f"{place.url}/namespaces")).text
        assert "default" not in re.findall(r'href="/namespaces/([\w-]+)"', shown)


async def test_nobody_without_a_group_comes_in(place: Place) -> None:
    async with browser() as someone:
        answer = await signed_in(someone, place, "carl+cooks")
        assert answer.status_code == 403
        assert "in no group that may use Tocsin" in answer.text
        assert (await someone.get(f"{place.url}/keys")).status_code == 303


async def test_an_answer_counts_once_and_for_its_browser_only(place: Place) -> None:
    async with browser() as someone, browser() as another:
        url = await sign_in(someone, f"{place.url}/login/oidc", "dora+ops", place.callback)
        flow = own_cookies(someone)
        stolen = await another.get(url)
        assert (stolen.status_code, "no sign-in of this browser" in stolen.text) == (403, True)
        await another.get(f"{place.url}/login/oidc")
        mixed = await another.get(url)
        assert (mixed.status_code, "belongs to another sign-in" in mixed.text) == (403, True)
        foreign = re.sub(r"iss=[^&]*", "iss=http%3A%2F%2Fother.example", url)
        assert foreign != url
        mixed_up = await someone.get(foreign)
        assert (mixed_up.status_code, "comes from another provider" in mixed_up.text) == (403, True)
        someone.cookies.update(flow)
        assert (await someone.get(url)).status_code == 200
        someone.cookies.update(flow)
        replayed = await someone.get(url)
        assert (replayed.status_code, "invalid_grant" in replayed.text) == (403, True), replayed.text


@pytest.mark.parametrize("to", ["//other.example", "https://other.example/", "/\\other.example", "javascript:alert(1)"])
async def test_a_sign_in_ends_on_this_server(place: Place, to: str) -> None:
    async with browser() as someone:
        assert next_page(await signed_in(someone, place, "emma+ops", to)) == "/"


async def test_what_somebody_refuses_is_shown(place: Place) -> None:
    async with browser() as someone:
        begun = await someone.get(f"{place.url}/login/oidc")
        state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
        answer = await someone.get(
            place.callback,
            params={"state": state, "error": "access_denied", "iss": place.issuer, "error_description": "<b>"},
        )
        assert (answer.status_code, "did not sign you in: &lt;b&gt;." in answer.text) == (403, True), answer.text


async def test_a_program_brings_an_access_token(place: Place) -> None:
    async with browser() as program:
        form = {"grant_type": "client_credentials", "resource": AUDIENCE}
        answer = await program.post(
            f"{place.issuer}/token", data=form, auth=("ops", PROGRAM_SECRET.replace(" ", "%20"))
        )
        token = answer.json()["access_token"]
        for sent, status in ((token, 200), (token[:-6] + "AAAAAA", 401), ("a.b.c", 401)):
            headers = {"authorization": f"Bearer {sent}"}
            listed = await program.post(f"{place.url}/api/v1/keys/list", json={}, headers=headers)
            assert listed.status_code == status, listed.text
        headers = {"authorization": f"Bearer {token}"}
        created = await program.post(
            f"{place.url}/api/v1/namespaces/create", json={"name": "of-a-program"}, headers=headers
        )
        assert created.status_code == 200, created.text

    async def exported() -> bool:
        lines = map(json.loads, place.export.read_text().splitlines())
        return any(
            line.get("subject") == "of-a-program" and line["keyId"].startswith("oidc-") and line["name"] == "ops"
            for line in lines
        )

    await until(exported)
