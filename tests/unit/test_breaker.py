"""The breaker of a destination, without clocks: times are arguments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.timers.engine.breaker import (
    ATTEMPTS_MIN,
    FEW_WAITING,
    SUCCESSES_TO_CLOSE,
    WAIT_FEW_US_MAX,
    WAIT_FIRST_US,
    WINDOW_US,
    Breaker,
    BreakerState,
)

SECOND = 1_000_000
START = 7_000 * SECOND
MOST = 300 * SECOND


def new(*, enabled: bool = True) -> Breaker:
    return Breaker(enabled=enabled, wait_us_max=MOST)


def attempts(breaker: Breaker, count: int, *, failed: bool, at: int = START) -> bool:
    """So many attempts, one after another; whether the state has changed."""
    changed = [breaker.end(breaker.begin(), at, failed=failed) for _ in range(count)]
    return True in changed


def opened(at: int = START) -> Breaker:
    breaker = new()
    assert attempts(breaker, ATTEMPTS_MIN, failed=True, at=at)
    assert breaker.state is BreakerState.OPEN
    return breaker


def half_open() -> Breaker:
    breaker = opened()
    assert breaker.end_wait(breaker.until_us)
    return breaker


def test_opens_when_nine_of_ten_attempts_fail_and_blocks_for_ten_seconds() -> None:
    breaker = new()
    assert not attempts(breaker, 2, failed=False)
    assert not attempts(breaker, 17, failed=True)
    assert not breaker.blocks
    assert attempts(breaker, 1, failed=True)
    assert breaker.blocks
    assert (breaker.failures, breaker.attempts) == (18, 20)
    assert not breaker.end_wait(START + WAIT_FIRST_US - 1)
    assert breaker.blocks
    assert breaker.end_wait(START + WAIT_FIRST_US)
    assert not breaker.blocks


def test_few_attempts_do_not_open_it() -> None:
    breaker = new()
    assert not attempts(breaker, ATTEMPTS_MIN - 1, failed=True)
    assert breaker.state is BreakerState.CLOSED


def test_a_share_below_nine_of_ten_does_not_open_it() -> None:
    breaker = new()
    attempts(breaker, 12, failed=False)
    assert not attempts(breaker, 100, failed=True)


def test_what_ended_before_the_window_does_not_count() -> None:
    breaker = new()
    attempts(breaker, ATTEMPTS_MIN - 1, failed=True)
    assert not attempts(breaker, ATTEMPTS_MIN - 1, failed=True, at=START + WINDOW_US)
    assert (breaker.failures, breaker.attempts) == (19, 19)
    breaker.forget_old(START + 3 * WINDOW_US)
    assert (breaker.failures, breaker.attempts) == (0, 0)


def test_one_that_is_not_enabled_counts_and_stays_closed() -> None:
    breaker = new(enabled=False)
    assert not attempts(breaker, 100, failed=True)
    assert (breaker.failures, breaker.attempts, breaker.blocks) == (100, 100, False)


def test_one_probe_at_a_time() -> None:
    breaker = half_open()
    breaker.begin()
    assert breaker.blocks


def test_three_successes_one_after_another_close_it() -> None:
    breaker = half_open()
    for _ in range(SUCCESSES_TO_CLOSE - 1):
        assert not breaker.end(breaker.begin(), START, failed=False)
        assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.end(breaker.begin(), START, failed=False)
    assert (breaker.state, breaker.attempts, breaker.blocks) == (BreakerState.CLOSED, 0, False)


def test_a_failed_probe_doubles_the_wait_up_to_the_most_and_starts_the_successes_over() -> None:
    breaker, waits = opened(), []
    for _ in range(7):
        breaker.end_wait(breaker.until_us)
        assert not breaker.end(breaker.begin(), breaker.until_us, failed=False, waiting=FEW_WAITING)
        began_at = breaker.until_us
        assert breaker.end(breaker.begin(), began_at, failed=True, waiting=FEW_WAITING)
        assert breaker.until_us - began_at == breaker.wait_us
        waits.append(breaker.wait_us // SECOND)
    assert waits == [20, 40, 80, 160, 300, 300, 300]


def test_where_few_timers_wait_a_probe_is_made_every_minute() -> None:
    breaker = opened()
    for _ in range(4):
        breaker.end_wait(breaker.until_us)
        breaker.end(breaker.begin(), breaker.until_us, failed=True, waiting=FEW_WAITING - 1)
    assert breaker.wait_us == WAIT_FEW_US_MAX


def test_an_attempt_that_began_before_it_opened_decides_nothing() -> None:
    breaker = new()
    early = [breaker.begin() for _ in range(10)]
    attempts(breaker, ATTEMPTS_MIN, failed=True)
    assert True not in [breaker.end(began, START, failed=False) for began in early]
    assert breaker.state is BreakerState.OPEN
    breaker.end_wait(breaker.until_us)
    probe = breaker.begin()
    assert not breaker.end(early[0], START, failed=True)
    assert breaker.blocks, "the probe is still under way"
    assert not breaker.end(probe, START, failed=False)


def test_late_failures_do_not_open_it_again_once_it_has_closed() -> None:
    breaker = new()
    early = [breaker.begin() for _ in range(200)]
    attempts(breaker, ATTEMPTS_MIN, failed=True)
    breaker.close()
    assert True not in [breaker.end(began, START, failed=True) for began in early]
    assert (breaker.state, breaker.attempts) == (BreakerState.CLOSED, 0)


def test_a_probe_that_was_not_sent_leaves_its_turn_to_the_next() -> None:
    breaker = half_open()
    assert not breaker.end(breaker.begin(), START, failed=None)
    assert not breaker.blocks
    assert breaker.state is BreakerState.HALF_OPEN


def test_a_success_of_a_probe_that_was_asked_for_closes_it() -> None:
    breaker = opened()
    assert breaker.probe()
    assert breaker.end(breaker.begin(), START, failed=False)
    assert breaker.state is BreakerState.CLOSED
    assert not breaker.probe()


def test_a_probe_that_is_asked_for_while_one_is_under_way_is_that_one() -> None:
    breaker = half_open()
    began = breaker.begin()
    assert breaker.probe()
    assert breaker.blocks
    assert breaker.end(began, START, failed=False)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("begin", "succeed", "fail", "unsent", "wait", "probe", "close")),
        st.integers(0, 40 * SECOND),
        st.integers(0, 2 * FEW_WAITING),
    ),
    max_size=150,
)


@given(_STEPS)
def test_at_most_one_probe_is_in_flight_and_it_always_opens_again(steps: list[tuple[str, int, int]]) -> None:
    breaker, boot_us, in_flight = new(), START, list[tuple[int, int]]()
    period = 0
    for step, passed_us, waiting in steps:
        boot_us += passed_us
        before = breaker.state
        if step == "begin" and not breaker.blocks:
            in_flight.append((breaker.begin(), period))
        elif step in ("succeed", "fail", "unsent") and in_flight:
            began, _ = in_flight.pop(passed_us % len(in_flight))
            breaker.end(began, boot_us, failed={"succeed": False, "fail": True}.get(step), waiting=waiting)
        elif step == "wait":
            breaker.end_wait(boot_us)
        elif step == "probe":
            breaker.probe()
        elif step == "close" and breaker.state is not BreakerState.CLOSED:
            breaker.close()
        if breaker.state is not before and BreakerState.HALF_OPEN is not breaker.state:
            period += 1
        probes = [began for began, of in in_flight if of == period and breaker.state is BreakerState.HALF_OPEN]
        assert len(probes) <= 1
        assert breaker.blocks == (breaker.state is BreakerState.OPEN or bool(probes))
        assert 0 <= breaker.failures <= breaker.attempts
        if breaker.state is BreakerState.OPEN:
            assert breaker.until_us <= boot_us + MOST
