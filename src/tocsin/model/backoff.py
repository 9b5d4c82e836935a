"""The exponential backoff of everything that is tried again."""

from __future__ import annotations

#: Beyond this count the pause no longer grows: integers are unbounded.
_FAILURES_COUNTED_MAX = 40


def backoff_us(failures: int, initial_us: int, max_us: int) -> int:
    """The pause after this many consecutive failures (≥ 1): the initial one, doubled with each further failure."""
    return min(initial_us << min(failures - 1, _FAILURES_COUNTED_MAX), max_us)
