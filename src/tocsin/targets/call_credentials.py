"""The credentials of service calls: those of one namespace, which the settings name."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tocsin.ports.credentials import SentIdentity
from tocsin.targets.credentials import CredentialCaller
from tocsin.timers.credentials import StoredCredentials


class OfNamespace:
    """The port `CallCredentials`. Tenants have no credentials of their own: who may have a call send one is decided where the
    call is submitted, by what the client may do in the namespace."""

    def __init__(self, namespace: str, stored: StoredCredentials, caller: CredentialCaller) -> None:
        self.namespace, self._stored, self._caller = namespace, stored, caller

    async def refresh(self, names: Collection[str]) -> None:
        await self._stored.refresh(self.namespace, names)

    def refusal(self, name: str, url: str) -> str | None:
        return self._stored.refusal(self.namespace, name, url)

    def destination(self, url: str) -> str:
        return self._stored.destination(url)

    def obstacle(self, name: str, destination: str) -> str | None:
        return self._caller.obstacle(self.namespace, name, destination)

    def identify(self, name: str, destination: str) -> SentIdentity | str:
        return self._caller.identify(self.namespace, name, destination)

    def attach(self, ready: Callable[[], object]) -> None:
        self._caller.ready_for_calls[ready] = None

    def detach(self, ready: Callable[[], object]) -> None:
        self._caller.ready_for_calls.pop(ready, None)
