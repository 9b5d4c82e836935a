"""What calendars leave of a rule's instants, against a slow reckoning that looks at each date and each time by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tocsin.model.calendar import WEEKDAYS, Calendar, Calendars, DateRange
from tocsin.model.excluding import Excluding
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND
from tocsin.model.recurrence import Cron, Every, Recurrence, time_zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
#: The dates of the calendars, around both changes of the clocks, and the instants that are compared.
FIRST, LAST = date(2027, 2, 20), date(2027, 4, 20)
BEGIN, END = datetime(2027, 2, 1, tzinfo=UTC), datetime(2027, 5, 10, tzinfo=UTC)
#: Zones that change at 02:00, at midnight, by half an hour and not at all, and lie far apart.
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Auckland"]
CRONS = [
    "0 9 * * *",
    "30 2 * * *",
    "0 0 * * SUN",
    "15 1,9,23 * * SAT,SUN",
    "0 9 1,15 * *",
    "0 12 * * MON-FRI",
    "45 2 L * *",
]
ELAPSED = ["0 */3 * * *", "0 * * * MON", "30 */5 1,28-31 * *"]

dates = st.dates(FIRST, LAST)


@st.composite
def calendars(draw: st.DrawFn, name: str) -> Calendar:
    return Calendar(
        "default",
        name,
        0,
        0,
        draw(st.sampled_from(ZONES)),
        tuple(sorted(draw(st.sets(dates, max_size=8)))),
        tuple(
            DateRange(begin, min(begin + length * DAY, LAST))
            for begin, length in draw(st.lists(st.tuples(dates, st.integers(0, 20)), max_size=3))
        ),
        tuple(sorted(draw(st.sets(st.sampled_from(WEEKDAYS), max_size=7)), key=WEEKDAYS.index)),
    )


def us(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def shown(instant: int, zone: str) -> datetime:
    return (EPOCH + timedelta(microseconds=instant)).astimezone(time_zone(zone))


def has(calendar: Calendar, day: date) -> bool:
    ranged = any(each.first <= day <= each.last for each in calendar.ranges)
    return day in calendar.dates or ranged or WEEKDAYS[day.weekday()] in calendar.weekdays


def is_excluded(instant: int, only: Sequence[Calendar], skip: Sequence[Calendar]) -> bool:
    def member(calendar: Calendar) -> bool:
        return has(calendar, shown(instant, calendar.time_zone).date())

    return any(map(member, skip)) or (bool(only) and not any(map(member, only)))


def regular(rule: Recurrence, begin: int, end: int) -> list[int]:
    found, at = [], rule.after(begin - 1)
    while at is not None and at < end:
        found.append(at)
        at = rule.after(at)
    return found


def at_wall(day: date, minute_us: int, zone: str) -> int:
    """The instant at which the clocks first show the time, or at which they skip it."""
    wall = datetime.combine(day, datetime.min.time()) + timedelta(microseconds=minute_us)
    at = us(wall.replace(tzinfo=time_zone(zone)))
    if shown(at, zone).replace(tzinfo=None) == wall:
        return at
    # To the second: the offset before the gap lasts until the gap ends.
    offset = shown(at - US_PER_DAY, zone).utcoffset()
    while shown(at - US_PER_SECOND, zone).utcoffset() != offset:
        at -= US_PER_SECOND
    return at


def expected(
    rule: Recurrence, zone: str, only: Sequence[Calendar], skip: Sequence[Calendar], *, moves: bool
) -> list[int]:
    begin, end = us(BEGIN), us(END)
    everything = regular(rule, begin - 60 * US_PER_DAY, end)
    left = {at for at in everything if not is_excluded(at, only, skip)}
    if moves:
        assert isinstance(rule, Cron)
        assert rule.minutes is not None
        days = sorted({shown(at, zone).date() for at in everything})
        for day, following in zip(days, [*days[1:], date(2100, 1, 1)], strict=True):
            for minute in rule.minutes:
                later, at = day, at_wall(day, minute, zone)
                while later < following and later < END.date() + 2 * DAY and is_excluded(at, only, skip):
                    later += DAY
                    at = at_wall(later, minute, zone)
                if day < later < following and later < END.date() + 2 * DAY:
                    left.add(at)
    return sorted(at for at in left if begin <= at < end)


def check(rule: Recurrence, zone: str, only: list[Calendar], skip: list[Calendar], *, moves: bool) -> None:
    known = Calendars([*only, *skip])
    exclusions = known.exclusions(tuple(each.name for each in only), tuple(each.name for each in skip))
    assume(exclusions is not None)
    assert exclusions is not None
    left = Excluding(rule, exclusions, moves=moves)
    wanted = expected(rule, zone, only, skip, moves=moves)
    begin, end = us(BEGIN), us(END)
    assert regular(left, begin, end) == wanted
    for at, following in pairwise(wanted):
        assert left.until(following - 1) == at
        assert left.until(following) == following
    assert left.count(begin - 1, end - 1, 10_000) == len(wanted)
    middle = begin + (end - begin) // 3
    assert left.count(begin - 1, middle, 10_000) == sum(at <= middle for at in wanted)
    assert left.count(middle, end - 1, 10_000) == sum(at > middle for at in wanted)
    excluded = [at for at in regular(rule, begin, end) if is_excluded(at, only, skip)]
    found = left.excluded(begin - 1, end - 1, 10_000)
    if moves or not excluded:
        assert found is None
    else:
        assert found == (len(excluded), excluded[0], excluded[-1])


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([*CRONS, *ELAPSED]),
    st.sampled_from(ZONES),
    st.one_of(st.just([]), st.lists(calendars("only"), min_size=1, max_size=1)),
    st.lists(calendars("skip"), max_size=1),
)
def test_instants_of_calendars_are_left_out(
    expression: str, zone: str, only: list[Calendar], skip: list[Calendar]
) -> None:
    check(Cron(expression, zone), zone, only, skip, moves=False)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
    st.one_of(st.just([]), st.lists(calendars("only"), min_size=1, max_size=1)),
    st.lists(calendars("skip"), max_size=1),
)
@example(
    "30 2 * * SUN",
    "Europe/Berlin",
    [],
    [Calendar("default", "skip", 0, 0, "Europe/Berlin", weekdays=("SAT", "SUN"))],
)
@example(
    "30 2 * * SAT",
    "Europe/Berlin",
    [],
    [Calendar("default", "skip", 0, 0, "America/New_York", (date(2027, 3, 27),))],
)
def test_excluded_times_move_to_the_next_date(
    expression: str, zone: str, only: list[Calendar], skip: list[Calendar]
) -> None:
    check(Cron(expression, zone), zone, only, skip, moves=True)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 50), st.one_of(st.just([]), st.lists(calendars("only"), min_size=1, max_size=1)), calendars("skip")
)
def test_instants_of_an_interval_are_left_out(hours: int, only: list[Calendar], skip: Calendar) -> None:
    check(Every(hours * 3_600 * US_PER_SECOND, us(BEGIN)), "UTC", only, [skip], moves=False)


@settings(max_examples=100, deadline=None)
@given(calendars("only"), calendars("skip"), st.integers(us(BEGIN), us(END)))
def test_stretches_are_as_long_as_instants_are_excluded(only: Calendar, skip: Calendar, instant: int) -> None:
    exclusions = Calendars([only, skip]).exclusions(("only",), ("skip",))
    assert exclusions is not None
    limit = exclusions.limit()
    before = exclusions.stretch(instant, limit, back=True)
    assert (before is not None) == is_excluded(instant, [only], [skip])
    if before is None:
        begin = exclusions.next_begin(instant, us(END), limit)
        if begin is not None:
            assert is_excluded(begin, [only], [skip])
            assert not is_excluded(begin - 1, [only], [skip])
        return
    following = None if before.end is None else exclusions.stretch(before.end, exclusions.limit())
    stretch = following or before
    assert stretch.begin == before.begin
    for bound, outside in ((stretch.begin, -1), (stretch.end, 0)):
        # A stretch that would be years long is cut off.
        if bound is not None and abs(bound - instant) < 366 * US_PER_DAY:
            assert not is_excluded(bound + outside, [only], [skip])
            assert is_excluded(bound + outside + (1 if outside else -1), [only], [skip])


@settings(max_examples=50, deadline=None)
@given(
    calendars("only"),
    calendars("skip"),
    st.lists(st.tuples(st.integers(us(BEGIN), us(END)), st.booleans(), st.sampled_from([0, 50, 5_000])), max_size=12),
)
def test_what_is_known_of_stretches_is_excluded_in_whatever_order_it_is_looked_up(
    only: Calendar, skip: Calendar, looks: list[tuple[int, bool, int]]
) -> None:
    """Also where a search has ended before the end of its stretch."""
    exclusions = Calendars([only, skip]).exclusions(("only",), ("skip",))
    assert exclusions is not None
    for instant, back, budget in looks:
        found = exclusions.stretch(instant, exclusions.spent + budget, back=back)
        assert (found is not None) == is_excluded(instant, [only], [skip])
        if found is None:
            continue
        begin = max(us(BEGIN), us(BEGIN) if found.begin is None else found.begin)
        end = min(us(END), us(END) if found.end is None else found.end)
        assert begin <= instant < max(end, instant + 1)
        for at in (begin, *range(begin, end, US_PER_DAY // 4), max(begin, end - 1)):
            assert is_excluded(at, [only], [skip])
