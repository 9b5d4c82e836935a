"""Background tasks end when they are cancelled, also while their drivers lose cancellations."""

from __future__ import annotations

import asyncio

import pytest

from tocsin import tasks
from tocsin.tasks import end_tasks


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_AGAIN_S", 0.01)


async def _keep_reading(results: asyncio.Queue[None]) -> None:
    while True:
        await asyncio.wait_for(results.get(), 60)


# In Python 3.11 the cancellation is lost in some of these turns of the event loop.
@pytest.mark.parametrize("turns", range(6))
async def test_a_task_ends_that_gets_a_result_at_the_moment_of_its_cancellation(turns: int) -> None:
    results: asyncio.Queue[None] = asyncio.Queue()
    reading = asyncio.create_task(_keep_reading(results))
    await asyncio.sleep(0.001)
    results.put_nowait(None)
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await end_tasks(reading)
    assert reading.cancelled()


async def test_a_task_ends_that_loses_cancellations() -> None:
    lost = []

    async def work() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if len(lost) == 3:
                    raise
                lost.append(1)

    stubborn, willing = asyncio.create_task(work()), asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await end_tasks(stubborn, willing)
    assert stubborn.cancelled()
    assert willing.cancelled()


async def test_whoever_waits_for_the_end_can_be_cancelled() -> None:
    async def work() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if ended:
                    return

    ended = False
    stubborn = asyncio.create_task(work())
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await end_tasks(stubborn)
    ended = True
    await end_tasks(stubborn)


async def test_nothing_to_end() -> None:
    done = asyncio.create_task(asyncio.sleep(0))
    await done
    await end_tasks()
    await end_tasks(done)
