"""Instants and durations of requests and responses."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET, UnsetType

from tocsin.model import instants
from tocsin.model.errors import FieldError
from tocsin.model.instants import format_instant, parse_duration, second_us

_SECOND_CHARS = len("2027-01-31T12:00:00")


class RepeatedInstant:
    """Formats an instant that mostly equals the one before, like that of a batch's arrival."""

    def __init__(self) -> None:
        self._last = (0, format_instant(0))

    def format(self, instant_us: int) -> str:
        """The same text as `format_instant`."""
        last = self._last
        if last[0] != instant_us:
            self._last = last = (instant_us, format_instant(instant_us))
        return last[1]


def optional_instant(instant_us: int | None) -> str | UnsetType:
    """`format_instant`, with UNSET for None."""
    return UNSET if instant_us is None else format_instant(instant_us)


def parse_instant(text: str) -> int:
    """The same value or ValueError as `tocsin.model.instants.parse_instant`; quick for UTC texts up to microseconds."""
    if len(text) == _SECOND_CHARS + 1 and text[-1] == "Z":
        return second_us(text[:_SECOND_CHARS])
    fraction = text[_SECOND_CHARS + 1 : -1]
    if (
        text[_SECOND_CHARS : _SECOND_CHARS + 1] == "."
        and text[-1] == "Z"
        and 1 <= len(fraction) <= 6
        and fraction.isascii()
        and fraction.isdigit()
    ):
        return second_us(text[:_SECOND_CHARS]) + int(fraction.ljust(6, "0"))
    return instants.parse_instant(text)


def read(parse: Callable[[str], int], path: str, text: str, errors: list[FieldError]) -> int:
    """The instant or duration in a text, in microseconds; 0 if it is none, which is added to the errors."""
    try:
        return parse(text)
    except ValueError as error:
        errors.append(FieldError(path, str(error)))
        return 0


def read_instant(path: str, text: str | UnsetType, errors: list[FieldError]) -> int | None:
    """The same for an optional instant; None for an absent one."""
    return None if text is UNSET else read(parse_instant, path, text, errors)


def read_duration(path: str, text: str | UnsetType, errors: list[FieldError]) -> int | None:
    """The same for an optional duration."""
    return None if text is UNSET else read(parse_duration, path, text, errors)
