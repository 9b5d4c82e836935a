"""The deletion of a namespace on two nodes of the real engine in virtual time, while clients create timers, attempts go on,
and the node that works on it is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

import pytest

from tocsin.administration import NAMESPACES
from tocsin.model.answer import NoResponse, Response
from tocsin.model.condition import Condition, OnConflict, Outcome
from tocsin.model.errors import (
    NamespaceDeleting,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TocsinError,
    Unavailable,
)
from tocsin.model.instants import format_instant
from tocsin.model.job import Job, JobAction, JobKind, JobState
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import Changes, CreateKey, Timer
from tocsin.ports.http import Exchange, Invocation
from tocsin.ports.store import EVENTS_SUFFIX, Applied, RunRow, ShardBatch, names_of
from tocsin.timers import namespace_deletion
from tocsin.timers.job_runner import SINK_WAIT_US
from tocsin.timers.namespace_deletion import NamespaceDeletion, begin

from .link import Link
from .node import Node, NodeGone
from .test_jobs import HOUR, ROWS, SECOND, Jobbing, play


class Busy:
    """A receiver that takes its time; of three calls one fails, and one is answered with another instant."""

    def __init__(self, node: Node, calls: list[str]) -> None:
        self.connected = True
        self._node, self._calls = node, calls

    def destination(self, url: str) -> str:
        """The host."""
        return url.split("/")[2]

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Answers after a while."""
        self._calls.append(invocation.timer_id)
        now_us, number = self._node.clock.now_us(), len(self._calls)
        again = b'{"nextExecuteAt":"%s"}' % format_instant(now_us + 3 * SECOND).encode()
        answers = (Response(200, b""), Response(500, b""), Response(200, again))
        exchange = Exchange(answers[number % 3], now_us, SECOND)

        def end() -> None:
            if self.connected:
                done(exchange)

        asyncio.get_running_loop().call_later(number % 5, end)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of timers that were called, in order."""
    made: list[str] = []
    monkeypatch.setattr(Node, "_new_receiver", lambda node, incarnation=b"": Busy(node, made))
    return made


class Sink:
    """A sink that takes one event after another, each after half a second, and those `refused` have answers instead."""

    def __init__(self, node: Node, taken: list[str], refused: Sequence[str]) -> None:
        self.connected = True
        self._node, self._taken, self._refused = node, taken, refused

    def destination(self, url: str) -> str:
        """The same for all."""
        return url

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Takes an event, or does not."""

        def end() -> None:
            if not self.connected:
                return
            if self._refused:
                done(Exchange(NoResponse(self._refused[0]), None, 0))
                return
            self._taken.append(invocation.message_id)
            done(Exchange(Response(200), self._node.clock.now_us(), SECOND))

        asyncio.get_running_loop().call_later(0.5, end)


def deletion(world: Jobbing, *, cancel_pending: bool = True) -> Job:
    """The job as a request asks for it."""
    return world.job(JobAction.DELETE, kind=JobKind.NAMESPACE, cancel_pending=cancel_pending)


async def delete(world: Jobbing, node: Node, *, cancel_pending: bool = True) -> Job:
    """Deletes the namespace through a node, as a client that repeats what is unavailable."""
    assert node.service is not None
    while True:
        try:
            job = deletion(world, cancel_pending=cancel_pending)
            return await node.ask(begin(node.service, world.jobs(node), job))
        except Unavailable:
            await asyncio.sleep(0.5)


def left(world: Jobbing) -> list[object]:
    """Everything that is stored of the namespace."""
    rows: list[object] = [row for row in world.live_rows() if row.namespace in names_of("a")]
    for shard in world.store._shards.values():
        rows += [row for of in shard.history.values() for row in of.values()]
        rows += [row for of in shard.runs.values() for row in of.values()]
        rows += shard.failures.values()
    return rows


def test_killed_node_leaves_nothing_and_no_later_create_is_accepted(calls: list[str]) -> None:
    async def scenario(world: Jobbing) -> None:
        begun: list[str] = []
        accepted_after: list[str] = []
        over: list[bool] = []

        async def create(number: int) -> None:
            """Creates a timer through any node that lives, over and over."""
            for turn in count():
                if over:
                    return
                name, node = f"race{number}-{turn}", world.nodes[(number + turn) % 2]
                after = bool(begun)
                if node.service is None:
                    await asyncio.sleep(0.05)
                    continue
                now_us = world.true_us()
                timer = Timer("a", name, now_us + turn % 3 * SECOND, "http://host0/x", now_us, now_us)
                try:
                    await node.ask(node.service.create(timer))
                    if after:
                        accepted_after.append(name)
                except (TocsinError, NodeGone):
                    pass
                await asyncio.sleep(0.05)

        racing = [asyncio.ensure_future(create(number)) for number in range(4)]
        await asyncio.sleep(1.0)
        job = await delete(world, world.nodes[1])
        begun.append(job.id)
        called = len(calls)
        assert called > 10
        await world.begun()
        # Not when its place has just been stored.
        await asyncio.sleep(0.6)
        assert left(world)
        node = world.working
        await world.runners[node].close()
        await node.crash()
        ended = await world.ended()
        assert (ended.state, ended.reason, ended.counts.errors) == (JobState.COMPLETED, "", 0)
        over.append(True)
        await asyncio.gather(*racing)
        assert not accepted_after
        assert len(calls) == called
        # Whatever was in flight has ended.
        await asyncio.sleep(30.0)
        assert not left(world)
        assert await world.store.record(NAMESPACES, "a") is None
        (other,) = (each for each in world.nodes if each.service is not None)
        assert other.context is not None
        assert not other.context.namespaces.keys() & {"a"}
        assert not other.context.arcs.keys() & {"a"}

    play(scenario)


async def tried_and_changed(world: Jobbing) -> None:
    """Pending timers in a namespace that keeps failures only, with runs that ended and of which no list leads to them but by
    the timer."""
    node = world.nodes[1]
    assert node.service is not None
    await node.ask(node.service.namespaces.update("a", history=HistoryMode.FAILURES))
    for number in range(6):
        await world.create(f"tried{number}", due_us=world.true_us())
    await asyncio.sleep(6.0)
    for name, timer in world.timers().items():
        if timer.attempts:
            await node.ask(node.service.update("a", name, Changes(execute_at=world.true_us() + HOUR)))
    assert any(isinstance(row, RunRow) for row in left(world))


@pytest.mark.parametrize("step", ["settle", "forget", "forget_failures", "withdraw", "remove", "removed"])
def test_a_node_killed_at_any_step_loses_none(step: str, monkeypatch: pytest.MonkeyPatch, calls: list[str]) -> None:
    """Before the step or, of the last one, when it has taken effect, and another namespace has the name; the other node goes
    on."""

    async def scenario(world: Jobbing) -> None:
        name = "remove" if step == "removed" else step
        real, there = getattr(NamespaceDeletion, name), asyncio.Event()

        async def stopped(deletion: NamespaceDeletion, *arguments: object) -> object:
            if there.is_set():
                return await real(deletion, *arguments)
            if step == "removed":
                await real(deletion, *arguments)
            there.set()
            return await asyncio.Event().wait()

        monkeypatch.setattr(NamespaceDeletion, name, stopped)
        await tried_and_changed(world)
        await delete(world, world.nodes[1])
        await there.wait()
        node = world.working
        await world.runners[node].close()
        await node.crash()
        if step == "removed":
            (other,) = (each for each in world.nodes if each is not node)
            assert other.service is not None
            await other.ask(other.service.namespaces.create("a"))
        ended = await world.ended()
        assert (ended.state, ended.reason) == (JobState.COMPLETED, "")
        assert not left(world)
        assert (await world.store.record(NAMESPACES, "a") is not None) == (step == "removed")

    play(scenario)


def test_no_pass_begins_while_a_create_that_was_accepted_before_may_become_durable() -> None:
    async def scenario(world: Jobbing) -> None:
        node = world.nodes[1]
        assert node.service is not None
        let_go, held = asyncio.Event(), asyncio.Event()

        def hold(link: Link) -> None:
            real = link.apply

            async def apply(batches: Sequence[ShardBatch]) -> list[Applied]:
                if any(row.timer_id == "slow" for batch in batches for row in batch.upserts):
                    held.set()
                    await let_go.wait()
                return await real(batches)

            link.apply = apply  # type: ignore[method-assign]

        for each in world.nodes:
            hold(each.link)
        now_us = world.true_us()
        timer = Timer("a", "slow", now_us + HOUR, "http://host0/x", now_us, now_us)
        creating = asyncio.ensure_future(node.ask(node.service.create(timer)))
        await held.wait()
        await delete(world, node)
        # Shorter than a call of the store may take.
        await asyncio.sleep(1.5)
        assert (await world.stored()).cursor is None
        let_go.set()
        assert (await creating).timer.id == "slow"
        assert (await world.ended()).state is JobState.COMPLETED
        assert not left(world)

    play(scenario)


def test_pending_timers_that_the_request_missed_fail_the_job_and_release_the_namespace() -> None:
    async def scenario(world: Jobbing) -> None:
        node = world.nodes[1]
        assert node.service is not None
        with pytest.raises(NamespaceNotEmpty):
            await delete(world, node, cancel_pending=False)
        assert not await node.ask(world.jobs(node).list())
        # As if they had been created between the check and the mark.
        job = await node.ask(world.jobs(node).create(deletion(world, cancel_pending=False)))
        await node.ask(node.service.namespaces.mark("a", job.id))
        ended = await world.ended()
        assert ended.state is JobState.FAILED
        assert "cancelPending" in ended.reason
        await released(world, node)
        assert len(world.timers()) == ROWS
        # A request that was slow, and marks the namespace for a job that has ended by now.
        await node.ask(node.service.namespaces.mark("a", job.id))
        await released(world, node)
        await world.create("again", due_us=world.true_us() + HOUR)

    play(scenario)


def test_a_deletion_that_is_refused_has_removed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has finished is on pages before the one with what is pending."""
    monkeypatch.setattr(namespace_deletion, "PAGE_ROWS", 5)

    async def scenario(world: Jobbing) -> None:
        node = world.nodes[1]
        assert node.service is not None
        for number in range(20):
            await world.create(f"f{number}", due_us=world.true_us() - HOUR, expire_after_us=SECOND)
        await asyncio.sleep(3.0)
        before = left(world)
        assert len(await world.failures()) == 20
        # As if what is pending had been created between the check and the mark.
        job = await node.ask(world.jobs(node).create(deletion(world, cancel_pending=False)))
        await node.ask(node.service.namespaces.mark("a", job.id))
        ended = await world.ended()
        assert (ended.state, ended.counts.changed) == (JobState.FAILED, 0)
        assert left(world) == before

    play(scenario)


def test_deletion_that_has_removed_its_namespace_is_not_canceled_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canceled one has given it back, by the docs."""
    real = NamespaceDeletion.remove

    async def scenario(world: Jobbing) -> None:
        async def remove(deletion: NamespaceDeletion) -> None:
            await real(deletion)
            await world.jobs(world.working).cancel("j")

        monkeypatch.setattr(NamespaceDeletion, "remove", remove)
        await delete(world, world.nodes[1])
        await world.ended()
        await asyncio.sleep(5.0)
        job = await world.stored()
        assert (job.state, job.reason) == (JobState.COMPLETED, "")
        assert await world.store.record(NAMESPACES, "a") is None

    play(scenario)


async def released(world: Jobbing, node: Node) -> None:
    """Returns when the namespace is no longer held."""
    assert node.service is not None
    for _ in range(100):
        if (await node.ask(node.service.namespaces.stored("a"))).deleting is None:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the namespace is still held")


@pytest.mark.parametrize("killed", [False, True])
def test_canceled_deletion_releases_the_namespace_even_if_its_node_is_killed(killed: bool) -> None:
    async def scenario(world: Jobbing) -> None:
        await delete(world, world.nodes[1])
        await world.begun()
        node = world.working
        (other,) = (each for each in world.nodes if each is not node)
        if killed:
            await world.runners[node].close()
            await node.crash()
        await other.ask(world.jobs(other).cancel("j"))
        await released(world, other)
        assert (await world.stored()).state is JobState.CANCELED
        kept = len(world.timers())
        assert 0 < kept < ROWS
        assert other.service is not None
        now_us = world.true_us()
        timer = Timer("a", "again", now_us + HOUR, "http://host0/x", now_us, now_us)
        while True:
            try:
                await other.ask(other.service.create(timer))
                break
            except Unavailable:
                await asyncio.sleep(0.5)
        # Nothing of the deletion goes on.
        await asyncio.sleep(10.0)
        assert len(world.timers()) == kept + 1

    play(scenario)


def test_a_namespace_is_held_until_the_work_of_its_canceled_deletion_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else what is created in it by then could be removed."""

    async def scenario(world: Jobbing) -> None:
        real, there, let = NamespaceDeletion.forget, asyncio.Event(), asyncio.Event()

        async def slow(deletion: NamespaceDeletion, rows: Sequence[namespace_deletion.Row]) -> None:
            there.set()
            await let.wait()
            await real(deletion, rows)

        monkeypatch.setattr(NamespaceDeletion, "forget", slow)
        await delete(world, world.nodes[1])
        await there.wait()
        node = world.working
        await node.ask(world.jobs(node).cancel("j"))
        # The node looks at its jobs many times.
        await asyncio.sleep(10.0)
        assert node.service is not None
        assert (await node.ask(node.service.namespaces.stored("a"))).deleting == "j"
        let.set()
        await released(world, node)

    play(scenario)


def test_held_namespace_takes_no_changes_and_its_name_can_be_used_again(calls: list[str]) -> None:
    async def scenario(world: Jobbing) -> None:
        first, second = world.nodes
        assert first.service is not None
        assert second.service is not None
        now_us = world.true_us()
        key = Condition(OnConflict.REPLACE, CreateKey("k", "h"))
        await first.ask(first.service.create(Timer("a", "done", now_us, "http://host0/x", now_us, now_us), key))
        await asyncio.sleep(10.0)
        job = await delete(world, first)
        assert (await delete(world, second)).id == job.id
        for node in world.nodes:
            assert node.service is not None
            refused = [
                node.service.create(Timer("a", "new", now_us + HOUR, "http://host0/x", now_us, now_us)),
                node.service.update("a", "t199", Changes(execute_at=now_us + 2 * HOUR)),
                node.service.namespaces.update("a", paused=True),
                node.service.namespaces.create("a"),
                world.jobs(node).create(world.job(id="other")),
            ]
            for each in refused:
                with pytest.raises(NamespaceDeleting):
                    await node.ask(each)
            assert (await node.ask(node.service.get("a", "t199"))).timer.id == "t199"
        assert (await world.ended()).state is JobState.COMPLETED
        assert not left(world)
        for node in world.nodes:
            assert node.service is not None
            with pytest.raises(NamespaceNotFound):
                await node.ask(node.service.get("a", "t199"))
        # With other shards, which each node uses at once.
        await first.ask(first.service.namespaces.create("a", num_shards=1))
        for node in world.nodes:
            assert node.service is not None
            await node.ask(node.service.namespaces.refresh())
            created = await node.ask(
                node.service.create(Timer("a", f"of-{node.name}", now_us + HOUR, "http://host0/x", now_us, now_us), key)
            )
            assert created.outcome is Outcome.CREATED
        again = await second.ask(
            second.service.create(Timer("a", "done", now_us + HOUR, "http://host0/x", now_us, now_us), key)
        )
        assert (again.outcome, again.timer.attempts) == (Outcome.CREATED, 0)
        assert sorted(world.timers()) == ["done", "of-n0", "of-n1"]

    play(scenario)


async def with_sink(world: Jobbing) -> None:
    """The namespace has a sink."""
    node = world.nodes[1]
    assert node.service is not None
    await node.ask(node.service.namespaces.update("a", event_sink="nats://events"))


def events_left(world: Jobbing) -> int:
    """How many events wait."""
    return sum(row.namespace == f"a{EVENTS_SUFFIX}" for row in world.live_rows())


def test_deletion_waits_until_the_sink_has_taken_the_last_events(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr(Node, "_new_receiver", lambda node, incarnation=b"": Sink(node, taken, ()))

    async def scenario(world: Jobbing) -> None:
        await with_sink(world)
        await delete(world, world.nodes[1])
        assert (await world.ended()).state is JobState.COMPLETED
        assert (len(set(taken)), events_left(world)) == (ROWS, 0)

    play(scenario)


def test_deletion_does_not_wait_for_ever_for_a_sink_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    refused = ["CONNECTION_FAILED"]
    monkeypatch.setattr(Node, "_new_receiver", lambda node, incarnation=b"": Sink(node, taken, refused))

    async def scenario(world: Jobbing) -> None:
        await with_sink(world)
        await delete(world, world.nodes[1])
        await asyncio.sleep(SINK_WAIT_US / 1e6)
        assert (await world.stored()).live and events_left(world) == ROWS
        assert (await world.ended()).state is JobState.COMPLETED
        node = world.nodes[1]
        assert node.service is not None
        await node.ask(node.service.namespaces.create("a", event_sink="nats://events"))
        await world.create("new", due_us=world.true_us() + HOUR)
        await node.ask(node.service.delete("a", "new"))
        refused.clear()
        for _ in range(600):
            if not events_left(world):
                break
            await asyncio.sleep(0.1)
        # Of the former namespace, none.
        assert (len(taken), events_left(world)) == (1, 0)

    play(scenario)
