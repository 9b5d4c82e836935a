"""The port of what sends credentials: whether one can be sent now."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tocsin.model.credential import Credential
from tocsin.model.errors import FieldError


class CredentialGate(Protocol):
    """Knows which credentials can be sent. All methods are called on one event loop's thread."""

    def obstacle(self, namespace: str, name: str, destination: str) -> str | None:
        """Why a request to the destination can't have the credential now: it does not exist, may not go there, or has no
        token yet; None if it can. The reason names neither a secret nor a token."""


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


class PublishedKeys(Protocol):
    """The public keys by which receivers verify the JWTs that this service signs."""

    #: The URL below which receivers find them.
    issuer: str

    async def published(self) -> list[dict[str, str]]:
        """The keys as a JWK set has them. Raises StoreError, TimeoutError."""
