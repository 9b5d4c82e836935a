"""The credentials of namespaces: how they are read and changed, and which requests may name them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.administration import CREDENTIAL_RECORDS
from tocsin.model.credential import CREDENTIALS_MAX, Credential
from tocsin.model.credential_type import SECRET_OF
from tocsin.model.errors import CredentialNotFound, FieldError, InvalidInput, TooManyCredentials
from tocsin.model.hooks import Hook, field_of
from tocsin.model.stored_secrets import hooks_by_event
from tocsin.model.timer import Changes, Timer
from tocsin.ports.credentials import CredentialTest, CredentialTester
from tocsin.ports.seals import SealBroken
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.namespaces import Namespaces
from tocsin.timers.scoped_records import ScopedRecords

#: A use of a credential: the request's field, the credential's name, the URL.
Use = tuple[str, str, str]


def uses_of(call: Timer | Changes) -> list[Use]:
    """The uses of credentials by a timer, or by those of its changes that have both a credential and a URL."""
    credential, url = call.credential or "", call.url or ""
    uses = [("credential", credential, url)] if credential and url else []
    return uses + uses_of_hooks(hooks_by_event(call)) if call.hooks else uses


def uses_of_hooks(hooks: Mapping[str, Hook | None]) -> list[Use]:
    """The uses of credentials by hooks, which are given by their events."""
    return [
        (f"{field_of(event)}.credential", hook.credential, hook.url)
        for event, hook in hooks.items()
        if hook is not None and hook.credential
    ]


def names_credential(timer: Timer) -> bool:
    """Whether the timer or one of its hooks names a credential."""
    return bool(timer.credential) or (timer.hooks is not None and bool(uses_of_hooks(hooks_by_event(timer))))


class _Known:
    """The credentials of a namespace, as this node knows them."""

    def __init__(self, by_name: Mapping[str, Credential]) -> None:
        self._by_name = by_name

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str, /) -> Credential | None:
        """The one of that name."""
        return self._by_name.get(name)

    def all(self) -> list[Credential]:
        """All of them, by name."""
        return sorted(self._by_name.values(), key=lambda each: each.name)


class StoredCredentials(ScopedRecords[Credential]):
    """The credentials of namespaces."""

    kind, without, not_found = "credential", "it has no credentials", CredentialNotFound
    most, too_many, full = CREDENTIALS_MAX, TooManyCredentials, "credentials, the maximum"
    records = CREDENTIAL_RECORDS

    def __init__(
        self, context: Context, supervisor: Supervisor, namespaces: Namespaces, tester: CredentialTester
    ) -> None:
        super().__init__(context, supervisor, namespaces)
        self._seals, self._tester = context.seals, tester

    def known(self, namespace: str) -> _Known:
        return _Known(self._context.credentials.get(namespace, {}))

    async def get(self, namespace: str, name: str) -> Credential:
        """The credential. Raises CredentialNotFound."""
        return self._found((await self._stored(namespace)).get(name), namespace, name)

    async def page(self, namespace: str, after: str, limit: int) -> tuple[list[Credential], bool]:
        """The first credentials behind the name `after`, by name, and whether more follow."""
        return await self._page(namespace, after, limit)

    async def put(
        self,
        wanted: Credential,
        secret: str | None,
        managed_by: str | UnsetType | None = UNSET,
        expected_version: int | None = None,
        *,
        dry_run: bool = False,
    ) -> tuple[Credential, bool]:
        """Creates the credential, or replaces all that it has; without a `secret`, in clear, it keeps the stored one, and its
        mark of who manages it if none is given. Its version and instants are ignored. Returns it as it is stored, and whether
        that has changed; with `dry_run` as it would be, and nothing is written. Raises InvalidInput also if the kept secret
        would be sent elsewhere than before, TooManyCredentials, and VersionConflict if the credential has not the version
        that is expected (0: there is none)."""

        def sealed(known: Credential | None) -> Credential:
            return msgspec.structs.replace(wanted, secret=self._secret(wanted, secret, known))

        return await self._put(wanted, managed_by, expected_version, sealed, self._refuse_unusable, dry_run=dry_run)

    async def delete(self, namespace: str, name: str, expected_version: int | None = None) -> None:
        """Removes the credential: what names it waits until there is one of its name. Raises CredentialNotFound, and
        VersionConflict if it has not the version that is expected."""
        await self._delete(namespace, name, expected_version)

    def destination(self, url: str) -> str:
        """Scheme, host and port of a URL."""
        return self._context.caller.destination(url)

    async def test(self, namespace: str, name: str, url: str | None) -> CredentialTest:
        """What happens when the credential is tried: its token, connections to its origins, or a request to the URL. Raises
        CredentialNotFound, and InvalidInput if it may not go to the URL."""
        credential = await self.get(namespace, name)
        if url is not None:
            reason = self._context.credential_check.refusal(namespace, name, url)
            if reason is not None:
                raise InvalidInput(FieldError("url", f"is not for this credential: it {reason}"))
        return await self._tester.test(credential, url)

    async def check(self, namespace: str, uses: list[Use]) -> None:
        """Raises InvalidInput for each use of a credential that the namespace doesn't have, or that may not go to the URL."""
        await self.refresh(namespace, [name for _, name, _ in uses])
        self._context.credential_check.check(namespace, uses)

    async def refresh(self, namespace: str, names: Collection[str]) -> None:
        """Has this node know those of these credentials that another node has just created."""
        if any(self._context.credential(namespace, name) is None for name in names):
            await self._namespaces.refresh()

    def refusal(self, namespace: str, name: str, url: str) -> str | None:
        """Why a request to the URL may not have the credential, as far as this node knows; None if it may."""
        return self._context.credential_check.refusal(namespace, name, url)

    async def checked(
        self, namespace: str, changes: Changes, stored_url: Callable[[], Awaitable[str]] | None = None
    ) -> Changes:
        """The changes of a timer or schedule, checked as far as they and `stored_url` show it, and with the credentials that
        may go to their new URL. Raises InvalidInput, and what `stored_url` raises."""
        uses = uses_of(changes)
        if changes.credential and changes.url is UNSET and stored_url is not None:
            uses.append(("credential", changes.credential, await stored_url()))
        if uses:
            await self.check(namespace, uses)
        known = self._context.credentials.get(namespace)
        if not known or changes.url is UNSET:
            return changes
        check, wanted = self._context.credential_check, changes.url
        permitted = tuple(name for name in known if check.refusal(namespace, name, wanted) is None)
        return msgspec.structs.replace(changes, permitted=permitted)

    # ------------------------------------------------------------------ helpers

    async def _refuse_unusable(self, changed: Credential) -> None:
        """Raises InvalidInput for one whose parts do not fit together."""
        clear = self._clear(changed) if changed.secret else ""
        # To read the system's authorities holds up a thread for tens of milliseconds.
        if (bad := await asyncio.to_thread(self._tester.refusal, changed, clear)) is not None:
            raise InvalidInput(bad)

    def _secret(self, wanted: Credential, secret: str | None, known: Credential | None) -> str:
        """The secret as it is stored."""
        field = SECRET_OF.get(wanted.type)
        if field is None:
            return ""
        if secret is not None:
            return self._seals.seal(secret, wanted.seal_context)
        if known is None or known.type is not wanted.type:
            raise InvalidInput(FieldError(field, f"is missing; a credential of type {wanted.type} requires it"))
        if wanted.leads_elsewhere(known):
            # Otherwise whoever may change a credential could have its secret sent to themselves.
            reason = "is missing; send it again, because hosts, tokenUrl or ca would have the stored one sent elsewhere"
            raise InvalidInput(FieldError(field, reason))
        return known.secret

    def _clear(self, credential: Credential) -> str:
        """Its secret in clear."""
        try:
            return self._seals.open(credential.secret, credential.seal_context)
        except SealBroken as error:
            reason = f"is missing; send it again, because the stored one can't be decrypted: {error}"
            raise InvalidInput(FieldError(SECRET_OF[credential.type], reason)) from None

    async def reseal(self, credential: Credential) -> bool:
        """Encrypts its secret again under the present key, unless it has changed; whether it was. Raises Unavailable."""

        def change(known: Credential | None) -> Credential:
            found = self._found(known, credential.namespace, credential.name)
            if found != credential:
                return found
            clear = self._seals.open(credential.secret, credential.seal_context)
            return msgspec.structs.replace(
                credential,
                secret=self._seals.seal(clear, credential.seal_context),
                updated_at=self._context.clock.now_us(),
                version=credential.version + 1,
            )

        try:
            return (await self._change(credential.namespace, credential.name, change))[1]
        except (SealBroken, CredentialNotFound):
            return False
