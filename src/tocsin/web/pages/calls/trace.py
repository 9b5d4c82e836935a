"""A trace as lines in chronological order, each message indented below the one that caused it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tocsin.model.instants import parse_instant
from tocsin.service_calls.ports import TraceEntry
from tocsin.web.pages.presentation import milliseconds

#: Levels of indentation; deeper entries are shown at the last level.
DEPTH_MAX = 6
MESSAGE = "message"
#: Descriptions of rows, by their kind.
_DESCRIPTIONS = {
    "service_calls": "current call row",
    "timer_schedules": "current schedule row",
    "http_execution_log": "execution",
}
#: The detail with a row's number in the outbox, which is not shown: the order of the lines implies it.
_ORDINAL = "number"
#: Instants closer to the start of the trace are shown relative to it.
_NEAR_US = 3_600_000_000
#: Instants up to this much before the start of the trace count as the start.
_BEFORE_US = 1_000_000


@dataclass(frozen=True, slots=True)
class TraceLine:
    """An entry, its level of indentation, its time since the start of the trace, and its cause if that is stored."""

    entry: TraceEntry
    depth: int
    after_us: int
    cause: str
    detail: tuple[tuple[str, str], ...]

    @property
    def is_message(self) -> bool:
        """Whether the entry is a message; otherwise it is a row of a table."""
        return self.entry.kind == MESSAGE

    @property
    def description(self) -> str:
        """A description of the entry's kind."""
        return _DESCRIPTIONS.get(self.entry.kind, self.entry.kind)


def trace_lines(entries: Sequence[TraceEntry]) -> list[TraceLine]:
    """The lines of a trace."""
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
    """A detail's value; an instant near the start of the trace is shown relative to it."""
    text = str(value)
    if not name.endswith("At"):
        return text
    try:
        after_us = parse_instant(text) - begins
    except ValueError:
        return text
    # The start is known to the millisecond, and its cause may be slightly older.
    return f"+{milliseconds(max(after_us, 0))}" if -_BEFORE_US < after_us < _NEAR_US else text


def _depth(entry: TraceEntry, messages: dict[str, TraceEntry], depths: dict[str, int]) -> int:
    """The number of steps to a message without a stored cause. A circular chain of causes is cut."""
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
