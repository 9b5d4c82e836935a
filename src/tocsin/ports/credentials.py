"""The port of what sends credentials: whether one can be sent now."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from tocsin.model.credential import Credential
from tocsin.model.errors import FieldError
from tocsin.ports.http import Identity


class CredentialGate(Protocol):
    """Knows which credentials can be sent. All methods are called on one event loop's thread."""

    def obstacle(self, namespace: str, name: str, destination: str) -> str | None:
        """Why a request to the destination can't have the credential now: it does not exist, may not go there, or has no
        token yet; None if it can. The reason names neither a secret nor a token."""


class SentIdentity(NamedTuple):
    """What one request of a service call identifies itself with, and the secrets in it. `answered` is called with the status
    of the service's answer; whether that is a 401 for which the token alone may be the reason, so that another one is
    fetched and the request may be made again with it."""

    identity: Identity
    secrets: tuple[str, ...]
    answered: Callable[[int], bool]


class CallCredentials(Protocol):
    """The credentials that service calls may name: those of one namespace. All methods are called on one event loop's
    thread."""

    #: The namespace.
    namespace: str

    async def refresh(self, names: Collection[str]) -> None:
        """Has this node know those of these credentials that another node has just created. Raises StoreError,
        Unavailable."""

    def refusal(self, name: str, url: str) -> str | None:
        """Why a call to the URL may not name the credential, phrased to follow the field's name; None if it may."""

    def destination(self, url: str) -> str:
        """Scheme, host and port of a URL."""

    def obstacle(self, name: str, destination: str) -> str | None:
        """Why a request to the destination can't have the credential now; None if it can."""

    def identify(self, name: str, destination: str) -> SentIdentity | str:
        """What a request to the destination gets that is sent now, or why there is nothing."""

    def attach(self, ready: Callable[[], object]) -> None:
        """From now on `ready` is called, too, when a credential that could not be sent may be."""

    def detach(self, ready: Callable[[], object]) -> None:
        """It is not called any more. Idempotent."""


class TestStep(NamedTuple):
    """One step of a test: what was tried (`secret`, `token`, `connection`, `request`), where, and what happened."""

    what: str
    target: str
    ok: bool
    detail: str


class CredentialTest(NamedTuple):
    """What became of a test: whether all steps succeeded, up to the first one without which there is no other."""

    ok: bool
    steps: tuple[TestStep, ...]


class CredentialTester(Protocol):
    """Tries credentials."""

    def refusal(self, credential: Credential, secret: str) -> FieldError | None:
        """What is wrong with its certificates and its private key, which is in clear, or that it can't be used on this node.
        Takes milliseconds; any thread may call it."""

    async def test(self, credential: Credential, url: str | None) -> CredentialTest:
        """Fetches the token that the credential needs, and opens a connection to each of its origins; with a `url`, to which
        it may go, sends HEAD there instead."""


class NoCredentials:
    """Stands for what sends credentials, where nothing does: none can be sent or tried."""

    def obstacle(self, namespace: str, name: str, destination: str) -> str | None:
        """There is none."""
        return "it does not exist"

    def refusal(self, credential: Credential, secret: str) -> FieldError | None:
        """Nothing is looked at."""
        return None

    async def test(self, credential: Credential, url: str | None) -> CredentialTest:
        """Nothing is tried."""
        return CredentialTest(True, ())


class NoCallCredentials:
    """Stands for the credentials of service calls, where there are none."""

    namespace = ""

    async def refresh(self, names: Collection[str]) -> None:
        """There is nothing to learn."""

    def refusal(self, name: str, url: str) -> str | None:
        """None may be named."""
        return f"names {name!r}, which does not exist"

    def destination(self, url: str) -> str:
        """No destination has a credential."""
        return ""

    def obstacle(self, name: str, destination: str) -> str | None:
        """There is none."""
        return "it does not exist"

    def identify(self, name: str, destination: str) -> SentIdentity | str:
        """There is nothing."""
        return "it does not exist"

    def attach(self, ready: Callable[[], object]) -> None:
        """Nothing becomes ready."""

    def detach(self, ready: Callable[[], object]) -> None:
        """Nothing was attached."""


class PublishedKeys(Protocol):
    """The public keys by which receivers verify the JWTs that this service signs."""

    #: The URL below which receivers find them.
    issuer: str

    async def published(self) -> list[dict[str, str]]:
        """The keys as a JWK set has them. Raises StoreError, TimeoutError."""
