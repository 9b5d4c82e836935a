"""`/calendars`: the calendars of schedules, and the form that creates and changes one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.calendar import CALENDARS_MAX, WEEKDAYS, Calendar
from tocsin.model.errors import CalendarInUse, InvalidInput, TooManyCalendars
from tocsin.model.schedule_reading import zone_names
from tocsin.web.http.calendars import CalendarId, CalendarRequests, DeleteCalendar, PutCalendar, summary
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.forms import Body
from tocsin.web.pages.put_forms import PutForm
from tocsin.web.pages.schedules.forms import reader_zone
from tocsin.web.pages.site import Site, route

#: The fields of the form by their names in the API, in their order on the page.
_LABELS = {
    "namespace": "Namespace",
    "name": "Name",
    "timeZone": "Time zone",
    "weekdays": "Every week",
    "dates": "Dates",
    "ranges": "Dates",
    "description": "Description",
}
_SEPARATORS = re.compile(r"[\s,;]+")
_RANGE = re.compile(r"\s*(?:/|–|\.\.|to)\s*")
#: Errors of dates that the form lists.
_ERRORS_MAX = 5
_reader = JsonReader(PutCalendar)


class CalendarsPage(PutForm):
    """The table, the form, and what changes a calendar."""

    kind, labels, name_field = "calendar", _LABELS, "name"
    taken, too_many = "has a calendar already: edit that one", (TooManyCalendars,)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._calendars = site.service.calendars
        self._requests = CalendarRequests(self._calendars, site.rules, site.audit)

    @route("GET", "/calendars")
    async def table(self, context: RequestContext) -> Response:
        """The calendars of the scope."""
        if context.scope:
            context.permit(Role.READ, context.scope)
            found, more = await self._calendars.list(context.scope, "", CALENDARS_MAX)
        else:
            found, more = await self._calendars.of_all(
                lambda name: context.principal.may(Role.READ, name), CALENDARS_MAX
            )
        return self._pages.page(
            "calendars/list.html",
            context,
            title="Calendars",
            calendars=list(map(summary, found)),
            more=more,
            may_change=context.principal.may_somewhere(Role.WRITE),
        )

    @route("GET", "/calendars/new")
    async def new(self, context: RequestContext) -> Response:
        """The form for a new calendar."""
        if context.scope:
            context.permit(Role.WRITE, context.scope)
        fields = dict.fromkeys(_LABELS, "") | {"namespace": context.scope, "timeZone": reader_zone(context)}
        return await self.form(context, fields, edited=False)

    @route("POST", "/calendars/delete")
    async def delete(self, context: RequestContext) -> Response:
        """Deletes a calendar that no schedule names."""
        name = DeleteCalendar(context.form.exact("namespace"), context.form.exact("name"))
        context.permit(Role.WRITE, name.namespace)
        try:
            await self._requests.delete(name, context.actor)
        except CalendarInUse as error:
            fields = await self.stored(name.namespace, name.name)
            return await self.form(context, fields, edited=True, errors={"name": str(error)}, status=409)
        return self.listed(name.namespace)

    async def stored(self, namespace: str, name: str) -> dict[str, str]:
        return _fields_of(await self._requests.get(CalendarId(namespace, name)))

    async def put(self, context: RequestContext, fields: dict[str, str], expected: Body) -> None:
        sent = _reader.read(msgspec.json.encode(self._body(fields) | expected))
        await self._requests.put(sent, context.actor)

    def sent(self, form: Fields) -> dict[str, str]:
        weekdays = " ".join(each for each in WEEKDAYS if form.get(f"weekday.{each}"))
        return super().sent(form) | {"weekdays": weekdays}

    def _body(self, fields: dict[str, str]) -> Body:
        """The request to the API. Each line of the dates has some, or a range."""
        dates: list[str] = []
        ranges: list[dict[str, str]] = []
        for line in filter(str.strip, fields["dates"].splitlines()):
            ends = _RANGE.split(line.strip())
            if len(ends) == 2:
                ranges.append({"first": ends[0], "last": ends[1]})
            else:
                dates += filter(None, _SEPARATORS.split(line))
        body: Body = {
            "namespace": fields["namespace"],
            "name": fields["name"],
            "timeZone": fields["timeZone"] or "UTC",
            "dates": dates,
            "ranges": ranges,
            "weekdays": fields["weekdays"].split(),
        }
        if fields["description"]:
            body["description"] = fields["description"]
        return body

    def errors(self, error: InvalidInput) -> dict[str, str]:
        """Dates and ranges are lines of one field."""
        found: dict[str, list[str]] = {}
        for each in error.errors:
            field = each.path.partition("[")[0] or "dates"
            reason = "are missing; give dates or weekdays" if not each.path else each.reason
            found.setdefault("dates" if field == "ranges" else field, []).append(reason)
        return {field: "; ".join(dict.fromkeys(reasons[:_ERRORS_MAX])) for field, reasons in found.items()}

    def values(self, fields: Mapping[str, str]) -> dict[str, Any]:
        return {"weekdays": WEEKDAYS, "zones": zone_names()}


def _fields_of(calendar: Calendar) -> dict[str, str]:
    lines = [each.isoformat() for each in calendar.dates]
    lines += [f"{each.first.isoformat()} to {each.last.isoformat()}" for each in calendar.ranges]
    return {
        "namespace": calendar.namespace,
        "name": calendar.name,
        "timeZone": calendar.time_zone,
        "weekdays": " ".join(calendar.weekdays),
        "dates": "\n".join(sorted(lines)),
        "ranges": "",
        "description": calendar.description or "",
        "version": str(calendar.version),
    }
