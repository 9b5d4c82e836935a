"""The calendars of namespaces: how they are read and changed, and which schedules name them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial

import msgspec

from tocsin.administration import CALENDAR_RECORDS
from tocsin.model.calendar import CALENDARS_MAX, Calendar, Calendars
from tocsin.model.errors import CalendarInUse, CalendarNotFound, FieldError, InvalidInput, TooManyCalendars
from tocsin.model.ids import namespace_hash, shards_of_namespace
from tocsin.model.schedule import Definition
from tocsin.model.timer import planned_schedule
from tocsin.timers.scoped_records import ScopedRecords

#: Schedules that one read returns when those are looked for that name a calendar; how many of them are counted, and named.
_PAGE_ROWS, _USERS_MAX, _NAMED_MAX = 500, 1_000, 5


class StoredCalendars(ScopedRecords[Calendar]):
    """The calendars as they are stored. Schedules that wait are planned again soon after a change."""

    kind, without, not_found = "calendar", "it has no calendars", CalendarNotFound
    most, too_many = CALENDARS_MAX, TooManyCalendars
    full = "calendars, the maximum; delete one, or put the dates into another"
    records = CALENDAR_RECORDS

    def known(self, namespace: str) -> Calendars:
        return self._context.calendars_of(namespace)

    async def get(self, namespace: str, name: str) -> Calendar:
        """The calendar. Raises CalendarNotFound."""
        return self._found((await self._stored(namespace)).get(name), namespace, name)

    async def put(
        self,
        wanted: Calendar,
        managed_by: str | msgspec.UnsetType | None = msgspec.UNSET,
        expected_version: int | None = None,
    ) -> tuple[Calendar, bool]:
        """Creates the calendar, or replaces all that it has; its mark of who manages it stays if none is given. Returns it as
        it is stored, and whether that has changed. Raises TooManyCalendars, and VersionConflict if the calendar has not the
        version that is expected (0: there is none)."""
        return await self._put(wanted, managed_by, expected_version)

    async def delete(self, namespace: str, name: str, expected_version: int | None = None) -> None:
        """Removes the calendar. Raises CalendarNotFound, CalendarInUse if live schedules name it, and VersionConflict if it
        has not the version that is expected."""
        await self._delete(namespace, name, expected_version, partial(self._refuse_used, namespace, name))

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
        return await self._first(filter(permits, self._context.calendars), most)

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, namespace: str, after: str, limit: int) -> tuple[list[Calendar], bool]:
        """The first calendars behind the name `after`, by name, and whether more follow."""
        return await self._page(namespace, after, limit)


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
