"""The deletion of a namespace on two nodes of the real engine in virtual time, while clients create timers, attempts are in
flight, and the node that works on it is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tocsin.administration import NAMESPACES
from tocsin.model.answer import Response
from tocsin.model.errors import (
    TocsinError,
    Unavailable,
)
from tocsin.model.instants import format_instant
from tocsin.model.job import Job, JobAction, JobKind, JobState
from tocsin.model.timer import Timer
from tocsin.ports.http import Exchange, Invocation
from tocsin.ports.store import names_of
from tocsin.timers.namespace_deletion import begin

from .node import Node
from .test_jobs import SECOND, Jobbing, play


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
    monkeypatch.setattr(Node, "_new_receiver", lambda node: Busy(node, made))
    return made


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

        async def create(number: int) -> None:
            """Creates a timer through any node that lives, over and over."""
            for turn in range(200):
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
                except (TocsinError, asyncio.CancelledError):
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
        for each in racing:
            each.cancel()
        await asyncio.gather(*racing, return_exceptions=True)
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
