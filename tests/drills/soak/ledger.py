"""What the clients of the soak were promised, and what arrived."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

#: How many violations are kept with their words; further ones are counted.
_SHOWN_MAX = 20


@dataclass
class Ledger:
    """All instants are microseconds of this machine's clock. A promise is entered before its request is sent, and taken back
    if it is refused or its outcome is unknown; it goes when it is kept."""

    #: Timers that have to fire, by `namespace/id`, with their instants.
    owed: dict[str, int] = field(default_factory=dict)
    #: Instants that calls are compared with. Timers that fire more than once stay here.
    due: dict[str, int] = field(default_factory=dict)
    #: Timers that may not fire any more, with the instant at which that was acknowledged.
    ended: dict[str, int] = field(default_factory=dict)
    #: Notifications that have to come, by type and id, with the instant from which they are owed.
    notices: dict[str, int] = field(default_factory=dict)
    #: Service calls that have to be made, with their instants.
    calls: dict[str, int] = field(default_factory=dict)
    #: Of each schedule the instants that have fired, in whole seconds.
    instants: dict[str, set[int]] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _attempts: set[str] = field(default_factory=set)
    _arrived: array[int] = field(default_factory=lambda: array("q"))
    _lags_us: array[int] = field(default_factory=lambda: array("q"))

    def promise(self, timer: str, due: int) -> None:
        """The timer has to fire at the instant. A later promise replaces it."""
        self.owed[timer] = self.due[timer] = due

    def take_back(self, timer: str) -> None:
        """Whether it fires is unknown, so nothing follows from it."""
        self.owed.pop(timer, None)

    def end(self, timer: str, at: int) -> None:
        """The timer was acknowledged not to fire any more."""
        self.owed.pop(timer, None)
        self.ended[timer] = at

    def fired(self, timer: str, *, firing: str, attempt: int, fired_at: int, arrived: int, punctual: bool) -> None:
        """An attempt arrived. `punctual` ones count for the lag: nothing but their instant had to be waited for."""
        self.counted["calls"] += 1
        name = f"{firing}/{attempt}"
        if name in self._attempts:
            self.counted["duplicates"] += 1
            return
        self._attempts.add(name)
        if attempt > 1:
            self.counted["further attempts"] += 1
        self.owed.pop(timer, None)
        due = self.due.get(timer)
        if due is None:
            self.violated(f"{timer} was never created")
        elif arrived < due:
            self.violated(f"{timer} came {due - arrived} us early")
        elif punctual and attempt == 1:
            self.late(arrived, arrived - due)
        if (ended := self.ended.get(timer)) is not None and fired_at > ended:
            self.violated(f"{timer} fired {fired_at - ended} us after it was acknowledged as ended")

    def occurred(self, schedule: str, *, instant: int, firing: str, attempt: int, arrived: int) -> None:
        """An occurrence of a schedule arrived."""
        self.due[schedule] = instant
        self.fired(schedule, firing=firing, attempt=attempt, fired_at=arrived, arrived=arrived, punctual=True)
        self.instants.setdefault(schedule, set()).add(instant // 1_000_000)

    def late(self, arrived: int, lag_us: int) -> None:
        """Records a lag."""
        self._arrived.append(arrived)
        self._lags_us.append(lag_us)

    def lags_ms(self, first: int, last: int) -> list[float]:
        """The lags of what arrived in between, sorted."""
        return sorted(lag / 1e3 for at, lag in zip(self._arrived, self._lags_us, strict=True) if first <= at < last)

    def violated(self, words: str) -> None:
        """Something happened that may not."""
        self.counted["violations"] += 1
        if len(self.wrong) < _SHOWN_MAX:
            self.wrong.append(words)

    def overdue(self, now: int) -> list[str]:
        """What should have come by now."""
        promised = (("", self.owed), ("notification ", self.notices), ("service call ", self.calls))
        return [f"{kind}{name}" for kind, found in promised for name, due in found.items() if due <= now]

    def skipped(self) -> list[str]:
        """Instants of schedules between the first and the last that fired which did not."""
        return [
            f"{schedule} at second {second}"
            for schedule, found in self.instants.items()
            for second in sorted(set(range(min(found), max(found))) - found)
        ]
