"""Outages: intervals in which a node fired nothing, with what they did.

A node notes when its dispatch is paused and why, and afterwards counts the attempts that began late because of it, until
it has caught up. The interval is in the node's memory while it lasts, and a record from the moment at which the store
answers again: of an outage in which the node was killed, nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from tocsin.ports.clock import Clock
from tocsin.ports.observer import DispatchPaused, DispatchResumed, Event
from tocsin.statistics.limits import StatisticsLimits

#: A node that starts or stops is not out.
_NO_OUTAGES = ("starting", "stopped")
#: By how much an attempt may seem to have begun before the end of the outage that it waited for: its duration is measured by
#: another clock than its end.
_CLOCKS_DIFFER_US = 50_000


class Outage(msgspec.Struct, omit_defaults=True):
    """An interval in which a node fired nothing, in microseconds; `to_us` None: it lasts. `reason` is a code of
    `tocsin.timers.explaining.PAUSE_TEXTS`.

    `late` attempts that were due before its end began more than a second after their instant, by at most `late_max_us`.
    `creates_refused`: requests to create timers or schedules that were answered with an error of the server meanwhile, and
    timers of batches that were answered, each by itself.
    `counting`: more late attempts may be counted."""

    node: str
    reason: str
    from_us: int
    to_us: int | None = None
    detail: str = ""
    late: int = 0
    late_max_us: int = 0
    creates_refused: int = 0
    counting: bool = False


class Engine(Protocol):
    """What the tracker has to know of the engine."""

    def paused_reason(self) -> str | None:
        """Why nothing fires now; None while timers fire."""

    def paused_since_us(self) -> int:
        """Since when, while that is so."""

    def caught_up(self) -> bool:
        """Whether all that is due has been loaded and begun, as far as this node knows."""

    def in_flight(self) -> int:
        """Attempts in flight."""


class OutageTracker:
    """This node's outages: the present one, and those whose late attempts are still counted. An observer of the events; call
    `look` every second. `refused` returns how many creates were refused since the process started."""

    def __init__(self, clock: Clock, limits: StatisticsLimits, refused: Callable[[], int]) -> None:
        self._node = ""
        self._clock = clock
        self._limits = limits
        self._refused = refused
        self._refused_before = 0
        self._engine: Engine | None = None
        self._caught_up_us: int | None = None
        #: The one that lasts.
        self.present: Outage | None = None
        #: Those that have ended and are not stored as they are now, the earliest first.
        self.unstored: list[Outage] = []
        #: When storing was last tried, since the latest outage.
        self.tried_us = 0
        #: Those whose late attempts are counted, the earliest first.
        self.aftermath: list[Outage] = []

    def attach(self, node: str, engine: Engine) -> None:
        """Watches the engine of the node from now on."""
        self._node, self._engine = node, engine

    def __call__(self, event: Event) -> None:
        """Notes a pause and its end at once."""
        if isinstance(event, DispatchPaused):
            self.look()
            if self.present is not None and self.present.reason == event.reason:
                self.present.detail = event.detail
        elif isinstance(event, DispatchResumed):
            self.look()

    def look(self) -> None:
        """Compares with what was known."""
        if self._engine is None:
            return
        reason = self._engine.paused_reason()
        if reason in _NO_OUTAGES:
            return
        if self.present is not None and reason != self.present.reason:
            self._end()
        if reason is not None and self.present is None:
            self._begin(reason, self._engine.paused_since_us())
        if self.aftermath:
            self._settle()

    def _begin(self, reason: str, from_us: int) -> None:
        self.present = Outage(self._node, reason, from_us)
        self._refused_before = self._refused()

    def _end(self) -> None:
        outage, self.present = self.present, None
        assert outage is not None
        outage.to_us = max(self._clock.now_us(), outage.from_us)
        outage.creates_refused = self._refused() - self._refused_before
        outage.counting = True
        # What was due in one that has just ended may not have begun before this one.
        self.aftermath.append(outage)
        for earlier in self.aftermath[: -self._limits.outages_max]:
            self._finish(earlier)
        self._caught_up_us, self.tried_us = None, 0
        if not self._is_brief(outage):
            self.keep(outage)

    def _settle(self) -> None:
        """Ends the counting of late attempts once nothing is overdue and none that waited is in flight."""
        engine, now_us = self._engine, self._clock.now_us()
        assert engine is not None
        if self._caught_up_us is None and self.present is None and engine.caught_up():
            self._caught_up_us = now_us
        done = self._caught_up_us is not None and (
            not engine.in_flight() or now_us - self._caught_up_us >= self._limits.in_flight_us_max
        )
        for outage in self.aftermath.copy():
            assert outage.to_us is not None
            if done or now_us - outage.to_us >= self._limits.aftermath_us_max:
                self._finish(outage)

    def _finish(self, outage: Outage) -> None:
        outage.counting = False
        self.aftermath = [each for each in self.aftermath if each is not outage]
        if not self._is_brief(outage):
            self.keep(outage)

    def _is_brief(self, outage: Outage) -> bool:
        """Whether it is too short to be kept, as nothing was late so far, and no create was refused."""
        short = outage.to_us is not None and outage.to_us - outage.from_us < self._limits.outage_us_min
        return short and not outage.late and not outage.creates_refused

    def keep(self, outage: Outage) -> None:
        """Has the outage stored, again if it was."""
        if not any(each is outage for each in self.unstored):
            self.unstored.append(outage)
            del self.unstored[: -self._limits.outages_max]

    def count_late(self, lag_us: int, duration_us: int) -> None:
        """Counts an attempt that has ended now and began late for the outage that is the reason: the one in which it became
        due, or the next one after that."""
        began_us = self._clock.now_us() - duration_us
        for outage in self.aftermath:
            assert outage.to_us is not None
            if began_us - lag_us < outage.to_us <= began_us + _CLOCKS_DIFFER_US:
                outage.late += 1
                outage.late_max_us = max(outage.late_max_us, lag_us)
                self.keep(outage)
                return

    def is_due(self, now_us: int) -> bool:
        """Whether it is time to store something: while late attempts are counted, only now and then."""
        if self.present is not None or not self.unstored:
            return False
        final = any(not outage.counting for outage in self.unstored)
        return final or now_us - self.tried_us >= self._limits.outage_rewrite_us

    def stop(self) -> None:
        """The node stops: what is known of its outages is final."""
        if self.present is not None:
            self._end()
        for outage in self.aftermath.copy():
            self._finish(outage)
