"""Which tokens of an identity provider count: those that it has signed, for this server, and that have not expired."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest
import pytest_asyncio
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.http import Receiver
from tocsin.model.access import Role
from tocsin.model.errors import Unavailable
from tocsin.sso.options import OidcOptions
from tocsin.sso.provider import Flow, Provider, SignInRefused

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLIENT, AUDIENCE = "tocsin", "https://tocsin.test/api"
KEY, NEXT_KEY, FOREIGN_KEY = [RSAKey.generate_key(2048, {"kid": kid, "use": "sig"}) for kid in ("one", "two", "one")]


class _Issuer(Receiver):
    """A provider that answers with what the test has put into `id_token` and `published`."""

    _path = ""

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.published: list[RSAKey] = [KEY]
        self.id_token = ""
        self.name = ""
        self.reads = 0
        self.codes: list[str] = []

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        if path == "/.well-known/openid-configuration":
            found: dict[str, Any] = {
                "issuer": self.name or self.url, "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token", "jwks_uri": f"{self.url}/keys",
                "authorization_response_iss_parameter_supported": True,
            }  # fmt: skip
        elif path == "/keys":
            self.reads += 1
            found = {"keys": [each.as_dict(private=False) for each in self.published]}
        else:
            self.codes += parse_qs(raw.decode())["code"]
            found = {"access_token": "-", "token_type": "Bearer", "id_token": self.id_token}
        return 200, json.dumps(found).encode()


class Place(NamedTuple):
    """The provider as it is, and as the server knows it."""

    issuer: _Issuer
    provider: Provider

    def claims(self, **changed: Any) -> dict[str, Any]:
        claims = {
            "iss": self.issuer.url, "sub": "7", "aud": AUDIENCE, "exp": time.time() + 300, "email": "a@example.com",
            "realm": {"roles": ["ops"]}, **changed,
        }  # fmt: skip
        return {name: value for name, value in claims.items() if value is not None}


def signed(claims: dict[str, Any], key: Any = KEY, algorithm: str = "RS256") -> str:
    return jwt.encode({"alg": algorithm, "kid": key.kid}, claims, key, algorithms=[algorithm])


def part(value: dict[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def with_secret(payload: str, secret: bytes) -> str:
    """Signed with what everybody knows, by which a careless receiver would check it."""
    text = f"{part({'alg': 'HS256', 'kid': 'one'})}.{payload}"
    return f"{text}.{urlsafe_b64encode(hmac.digest(secret, text.encode(), 'sha256')).decode().rstrip('=')}"


@pytest_asyncio.fixture(loop_scope="module")
async def place() -> AsyncIterator[Place]:
    async with _Issuer() as issuer:
        options = OidcOptions(
            issuer=issuer.url, client_id=CLIENT, audience=AUDIENCE, grants=("ops=write:a,b", "all=read"),
            groups_claim="realm.roles", keys_pause_s=0.0,
        )  # fmt: skip
        provider = Provider(options)
        await provider.begin("https://tocsin.test/login/oidc/callback", "/")
        yield Place(issuer, provider)


async def test_a_token_counts_with_the_first_grant_of_its_groups(place: Place) -> None:
    key = place.provider.identify(signed(place.claims()))
    assert key is not None
    assert (key.role, key.namespaces, key.note) == (Role.WRITE, ("a", "b"), "a@example.com")
    again = place.provider.identify(signed(place.claims(realm={"roles": ["all", "x"]})))
    assert again is not None
    assert (again.role, again.namespaces, again.key_id) == (Role.READ, (), key.key_id)


async def test_what_the_provider_has_not_signed_for_this_server_does_not_count(place: Place) -> None:
    good = place.claims()
    parts = signed(good).split(".")
    wrong = {
        "a foreign issuer": signed(place.claims(iss="https://other.example")),
        "no issuer": signed(place.claims(iss=None)),
        "another audience": signed(place.claims(aud="https://other.example/api")),
        "an ID token": signed(place.claims(aud=CLIENT)),
        "expired": signed(place.claims(exp=time.time() - 61)),
        "without end": signed(place.claims(exp=None)),
        "not yet": signed(place.claims(nbf=time.time() + 600)),
        "no group": signed(place.claims(realm={})),
        "a foreign key": signed(good, FOREIGN_KEY),
        "the public key as a secret": with_secret(parts[1], KEY.as_pem(private=False)),
        "alg none": f"{part({'alg': 'none'})}.{parts[1]}.",
        "no signature": f"{parts[0]}.{parts[1]}.",
        "no JSON": "e30.e30.e30",
        "a number of critical headers": f"{part({'alg': 'ES256', 'kid': 'one', 'crit': 1})}.{parts[1]}.AAAA",
        "an API key": "tk_0123456789ab_0123456789012345678901234567890123456789012",
    }
    assert [name for name, token in wrong.items() if place.provider.identify(token) is not None] == []


async def test_new_keys_are_read_when_a_token_names_one(place: Place) -> None:
    place.issuer.published = [KEY, NEXT_KEY]
    token = signed(place.claims(), NEXT_KEY)
    with pytest.raises(Unavailable, match="being read"):
        place.provider.identify(token)
    assert place.provider._reading is not None
    await place.provider._reading
    assert place.provider.identify(token) is not None


async def test_a_provider_of_another_name_is_refused(place: Place) -> None:
    place.issuer.name = "https://other.example"
    provider = Provider(OidcOptions(issuer=place.issuer.url, client_id=CLIENT, grants=("ops=admin",)))
    with pytest.raises(Unavailable, match=r"calls itself 'https://other\.example'"):
        await provider.begin("https://tocsin.test/login/oidc/callback", "/")


async def test_an_id_token_counts_for_the_sign_in_that_it_was_made_for(place: Place) -> None:
    provider, issuer = place.provider, place.issuer
    _, flow = await provider.begin("https://tocsin.test/login/oidc/callback", "/")
    answer = {"state": flow.state, "code": "c", "iss": issuer.url}

    async def refusal(**changed: Any) -> str:
        issuer.id_token = signed(place.claims(**{"aud": CLIENT, "nonce": flow.nonce, **changed}))
        with pytest.raises(SignInRefused) as refused:
            await provider.complete(flow, answer)
        return str(refused.value)

    assert "belongs to another sign-in" in await refusal(nonce="another")
    assert "belongs to another sign-in" in await refusal(nonce=None)
    assert "not valid" in await refusal(aud="other")
    assert "not valid" in await refusal(iss="https://other.example")
    assert "another program" in await refusal(aud=[CLIENT, "other"], azp="other")
    issuer.id_token = signed(place.claims(aud=CLIENT, nonce=flow.nonce))
    assert (await provider.complete(flow, answer)).groups == ("ops",)


async def test_what_is_not_the_answer_asks_the_provider_for_no_token(place: Place) -> None:
    provider = place.provider
    _, flow = await provider.begin("https://tocsin.test/login/oidc/callback", "/")
    late = Flow(flow.state, flow.nonce, flow.verifier, flow.redirect_uri, "/", round(time.time()) - 1)
    answer = {"state": flow.state, "code": "c", "iss": place.issuer.url}
    for begun, changed in (
        (late, {}),
        (flow, {"state": "x"}),
        (flow, {"iss": "https://other.example"}),
        (flow, {"iss": ""}),
    ):
        with pytest.raises(SignInRefused):
            await provider.complete(begun, {**answer, **changed})
    assert place.issuer.codes == []
