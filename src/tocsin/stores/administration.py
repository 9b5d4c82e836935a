"""Namespaces, API keys, secrets, sign-ins and the audit trail in stores without SQL.

Each of these stores has a module `access` with the requests to its database. Here is what they have in common as stores.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry
from tocsin.model.errors import StoreUnavailable
from tocsin.model.namespace import Namespace
from tocsin.ports.store import AuditQuery, SignIn

C = TypeVar("C")
D = TypeVar("D", contravariant=True)


class Access(Protocol[D]):
    """A module `access`: the methods of `Administration`, each with the store's client before the other arguments."""

    async def namespaces(self, client: D, /) -> list[Namespace]: ...
    async def put_namespace(self, client: D, namespace: Namespace, /, *, create: bool) -> bool: ...
    async def api_keys(self, client: D, /) -> list[ApiKey]: ...
    async def put_api_key(self, client: D, api_key: ApiKey, /) -> None: ...
    async def delete_api_key(self, client: D, key_id: str, /) -> bool: ...
    async def shared_secret(self, client: D, name: str, fresh: str, /) -> str: ...
    async def put_sign_in(self, client: D, sign_in: SignIn, now_us: int, keep: int, /) -> None: ...
    async def sign_ins(self, client: D, token_hashes: Sequence[str], /) -> list[SignIn]: ...
    async def touch_sign_in(self, client: D, token_hash: str, seen_at: int, /) -> bool: ...
    async def delete_sign_in(self, client: D, token_hash: str, /) -> bool: ...
    async def put_audit(self, client: D, entry: AuditEntry, /) -> None: ...
    async def audit(self, client: D, query: AuditQuery, /) -> list[AuditEntry]: ...
    async def purge_audit(self, client: D, before_us: int, limit: int, /) -> int: ...


class Administration(Generic[C]):
    """The part of a store that administers it. `place` names the store in errors."""

    def __init__(self, access: Access[C], place: str) -> None:
        self._access = access
        self._place = place
        #: While the store is open.
        self._client: C | None = None

    @property
    def _open(self) -> C:
        if self._client is None:
            raise StoreUnavailable(f"{self._place} is not open")
        return self._client

    async def namespaces(self) -> builtins.list[Namespace]:
        """All namespaces, by name."""
        return await self._access.namespaces(self._open)

    async def put_namespace(self, namespace: Namespace, *, create: bool) -> bool:
        """With `create`, inserts the namespace; False when it already exists."""
        return await self._access.put_namespace(self._open, namespace, create=create)

    async def api_keys(self) -> builtins.list[ApiKey]:
        """All API keys, by key_id."""
        return await self._access.api_keys(self._open)

    async def put_api_key(self, key: ApiKey) -> None:
        """Inserts the key, or replaces the one with its `key_id`."""
        await self._access.put_api_key(self._open, key)

    async def delete_api_key(self, key_id: str) -> bool:
        """Removes the key and its sign-ins."""
        return await self._access.delete_api_key(self._open, key_id)

    async def shared_secret(self, name: str, fresh: str) -> str:
        """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
        stored."""
        return await self._access.shared_secret(self._open, name, fresh)

    async def put_sign_in(self, sign_in: SignIn, now_us: int, keep: int) -> None:
        """Stores a sign-in, or replaces the one with its `token_hash`."""
        await self._access.put_sign_in(self._open, sign_in, now_us, keep)

    async def sign_ins(self, token_hashes: Sequence[str]) -> builtins.list[SignIn]:
        """The stored sign-ins with these token hashes, expired ones included, in any order."""
        return await self._access.sign_ins(self._open, token_hashes)

    async def touch_sign_in(self, token_hash: str, seen_at: int) -> bool:
        """Updates the sign-in's last use, never to an earlier instant."""
        return await self._access.touch_sign_in(self._open, token_hash, seen_at)

    async def delete_sign_in(self, token_hash: str) -> bool:
        """Removes the sign-in."""
        return await self._access.delete_sign_in(self._open, token_hash)

    async def put_audit(self, entry: AuditEntry) -> None:
        """Stores an entry."""
        await self._access.put_audit(self._open, entry)

    async def audit(self, query: AuditQuery) -> builtins.list[AuditEntry]:
        """At most `limit` entries by (at, entry_id), descending."""
        return await self._access.audit(self._open, query)

    async def purge_audit(self, before_us: int, limit: int) -> int:
        """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
        return await self._access.purge_audit(self._open, before_us, limit)
