"""Schedules: a definition of instants that repeat, and the state that its row carries from one occurrence to the next.

Instants and durations are microseconds. An *occurrence* is one instant at which the schedule's timer fires, with all its
attempts. Its instant includes the jitter, which depends only on the schedule's uuid and the instant without it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.model.instants import INSTANT_MIN, US_PER_DAY, US_PER_SECOND

#: Occurrences by hand that may wait, failed ones that may wait to be replayed, and ranges of instants that may wait to be
#: fired once more: they stand in the schedule's row, which is written with each occurrence.
TRIGGERS_MAX = 100
REPLAYS_MAX = 100
BACKFILLS_MAX = 10
#: Instants are fired once more from this one on. The dates before, in any zone, are all in the range of dates.
REFILL_MIN = INSTANT_MIN + 3 * US_PER_DAY
#: Instants that the range of one backfill may have, without calendars: each is a call, and only a delete ends it early.
BACKFILLED_MAX = 100_000
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
    `managed_by` names the declaration that the schedule comes from; a new definition without one keeps it.

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
    managed_by: str | None = None
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
    it, `version` counts these changes. `tzdata` is the version of the time zones that planned it, `calendars` the stamp of
    its calendars then. `skips` are instants that are skipped by hand, ascending. `waits`: the current occurrence doesn't
    fire, because calendars exclude all instants up to its own; then the row is planned again."""

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
    version: int = 0
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
    managed_by: str | None | msgspec.UnsetType = msgspec.UNSET
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


def status_of(state: State) -> ScheduleStatus:
    """The status of a live schedule."""
    return ScheduleStatus.ACTIVE if state.paused is None else ScheduleStatus.PAUSED


# ---------------------------------------------------------------------- what clients ask for


class Put(msgspec.Struct, frozen=True, gc=False, tag="put"):
    """Creates the schedule that the operation's timer has, or gives the present one its definition. `expected_version` is
    that of the schedule that it applies to, here and in what follows; 0: there is none; None: whichever. `paused`: one
    that is created begins paused; the present one stays as it is."""

    expected_version: int | None = None
    paused: bool = False


class Edit(msgspec.Struct, frozen=True, gc=False, tag="edit"):
    """Changes fields of the definition. Fields of the timer are the operation's `changes`."""

    definition: DefinitionChanges = DefinitionChanges()
    expected_version: int | None = None


class Remove(msgspec.Struct, frozen=True, gc=False, tag="remove"):
    """Deletes the schedule of that version: the condition of an operation that deletes."""

    expected_version: int


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


ScheduleChange = Put | Edit | Remove | Pause | Resume | Fire | Refill | Replay | Skip | Unskip | Replan
