"""Whether what is stored is what an update would have made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tocsin_client._values import parse_duration, parse_instant

_INSTANTS = frozenset({"executeAt", "anchor", "startAt", "endAt"})
_DURATIONS = frozenset(
    {
        "expireAfter",
        "retention",
        "every",
        "jitter",
        "catchUpWindow",
        "initialInterval",
        "maxInterval",
        "maxAttemptsDuration",
    }
)


def has_fields(stored: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether a timer or schedule, as it is answered, has every field of an update. What can't be seen is taken for a
    difference: a delay, and secrets that answers don't show."""
    return all(_is_stored(name, stored, value) for name, value in sent.items())


def _is_stored(name: str, stored: Mapping[str, Any], sent: Any) -> bool:
    found = stored.get(name)
    if name == "payload":
        # Null is a payload as well, and none beside a raw body.
        return "body" not in stored and _written(found) == _written(sent)
    if name == "paused" and name not in stored:
        # Of a schedule, whose status has it. One that is there stays as it is.
        return sent is not True or stored.get("status") == "paused"
    if sent is None or found is None:
        return sent is None and found in (None, {})
    if name == "json":
        return _written(found) == _written(sent)
    if name in ("body", "retryPolicy"):
        # The server adds what was not sent.
        return has_fields(found, sent)
    if name in _INSTANTS:
        return parse_instant(found) == parse_instant(sent)
    if name in _DURATIONS:
        return parse_duration(found) == parse_duration(sent)
    return bool(found == sent)


def _written(value: Any) -> str:
    """JSON as text, in which true is not 1."""
    return json.dumps(value, sort_keys=True)
