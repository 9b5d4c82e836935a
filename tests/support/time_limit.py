"""A test's time limit, which ends its coroutine with a TimeoutError."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import signal
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

#: So long before pytest-timeout would act. That raises its error in whatever code runs at that moment, and that may be
#: another task of the event loop, which then ends with the error while the test goes on waiting.
_EARLIER_S = 5.0


def limited(test: Callable[..., Awaitable[None]], limit_s: float) -> Callable[..., Awaitable[None]]:
    """The test, which raises TimeoutError where it waits when its time is over, so that it still cleans up."""

    @functools.wraps(test)
    async def run(*arguments: object, **fixtures: object) -> None:
        async with asyncio.timeout(limit_s):
            await test(*arguments, **fixtures)

    return run


#: When the test's time began, on the monotonic clock.
_BEGAN_S = pytest.StashKey[float]()


def begin(item: pytest.Item) -> None:
    """From now on the test's time runs: its fixtures' is part of it."""
    item.stash[_BEGAN_S] = time.monotonic()


def limit_coroutine(item: pytest.Item) -> None:
    """Has the test, where it is a coroutine, keep to the limit that pytest-timeout has for it, as far as that is left."""
    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(item.obj):
        return
    limit_s = _limit_s(item)
    if limit_s > _EARLIER_S:
        spent_s = time.monotonic() - item.stash[_BEGAN_S]
        item.obj = limited(item.obj, max(limit_s - _EARLIER_S - spent_s, 0))


def _limit_s(item: pytest.Item) -> float:
    """0 for none. A mark such as `timeout(60)` sets it; else the command line or pyproject.toml."""
    mark = item.get_closest_marker("timeout")
    if mark is not None:
        return float(mark.args[0])
    given = item.config.getoption("timeout")
    return float(item.config.getini("timeout") or 0) if given is None else float(given)


@contextlib.contextmanager
def stopped() -> Iterator[None]:
    """Stops the clock of pytest-timeout, which is the process's real-time timer."""
    left_s, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left_s)
