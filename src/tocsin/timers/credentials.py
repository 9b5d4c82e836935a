"""The credentials of namespaces: how they are read and changed, and which requests may name them."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.administration import delete_credential, put_credential
from tocsin.model.credential import CREDENTIALS_MAX, Credential
from tocsin.model.credential_type import SECRET_OF
from tocsin.model.errors import (
    Conflict,
    CredentialNotFound,
    FieldError,
    InvalidInput,
    NamespaceDeleting,
    NamespaceNotFound,
    TooManyCredentials,
)
from tocsin.model.hooks import Hook, field_of
from tocsin.model.namespace import RESERVED_PREFIX
from tocsin.model.stored_secrets import hooks_by_event
from tocsin.model.timer import Changes, Timer
from tocsin.ports.credentials import CredentialTest, CredentialTester
from tocsin.ports.seals import SealBroken
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.namespaces import Namespaces, refuse_version, until_known_everywhere

#: Attempts at a change of a credential that others change at the same time.
_TRIES_MAX = 10

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


class StoredCredentials:
    """The credentials as they are stored. A change returns when every node that may fire a timer applies it, as
    `Namespaces.update` does. Every method raises NamespaceNotFound and Unavailable, and those that change something
    NamespaceDeleting, Conflict and InvalidInput."""

    def __init__(
        self,
        context: Context,
        supervisor: Supervisor,
        namespaces: Namespaces,
        tester: CredentialTester,
    ) -> None:
        self._context, self._supervisor, self._namespaces = context, supervisor, namespaces
        self._seals, self._tester = context.seals, tester
        # One change at a time on this node, so that changes don't force one another to retry.
        self._turn = asyncio.Lock()

    async def get(self, namespace: str, name: str) -> Credential:
        """The credential. Raises CredentialNotFound."""
        await self._stored(namespace)
        return self._found(namespace, name)

    async def put(
        self,
        wanted: Credential,
        secret: str | None,
        managed_by: str | UnsetType | None = UNSET,
        expected_version: int | UnsetType = UNSET,
        *,
        dry_run: bool = False,
    ) -> tuple[Credential, bool]:
        """Creates the credential, or replaces all that it has; without a `secret`, in clear, it keeps the stored one, and its
        mark of who manages it if none is given. Its version and instants are ignored. Returns it as it is stored, and whether
        that has changed; with `dry_run` as it would be, and nothing is written. Raises InvalidInput also if the kept secret
        would be sent elsewhere than before, TooManyCredentials, and VersionConflict if the credential has not the version
        that is expected (0: there is none)."""
        async with self._turn:
            credential, changed = await self._put(wanted, secret, managed_by, expected_version, dry_run=dry_run)
        if dry_run:
            return credential, changed
        await self._apply_everywhere()
        return credential, changed

    async def delete(self, namespace: str, name: str, expected_version: int | UnsetType = UNSET) -> None:
        """Removes the credential: what names it waits until there is one of its name. Raises CredentialNotFound, and
        VersionConflict if it has not the version that is expected."""
        async with self._turn:
            await self._refresh_to_change(namespace)
            _refuse_version(name, self._found(namespace, name), expected_version)
            await self._namespaces.read(delete_credential(self._context.store, namespace, name))
            await self._namespaces.refresh()
        await self._apply_everywhere()

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
        if any(self._context.credential(namespace, name) is None for _, name, _ in uses):
            # Another node may have created it.
            await self._namespaces.refresh()
        self._context.credential_check.check(namespace, uses)

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

    async def _stored(self, namespace: str) -> dict[str, Credential]:
        await self._namespaces.refresh()
        self._namespaces.get(namespace)
        return self._context.credentials.get(namespace, {})

    def _found(self, namespace: str, name: str) -> Credential:
        credential = self._context.credential(namespace, name)
        if credential is None:
            raise CredentialNotFound(
                f"namespace {namespace!r} has no credential {name!r}; create it with credentials/put"
            )
        return credential

    async def _refresh_to_change(self, namespace: str) -> None:
        if namespace.startswith(RESERVED_PREFIX):
            reason = f"begins with {RESERVED_PREFIX!r}, which is reserved for the server: it has no credentials"
            raise InvalidInput(FieldError("namespace", reason))
        await self._namespaces.refresh()
        self._namespaces.get(namespace)
        self._namespaces.refuse_deleting(namespace)

    async def _put(
        self,
        wanted: Credential,
        secret: str | None,
        managed_by: str | UnsetType | None,
        expected_version: int | UnsetType,
        *,
        dry_run: bool,
    ) -> tuple[Credential, bool]:
        namespace, name = wanted.namespace, wanted.name
        for _ in range(_TRIES_MAX):
            await self._refresh_to_change(namespace)
            known, now = self._context.credential(namespace, name), self._context.clock.now_us()
            _refuse_version(name, known, expected_version)
            if known is None and len(self._context.credentials.get(namespace, ())) >= CREDENTIALS_MAX:
                raise TooManyCredentials(f"namespace {namespace!r} has {CREDENTIALS_MAX} credentials, the maximum")
            sealed = self._secret(wanted, secret, known)
            clear = self._clear(wanted, sealed) if sealed and secret is None else secret or ""
            # To read the system's authorities holds up a thread for tens of milliseconds.
            if (bad := await asyncio.to_thread(self._tester.refusal, wanted, clear)) is not None:
                raise InvalidInput(bad)
            changed = msgspec.structs.replace(
                wanted,
                secret=sealed,
                managed_by=(None if known is None else known.managed_by) if managed_by is UNSET else managed_by,
                created_at=now if known is None else known.created_at,
                updated_at=now,
                version=1 if known is None else known.version + 1,
            )
            if known is not None and known == msgspec.structs.replace(
                changed, updated_at=known.updated_at, version=known.version
            ):
                return known, False
            if dry_run:
                return changed, True
            if await self._namespaces.read(put_credential(self._context.store, changed)):
                await self._namespaces.refresh()
                if known is None:
                    await self._withdraw_orphan(namespace, name)
                return changed, True
        raise Conflict(
            f"others changed credential {name!r} in namespace {namespace!r} at the same time {_TRIES_MAX} times; try again"
        )

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

    def _clear(self, wanted: Credential, sealed: str) -> str:
        """The secret that is stored, in clear."""
        try:
            return self._seals.open(sealed, wanted.seal_context)
        except SealBroken as error:
            reason = f"is missing; send it again, because the stored one can't be decrypted: {error}"
            raise InvalidInput(FieldError(SECRET_OF[wanted.type] or "secret", reason)) from None

    async def reseal(self, credential: Credential) -> bool:
        """Encrypts its secret again under the present key, unless it has changed; whether it was. Raises Unavailable."""
        try:
            clear = self._seals.open(credential.secret, credential.seal_context)
        except SealBroken:
            return False
        again = msgspec.structs.replace(
            credential,
            secret=self._seals.seal(clear, credential.seal_context),
            updated_at=self._context.clock.now_us(),
            version=credential.version + 1,
        )
        async with self._turn:
            stored = await self._namespaces.read(put_credential(self._context.store, again))
            await self._namespaces.refresh()
        await self._apply_everywhere()
        return stored

    async def _withdraw_orphan(self, namespace: str, name: str) -> None:
        """Removes a credential that was created while its namespace was deleted, whose credentials may have been removed
        before. Raises NamespaceNotFound, NamespaceDeleting then."""
        try:
            self._namespaces.get(namespace)
            self._namespaces.refuse_deleting(namespace)
        except (NamespaceNotFound, NamespaceDeleting):
            await self._namespaces.read(delete_credential(self._context.store, namespace, name))
            raise

    async def _apply_everywhere(self) -> None:
        """Returns when every node that may fire a timer applies the credentials as they are stored (rule 23)."""
        peers = self._namespaces.peers
        if peers is not None:
            await until_known_everywhere(self._context, self._supervisor.membership, peers)

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, namespace: str, after: str, limit: int) -> tuple[list[Credential], bool]:
        """The first credentials behind the name `after`, by name, and whether more follow."""
        stored = sorted((await self._stored(namespace)).values(), key=lambda each: each.name)
        found = stored[bisect_right(stored, after, key=lambda each: each.name) :]
        return found[:limit], len(found) > limit


def _refuse_version(name: str, known: Credential | None, expected: int | UnsetType) -> None:
    version = None if expected is UNSET else expected
    refuse_version(f"credential {name!r}", 0 if known is None else known.version, version)
