"""Instants and durations: signed 64-bit microseconds since 1970-01-01T00:00:00Z, and their text forms."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta

US_PER_SECOND = 1_000_000
US_PER_DAY = 86_400 * US_PER_SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,12}))?(Z|z|[+-]\d\d:\d\d)?\Z", re.ASCII)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)", re.ASCII)
_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": US_PER_DAY}


def parse_instant(text: str) -> int:
    """Microseconds of an RFC 3339 instant such as `2027-01-31T12:00:00.5Z` or `…+02:00`.

    Digits finer than a microsecond round up, so that the result is never before the instant asked for.
    Raises ValueError with a reason that says what would be right.
    """
    match = _INSTANT.match(text)
    if match is None:
        raise ValueError("is not an RFC 3339 instant; write it as 2027-01-31T12:00:00Z")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if zone is None:
        raise ValueError("has no time zone; add Z for UTC or an offset such as +02:00")
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise ValueError("is not a time of day; hours go to 23, minutes and seconds to 59")
    try:
        if not 1 <= int(day) <= calendar.monthrange(int(year), int(month))[1] or int(year) == 0:
            raise ValueError
    except ValueError:
        raise ValueError("is not a date of the calendar") from None
    seconds = calendar.timegm((int(year), int(month), int(day), int(hour), int(minute), int(second)))
    if zone not in "Zz":
        if int(zone[1:3]) > 23 or int(zone[4:6]) > 59:
            raise ValueError("has an offset beyond 23:59")
        offset_s = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        seconds -= offset_s if zone[0] == "+" else -offset_s
    micros = 0
    if fraction:
        micros = int(fraction[:6].ljust(6, "0"))
        if fraction[6:].strip("0"):
            micros += 1
    return seconds * US_PER_SECOND + micros


def format_instant(instant_us: int) -> str:
    """The RFC 3339 text in UTC, with six fractional digits unless they are all zero."""
    moment = _EPOCH + timedelta(microseconds=instant_us)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    if moment.year < 1000:
        text = f"{moment.year:04d}" + text[text.index("-") :]
    return f"{text}.{moment.microsecond:06d}Z" if moment.microsecond else text + "Z"


def parse_duration(text: str) -> int:
    """Microseconds of a duration such as `500ms`, `30s`, `5m`, `1h30m`, `7d`. Raises ValueError with the reason."""
    total, position = 0.0, 0
    for match in _DURATION.finditer(text):
        if match.start() != position:
            break
        total += float(match[1]) * _UNIT_US[match[2]]
        position = match.end()
    if not text or position != len(text):
        raise ValueError("is not a duration; write it as 500ms, 30s, 5m, 24h or 7d")
    if total >= 2**62:
        raise ValueError("is too long a duration")
    return round(total)


def format_duration(duration_us: int) -> str:
    """The shortest text that `parse_duration` reads back exactly."""
    if duration_us == 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        amount, duration_us = divmod(duration_us, _UNIT_US[unit])
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts)
