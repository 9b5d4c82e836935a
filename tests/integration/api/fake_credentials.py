"""Credentials in memory."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin.http_client.target import InvalidUrl, parse_url
from tocsin.model.credential import Credential
from tocsin.model.errors import CredentialNotFound, FieldError, InvalidInput
from tocsin.model.timer import Changes
from tocsin.ports.credentials import CredentialTest
from tocsin.timers.credentials import StoredCredentials, Use

_AT = 1_700_000_000_000_000


class FakeCredentials(StoredCredentials):
    """What handlers call of `StoredCredentials`. `check` raises what a request about a namespace is refused with; timers may
    name each credential that there is."""

    def __init__(self, check: Callable[[str], None]) -> None:
        self._refuse = check
        self._known: dict[tuple[str, str], Credential] = {}

    def destination(self, url: str) -> str:
        try:
            return parse_url(url).origin.destination
        except InvalidUrl:
            return "invalid:"

    async def get(self, namespace: str, name: str) -> Credential:
        self._refuse(namespace)
        if (namespace, name) not in self._known:
            raise CredentialNotFound(f"namespace {namespace!r} has no credential {name!r}")
        return self._known[namespace, name]

    async def put(
        self,
        wanted: Credential,
        secret: str | None,
        managed_by: str | msgspec.UnsetType | None = msgspec.UNSET,
        expected_version: int | None = None,
        *,
        dry_run: bool = False,
    ) -> tuple[Credential, bool]:
        self._refuse(wanted.namespace)
        stored = msgspec.structs.replace(
            wanted, created_at=_AT, updated_at=_AT, version=1, managed_by=managed_by or None
        )
        if not dry_run:
            self._known[wanted.namespace, wanted.name] = stored
        return stored, True

    async def delete(self, namespace: str, name: str, expected_version: int | None = None) -> None:
        await self.get(namespace, name)
        del self._known[namespace, name]

    async def test(self, namespace: str, name: str, url: str | None) -> CredentialTest:
        await self.get(namespace, name)
        return CredentialTest(True, ())

    async def check(self, namespace: str, uses: list[Use]) -> None:
        errors = [FieldError(field, "is unknown") for field, name, _ in uses if (namespace, name) not in self._known]
        if errors:
            raise InvalidInput(*errors)

    async def checked(self, namespace: str, changes: Changes, stored_url: object = None) -> Changes:
        return changes

    async def page(self, namespace: str, after: str, limit: int) -> tuple[list[Credential], bool]:
        self._refuse(namespace)
        found = [each for (owner, name), each in sorted(self._known.items()) if owner == namespace and name > after]
        return found[:limit], len(found) > limit
