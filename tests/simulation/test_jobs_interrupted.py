"""Jobs on two nodes of the real engine in virtual time that meet what they can't change: the damaged, the removed, the
dismissed, and the unavailable."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tocsin.model.errors import Unavailable
from tocsin.model.job import Job, JobAction, JobCounts, JobKind, JobState
from tocsin.ports.store import FailureRow
from tocsin.timers import job_runner
from tocsin.timers.engine.rows import WriteOp
from tocsin.timers.listing import TimerView

from .node import Node
from .test_jobs import HOUR, SECOND, Jobbing, _jobs_asked, play


async def _failed(world: Jobbing, number: int) -> Node:
    """So many failures of timers, in a namespace that is paused, so that what is replayed stays pending; a node."""
    for each in range(number):
        await world.create(f"f{each}", due_us=world.true_us() - HOUR, expire_after_us=SECOND)
    await asyncio.sleep(3.0)
    node = world.nodes[1]
    assert node.service is not None
    await node.ask(node.service.namespaces.update("a", paused=True))
    assert len(await world.failures()) == number
    return node


def test_damaged_failure_is_an_error_and_the_others_are_replayed() -> None:
    """It has lost the name of its namespace, and so its shard."""

    async def scenario(world: Jobbing) -> None:
        await _failed(world, 5)
        first = (await world.failures())[0]
        lost = FailureRow.damaged((first.failed_at, b"\x07" * 16, first.generation))
        next(iter(world.store._shards.values())).failures[lost.uuid, lost.generation] = lost
        await _jobs_asked(world, world.job(JobAction.REPLAY, kind=JobKind.FAILURES, namespace="*"))
        job = await world.ended()
        assert (job.state, job.counts) == (JobState.COMPLETED, JobCounts(6, 5, 0, 1))
        assert "damaged" in job.samples[0].error
        assert await world.failures() == [lost]

    play(scenario)


@pytest.mark.parametrize("removed", [False, True])
def test_job_whose_namespace_is_gone_ends_and_not_its_node(removed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion of a namespace overlaps dry runs, and removes their records, before or after they read a page."""
    real = job_runner.read_page

    async def scenario(world: Jobbing) -> None:
        async def read(*arguments: object) -> object:
            if removed:
                await world.store.delete_records("job", ["j"])
            return await real(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(job_runner, "read_page", read)
        job = world.job(namespace="gone", dry_run=True, state=JobState.RUNNING)
        await world.store.put_record("job", "j", msgspec.json.encode(job).decode(), None)
        if not removed:
            ended = await world.ended()
            assert ended.state is JobState.FAILED
            assert "'gone'" in ended.reason
        await asyncio.sleep(5.0)
        assert not any(runner.running for runner in world.runners.values())
        assert (await world.store.record("job", "j") is None) == removed

    play(scenario)


def test_failure_that_is_dismissed_before_its_turn_is_not_replayed() -> None:
    """Its page was read before."""

    async def scenario(world: Jobbing) -> None:
        await _failed(world, 6)
        await _jobs_asked(world, world.job(JobAction.REPLAY, kind=JobKind.FAILURES, rate_per_second=1))
        await world.begun()
        # The newest ones come first.
        last = min(await world.failures(), key=lambda row: row.place)
        for shard_id in range(world.total_shards):
            await world.store.remove_failures(shard_id, [last.place])
        job = await world.ended()
        assert (job.state, job.counts) == (JobState.COMPLETED, JobCounts(6, 5, 1))
        assert last.timer_id not in world.timers()

    play(scenario)


def test_replay_whose_answer_was_lost_counts_as_changed() -> None:
    async def scenario(world: Jobbing) -> None:
        await _failed(world, 1)
        service = world.working.service
        assert service is not None
        real, lost = service.write, [Unavailable("the answer was lost")]

        async def write(shard_id: int, op: WriteOp) -> TimerView | None:
            written = await real(shard_id, op)
            if lost:
                raise lost.pop()
            return written

        service.write = write  # type: ignore[method-assign]
        await _jobs_asked(world, world.job(JobAction.REPLAY, kind=JobKind.FAILURES))
        assert (await world.ended()).counts == JobCounts(1, 1)
        assert not lost

    play(scenario)


@pytest.mark.parametrize("of", ["reads", "writes"])
@pytest.mark.parametrize("change", ["pause", "cancel"])
def test_job_that_is_stopped_does_not_go_on_with_what_was_unavailable(
    of: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = job_runner.read_page

    async def scenario(world: Jobbing) -> None:
        calls, now_us = world.agent.waiting, world.true_us()
        calls.calls = {f"c{n}": (now_us - n, "Scheduled", ()) for n in range(20)}
        world.agent.here = world.working
        unavailable = Unavailable("nobody answers")

        async def read(*arguments: object) -> object:
            if of == "reads" and calls.faults:
                raise unavailable
            return await real(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(job_runner, "read_page", read)
        calls.faults = [unavailable] * 10_000
        asked = world.job(JobAction.DELETE, namespace="", tenant="t", kind=JobKind.CALLS)
        await _jobs_asked(world, asked)
        await asyncio.sleep(3.0)
        assert world.runners[world.working].running
        jobs = world.jobs(world.nodes[0])
        await world.nodes[0].ask(jobs.cancel("j") if change == "cancel" else jobs.pause("j"))
        await asyncio.sleep(3.0)
        assert not any(runner.running for runner in world.runners.values())
        calls.faults = []
        await asyncio.sleep(5.0)
        assert len(calls.calls) == 20
        job = await world.stored()
        assert (job.state, job.counts) == (JobState.CANCELED if change == "cancel" else JobState.PAUSED, JobCounts())
        if change == "pause":
            await world.nodes[0].ask(jobs.resume("j"))
            assert (await world.ended()).counts == JobCounts(20, 20)

    play(scenario)


def test_request_that_is_sent_twice_at_once_does_not_remove_its_own_job() -> None:
    """The first has begun it when the second one sees a rival, which is refused because of this very job."""

    async def scenario(world: Jobbing) -> None:
        first, second = world.jobs(world.nodes[0]), world.jobs(world.nodes[1])
        job, rival, read = world.job(rate_per_second=1), world.job(id="k"), second._all

        async def read_late() -> list[Job]:
            assert (await world.nodes[0].ask(first.create(job))).state is JobState.RUNNING
            await world.store.put_record("job", "k", msgspec.json.encode(rival).decode(), None)
            return await read()

        second._all = read_late  # type: ignore[method-assign]
        assert (await world.nodes[1].ask(second.create(job))).state is JobState.RUNNING
        assert (await world.stored()).state is JobState.RUNNING

    play(scenario)
