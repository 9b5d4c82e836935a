"""Signals that ask a process to stop: the first one in order, another one at once."""

from __future__ import annotations

import time
from collections.abc import Callable

#: A terminal, a supervisor and a script may each send the signal for one request: those within this time are one.
_ONE_REQUEST_S = 1.0


class StopRequests:
    """The signals that a process has received. `now_s` is a clock that is never set."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._first_s: float | None = None

    def insists(self) -> bool:
        """Notes a signal; whether it asks once more, after the first request was made a second ago or longer."""
        now_s = self._now_s()
        if self._first_s is None:
            self._first_s = now_s
        return now_s - self._first_s >= _ONE_REQUEST_S
