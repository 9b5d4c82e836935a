"""Retry policies: whether and when a failed attempt is followed by another; the backoff of all else that is tried again."""

from __future__ import annotations

import msgspec

from tocsin.model.instants import US_PER_SECOND

#: The defaults: ten attempts over eight and a half hours, which outlast a restart, a rollback and a night. They begin 5 s,
#: 20 s, 65 s, 200 s … after the first one.
_ATTEMPTS = 10
_INITIAL_INTERVAL_US = 5 * US_PER_SECOND
_MULTIPLIER = 3.0
_INTERVAL_MAX_US = 4 * 3_600 * US_PER_SECOND


class RetryPolicy(msgspec.Struct, frozen=True, gc=False):
    """How often and for how long a failed callback is retried.

    `max_attempts` counts all attempts, the first included. `max_duration_us` is measured from the firing's first attempt; no
    attempt begins later. The delay before attempt n+1 is `initial_interval_us * backoff_multiplier ** (n - 1)`, at most
    `max_interval_us`, minus up to a tenth of random jitter, so that timers that failed together are not retried together.

    It is stored with all its members, so that a change of the defaults does not change stored policies.
    """

    max_attempts: int = _ATTEMPTS
    max_duration_us: int | None = None
    initial_interval_us: int = _INITIAL_INTERVAL_US
    backoff_multiplier: float = _MULTIPLIER
    max_interval_us: int = _INTERVAL_MAX_US

    def delay_us(self, attempts_made: int, jitter: float) -> int:
        """Microseconds to wait after `attempts_made` (≥ 1) attempts; `jitter` is uniform in [0, 1)."""
        try:
            full = self.initial_interval_us * self.backoff_multiplier ** (attempts_made - 1)
        except OverflowError:
            full = float(self.max_interval_us)
        full = min(float(self.max_interval_us), full)
        return int(full * (1.0 - 0.1 * jitter))


def resolved(
    max_attempts: int | None = None,
    max_duration_us: int | None = None,
    initial_interval_us: int | None = None,
    backoff_multiplier: float | None = None,
    max_interval_us: int | None = None,
) -> RetryPolicy:
    """A new policy; members left out get the defaults. If only one of the intervals is given, the default of the
    other is adjusted, so that the initial interval does not exceed the greatest."""
    if initial_interval_us is None:
        initial_interval_us = _INITIAL_INTERVAL_US
        if max_interval_us is not None and max_interval_us > 0:
            initial_interval_us = min(initial_interval_us, max_interval_us)
    return RetryPolicy(
        _ATTEMPTS if max_attempts is None else max_attempts,
        max_duration_us,
        initial_interval_us,
        _MULTIPLIER if backoff_multiplier is None else backoff_multiplier,
        max(_INTERVAL_MAX_US, initial_interval_us) if max_interval_us is None else max_interval_us,
    )


#: The policy of timers that have none, in namespaces that have none.
DEFAULT_POLICY = RetryPolicy()


def next_attempt_at(
    policy: RetryPolicy,
    *,
    attempts_made: int,
    first_attempt_at: int,
    now_us: int,
    jitter: float,
    not_before_us: int | None = None,
) -> int | None:
    """The instant of the next attempt; None when the policy is exhausted.

    `not_before_us` is the receiver's Retry-After, which can only delay the attempt. An attempt that would begin later than
    `max_duration_us` after the first one is not made.
    """
    if attempts_made >= policy.max_attempts:
        return None
    instant = now_us + policy.delay_us(attempts_made, jitter)
    if not_before_us is not None:
        instant = max(instant, not_before_us)
    if policy.max_duration_us is not None and instant > first_attempt_at + policy.max_duration_us:
        return None
    return instant


#: Beyond this count the pause no longer grows: integers are unbounded.
_FAILURES_COUNTED_MAX = 40


def backoff_us(failures: int, initial_us: int, max_us: int) -> int:
    """The pause after this many consecutive failures (≥ 1): the initial one, doubled with each further failure."""
    return min(initial_us << min(failures - 1, _FAILURES_COUNTED_MAX), max_us)
