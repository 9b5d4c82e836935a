"""A limit on log lines that others can cause at any rate."""

from __future__ import annotations

import time
from collections.abc import Callable


class RateLimit:
    """At most `most` grants per window of `window_s` seconds; a window begins with its first grant. `now_s` is any clock in
    seconds that is not set back."""

    def __init__(self, most: int, window_s: float = 1.0, now_s: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._window_s = window_s
        self._now_s = now_s
        self._window_started_s = now_s() - window_s
        self._granted = 0
        self._suppressed = 0

    def grant(self) -> int | None:
        """None if this one is suppressed; else the number suppressed since the last grant."""
        now_s = self._now_s()
        if now_s - self._window_started_s >= self._window_s:
            self._window_started_s, self._granted = now_s, 0
        if self._granted >= self._most:
            self._suppressed += 1
            return None
        self._granted += 1
        suppressed, self._suppressed = self._suppressed, 0
        return suppressed
