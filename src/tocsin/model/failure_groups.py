"""Failures in groups of one cause, whatever has failed: how they are counted, and what is known of a group."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from tocsin.model.timer import LoggedAttempt, Timer

RowT = TypeVar("RowT")

#: Failures that one call reads. Reading takes about a second for so many, and a group of more is one cause all the same.
FAILURES_READ_MAX = 50_000
#: The slots of a group's series.
SERIES_SLOTS = 24
#: The newest failures that a group names.
NEWEST_MAX = 10


class FailedKind(StrEnum):
    """What failed: a timer, an occurrence of a schedule, the notification of a hook, or a service call."""

    TIMER = "timer"
    OCCURRENCE = "occurrence"
    NOTIFICATION = "notification"
    CALL = "call"


class GroupKey(NamedTuple):
    """What the failures of a group have in common; None: they may differ in it. Service calls have a tenant, all others a
    namespace."""

    namespace: str | None = None
    destination: str | None = None
    error: str | None = None
    kind: FailedKind | None = None
    tenant: str | None = None

    def includes(self, key: GroupKey) -> bool:
        """Whether a failure with this key, which has everything, belongs to the group."""
        return self == ANY_GROUP or all(wanted in (None, found) for wanted, found in zip(self, key, strict=True))


#: The group of all failures.
ANY_GROUP = GroupKey()
#: By what failures can be grouped.
GROUPED_BY = ("namespace", "destination", "error", "kind")
CALLS_GROUPED_BY = ("tenant", "destination", "error", "kind")


class Sample(NamedTuple):
    """The last attempt of a failure, and the request that was made; what is not known any more is None. `payload` is the
    beginning of what was sent, as text."""

    method: str | None
    url: str | None
    attempt: LoggedAttempt | None
    timer: Timer | None = None
    payload: str = ""


@dataclass(slots=True)
class CountedFailures(Generic[RowT]):
    """Failures with something in common. `newest` has the newest ones, newest first."""

    key: GroupKey
    instants: array[int] = field(default_factory=lambda: array("q"))
    newest: list[RowT] = field(default_factory=list)
    sample: Sample | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.instants)

    def series(self, now_us: int) -> list[int]:
        """How many failed in each of SERIES_SLOTS equal parts of the time from the first one to now."""
        first, slots = min(self.instants), [0] * SERIES_SLOTS
        width = max(-(-(now_us + 1 - first) // SERIES_SLOTS), 1)
        for at in self.instants:
            slots[min((at - first) // width, SERIES_SLOTS - 1)] += 1
        return slots


class FailureGroups(NamedTuple, Generic[RowT]):
    """Groups, those with most failures first; how many further groups there are, and how many failures in all.
    `at_least`: older failures were not counted."""

    groups: list[CountedFailures[RowT]]
    further: int
    total: int
    at_least: bool


class Grouping(Generic[RowT]):
    """Counts failures, the newest first, in groups by some of their fields."""

    def __init__(self, by: Sequence[str], key_of: Callable[[RowT], GroupKey]) -> None:
        self._left_out = dict.fromkeys(name for name in GroupKey._fields if name not in by)
        self._key_of = key_of
        self._found: dict[GroupKey, CountedFailures[RowT]] = {}
        # By what the rows have, so that only the first of its kind is taken apart.
        self._known: dict[Hashable, CountedFailures[RowT]] = {}

    def add(self, row: RowT, cause: Hashable, failed_at: int) -> None:
        """Counts a failure. Rows with the same `cause` have the same key."""
        group = self._known.get(cause)
        if group is None:
            key = self._key_of(row)._replace(**self._left_out)
            group = self._known[cause] = self._found.setdefault(key, CountedFailures(key))
        group.instants.append(failed_at)
        if len(group.newest) < NEWEST_MAX:
            group.newest.append(row)

    def first(self, limit: int, at_least: bool) -> FailureGroups[RowT]:
        """The groups with most failures."""
        found = self._found.values()
        first = heapq.nlargest(limit, found, key=lambda group: (group.count, group.instants[0]))
        return FailureGroups(first, len(found) - len(first), sum(each.count for each in found), at_least)
