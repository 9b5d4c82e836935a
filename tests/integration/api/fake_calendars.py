"""Calendars in memory."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin.model.calendar import Calendar, Calendars
from tocsin.model.errors import CalendarNotFound
from tocsin.timers.calendars import StoredCalendars
from tocsin.timers.namespaces import Namespaces

_AT = 1_700_000_000_000_000


class FakeCalendars(StoredCalendars):
    """What handlers call of `StoredCalendars`; no schedule keeps a calendar from being deleted. `check` raises what a request
    about a namespace is refused with."""

    def __init__(self, check: Callable[[str], None], namespaces: Namespaces) -> None:
        # `check` of the definitions of schedules is that of `StoredCalendars`.
        self._refuse, self._namespaces = check, namespaces
        self._known_calendars: dict[tuple[str, str], Calendar] = {}

    def known(self, namespace: str) -> Calendars:
        return Calendars(each for (owner, _), each in self._known_calendars.items() if owner == namespace)

    async def get(self, namespace: str, name: str) -> Calendar:
        self._refuse(namespace)
        if (namespace, name) not in self._known_calendars:
            raise CalendarNotFound(f"namespace {namespace!r} has no calendar {name!r}")
        return self._known_calendars[namespace, name]

    async def put(
        self,
        wanted: Calendar,
        managed_by: str | msgspec.UnsetType | None = msgspec.UNSET,
        expected_version: int | None = None,
    ) -> tuple[Calendar, bool]:
        self._refuse(wanted.namespace)
        stored = msgspec.structs.replace(
            wanted, created_at=_AT, updated_at=_AT, version=1, managed_by=managed_by or None
        )
        self._known_calendars[wanted.namespace, wanted.name] = stored
        return stored, True

    async def delete(self, namespace: str, name: str, expected_version: int | None = None) -> None:
        await self.get(namespace, name)
        del self._known_calendars[namespace, name]

    async def list(self, namespace: str, after: str, limit: int) -> tuple[list[Calendar], bool]:
        self._refuse(namespace)
        found = [each for each in self.known(namespace).all() if each.name > after]
        return found[:limit], len(found) > limit
