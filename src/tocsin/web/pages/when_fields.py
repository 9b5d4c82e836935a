"""Reads a form's fields for a due time: a delay, or a date and time in the user's time zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import US_PER_SECOND
from tocsin.web.pages.context import Fields

_LOCAL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?\Z", re.ASCII)
_ZONE_MINUTES_MAX = 26 * 60
#: A chosen instant may pass while the form is filled in; an instant further in the past was chosen by mistake.
_PASSED_US = 60 * US_PER_SECOND


def passed(instant_us: int, now_us: int) -> bool:
    """Whether an instant is so far in the past that the form asks for confirmation."""
    return instant_us < now_us - _PASSED_US


def read_when(form: Fields) -> dict[str, str]:
    """`{"delay": …}` or `{"executeAt": …}`, as the API takes them.

    `at` is the value of a browser's date and time field, in a zone that is `zone_minutes` ahead of UTC at that time; a value
    with its own zone is passed on unchanged. Raises InvalidInput.
    """
    if form.get("when") != "at":
        return {"delay": form.get("delay").replace(" ", "").lower()}
    text = form.get("at")
    if not _LOCAL.match(text):
        return {"executeAt": text.replace(" ", "T", 1)}
    zone = form.get("zone_minutes", "0") or "0"
    try:
        minutes = int(zone)
        if abs(minutes) > _ZONE_MINUTES_MAX:
            raise ValueError
        instant = datetime.fromisoformat(text).replace(tzinfo=UTC) - timedelta(minutes=minutes)
    except (ValueError, OverflowError):
        raise InvalidInput(FieldError("executeAt", "is not a date and time")) from None
    return {"executeAt": instant.isoformat().replace("+00:00", "Z")}
