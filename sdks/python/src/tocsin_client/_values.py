"""Values as requests and answers write them: JSON, instants, durations, and fields that are absent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from enum import Enum
from fractions import Fraction
from math import ceil
from typing import Final, Literal, TypeAlias, Union

#: What can be sent as JSON.
JsonValue: TypeAlias = Union[None, bool, int, float, str, Sequence["JsonValue"], Mapping[str, "JsonValue"]]  # noqa: UP007 (Python 3.10)


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        return False


#: The value of a field that is not sent. In updates `None` removes, and UNSET leaves as it is.
UNSET: Final = Unset.UNSET

_INSTANT = re.compile(
    r"(?P<second>\d{4}-\d\d-\d\d[Tt](?:[01]\d|2[0-3]):\d\d:\d\d)(?:\.(?P<fraction>\d{1,12}))?(?P<zone>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)", re.ASCII)
_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def parse_instant(text: str) -> datetime:
    """The instant of an RFC 3339 text, in UTC; what is finer than a microsecond rounds up. ValueError: it is none."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an RFC 3339 instant with a time zone, such as 2027-01-31T12:00:00Z")
    zone = "+00:00" if found["zone"] in "Zz" else found["zone"]
    try:
        second = datetime.fromisoformat(found["second"].upper() + zone).astimezone(timezone.utc)
        return second + timedelta(microseconds=ceil(Fraction(f"0.{found['fraction'] or 0}") * 1_000_000))
    except OverflowError as error:
        raise ValueError(f"{text!r} is not between the years 1 and 9999") from error


def format_instant(instant: datetime) -> str:
    """RFC 3339 in UTC with all microseconds. ValueError for a datetime without a time zone."""
    if instant.utcoffset() is None:
        raise ValueError(f"{instant!r} has no time zone; use datetime.now(timezone.utc) or .astimezone()")
    utc = instant.astimezone(timezone.utc).replace(tzinfo=None)
    return utc.isoformat(timespec="microseconds" if utc.microsecond else "seconds") + "Z"


def parse_duration(text: str) -> timedelta:
    """The duration of a text such as 500ms, 1h30m or 7d; what is finer than a microsecond rounds up. ValueError: it is
    none."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration; write it as 500ms, 30s, 1h30m or 7d")
    return timedelta(microseconds=ceil(sum(Fraction(number) * _UNITS_US[unit] for number, unit in parts)))


def format_duration(duration: timedelta | str) -> str:
    """A duration as the server reads it; a text stays as it is. ValueError: it is negative."""
    if isinstance(duration, str):
        return duration
    left_us = duration // timedelta(microseconds=1)
    if left_us < 0:
        raise ValueError(f"{duration!r} is negative; a duration is zero or longer")
    written = ""
    for unit, size_us in reversed(_UNITS_US.items()):
        number, left_us = divmod(left_us, size_us)
        if number:
            written += f"{number}{unit}"
    return written or "0s"
