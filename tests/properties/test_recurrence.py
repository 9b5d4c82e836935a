"""When schedules are due, against a reckoning of its own around the changes of all zones' clocks.

`make zones` tries every change from 1970 to 2037; without it, one of each kind is tried."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import zone_changes
from tests.properties.zone_changes import ELAPSED, FIXED
from tocsin.model.instants import parse_instant
from tocsin.model.recurrence import EVERY_MAX_US, EVERY_MIN_US, EXPRESSION_CHARS_MAX, Cron, Every


@pytest.mark.parametrize("expression", [*FIXED, *ELAPSED])
def test_clocks_that_change_skip_and_repeat_as_cron_does(expression: str) -> None:
    for zone, changes in groupby(zone_changes.one_of_each_kind(), key=lambda change: change.zone):
        zone_changes.check(zone, changes, expression)


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
        ("0 0 32 1 *", "UTC", "bad day-of-month"),
        ("0 0 30 2 *", "UTC", "never matches a date"),
        ("@weekday", "UTC", "@hourly, @daily, @midnight"),
        ("0 0 * * FRI-MON", "UTC", "bad day-of-week; write 0 to 7 or SUN to SAT"),
        ("@reboot", "UTC", "nothing reboots"),
        ("0 0 ? * MON", "UTC", r"has \?; write \* instead"),
        ("CRON_TZ=Europe/Berlin 0 0 * * *", "UTC", "send the zone as timeZone"),
        ("0 0 31 2,4 *", "UTC", "never matches a date"),
        ("0 0 * 2 MON#6", "UTC", "day-of-week"),
        ("0 0 29 2 */8#5", "UTC", "day-of-week"),
        ("0 0 * * *", "Europe/../UTC", "not an IANA time zone"),
        ("0 0 * * *", "Mars/Olympus", "not an IANA time zone"),
        ("0 0 * * \u017fUN", "UTC", "characters beyond ASCII"),
        ("*," * EXPRESSION_CHARS_MAX + "1 * * * *", "UTC", "at most 255 are accepted"),
    ],
)
def test_invalid_expression_is_refused_with_its_reason(expression: str, zone: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Cron(expression, zone)
