"""Jobs on two nodes of the real engine in virtual time: the node that works on them is killed or cut off, and rows change
while a job goes on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from tocsin.administration import put_namespace
from tocsin.keys import ApiKeys
from tocsin.model.errors import (
    IdempotencyConflict,
    JobRunning,
    Overloaded,
    TimerNotReplayable,
    Unavailable,
)
from tocsin.model.job import Job, JobAction, JobCounts, JobKind, JobState, RowFilter
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Changes, Timer, decode_record
from tocsin.ports.agent_calls import CallFailure
from tocsin.ports.audit import NoAudit
from tocsin.ports.store import FailureRow, Found
from tocsin.timers import job_rows
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.job_runner import JobRunner
from tocsin.timers.jobs import Jobs

from .agent_calls import Agent
from .node import Node
from .world import World

SECOND = 1_000_000
HOUR = 3_600 * SECOND
ROWS, RATE = 200, 50
#: Until another node has taken the shards of one that was killed, and works on its jobs.
_TAKEN_OVER_S = 15.0


class Jobbing(World):
    """Two nodes with runners, and timers that are due in some hours."""

    def __init__(self, scenario: Callable[[Jobbing], Awaitable[None]]) -> None:
        super().__init__(seed=5)
        self.limits, self.total_shards = EngineLimits(), 4
        self.nodes = [Node(self, name) for name in ("n0", "n1")]
        self.runners: dict[Node, JobRunner] = {}
        self.agent = Agent()
        self.fatal: list[BaseException] = []
        self.finished = False
        self._scenario = scenario

    async def _life(self) -> None:
        await put_namespace(self.store, Namespace("a", self.total_shards, 0, 0), create=True)
        for node in self.nodes:
            node.start()
        await asyncio.sleep(6.5)
        for node in self.nodes:
            self._start_runner(node)
        for number in range(ROWS):
            await self.create(f"t{number}", due_us=self.true_us() + HOUR + number * SECOND)
        await self._scenario(self)
        for node in self.nodes:
            await self.runners[node].close()
            await node.crash()
        self.finished = True

    def _start_runner(self, node: Node) -> None:
        assert node.context is not None
        assert node.service is not None
        assert node.supervisor is not None
        here = node.supervisor.acts_for_all
        agent = self.agent
        runner = JobRunner(
            node.context,
            node.service,
            ApiKeys(node.context.store),
            NoAudit(),
            acts_for_all=here,
            calls=lambda: agent if agent.here is node else None,
            fatal=self.fatal.append,
        )
        self.runners[node] = runner

        async def start() -> None:
            runner.start()

        node.inside(start())

    async def create(self, name: str, *, due_us: int, expire_after_us: int | None = None) -> None:
        """Creates a timer through any node."""
        now_us = self.true_us()
        timer = Timer(
            "a", name, due_us, "http://host0/x", now_us, now_us, tags=("kept",), expire_after_us=expire_after_us
        )
        service = self.nodes[1].service
        assert service is not None
        await self.nodes[1].ask(service.create(timer))

    def jobs(self, node: Node) -> Jobs:
        """The use cases at a node."""
        assert node.context is not None
        assert node.service is not None
        return Jobs(node.context.store, node.service.namespaces, node.clock, node.context.observe)

    def job(self, action: JobAction = JobAction.SHIFT, **fields: object) -> Job:
        """A job as a request asks for it."""
        now_us = self.true_us() + SECOND
        shifts = action is JobAction.SHIFT
        wanted = Job(
            "j", "a", JobKind.TIMERS, action, RowFilter(now_us, updated_before=now_us if shifts else None), now_us,
            now_us, JobState.STARTING, request="r", source="api", rate_per_second=RATE,
            shift_by_us=HOUR if shifts else 0,
        )  # fmt: skip
        return msgspec.structs.replace(wanted, **fields)

    @property
    def working(self) -> Node:
        """The node that works on jobs."""
        (node,) = (node for node in self.nodes if node.shard(0) is not None)
        return node

    async def ended(self) -> Job:
        """The job when it has ended."""
        for _ in range(600):
            await asyncio.sleep(0.1)
            if not (job := await self.stored()).live:
                return job
        raise AssertionError(f"the job does not end: {job}")

    async def begun(self) -> None:
        """Returns when rows have been changed."""
        for _ in range(100):
            if (await self.stored()).counts.changed:
                return
            await asyncio.sleep(0.1)

    async def stored(self) -> Job:
        """The job as it is stored."""
        record = await self.store.record("job", "j")
        assert record is not None
        return msgspec.json.decode(record.value, type=Job)

    async def failures(self) -> list[FailureRow]:
        """What is listed as failures."""
        return [
            row for shard_id in range(self.total_shards) for row in await self.store.failures(shard_id, None, 1_000)
        ]

    def timers(self) -> dict[str, Timer]:
        """The pending timers by id."""
        return {row.timer_id: decode_record(row.record) for row in self.live_rows()}


def play(scenario: Callable[[Jobbing], Awaitable[None]]) -> None:
    """Runs a scenario to its end."""
    world = Jobbing(scenario)
    assert world.run() is None, world.violation
    assert world.finished
    assert not world.fatal


async def _jobs_asked(world: Jobbing, job: Job) -> dict[str, Timer]:
    """Creates the job once its instant has come, and returns the timers before it."""
    await asyncio.sleep(1.5)
    before = world.timers()
    node = world.nodes[1]
    await node.ask(world.jobs(node).create(job))
    return before


def _shifted_once(before: dict[str, Timer], after: dict[str, Timer]) -> None:
    moved = {name: after[name].execute_at - timer.execute_at for name, timer in before.items()}
    assert set(moved.values()) == {HOUR}, moved


def test_killed_node_loses_no_row_and_changes_none_twice() -> None:
    async def scenario(world: Jobbing) -> None:
        before = await _jobs_asked(world, world.job())
        # Not at a whole second, after which the place is stored.
        await asyncio.sleep(1.75)
        node = world.working
        changed = sum(timer.execute_at != before[name].execute_at for name, timer in world.timers().items())
        assert 0 < changed < ROWS
        await world.runners[node].close()
        await node.crash()
        job = await world.ended()
        assert job.state is JobState.COMPLETED
        _shifted_once(before, world.timers())
        # What was done again does not count.
        assert ROWS - RATE <= job.counts.changed <= ROWS
        assert not job.counts.errors

    play(scenario)


@pytest.mark.parametrize("cut", ["refused", "silent", "deaf"])
def test_node_that_is_cut_off_from_the_store_gives_its_job_up(cut: str) -> None:
    async def scenario(world: Jobbing) -> None:
        before = await _jobs_asked(world, world.job())
        await asyncio.sleep(1.75)
        node = world.working
        node.link.cut = cut
        job = await world.ended()
        assert job.state is JobState.COMPLETED
        assert node.context is not None
        assert job.runner != node.context.incarnation.hex()
        _shifted_once(before, world.timers())
        node.link.cut = ""
        await asyncio.sleep(_TAKEN_OVER_S)
        assert not world.runners[node].running
        assert await world.stored() == job

    play(scenario)


def test_writes_and_reads_that_fail_are_repeated() -> None:
    async def scenario(world: Jobbing) -> None:
        before = await _jobs_asked(world, world.job())
        await world.begun()
        # Shorter than a node's lease.
        world.working.link.cut = "refused"
        await asyncio.sleep(1.0)
        world.working.link.cut = ""
        job = await world.ended()
        assert job.counts == JobCounts(ROWS, ROWS)
        _shifted_once(before, world.timers())

    play(scenario)


def test_shifted_timer_is_not_found_again_whatever_the_clock_of_its_node_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Shifted timers are on later pages.
    monkeypatch.setattr(job_rows, "PAGE_ROWS", 20)

    async def scenario(world: Jobbing) -> None:
        # Created by a node whose clock is ahead by more than the job takes.
        job = world.job()
        ahead_us = job.created_at + 60 * SECOND
        before = await _jobs_asked(
            world, msgspec.structs.replace(job, filter=RowFilter(ahead_us, updated_before=ahead_us))
        )
        assert (await world.ended()).counts == JobCounts(ROWS, ROWS)
        _shifted_once(before, world.timers())

    play(scenario)


def test_node_ends_its_work_on_a_job_that_another_one_has_taken_over() -> None:
    """Even if nothing else shows that it is not the one that works on jobs any more."""

    async def scenario(world: Jobbing) -> None:
        await _jobs_asked(world, world.job(rate_per_second=5))
        await world.begun()
        node = world.working
        former, look = world.runners[node], world.runners[node]._look
        assert look is not None
        look.cancel()
        (other,) = (each for each in world.nodes if each is not node)
        world.runners[other]._acts_for_all = lambda: True
        await asyncio.sleep(5.0)
        assert not former.running
        assert world.runners[other].running

    play(scenario)


def test_only_one_node_works_on_a_job() -> None:
    async def scenario(world: Jobbing) -> None:
        await _jobs_asked(world, world.job(rate_per_second=5))
        await world.begun()
        first = (await world.stored()).runner
        for _ in range(50):
            await asyncio.sleep(0.1)
            assert (await world.stored()).runner == first

    play(scenario)


def test_rows_that_are_created_or_changed_meanwhile() -> None:
    async def scenario(world: Jobbing) -> None:
        job = world.job(JobAction.CANCEL)
        wanted = msgspec.structs.replace(job.filter, tags=("kept",))
        await _jobs_asked(world, msgspec.structs.replace(job, filter=wanted))
        await world.begun()
        # Its page was read; none of these was reached.
        service = world.working.service
        assert service is not None
        far = world.true_us() + 9 * HOUR
        # In all shards, whichever node owns them.
        others = [f"t{number}" for number in range(ROWS - 20, ROWS)]
        for name in others:
            await world.working.ask(service.update("a", name, Changes(tags=("other",))))
        await world.working.ask(service.update("a", f"t{ROWS - 21}", Changes(execute_at=far)))
        await world.create("later", due_us=far)
        await world.create(f"t{ROWS - 22}", due_us=far)
        job = await world.ended()
        assert sorted(world.timers()) == sorted(["later", f"t{ROWS - 22}", *others])
        assert (job.counts.changed, job.counts.skipped) == (ROWS - 21, 21)

    play(scenario)


def test_shift_leaves_alone_what_a_client_has_changed_since() -> None:
    async def scenario(world: Jobbing) -> None:
        before = await _jobs_asked(world, world.job())
        await world.begun()
        service = world.working.service
        assert service is not None
        await world.working.ask(service.update("a", f"t{ROWS - 1}", Changes(tags=("other",))))
        await world.ended()
        after = world.timers()
        assert after[f"t{ROWS - 1}"].execute_at == before.pop(f"t{ROWS - 1}").execute_at
        _shifted_once(before, after)

    play(scenario)


def test_pause_holds_a_job_and_the_rate_bounds_it() -> None:
    async def scenario(world: Jobbing) -> None:
        before = await _jobs_asked(world, world.job(rate_per_second=20))
        jobs = world.jobs(world.nodes[0])

        def changed() -> int:
            return sum(timer.execute_at != before[name].execute_at for name, timer in world.timers().items())

        await asyncio.sleep(4.0)
        assert 20 <= changed() <= 20 * 4 + 2
        await world.nodes[0].ask(jobs.pause("j"))
        await asyncio.sleep(2.0)
        held = changed()
        await asyncio.sleep(5.0)
        assert changed() == held
        assert (await world.stored()).counts.changed == held
        await world.nodes[0].ask(jobs.set_rate("j", 1_000))
        await world.nodes[0].ask(jobs.resume("j"))
        job = await world.ended()
        assert job.counts == JobCounts(ROWS, ROWS)
        _shifted_once(before, world.timers())

    play(scenario)


def test_canceled_job_stops() -> None:
    async def scenario(world: Jobbing) -> None:
        before = await _jobs_asked(world, world.job(rate_per_second=20))
        await asyncio.sleep(2.0)
        jobs = world.jobs(world.nodes[0])
        await world.nodes[0].ask(jobs.cancel("j"))
        await asyncio.sleep(2.0)
        moved = [name for name, timer in world.timers().items() if timer.execute_at != before[name].execute_at]
        job = await world.stored()
        assert (job.state, job.counts.changed) == (JobState.CANCELED, len(moved))
        await asyncio.sleep(5.0)
        assert await world.stored() == job

    play(scenario)


def test_job_that_matches_too_much_fails() -> None:
    async def scenario(world: Jobbing) -> None:
        before = await _jobs_asked(world, world.job(match_max=30))
        job = await world.ended()
        assert (job.state, job.counts) == (JobState.FAILED, JobCounts(30, 30))
        assert "matchMax" in job.reason
        moved = [name for name, timer in world.timers().items() if timer.execute_at != before[name].execute_at]
        assert len(moved) == 30

    play(scenario)


def test_one_job_at_a_time_changes_the_same_rows() -> None:
    async def scenario(world: Jobbing) -> None:
        jobs = [world.jobs(node) for node in world.nodes]
        # Two nodes at the same time: at most one of the jobs is begun.
        first, second = world.job(), world.job(id="k", namespace="*")
        answers = await asyncio.gather(
            *(node.ask(each.create(job)) for node, each, job in zip(world.nodes, jobs, (first, second), strict=True)),
            return_exceptions=True,
        )
        assert sum(isinstance(answer, Job) for answer in answers) <= 1
        begun = [job for job in await world.nodes[0].ask(jobs[0].list()) if job.live]
        if not begun:
            begun = [await world.nodes[0].ask(jobs[0].create(first))]
        (job,) = begun
        with pytest.raises(JobRunning):
            await world.nodes[1].ask(jobs[1].create(world.job(id="l")))
        assert (await world.nodes[1].ask(jobs[1].create(world.job(id="d", dry_run=True)))).state is JobState.RUNNING
        assert (await world.nodes[1].ask(jobs[1].create(world.job(id=job.id)))).id == job.id
        with pytest.raises(IdempotencyConflict):
            await world.nodes[1].ask(jobs[1].create(world.job(id=job.id, request="another")))

    play(scenario)


def test_a_creation_that_was_given_up_blocks_no_other() -> None:
    async def scenario(world: Jobbing) -> None:
        jobs = world.jobs(world.nodes[0])
        world.nodes[0].link.cut = ""
        crashed = world.job(id="crashed", created_at=world.true_us() - HOUR)
        await world.store.put_record("job", "crashed", msgspec.json.encode(crashed).decode(), None)
        assert (await world.nodes[0].ask(jobs.create(world.job()))).state is JobState.RUNNING
        with pytest.raises(Unavailable):
            world.nodes[0].link.cut = "refused"
            await world.nodes[0].ask(jobs.get("j"))
        assert await world.store.record("job", "crashed") is None

    play(scenario)


def test_failures_are_replayed_once_each_although_the_node_is_killed() -> None:
    async def scenario(world: Jobbing) -> None:
        failed = [f"f{number}" for number in range(ROWS)]
        for name in failed:
            await world.create(name, due_us=world.true_us() - HOUR, expire_after_us=SECOND)
        node = world.nodes[1]
        assert node.service is not None
        await asyncio.sleep(3.0)
        assert len(await world.failures()) == ROWS
        # So that what is replayed stays pending.
        await node.ask(node.service.namespaces.update("a", paused=True))
        wanted = world.job(JobAction.REPLAY, kind=JobKind.FAILURES)
        await _jobs_asked(world, wanted)
        await world.begun()
        # Not when its place has just been stored.
        await asyncio.sleep(0.6)
        working = world.working
        assert 0 < len(await world.failures()) < ROWS
        await world.runners[working].close()
        await working.crash()
        job = await world.ended()
        assert job.state is JobState.COMPLETED
        assert not await world.failures()
        timers = world.timers()
        assert all(timers[name].replay and not timers[name].attempts for name in failed)
        assert ROWS - RATE <= job.counts.changed <= ROWS
        assert not job.counts.errors

    play(scenario)


def test_replayed_timers_are_due_one_after_another_and_written_shard_by_shard() -> None:
    """At a rate at which many are written together, each shard of which costs a read."""

    async def scenario(world: Jobbing) -> None:
        rate = 2_000
        for number in range(ROWS):
            await world.create(f"f{number}", due_us=world.true_us() - HOUR, expire_after_us=SECOND)
        node = world.nodes[1]
        assert node.service is not None
        await asyncio.sleep(3.0)
        await node.ask(node.service.namespaces.update("a", paused=True))
        read = world.store.fetch
        reads: list[int] = []

        async def fetch(shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
            reads.append(shard_id)
            return await read(shard_id, uuids)

        world.store.fetch = fetch  # type: ignore[method-assign]
        await _jobs_asked(world, world.job(JobAction.REPLAY, kind=JobKind.FAILURES, rate_per_second=rate))
        assert (await world.ended()).counts.changed == ROWS
        # Another node's may cross.
        own = [shard_id for shard_id in reads if world.working.shard(shard_id) is not None]
        assert own == sorted(own)
        assert len(set(own)) > 1
        dues = sorted(timer.execute_at for timer in world.timers().values() if timer.replay)
        assert min(later - due for due, later in itertools.pairwise(dues)) >= SECOND // rate - 1

    play(scenario)


def test_job_of_a_tenant_follows_the_agent_and_retries_each_failure_once() -> None:
    """The agent is not where the other jobs are worked on, moves in the middle, and does not always answer."""

    async def scenario(world: Jobbing) -> None:
        agent, calls, now_us = world.agent, world.agent.failures, world.true_us()
        for n in range(ROWS):
            calls.failed[f"c{n}"] = CallFailure("t", f"c{n}", now_us - n, "d\x1fe", "name", now_us, f"e{n}")
        (elsewhere,) = (node for node in world.nodes if node is not world.working)
        agent.here = elsewhere
        await _jobs_asked(world, world.job(JobAction.REPLAY, namespace="", tenant="t", kind=JobKind.FAILURES))
        calls.faults = [Unavailable("the reply was lost"), Overloaded("not now")]
        await world.begun()
        # Not when its place has just been stored.
        await asyncio.sleep(0.6)
        assert world.runners[elsewhere].running
        assert 0 < len(calls.retried) < ROWS
        agent.here = None
        await asyncio.sleep(3.0)
        assert not any(runner.running for runner in world.runners.values())
        # One of them is retried by somebody, fails again, and is a failure of later than the job.
        again = next(iter(calls.failed.values()))
        calls.failed[again.service_call_id] = again._replace(failed_at=world.true_us(), execution_id="later")
        agent.here = world.working
        job = await world.ended()
        assert (job.state, job.counts.errors) == (JobState.COMPLETED, 0)
        assert list(calls.failed) == [again.service_call_id]
        assert sorted([*calls.retried, again.service_call_id]) == sorted(f"c{n}" for n in range(ROWS))
        assert ROWS - RATE - 1 <= job.counts.changed < ROWS

    play(scenario)


def test_job_of_a_tenant_deletes_each_call_that_waits_and_still_matches() -> None:
    """The agent moves in the middle and does not always answer; calls begin, lose their tag, and come meanwhile."""

    async def scenario(world: Jobbing) -> None:
        agent, calls, now_us = world.agent, world.agent.waiting, world.true_us()
        calls.calls = {f"c{n}": (now_us - ROWS + n, "Scheduled", ("eu",)) for n in range(ROWS)}
        others = {"other": (now_us - ROWS - 1, "Scheduled", ()), "began": (now_us - ROWS - 2, "Running", ("eu",))}
        calls.calls |= others
        (elsewhere,) = (node for node in world.nodes if node is not world.working)
        agent.here = elsewhere
        wanted = world.job(JobAction.DELETE, namespace="", tenant="t", kind=JobKind.CALLS)
        await _jobs_asked(
            world, msgspec.structs.replace(wanted, filter=msgspec.structs.replace(wanted.filter, tags=("eu",)))
        )
        calls.faults, calls.lost_replies = [Unavailable("nobody answers"), Overloaded("not now")], 1
        await world.begun()
        # Not when its place has just been stored.
        await asyncio.sleep(0.6)
        assert 0 < len(calls.deleted) < ROWS
        # Of the page that was read already, and of a later one.
        oldest_first = [each for each in calls.calls if each not in others]
        held = {oldest_first[-15]: "Running", oldest_first[0]: "Running"}
        untagged = [oldest_first[-16], oldest_first[1]]
        for name, status in held.items():
            calls.calls[name] = (calls.calls[name][0], status, ("eu",))
        for name in untagged:
            calls.calls[name] = (calls.calls[name][0], "Scheduled", ())
        calls.calls["later"] = (world.true_us(), "Scheduled", ("eu",))
        agent.here = None
        await asyncio.sleep(3.0)
        assert not any(runner.running for runner in world.runners.values())
        agent.here = world.working
        job = await world.ended()
        assert (job.state, job.counts.errors) == (JobState.COMPLETED, 0)
        assert set(calls.calls) == {*others, *held, *untagged, "later"}
        assert len(set(calls.deleted)) == len(calls.deleted) == ROWS - 4
        assert ROWS - 4 - RATE - 1 <= job.counts.changed <= ROWS - 4

    play(scenario)


def test_begun_call_is_skipped_and_a_deleted_one_whose_reply_was_lost_counts_as_changed() -> None:
    async def scenario(world: Jobbing) -> None:
        calls, now_us = world.agent.waiting, world.true_us()
        calls.calls = {name: (now_us - n, "Scheduled", ()) for n, name in enumerate(("a", "b", "c"))}
        world.agent.here = world.working
        asked = world.job(JobAction.DELETE, namespace="", tenant="t", kind=JobKind.CALLS, rate_per_second=1)
        calls.lost_replies = 1
        await _jobs_asked(world, asked)
        await world.begun()
        calls.calls["b"] = (now_us - 1, "Running", ())
        calls.faults = [Unavailable("nobody answers")]
        job = await world.ended()
        assert (job.state, job.counts) == (JobState.COMPLETED, JobCounts(3, 2, 1))
        assert list(calls.calls) == ["b"]

    play(scenario)


def test_run_that_has_finished_since_is_not_replayed() -> None:
    """Its failure row, read before, names another run: nothing is replayed."""

    async def scenario(world: Jobbing) -> None:
        await world.create("again", due_us=world.true_us() - HOUR, expire_after_us=SECOND)
        node = world.nodes[1]
        assert node.service is not None
        await asyncio.sleep(3.0)
        (first,) = await world.failures()
        await world.create("again", due_us=world.true_us() - HOUR, expire_after_us=SECOND)
        await asyncio.sleep(3.0)
        op = await job_rows.replay_of(node.service, first)
        shard_id = node.service.namespaces.shard_of("a", first.uuid)
        with pytest.raises(TimerNotReplayable):
            await node.ask(node.service.write(shard_id, op))
        assert "again" not in world.timers()

    play(scenario)
