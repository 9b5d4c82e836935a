"""Retry policies: the delays, their bounds, and when a policy is exhausted."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.model.instants import US_PER_SECOND
from tocsin.model.retry import DEFAULT_POLICY, RetryPolicy, next_attempt_at, resolved

NOW = 1_800_000_000 * US_PER_SECOND
S = US_PER_SECOND


def following(policy: RetryPolicy, made: int, *, first: int = NOW, jitter: float = 0.0, not_before: int | None = None):  # type: ignore[no-untyped-def]
    return next_attempt_at(
        policy, attempts_made=made, first_attempt_at=first, now_us=NOW, jitter=jitter, not_before_us=not_before
    )


#: Pauses of 1 s, 2 s, 4 s, 8 s, 10 s, 10 s …
DOUBLING = RetryPolicy(initial_interval_us=S, backoff_multiplier=2.0, max_interval_us=10 * S)


def test_delay_doubles_up_to_the_maximum() -> None:
    assert [DOUBLING.delay_us(n, 0.0) // S for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_jitter_subtracts_up_to_a_tenth() -> None:
    assert DOUBLING.delay_us(1, 0.0) == S
    assert DOUBLING.delay_us(1, 0.5) == 950_000


def test_delay_follows_the_formula_for_small_multipliers() -> None:
    assert RetryPolicy(initial_interval_us=S, backoff_multiplier=1.0).delay_us(50, 0.0) == S
    slow = RetryPolicy(initial_interval_us=S, backoff_multiplier=1.01, max_interval_us=10 * S)
    assert slow.delay_us(100, 0.0) == int(S * 1.01**99)
    assert slow.delay_us(1_000, 0.0) == 10 * S


def test_initial_interval_above_the_maximum_is_capped() -> None:
    assert RetryPolicy(initial_interval_us=100 * S, max_interval_us=10 * S).delay_us(1, 0.0) == 10 * S


@given(
    st.integers(1, 10**9),
    st.integers(1, 10**12),
    st.floats(1.0, 1e300),
    st.integers(1, 10**12),
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_delay_stays_within_bounds(made: int, initial: int, multiplier: float, longest: int, jitter: float) -> None:
    policy = RetryPolicy(initial_interval_us=initial, backoff_multiplier=multiplier, max_interval_us=longest)
    delay = policy.delay_us(made, jitter)
    assert int(min(initial, longest) * 0.9) - 1 <= delay <= longest
    assert policy.delay_us(made + 1, 0.0) >= policy.delay_us(made, 0.0)


def test_default_policy_lasts_more_than_eight_hours() -> None:
    delays = [DEFAULT_POLICY.delay_us(made, 0.0) // S for made in range(1, DEFAULT_POLICY.max_attempts)]
    assert delays == [5, 15, 45, 135, 405, 1_215, 3_645, 10_935, 14_400]
    assert following(DEFAULT_POLICY, 10) is None


def test_new_policy_gets_defaults_for_missing_members() -> None:
    assert resolved() == DEFAULT_POLICY
    assert resolved(max_attempts=2) == msgspec.structs.replace(DEFAULT_POLICY, max_attempts=2)
    # If one of the intervals is given, the default of the other is adjusted.
    assert resolved(max_interval_us=S).initial_interval_us == S
    assert resolved(initial_interval_us=86_400 * S).max_interval_us == 86_400 * S


def test_a_policy_is_stored_with_all_its_members() -> None:
    assert len(msgspec.json.decode(msgspec.json.encode(DEFAULT_POLICY))) == len(RetryPolicy.__struct_fields__)


def test_policy_is_exhausted_after_the_last_attempt() -> None:
    policy = msgspec.structs.replace(DOUBLING, max_attempts=3)
    assert following(policy, 1) == NOW + S
    assert following(policy, 2) == NOW + 2 * S
    assert following(policy, 3) is None
    assert following(policy, 4) is None


def test_no_attempt_begins_after_the_greatest_duration() -> None:
    policy = msgspec.structs.replace(DOUBLING, max_attempts=100, max_duration_us=10 * S)
    assert following(policy, 1, first=NOW - 9 * S) == NOW + S
    assert following(policy, 1, first=NOW - 9 * S - 1) is None


@each("not_before, instant", [(NOW + 5 * S, NOW + 5 * S), (NOW, NOW + S), (NOW - S, NOW + S)])
def test_retry_after_only_delays(not_before: int, instant: int) -> None:
    assert following(DOUBLING, 1, not_before=not_before) == instant


def test_retry_after_beyond_the_duration_exhausts_the_policy() -> None:
    assert following(RetryPolicy(max_duration_us=10 * S), 1, not_before=NOW + 11 * S) is None
