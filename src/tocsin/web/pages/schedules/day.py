"""`/schedules/day`: the schedules of one day as lanes, and the instants at which many of them start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from itertools import islice, takewhile
from urllib.parse import urlencode

from starlette.responses import Response

from tocsin.model.access import EVERY, Role
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.occurrences import Occurrences
from tocsin.model.recurrence import time_zone
from tocsin.model.schedule import ScheduleStatus
from tocsin.timers.schedules import ScheduleListRequest, ScheduleView
from tocsin.web.http.access import listed_in
from tocsin.web.http.errors import Forbidden
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.schedules.presentation import in_zone
from tocsin.web.pages.site import Part, route

#: Schedules that are read for the page, in the order of the list, and lanes that it draws.
_READ_MAX, _LANES_MAX = 1_000, 200
#: A schedule with more instants on the day is drawn as hours in which it fires: single ones could not be distinguished, and
#: reckoning them takes long.
_TICKS_MAX = 96
#: The width of a bar of the row on top, and of an hour; the drawing's unit is a minute.
_BIN_MIN, _HOUR_MIN = 10, 60
_MINUTE_US = 60 * US_PER_SECOND
#: The height of the row on top.
_TOP = 40


@dataclass(frozen=True, slots=True)
class Lane:
    """A schedule's day: its instants, or the hours in which it fires, each from its first to its last minute of the day.
    `number` counts its instants, at most 1,000."""

    view: ScheduleView
    number: int
    instants: tuple[int, ...]
    hours: tuple[tuple[int, int], ...]

    @property
    def first(self) -> int:
        """What lanes are ordered by."""
        return self.instants[0] if self.instants else 0


@dataclass(frozen=True, slots=True)
class Bar:
    """Some minutes of the row on top: the most schedules that start at one instant of it, and this instant."""

    x: int
    y: int
    height: int
    number: int
    at: int


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day of a zone, from its first instant to the one after its last. Days of changed clocks have 23 or 25
    hours."""

    date: date
    zone: str
    rules: tzinfo
    start: int
    end: int

    @property
    def minutes(self) -> int:
        """The day's length."""
        return (self.end - self.start) // _MINUTE_US

    @property
    def hours(self) -> list[str]:
        """The hours as clocks show them."""
        starts = range(self.start, self.end, _HOUR_MIN * _MINUTE_US)
        return [in_zone(at, self.rules).strftime("%H") for at in starts]

    def minute(self, at: int) -> int:
        """The minute of an instant."""
        return (at - self.start) // _MINUTE_US

    def clock(self, at: int) -> str:
        """The time of day of an instant."""
        return in_zone(at, self.rules).strftime("%H:%M:%S").removesuffix(":00")


class ScheduleDay(Part):
    """The page."""

    @route("GET", "/schedules/day")
    async def show(self, context: RequestContext) -> Response:
        """The page. `zone` and `date` in the query choose the day, `at` an instant whose schedules are listed."""
        scope = context.scope or EVERY
        if scope == EVERY and not context.principal.may_somewhere(Role.READ):
            raise Forbidden("Your API key has no access to any namespace.")
        if scope != EVERY:
            context.permit(Role.READ, scope)
        day = _day(context.query.get("zone"), context.query.get("date"), context.now_us)
        views, more = await self._read(context, scope)
        active = [view for view in views if view.status is ScheduleStatus.ACTIVE]
        schedules = self._site.schedules
        drawn = (_lane(view, schedules.instants_of(view), day, context.now_us) for view in active)
        lanes = [lane for lane in await schedules.turns.each(drawn) if lane.number]
        lanes.sort(key=lambda lane: (lane.first, lane.view.timer.id))
        starts = Counter(at for lane in lanes for at in lane.instants)
        at = int(text) if (text := context.query.get("at")).isdecimal() and len(text) < 18 else None
        query = {"namespace": context.scope} if context.scope else {}
        return self._pages.page(
            "schedules/day.html",
            context,
            title="Schedules of a day",
            scope_query=urlencode(query),
            day=day,
            lanes=lanes[:_LANES_MAX],
            lanes_left=max(len(lanes) - _LANES_MAX, 0),
            paused=len(views) - len(active),
            read_max=_READ_MAX if more else None,
            bars=_bars(starts, day),
            busiest=max(starts.items(), key=lambda item: (item[1], -item[0]), default=None),
            top=_TOP,
            ticks_max=_TICKS_MAX,
            now=day.minute(context.now_us) if day.start <= context.now_us < day.end else None,
            at=at,
            starting=[lane.view for lane in lanes if at in lane.instants] if at is not None else [],
            links={
                name: f"/schedules/day?{urlencode({**query, 'zone': day.zone, 'date': other.isoformat()})}"
                for name, other in _around(day.date).items()
            },
            here=f"/schedules/day?{urlencode({**query, 'zone': day.zone, 'date': day.date.isoformat()})}",
        )

    async def _read(self, context: RequestContext, scope: str) -> tuple[list[ScheduleView], bool]:
        """The first schedules of the scope, and whether there are more."""
        request = ScheduleListRequest(listed_in(context.principal.key, scope), limit=_READ_MAX)
        views: list[ScheduleView] = []
        while True:
            found, cursor = await self._site.schedules.list(request)
            views += found
            if cursor is None or len(views) >= _READ_MAX:
                return views, cursor is not None
            request = replace(request, cursor=cursor, limit=_READ_MAX - len(views))


def _around(day: date) -> dict[str, date]:
    return {
        name: day + timedelta(days=days) for name, days in (("before", -1), ("after", 1)) if date.min < day < date.max
    }


def _day(zone: str, text: str, now_us: int) -> Day:
    """The day of the query; today in UTC for what it does not state, or states wrongly."""
    try:
        rules = time_zone(zone)
    except ValueError:
        zone, rules = "UTC", time_zone("UTC")
    try:
        wanted = date.fromisoformat(text)
        start, end = _midnight(wanted, rules), _midnight(wanted + timedelta(days=1), rules)
    except (ValueError, OverflowError):
        wanted = in_zone(now_us, rules).date()
        start, end = _midnight(wanted, rules), _midnight(wanted + timedelta(days=1), rules)
    return Day(wanted, zone, rules, start, end)


def _midnight(day: date, rules: tzinfo) -> int:
    """The first instant of a day."""
    return round(datetime(day.year, day.month, day.day, tzinfo=rules).timestamp()) * US_PER_SECOND


def _lane(view: ScheduleView, occurrences: Occurrences, day: Day, now_us: int) -> Lane:
    begin, end = max(day.start, view.timer.created_at) - 1, day.end - 1
    number = occurrences.count(begin, end) if begin < end else 0
    if number <= _TICKS_MAX:
        instants = list(takewhile(lambda at: at <= end, islice(occurrences.following(begin), number + 1)))
        instants = _within_maximum(view, instants, now_us)
        return Lane(view, len(instants), tuple(instants), ())
    spans: list[tuple[int, int]] = []
    for hour in range(0, day.minutes, _HOUR_MIN):
        first = day.start + hour * _MINUTE_US
        last = min(first + _HOUR_MIN * _MINUTE_US, day.end) - 1
        if not occurrences.count(max(first - 1, begin), last) or last <= begin:
            continue
        until = min(hour + _HOUR_MIN, day.minutes)
        if spans and spans[-1][1] == hour:
            spans[-1] = (spans[-1][0], until)
        else:
            spans.append((hour, until))
    return Lane(view, number, (), tuple(spans))


def _within_maximum(view: ScheduleView, instants: Sequence[int], now_us: int) -> list[int]:
    """The instants without those that the greatest number of occurrences does not allow any more."""
    schedule, most = view.timer.schedule, view.definition.occurrences_max
    if most is None or schedule is None:
        return list(instants)
    past = [at for at in instants if at <= now_us]
    return [*past, *instants[len(past) : len(past) + max(most - schedule.state.occurrences, 0)]]


def _bars(starts: Counter[int], day: Day) -> list[Bar]:
    """The row on top: where two schedules or more start together."""
    most: dict[int, tuple[int, int]] = {}
    for at, number in starts.items():
        place = day.minute(at) // _BIN_MIN
        if number > most.get(place, (1, 0))[0]:
            most[place] = (number, at)
    highest = max((number for number, _ in most.values()), default=1)
    bars = []
    for place, (number, at) in sorted(most.items()):
        height = max(_TOP * number // highest, 4)
        bars.append(Bar(place * _BIN_MIN, _TOP - height, height, number, at))
    return bars
