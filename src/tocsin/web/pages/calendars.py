"""`/calendars`: the calendars of schedules, and the form that creates and changes one."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.calendar import CALENDARS_MAX, WEEKDAYS, Calendar
from tocsin.model.errors import CalendarInUse, InvalidInput, TooManyCalendars, VersionConflict
from tocsin.model.schedule_reading import zone_names
from tocsin.web.http.calendars import CalendarId, CalendarRequests, DeleteCalendar, PutCalendar, summary
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.schedules.forms import reader_zone
from tocsin.web.pages.site import Part, Site, preferred, route

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


class CalendarsPage(Part):
    """The table, the form, and what changes a calendar."""

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
        return await self._form(context, fields, edited=False)

    @route("POST", "/calendars/new")
    async def create(self, context: RequestContext) -> Response:
        """Creates a calendar. One that exists is not replaced."""
        return await self._put(context, edited=False)

    @route("GET", "/calendars/edit")
    async def edit(self, context: RequestContext) -> Response:
        """The form of a calendar, with a button that deletes it."""
        name = CalendarId(context.query.exact("namespace"), context.query.exact("name"))
        context.permit(Role.WRITE, name.namespace)
        return await self._form(context, _fields_of(await self._requests.get(name)), edited=True)

    @route("POST", "/calendars/edit")
    async def replace(self, context: RequestContext) -> Response:
        """Replaces the dates of a calendar."""
        return await self._put(context, edited=True)

    @route("POST", "/calendars/delete")
    async def delete(self, context: RequestContext) -> Response:
        """Deletes a calendar that no schedule names."""
        name = DeleteCalendar(context.form.exact("namespace"), context.form.exact("name"))
        context.permit(Role.WRITE, name.namespace)
        try:
            await self._requests.delete(name, context.actor)
        except CalendarInUse as error:
            fields = _fields_of(await self._requests.get(CalendarId(name.namespace, name.name)))
            return await self._form(context, fields, edited=True, errors={"name": str(error)}, status=409)
        return RedirectResponse(with_query("/calendars", {"namespace": name.namespace}), 303)

    async def _put(self, context: RequestContext, *, edited: bool) -> Response:
        fields = _sent(context.form)
        context.permit(Role.WRITE, fields["namespace"])
        try:
            # A new one must not replace one that somebody else has just created.
            expected = {} if edited else {"expectedVersion": 0}
            sent = _reader.read(msgspec.json.encode(_body(fields) | expected))
            calendar = await self._requests.put(sent, context.actor)
        except InvalidInput as error:
            return await self._form(context, fields, edited=edited, errors=_errors(error), status=400)
        except VersionConflict:
            errors = {"name": "has a calendar already: edit that one"}
            return await self._form(context, fields, edited=edited, errors=errors, status=409)
        except TooManyCalendars as error:
            return await self._form(context, fields, edited=edited, errors={"name": str(error)}, status=409)
        return RedirectResponse(with_query("/calendars", {"namespace": calendar.namespace}), 303)

    async def _form(
        self,
        context: RequestContext,
        fields: dict[str, str],
        *,
        edited: bool,
        errors: dict[str, str] | None = None,
        status: int = 200,
    ) -> Response:
        namespaces = await self.visible_namespaces(context)
        errors = errors or {}
        return self._pages.page(
            "calendars/form.html",
            context,
            status,
            title="Edit calendar" if edited else "New calendar",
            form=fields | {"namespace": fields["namespace"] or preferred(namespaces)},
            edited=edited,
            namespaces=namespaces,
            weekdays=WEEKDAYS,
            zones=zone_names(),
            errors=errors,
            labels=_LABELS,
            first_invalid=next((each for each in _LABELS if each in errors), ""),
        )


def _errors(error: InvalidInput) -> dict[str, str]:
    """The reasons by the fields of the form: dates and ranges are lines of one."""
    found: dict[str, list[str]] = {}
    for each in error.errors:
        field = each.path.partition("[")[0] or "dates"
        reason = "are missing; give dates or weekdays" if not each.path else each.reason
        found.setdefault("dates" if field == "ranges" else field, []).append(reason)
    return {field: "; ".join(dict.fromkeys(reasons[:_ERRORS_MAX])) for field, reasons in found.items()}


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
    }


def _sent(form: Fields) -> dict[str, str]:
    fields = {name: form.get(name) for name in _LABELS}
    return fields | {"weekdays": " ".join(each for each in WEEKDAYS if form.get(f"weekday.{each}"))}


def _body(fields: dict[str, str]) -> dict[str, Any]:
    """The request to the API that the fields stand for: each line has dates, or a range."""
    dates: list[str] = []
    ranges: list[dict[str, str]] = []
    for line in filter(str.strip, fields["dates"].splitlines()):
        ends = _RANGE.split(line.strip())
        if len(ends) == 2:
            ranges.append({"first": ends[0], "last": ends[1]})
        else:
            dates += filter(None, _SEPARATORS.split(line))
    body: dict[str, Any] = {
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
