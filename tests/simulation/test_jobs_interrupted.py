"""Jobs on two nodes of the real engine in virtual time that meet what they can't change: the damaged, the removed, the
dismissed, and the unavailable."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tocsin.model.job import JobAction, JobCounts, JobKind, JobState
from tocsin.ports.store import FailureRow
from tocsin.timers import job_runner

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
