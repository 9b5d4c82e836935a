"""What credentials identify requests with: what they have, what this service signs for them, and the tokens that others issue
to them."""

from __future__ import annotations

import asyncio
import base64
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol
from urllib.parse import quote_plus, urlencode

import msgspec
import structlog

from tocsin.model.answer import NoResponse, NotSent
from tocsin.model.credential import Credential
from tocsin.model.credential_type import ClientAuth, CredentialType
from tocsin.model.retry import backoff_us
from tocsin.ports.clock import Clock
from tocsin.ports.http import Identity, Request, Requester, Result, Tls
from tocsin.ports.seals import SealBroken, Seals
from tocsin.targets.fetches import Fetches
from tocsin.targets.tls import BadCertificate, is_secured, tls_of

#: How long a token endpoint may take.
FETCH_TIMEOUT_US = 10_000_000
#: The pauses between attempts to fetch a token: the first, doubled up to the last.
_PAUSE_US, _PAUSE_US_MAX = 1_000_000, 15_000_000
#: How long a token is used whose lifetime its issuer does not state.
_LIFETIME_S_DEFAULT = 300
#: A token is renewed in the last quarter of its lifetime, and not used in the last tenth, at most for so long.
_MARGIN_US_MAX = 10_000_000
#: A receiver's 401 has a token renewed that is at least so old.
_DOUBTED_AFTER_US = 10_000_000
#: Destinations of one credential of which it is known that they have refused its token. It has fewer hosts, except on this
#: machine.
_REFUSING_MAX = 100
#: Characters of a token: it has to fit into a request's head.
TOKEN_CHARS_MAX = 6_144
_TOKEN = re.compile(r"[\x21-\x7e]+\Z")
#: RFC 6749 section 5.2. Nothing else of an answer is shown: it may repeat the secret.
_ERROR = re.compile(r"[a-z_]{1,60}\Z")

#: Why a node signs no JWTs.
NO_SIGNER = "needs this server to sign JWTs: set public_url, at which receivers find the keys, and install tocsin[oidc]"

_log = structlog.get_logger("tocsin.targets")


class Ready(NamedTuple):
    """What a request gets, and the secrets in it."""

    identity: Identity
    secrets: tuple[str, ...] = ()


class TokenRefused(Exception):
    """There is no token. The text has the reason, without secrets."""


class JwtSigner(Protocol):
    """Signs tokens by which this service identifies itself."""

    def sign(self, credential: Credential, now_us: int) -> str:
        """A JWT of the credential. Raises TokenRefused if there is no key."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What identities are made with. `ready` is called when one that could not be sent can be."""

    client: Requester
    clock: Clock
    seals: Seals
    signer: JwtSigner | None
    ready: Callable[[], object]
    fetches: Fetches = field(default_factory=Fetches)
    #: Certificates are read of one credential after another, so that many keep no threads from others.
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class Token(NamedTuple):
    """A token, and when it was issued and expires, in boot time."""

    value: str
    issued_at: int
    expires_at: int

    def is_valid(self, now_us: int) -> bool:
        """Whether it may be sent: it must not expire on its way."""
        return now_us < self.expires_at - min((self.expires_at - self.issued_at) // 10, _MARGIN_US_MAX)

    @property
    def renewed_at(self) -> int:
        """When the next one is fetched or signed."""
        return self.issued_at + (self.expires_at - self.issued_at) * 3 // 4


class Held(Protocol):
    """A credential as a node uses it."""

    credential: Credential

    def ready(self, destination: str = "") -> Ready | str:
        """What a request to the destination gets now, or why there is nothing; without a destination, the same for all of
        them."""

    async def renewed(self) -> Ready | str:
        """The same with a token that is fetched for this call."""

    def answered(self, destination: str, ready: Ready, status: int) -> bool:
        """A receiver has answered a request that had this. True for a 401 whose only reason may be that the token has been
        revoked: the next request has another one."""

    def close(self) -> list[asyncio.Task[None]]:
        """Stops to fetch tokens; the tasks that end."""


def hold(credential: Credential, tools: Tools, former: Held | None = None, *, keeps: bool = True) -> Held:
    """The credential, as it is used from now on. `former` is the same one before a change. Unless `keeps`, tokens are only
    fetched when they are asked for."""
    if credential.type is CredentialType.OAUTH2:
        return _Issued(credential, tools, former if isinstance(former, _Issued) else None, keeps=keeps)
    fixed = former if isinstance(former, _Fixed) else None
    if credential.type is CredentialType.JWT:
        return _Signed(credential, tools, fixed)
    return _Fixed(credential, tools, fixed)


class _Fixed:
    """A credential that needs no token."""

    def __init__(self, credential: Credential, tools: Tools, former: _Fixed | None = None) -> None:
        self.credential, self._tools = credential, tools
        self._ready: Ready | str | None = None
        self._tls: Tls | None = former._tls if former is not None and _same_tls(credential, former.credential) else None
        self._reading: asyncio.Task[None] | None = None
        # Whether they were read or tried to, and why this node could not.
        self._tried, self._unread = asyncio.Event(), ""
        if self._tls is None and is_secured(credential):
            self._reading = asyncio.get_running_loop().create_task(self._read())

    def ready(self, destination: str = "") -> Ready | str:
        if self._ready is None:
            if self._tls is None and self._reading is not None:
                return self._unread or "its certificates are being read"
            try:
                self._ready = self._make(_secret(self.credential, self._tools), self._tls)
            except SealBroken as error:
                self._ready = str(error)
        return self._ready

    async def _read(self) -> None:
        """Reads what secures its connections: elsewhere, since the system's authorities hold up a thread for tens of
        milliseconds. What this node lacks for that, as file descriptors, it may have again in a moment."""
        failures = 0
        while self._tls is None and self._ready is None:
            try:
                secret = _secret(self.credential, self._tools)
                async with self._tools.reading:
                    self._tls = await asyncio.to_thread(tls_of, self.credential, secret)
            except (SealBroken, BadCertificate) as error:
                self._ready = str(error)
            except Exception as error:  # noqa: BLE001 -- a task that ends here would leave the credential unusable
                failures += 1
                self._unread = _unforeseen(self.credential, "certificates not read", error)
            finally:
                self._tried.set()
            if self._tls is None and self._ready is None:
                await asyncio.sleep(backoff_us(failures, _PAUSE_US, _PAUSE_US_MAX) / 1e6)
        self._tools.ready()

    def _make(self, secret: str, tls: Tls | None) -> Ready:
        credential = self.credential
        if credential.type is CredentialType.BASIC:
            pair = base64.b64encode(f"{credential.username}:{secret}".encode()).decode()
            return Ready(Identity(f"Basic {pair}", tls), (pair, secret))
        if credential.type is CredentialType.BEARER:
            return Ready(Identity(f"Bearer {secret}", tls), (secret,))
        return Ready(Identity("", tls))

    async def renewed(self) -> Ready | str:
        if self._reading is not None:
            await self._tried.wait()
        return self.ready()

    def answered(self, destination: str, ready: Ready, status: int) -> bool:
        return False

    def close(self) -> list[asyncio.Task[None]]:
        if self._reading is None:
            return []
        self._reading.cancel()
        return [self._reading]


class _Bearing(_Fixed):
    """A credential that needs a token."""

    def __init__(self, credential: Credential, tools: Tools, former: _Fixed | None = None) -> None:
        super().__init__(credential, tools, former)
        self._token: Token | None = None
        self._error = ""

    def ready(self, destination: str = "") -> Ready | str:
        fixed = super().ready()
        if isinstance(fixed, str):
            return fixed
        token = self._token
        if token is None or not token.is_valid(self._tools.clock.boottime_us()):
            return self._error or "its token has been asked for, and has not arrived yet"
        return Ready(Identity(f"Bearer {token.value}", fixed.identity.tls), (token.value,))


class _Signed(_Bearing):
    """A credential whose tokens this service signs."""

    def ready(self, destination: str = "") -> Ready | str:
        tools, now_us = self._tools, self._tools.clock.boottime_us()
        if self._token is None or now_us >= self._token.renewed_at:
            try:
                if tools.signer is None:
                    raise TokenRefused(f"it {NO_SIGNER}")
                value = tools.signer.sign(self.credential, tools.clock.now_us())
                self._token = Token(value, now_us, now_us + self.credential.lifetime_us)
            except TokenRefused as error:
                self._error = str(error)
        return super().ready()


class _Issued(_Bearing):
    """A credential whose tokens a token endpoint issues: one is always valid, as far as the endpoint answers."""

    def __init__(self, credential: Credential, tools: Tools, former: _Issued | None, *, keeps: bool) -> None:
        super().__init__(credential, tools, former)
        if former is not None and _takes_token(credential, former.credential):
            # What the former one got is good until the new one gets something.
            self._token = former._token
        #: By destination, the token that it has refused as the only one since it took another.
        self._refused: dict[str, Token] = {}
        self._issuer_tls: Tls | None = None
        self._failures = 0
        self._wake = asyncio.Event()
        self._fetching: asyncio.Task[None] | None = None
        self._keeping = asyncio.get_running_loop().create_task(self._keep()) if keeps else None

    async def renewed(self) -> Ready | str:
        await self._renew()
        return self._error or await super().renewed()

    def ready(self, destination: str = "") -> Ready | str:
        found = super().ready(destination)
        refused = (self._refused.get(destination),) if destination else self._refused.values()
        if isinstance(found, Ready) and any(each is self._token for each in refused):
            return self._error or "the receiver has refused its token, and the next one has not arrived yet"
        return found

    def answered(self, destination: str, ready: Ready, status: int) -> bool:
        if status != 401:
            # A proxy's 502 proves nothing about the token.
            if status < 500:
                self._refused.pop(destination, None)
            return False
        token, refused = self._token, self._refused.get(destination)
        if token is None or token.value not in ready.secrets:
            # It has been replaced since.
            return True
        if token is refused:
            return True
        if self._tools.clock.boottime_us() - token.issued_at < _DOUBTED_AFTER_US:
            return False
        if not self._failures:
            # Else the next token is on its way already; a receiver's answers don't shorten the pause between attempts.
            self._wake.set()
        if refused is not None or len(self._refused) >= _REFUSING_MAX:
            # It has refused the one before, too: another one will not do.
            return False
        self._refused[destination] = token
        return True

    def close(self) -> list[asyncio.Task[None]]:
        tasks = [task for task in (self._keeping, self._fetching) if task is not None]
        for task in tasks:
            task.cancel()
        return tasks + super().close()

    async def _keep(self) -> None:
        while True:
            self._wake.clear()
            await self._renew()
            try:
                async with asyncio.timeout(self._pause_us() / 1e6):
                    await self._wake.wait()
            except TimeoutError:
                pass

    def _pause_us(self) -> int:
        """Until the next token is fetched."""
        if self._failures or self._token is None:
            pause_us = backoff_us(max(self._failures, 1), _PAUSE_US, _PAUSE_US_MAX)
            return round(pause_us * random.uniform(0.8, 1.0))
        return max(self._token.renewed_at - self._tools.clock.boottime_us(), _PAUSE_US)

    async def _renew(self) -> None:
        """Fetches a token; concurrent callers share one request."""
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_task(self._fetch())
            self._fetching.add_done_callback(self._fetched)
        await asyncio.shield(self._fetching)

    def _fetched(self, _: asyncio.Task[None]) -> None:
        self._fetching = None

    async def _fetch(self) -> None:
        credential, tools = self.credential, self._tools
        try:
            secret = _secret(credential, tools)
            async with tools.fetches.place(credential.namespace, tools.client.destination(credential.token_url)):
                if credential.ca and self._issuer_tls is None:
                    # Once, and elsewhere: to read the system's authorities holds up a thread for tens of milliseconds.
                    async with tools.reading:
                        self._issuer_tls = await asyncio.to_thread(tls_of, credential, secret, to_issuer=True)
                asked_at = tools.clock.boottime_us()
                value, lifetime_us = await _ask(tools.client, credential, secret, self._issuer_tls)
        except (SealBroken, BadCertificate, TokenRefused) as error:
            self._failures += 1
            if str(error) != self._error:
                names = {"namespace": credential.namespace, "credential": credential.name}
                _log.warning("no token", reason=str(error), **names)
            self._error = str(error)
            return
        except Exception as error:  # noqa: BLE001 -- as in `_read`
            # It is asked for again after a pause.
            self._failures += 1
            self._error = _unforeseen(credential, "no token", error)
            return
        # The former one may have expired or been refused since this one was asked for.
        waited = self._token is None or not self._token.is_valid(tools.clock.boottime_us())
        waited = waited or any(each is self._token for each in self._refused.values())
        self._token = Token(value, asked_at, asked_at + lifetime_us)
        self._failures, self._error = 0, ""
        if waited:
            tools.ready()


def _secret(credential: Credential, tools: Tools) -> str:
    """The secret in clear. Raises SealBroken."""
    return tools.seals.open(credential.secret, credential.seal_context) if credential.secret else ""


def _unforeseen(credential: Credential, event: str, error: Exception) -> str:
    """Logs an error of this node's, and returns it as a reason, without its own text, which may have parts of the secret."""
    reason = f"this node could not read it: {getattr(error, 'strerror', None) or type(error).__name__}"
    _log.warning(event, reason=reason, namespace=credential.namespace, credential=credential.name)
    return reason


def _same_tls(credential: Credential, former: Credential) -> bool:
    """Whether connections are secured by the same parts."""
    return is_secured(credential) and all(
        getattr(credential, name) == getattr(former, name) for name in ("type", "certificate", "secret", "ca")
    )


def _takes_token(credential: Credential, former: Credential) -> bool:
    """Whether the token of the former credential is one of this one, too, and goes nowhere else: a token is kept from whoever
    may change a credential as its secret is."""
    same = all(getattr(credential, name) == getattr(former, name) for name in ("client_id", "scope", "audience"))
    return same and not credential.leads_elsewhere(former)


class _Answer(msgspec.Struct):
    access_token: str
    token_type: str = "Bearer"
    expires_in: float | str | None = None


class _Refusal(msgspec.Struct):
    error: str = ""


async def _ask(client: Requester, credential: Credential, secret: str, tls: Tls | None) -> tuple[str, int]:
    """A token of the endpoint, and how long it is valid, in microseconds. Raises TokenRefused."""
    request = token_request(credential, secret, tls)
    result = await send(client, request)
    where = client.destination(credential.token_url)
    if isinstance(result.outcome, (NoResponse, NotSent)):
        raise TokenRefused(f"no token from {where}: {described(result.outcome)}")
    status, body = result.outcome.status, result.outcome.body
    if status != 200:
        raise TokenRefused(f"no token from {where}: HTTP {status}{_error_in(body)}")
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        lifetime_s = _LIFETIME_S_DEFAULT if answer.expires_in is None else float(answer.expires_in)
    except (ValueError, UnicodeDecodeError, RecursionError):
        raise TokenRefused(f"no token from {where}: its answer has no access_token, or is not JSON") from None
    if answer.token_type.lower() != "bearer":
        raise TokenRefused(f"no token from {where}: its type is not Bearer, which is the only one that can be sent")
    if not _TOKEN.match(answer.access_token) or len(answer.access_token) > TOKEN_CHARS_MAX:
        reason = f"it is longer than {TOKEN_CHARS_MAX} characters, or has others than visible ASCII"
        raise TokenRefused(f"no token from {where}: {reason}")
    if not 1 <= lifetime_s <= 1e9:
        raise TokenRefused(f"no token from {where}: it is valid for less than a second")
    return answer.access_token, round(lifetime_s * 1_000_000)


def token_request(credential: Credential, secret: str, tls: Tls | None) -> Request:
    """The request for a token (RFC 6749 section 4.4.2)."""
    form = {"grant_type": "client_credentials"}
    form |= {"scope": credential.scope} if credential.scope else {}
    form |= {"audience": credential.audience} if credential.audience else {}
    headers = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
    if credential.client_auth is ClientAuth.POST:
        form |= {"client_id": credential.client_id, "client_secret": secret}
    else:
        # Section 2.3.1 has both encoded like a form's fields.
        pair = f"{quote_plus(credential.client_id)}:{quote_plus(secret)}".encode()
        headers.append(("authorization", f"Basic {base64.b64encode(pair).decode()}"))
    return Request("POST", credential.token_url, tuple(headers), urlencode(form).encode(), FETCH_TIMEOUT_US, tls=tls)


def _error_in(body: bytes) -> str:
    try:
        error = msgspec.json.decode(body, type=_Refusal).error
    except (ValueError, UnicodeDecodeError, RecursionError):
        return ""
    return f" ({error})" if _ERROR.match(error) else ""


async def send(client: Requester, request: Request) -> Result:
    """The result of a request."""
    answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    def done(result: Result) -> None:
        if not answer.done():
            answer.set_result(result)

    client.send(request, done)
    return await answer


def described(outcome: NoResponse | NotSent) -> str:
    """Why there is no response."""
    return f"{outcome.code}: {outcome.detail}" if outcome.detail else outcome.code
