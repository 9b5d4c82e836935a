"""Dates of iCalendar files, read by the real process."""

from __future__ import annotations

from datetime import date

import pytest

from tocsin.cli import ical
from tocsin.cli.ical import FILE_BYTES_MAX, BadCalendar, read_dates

BEGIN = date(2027, 1, 1)


def file(*events: str) -> bytes:
    blocks = [f"BEGIN:VEVENT\r\nUID:{number}\r\n{each}\r\nEND:VEVENT" for number, each in enumerate(events)]
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests//EN", *blocks, "END:VCALENDAR", ""]
    return "\r\n".join(lines).encode()


def test_dates_of_all_day_events_are_kept_without_their_ends() -> None:
    content = file(
        "DTSTART;VALUE=DATE:20270101",
        "DTSTART;VALUE=DATE:20271224\r\nDTEND;VALUE=DATE:20271227",
        "DTSTART;VALUE=DATE:20270501\r\nSTATUS:CANCELLED",
        "DTSTART;VALUE=DATE:20261231",
    )
    assert read_dates(content, "UTC", BEGIN) == ["2027-01-01", "2027-12-24", "2027-12-25", "2027-12-26"]


def test_rules_are_expanded_for_ten_years_with_their_exceptions() -> None:
    content = file("DTSTART;VALUE=DATE:20001003\r\nRRULE:FREQ=YEARLY\r\nEXDATE;VALUE=DATE:20301003")
    assert read_dates(content, "UTC", BEGIN) == [f"{year}-10-03" for year in range(2027, 2037) if year != 2030]


def test_timed_events_have_the_dates_that_the_zones_clocks_show() -> None:
    content = file(
        "DTSTART:20270301T233000Z\r\nDTEND:20270301T234500Z", "DTSTART:20270310T220000Z\r\nDTEND:20270310T230000Z"
    )
    assert read_dates(content, "UTC", BEGIN) == ["2027-03-01", "2027-03-10"]
    # The second ends at midnight, and has nothing of the next date.
    assert read_dates(content, "Europe/Berlin", BEGIN) == ["2027-03-02", "2027-03-10"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "iCalendar"),
        (b"\x00\xff" * 100, "iCalendar"),
        (b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n", "iCalendar"),
        (b" " * (FILE_BYTES_MAX + 1), "at most 1048576"),
        (file(), "has no events"),
        (file("DTSTART;VALUE=DATE:20270101\r\nRRULE:FREQ=DAILY", *["DTSTART:20270101T000000Z"] * 3), ""),
        (file("DTSTART:20270101T000000Z\r\nRRULE:FREQ=NEVERLY"), ""),
        (file("DTSTART:99999999T000000Z"), ""),
        (b"BEGIN:VCALENDAR\r\n" * 50_000, ""),
    ],
)
def test_hostile_files_are_refused_with_a_reason(content: bytes, reason: str) -> None:
    try:
        found = read_dates(content, "UTC", BEGIN)
    except BadCalendar as error:
        assert reason in str(error)
        assert "\n" not in str(error)
    else:
        assert reason == ""
        assert 1 <= len(found) <= 10_000


def test_a_file_that_takes_too_long_to_expand_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ical, "_CPU_S_MAX", 1)
    with pytest.raises(BadCalendar, match="takes too long"):
        read_dates(file("DTSTART:20270101T000000Z\r\nRRULE:FREQ=SECONDLY"), "UTC", BEGIN)


def test_more_dates_than_a_calendar_has_are_refused() -> None:
    content = file("DTSTART;VALUE=DATE:20270101\r\nDTEND;VALUE=DATE:20280101")
    assert len(read_dates(content, "UTC", BEGIN)) == 365
