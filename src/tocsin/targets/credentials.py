"""Gives timers' requests their credentials just before they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from msgspec import structs

from tocsin.model.answer import NoCredential, NoResponse, NotSent, Response, StaleToken
from tocsin.model.credential import Credential, refusal
from tocsin.model.credential_type import CredentialType
from tocsin.model.errors import FieldError
from tocsin.ports.clock import Clock
from tocsin.ports.credentials import CredentialTest, SentIdentity, TestStep
from tocsin.ports.http import Caller, Exchange, Identity, Invocation, Request, Requester, Tls
from tocsin.ports.seals import Seals
from tocsin.targets.identities import NO_SIGNER, Held, JwtSigner, Ready, Tools, described, hold, send
from tocsin.targets.tls import BadCertificate, tls_of
from tocsin.tasks import end_tasks

#: The code of a request that was not sent for want of its credential.
CREDENTIAL_NOT_READY = "CREDENTIAL_NOT_READY"
#: How long a test waits for one connection or response.
_TEST_TIMEOUT_US = 10_000_000
#: How long a connection stays open in a test of a certificate, so that its refusal arrives.
_CERTIFICATE_LOOKED_AT_US = 500_000


class Client(Requester, Protocol):
    """What tests of credentials need of the HTTP client, too."""

    async def open(self, url: str, tls: Tls | None, timeout_us: int, stays_us: int = 0) -> NoResponse | NotSent | None:
        """Opens a connection to the URL's origin, and closes it; why there is none, else None."""


class CredentialCaller:
    """A `tocsin.ports.http.Caller` that has another one send requests, with the credentials that they name; also a
    `tocsin.ports.credentials.CredentialGate`. A request whose credential can't be sent now is reported as NoCredential."""

    def __init__(
        self, inner: Caller, client: Client, clock: Clock, seals: Seals, signer: JwtSigner | None = None
    ) -> None:
        self._inner, self._client = inner, client
        self._tools = Tools(client, clock, seals, signer, self.woken)
        self._held: dict[tuple[str, str], Held] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False
        #: Called when a credential that could not be sent may be by now: for timers, and for service calls.
        self.ready: Callable[[], object] = lambda: None
        self.ready_for_calls: dict[Callable[[], object], None] = {}

    def destination(self, url: str) -> str:
        """The key of the URL's concurrency limit."""
        return self._inner.destination(url)

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Starts the attempt."""
        name = invocation.credential
        if not name:
            self._inner.invoke(invocation, done)
            return
        destination = self._inner.destination(invocation.url)
        found = self._look(invocation.namespace, name, destination)
        if isinstance(found, str):
            outcome = NoCredential(CREDENTIAL_NOT_READY, f"credential {name}: {found}", destination)
            asyncio.get_running_loop().call_soon(done, Exchange(outcome, None, 0))
            return
        held, ready = found
        identity, secrets = ready

        def answered(exchange: Exchange) -> None:
            outcome = exchange.outcome
            if isinstance(outcome, Response) and held.answered(destination, ready, outcome.status):
                outcome = StaleToken(outcome.status, outcome.body, outcome.retry_after, outcome.truncated)
            done(exchange._replace(outcome=outcome, secrets=secrets))

        self._inner.invoke(structs.replace(invocation, identity=identity), answered)

    async def close(self) -> None:
        """Ends the requests for tokens, then the other caller."""
        self._closed = True
        for held in self._held.values():
            self._end(held)
        self._held = {}
        await end_tasks(*self._ending)
        await self._inner.close()

    # ------------------------------------------------------------------ what is known

    def learn(self, credentials: Mapping[str, Mapping[str, Credential]]) -> None:
        """Takes over the credentials, by namespace and name. Tokens that they need are fetched."""
        if self._closed:
            return
        former, self._held = self._held, {}
        for named in credentials.values():
            for credential in named.values():
                place = (credential.namespace, credential.name)
                held = former.get(place)
                if held is not None and held.credential == credential:
                    del former[place]
                else:
                    held = hold(credential, self._tools, held)
                self._held[place] = held
        for each in former.values():
            self._end(each)
        self.woken()

    def obstacle(self, namespace: str, name: str, destination: str) -> str | None:
        """Why a request to the destination can't have the credential now."""
        found = self._look(namespace, name, destination)
        return found if isinstance(found, str) else None

    def identify(self, namespace: str, name: str, destination: str) -> SentIdentity | str:
        """What a request to the destination gets that is sent now, or why there is nothing."""
        found = self._look(namespace, name, destination)
        if isinstance(found, str):
            return found
        held, ready = found
        return SentIdentity(ready.identity, ready.secrets, partial(held.answered, destination, ready))

    @property
    def without_token(self) -> int:
        """Credentials that can't be sent now."""
        return sum(isinstance(held.ready(), str) for held in self._held.values() if held.credential.needs_token)

    def _look(self, namespace: str, name: str, destination: str) -> tuple[Held, Ready] | str:
        held = self._held.get((namespace, name))
        if held is None:
            return "it does not exist"
        if refusal(held.credential, namespace, name, destination) is not None:
            return f"it may not go to {destination}"
        ready = held.ready(destination)
        return ready if isinstance(ready, str) else (held, ready)

    def _end(self, held: Held) -> None:
        for task in held.close():
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def woken(self) -> None:
        """A credential that could not be sent may be by now. Each is called by itself: none fails for an error of another."""
        loop = asyncio.get_running_loop()
        for ready in (self.ready, *self.ready_for_calls):
            loop.call_soon(ready)

    # ------------------------------------------------------------------ test

    def refusal(self, credential: Credential, secret: str) -> FieldError | None:
        """What is wrong with its certificates and its private key, or that this node can't sign its JWTs."""
        if credential.type is CredentialType.JWT and self._tools.signer is None:
            return FieldError("type", NO_SIGNER)
        try:
            tls_of(credential, secret)
        except BadCertificate as error:
            return FieldError(error.field, error.reason)
        return None

    async def test(self, credential: Credential, url: str | None) -> CredentialTest:
        """Fetches or signs the token that the credential needs, and opens a connection to each of its origins; with a `url`,
        to which it may go, sends HEAD there instead. What happened, without secrets."""
        held = hold(credential, self._tools, keeps=False)
        try:
            ready = await held.renewed()
        finally:
            self._end(held)
        steps = []
        if credential.needs_token or isinstance(ready, str):
            steps.append(self._of_token(credential, ready))
        if not isinstance(ready, str):
            steps += await self._connections(credential, ready.identity, url)
        return CredentialTest(all(step.ok for step in steps), tuple(steps))

    def _of_token(self, credential: Credential, ready: Ready | str) -> TestStep:
        issued = credential.type is CredentialType.OAUTH2
        target = self._inner.destination(credential.token_url) if issued else credential.name
        if isinstance(ready, str):
            return TestStep("token" if credential.needs_token else "secret", target, False, ready)
        return TestStep("token", target, True, "a token was issued" if issued else "a token was signed")

    async def _connections(self, credential: Credential, identity: Identity, url: str | None) -> list[TestStep]:
        if url is not None:
            return [await self._request(url, identity)]
        steps = []
        for origin in credential.origins:
            stays_us = _CERTIFICATE_LOOKED_AT_US if credential.certificate else 0
            failed = await self._client.open(origin, identity.tls, _TEST_TIMEOUT_US, stays_us)
            detail = "connected" if failed is None else described(failed)
            steps.append(TestStep("connection", origin, failed is None, detail))
        return steps

    async def _request(self, url: str, identity: Identity) -> TestStep:
        headers = (("authorization", identity.authorization),) if identity.authorization else ()
        result = await send(self._client, Request("HEAD", url, headers, None, _TEST_TIMEOUT_US, tls=identity.tls))
        origin = self._inner.destination(url)
        if isinstance(result.outcome, (NoResponse, NotSent)):
            return TestStep("request", origin, False, described(result.outcome))
        status = result.outcome.status
        return TestStep("request", origin, status not in (401, 403), f"HEAD was answered with {status}")
