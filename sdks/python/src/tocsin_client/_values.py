"""Values as requests and answers write them: JSON, instants, durations, and fields that are absent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from enum import Enum
from fractions import Fraction
from math import ceil
from typing import Any, Final, Literal, TypeAlias, Union

from tocsin_client._core.exact import restored
from tocsin_client._error_bases import InvalidArgument, InvalidType

#: What can be sent as JSON.
JsonValue: TypeAlias = Union[None, bool, int, float, str, Sequence["JsonValue"], Mapping[str, "JsonValue"]]  # noqa: UP007 (Python 3.10)
#: A `datetime` with a time zone, or RFC 3339 text with one.
Instant: TypeAlias = datetime | str
#: A `timedelta`, a text such as 1h30m, or a number of seconds.
Duration: TypeAlias = timedelta | str | float


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
_MICROSECOND = timedelta(microseconds=1)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encode(value: JsonValue) -> bytes:
    """Compact JSON. InvalidArgument: it can't be written as JSON; of an object, the message names the member."""
    try:
        return restored(_encode(value)).encode()
    except (ValueError, TypeError, RecursionError, OverflowError) as why:
        raise InvalidArgument(_unencodable(value, why)) from why


def _unencodable(value: JsonValue, why: Exception) -> str:
    reason = f"{why}" if str(why) else type(why).__name__
    if isinstance(value, Mapping):
        for name, member in value.items():
            try:
                _encode({name: member}).encode()
            except (ValueError, TypeError, RecursionError, OverflowError) as inner:
                return (
                    f"{snake(str(name))}: can't be written as JSON: {inner or type(inner).__name__}; give JSON values"
                )
    return f"the value can't be written as JSON: {reason}; give JSON values"


def snake(name: str) -> str:
    """The Python name of a member."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def parse_instant(text: str) -> datetime:
    """The instant of an RFC 3339 text, in UTC; what is finer than a microsecond rounds up. ValueError: it is none."""
    # As the server writes them: answers are full of instants.
    if len(text) == 27 and text[4:20:3] == "--T::." and text[26] == "Z":
        try:
            return datetime.fromisoformat(text[:26] + "+00:00")
        except ValueError:
            pass
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an RFC 3339 instant with a time zone, such as 2027-01-31T12:00:00Z")
    second, fraction, zone = found.groups(default="")
    try:
        known = f"{second.upper()}.{fraction[:6]:0<6}{'+00:00' if zone in 'Zz' else zone}"
        instant = datetime.fromisoformat(known).astimezone(timezone.utc)
        return instant + _MICROSECOND if fraction[6:].strip("0") else instant
    except OverflowError as error:
        raise ValueError(f"{text!r} is not between the years 1 and 9999") from error


def format_instant(instant: datetime) -> str:
    """RFC 3339 in UTC with all microseconds. ValueError for a datetime without a time zone."""
    if instant.utcoffset() is None:
        raise ValueError(f"{instant!r} has no time zone; use datetime.now(timezone.utc) or .astimezone()")
    try:
        utc = instant.astimezone(timezone.utc).replace(tzinfo=None)
    except OverflowError as error:
        raise ValueError(f"{instant!r} is not between the years 1 and 9999 in UTC") from error
    return utc.isoformat(timespec="microseconds" if utc.microsecond else "seconds") + "Z"


def parse_duration(text: str) -> timedelta:
    """The duration of a text such as 500ms, 1h30m or 7d; what is finer than a microsecond rounds up. ValueError: it is
    none."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration; write it as 500ms, 30s, 1h30m or 7d")
    try:
        return timedelta(microseconds=ceil(sum(Fraction(number) * _UNITS_US[unit] for number, unit in parts)))
    except OverflowError as error:
        raise ValueError(f"{text!r} is too long for a timedelta") from error


def format_duration(duration: timedelta) -> str:
    """A duration as the server reads it. ValueError: it is negative."""
    left_us = duration // _MICROSECOND
    if left_us < 0:
        raise ValueError(f"{duration.total_seconds():g} s is negative; a duration is zero or longer")
    written = ""
    for unit, size_us in reversed(_UNITS_US.items()):
        number, left_us = divmod(left_us, size_us)
        if number:
            written += f"{number}{unit}"
    return written or "0s"


def instant_text(name: str, value: Instant) -> str:
    """An instant as it is sent; the server checks a text. InvalidArgument: it has no time zone, or is no instant."""
    if isinstance(value, str):
        return value
    if not isinstance(value, datetime):
        raise InvalidType(
            f"{name}: must be an instant, not {_kind(value)}; give a datetime with a time zone, or text: 2027-01-31T12:00:00Z"
        )
    try:
        return format_instant(value)
    except ValueError as wrong:
        raise InvalidArgument(f"{name}: {wrong}") from wrong


def duration_text(name: str, value: Duration) -> str:
    """A duration as it is sent; the server checks a text. InvalidArgument: it is negative, or no duration."""
    if isinstance(value, str):
        return value
    try:
        return format_duration(_timedelta(name, value))
    except ValueError as wrong:
        raise wrong if isinstance(wrong, InvalidArgument) else InvalidArgument(f"{name}: {wrong}") from wrong


def seconds_of(name: str, value: Duration) -> float:
    """A duration in seconds. InvalidArgument: it is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            return parse_duration(value).total_seconds()
        except ValueError as wrong:
            raise InvalidArgument(f"{name}: {wrong}") from wrong
    return _timedelta(name, value).total_seconds()


def _timedelta(name: str, value: timedelta | float) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidType(
            f"{name}: must be a duration, not {_kind(value)}; give a timedelta, seconds, or text: 500ms, 30s, 1h30m or 7d"
        )
    try:
        return timedelta(seconds=value)
    except (ValueError, OverflowError) as wrong:
        raise InvalidArgument(f"{name}: {value!r} is not a duration; give seconds") from wrong


def object_json(name: str, value: Any, cls: Callable[..., Any]) -> dict[str, JsonValue]:
    """What is sent for an object: one of the class, or a mapping with its fields. InvalidArgument: it is neither."""
    if isinstance(value, Mapping):
        fields = {snake(str(key)): member for key, member in value.items()}
        try:
            value = cls(**fields)
        except TypeError as wrong:
            problem = str(wrong).partition("() ")[2] or str(wrong)
            raise InvalidType(f"{name}: {problem}; give the fields of {cls.__name__}") from wrong
    if not isinstance(value, cls):  # type: ignore[arg-type]
        raise InvalidType(
            f"{name}: must be an object, not {_kind(value)}; give a {cls.__name__}, or a dict with its fields"
        )
    sent: dict[str, JsonValue] = value.to_json()
    return sent


def map_json(name: str, value: Any) -> dict[str, JsonValue]:
    """What is sent for a mapping. InvalidArgument: it is none."""
    if not isinstance(value, Mapping):
        raise InvalidType(f"{name}: must be an object, not {_kind(value)}; give a dict")
    return dict(value)


def list_json(name: str, value: Any) -> list[Any]:
    """What is sent for a list. InvalidArgument: it is none, such as a single text."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        raise InvalidType(f"{name}: must be a list, not {_kind(value)}; give a list, even of one")
    return list(value)


def _kind(value: object) -> str:
    """What the message calls it: never the value, which may be secret."""
    return "null" if value is None else type(value).__name__
