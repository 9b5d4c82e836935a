"""Slots and tokens of a limit: what is free, what returns, and whose turn it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.model.flow import FlowLimits, Rate
from tocsin.timers.engine.flow_accounts import UNLIMITED, Account, Usage

SECOND = 1_000_000
NODE, OTHER = b"n", b"o"


@given(
    st.integers(1, 1_000),
    st.integers(1, 100),
    st.integers(1, 20),
    st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 5)), max_size=40),
)
def test_a_bucket_never_begins_more_than_burst_and_rate(
    per_ms: int, tokens: int, burst: int, takes: list[tuple[int, int]]
) -> None:
    rate, now = Rate(tokens, per_ms * 1_000), 0
    account, begun = Account(FlowLimits(rate, burst=burst), None, -(10**12)), list[int]()
    for wait_us, wanted in takes:
        now += wait_us
        free = account.free(now)
        assert (account.again_in_us(now) == 0) is (free > 0)
        account.take(min(wanted, free), now)
        begun += [now] * min(wanted, free)
    for position, since in enumerate(begun):
        for last in range(position, len(begun)):
            assert (last - position + 1 - burst) * rate.per_us <= rate.count * (begun[last] - since)


@given(st.integers(1, 1_000), st.integers(1, 1_000_000), st.integers(1, 5))
def test_the_next_token_comes_exactly_when_the_bucket_states(tokens: int, per_us: int, burst: int) -> None:
    account = Account(FlowLimits(Rate(tokens, per_us), burst=burst), None, 0)
    wait_us = account.again_in_us(0)
    assert wait_us == 0 or account.free(wait_us - 1) == 0
    assert account.free(wait_us) >= 1


def test_tokens_return_but_not_on_top_of_what_others_hold() -> None:
    account = Account(FlowLimits(Rate(1, SECOND), burst=4), None, -10 * SECOND)
    assert account.free(0) == 4
    for node in (NODE, OTHER):
        account.report(node, 1, 0, 0, 0)
        account.grant(node, 2, 0)
    assert account.free(0) == 0
    # Time fills the bucket while both hold grants; what one returns must not come on top of the other's.
    assert account.free(3 * SECOND) == 3
    account.report(NODE, 1, 0, 0, 3 * SECOND)
    assert account.free(3 * SECOND) == 3
    account.report(OTHER, 1, 2, 2, 3 * SECOND)
    assert account.free(3 * SECOND) == 3


def test_what_was_granted_is_in_use_until_the_next_report() -> None:
    account = Account(FlowLimits(parallelism=3), Usage(1), 0)
    account.report(NODE, 1, 0, 0, 0)
    account.grant(NODE, 2, 0)
    assert (account.free(0), account.in_use) == (1, 2)
    account.report(NODE, 1, 1, 1, 0)
    assert (account.free(0), account.in_use) == (2, 1)
    account.forget(NODE)
    assert (account.free(0), account.in_use) == (3, 0)


def test_used_tokens_do_not_return() -> None:
    account = Account(FlowLimits(Rate(1, 100 * SECOND), burst=2), None, -(10**9))
    account.report(NODE, 1, 0, 5, 0)
    assert account.free(0) == 2
    account.grant(NODE, 2, 0)
    account.report(NODE, 1, 0, 6, 0)
    assert account.free(0) == 1


def test_a_new_home_begins_without_tokens() -> None:
    account = Account(FlowLimits(Rate(1, SECOND), burst=5), None, 0)
    assert [account.free(second * SECOND) for second in range(7)] == [0, 1, 2, 3, 4, 5, 5]


def test_a_usage_that_started_over_returns_nothing() -> None:
    account = Account(FlowLimits(Rate(1, 100 * SECOND), burst=2), None, -(10**9))
    account.report(NODE, 1, 0, 5, 0)
    assert account.free(0) == 2
    account.grant(NODE, 2, 0)
    account.report(NODE, 2, 0, 0, 0)
    assert account.free(0) == 0


def test_turns_go_round() -> None:
    account = Account(FlowLimits(parallelism=1), Usage(1), 0)
    account.wait(NODE, 10, had_turn=False)
    account.wait(OTHER, 10, had_turn=False)
    assert (account.free_for(NODE, 0), account.free_for(OTHER, 0)) == (1, 0)
    account.wait(NODE, 10, had_turn=True)
    assert (account.free_for(NODE, 0), account.free_for(OTHER, 0)) == (0, 1)
    # One that does not ask again loses its turn.
    assert account.free_for(NODE, 20) == 1


def test_an_account_without_limits_can_be_closed_for_a_while() -> None:
    account = Account(None, None, 0)
    assert account.free(0) == UNLIMITED
    account.closed_until = 5
    assert (account.free(4), account.again_in_us(4), account.free(5)) == (0, 1, UNLIMITED)
    assert not account.forgettable(4)
    assert account.forgettable(5)


def test_changed_limits_keep_what_there_is() -> None:
    account = Account(FlowLimits(Rate(10, SECOND), burst=10), None, -(10**9))
    account.take(7, 0)
    account.change(FlowLimits(Rate(1, SECOND), burst=2), 0)
    assert account.free(0) == 2
    account.change(FlowLimits(parallelism=5), 0)
    assert account.free(0) == 5
    account.change(FlowLimits(Rate(1, SECOND), burst=5), 0)
    assert account.free(0) == 0
