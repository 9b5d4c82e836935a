"""Tokens and certificates of credentials on a real server: with a real provider of tokens, and receivers that ask for
certificates."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import trustme
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.integration.server.conftest import serving
from tests.integration.server.test_agent_flow import finished, new_id, submit
from tests.integration.server.test_credentials import ended, waits_for
from tests.support.calls import Api, Inbox
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.identity_provider import PROGRAM_SECRET, identity_provider
from tests.support.patience import PATIENCE_S

NAMED = {"namespace": "default", "name": "partner"}


class TokenEndpoint(Receiver):
    """Issues `token` while it is set, and is out of order otherwise. `asked` has the forms that it got."""

    _path = "/token"

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.token, self.lifetime_s = "", 3_600
        self.asked: list[tuple[str, dict[str, list[str]]]] = []

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        self.asked.append((headers.get("authorization", ""), parse_qs(raw.decode())))
        if not self.token:
            return 503, json.dumps({"error": "temporarily_unavailable", "error_description": raw.decode()}).encode()
        found = {"access_token": self.token, "token_type": "bearer", "expires_in": self.lifetime_s}
        return 200, json.dumps(found).encode()


def oauth2(endpoint: str, **more: Any) -> dict[str, Any]:
    fields = {
        "type": "oauth2ClientCredentials",
        "tokenUrl": endpoint,
        "clientId": "ops",
        "clientSecret": PROGRAM_SECRET,
    }
    return {**NAMED, **fields, **more}


async def read(url: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(url)


async def try_out(api: Api, **more: Any) -> tuple[bool, list[tuple[str, bool, str]]]:
    _, found = await api("credentials/test", **NAMED, **more)
    return found["ok"], [(step["what"], step["ok"], step["detail"]) for step in found["steps"]]


async def test_requests_have_tokens_of_a_real_provider(tmp_path: Path) -> None:
    inbox, audience = Inbox(), "https://receiver.test"
    async with (
        serving(tmp_path, "--no-agent") as server,
        identity_provider("http://127.0.0.1:1/", audience) as issuer,
        Receiver(inbox) as target,
    ):
        api = Api(server)
        await api("credentials/put", **oauth2(f"{issuer}/token", clientSecret="not the secret"))
        ok, steps = await try_out(api)
        assert not ok and steps[0][:2] == ("token", False) and "HTTP 401 (invalid_client)" in steps[0][2]
        assert "not the secret" not in str(steps)
        await api("credentials/put", **oauth2(f"{issuer}/token"))
        assert await try_out(api) == (True, [("token", True, "a token was issued")])
        await api.create("t", target.url, credential="partner")
        (call,) = await inbox.count(1)
        keys = KeySet.import_key_set((await read(f"{issuer}/jwks")).json())
        token = jwt.decode(call.headers["authorization"].removeprefix("Bearer "), keys, algorithms=["RS256"])
        assert (token.claims["client_id"], token.claims["aud"]) == ("ops", audience)


async def test_no_attempt_counts_while_the_token_endpoint_is_down_and_others_fire_meanwhile(tmp_path: Path) -> None:
    inbox, timers = Inbox(), [f"t{number}" for number in range(20)]
    async with serving(tmp_path, "--no-agent") as server, TokenEndpoint() as endpoint, Receiver(inbox) as target:
        api = Api(server)
        await api("credentials/put", **oauth2(endpoint.url, scope="a b", clientAuthentication="post"))
        for name in timers:
            await api.create(name, target.url, credential="partner", retryPolicy={"maxAttempts": 1})
        for name in timers:
            why = await waits_for(api, name)
        assert "credential partner: no token from" in why["sentence"]
        assert "HTTP 503 (temporarily_unavailable)" in why["sentence"] and PROGRAM_SECRET not in str(why)
        await api.create("healthy", target.url)
        (call,) = await inbox.count(1)
        assert call.body["timerId"] == "healthy"
        endpoint.token = "the-token"
        calls = (await inbox.count(21))[1:]
        assert {call.body["timerId"] for call in calls} == {*timers}
        assert {(call.headers["authorization"], call.body["attempt"]) for call in calls} == {("Bearer the-token", 1)}
        form = endpoint.asked[0][1]
        assert (form["grant_type"], form["scope"]) == (["client_credentials"], ["a b"])
        assert (form["client_id"], form["client_secret"]) == (["ops"], [PROGRAM_SECRET])
        asked = len(endpoint.asked)
        await api.create("u", target.url, credential="partner")
        await inbox.count(22)
        assert len(endpoint.asked) == asked, "each node keeps its token"


async def test_next_token_is_fetched_before_the_former_expires(tmp_path: Path) -> None:
    inbox = Inbox()
    async with serving(tmp_path, "--no-agent") as server, TokenEndpoint() as endpoint, Receiver(inbox) as target:
        api = Api(server)
        endpoint.token, endpoint.lifetime_s = "one", 4
        await api("credentials/put", **oauth2(endpoint.url))
        await api.create("t", target.url, credential="partner")
        await inbox.count(1)
        endpoint.token = "two"
        number = 0
        async with asyncio.timeout(PATIENCE_S):
            while inbox.calls[-1].headers["authorization"] != "Bearer two":
                number += 1
                await api.create(f"u{number}", target.url, credential="partner")
                await inbox.count(number + 1)
        assert {call.headers["authorization"] for call in inbox.calls} == {"Bearer one", "Bearer two"}


async def test_certificates_identify_requests_and_own_authorities_replace_the_systems(tmp_path: Path) -> None:
    inbox, here, clients = Inbox(), trustme.CA(), trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    here.issue_cert("127.0.0.1").configure_cert(tls)
    clients.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    issued, foreign = clients.issue_cert("tocsin.test", organization_name="Tocsin"), trustme.CA().issue_cert("x.test")
    certificate = "".join(each.bytes().decode() for each in issued.cert_chain_pems)
    key, ca = issued.private_key_pem.bytes().decode(), here.cert_pem.bytes().decode()
    async with serving(tmp_path) as server, Receiver(inbox, tls) as target:
        api = Api(server)
        host = target.url.removeprefix("https://").removesuffix("/hook")
        put = {**NAMED, "type": "mtls", "hosts": [host], "certificate": certificate, "privateKey": key}
        for change, field in (
            ({"privateKey": foreign.private_key_pem.bytes().decode()}, "privateKey"),
            ({"certificate": "no certificate"}, "certificate"),
            ({"ca": "no certificate"}, "ca"),
            ({"hosts": [f"http://{host}"]}, "hosts[0]"),
        ):
            status, problem = await api("credentials/put", **put | change)
            assert (status, problem["errors"][0]["path"]) == (400, field), problem
            assert "PRIVATE" not in str(problem)
        await api("credentials/put", **put)
        ok, steps = await try_out(api)
        assert not ok and steps[0][:2] == ("connection", False) and "certificate is not accepted" in steps[0][2]
        # Of another authority: TLS 1.3 refuses it only after the client's side is open.
        chain = "".join(each.bytes().decode() for each in foreign.cert_chain_pems)
        of_others = {"certificate": chain, "privateKey": foreign.private_key_pem.bytes().decode(), "ca": ca}
        await api("credentials/put", **put | of_others)
        assert (await try_out(api))[0] is False
        await api("credentials/put", **put, ca=ca)
        assert await try_out(api) == (True, [("connection", True, "connected")])
        assert await try_out(api, url=target.url) == (True, [("request", True, "HEAD was answered with 200")])
        await api.create("t", target.url, credential="partner")
        call = (await inbox.wait(lambda calls: bool(calls) and calls[-1].body != {}))[-1]
        assert call.headers[":organizationName"] == "Tocsin" and "authorization" not in call.headers
        request = {"method": "POST", "url": target.url, "body": {"order": 17}, "credential": "partner"}
        client, tenant = Client(server.address), new_id()
        made = await finished(client, tenant, await submit(client, tenant, target.url, requestSpec=request))
        assert made["status"] == "Succeeded"
        assert inbox.calls[-1].headers[":organizationName"] == "Tocsin"
        await api.create("u", target.url, retryPolicy={"maxAttempts": 1})
        assert "TLS_FAILED" in (await ended(api, "u"))["lastError"]


async def test_jwts_are_verified_by_the_published_keys(tmp_path: Path) -> None:
    inbox = Inbox()
    env = {"TOCSIN_PUBLIC_URL": "https://timers.example"}
    async with serving(tmp_path, "--no-agent", env=env) as server, Receiver(inbox) as target:
        api = Api(server)
        base = "http://{}:{}/.well-known".format(*server.address())
        assert (await read(f"{base}/jwks.json")).json() == {"keys": []}
        await api("credentials/put", **NAMED, type="jwt", audience="https://receiver.test", lifetime="5m")
        await api.create("t", target.url, credential="partner")
        (call,) = await inbox.count(1)
        configuration = (await read(f"{base}/openid-configuration")).json()
        assert configuration["issuer"] == "https://timers.example"
        assert configuration["jwks_uri"] == "https://timers.example/.well-known/jwks.json"
        keys = (await read(f"{base}/jwks.json")).json()
        assert len(keys["keys"]) == 1 and "d" not in keys["keys"][0]
        token = jwt.decode(
            call.headers["authorization"].removeprefix("Bearer "), KeySet.import_key_set(keys), algorithms=["ES256"]
        )
        assert token.claims["iss"] == configuration["issuer"]
        assert (token.claims["sub"], token.claims["aud"]) == ("tocsin:default:partner", "https://receiver.test")
        assert token.claims["exp"] - token.claims["iat"] == 300


async def test_a_signing_key_is_replaced_while_the_server_runs(tmp_path: Path) -> None:
    env = {"TOCSIN_PUBLIC_URL": "https://timers.example"}
    async with serving(tmp_path, "--no-agent", env=env) as server:
        api, place = Api(server), ("keys", "signing", "--data-dir", str(server.data_dir))
        jwks = "http://{}:{}/.well-known/jwks.json".format(*server.address())
        code, _, err = await command(*place, "--replace")
        assert code != 0 and "there is none" in err
        await api("credentials/put", **NAMED, type="jwt", audience="https://receiver.test")
        async with asyncio.timeout(PATIENCE_S):
            while len(first := (await read(jwks)).json()["keys"]) != 1:  # noqa: ASYNC110 -- no signal
                await asyncio.sleep(0.05)
        code, out, err = await command(*place, "--replace", "--json")
        assert code == 0, err
        rows = json.loads(out)
        assert [row["state"] for row in rows] == ["former", "signs"] and rows[0]["kid"] == first[0]["kid"]
        async with asyncio.timeout(PATIENCE_S):
            while [key["kid"] for key in (await read(jwks)).json()["keys"]] != [row["kid"] for row in rows]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        code, out, _ = await command(*place)
        assert code == 0 and "signs" in out


async def test_jwts_need_a_public_url(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        status, problem = await Api(server)("credentials/put", **NAMED, type="jwt", audience="x")
        assert (status, problem["errors"][0]["path"]) == (400, "type") and "public_url" in str(problem)
        base = "http://{}:{}/.well-known".format(*server.address())
        assert (await read(f"{base}/openid-configuration")).status_code == 404
