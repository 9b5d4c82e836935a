"""Measures CPU time relative to the speed of this machine.

CPU time of the thread, not wall time: a machine that is busy with other things takes no more of it. What a slower machine
takes more is measured by a piece of work that is always the same.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from functools import cache

#: The longest that one input may hold the event loop, on the machine on which the reference work takes REFERENCE_S.
BLOCKED_S_MAX = 0.050
REFERENCE_S = 0.010
_TRIES = 3


@cache
def machine_factor() -> float:
    """How many times slower this machine is than the one on which the limits were set; at least 1."""
    return max(1.0, min(cpu_s(_reference) for _ in range(5)) / REFERENCE_S)


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of this thread that the work takes, even if it raises."""
    begun = time.thread_time()
    with contextlib.suppress(Exception):  # A refusal takes time, too; the tests of what is refused are elsewhere.
        work()
    return time.thread_time() - begun


def blocked_s(work: Callable[[], object]) -> float:
    """CPU seconds of the work on the reference machine; the minimum of several tries if the first exceeds the limit."""
    least = float("inf")
    for _ in range(_TRIES):
        least = min(least, cpu_s(work) / machine_factor())
        if least < BLOCKED_S_MAX:
            break
    return least


def _reference() -> None:
    """A sample of the work of handling a request: Python loops, regular expressions, JSON."""
    text = json.dumps([{"id": f"timer-{number}", "tags": ["a", "b"]} for number in range(1_500)])
    json.loads(text)
    re.sub(r"[0-9]+", "", text)
    sum(number * number for number in range(60_000))
