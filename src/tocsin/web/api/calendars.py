"""The operations on calendars."""

from __future__ import annotations

from functools import partial

from tocsin.model.access import Role
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.timers.calendars import StoredCalendars
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import calendars as wire

_change = partial(Operation, role=Role.WRITE, reach=Reach.NAMESPACE)
_read = partial(Operation, role=Role.READ, reach=Reach.NAMESPACE)


class CalendarHandlers:
    """Handles put, get, list and delete."""

    def __init__(self, calendars: StoredCalendars, rules: InputRules, audit: AuditLog) -> None:
        self._requests = wire.CalendarRequests(calendars, rules, audit)

    @_change("putCalendar", "/api/v1/calendars/put")
    async def put(self, request: ApiRequest, sent: wire.PutCalendar) -> wire.Calendar:
        """Creates the calendar, or replaces its time zone, its description and all its dates. From the response on, no
        schedule fires at an instant that its calendars exclude. Schedules whose next instant has moved are planned again
        within seconds; those that are being attempted go on."""
        return wire.calendar_answer(await self._requests.put(sent, request.actor))

    @_read("getCalendar", "/api/v1/calendars/get")
    async def get(self, request: ApiRequest, sent: wire.CalendarId) -> wire.Calendar:
        """The calendar with all its dates."""
        return wire.calendar_answer(await self._requests.get(sent))

    @_read("listCalendars", "/api/v1/calendars/list")
    async def list(self, request: ApiRequest, sent: wire.ListCalendars) -> wire.CalendarPage:
        """The calendars of a namespace by name, without their dates. Paginated: send nextCursor back as cursor until a
        response has none."""
        return await self._requests.list(sent)

    @_change("deleteCalendar", "/api/v1/calendars/delete", status=204)
    async def delete(self, request: ApiRequest, sent: wire.DeleteCalendar) -> None:
        """Refused while schedules name it that have not ended: change or delete these first. With `expectedVersion`, only if
        it still has that version."""
        await self._requests.delete(sent, request.actor)
