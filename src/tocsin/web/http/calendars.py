"""The HTTP requests and responses about calendars: their structs, their conversion, and what they do, with their entries in
the audit trail."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tocsin.model import calendar as model
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.calendar import DATES_MAX, RANGES_MAX
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_instant
from tocsin.model.opaque import to_opaque
from tocsin.model.recurrence import time_zone
from tocsin.model.validation import InputRules
from tocsin.ports.audit import Actor, AuditLog
from tocsin.timers.calendars import StoredCalendars
from tocsin.web.http import constraints as limits
from tocsin.web.http.constraints import bad_fields, refuse_bad_fields
from tocsin.web.http.declared_wire import ExpectedVersion, ManagedBy, Version, name_after
from tocsin.web.http.optional import or_default, or_none, present
from tocsin.web.http.wire import (
    DESCRIPTION_CHARS_MAX,
    Cursor,
    Instant,
    NamespaceName,
    RequestStruct,
    ResponseStruct,
    about,
    page_of,
)

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
CalendarDescription = Annotated[
    str,
    about("What it is for, in one line; shown in lists.", "Public holidays of Germany"),
    limits.new_text(DESCRIPTION_CHARS_MAX),
]


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


class CalendarFields(RequestStruct, kw_only=True):
    """What a calendar has."""

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
    description: CalendarDescription | UnsetType = UNSET


class PutCalendar(CalendarFields, kw_only=True):
    """A calendar with all its dates; send at least one of `dates`, `ranges` and `weekdays`. Without `managedBy` the calendar
    keeps it; null removes it."""

    namespace: NamespaceName
    name: CalendarName
    managed_by: ManagedBy | UnsetType | None = UNSET
    expected_version: ExpectedVersion | UnsetType = UNSET


class DeleteCalendar(CalendarId):
    """A calendar to delete."""

    expected_version: ExpectedVersion | UnsetType = UNSET


class ListCalendars(RequestStruct):
    """The namespace whose calendars are wanted."""

    namespace: NamespaceName
    limit: Annotated[int | UnsetType, page_of("calendars"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class Calendar(ResponseStruct, kw_only=True):
    """A calendar: its dates are those of `dates`, `ranges` and `weekdays` together."""

    namespace: NamespaceName
    name: CalendarName
    time_zone: CalendarZone
    dates: Annotated[list[str], about(_DATES, ["2027-01-01", "2027-12-25"])]
    ranges: Annotated[list[DateRangeAnswer], about(_RANGES)]
    weekdays: Annotated[list[str], about(_WEEKDAYS, ["SAT", "SUN"])]
    description: CalendarDescription | UnsetType = UNSET
    version: Version
    created_at: Instant
    updated_at: Instant
    managed_by: ManagedBy | UnsetType = UNSET


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
    description: CalendarDescription | UnsetType = UNSET
    version: Version
    created_at: Instant
    updated_at: Instant
    managed_by: ManagedBy | UnsetType = UNSET


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
        description=calendar.description or UNSET,
        version=calendar.version,
        created_at=format_instant(calendar.created_at),
        updated_at=format_instant(calendar.updated_at),
        managed_by=calendar.managed_by or UNSET,
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
        description=calendar.description or UNSET,
        version=calendar.version,
        created_at=format_instant(calendar.created_at),
        updated_at=format_instant(calendar.updated_at),
        managed_by=calendar.managed_by or UNSET,
    )


def calendar_in(namespace: str, name: str, sent: CalendarFields, rules: InputRules) -> model.Calendar:
    """The calendar of a request, before it is stored: its version and instants are 0. Raises InvalidInput with all bad
    fields, of dates with the first few."""
    errors = bad_fields(sent, rules)
    zone = or_default(sent.time_zone, "UTC")
    try:
        time_zone(zone)
    except ValueError as error:
        errors.append(FieldError("timeZone", str(error)))
    try:
        ranges = [(each.first, each.last) for each in sent.ranges or ()]
        found = model.read_dates(sent.dates or (), ranges, sent.weekdays or ())
    except InvalidInput as error:
        raise InvalidInput(*errors, *error.errors) from None
    if errors:
        raise InvalidInput(*errors)
    return model.Calendar(namespace, name, 0, 0, zone, *found, version=0, description=sent.description or None)


class CalendarRequests:
    """Every method raises InvalidInput with all bad fields of the request (of dates, the first few), and the errors of
    `StoredCalendars`."""

    def __init__(self, calendars: StoredCalendars, rules: InputRules, audit: AuditLog) -> None:
        self._calendars, self._rules, self._audit = calendars, rules, audit

    async def put(self, sent: PutCalendar, actor: Actor) -> model.Calendar:
        """Creates a calendar or replaces its dates."""
        calendar = calendar_in(sent.namespace, sent.name, sent, self._rules)
        expected = or_none(sent.expected_version)
        stored, changed = await self._calendars.put(calendar, sent.managed_by, expected)
        if changed:
            details: dict[str, Detail | UnsetType] = {
                "version": stored.version,
                "dates": len(calendar.dates),
                "ranges": len(calendar.ranges),
                "weekdays": list(calendar.weekdays),
                "managedBy": "removed" if sent.managed_by is None else sent.managed_by,
            }
            await self._record(AuditAction.CALENDAR_CHANGED, actor, sent, details)
        return stored

    async def get(self, sent: CalendarId) -> model.Calendar:
        """The calendar."""
        return await self._calendars.get(*self._name(sent))

    async def list(self, sent: ListCalendars) -> CalendarPage:
        """A page of the namespace's calendars."""
        errors = bad_fields(sent, self._rules)
        after = name_after(sent.cursor, "calendar", errors)
        if errors:
            raise InvalidInput(*errors)
        limit = or_default(sent.limit, limits.ROWS_DEFAULT)
        found, more = await self._calendars.list(sent.namespace, after, limit)
        return CalendarPage([summary(each) for each in found], to_opaque(found[-1].name.encode()) if more else UNSET)

    async def delete(self, sent: DeleteCalendar, actor: Actor) -> None:
        """Removes the calendar."""
        expected = or_none(sent.expected_version)
        await self._calendars.delete(*self._name(sent), expected)
        await self._record(AuditAction.CALENDAR_DELETED, actor, sent, {})

    def _name(self, sent: CalendarId) -> tuple[str, str]:
        refuse_bad_fields(sent, self._rules)
        return sent.namespace, sent.name

    async def _record(
        self,
        action: AuditAction,
        actor: Actor,
        sent: CalendarId | PutCalendar,
        details: Mapping[str, Detail | UnsetType],
    ) -> None:
        await self._audit.write(action, actor, sent.namespace, {"calendar": sent.name, **present(details)})
