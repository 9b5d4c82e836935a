"""When a failed attempt is tried again."""

from __future__ import annotations

import msgspec

from tocsin.model.instants import US_PER_SECOND


class RetryPolicy(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How often and how long an unsuccessful callback is repeated.

    `max_attempts` counts all attempts, the first included. `max_duration_us` is measured from the firing's first
    attempt: no attempt begins later than that. The delay before attempt n+1 is
    `initial_interval_us * backoff_multiplier ** (n - 1)`, at most `max_interval_us`, less up to a tenth of random
    jitter, so that timers which failed together do not come back together.
    """

    max_attempts: int = 5
    max_duration_us: int | None = None
    initial_interval_us: int = US_PER_SECOND
    backoff_multiplier: float = 2.0
    max_interval_us: int = 300 * US_PER_SECOND

    def delay_us(self, attempts_made: int, jitter: float) -> int:
        """Microseconds to wait after `attempts_made` (≥ 1) attempts; `jitter` is uniform in [0, 1)."""
        try:
            full = self.initial_interval_us * self.backoff_multiplier ** (attempts_made - 1)
        except OverflowError:
            full = float(self.max_interval_us)
        full = min(float(self.max_interval_us), full)
        return int(full * (1.0 - 0.1 * jitter))


#: What a timer gets where neither it nor its namespace says otherwise: 10 attempts over about 8.5 hours, which outlast a
#: restart, a deployment that is rolled back, and a night.
DEFAULT_POLICY = RetryPolicy(10, None, 5 * US_PER_SECOND, 3.0, 4 * 3_600 * US_PER_SECOND)
#: What a timer without a policy of its own gets: one attempt.
SINGLE_ATTEMPT = RetryPolicy(max_attempts=1)


def next_attempt_at(
    policy: RetryPolicy,
    *,
    attempts_made: int,
    first_attempt_at: int,
    now_us: int,
    jitter: float,
    not_before_us: int | None = None,
) -> int | None:
    """The instant of the next attempt, or None when the policy is exhausted.

    `not_before_us` is the receiver's Retry-After: it may only delay. An attempt that would begin later than
    `max_duration_us` after the first is not made at all.
    """
    if attempts_made >= policy.max_attempts:
        return None
    instant = now_us + policy.delay_us(attempts_made, jitter)
    if not_before_us is not None:
        instant = max(instant, not_before_us)
    if policy.max_duration_us is not None and instant > first_attempt_at + policy.max_duration_us:
        return None
    return instant
