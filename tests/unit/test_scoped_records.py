"""Calendars, flows and credentials that two nodes change at the same time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tocsin.administration import CALENDAR_RECORDS, calendars
from tocsin.model.calendar import NO_CALENDARS, Calendar, Calendars
from tocsin.model.errors import CalendarNotFound, VersionConflict
from tocsin.stores.memory import MemoryStore
from tocsin.timers.calendars import StoredCalendars

HOLIDAYS = Calendar("n", "holidays", 0, 0, weekdays=("SUN",))


class Namespaces:
    """One namespace, read from the store as a node does."""

    peers = None

    def __init__(self, store: MemoryStore) -> None:
        self._store, self.calendars = store, NO_CALENDARS

    async def refresh(self) -> None:
        async def bounded(call: Any) -> Any:
            return await call

        self.calendars = Calendars((await calendars(self._store, {}, bounded)).values())

    async def read(self, call: Any) -> Any:
        return await call

    def get(self, name: str) -> None:
        assert name == "n"

    def refuse_deleting(self, name: str) -> None:
        assert name == "n"


class Deleting(StoredCalendars):
    """A node that deletes a calendar, with what happens while it looks for schedules that name it."""

    def __init__(self, store: MemoryStore) -> None:
        self.store, self.meanwhile = store, list[Calendar | None]()
        self.checks = 0
        namespaces: Any = Namespaces(store)
        context: Any = SimpleNamespace(store=store, calendars_of=lambda _: namespaces.calendars)
        supervisor: Any = None
        super().__init__(context, supervisor, namespaces)

    async def _refuse_used(self, namespace: str, name: str) -> None:
        self.checks += 1
        if self.meanwhile:
            written = self.meanwhile.pop(0)
            if written is None:
                assert await CALENDAR_RECORDS.delete(self.store, namespace, name)
            else:
                assert await CALENDAR_RECORDS.put(self.store, written)

    async def stored(self) -> list[Calendar]:
        await self._namespaces.refresh()
        return self.known("n").all()


def version(number: int) -> Calendar:
    return msgspec.structs.replace(HOLIDAYS, version=number, weekdays=("SAT", "SUN")[: number % 2 + 1])


async def node(*meanwhile: Calendar | None) -> Deleting:
    store = MemoryStore()
    assert await CALENDAR_RECORDS.put(store, HOLIDAYS)
    deleting = Deleting(store)
    deleting.meanwhile += meanwhile
    return deleting


async def test_a_version_that_another_node_writes_meanwhile_is_not_deleted_with_the_expected_one() -> None:
    deleting = await node(version(2))
    with pytest.raises(VersionConflict):
        await deleting.delete("n", "holidays", expected_version=1)
    assert await deleting.stored() == [version(2)]


async def test_what_another_node_writes_meanwhile_is_checked_before_it_is_deleted() -> None:
    deleting = await node(version(2), version(3))
    await deleting.delete("n", "holidays")
    assert (deleting.checks, await deleting.stored()) == (3, [])


async def test_what_another_node_deletes_meanwhile_is_not_found() -> None:
    deleting = await node(None)
    with pytest.raises(CalendarNotFound):
        await deleting.delete("n", "holidays")
