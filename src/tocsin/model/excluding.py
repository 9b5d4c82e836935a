"""The instants of a rule without those that calendars exclude, and with those that are moved to another date instead. Pure.

With `next`, an excluded time of a cron rule moves to the same time of day on the first later date that is not excluded then,
unless the rule matches a date before that, or that date itself: then its own times stand for the moved one.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from tocsin.model.calendar import Exclusions
from tocsin.model.recurrence import Cron, Recurrence

#: Excluded stretches in a row to which instants lead before the search for another one ends, even if it has looked at less
#: than `LOOKS_MAX`. Each takes 20 µs. A search that ends there is continued when the instant that it has reached has come.
JUMPS_MAX = 200
#: Excluded stretches in a row that a time leads over on its move to another date. More than one takes calendars of several
#: zones, which leave a part of the date between.
_MOVES_MAX = 20
#: Excluded stretches of a range whose instants are counted.
_COUNTED_MAX = 250
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


class Search(NamedTuple):
    """The instant that was found, if there is one; or the last excluded one that was reached, after which there may be more.
    Neither: the rule has no more instants."""

    at: int | None
    reached: int | None = None


class ExcludedRange(NamedTuple):
    """How many instants were excluded, the first and the last."""

    instants: int
    first_at: int
    last_at: int


class Excluding:
    """A recurrence without excluded instants. With `moves`, these move to the next date, and the rule is a `Cron` with fixed
    times."""

    def __init__(self, rule: Recurrence, exclusions: Exclusions, *, moves: bool = False) -> None:
        self._rule, self._exclusions = rule, exclusions
        self._cron = rule if moves and isinstance(rule, Cron) else None

    def after(self, instant_us: int) -> int | None:
        """The first later instant; None if the search has reached none."""
        return self.search(instant_us).at

    def search(self, instant_us: int) -> Search:
        """The first later instant, or how far it was looked for."""
        at, reached, limit = instant_us, None, self._exclusions.limit()
        for _ in range(JUMPS_MAX):
            found = self._rule.after(at)
            if self._cron is not None and (moved := self._moved_between(at, instant_us, found, limit)) is not None:
                return Search(moved)
            if found is None:
                return Search(None, reached)
            if reached is not None and self._exclusions.spent >= limit:
                return Search(None, self._rule.until(at) or reached)
            stretch = self._exclusions.stretch(found, limit)
            if stretch is None:
                return Search(found)
            reached = found
            if stretch.end is None:
                break
            at = stretch.end - 1
        return Search(None, reached)

    def until(self, instant_us: int) -> int | None:
        """The last instant not later than this one; None if there is none within `JUMPS_MAX` excluded stretches, and
        `LOOKS_MAX`."""
        at, limit = instant_us, self._exclusions.limit()
        for _ in range(JUMPS_MAX):
            found = self._rule.until(at)
            if found is None or self._exclusions.spent >= limit:
                return None
            if self._cron is not None:
                moved = [each for each in self._moved(self._date(found), limit) if each <= instant_us]
                if moved:
                    return moved[-1]
            stretch = self._exclusions.stretch(found, limit, back=True)
            if stretch is None:
                return found
            if stretch.begin is None:
                return None
            at = stretch.begin - 1
        return None

    def count(self, after_us: int, until_us: int, most: int) -> int:
        """How many instants are in (after, until], at most `most`, and those of the first `_COUNTED_MAX` stretches, as far as
        `LOOKS_MAX` reaches."""
        number, at, counted, limit = 0, after_us, set[date](), self._exclusions.limit()
        if self._cron is not None and (before := self._rule.until(after_us)) is not None:
            number += self._count_moved(self._date(before), after_us, until_us, counted, limit)
        for _ in range(2 * _COUNTED_MAX):
            if at >= until_us or number >= most or self._exclusions.spent >= limit:
                break
            stretch = self._exclusions.stretch(at + 1, limit)
            if stretch is None:
                begin = self._exclusions.next_begin(at + 1, until_us, limit)
                end = until_us if begin is None else min(until_us, begin - 1)
                number += self._rule.count(at, end, most)
                at = end
                continue
            end = until_us if stretch.end is None else min(until_us, stretch.end - 1)
            last = self._rule.until(end) if self._cron is not None else None
            if last is not None and last > at:
                number += self._count_moved(self._date(last), after_us, until_us, counted, limit)
            at = end
        return min(number, most)

    def excluded(self, after_us: int, until_us: int, most: int) -> ExcludedRange | None:
        """The excluded instants in (after, until], of which at most `most` are counted, as `count` does; None if there is
        none, or if excluded ones move."""
        if self._cron is not None:
            return None
        number, first, last, at, limit = 0, 0, 0, after_us, self._exclusions.limit()
        for _ in range(_COUNTED_MAX):
            if self._exclusions.spent >= limit:
                break
            begin = self._exclusions.next_begin(at + 1, until_us, limit)
            if begin is None:
                break
            stretch = self._exclusions.stretch(begin, limit)
            assert stretch is not None
            end = until_us if stretch.end is None else min(until_us, stretch.end - 1)
            if found := self._rule.count(begin - 1, end, most):
                first = first or self._rule.after(begin - 1) or begin
                last = self._rule.until(end) or end
                number = min(number + found, most)
            at = end
        return ExcludedRange(number, first, last) if number else None

    # ------------------------------------------------------------------ moved instants

    def _moved_between(self, at: int, after_us: int, found: int | None, limit: int) -> int | None:
        """The first moved instant later than one, of the last date that the rule matches before the instant found after
        `at`. Those of earlier dates are earlier."""
        last = self._rule.until(at if found is None else found - 1)
        if last is None:
            return None
        day = self._date(last)
        if found is not None and (self._date(found) - day).days <= 1:
            return None
        return next((each for each in self._moved(day, limit) if each > after_us), None)

    def _count_moved(self, day: date, after_us: int, until_us: int, counted: set[date], limit: int) -> int:
        if day in counted:
            return 0
        counted.add(day)
        return sum(after_us < each <= until_us for each in self._moved(day, limit))

    def _moved(self, day: date, limit: int) -> list[int]:
        """The instants to which the excluded times of a date that the rule matches move, ascending."""
        assert self._cron is not None
        following = self._cron.date_after(day)
        if following is not None and following - day == _DAY:
            return []
        times = (self._moved_time(day, following, minute, limit) for minute in self._cron.minutes or ())
        return sorted({each for each in times if each is not None})

    def _moved_time(self, day: date, following: date | None, minute_us: int, limit: int) -> int | None:
        assert self._cron is not None
        at = self._cron.moment(day, minute_us)
        stretch = self._exclusions.stretch(at, limit)
        if stretch is None:
            return None
        for _ in range(_MOVES_MAX):
            if stretch.end is None:
                return None
            try:
                day = self._date(stretch.end)
                at = self._cron.moment(day, minute_us)
                if at < stretch.end:
                    day += _DAY
                    at = self._cron.moment(day, minute_us)
            except OverflowError:
                return None
            if following is not None and day >= following:
                return None
            stretch = self._exclusions.stretch(at, limit)
            if stretch is None:
                return at
        return None

    def _date(self, instant_us: int) -> date:
        assert self._cron is not None
        return (_EPOCH + timedelta(microseconds=instant_us)).astimezone(self._cron.zone).date()
