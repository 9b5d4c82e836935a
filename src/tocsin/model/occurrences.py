"""The instants of a schedule: those of its rule, delayed by its jitter, within its beginning and end, and as its calendars
allow; and whether a definition has any."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tocsin.model.calendar import NAMED_MAX, NO_CALENDARS, Calendars
from tocsin.model.errors import FieldError
from tocsin.model.excluding import ExcludedRange, Excluding, Search
from tocsin.model.instants import INSTANT_MAX, format_duration
from tocsin.model.recurrence import (
    EVERY_MAX_US,
    EVERY_MIN_US,
    YEARS_MAX,
    Cron,
    Every,
    Recurrence,
    check_steps,
    parsed,
    time_zone,
)
from tocsin.model.schedule import (
    MISSED_MAX,
    MOVED_TIMES_MAX,
    OCCURRENCES_MAX,
    WINDOW_MAX_US,
    Definition,
    OnSkipped,
    Schedule,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: Definitions whose instants are kept in memory ready to be reckoned.
_RECURRENCES_MAX = 4_096


class Excluded(NamedTuple):
    """An instant that doesn't fire: because of a calendar (`skip`), because it is of none of several (`only`), because a
    calendar is `missing`, or because it was skipped by hand (`once`)."""

    instant: int
    reason: str
    calendar: str


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
        self._rule = rule = recurrence_of(
            definition.cron,
            definition.time_zone,
            definition.every_us,
            created_at if definition.anchor is None else definition.anchor,
        )
        self._exclusions = exclusions = calendars.exclusions(definition.only, definition.skip)
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
        if found.at is not None and self._definition.jitter_us:
            # The other search has ended before it.
            found = Search(self._jittered(found.at))
        end = self._definition.end_at
        if end is None or (found.at is not None and found.at < end):
            return found
        excluded = None if self._excluding is None else self._rule.after(begin)
        # While some are left that are only excluded, its end is what it waits for.
        return (
            Search(None, end - 1) if excluded is not None and excluded < end and end - 1 > instant_us else Search(None)
        )

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
        return max(number - len(self._by_hand(after_us, until_us)), 0)

    def excluded(self, after_us: int, until_us: int) -> list[ExcludedRange]:
        """The instants later than the first and not later than the second that don't fire because a calendar excludes them,
        without jitter; and those that are skipped by hand. At most MISSED_MAX of each are counted."""
        ranges = []
        start_at, end_at = self._definition.start_at, self._definition.end_at
        begin, end = self._undelayed(after_us), self._undelayed(until_us)
        begin = begin if start_at is None else max(begin, start_at - 1)
        end = end if end_at is None else min(end, end_at - 1)
        if self._excluding is not None and begin < end:
            found = self._excluding.excluded(begin, end, MISSED_MAX)
            ranges += [] if found is None else [found]
        by_hand = self._by_hand(after_us, until_us)
        return [*ranges, ExcludedRange(len(by_hand), by_hand[0], by_hand[-1])] if by_hand else ranges

    def _by_hand(self, after_us: int, until_us: int) -> list[int]:
        """The instants in (after, until] that don't fire only because they are skipped by hand, ascending. Newer time zones
        or a changed calendar may have moved others of `skips`, or exclude them."""
        within = sorted(each for each in self._skips if after_us < each <= until_us)
        return [each for each in within if self._search(each - 1).at == each]

    def _undelayed(self, instant_us: int) -> int:
        """The instant up to which those of the rule lie whose jitter does not lead beyond the given one."""
        at = self._rule.until(instant_us) if self._definition.jitter_us else None
        return instant_us if at is None or self._jittered(at) <= instant_us else at - 1

    def excluded_instants(self, after_us: int, until_us: int) -> Iterator[Excluded]:
        """The same instants one by one, ascending, and why; with `next` also those that move. It ends where the search for
        another one has looked at `LOOKS_MAX`."""
        start_at, end_at = self._definition.start_at, self._definition.end_at
        by_hand = iter(self._by_hand(after_us, until_us))
        skipped = next(by_hand, None)
        at = after_us if start_at is None else max(after_us, start_at - 1)
        end = until_us if end_at is None else min(until_us, end_at - 1)
        while (found := self._next_excluded(at, end)) is not None:
            at = found.instant
            while skipped is not None and skipped < at:
                yield Excluded(skipped, "once", "")
                skipped = next(by_hand, None)
            yield found
        while skipped is not None:
            yield Excluded(skipped, "once", "")
            skipped = next(by_hand, None)

    def _next_excluded(self, after_us: int, until_us: int) -> Excluded | None:
        exclusions, at = self._exclusions, after_us
        if exclusions is None:
            return None
        limit = exclusions.limit()
        while at < until_us:
            begin = exclusions.next_begin(at + 1, until_us, limit)
            found = None if begin is None else self._rule.after(begin - 1)
            if found is None or found > until_us:
                return None
            if exclusions.stretch(found, limit) is not None:
                return Excluded(found, *exclusions.reason(found))
            at = found
        return None

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
        # The last instant of all has no room for any.
        room = max((following or INSTANT_MAX) - at, 1)
        return at + int.from_bytes(digest[:8], "big") % min(jitter, room)

    def _without_jitter(self, instant_us: int) -> int:
        """The instant up to which those without jitter lie whose jitter does not lead beyond the given one."""
        at = self._recurrence.until(instant_us) if self._definition.jitter_us else None
        return instant_us if at is None or self._jittered(at) <= instant_us else at - 1


def _every_day(expression: str) -> str:
    """The same times of each day."""
    minute, hour = parsed(expression).parts[1:3]
    return f"{minute} {hour} * * *"


def recurrence_of(cron: str | None, time_zone: str, every_us: int | None, anchor: int) -> Recurrence:
    """The instants of a rule without jitter, beginning and end; intervals count from the anchor."""
    # Only expressions are remembered: an interval takes no work, and those of monitors have another anchor with each ping.
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
    occurrences = Occurrences(definition, uuid, after_us if created_at is None else created_at, calendars, skips)
    return islice(occurrences.following(after_us), count)


def next_instants(
    schedule: Schedule, uuid: bytes, created_at: int, now_us: int, count: int, calendars: Calendars
) -> Iterator[int]:
    """The next regular instants of a schedule, as far as its number of occurrences allows; none if its time zone or its
    expression, which a node with others has stored, can't be read here."""
    definition, state = schedule.definition, schedule.state
    if definition.occurrences_max is not None:
        count = min(count, definition.occurrences_max - state.occurrences)
    after = max(now_us, state.position)
    try:
        return instants(
            definition, uuid, after, max(count, 0), created_at=created_at, calendars=calendars, skips=state.skips
        )
    except ValueError:
        return iter(())


def check(definition: Definition, now_us: int) -> list[FieldError]:
    """What is wrong with a definition, by the names of the API's fields."""
    errors = _check_rule(definition) + _check_numbers(definition) + _check_calendars(definition)
    start, end = definition.start_at, definition.end_at
    if start is not None and end is not None and end <= start:
        errors.append(FieldError("endAt", "must be later than startAt"))
    if errors:
        return errors
    # Calendars may change: a rule all of whose instants they exclude waits for that.
    rule = msgspec.structs.replace(definition, only=(), skip=(), on_skipped=OnSkipped.NONE)
    if next(instants(rule, None, max(now_us, (start or now_us) - 1), 1, created_at=now_us), None) is not None:
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
        check_steps(definition.cron)
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
