"""Presentation of schedules: their states, and instants in their own time zone; and the preview of a rule."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

from tocsin.model.calendar import NO_CALENDARS, Calendars
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, parse_duration
from tocsin.model.occurrences import Excluded, Occurrences, instants
from tocsin.model.recurrence import parsed, time_zone
from tocsin.model.run import Run, source_of
from tocsin.model.schedule import CatchUp, Definition, OnSkipped, ScheduleStatus, Source
from tocsin.model.schedule_reading import find_zone
from tocsin.model.schedule_words import every_sentence, rule_sentence
from tocsin.timers.schedules import ScheduleView
from tocsin.web.pages.forms import duration
from tocsin.web.pages.presentation import State, clock, count, doing, path_below, version_of_doing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The tones of an occurrence's outcomes.
_TONES = {"completed": "done", "failed": "failed", "pending": "pending", "expired": "expired"}
_SOURCES = {
    Source.REGULAR: "",
    Source.TRIGGER: "fired by hand",
    Source.BACKFILL: "backfilled",
    Source.REPLAY: "replayed",
}
_MISSED = {
    "late": "passed before it could fire",
    "overlap": "passed while an occurrence was unfinished",
    "window": "were older than the catch-up window",
    "paused": "passed while it was paused",
    "excluded": "were excluded by a calendar, or skipped",
}
ON_SKIPPED_WORDS = {
    OnSkipped.NONE: "Doesn’t fire",
    OnSkipped.NEXT: "Moves to the next date that is allowed",
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
    """The zone in which a schedule's instants are shown: UTC if its own can't be read here."""
    zone = definition.time_zone if definition.cron is not None else "UTC"
    try:
        time_zone(zone)
    except ValueError:
        return "UTC"
    return zone


def state_of(view: ScheduleView, now_us: int) -> State:
    """The state of a schedule at an instant. One whose occurrence is due and not finished is due
    itself, or what its explanation states."""
    if view.status is ScheduleStatus.ENDED:
        return State("ended", "canceled")
    due, known = view.next_attempt_at is not None and view.next_attempt_at <= now_us, doing(view.explanation)
    if known is not None and known.tone == "firing":
        return known
    if view.namespace_paused or (view.status is ScheduleStatus.PAUSED and not (due and _triggered(view))):
        return State("paused", "suspended")
    if known is not None:
        return known
    if view.suspended is not None:
        return State("suspended", "suspended")
    if due:
        return State("due", "due")
    return State("retrying", "retrying") if view.timer.attempts else State("active", "pending")


def waits_for_resumption(view: ScheduleView) -> bool:
    """Whether the current occurrence does not fire because the schedule is paused."""
    return view.status is ScheduleStatus.PAUSED and not _triggered(view)


def _triggered(view: ScheduleView) -> bool:
    schedule = view.timer.schedule
    return schedule is not None and schedule.state.source is Source.TRIGGER


def outcome(name: str) -> State:
    """How an occurrence ended, by its status; the current one is pending."""
    return State(name, _TONES.get(name, "canceled"))


def source_words(run: Run) -> str:
    """Why the occurrence fired; empty for one at its instant."""
    return _SOURCES[source_of(run)]


def counted(counts: Mapping[str, int]) -> str:
    """Numbers of occurrences by outcome, such as `41 completed, 1 failed`."""
    return ", ".join(f"{count(number)} {name}" for name, number in sorted(counts.items())) or "none has ended yet"


def missed_words(missed: Mapping[str, int]) -> list[str]:
    """How many instants did not fire, by reason."""
    return [f"{count(number)} {_MISSED.get(reason, reason)}" for reason, number in sorted(missed.items())]


def schedule_path(namespace: str, schedule_id: str) -> str:
    """The path of a schedule's page."""
    return path_below("/schedules", namespace, schedule_id)


def version(view: ScheduleView) -> str:
    """A version that changes whenever what a row of the list shows does."""
    following = view.next_instants[0] if view.next_instants else 0
    ended_at = view.last_occurrence.finished_at if view.last_occurrence else 0
    return (
        f"{view.updated_at:x}.{ended_at:x}.{view.next_attempt_at or 0:x}.{following:x}.{view.timer.attempts:x}"
        f".{view.status[0]}{view.triggers:x}.{view.backfills:x}.{sum(view.missed.values()):x}"
        f"{version_of_doing(view.explanation)}{'p' if view.namespace_paused else ''}"
    )


#: Instants that a preview lists: enough to see a week.
_INSTANTS = 7
#: Other schedules with the same instant are counted up to this number: more don't change the advice.
OTHERS_MAX = 100
#: Excluded instants that are shown, and how far they are looked for if no instant is left.
_EXCLUDED_SHOWN, _WITHOUT_INSTANTS_US = 7, 366 * US_PER_DAY


def is_interval(rule: str) -> bool:
    """Whether the text of a rule is an interval and not a cron expression."""
    try:
        return parse_duration(duration(rule)) > 0
    except (ValueError, OverflowError):
        return False


def spoken(rule: str, zone: str) -> str:
    """A rule within a sentence, such as "every weekday at 09:00 in Berlin"; empty if it is invalid."""
    try:
        words = every_sentence(parse_duration(duration(rule))) if is_interval(rule) else rule_sentence(parsed(rule))
    except ValueError:
        return ""
    return f"{words[0].lower()}{words[1:]}{'' if is_interval(rule) else in_words(zone)}"


def in_words(zone: str) -> str:
    """A zone behind a time of day, such as " in Berlin"; by its whole name unless its city is enough."""
    city = zone.rpartition("/")[2].replace("_", " ")
    try:
        return f" in {city}" if "/" in zone and find_zone(city) == zone else f" {zone}"
    except ValueError:
        return f", {zone}"


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """An instant: its date and time in the rule's zone, and its time in UTC. `notice` explains a change of the clocks since
    the row before."""

    at: int
    date: str
    time: str
    utc: str
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """The next instants of a definition; `first` is the first one's day in words. `ends`: there are no more. `excluded` are
    the first of those until the last that don't fire, in words."""

    instants: list[PreviewRow]
    first: str
    ends: bool
    excluded: list[str]


def preview(
    definition: Definition, zone: str, created_at: int, now_us: int, calendars: Calendars = NO_CALENDARS
) -> Preview:
    """The preview of a valid definition in a zone, without its jitter. Intervals without an anchor count from
    `created_at`."""
    wanted = min(_INSTANTS, definition.occurrences_max or _INSTANTS)
    found = list(instants(definition, None, now_us, wanted + 1, created_at=created_at, calendars=calendars))
    until = found[:wanted][-1] if found else now_us + _WITHOUT_INSTANTS_US
    excluded = Occurrences(definition, b"", created_at, calendars).excluded_instants(now_us, until)
    ends = (len(found) <= wanted and not definition.calendars) or definition.occurrences_max == wanted
    rules, now = time_zone(zone), in_zone(now_us, time_zone(zone))
    rows: list[PreviewRow] = []
    before = None
    for at in found[:wanted]:
        local, utc = in_zone(at, rules), in_zone(at, UTC)
        notice = "" if before is None else _clocks(before, local, zone)
        rows.append(PreviewRow(at, _date(local, now), clock(local), _utc(utc, local), notice))
        before = local
    first = in_zone(found[0], rules) if found else None
    words = [excluded_words(each, rules, now) for each in islice(excluded, _EXCLUDED_SHOWN)]
    return Preview(rows, "" if first is None else _day(first, now), ends, words)


def excluded_words(excluded: Excluded, rules: tzinfo, now: datetime) -> str:
    """An excluded instant and why, such as `Sat 6 Feb 09:00 (weekends)`."""
    local = in_zone(excluded.instant, rules)
    why = {"once": "skipped", "only": f"not in {excluded.calendar}", "missing": f"no calendar {excluded.calendar}"}
    return f"{_date(local, now)} {clock(local)} ({why.get(excluded.reason, excluded.calendar)})"


def _date(at: datetime, now: datetime) -> str:
    return f"{at:%a} {at.day} {at:%b}" if at.year == now.year else f"{at:%a} {at.day} {at:%b %Y}"


def _day(at: datetime, now: datetime) -> str:
    days = (at.date() - now.date()).days
    return {0: "today", 1: "tomorrow"}.get(days, f"on {_date(at, now)}")


def _utc(utc: datetime, local: datetime) -> str:
    """The time in UTC, with the weekday if that is another one."""
    return f"{clock(utc)} UTC" if utc.date() == local.date() else f"{utc:%a} {clock(utc)} UTC"


def _clocks(before: datetime, after: datetime, zone: str) -> str:
    """How the clocks change between two instants; empty if they don't."""
    old, new = before.utcoffset(), after.utcoffset()
    if old is None or new is None or old == new:
        return ""
    seconds = range(round(before.timestamp()), round(after.timestamp()))
    rules = time_zone(zone)
    changed = bisect_left(seconds, True, key=lambda at: in_zone(at * US_PER_SECOND, rules).utcoffset() != old)
    at = in_zone((seconds.start + changed) * US_PER_SECOND, rules)
    words = f"Clocks go {'forward' if new > old else 'back'} on {_date(at, before)}."
    city, shown, utc = in_words(zone), clock(after), [clock(each.astimezone(UTC)) for each in (before, after)]
    if clock(before) == shown:
        return f"{words} It stays {shown}{city}; in UTC it moves to {utc[1]}."
    if after.date() == at.date() and new > old:
        return f"{words} {clock(before)} doesn’t exist on that day; it runs at {shown}."
    return f"{words} It stays {utc[1]} in UTC; it moves to {shown}{city}." if utc[0] == utc[1] else words
