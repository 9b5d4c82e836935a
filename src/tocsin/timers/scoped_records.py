"""What reading and changing has in common of what namespaces have many of, such as calendars: each has a name and a version,
is a record of the store, and is known to every node."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, Generic, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.administration import ScopedKind, name_of
from tocsin.model.calendar import Calendar
from tocsin.model.credential import Credential
from tocsin.model.errors import Conflict, FieldError, InvalidInput, NamespaceDeleting, NamespaceNotFound, NotFound
from tocsin.model.flow import Flow
from tocsin.model.namespace import RESERVED_PREFIX
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.namespaces import Namespaces, refuse_version, until_known_everywhere

#: Attempts at a change that others change at the same time.
_TRIES_MAX = 10


R = TypeVar("R", Flow, Calendar, Credential)


class KnownRecords(Protocol[R]):
    """Those of a namespace, as this node knows them."""

    def __len__(self) -> int: ...

    def get(self, name: str, /) -> R | None:
        """The one of that name."""

    def all(self) -> list[R]:
        """All of them, by name."""


class ScopedRecords(ABC, Generic[R]):
    """All methods raise NamespaceNotFound and Unavailable, and those that change something NamespaceDeleting, Conflict and
    InvalidInput. A change returns when every node that may fire a timer applies it, as `Namespaces.update` does."""

    #: What one is, in a sentence; why the server's own namespaces have none; the error where there is none of a name.
    kind: ClassVar[str]
    without: ClassVar[str]
    not_found: ClassVar[type[NotFound]]
    #: How many a namespace has at most, the error beyond that, and how its text goes on behind the number.
    most: ClassVar[int]
    too_many: ClassVar[type[Conflict]]
    full: ClassVar[str]
    #: How they are stored.
    records: ScopedKind[R]

    def __init__(self, context: Context, supervisor: Supervisor, namespaces: Namespaces) -> None:
        self._context, self._supervisor, self._namespaces = context, supervisor, namespaces
        # One change at a time on this node, so that changes don't force one another to retry.
        self._turn = asyncio.Lock()

    @abstractmethod
    def known(self, namespace: str) -> KnownRecords[R]:
        """Those of the namespace, as this node knows them."""

    # ------------------------------------------------------------------ reading

    async def _stored(self, namespace: str) -> KnownRecords[R]:
        """Those of the namespace, as they are stored."""
        await self._namespaces.refresh()
        self._namespaces.get(namespace)
        return self.known(namespace)

    def _found(self, record: R | None, namespace: str, name: str) -> R:
        if record is None:
            raise self.not_found(
                f"namespace {namespace!r} has no {self.kind} {name!r}; create it with {self.kind}s/put"
            )
        return record

    async def _page(self, namespace: str, after: str, limit: int) -> tuple[list[R], bool]:
        """The first ones behind the name `after`, by name, and whether more follow."""
        records = (await self._stored(namespace)).all()
        records = records[bisect_right(records, after, key=name_of) :]
        return records[:limit], len(records) > limit

    async def _first(self, namespaces: Iterable[str], most: int) -> tuple[list[R], bool]:
        """The first ones of these namespaces, by namespace and name, and whether more follow."""
        await self._namespaces.refresh()
        found: list[R] = []
        for namespace in sorted(namespaces):
            found += self.known(namespace).all()
            if len(found) > most:
                break
        return found[:most], len(found) > most

    # ------------------------------------------------------------------ changing

    def _refuse_version(self, name: str, known: R | None, expected: int | None) -> None:
        refuse_version(f"{self.kind} {name!r}", 0 if known is None else known.version, expected)

    async def _refresh_to_change(self, namespace: str) -> None:
        if namespace.startswith(RESERVED_PREFIX):
            reason = f"begins with {RESERVED_PREFIX!r}, which is reserved for the server: {self.without}"
            raise InvalidInput(FieldError("namespace", reason))
        await self._stored(namespace)
        self._namespaces.refuse_deleting(namespace)

    async def _put(
        self,
        wanted: R,
        managed_by: str | UnsetType | None,
        expected_version: int | None,
        complete: Callable[[R | None], R] | None = None,
        check: Callable[[R], Awaitable[None]] | None = None,
        *,
        dry_run: bool = False,
    ) -> tuple[R, bool]:
        """Creates what is wanted, or replaces all that the present one has; its mark of who manages it stays if none is
        given. Versions and instants of what is wanted are ignored. `complete` returns it with what it has of the present one;
        `check` and `dry_run` are as in `_change`. Raises VersionConflict if the present one has not the version that is
        expected (0: there is none), and the error for too many."""
        namespace, name = wanted.namespace, name_of(wanted)

        def change(known: R | None) -> R:
            self._refuse_version(name, known, expected_version)
            if known is None and len(self.known(namespace)) >= self.most:
                raise self.too_many(f"namespace {namespace!r} has {self.most} {self.full}")
            now = self._context.clock.now_us()
            made = wanted if complete is None else complete(known)
            if known is None:
                mark = managed_by or None
                return msgspec.structs.replace(made, created_at=now, updated_at=now, version=1, managed_by=mark)
            same = msgspec.structs.replace(
                made,
                # One that stands for a damaged record has none.
                created_at=known.created_at or now,
                updated_at=known.updated_at,
                version=known.version,
                managed_by=known.managed_by if managed_by is UNSET else managed_by,
            )
            return known if same == known else msgspec.structs.replace(same, updated_at=now, version=known.version + 1)

        return await self._change(namespace, name, change, check, dry_run=dry_run)

    async def _change(
        self,
        namespace: str,
        name: str,
        change: Callable[[R | None], R],
        check: Callable[[R], Awaitable[None]] | None = None,
        *,
        dry_run: bool = False,
    ) -> tuple[R, bool]:
        """Stores what `change` makes of the present one, unless `check` raises; returns it, and whether it differs. What
        returns the very same one changes nothing. A `dry_run` does the same, but writes nothing."""
        async with self._turn:
            changed = await self._change_stored(namespace, name, change, check, dry_run=dry_run)
        if not dry_run:
            await self._apply_everywhere()
        return changed

    async def _change_stored(
        self,
        namespace: str,
        name: str,
        change: Callable[[R | None], R],
        check: Callable[[R], Awaitable[None]] | None,
        *,
        dry_run: bool,
    ) -> tuple[R, bool]:
        """Makes the change to what is stored, again if others change it at the same time."""
        for _ in range(_TRIES_MAX):
            await self._refresh_to_change(namespace)
            known = self.known(namespace).get(name)
            changed = change(known)
            if changed is known:
                return changed, False
            if check is not None:
                await check(changed)
            if dry_run:
                return changed, True
            if await self._namespaces.read(self.records.put(self._context.store, changed)):
                await self._namespaces.refresh()
                if known is None:
                    await self._withdraw_orphan(namespace, name)
                return changed, True
        raise self._changed_by_others(namespace, name)

    async def _delete(
        self,
        namespace: str,
        name: str,
        expected_version: int | None,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Removes it as it was when it was checked, unless `check` raises."""
        async with self._turn:
            await self._delete_stored(namespace, name, expected_version, check)
        await self._apply_everywhere()

    async def _delete_stored(
        self, namespace: str, name: str, expected_version: int | None, check: Callable[[], Awaitable[None]] | None
    ) -> None:
        """Removes what is stored, and looks at it again if others change it at the same time."""
        store = self._context.store
        for _ in range(_TRIES_MAX):
            await self._refresh_to_change(namespace)
            known = self._found(self.known(namespace).get(name), namespace, name)
            self._refuse_version(name, known, expected_version)
            if check is not None:
                await check()
            # The check may take seconds. What another node has acknowledged meanwhile is not removed.
            if await self._namespaces.read(self.records.take(store, namespace, name, known.version)):
                await self._namespaces.read(self.records.delete(store, namespace, name))
                await self._namespaces.refresh()
                return
        raise self._changed_by_others(namespace, name)

    def _changed_by_others(self, namespace: str, name: str) -> Conflict:
        what = f"{self.kind} {name!r} in namespace {namespace!r}"
        return Conflict(f"others changed {what} at the same time {_TRIES_MAX} times; try again")

    async def _withdraw_orphan(self, namespace: str, name: str) -> None:
        """Removes one that was created while its namespace was deleted, whose others may have been removed before. Raises
        NamespaceNotFound, NamespaceDeleting then."""
        try:
            self._namespaces.get(namespace)
            self._namespaces.refuse_deleting(namespace)
        except (NamespaceNotFound, NamespaceDeleting):
            await self._namespaces.read(self.records.delete(self._context.store, namespace, name))
            raise

    async def _apply_everywhere(self) -> None:
        """Returns when every node that may fire a timer applies them as they are stored (rule 23)."""
        peers = self._namespaces.peers
        if peers is not None:
            await until_known_everywhere(self._context, self._supervisor.membership, peers)
