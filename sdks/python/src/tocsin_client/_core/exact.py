"""JSON of other programs, whose numbers are sent as they were written, also where a float would shorten them."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import Any

#: Marks the text of such a number, where the value has a string instead. No other string can begin like it.
_MARK = f"number {uuid.uuid4()} "
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


def parse_exactly(text: str) -> Any:
    """As `json.loads`; `restored` turns marks into numbers again. ValueError: it is not JSON, or nested too deeply."""
    try:
        return json.loads(text, parse_float=_held(float), parse_int=_held(int), parse_constant=_refused)
    except RecursionError as deep:
        raise ValueError("it is nested too deeply") from deep


def restored(text: str) -> str:
    """JSON text in which marks are the numbers that they stand for."""
    return _MARKED.sub(r"\1", text) if _MARK in text else text


def _held(kind: Callable[[str], float]) -> Callable[[str], float | str]:
    def parse(text: str) -> float | str:
        try:
            number = kind(text)
        except ValueError:  # of more digits than Python converts
            return _MARK + text
        return number if repr(number) == text else _MARK + text

    return parse


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")
