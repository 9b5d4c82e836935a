"""Instants and durations: signed 64-bit microseconds since 1970-01-01T00:00:00Z, and their text forms."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

US_PER_SECOND = 1_000_000
US_PER_DAY = 86_400 * US_PER_SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Instants crowd on the minutes of the next hours, and their dates are most of the work of texts. Each minute that is kept
#: takes about 250 bytes.
_MINUTES_CACHED_MAX = 1_024
_SECONDS = {f"{second:02d}": second for second in range(60)}
_SECOND_TEXTS = tuple(f":{text}" for text in _SECONDS)
#: The range of the text forms: the years 1 to 9999.
INSTANT_MIN = -62_135_596_800 * US_PER_SECOND
INSTANT_MAX = 253_402_300_800 * US_PER_SECOND - 1
_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,32}))?(Z|z|[+-]\d\d:\d\d)?\Z", re.ASCII)
#: Limits the work on hostile text; a duration with every unit and all digits is shorter.
_DURATION_CHARS_MAX = 200
_DURATION = re.compile(r"(\d{1,199})(?:\.(\d{1,199}))?(us|ms|s|m|h|d)", re.ASCII)
_UNIT_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": US_PER_DAY}
_DURATION_US_MAX = 2**62


def parse_instant(text: str) -> int:
    """Microseconds of an RFC 3339 instant such as `2027-01-31T12:00:00.5Z` or `…+02:00`.

    Digits finer than a microsecond round up, so that the result is never before the instant asked for.
    Raises ValueError with a reason that follows the field's name in a sentence and states how to correct the value.
    """
    match = _INSTANT.match(text)
    if match is None:
        raise ValueError("is not an RFC 3339 instant; write it as 2027-01-31T12:00:00Z")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if zone is None:
        raise ValueError("has no time zone; add Z for UTC or an offset such as +02:00")
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise ValueError("has no valid time of day; hours are 0 to 23, minutes and seconds 0 to 59")
    try:
        if not 1 <= int(day) <= calendar.monthrange(int(year), int(month))[1] or int(year) == 0:
            raise ValueError
    except ValueError:
        raise ValueError("has a date that does not exist; correct its year, month or day") from None
    seconds = calendar.timegm((int(year), int(month), int(day), int(hour), int(minute), int(second)))
    if zone not in "Zz":
        if int(zone[1:3]) > 23 or int(zone[4:6]) > 59:
            raise ValueError("has an invalid offset; hours are 0 to 23, minutes 0 to 59")
        offset_s = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        seconds -= offset_s if zone[0] == "+" else -offset_s
    micros = 0
    if fraction:
        micros = int(fraction[:6].ljust(6, "0"))
        if fraction[6:].strip("0"):
            micros += 1
    instant = seconds * US_PER_SECOND + micros
    if not INSTANT_MIN <= instant <= INSTANT_MAX:
        raise ValueError("must be within the years 1 to 9999 in UTC")
    return instant


@lru_cache(_MINUTES_CACHED_MAX)
def _minute_text(minute: int) -> str:
    return (_EPOCH + timedelta(minutes=minute)).isoformat(timespec="minutes")[:16]


@lru_cache(_MINUTES_CACHED_MAX)
def _minute_us(text: str) -> int:
    return parse_instant(text + ":00Z")


def second_text(second: int) -> str:
    """The text of a whole second in UTC, without its zone: `2027-01-31T12:00:00`. Quick.

    Raises OverflowError outside the years 1 to 9999.
    """
    minute, rest = divmod(second, 60)
    return _minute_text(minute) + _SECOND_TEXTS[rest]


def second_us(text: str) -> int:
    """Microseconds of such a text. Raises `parse_instant`'s errors. Quick."""
    second = _SECONDS.get(text[17:])
    if second is None or text[16] != ":":
        return parse_instant(text + "Z")
    return _minute_us(text[:16]) + second * US_PER_SECOND


def format_instant(instant_us: int) -> str:
    """The RFC 3339 text in UTC, with six fractional digits unless they are all zero.

    Raises OverflowError outside the years 1 to 9999.
    """
    second, micros = divmod(instant_us, US_PER_SECOND)
    # Six digits, faster than by a format specification.
    return f"{second_text(second)}.{str(US_PER_SECOND + micros)[1:]}Z" if micros else second_text(second) + "Z"


def parse_duration(text: str) -> int:
    """Microseconds of a duration such as `500ms`, `30s`, `5m`, `1h30m`, `7d`. Raises ValueError with the reason.

    Exact; digits finer than a microsecond round up in each part, as with instants.
    """
    if len(text) > _DURATION_CHARS_MAX:
        raise ValueError(f"is too long a text; write a duration in at most {_DURATION_CHARS_MAX} characters")
    if text.startswith("-"):
        raise ValueError("is negative; write it without a sign, as 500ms, 30s, 5m, 24h or 7d")
    total, position = 0, 0
    for match in _DURATION.finditer(text):
        if match.start() != position:
            break
        whole, fraction, unit = match.groups()
        total += int(whole) * _UNIT_US[unit]
        if fraction:
            total += -(-int(fraction) * _UNIT_US[unit] // 10 ** len(fraction))
        position = match.end()
    if not text or position != len(text):
        raise ValueError("is not a duration; write it as 500ms, 30s, 5m, 24h or 7d")
    if total >= _DURATION_US_MAX:
        raise ValueError("is too long; a duration must be shorter than 146,000 years")
    return total


def format_duration(duration_us: int) -> str:
    """The shortest text in whole units that `parse_duration` reads back exactly."""
    if duration_us == 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        amount, duration_us = divmod(duration_us, _UNIT_US[unit])
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts)
