"""A test whose coroutine waits forever ends and cleans up, whichever task runs at the time limit."""

from __future__ import annotations

import asyncio
import signal

import pytest
from tests.support.time_limit import limited, stopped


async def test_a_waiting_coroutine_gets_a_timeout_error() -> None:
    cleaned_up = []

    async def waits_for_ever(fixture: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.append(fixture)

    with pytest.raises(TimeoutError):
        await limited(waits_for_ever, 0.01)(fixture="server")
    assert cleaned_up == ["server"]


async def test_a_test_within_its_limit_is_not_affected() -> None:
    seen = []

    async def ends(fixture: str) -> None:
        seen.append(fixture)

    await limited(ends, 60)("server")
    assert seen == ["server"]


@pytest.mark.timeout(5.2)
async def test_each_coroutine_has_its_own_limit() -> None:
    task = asyncio.current_task()
    assert task is not None
    waiting = asyncio.Event()
    with pytest.raises(asyncio.CancelledError):
        # The limit of this very test: its mark's, less what is left to pytest.
        await waiting.wait()
    assert task.uncancel() == 0


@pytest.fixture
async def slow() -> None:
    await asyncio.sleep(0.3)


@pytest.mark.timeout(5.2)
async def test_the_time_of_fixtures_counts(slow: None) -> None:
    with pytest.raises(asyncio.CancelledError):
        # Nothing is left.
        await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.uncancel() == 0


def test_the_clock_of_the_time_limit_stands_still_while_it_is_stopped() -> None:
    # This test's own.
    left_s, _ = signal.getitimer(signal.ITIMER_REAL)
    assert left_s > 0
    with stopped():
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= left_s
