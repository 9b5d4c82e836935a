"""Presentation of schedules: their states, and instants in their own time zone; and the preview of a rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from tocsin.model.recurrence import time_zone
from tocsin.model.schedule import CatchUp, Definition, ScheduleStatus, Source, instants, source_of
from tocsin.timers.schedules import ScheduleView
from tocsin.web.http.schedules import sentence
from tocsin.web.pages.presentation import State, count, doing, path_below, version_of_doing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The tones of an occurrence's outcomes.
_TONES = {"completed": "done", "failed": "failed", "pending": "pending", "expired": "expired"}
_SOURCES = {Source.REGULAR: "", Source.TRIGGER: "fired by hand", Source.BACKFILL: "backfilled"}
_MISSED = {
    "late": "passed before it could fire",
    "overlap": "passed while an occurrence was unfinished",
    "window": "were older than the catch-up window",
    "paused": "passed while it was paused",
}
CATCH_UP_WORDS = {
    CatchUp.LATEST: "Fire the last missed instant",
    CatchUp.ALL: "Fire every missed instant",
    CatchUp.NONE: "Fire none of them",
}


@dataclass(frozen=True, slots=True)
class ZonedInstant:
    """An instant, and what the clocks of a schedule's time zone show then."""

    at: int
    local: str


def zoned(instants: Iterable[int], zone: str) -> list[ZonedInstant]:
    """Instants with the time of a zone, such as `Sun 2027-03-28 03:00:00 CEST`."""
    rules = time_zone(zone)
    return [ZonedInstant(at, in_zone(at, rules).strftime("%a %Y-%m-%d %H:%M:%S %Z")) for at in instants]


def in_zone(instant_us: int, zone: tzinfo) -> datetime:
    """What the clocks of a zone show; in UTC within hours of the first and the last instant, which calendars end with."""
    instant = _EPOCH + timedelta(microseconds=instant_us)
    try:
        return instant.astimezone(zone)
    except OverflowError:
        return instant


def zone_of(definition: Definition) -> str:
    """The zone in which a schedule's instants are shown."""
    return definition.time_zone if definition.cron is not None else "UTC"


def state_of(view: ScheduleView, now_us: int, *, paused: bool) -> State:
    """The state of a schedule at an instant. `paused`: its namespace is. One whose occurrence is due and not finished is due
    itself, or what its explanation says."""
    if view.status is ScheduleStatus.ENDED:
        return State("ended", "canceled")
    due, known = view.next_attempt_at is not None and view.next_attempt_at <= now_us, doing(view.explanation)
    if known is not None and known.tone == "firing":
        return known
    if paused or (view.status is ScheduleStatus.PAUSED and not (due and _triggered(view))):
        return State("paused", "suspended")
    if known is not None:
        return known
    if view.suspended is not None:
        return State("suspended", "suspended")
    if due:
        return State("due", "due")
    return State("retrying", "retrying") if view.timer.attempts else State("active", "pending")


def _triggered(view: ScheduleView) -> bool:
    schedule = view.timer.schedule
    return schedule is not None and schedule.state.source is Source.TRIGGER


def outcome(name: str) -> State:
    """How an occurrence ended, by its status; the current one is pending."""
    return State(name, _TONES.get(name, "canceled"))


def source_words(firing: str) -> str:
    """Why the occurrence with this name of its firing fired; empty for one at its instant."""
    return _SOURCES[source_of(firing)]


def counted(counts: Mapping[str, int]) -> str:
    """Numbers of occurrences by outcome, such as `41 completed, 1 failed`."""
    return ", ".join(f"{count(number)} {name}" for name, number in sorted(counts.items())) or "none yet"


def missed_words(missed: Mapping[str, int]) -> list[str]:
    """How many instants did not fire, by reason."""
    return [f"{count(number)} {_MISSED.get(reason, reason)}" for reason, number in sorted(missed.items())]


def schedule_path(namespace: str, schedule_id: str) -> str:
    """The path of a schedule's page."""
    return path_below("/schedules", namespace, schedule_id)


def version(view: ScheduleView, *, paused: bool) -> str:
    """A version that changes whenever what a row of the list shows does. `paused`: its namespace is."""
    following = view.next_instants[0] if view.next_instants else 0
    ended_at = view.last_occurrence.finished_at if view.last_occurrence else 0
    return (
        f"{view.updated_at:x}.{ended_at:x}.{view.next_attempt_at or 0:x}.{following:x}.{view.timer.attempts:x}"
        f".{view.status[0]}{view.triggers:x}.{view.backfills:x}.{sum(view.missed.values()):x}"
        f"{version_of_doing(view.explanation)}{'p' if paused else ''}"
    )


#: Instants that a preview lists: enough to see a week.
_INSTANTS = 7


@dataclass(frozen=True, slots=True)
class Preview:
    """The next instants of a definition, with the time of `zone`. `ends`: there are no more."""

    words: str
    zone: str
    instants: list[ZonedInstant]
    ends: bool


def preview(definition: Definition, uuid: bytes, zone: str, created_at: int, now_us: int) -> Preview:
    """The preview of a valid definition; intervals without an anchor count from `created_at`."""
    wanted = min(_INSTANTS, definition.occurrences_max or _INSTANTS)
    found = list(instants(definition, uuid, now_us, wanted + 1, created_at=created_at))
    ends = len(found) <= wanted or definition.occurrences_max == wanted
    return Preview(sentence(definition), zone, zoned(found[:wanted], zone), ends)
