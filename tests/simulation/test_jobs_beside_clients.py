"""A job on a node where many of the clients' writes wait, and one whose first read fails."""

from __future__ import annotations

import asyncio

import pytest

from tocsin.model.errors import StoreUnavailable
from tocsin.model.job import JobState
from tocsin.ports.records import Record
from tocsin.timers.service import TimerService

from .test_jobs import ROWS, Jobbing, _jobs_asked, play


@pytest.mark.parametrize("after_s", [0.1, 4.5])
def test_pause_holds_a_job_within_two_seconds_while_clients_writes_wait(
    monkeypatch: pytest.MonkeyPatch, after_s: float
) -> None:
    monkeypatch.setattr(TimerService, "writes_waiting", property(lambda _: 500))

    async def scenario(world: Jobbing) -> None:
        before = await _jobs_asked(world, world.job(rate_per_second=200))

        def changed() -> int:
            return sum(timer.execute_at != before[name].execute_at for name, timer in world.timers().items())

        while not changed():  # noqa: ASYNC110 -- virtual time
            await asyncio.sleep(0.1)
        await asyncio.sleep(after_s)
        await world.nodes[0].ask(world.jobs(world.nodes[0]).pause("j"))
        await asyncio.sleep(2.0)
        held = changed()
        assert held < ROWS
        await asyncio.sleep(5.0)
        assert changed() == held
        assert (await world.stored()).counts.changed == held

    play(scenario)


def test_a_job_whose_first_read_fails_begins_with_the_next_look() -> None:
    async def scenario(world: Jobbing) -> None:
        link, failures = world.working.link, 0
        records = link.records

        async def fails_once(kind: str, *range: str, limit: int) -> list[Record]:
            nonlocal failures
            begins = kind == "job" and not failures and await world.store.record("job", "j") is not None
            # Before, it is the creation that reads the jobs.
            if begins and (await world.stored()).state is JobState.RUNNING:
                failures += 1
                raise StoreUnavailable("out of reach")
            return await records(kind, *range, limit=limit)

        link.records = fails_once  # type: ignore[method-assign]
        await _jobs_asked(world, world.job())
        assert (await world.ended()).state is JobState.COMPLETED
        assert failures

    play(scenario)
