"""Instants and durations: exact round trips, rounding that is never early, and reasons that name the correction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.model.instants import (
    INSTANT_MAX,
    INSTANT_MIN,
    US_PER_DAY,
    US_PER_SECOND,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
)

NOON = 1_801_396_800 * US_PER_SECOND  # 2027-01-31T12:00:00Z


@given(st.integers(INSTANT_MIN, INSTANT_MAX))
def test_instants_round_trip_through_text(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)), st.integers(-1439, 1439))
def test_agrees_with_datetime(moment: datetime, offset_min: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=offset_min)))
    expected = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_instant(aware.isoformat()) == expected
    assert datetime.fromisoformat(format_instant(expected)) == aware


@given(st.integers(0, 253_402_300_000), st.text("0123456789", min_size=1, max_size=15))
def test_digits_finer_than_a_microsecond_round_up(second: int, digits: str) -> None:
    wanted = (second + Fraction(int(digits), 10 ** len(digits))) * US_PER_SECOND
    parsed = parse_instant(format_instant(second * US_PER_SECOND)[:-1] + f".{digits}Z")
    assert 0 <= parsed - wanted < 1


@each(
    "text, instant",
    [
        ("2027-01-31T12:00:00Z", NOON),
        ("2027-01-31t12:00:00z", NOON),
        ("2027-01-31T12:00:00.000Z", NOON),
        ("2027-01-31T12:00:00.5Z", NOON + 500_000),
        ("2027-01-31T12:00:00.123456Z", NOON + 123_456),
        ("2027-01-31T12:00:00.123456000Z", NOON + 123_456),
        ("2027-01-31T12:00:00.1234560001Z", NOON + 123_457),
        ("2027-01-31T12:00:00.9999999Z", NOON + US_PER_SECOND),
        ("2027-01-31T14:00:00+02:00", NOON),
        ("2027-01-31T06:30:00-05:30", NOON),
        ("2027-01-31T12:00:00-00:00", NOON),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.9999995Z", 0),
        ("1969-12-31T23:59:59.1Z", -900_000),
        ("2028-02-29T00:00:00Z", 1_835_395_200 * US_PER_SECOND),
    ],
)
def test_reads(text: str, instant: int) -> None:
    assert parse_instant(text) == instant


@each(
    "text, reason",
    [
        ("2027-01-31T12:00:00", "time zone"),
        ("2027-01-31 12:00:00Z", "RFC 3339"),
        ("2027-01-31", "RFC 3339"),
        ("", "RFC 3339"),
        ("now", "RFC 3339"),
        ("1801396800", "RFC 3339"),
        ("2027-01-31T12:00:00Z\n", "RFC 3339"),
        ("２０２７-01-31T12:00:00Z", "RFC 3339"),
        ("2027-1-31T12:00:00Z", "RFC 3339"),
        ("2027-01-31T12:00:00.Z", "RFC 3339"),
        ("2027-02-29T12:00:00Z", "date that does not exist"),
        ("2027-13-01T12:00:00Z", "date that does not exist"),
        ("2027-00-01T12:00:00Z", "date that does not exist"),
        ("2027-01-00T12:00:00Z", "date that does not exist"),
        ("0000-01-01T12:00:00Z", "date that does not exist"),
        ("2027-01-31T24:00:00Z", "time of day"),
        ("2027-01-31T12:60:00Z", "time of day"),
        ("2027-01-31T12:00:60Z", "time of day"),
        ("2027-01-31T12:00:00+24:00", "offset"),
        ("2027-01-31T12:00:00+01:60", "offset"),
        ("9999-12-31T23:59:59.9999999Z", "years"),
        ("9999-12-31T23:59:59-00:01", "years"),
        ("0001-01-01T00:00:00+00:01", "years"),
    ],
)
def test_refuses(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_instant(text)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_instant, parse_duration):
        try:
            assert isinstance(parse(text), int)
        except ValueError as error:
            assert str(error).startswith(("is", "has", "lies"))


def test_writes() -> None:
    assert format_instant(NOON) == "2027-01-31T12:00:00Z"
    assert format_instant(NOON + 120_000) == "2027-01-31T12:00:00.120000Z"
    assert format_instant(-1) == "1969-12-31T23:59:59.999999Z"
    assert format_instant(INSTANT_MIN) == "0001-01-01T00:00:00Z"
    with pytest.raises(OverflowError):
        format_instant(INSTANT_MAX + 1)


@given(st.integers(0, 2**62 - 1))
def test_durations_round_trip_through_text(duration: int) -> None:
    assert parse_duration(format_duration(duration)) == duration


@each(
    "text, duration",
    [
        ("500ms", 500_000),
        ("30s", 30 * US_PER_SECOND),
        ("1.5s", 1_500_000),
        ("0.0000001s", 1),
        ("5m", 300 * US_PER_SECOND),
        ("1h30m", 5_400 * US_PER_SECOND),
        ("7d", 7 * US_PER_DAY),
        ("0s", 0),
        ("9007199254740993us", 9_007_199_254_740_993),
    ],
)
def test_reads_durations(text: str, duration: int) -> None:
    assert parse_duration(text) == duration


@each("text", ["", "30", "s", "-1s", "1 s", "1s ", "1.s", ".5s", "1y", "1e3s", "1S", "９s", "1s!2s"])
def test_refuses_durations(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|is negative"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["9999999999999999999d", "60000000d"])
def test_refuses_durations_that_are_too_long(text: str) -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_duration(text)
    with pytest.raises(ValueError, match="duration"):
        parse_duration("9" * 5_000 + "s")
