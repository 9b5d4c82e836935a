"""The HTTP requests and responses about calendars: their structs, their conversion, and what they do, with their entries in
the audit trail."""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tocsin.model import calendar as model
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.calendar import DATE_MAX, DATE_MIN, DATES_MAX, RANGES_MAX, WEEKDAYS
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.opaque import from_opaque, to_opaque
from tocsin.model.recurrence import time_zone
from tocsin.model.validation import InputRules
from tocsin.ports.audit import Actor, AuditLog
from tocsin.timers.calendars import StoredCalendars
from tocsin.web.http import constraints as limits
from tocsin.web.http.constraints import bad_fields
from tocsin.web.http.instants import format_instant
from tocsin.web.http.wire import Cursor, Instant, NamespaceName, RequestStruct, ResponseStruct, about

#: Calendars on a page, for a request without a limit.
_ROWS_DEFAULT = 100
#: Bad dates that one answer lists.
_ERRORS_MAX = 20
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATE_FORM = {"format": "date", "pattern": "^(19[7-9][0-9]|[2-9][0-9]{3})-[0-9]{2}-[0-9]{2}$"}
_DATE_SCHEMA = {"type": "string", **_DATE_FORM}
_DATE_CONSTRAINT = limits.Constraint(_DATE_FORM)
CALENDAR_NAME_CHARS_MAX = 100
_NAME = re.compile(r"[A-Za-z0-9._:-]{1,100}\Z", re.ASCII)
CALENDAR_NAME = limits.Constraint(
    {"minLength": 1, "maxLength": CALENDAR_NAME_CHARS_MAX, "pattern": "^[A-Za-z0-9._:-]+$"},
    (),
    lambda _, name: (
        None
        if _NAME.match(name)
        else f"is no calendar's name; use 1 to {CALENDAR_NAME_CHARS_MAX} letters, digits and . _ : -"
    ),
)
CalendarName = Annotated[str, about("The calendar's name, unique in its namespace.", "holidays-de"), CALENDAR_NAME]
CalendarZone = Annotated[
    str,
    about("The IANA time zone in which its dates begin and end. Default UTC.", "Europe/Berlin"),
    limits.Constraint({"minLength": 1, "maxLength": 64}),
]
_DATES = "Single dates, as 2027-12-25."
_RANGES = "Ranges of dates, both ends included."
_WEEKDAYS = "Weekdays, of every week."


class Weekday(StrEnum):
    """A day of the week."""

    MON = "MON"
    TUE = "TUE"
    WED = "WED"
    THU = "THU"
    FRI = "FRI"
    SAT = "SAT"
    SUN = "SUN"


FirstDate = Annotated[str, about("The first date.", "2027-12-24"), _DATE_CONSTRAINT]
LastDate = Annotated[str, about("The last date.", "2027-12-26"), _DATE_CONSTRAINT]


class DateRange(RequestStruct):
    """Dates from the first to the last."""

    first: FirstDate
    last: LastDate


class DateRangeAnswer(ResponseStruct):
    """Dates from the first to the last."""

    first: FirstDate
    last: LastDate


class CalendarId(RequestStruct):
    """Names a calendar."""

    namespace: NamespaceName
    name: CalendarName


class PutCalendar(CalendarId):
    """A calendar with all its dates; send at least one of `dates`, `ranges` and `weekdays`."""

    time_zone: CalendarZone | UnsetType = UNSET
    dates: Annotated[
        list[str] | UnsetType,
        about(_DATES, ["2027-01-01", "2027-12-25"]),
        limits.Constraint({"maxItems": DATES_MAX, "items": _DATE_SCHEMA}),
    ] = UNSET
    ranges: Annotated[list[DateRange] | UnsetType, about(_RANGES), limits.Constraint({"maxItems": RANGES_MAX})] = UNSET
    weekdays: Annotated[
        list[Weekday] | UnsetType, about(_WEEKDAYS, ["SAT", "SUN"]), limits.Constraint({"maxItems": 7})
    ] = UNSET


class ListCalendars(RequestStruct):
    """The namespace whose calendars are wanted."""

    namespace: NamespaceName
    limit: Annotated[int, about("Maximum number of calendars on the page. Default 100."), limits.ROWS] | UnsetType = (
        UNSET
    )
    cursor: Cursor | UnsetType = UNSET


class Calendar(ResponseStruct, kw_only=True):
    """A calendar: its dates are those of `dates`, `ranges` and `weekdays` together."""

    namespace: NamespaceName
    name: CalendarName
    time_zone: CalendarZone
    dates: Annotated[list[str], about(_DATES, ["2027-01-01", "2027-12-25"])]
    ranges: Annotated[list[DateRangeAnswer], about(_RANGES)]
    weekdays: Annotated[list[str], about(_WEEKDAYS, ["SAT", "SUN"])]
    version: Annotated[int, about("1, and one more with each change.", 1)]
    created_at: Instant
    updated_at: Instant


class CalendarSummary(ResponseStruct, kw_only=True):
    """A calendar without its dates."""

    namespace: NamespaceName
    name: CalendarName
    time_zone: CalendarZone
    date_count: Annotated[int, Meta(description="How many single dates it has.", ge=0)]
    range_count: Annotated[int, Meta(description="How many ranges it has.", ge=0)]
    weekdays: Annotated[list[str], about(_WEEKDAYS, ["SAT", "SUN"])]
    first_date: Annotated[
        str | UnsetType, about("The first of its dates and ranges; absent if it has none.", "2027-01-01")
    ] = UNSET
    last_date: Annotated[
        str | UnsetType,
        about("The last of them: a calendar that ends soon has to be put again.", "2027-12-26"),
    ] = UNSET
    version: Annotated[int, about("1, and one more with each change.", 1)]
    created_at: Instant
    updated_at: Instant


class CalendarPage(ResponseStruct):
    """A page of calendars, by name. A page without `nextCursor` is the last."""

    calendars: list[CalendarSummary]
    next_cursor: Cursor | UnsetType = UNSET


def calendar_answer(calendar: model.Calendar) -> Calendar:
    """A calendar as clients see it."""
    return Calendar(
        namespace=calendar.namespace,
        name=calendar.name,
        time_zone=calendar.time_zone,
        dates=[each.isoformat() for each in calendar.dates],
        ranges=[DateRangeAnswer(each.first.isoformat(), each.last.isoformat()) for each in calendar.ranges],
        weekdays=list(calendar.weekdays),
        version=calendar.version,
        created_at=format_instant(calendar.created_at),
        updated_at=format_instant(calendar.updated_at),
    )


def summary(calendar: model.Calendar) -> CalendarSummary:
    """A calendar in a list."""
    firsts = [*calendar.dates[:1], *(each.first for each in calendar.ranges)]
    lasts = [*calendar.dates[-1:], *(each.last for each in calendar.ranges)]
    return CalendarSummary(
        namespace=calendar.namespace,
        name=calendar.name,
        time_zone=calendar.time_zone,
        date_count=len(calendar.dates),
        range_count=len(calendar.ranges),
        weekdays=list(calendar.weekdays),
        first_date=min(firsts).isoformat() if firsts else UNSET,
        last_date=max(lasts).isoformat() if lasts else UNSET,
        version=calendar.version,
        created_at=format_instant(calendar.created_at),
        updated_at=format_instant(calendar.updated_at),
    )


class CalendarRequests:
    """Every method raises InvalidInput with all bad fields of the request (of dates, the first few), and the errors of
    `StoredCalendars`."""

    def __init__(self, calendars: StoredCalendars, rules: InputRules, audit: AuditLog) -> None:
        self._calendars, self._rules, self._audit = calendars, rules, audit

    async def put(self, sent: PutCalendar, actor: Actor) -> model.Calendar:
        """Creates a calendar or replaces its dates."""
        calendar = self._read(sent)
        stored = await self._calendars.put(calendar)
        counts: dict[str, Detail] = {
            "dates": len(calendar.dates), "ranges": len(calendar.ranges), "weekdays": list(calendar.weekdays),
        }  # fmt: skip
        await self._record(AuditAction.CALENDAR_CHANGED, actor, sent, {"version": stored.version, **counts})
        return stored

    async def get(self, sent: CalendarId) -> model.Calendar:
        """The calendar."""
        return await self._calendars.get(*self._name(sent))

    async def list(self, sent: ListCalendars) -> CalendarPage:
        """A page of the namespace's calendars."""
        errors, after = bad_fields(sent, self._rules), ""
        if sent.cursor is not UNSET:
            try:
                after = from_opaque(sent.cursor).decode("ascii")
            except ValueError:
                reason = "is not a nextCursor of this list; leave it out to start at the first calendar"
                errors.append(FieldError("cursor", reason))
        if errors:
            raise InvalidInput(*errors)
        limit = _ROWS_DEFAULT if sent.limit is UNSET else sent.limit
        found, more = await self._calendars.list(sent.namespace, after, limit)
        page = CalendarPage([summary(each) for each in found])
        if more:
            page.next_cursor = to_opaque(found[-1].name.encode())
        return page

    async def delete(self, sent: CalendarId, actor: Actor) -> None:
        """Removes the calendar."""
        await self._calendars.delete(*self._name(sent))
        await self._record(AuditAction.CALENDAR_DELETED, actor, sent, {})

    def _read(self, sent: PutCalendar) -> model.Calendar:
        errors = bad_fields(sent, self._rules)
        zone = "UTC" if sent.time_zone is UNSET else sent.time_zone
        try:
            time_zone(zone)
        except ValueError as error:
            errors.append(FieldError("timeZone", str(error)))
        dates, ranges = sent.dates or [], sent.ranges or []
        for name, number, most in (("dates", len(dates), DATES_MAX), ("ranges", len(ranges), RANGES_MAX)):
            if number > most:
                errors.append(FieldError(name, f"has {number} entries; send at most {most}"))
        if errors:
            raise InvalidInput(*errors)
        days = {_date(f"dates[{at}]", each, errors) for at, each in enumerate(dates)}
        spans = set()
        for at, each in enumerate(ranges):
            span = model.DateRange(
                _date(f"ranges[{at}].first", each.first, errors), _date(f"ranges[{at}].last", each.last, errors)
            )
            spans.add((span.first, span.last))
            if span.last < span.first:
                errors.append(FieldError(f"ranges[{at}].last", "is before first; send the later date as last"))
        weekdays = tuple(sorted(set(sent.weekdays or ()), key=WEEKDAYS.index))
        if not (dates or ranges or weekdays):
            errors.append(FieldError("", "the calendar has no dates; send dates, ranges or weekdays"))
        if errors:
            raise InvalidInput(*errors[:_ERRORS_MAX])
        return model.Calendar(
            sent.namespace,
            sent.name,
            0,
            0,
            zone,
            tuple(sorted(days)),
            tuple(model.DateRange(*each) for each in sorted(spans)),
            tuple(map(str, weekdays)),
        )

    def _name(self, sent: CalendarId) -> tuple[str, str]:
        if errors := bad_fields(sent, self._rules):
            raise InvalidInput(*errors)
        return sent.namespace, sent.name

    async def _record(self, action: AuditAction, actor: Actor, sent: CalendarId, details: dict[str, Detail]) -> None:
        await self._audit.write(action, actor, sent.namespace, {"calendar": sent.name, **details})


def _date(path: str, text: str, errors: list[FieldError]) -> date:
    """The date in a text; `DATE_MIN` for one that is reported."""
    try:
        if _DATE.fullmatch(text) and DATE_MIN <= (day := date.fromisoformat(text)) <= DATE_MAX:
            return day
    except ValueError:
        pass
    errors.append(FieldError(path, f"is no date from {DATE_MIN} to {DATE_MAX}; write it as 2027-12-25"))
    return DATE_MIN
