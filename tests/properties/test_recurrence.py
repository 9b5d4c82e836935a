"""When schedules are due, against a reckoning of its own: every minute around every change of every zone's clocks."""

from __future__ import annotations

import random
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.model.instants import parse_instant
from tocsin.model.recurrence import EVERY_MAX_US, EVERY_MIN_US, Cron, Every, time_zone

MINUTE_US = 60_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGIN, END = datetime(1970, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)
#: Expressions, and the minutes of a day that they mean.
FIXED = {"30 2 * * *": {150}, "0,20 0,23 * * *": {0, 20, 1380, 1400}, "5 1-3 * * *": {65, 125, 185}}
ELAPSED = {
    "*/15 * * * *": set(range(0, 1440, 15)),
    "7 * * * *": set(range(7, 1440, 60)),
    "* 2 * * *": set(range(120, 180)),
}
CHANGES_MAX = 60


@cache
def _changes() -> list[tuple[str, int]]:
    """A zone and the instant of a change of its clocks, for each kind of change: offsets before and after, time of day."""
    found: dict[tuple[timedelta | None, timedelta | None, int], tuple[str, int]] = {}
    for name in sorted(zoneinfo.available_timezones() - {"localtime", "Factory"}):
        zone = time_zone(name)
        day, offset = BEGIN, BEGIN.astimezone(zone).utcoffset()
        while day < END:
            day += timedelta(days=5)
            if (now := day.astimezone(zone).utcoffset()) == offset:
                continue
            early, late = day - timedelta(days=5), day
            while late - early > timedelta(seconds=1):
                middle = early + (late - early) // 2
                early, late = (middle, late) if middle.astimezone(zone).utcoffset() == offset else (early, middle)
            at = round(late.timestamp())
            found.setdefault((offset, now, at % 86_400), (name, at * 1_000_000))
            offset = now
    return random.Random(3).sample(sorted(found.values()), min(CHANGES_MAX, len(found)))


def _shown(zone_name: str, around_us: int) -> list[tuple[int, datetime]]:
    """What the zone's clocks show at each minute of the days around an instant, by conversion from UTC alone."""
    zone, first = time_zone(zone_name), around_us - around_us % MINUTE_US - 2_880 * MINUTE_US
    minutes = (first + number * MINUTE_US for number in range(2 * 2_880))
    return [(at, (EPOCH + timedelta(microseconds=at)).astimezone(zone).replace(tzinfo=None)) for at in minutes]


def _due(shown: list[tuple[int, datetime]], minutes: set[int], *, fixed: bool) -> list[int]:
    """The instants at which an expression runs, by what the clocks show."""
    due, seen = set(), set()
    before = shown[0][1]
    for at, local in shown:
        if fixed:
            # The clocks have skipped these.
            skipped = before + timedelta(minutes=1)
            while skipped < local:
                if skipped.hour * 60 + skipped.minute in minutes and skipped not in seen:
                    due.add(at)
                skipped += timedelta(minutes=1)
        if local.hour * 60 + local.minute in minutes and not (fixed and local in seen):
            due.add(at)
        seen.add(local)
        before = local
    return sorted(due)


@pytest.mark.parametrize("expression", [*FIXED, *ELAPSED])
def test_clocks_that_change_skip_and_repeat_as_cron_does(expression: str) -> None:
    fixed = expression in FIXED
    minutes = FIXED[expression] if fixed else ELAPSED[expression]
    for name, change_us in _changes():
        shown = [(at, local) for at, local in _shown(name, change_us) if local.second == 0]
        if len(shown) < 5_000:
            continue  # An offset that is no whole minute: the clocks show no whole minute at a whole minute of UTC.
        cron, due = Cron(expression, name), _due(shown, minutes, fixed=fixed)
        inner = [at for at in due if abs(at - change_us) < 1_440 * MINUTE_US]
        at, found = inner[0] - 1, []
        while (at := cron.after(at) or 0) <= inner[-1]:
            found.append(at)
        assert found == inner, (name, expression, change_us)
        assert [cron.until(at) for at in inner] == inner
        assert [cron.until(at - 1) for at in inner[1:]] == inner[:-1]


@given(st.integers(-(10**15), 10**16), st.integers(EVERY_MIN_US, EVERY_MAX_US), st.integers(-(10**15), 10**16))
def test_intervals_are_multiples_from_their_anchor(anchor: int, every: int, now: int) -> None:
    recurrence = Every(every, anchor)
    after, until = recurrence.after(now), recurrence.until(now)
    assert after is not None
    assert until is not None
    assert until <= now < after == until + every
    assert (after - anchor) % every == 0


@pytest.mark.parametrize(
    ("expression", "zone", "after", "due"),
    [
        ("@daily", "Europe/Berlin", "2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"),
        ("30 0 9 * * MON-FRI", "America/New_York", "2027-01-01T14:00:30Z", "2027-01-04T14:00:30Z"),
        ("*/20 * * * * *", "UTC", "2027-01-01T00:00:40Z", "2027-01-01T00:01:00Z"),
        ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"),
        ("0 12 L * *", "UTC", "2027-02-01T00:00:00Z", "2027-02-28T12:00:00Z"),
        # The whole of 30 December 2011 was skipped.
        ("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", "2011-12-30T10:00:00Z"),
    ],
)
def test_expression_is_due(expression: str, zone: str, after: str, due: str) -> None:
    assert Cron(expression, zone).after(parse_instant(after)) == parse_instant(due)


@pytest.mark.parametrize(
    ("expression", "zone", "reason"),
    [
        ("* * * *", "UTC", "five fields"),
        ("61 * * * *", "UTC", "bad minute"),
        ("@reboot", "UTC", "five fields"),
        ("0 0 31 2,4 *", "UTC", "day-of-month"),
        ("0 0 * 2 MON#6", "UTC", "day-of-week"),
        ("0 0 29 2 */8#5", "UTC", "day-of-week"),
        ("0 0 * * *", "Europe/../UTC", "not an IANA time zone"),
        ("0 0 * * *", "Mars/Olympus", "not an IANA time zone"),
    ],
)
def test_invalid_expression_is_refused_with_its_reason(expression: str, zone: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Cron(expression, zone)
