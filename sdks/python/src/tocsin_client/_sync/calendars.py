# Made from _async/calendars.py by unasync.py; edit that.
"""Calendars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin_client._sync.pages import Pages
from tocsin_client._sync.part import Part
from tocsin_client._core import flows
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import (
    Calendar,
    CalendarId,
    CalendarPage,
    CalendarSummary,
    DateRange,
    DeleteCalendar,
    ListCalendars,
    PutCalendar,
    Weekday,
)
from tocsin_client._values import UNSET, Unset


class Calendars(Part):
    """Dates by name, such as holidays, that schedules skip, or on which alone they fire."""

    def put(
        self,
        namespace: str,
        name: str,
        *,
        time_zone: str | Unset = UNSET,
        dates: Sequence[str] | Unset = UNSET,
        ranges: Sequence[DateRange | Mapping[str, Any]] | Unset = UNSET,
        weekdays: Sequence[Weekday] | Unset = UNSET,
        description: str | Unset = UNSET,
        managed_by: str | None | Unset = UNSET,
        expected_version: int | Unset = UNSET,
    ) -> Calendar:
        """Creates the calendar, or replaces all that it has. From then on, no schedule fires at an instant that it excludes.
        TooManyCalendars: the namespace has as many as it can have. VersionConflict: it has not the expected version; 0:
        there must be none."""
        wanted = PutCalendar(
            namespace=namespace,
            name=name,
            time_zone=time_zone,
            dates=dates,
            ranges=ranges,
            weekdays=weekdays,
            description=description,
            managed_by=managed_by,
            expected_version=expected_version,
        )
        calendar = CalendarId(namespace=namespace, name=name).to_json()
        return self._run(self._put("putCalendar", Calendar.from_json, wanted.to_json(), "getCalendar", calendar))

    def get(self, namespace: str, name: str) -> Calendar:
        """The calendar with its dates. CalendarNotFound: there is none."""
        wanted = CalendarId(namespace=namespace, name=name)
        return self._run(self._ask("getCalendar", Calendar.from_json, wanted.to_json()))

    def list(self, namespace: str, *, limit: int | Unset = UNSET) -> Pages[CalendarSummary]:
        """The calendars of a namespace, by name, without their dates; `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[CalendarSummary], str | None]]:
            query = ListCalendars(namespace=namespace, limit=limit, cursor=UNSET if cursor is None else cursor)
            page = yield from self._ask("listCalendars", CalendarPage.from_json, query.to_json())
            return page.calendars, page.next_cursor

        return Pages(self._runner, fetch)

    def delete(self, namespace: str, name: str, *, expected_version: int | Unset = UNSET) -> None:
        """Deletes a calendar. CalendarNotFound: there is none. CalendarInUse: schedules name it. VersionConflict: it has not
        the expected version."""
        wanted = DeleteCalendar(namespace=namespace, name=name, expected_version=expected_version)
        self._run(flows.delete_calendar(self._session, wanted, self._options))
