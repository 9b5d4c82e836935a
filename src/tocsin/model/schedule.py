"""Schedules: a definition of instants that repeat, and the state that its row carries from one occurrence to the next.

Instants and durations are microseconds. An *occurrence* is one instant at which the schedule's timer fires, with all its
attempts. Its instant includes the jitter, which depends only on the schedule's uuid and the instant without it.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from tocsin.model.calendar import NAMED_MAX, NO_CALENDARS, Calendars
from tocsin.model.errors import FieldError
from tocsin.model.excluding import ExcludedRange, Excluding, Search
from tocsin.model.instants import INSTANT_MAX, US_PER_DAY, US_PER_SECOND, format_duration
from tocsin.model.recurrence import (
    EVERY_MAX_US,
    EVERY_MIN_US,
    YEARS_MAX,
    Cron,
    Every,
    Recurrence,
    parsed,
    time_zone,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: Occurrences by hand that may wait, failed ones that may wait to be replayed, and ranges of instants that may wait to be
#: fired once more: they stand in the schedule's row, which is written with each occurrence.
TRIGGERS_MAX = 100
REPLAYS_MAX = 100
BACKFILLS_MAX = 10
#: Instants of one schedule that are skipped by hand, and not past.
SKIPS_MAX = 100
#: Times of day of a rule whose excluded instants move to another date.
MOVED_TIMES_MAX = 24
#: Missed instants are counted up to this number.
MISSED_MAX = 1_000
#: The greatest lateness of an occurrence where the definition has none: with `none`, and otherwise.
WINDOW_NONE_US, WINDOW_US = 60 * US_PER_SECOND, US_PER_DAY
WINDOW_MAX_US = 366 * US_PER_DAY
OCCURRENCES_MAX = 2**53
#: Definitions whose instants are kept in memory ready to be reckoned.
_RECURRENCES_MAX = 4_096
#: Why a schedule is paused: somebody asked for it, or too many occurrences in a row failed.
PAUSED_BY_REQUEST, PAUSED_AFTER_FAILURES = "request", "failures"


class CatchUp(StrEnum):
    """What becomes of instants that have passed while the schedule could not fire."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


class ScheduleStatus(StrEnum):
    """Whether a schedule fires. An ended one has no more instants, or was deleted."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Source(StrEnum):
    """Why an occurrence fires: its instant has come, somebody asked for it, it is fired once more, or it had failed and is
    replayed."""

    REGULAR = "regular"
    TRIGGER = "trigger"
    BACKFILL = "backfill"
    REPLAY = "replay"


class OnSkipped(StrEnum):
    """What becomes of an instant that a calendar excludes: nothing, or it moves to the next date that is not excluded."""

    NONE = "none"
    NEXT = "next"


class Missed(StrEnum):
    """Why an instant did not fire."""

    #: It passed before the schedule could fire, or while the previous occurrence was not finished.
    LATE = "late"
    OVERLAP = "overlap"
    #: It is older than the catch-up window.
    WINDOW = "window"
    #: The schedule was paused.
    PAUSED = "paused"
    #: A calendar excludes it, or it was skipped by hand.
    EXCLUDED = "excluded"


class Definition(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """When a schedule is due. Either `cron` (in `time_zone`) or `every_us` is set.

    Intervals count from `anchor`, or from the schedule's creation. `start_at` is inclusive, `end_at` exclusive; at most
    `occurrences_max` regular occurrences fire. `catch_up_window_us` is the greatest lateness of an occurrence; None: 24
    hours, or a minute without catch-up. `pause_after_failures` is how many occurrences in a row may fail; 0: any number.

    `only` and `skip` name calendars: with `only`, instants are of one of those; none is of one of `skip`."""

    cron: str | None = None
    time_zone: str = "UTC"
    every_us: int | None = None
    anchor: int | None = None
    start_at: int | None = None
    end_at: int | None = None
    occurrences_max: int | None = None
    jitter_us: int = 0
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_window_us: int | None = None
    pause_after_failures: int = 0
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    on_skipped: OnSkipped = OnSkipped.NONE

    @property
    def calendars(self) -> tuple[str, ...]:
        """The calendars that it names."""
        return (*self.only, *self.skip)

    @property
    def window_us(self) -> int:
        """The greatest lateness in force."""
        if self.catch_up_window_us is not None:
            return self.catch_up_window_us
        return WINDOW_NONE_US if self.catch_up is CatchUp.NONE else WINDOW_US

    @property
    def timing(self) -> tuple[object, ...]:
        """What decides on the instants. A definition with another timing is planned again."""
        return (
            self.cron, self.time_zone, self.every_us, self.anchor, self.start_at, self.end_at, self.occurrences_max,
            self.jitter_us, self.only, self.skip, self.on_skipped,
        )  # fmt: skip


class Trigger(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An occurrence by hand: when it was asked for, and the name of its firing."""

    instant: int
    firing: str


class FailedOccurrence(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A failed occurrence to fire again: its instant, and the name of its firing, which it keeps."""

    instant: int
    firing: str


class Backfill(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A range of instants to fire once more: those later than `after` and before `before`. `after` moves with each."""

    number: int
    after: int
    before: int


class LastOccurrence(msgspec.Struct, frozen=True, gc=False):
    """The occurrence that ended last."""

    instant: int
    source: Source
    outcome: str
    finished_at: int
    attempts: int


class State(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a schedule's row carries besides the definition.

    Regular instants up to `position` are accounted for. The current occurrence has `source`; its instant is the timer's
    `execute_at`. `turn` is whose turn it is when both a regular and a replayed or backfilled instant are due. `counts` has
    occurrences by outcome and `missed` the missed instants by reason. `failures` counts the failed ones in a row,
    `occurrences` the regular ones. `paused` is the reason of a pause. `away`: an attempt is in flight at a former owner of
    the shard. `postponed` counts how often the receiver has postponed the occurrence. `changed_at` is when a client changed
    it. `tzdata` is the version of the time zones that planned it, `calendars` the stamp of its calendars then. `skips` are
    instants that are skipped by hand, ascending. `waits`: the current occurrence doesn't fire, because calendars exclude all
    instants up to its own; then the row is planned again."""

    position: int
    source: Source = Source.REGULAR
    turn: Source = Source.REGULAR
    triggers: tuple[Trigger, ...] = ()
    backfills: tuple[Backfill, ...] = ()
    backfills_made: int = 0
    replays: tuple[FailedOccurrence, ...] = ()
    counts: dict[str, int] = {}
    missed: dict[str, int] = {}
    failures: int = 0
    occurrences: int = 0
    last: LastOccurrence | None = None
    paused: str | None = None
    away: bool = False
    postponed: int = 0
    changed_at: int = 0
    tzdata: str = ""
    calendars: str = ""
    skips: tuple[int, ...] = ()
    waits: bool = False


class Schedule(msgspec.Struct, frozen=True, gc=False):
    """The part of a timer that makes it a schedule."""

    definition: Definition
    state: State


class DefinitionChanges(msgspec.Struct, frozen=True, gc=False):
    """The fields of a definition that an update changes. UNSET leaves a field unchanged; None, where allowed, clears it. A
    new `cron` replaces `every_us`, and the other way round."""

    cron: str | None | msgspec.UnsetType = msgspec.UNSET
    time_zone: str | msgspec.UnsetType = msgspec.UNSET
    every_us: int | None | msgspec.UnsetType = msgspec.UNSET
    anchor: int | None | msgspec.UnsetType = msgspec.UNSET
    start_at: int | None | msgspec.UnsetType = msgspec.UNSET
    end_at: int | None | msgspec.UnsetType = msgspec.UNSET
    occurrences_max: int | None | msgspec.UnsetType = msgspec.UNSET
    jitter_us: int | msgspec.UnsetType = msgspec.UNSET
    catch_up: CatchUp | msgspec.UnsetType = msgspec.UNSET
    catch_up_window_us: int | None | msgspec.UnsetType = msgspec.UNSET
    pause_after_failures: int | msgspec.UnsetType = msgspec.UNSET
    only: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    skip: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    on_skipped: OnSkipped | msgspec.UnsetType = msgspec.UNSET

    def apply(self, definition: Definition) -> Definition:
        """The changed definition."""
        wanted = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not msgspec.UNSET}
        if wanted.get("cron") is not None:
            wanted.setdefault("every_us", None)
        elif wanted.get("every_us") is not None:
            wanted.setdefault("cron", None)
        return msgspec.structs.replace(definition, **wanted)


class Occurrences:
    """The regular instants of one schedule: jitter, beginning and end included, and without those that its calendars
    exclude and `skips`."""

    def __init__(
        self,
        definition: Definition,
        uuid: bytes,
        created_at: int,
        calendars: Calendars = NO_CALENDARS,
        skips: Collection[int] = (),
    ) -> None:
        rule = _recurrence(
            definition.cron,
            definition.time_zone,
            definition.every_us,
            created_at if definition.anchor is None else definition.anchor,
        )
        exclusions = calendars.exclusions(definition.only, definition.skip)
        self._excluding: Excluding | None = None
        #: What bounds the jitter of each instant. It does not depend on calendars: when these change, an instant stays where
        #: it is, and one that has fired does not come again.
        self._bounds = rule
        if exclusions is not None:
            moves = definition.on_skipped is OnSkipped.NEXT
            self._excluding = Excluding(rule, exclusions, moves=moves)
            if moves and definition.cron is not None:
                self._bounds = _cron(_every_day(definition.cron), definition.time_zone)
        self._recurrence = rule if self._excluding is None else self._excluding
        self._definition = definition
        self._uuid = uuid
        self._skips = frozenset(skips)

    def after(self, instant_us: int) -> int | None:
        """The first instant later than this one; None if there is none, as far as it was looked for."""
        return self.search(instant_us).at

    def search(self, instant_us: int) -> Search:
        """The first instant later than this one, or how far it was looked for."""
        found = self._search(instant_us)
        while found.at is not None and found.at in self._skips:
            found = self._search(found.at)
        return found

    def _search(self, instant_us: int) -> Search:
        if self._definition.jitter_us:
            at = next(self._delayed_after(instant_us), None)
            if at is not None or self._excluding is None:
                return Search(at)
        start = self._definition.start_at
        begin = instant_us if start is None else max(instant_us, start - 1)
        found = Search(self._recurrence.after(begin)) if self._excluding is None else self._excluding.search(begin)
        end = self._definition.end_at
        if found.at is not None:
            return found if self._in_range(found.at) else Search(None)
        if found.reached is None or end is None or found.reached < end:
            return found
        # Only its end is left to wait for.
        return Search(None, end - 1) if end - 1 > instant_us else Search(None)

    def until(self, instant_us: int) -> int | None:
        """The last instant not later than this one; None if there is none."""
        found = self._until(instant_us)
        while found is not None and found in self._skips:
            found = self._until(found - 1)
        return found

    def _until(self, instant_us: int) -> int | None:
        end = self._definition.end_at
        at = self._recurrence.until(instant_us if end is None else min(instant_us, end - 1))
        if at is None:
            return None
        delayed = self._jittered(at)
        if delayed > instant_us:
            at = self._recurrence.until(at - 1)
            if at is None:
                return None
            delayed = self._jittered(at)
        return delayed if self._in_range(at) else None

    def count(self, after_us: int, until_us: int) -> int:
        """How many instants are later than the first and not later than the second, at most MISSED_MAX."""
        begin, end = self._without_jitter(after_us), self._without_jitter(until_us)
        start_at, end_at = self._definition.start_at, self._definition.end_at
        begin = begin if start_at is None else max(begin, start_at - 1)
        end = end if end_at is None else min(end, end_at - 1)
        number = self._recurrence.count(begin, end, MISSED_MAX) if begin < end else 0
        return max(number - sum(after_us < each <= until_us for each in self._skips), 0)

    def excluded(self, after_us: int, until_us: int) -> list[ExcludedRange]:
        """The instants later than the first and not later than the second that don't fire because a calendar excludes them,
        without jitter; and those that are skipped by hand. At most MISSED_MAX of each are counted."""
        ranges = []
        start_at, end_at = self._definition.start_at, self._definition.end_at
        begin = after_us if start_at is None else max(after_us, start_at - 1)
        end = until_us if end_at is None else min(until_us, end_at - 1)
        if self._excluding is not None and begin < end:
            found = self._excluding.excluded(begin, end, MISSED_MAX)
            ranges += [] if found is None else [found]
        by_hand = sorted(each for each in self._skips if after_us < each <= until_us)
        return [*ranges, ExcludedRange(len(by_hand), by_hand[0], by_hand[-1])] if by_hand else ranges

    def following(self, after_us: int) -> Iterator[int]:
        """The instants later than this one."""
        if self._definition.jitter_us:
            yield from (at for at in self._delayed_after(after_us) if at not in self._skips)
            return
        at = self.after(after_us)
        while at is not None:
            yield at
            at = self.after(at)

    def _delayed_after(self, after_us: int) -> Iterator[int]:
        """`following` with jitter: one search for each instant, and up to three for the first."""
        start = self._definition.start_at
        # One from before may lie behind it because of its jitter.
        at = self._recurrence.until(after_us)
        if at is None or (start is not None and at < start):
            at = self._recurrence.after(after_us if start is None else max(after_us, start - 1))
        while at is not None and self._in_range(at):
            following = self._recurrence.after(at)
            bound = following if self._excluding is None else self._bounds.after(at)
            if (delayed := self._delayed(at, bound)) > after_us:
                yield delayed
            at = following

    def _in_range(self, at: int) -> bool:
        start, end = self._definition.start_at, self._definition.end_at
        return (start is None or at >= start) and (end is None or at < end)

    def _jittered(self, at: int) -> int:
        return self._delayed(at, self._bounds.after(at)) if self._definition.jitter_us else at

    def _delayed(self, at: int, following: int | None) -> int:
        """An instant with its jitter, which ends before the following one."""
        jitter = self._definition.jitter_us
        if not jitter:
            return at
        digest = hashlib.sha256(self._uuid + at.to_bytes(8, "big", signed=True)).digest()
        return at + int.from_bytes(digest[:8], "big") % min(jitter, (following or INSTANT_MAX) - at)

    def _without_jitter(self, instant_us: int) -> int:
        """The instant up to which those without jitter lie whose jitter does not lead beyond the given one."""
        at = self._recurrence.until(instant_us) if self._definition.jitter_us else None
        return instant_us if at is None or self._jittered(at) <= instant_us else at - 1


def _every_day(expression: str) -> str:
    """The same times of each day."""
    minute, hour = parsed(expression).parts[1:3]
    return f"{minute} {hour} * * *"


@lru_cache(_RECURRENCES_MAX)
def _recurrence(cron: str | None, time_zone: str, every_us: int | None, anchor: int) -> Recurrence:
    if cron is not None:
        return _cron(cron, time_zone)
    assert every_us is not None
    return Every(every_us, anchor)


def _cron(expression: str, time_zone: str) -> Cron:
    found = _cron_or_refusal(expression, time_zone)
    if isinstance(found, str):
        raise ValueError(found)  # noqa: TRY004 -- it is the value that is bad
    return found


@lru_cache(_RECURRENCES_MAX)
def _cron_or_refusal(expression: str, time_zone: str) -> Cron | str:
    """The expression, or why it is refused: to find that none of its dates exists takes longest of all."""
    try:
        return Cron(expression, time_zone)
    except ValueError as error:
        return str(error)


def instants(
    definition: Definition,
    uuid: bytes | None,
    after_us: int,
    count: int,
    *,
    created_at: int | None = None,
    calendars: Calendars = NO_CALENDARS,
    skips: Collection[int] = (),
) -> Iterator[int]:
    """The first `count` instants after one. Without a uuid, instants are without jitter. Without an anchor, intervals count
    from `created_at`, or from `after_us`."""
    if uuid is None:
        definition, uuid = msgspec.structs.replace(definition, jitter_us=0), b""
    occurrences = Occurrences(
        definition, uuid, after_us if created_at is None else created_at, calendars, skips
    )
    return islice(occurrences.following(after_us), count)


def next_instants(
    schedule: Schedule, uuid: bytes, created_at: int, now_us: int, count: int, calendars: Calendars
) -> Iterator[int]:
    """The next regular instants of a schedule, as far as its number of occurrences allows."""
    definition, state = schedule.definition, schedule.state
    if definition.occurrences_max is not None:
        count = min(count, definition.occurrences_max - state.occurrences)
    after = max(now_us, state.position)
    return instants(
        definition, uuid, after, max(count, 0), created_at=created_at, calendars=calendars, skips=state.skips
    )


def check(definition: Definition, now_us: int) -> list[FieldError]:
    """What is wrong with a definition, by the names of the API's fields."""
    errors = _check_rule(definition) + _check_numbers(definition) + _check_calendars(definition)
    start, end = definition.start_at, definition.end_at
    if start is not None and end is not None and end <= start:
        errors.append(FieldError("endAt", "must be later than startAt"))
    if errors:
        return errors
    if next(instants(definition, None, max(now_us, (start or now_us) - 1), 1, created_at=now_us), None) is not None:
        return []
    if end is not None:
        return [FieldError("endAt", "has no instant before it and after now; choose a later one")]
    return [FieldError("cron", f"matches no instant within {YEARS_MAX} years")]


def _check_rule(definition: Definition) -> list[FieldError]:
    if definition.cron is None and definition.every_us is None:
        return [FieldError("cron", "is missing; send cron or every")]
    if definition.cron is not None and definition.every_us is not None:
        return [FieldError("every", "conflicts with cron; send only one of them")]
    if definition.every_us is not None:
        if EVERY_MIN_US <= definition.every_us <= EVERY_MAX_US:
            return []
        return [
            FieldError("every", f"must be between {format_duration(EVERY_MIN_US)} and {format_duration(EVERY_MAX_US)}")
        ]
    assert definition.cron is not None
    if definition.anchor is not None:
        return [FieldError("anchor", "applies only to every; leave it out with cron")]
    errors = []
    try:
        time_zone(definition.time_zone)
    except ValueError as error:
        errors.append(FieldError("timeZone", str(error)))
    try:
        _cron(definition.cron, "UTC" if errors else definition.time_zone)
    except ValueError as error:
        errors.append(FieldError("cron", str(error)))
    return errors


def _check_numbers(definition: Definition) -> list[FieldError]:
    errors = []
    for name, value, least, most in (
        ("maxOccurrences", definition.occurrences_max, 1, OCCURRENCES_MAX),
        ("pauseAfterFailures", definition.pause_after_failures, 0, 1_000_000),
    ):
        if value is not None and not least <= value <= most:
            errors.append(FieldError(name, f"must be between {least} and {most}"))
    for name, value, most in (
        ("jitter", definition.jitter_us, EVERY_MAX_US),
        ("catchUpWindow", definition.catch_up_window_us, WINDOW_MAX_US),
    ):
        if value is not None and not 0 <= value <= most:
            errors.append(FieldError(name, f"must be between 0s and {format_duration(most)}"))
    return errors


def _check_calendars(definition: Definition) -> list[FieldError]:
    errors = []
    for name, value in (("only", definition.only), ("skip", definition.skip)):
        if len(value) > NAMED_MAX:
            errors.append(FieldError(name, f"names {len(value)} calendars; name at most {NAMED_MAX}"))
        elif len(set(value)) < len(value):
            errors.append(FieldError(name, "names a calendar twice; name it once"))
    if definition.on_skipped is OnSkipped.NONE:
        return errors
    if not definition.calendars:
        errors.append(FieldError("onSkipped", "requires a calendar; send only or skip, or leave it out"))
    elif definition.cron is None:
        errors.append(
            FieldError("onSkipped", "can be next only with cron: an interval has no time of day; send cron, or none")
        )
    else:
        found = _cron_or_refusal(definition.cron, "UTC")
        if isinstance(found, Cron) and not 0 < len(found.minutes or ()) <= MOVED_TIMES_MAX:
            errors.append(
                FieldError(
                    "onSkipped",
                    f"can be next only with at most {MOVED_TIMES_MAX} fixed times a day, without seconds: cron's minute and "
                    "hour must not begin with *; list the hours, or send none",
                )
            )
    return errors


def status_of(state: State) -> ScheduleStatus:
    """The status of a live schedule."""
    return ScheduleStatus.ACTIVE if state.paused is None else ScheduleStatus.PAUSED


# ---------------------------------------------------------------------- what clients ask for


class Put(msgspec.Struct, frozen=True, gc=False, tag="put"):
    """Creates the schedule that the operation's timer has, or gives the present one its definition."""


class Edit(msgspec.Struct, frozen=True, gc=False, tag="edit"):
    """Changes fields of the definition. Fields of the timer are the operation's `changes`."""

    definition: DefinitionChanges = DefinitionChanges()


class Pause(msgspec.Struct, frozen=True, gc=False, tag="pause"):
    """Lets the attempt in flight end and allows no other."""


class Resume(msgspec.Struct, frozen=True, gc=False, tag="resume"):
    """Fires again, from the next instant on."""


class Fire(msgspec.Struct, frozen=True, gc=False, tag="fire"):
    """Fires once, as soon as the current occurrence has ended."""


class Refill(msgspec.Struct, frozen=True, gc=False, tag="refill"):
    """Fires the instants later than `after` and before `before` once more."""

    after: int
    before: int


class Replay(msgspec.Struct, frozen=True, gc=False, tag="replay"):
    """Fires these failed occurrences again, whose runs have these generations."""

    occurrences: tuple[FailedOccurrence, ...]
    generations: tuple[bytes, ...] = ()


class Skip(msgspec.Struct, frozen=True, gc=False, tag="skip"):
    """Skips one instant to come."""

    instant: int


class Unskip(msgspec.Struct, frozen=True, gc=False, tag="unskip"):
    """Fires at an instant all the same that was skipped by hand."""

    instant: int


class Replan(msgspec.Struct, frozen=True, gc=False, tag="replan"):
    """Plans the current occurrence again if newer time zones or changed calendars give it another instant. No client asks for
    it; the owner of the schedule's shard does."""


ScheduleChange = Put | Edit | Pause | Resume | Fire | Refill | Replay | Skip | Unskip | Replan
