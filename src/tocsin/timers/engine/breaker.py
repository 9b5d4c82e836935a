"""The breaker of one destination on one node: it opens when nearly all attempts fail, and then lets single probes through.
Pure: boot times come from the caller, who also calls `end_wait` when the wait is over."""

from __future__ import annotations

from enum import StrEnum

#: Attempts are counted over this time, in so many slots.
WINDOW_US, _SLOTS = 30_000_000, 6
_SLOT_US = WINDOW_US // _SLOTS
#: It opens when at least so many attempts ended within the window, and this share of them failed. Fewer prove little, and
#: cost little.
ATTEMPTS_MIN, FAILED_PERCENT_MIN = 20, 90
#: How long it stays open at first; twice as long after each failed probe.
WAIT_FIRST_US = 10_000_000
#: The longest wait where fewer than `FEW_WAITING` timers wait: a probe a minute costs such a destination nothing, and each
#: of its timers is late by less.
WAIT_FEW_US_MAX, FEW_WAITING = 60_000_000, 20
#: Successful probes, one after another, that close it.
SUCCESSES_TO_CLOSE = 3


class BreakerState(StrEnum):
    """`closed`: attempts begin as usual. `open`: none begins before the wait is over. `half_open`: probes, one at a time."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """`begin` and `end` bracket an attempt; none may begin while it `blocks`. One that is not `enabled` only counts."""

    __slots__ = (
        "_attempts", "_enabled", "_failures", "_period", "_slot", "_successes", "_wait_us_max", "attempts", "blocks",
        "failures", "opened_at", "state", "until_us", "wait_us",
    )  # fmt: skip

    def __init__(self, *, enabled: bool, wait_us_max: int) -> None:
        self._enabled = enabled
        self._wait_us_max = wait_us_max
        self.state = BreakerState.CLOSED
        #: Whether no attempt may begin now.
        self.blocks = False
        #: Since when it has not been closed, and until when none begins (boot times).
        self.opened_at = 0
        self.until_us = 0
        #: How long it waits, or waited last, for the next probe.
        self.wait_us = 0
        #: Attempts that have ended within the window, and those of them that failed.
        self.attempts = 0
        self.failures = 0
        self._attempts = [0] * _SLOTS
        self._failures = [0] * _SLOTS
        self._slot = 0
        self._successes = 0
        # Changes with the state. An attempt that began in a former period, and ends late, decides nothing.
        self._period = 0

    def begin(self) -> int:
        """An attempt begins. Returns what `end` needs."""
        if self.state is not BreakerState.CLOSED:
            self.blocks = True
        return self._period

    def end(self, began: int, boot_us: int, *, failed: bool | None, waiting: int = 0) -> bool:
        """The attempt has ended: `failed` is None if it was not sent. `waiting`: timers that wait for the destination.
        Returns whether it has opened, or closed."""
        current = began == self._period
        if self.state is BreakerState.CLOSED:
            if not current or failed is None:
                return False
            self._count(boot_us, failed=failed)
            if failed and self._is_failing():
                self._open(WAIT_FIRST_US, boot_us)
                self.opened_at = boot_us
                return True
            return False
        if failed is not None:
            self._count(boot_us, failed=failed)
        if not current:
            return False
        self.blocks = False
        if failed:
            most = self._wait_us_max if waiting >= FEW_WAITING else min(WAIT_FEW_US_MAX, self._wait_us_max)
            self._open(min(2 * self.wait_us, most), boot_us)
            return True
        if failed is None:
            return False
        self._successes += 1
        if self._successes < SUCCESSES_TO_CLOSE:
            return False
        self.close()
        return True

    def end_wait(self, boot_us: int) -> bool:
        """Lets a probe begin if the wait is over; whether it is."""
        if self.state is not BreakerState.OPEN or boot_us < self.until_us:
            return False
        self.state, self.blocks = BreakerState.HALF_OPEN, False
        return True

    def probe(self) -> bool:
        """Lets a probe begin at once, whose success closes it; one under way counts as that. False if it is closed."""
        if self.state is BreakerState.CLOSED:
            return False
        if self.state is BreakerState.OPEN:
            self.state, self.blocks = BreakerState.HALF_OPEN, False
        self._successes = SUCCESSES_TO_CLOSE - 1
        return True

    def close(self) -> None:
        """Closes it, and starts counting over."""
        self.state, self.blocks = BreakerState.CLOSED, False
        self._period += 1
        self.wait_us = 0
        self._clear()

    def forget_old(self, boot_us: int) -> None:
        """Drops what was counted before the window, so that `attempts` and `failures` are current."""
        slot = boot_us // _SLOT_US
        if slot - self._slot >= _SLOTS:
            self._clear()
        else:
            for each in range(self._slot + 1, slot + 1):
                i = each % _SLOTS
                self.attempts -= self._attempts[i]
                self.failures -= self._failures[i]
                self._attempts[i] = self._failures[i] = 0
        self._slot = slot

    def _count(self, boot_us: int, *, failed: bool) -> None:
        slot = boot_us // _SLOT_US
        if slot != self._slot:
            self.forget_old(boot_us)
        i = slot % _SLOTS
        self.attempts += 1
        self._attempts[i] += 1
        if failed:
            self.failures += 1
            self._failures[i] += 1

    def _is_failing(self) -> bool:
        return (
            self._enabled
            and self.attempts >= ATTEMPTS_MIN
            and 100 * self.failures >= FAILED_PERCENT_MIN * self.attempts
        )

    def _open(self, wait_us: int, boot_us: int) -> None:
        self.state, self.blocks = BreakerState.OPEN, True
        self._period += 1
        self._successes = 0
        self.wait_us = min(wait_us, self._wait_us_max)
        self.until_us = boot_us + self.wait_us

    def _clear(self) -> None:
        self.attempts = self.failures = 0
        self._attempts = [0] * _SLOTS
        self._failures = [0] * _SLOTS
