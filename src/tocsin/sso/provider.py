"""The OpenID Connect provider: people sign in there by the authorization code flow with PKCE, and programs bring access
tokens that it has signed.

Written to OpenID Connect Core 1.0, RFC 7636 (PKCE), RFC 9068 (JWT access tokens) and RFC 9207 (the issuer in the answer). The
protocol and the signatures are Authlib's and joserfc's.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import httpx2
import msgspec
import structlog
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from tocsin.model.access import ApiKey
from tocsin.model.errors import Unavailable
from tocsin.sso.identity import Identity, identity_of, key_of
from tocsin.sso.options import OidcOptions, parse_grant

_log = structlog.get_logger("tocsin.sso")

#: Signatures by keys that only the provider has: with the others, whoever knows the client's secret could sign.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
_VERIFIER_BYTES = 48
#: Codes that are exchanged for tokens at once.
_EXCHANGES_MAX = 8
_DISCOVERY = "/.well-known/openid-configuration"


class SignInRefused(Exception):
    """Somebody is not signed in; the text is for them."""


class Metadata(msgspec.Struct, frozen=True):
    """What is used of the discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Flow(msgspec.Struct, frozen=True, array_like=True):
    """A sign-in under way, which the browser keeps until it comes back from the provider. `to` is the page to go on with."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    to: str
    until: int


class Provider:
    """The provider with its keys as they were last read. `now_s` is the wall clock."""

    def __init__(self, options: OidcOptions, now_s: Callable[[], float] = time.time) -> None:
        assert options.issuer is not None and options.client_id is not None
        self._options, self._now_s = options, now_s
        self.issuer, self._client_id = options.issuer, options.client_id
        self._grants = tuple(parse_grant(each) for each in options.grants)
        # To make one takes as long as a hundred requests, of a thread that has timers to fire.
        self._tls = httpx2.create_ssl_context()
        self._exchanges = asyncio.Semaphore(_EXCHANGES_MAX)
        self._metadata: Metadata | None = None
        self._keys: KeySet | None = None
        self._read_s = -float("inf")
        self._reading: asyncio.Task[None] | None = None
        #: By the hash of a token: who it is, and until when.
        self._known: dict[str, tuple[ApiKey, float]] = {}

    async def run(self) -> None:
        """Reads the keys again and again, until it is cancelled."""
        while True:
            try:
                await self._read()
            except Unavailable as error:
                _log.warning("identity provider not read", issuer=self.issuer, error=str(error))
                await asyncio.sleep(self._options.keys_pause_s)
            else:
                await asyncio.sleep(self._options.keys_interval_s)

    # ------------------------------------------------------------------ people

    async def begin(self, redirect_uri: str, to: str) -> tuple[str, Flow]:
        """The URL at which somebody signs in, and what has to come back with them. Raises Unavailable."""
        metadata, _ = await self._read_once()
        flow = Flow(
            secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(_VERIFIER_BYTES), redirect_uri, to,
            round(self._now_s()) + self._options.flow_lifetime_s,
        )  # fmt: skip
        url = prepare_grant_uri(
            metadata.authorization_endpoint,
            self._client_id,
            "code",
            redirect_uri,
            " ".join(self._options.scopes),
            flow.state,
            nonce=flow.nonce,
            code_challenge=create_s256_code_challenge(flow.verifier),
            code_challenge_method="S256",
        )
        return str(url), flow

    async def complete(self, flow: Flow, answer: Mapping[str, str]) -> Identity:
        """Who came back with this answer in the query. Raises SignInRefused, Unavailable."""
        if flow.until < self._now_s():
            raise SignInRefused("The sign-in took too long. Sign in again.")
        if not hmac.compare_digest(flow.state.encode(), answer.get("state", "").encode()):
            raise SignInRefused("This answer belongs to another sign-in. Sign in again.")
        metadata, _ = await self._read_once()
        issuer = answer.get("iss")
        if issuer != self.issuer and (issuer or metadata.authorization_response_iss_parameter_supported):
            raise SignInRefused("This answer comes from another provider. Sign in again.")
        if "code" not in answer:
            why = answer.get("error_description") or answer.get("error") or "no reason given"
            raise SignInRefused(f"The provider did not sign you in: {why[:200]}.")
        claims = await self._claims(await self._id_token(metadata, flow, answer["code"]), self._client_id)
        if not hmac.compare_digest(flow.nonce.encode(), str(claims.get("nonce", "")).encode()):
            raise SignInRefused("The provider's token belongs to another sign-in. Sign in again.")
        if claims.get("azp", self._client_id) != self._client_id:
            raise SignInRefused("The provider's token was made for another program.")
        found = identity_of(claims, self._options.groups_claim, self._grants)
        if self.permitted(found) is None:
            raise SignInRefused(
                "You are known, but in no group that may use Tocsin. Whoever runs this server can name yours in oidc.grants."
            )
        return found

    async def sign_out_url(self, back_to: str) -> str | None:
        """Where somebody also signs out of the provider, if it has a place for that and can be asked."""
        try:
            metadata, _ = await self._read_once()
        except Unavailable:
            return None
        if not metadata.end_session_endpoint:
            return None
        query = {"client_id": self._client_id, "post_logout_redirect_uri": back_to}
        return str(httpx2.URL(metadata.end_session_endpoint).copy_merge_params(query))

    async def _id_token(self, metadata: Metadata, flow: Flow, code: str) -> str:
        if self._exchanges.locked():
            # Anybody can come back with an invented code, and each of them costs the provider a request.
            raise Unavailable("too many people sign in at once; try again")
        try:
            async with self._exchanges, self._client(metadata, flow) as client:
                answer = await client.fetch_token(metadata.token_endpoint, code=code, code_verifier=flow.verifier)
        except AuthlibBaseError as error:
            raise SignInRefused(f"The provider did not accept the sign-in: {error.error}. Sign in again.") from error
        except (httpx2.HTTPError, ValueError) as error:
            raise Unavailable(f"the identity provider does not answer: {error!r}") from error
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise SignInRefused("The provider sent no ID token; oidc.scopes must contain openid.")
        return token

    async def _claims(self, token: str, audience: str) -> dict[str, Any]:
        _, keys = await self._read_once()
        try:
            return self._checked(token, keys, audience)
        except InvalidKeyIdError:
            # A key that is newer than what was read.
            await self._read()
        except JoseError as error:
            raise SignInRefused(f"The provider's token is not valid: {error.error}.") from error
        _, keys = await self._read_once()
        try:
            return self._checked(token, keys, audience)
        except JoseError as error:
            raise SignInRefused(f"The provider's token is not valid: {error.error}.") from error

    # ------------------------------------------------------------------ programs

    def identify(self, token: str) -> ApiKey | None:
        """Who brings this access token; None if it is none that is accepted. Reads memory only. Raises Unavailable if the
        key that has signed it is being read."""
        audience, hash = self._options.audience, sha256(token.encode()).hexdigest()
        if audience is None or token.count(".") != 2:
            return None
        known = self._known.get(hash)
        if known is not None and known[1] > self._now_s():
            return known[0]
        if self._keys is None:
            self._read_soon()
            raise Unavailable("the keys of the identity provider are not known yet; try again")
        try:
            claims = self._checked(token, self._keys, audience)
        except InvalidKeyIdError:
            if self._read_soon():
                raise Unavailable("the keys of the identity provider are being read; try again") from None
            return None
        except JoseError:
            return None
        found = self.permitted(identity_of(claims, self._options.groups_claim, self._grants))
        if found is not None:
            self._known[hash] = found, claims["exp"] + self._options.leeway_s
            while len(self._known) > self._options.tokens_remembered_max:
                del self._known[next(iter(self._known))]
        return found

    def known(self, hash: str) -> ApiKey | None:
        """Who brought the token with this SHA-256, if it was accepted here and has not expired."""
        known = self._known.get(hash)
        return known[0] if known is not None and known[1] > self._now_s() else None

    # ------------------------------------------------------------------ both

    def permitted(self, identity: Identity) -> ApiKey | None:
        """What somebody may do by the grants that there are now; None: nothing."""
        return key_of(identity, self._grants)

    def _checked(self, token: str, keys: KeySet, audience: str) -> dict[str, Any]:
        """The claims of a token that this provider has signed for this audience. Raises JoseError."""
        try:
            decoded = jwt.decode(token, keys, algorithms=_ALGORITHMS)
        except JoseError:
            raise
        except Exception as error:
            # Of any kind: the library reads some fields of what anybody may send before it checks their types.
            raise ExpiredTokenError("the token can't be read") from error
        registry = jwt.JWTClaimsRegistry(
            now=round(self._now_s()),
            leeway=self._options.leeway_s,
            iss={"essential": True, "value": self.issuer},
            sub={"essential": True},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
        )
        registry.validate(decoded.claims)
        return decoded.claims

    def _client(self, metadata: Metadata, flow: Flow) -> Any:
        options = self._options
        supported = metadata.token_endpoint_auth_methods_supported
        posted = "client_secret_basic" not in supported and "client_secret_post" in supported
        method = "none" if not options.client_secret else "client_secret_post" if posted else "client_secret_basic"
        return AsyncOAuth2Client(
            self._client_id, options.client_secret, token_endpoint_auth_method=method, scope=" ".join(options.scopes),
            redirect_uri=flow.redirect_uri, timeout=options.timeout_s, verify=self._tls,
        )  # fmt: skip

    def _read_soon(self) -> bool:
        """Begins to read the keys. False if that was done a moment ago, so that invented tokens cost the provider nothing."""
        if self._reading is not None and not self._reading.done():
            return True
        if time.monotonic() - self._read_s < self._options.keys_pause_s:
            return False
        self._reading = asyncio.ensure_future(self._read_quietly())
        return True

    async def _read_quietly(self) -> None:
        try:
            await self._read()
        except Unavailable as error:
            _log.warning("identity provider not read", issuer=self.issuer, error=str(error))

    async def _read_once(self) -> tuple[Metadata, KeySet]:
        if self._metadata is None or self._keys is None:
            await self._read()
        assert self._metadata is not None and self._keys is not None
        return self._metadata, self._keys

    async def _read(self) -> None:
        """Reads the discovery document and the keys. Raises Unavailable; then those that were read before stay."""
        self._read_s = time.monotonic()
        try:
            async with httpx2.AsyncClient(timeout=self._options.timeout_s, verify=self._tls) as client:
                found = await client.get(self.issuer.rstrip("/") + _DISCOVERY)
                metadata = msgspec.json.decode(found.raise_for_status().content, type=Metadata)
                if metadata.issuer != self.issuer:
                    # Core 1.0: whoever answers for another issuer could sign in anybody.
                    raise Unavailable(
                        f"the identity provider calls itself {metadata.issuer!r}; set oidc.issuer to that"
                    )
                keys = KeySet.import_key_set((await client.get(metadata.jwks_uri)).raise_for_status().json())
        except (httpx2.HTTPError, msgspec.DecodeError, JoseError, ValueError, KeyError) as error:
            raise Unavailable(f"the identity provider {self.issuer} can't be read: {error!r}") from error
        self._metadata, self._keys = metadata, keys
