"""The credentials of a simulated process, with the real part that fetches their tokens; and the issuer of these, which fails
for a while and is given other secrets."""

from __future__ import annotations

import asyncio
import base64
import contextvars
import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from msgspec import structs

from tocsin.model.answer import NoResponse
from tocsin.model.credential import Credential
from tocsin.model.credential_type import CredentialType
from tocsin.ports.credentials import NoCallCredentials, SentIdentity
from tocsin.ports.http import Reply, Request, Result
from tocsin.ports.seals import NoSeals
from tocsin.targets.credentials import CredentialCaller

if TYPE_CHECKING:
    from .world import World

NAMES = ("first", "second")
_NAMESPACE = "default"
#: How long a token is valid: some expire between the start of an execution and its request.
_LIFETIME_S = (1, 5, 60)


class _Issued(NamedTuple):
    name: str
    expires_at: int


class Issuer:
    """The credentials as they are stored, and the endpoint that issues their tokens. `away` is how it fails: "" (not at all),
    "refusing", "hanging" or "broken"."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng = world, rng
        self.away = ""
        origins = ("a", "b", "slow", "hung")
        self.stored = {
            name: Credential(
                _NAMESPACE, name, CredentialType.OAUTH2, 0, 0, origins, f"{name}-1", token_url="http://issuer/token",
                client_id=name,
            )
            for name in NAMES
        }  # fmt: skip
        self._removed: dict[str, Credential] = {}
        self._issued: dict[str, _Issued] = {}
        self._lifetime_s = rng.choice(_LIFETIME_S)

    async def fail(self, until_s: float) -> None:
        """Failures, each repaired after a while; they overlap those of other parts."""
        world, rng = self._world, self._rng
        while world.loop.time() < until_s:
            await asyncio.sleep(rng.uniform(1, 30))
            await rng.choice((self._leave, self._leave, self._rotate, self._remove))()

    async def _leave(self) -> None:
        self.away = self._rng.choice(("refusing", "hanging", "broken"))
        self._world.log("issuer", self.away)
        await self._a_while()
        self.away = ""
        self._world.log("issuer back")

    async def _rotate(self) -> None:
        """From now on only the next secret is accepted. It is put at once, or after a while without a token."""
        name = self._rng.choice(NAMES)
        known = self.stored[name]
        number = known.version + 1
        changed = structs.replace(known, secret=f"{name}-{number}", version=number)
        self._world.log("credential rotated", name)
        # The issuer knows it from what is stored.
        self._removed[name] = changed
        await asyncio.sleep(self._rng.choice((0, 5)))
        self._put(self._removed.pop(name))

    async def _remove(self) -> None:
        name = self._rng.choice(NAMES)
        self._world.log("credential removed", name)
        self._removed[name] = self.stored.pop(name)
        self._changed()
        await self._a_while()
        self._put(self._removed.pop(name))

    async def _a_while(self) -> None:
        await asyncio.sleep(self._rng.choice((2, 20, 90)) * self._rng.random())

    def _put(self, credential: Credential) -> None:
        self.stored[credential.name] = credential
        self._changed()

    def _changed(self) -> None:
        for process in self._world.processes:
            process.inside(process.learn(self._rng.uniform(0, 1)))

    def issue(self, request: Request) -> Reply | NoResponse | None:
        """The answer to a request for a token; None: there is none."""
        if self.away:
            failed: dict[str, Reply | NoResponse] = {
                "refusing": NoResponse("CONNECTION_FAILED"),
                "broken": Reply(503, (), b"", False),
            }
            return failed.get(self.away)
        authorization = dict(request.headers)["authorization"].removeprefix("Basic ")
        name, _, secret = base64.b64decode(authorization).decode().partition(":")
        present = self._removed.get(name) or self.stored[name]
        if secret != present.secret:
            return Reply(401, (), b'{"error": "invalid_client"}', False)
        token = f"token-{len(self._issued)}"
        self._issued[token] = _Issued(name, self._world.now_us() + self._lifetime_s * 1_000_000)
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": self._lifetime_s}
        return Reply(200, (), json.dumps(answer).encode(), False)

    def check(self, call: int, request: Request) -> None:
        """A request of a call is about to be sent: it has the token that its credential needs."""
        needed = self._world.clients[call].credential
        sent = dict(request.headers).get("authorization")
        token = self._issued.get((sent or "").removeprefix("Bearer "))
        if needed is None:
            if sent is not None:
                self._world.broken("IDENTITY", f"call {call} names no credential, and has {sent}")
        elif token is None or token.name != needed or token.expires_at <= self._world.now_us():
            self._world.broken("IDENTITY", f"call {call} needs {needed}, and has {sent}: {token}")


class _Endpoint:
    """The client of one process for requests to the issuer: its callbacks belong to the process."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng("tokens", len(world.processes))
        self._context = contextvars.copy_context()

    def destination(self, url: str) -> str:
        return urlsplit(url).netloc

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        began_us, outcome = self._world.now_us(), self._world.issuer.issue(request)
        delay_s = self._rng.uniform(0.01, 0.5)
        if outcome is None:
            outcome, delay_s = NoResponse("TIMEOUT"), request.timeout_us / 1e6
        result = Result(outcome, began_us, round(delay_s * 1e6))
        self._context.run(self._world.loop.call_later, delay_s, done, result)

    async def close(self) -> None:
        """There is nothing to close."""


class SimulatedCredentials(NoCallCredentials):
    """The port CallCredentials of one process."""

    namespace = _NAMESPACE

    def __init__(self, world: World) -> None:
        endpoint: Any = _Endpoint(world)
        self._issuer = world.issuer
        self._caller = CredentialCaller(endpoint, endpoint, world, NoSeals())

    def learn(self) -> None:
        """Reads the credentials."""
        self._caller.learn({_NAMESPACE: dict(self._issuer.stored)})

    async def close(self) -> None:
        """Fetches no more tokens."""
        await self._caller.close()

    def refusal(self, name: str, url: str) -> str | None:
        return None

    def destination(self, url: str) -> str:
        return urlsplit(url).netloc

    def obstacle(self, name: str, destination: str) -> str | None:
        return self._caller.obstacle(_NAMESPACE, name, destination)

    def identify(self, name: str, destination: str) -> SentIdentity | str:
        return self._caller.identify(_NAMESPACE, name, destination)

    def attach(self, ready: Callable[[], object]) -> None:
        self._caller.ready_for_calls[ready] = None

    def detach(self, ready: Callable[[], object]) -> None:
        self._caller.ready_for_calls.pop(ready, None)
