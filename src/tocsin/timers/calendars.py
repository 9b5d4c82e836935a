"""The calendars of namespaces: how they are read and changed, and which schedules name them."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Collection

import msgspec

from tocsin.administration import delete_calendar, put_calendar
from tocsin.model.calendar import CALENDARS_MAX, Calendar, Calendars
from tocsin.model.errors import (
    CalendarInUse,
    CalendarNotFound,
    Conflict,
    FieldError,
    InvalidInput,
    NamespaceDeleting,
    NamespaceNotFound,
    TooManyCalendars,
)
from tocsin.model.ids import namespace_hash, shards_of_namespace
from tocsin.model.namespace import RESERVED_PREFIX
from tocsin.model.schedule import Definition
from tocsin.model.timer import planned_schedule
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.namespaces import Namespaces, refuse_version, until_known_everywhere

#: Attempts at a change of a calendar that others change at the same time.
_TRIES_MAX = 10
#: Schedules that one read returns when those are looked for that name a calendar; how many of them are counted, and named.
_PAGE_ROWS, _USERS_MAX, _NAMED_MAX = 500, 1_000, 5


class StoredCalendars:
    """The calendars as they are stored. A change returns when every node that may fire a timer applies it, as
    `Namespaces.update` does; schedules that wait are planned again soon afterwards. Every method raises NamespaceNotFound and
    Unavailable, and those that change something NamespaceDeleting, Conflict and InvalidInput."""

    def __init__(self, context: Context, supervisor: Supervisor, namespaces: Namespaces) -> None:
        self._context, self._supervisor, self._namespaces = context, supervisor, namespaces
        # One change at a time on this node, so that changes don't force one another to retry.
        self._turn = asyncio.Lock()

    def known(self, namespace: str) -> Calendars:
        """The calendars of the namespace, as this node knows them."""
        return self._context.calendars_of(namespace)

    async def get(self, namespace: str, name: str) -> Calendar:
        """The calendar. Raises CalendarNotFound."""
        return _found((await self._stored(namespace)).get(name), namespace, name)

    async def put(
        self,
        wanted: Calendar,
        managed_by: str | msgspec.UnsetType | None = msgspec.UNSET,
        expected_version: int | msgspec.UnsetType = msgspec.UNSET,
    ) -> tuple[Calendar, bool]:
        """Creates the calendar, or replaces all that it has; its mark of who manages it stays if none is given. Returns it as
        it is stored, and whether that has changed. Raises TooManyCalendars, and VersionConflict if the calendar has not the
        version that is expected (0: there is none)."""
        async with self._turn:
            calendar, changed = await self._put(wanted, managed_by, expected_version)
        await self._apply_everywhere()
        return calendar, changed

    async def delete(
        self, namespace: str, name: str, expected_version: int | msgspec.UnsetType = msgspec.UNSET
    ) -> None:
        """Removes the calendar. Raises CalendarNotFound, CalendarInUse if live schedules name it, and VersionConflict if it
        has not the version that is expected."""
        async with self._turn:
            await self._refresh_to_change(namespace)
            known = _found(self.known(namespace).get(name), namespace, name)
            _refuse_version(name, known, expected_version)
            await self._refuse_used(namespace, name)
            await self._namespaces.read(delete_calendar(self._context.store, namespace, name))
            await self._namespaces.refresh()
        await self._apply_everywhere()

    async def check(self, namespace: str, definition: Definition) -> None:
        """Raises InvalidInput if the definition names calendars that the namespace doesn't have."""
        if any(self.known(namespace).get(name) is None for name in definition.calendars):
            # Another node may have created it.
            await self._namespaces.refresh()
        known = self.known(namespace)
        errors = [
            FieldError(field, f"names calendar {name!r}, which namespace {namespace!r} doesn't have; create it first with "
                       "calendars/put")
            for field, names in (("only", definition.only), ("skip", definition.skip))
            for name in names
            if known.get(name) is None
        ]  # fmt: skip
        if errors:
            raise InvalidInput(*errors)

    # ------------------------------------------------------------------ helpers

    async def _stored(self, namespace: str) -> Calendars:
        await self._namespaces.refresh()
        self._namespaces.get(namespace)
        return self.known(namespace)

    async def _refresh_to_change(self, namespace: str) -> None:
        if namespace.startswith(RESERVED_PREFIX):
            reason = f"begins with {RESERVED_PREFIX!r}, which is reserved for the server: it has no calendars"
            raise InvalidInput(FieldError("namespace", reason))
        await self._namespaces.refresh()
        self._namespaces.get(namespace)
        self._namespaces.refuse_deleting(namespace)

    async def _put(
        self, wanted: Calendar, managed_by: str | msgspec.UnsetType | None, expected_version: int | msgspec.UnsetType
    ) -> tuple[Calendar, bool]:
        store, read, namespace = self._context.store, self._namespaces.read, wanted.namespace
        for _ in range(_TRIES_MAX):
            await self._refresh_to_change(namespace)
            all_known = self.known(namespace)
            known, now = all_known.get(wanted.name), self._context.clock.now_us()
            _refuse_version(wanted.name, known, expected_version)
            if known is None and len(all_known) >= CALENDARS_MAX:
                raise TooManyCalendars(
                    f"namespace {namespace!r} has {CALENDARS_MAX} calendars, the maximum; delete one, or put the dates into "
                    "another"
                )
            mark = (None if known is None else known.managed_by) if managed_by is msgspec.UNSET else managed_by
            changed = msgspec.structs.replace(wanted, created_at=now, updated_at=now, version=1, managed_by=mark)
            if known is not None:
                same = msgspec.structs.replace(
                    changed, created_at=known.created_at, updated_at=known.updated_at, version=known.version
                )
                if same == known:
                    return known, False
                changed = msgspec.structs.replace(changed, created_at=known.created_at, version=known.version + 1)
            if await read(put_calendar(store, changed)):
                await self._namespaces.refresh()
                if known is None:
                    await self._withdraw_orphan(namespace, wanted.name)
                return changed, True
        raise Conflict(
            f"others changed calendar {wanted.name!r} in namespace {namespace!r} at the same time {_TRIES_MAX} times; try "
            "again"
        )

    async def _withdraw_orphan(self, namespace: str, name: str) -> None:
        """Removes a calendar that was created while its namespace was deleted, whose calendars may have been removed before.
        Raises NamespaceNotFound, NamespaceDeleting then."""
        try:
            self._namespaces.get(namespace)
            self._namespaces.refuse_deleting(namespace)
        except (NamespaceNotFound, NamespaceDeleting):
            await self._namespaces.read(delete_calendar(self._context.store, namespace, name))
            raise

    async def _apply_everywhere(self) -> None:
        """Returns when every node that may fire a timer applies the calendars as they are stored (rule 23)."""
        peers = self._namespaces.peers
        if peers is not None:
            await until_known_everywhere(self._context, self._supervisor.membership, peers)

    async def _refuse_used(self, namespace: str, name: str) -> None:
        total = self._supervisor.total_shards
        shards = shards_of_namespace(namespace_hash(namespace), self._namespaces.get(namespace).num_shards, total)
        users: list[str] = []
        after_id, store = "", self._context.store
        while len(users) < _USERS_MAX:
            page = await self._namespaces.read(store.list_schedules(namespace, shards, after_id, _PAGE_ROWS))
            users += [row.timer_id for row in page if _names(row.record, name)]
            if len(page) < _PAGE_ROWS:
                break
            after_id = page[-1].timer_id
            await asyncio.sleep(0)
        if users:
            raise CalendarInUse(f"calendar {name!r} is named by {_listed(users)}; change these first")

    async def of_all(self, permits: Callable[[str], bool], most: int) -> tuple[list[Calendar], bool]:
        """The first calendars of all namespaces that `permits` names, by namespace and name, and whether more follow."""
        await self._namespaces.refresh()
        found: list[Calendar] = []
        for namespace in sorted(filter(permits, self._context.calendars)):
            found += self.known(namespace).all()
            if len(found) > most:
                break
        return found[:most], len(found) > most

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, namespace: str, after: str, limit: int) -> tuple[list[Calendar], bool]:
        """The first calendars behind the name `after`, by name, and whether more follow."""
        calendars = (await self._stored(namespace)).all()
        calendars = calendars[bisect_right(calendars, after, key=lambda each: each.name) :]
        return calendars[:limit], len(calendars) > limit


def _found(calendar: Calendar | None, namespace: str, name: str) -> Calendar:
    if calendar is None:
        raise CalendarNotFound(f"namespace {namespace!r} has no calendar {name!r}; create it with calendars/put")
    return calendar


def _refuse_version(name: str, known: Calendar | None, expected: int | msgspec.UnsetType) -> None:
    version = None if expected is msgspec.UNSET else expected
    refuse_version(f"calendar {name!r}", 0 if known is None else known.version, version)


def _names(record: bytes, name: str) -> bool:
    """Whether a stored schedule names the calendar. One that can't be read doesn't keep it."""
    planned = planned_schedule(record)
    return planned is not None and (name in planned.definition.only or name in planned.definition.skip)


def _listed(users: Collection[str]) -> str:
    named = ", ".join(sorted(users)[:_NAMED_MAX])
    if len(users) >= _USERS_MAX:
        return f"at least {_USERS_MAX} schedules, among them {named}"
    if len(users) > _NAMED_MAX:
        return f"{len(users)} schedules, among them {named}"
    return f"the schedule{'' if len(users) == 1 else 's'} {named}"
