"""When a timer is to fire, as forms ask for it: in a while, or at a date and time of the person's own zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import US_PER_SECOND
from tocsin.ui.visit import Fields

_LOCAL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?\Z", re.ASCII)
_ZONE_MINUTES_MAX = 26 * 60
#: An instant that was chosen passes while the rest of a form is filled in; what has passed by more was not meant so.
_PASSED_US = 60 * US_PER_SECOND


def passed(instant_us: int, now_us: int) -> bool:
    """Whether somebody who chose this instant is to be asked about it: it has passed, and not just now."""
    return instant_us < now_us - _PASSED_US


def read_when(form: Fields) -> dict[str, str]:
    """`{"delay": …}` or `{"executeAt": …}`, as the API takes them.

    `at` is what a browser's field gives, in the zone that lies `zone_minutes` east of UTC at that time; a text with a
    zone of its own is taken as it is. Raises InvalidInput.
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
