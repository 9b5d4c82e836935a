"""A trace as lines: in their order, each message indented under the one that caused it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tocsin.agent.api.ports import TraceEntry
from tocsin.model.instants import parse_instant
from tocsin.ui.show import milliseconds

#: Levels that are shown as such; deeper ones stand at the last.
DEPTH_MAX = 6
MESSAGE = "message"
#: What rows are, in words.
_WHAT = {
    "service_calls": "the call, as it stands",
    "timer_schedules": "its schedule, as it stands",
    "http_execution_log": "execution",
}
#: A row's number in the outbox: the order of the lines says as much.
_ORDINAL = "number"
#: Instants further from the beginning are shown as such.
_NEAR_US = 3_600_000_000
#: Instants that are before it by less count as the beginning.
_BEFORE_US = 1_000_000


@dataclass(frozen=True, slots=True)
class TraceLine:
    """An entry, how far from the beginning of its chain, and what caused it, as far as that is kept."""

    entry: TraceEntry
    depth: int
    after_us: int
    cause: str
    detail: tuple[tuple[str, str], ...]

    @property
    def is_message(self) -> bool:
        """Whether it was sent; otherwise it is a row of a table."""
        return self.entry.kind == MESSAGE

    @property
    def what(self) -> str:
        """What it is, in words."""
        return _WHAT.get(self.entry.kind, self.entry.kind)


def trace_lines(entries: Sequence[TraceEntry]) -> list[TraceLine]:
    """The lines."""
    messages = {entry.id: entry for entry in entries if entry.kind == MESSAGE}
    depths: dict[str, int] = {}
    begins = entries[0].at if entries else 0
    return [
        TraceLine(
            entry=entry,
            depth=_depth(entry, messages, depths),
            after_us=entry.at - begins,
            cause=_cause(entry, messages),
            detail=tuple(
                (name, _value(name, value, begins)) for name, value in entry.detail.items() if name != _ORDINAL
            ),
        )
        for entry in entries
    ]


def _value(name: str, value: Any, begins: int) -> str:
    """A value of a detail; an instant soon after the beginning as the distance from there."""
    text = str(value)
    if not name.endswith("At"):
        return text
    try:
        after_us = parse_instant(text) - begins
    except ValueError:
        return text
    # The beginning is known to the millisecond, and what it was caused by may be a little older.
    return f"+{milliseconds(max(after_us, 0))}" if -_BEFORE_US < after_us < _NEAR_US else text


def _depth(entry: TraceEntry, messages: dict[str, TraceEntry], depths: dict[str, int]) -> int:
    """Steps up to a message whose cause isn't kept. A cause that leads round in a circle ends there."""
    depth, seen, at = 0, {entry.id}, entry
    while at.causation_id in messages and at.causation_id not in seen:
        if at.causation_id in depths:
            depth += depths[at.causation_id] + 1
            break
        depth += 1
        seen.add(at.causation_id)
        at = messages[at.causation_id]
    if entry.kind == MESSAGE:
        depths[entry.id] = depth
    return min(depth, DEPTH_MAX)


def _cause(entry: TraceEntry, messages: dict[str, TraceEntry]) -> str:
    if entry.causation_id is None:
        return ""
    known = messages.get(entry.causation_id)
    return known.name if known is not None else "a command or a due time"
