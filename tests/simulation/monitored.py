"""Monitors for a day of virtual time on two nodes of the real engine that are killed, frozen and stopped (rule 33).

A job reports each minute, and stops for some hours of the day. What must hold: an alarm for each stop, none while the job
has reported, or tried to and got no answer, and each minute accounted for.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

import msgspec

from tests.support.simulation_loop import SimulationLoop
from tocsin.administration import put_namespace
from tocsin.model.answer import Response
from tocsin.model.errors import TocsinError
from tocsin.model.hooks import Hook, Hooks
from tocsin.model.monitor import MonitorDefinition, Ping, PingEvent
from tocsin.model.namespace import Namespace
from tocsin.model.period import Period
from tocsin.model.timer import Timer
from tocsin.ports.http import Exchange, Invocation
from tocsin.testing.clock import EPOCH_US
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.monitors import Monitors

from .node import Node, NodeGone
from .world import SECOND, World

MINUTE = 60 * SECOND
#: How long the job tries to report, and pauses between two tries.
_TRIES_S, _PAUSE_S = 5.0, 0.5
GRACE = 90 * SECOND
#: Slow nodes, so that a day takes not too long.
_SLOW: dict[str, int] = {
    "heartbeat_interval_us": 5 * SECOND,
    "node_lease_us": 12 * SECOND,
    "member_timeout_us": 16 * SECOND,
    "ownership_refresh_interval_us": 5 * SECOND,
    "namespaces_interval_us": 10 * SECOND,
    "namespaces_lease_us": 30 * SECOND,
    "quota_check_interval_us": 60 * SECOND,
    # Also of a minute a day ago.
    "occurrences_kept": 10_000,
}
#: Minutes of a stop without an outage in which an alarm must come.
QUIET_MINUTES = 6


class Hooked:
    """Takes notifications, each at once."""

    def __init__(self, node: Node, seen: list[tuple[int, dict[str, Any]]]) -> None:
        self.connected = True
        self._node, self._seen = node, seen

    def destination(self, url: str) -> str:
        """The host."""
        return url.split("/")[2]

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Keeps what came."""
        assert invocation.body is not None
        content = msgspec.json.decode(invocation.body.sent())
        self._seen.append((self._node._world.true_us(), content))
        exchange = Exchange(Response(200, b""), self._node.clock.now_us(), 1_000)
        asyncio.get_running_loop().call_later(0.001, done, exchange)


async def answer_of(asked: Awaitable[Any]) -> tuple[Any] | None:
    """What is answered; None for an error, also if nobody waits for it any more."""
    try:
        return (await asked,)
    except TocsinError:
        return None


class Monitored(World):
    """Two nodes, two monitors of one job: one by cron, one by an interval; `hours` of virtual time."""

    def __init__(self, seed: int, *, hours: int = 24) -> None:
        self.notified: list[tuple[int, dict[str, Any]]] = []
        # Clocks that drift for hours would be distrusted, and nothing fire.
        super().__init__(seed=5 * seed, nodes=2)
        self.loop.close()
        self.loop = SimulationLoop(seconds_max=(hours + 2) * 3_600.0)  # type: ignore[abstract]
        self.store._clock._loop = self.loop  # type: ignore[attr-defined]
        # A day has few heartbeats then.
        self.limits, self.total_shards = replace(EngineLimits(), **_SLOW), 2
        self.hours = hours
        self._random = random.Random(seed)
        for node in self.nodes:
            node._new_receiver = lambda incarnation=b"", node=node: Hooked(node, self.notified)  # type: ignore[assignment,misc,return-value]
        #: Minutes in which the job reported durably, and in which it tried in vain.
        self.reported: set[int] = set()
        self.in_vain: set[int] = set()
        #: Minutes of stops in which no node answered.
        self.away: set[int] = set()
        self.stops: list[tuple[int, int]] = []
        self.periods: dict[str, list[Period]] = {}
        self.finished = False

    async def _life(self) -> None:
        await put_namespace(self.store, Namespace("a", self.total_shards, 0, 0, retention_us=10**13), create=True)
        for node in self.nodes:
            node.start()
        await asyncio.sleep(7)
        await self._put("cron", MonitorDefinition(cron="* * * * *", grace_us=GRACE))
        await self._put("every", MonitorDefinition(every_us=MINUTE, grace_us=GRACE))
        tasks = [self.loop.create_task(self._job()), self.loop.create_task(self._trouble())]
        await tasks[0]
        tasks[1].cancel()
        await asyncio.sleep(0)
        await self._heal()
        await asyncio.sleep(30)
        for name in ("cron", "every"):
            self.periods[name] = await self._history(name)
        for node in self.nodes:
            await node.crash()
        self.finished = True

    async def _put(self, name: str, definition: MonitorDefinition) -> None:
        hooks = Hooks(late=Hook("http://host0/"), recovery=Hook("http://host0/"))
        await self._ask(lambda monitors: monitors.put(Timer("a", name, 0, "", 0, 0, hooks=hooks), definition), 30)

    async def _ask(self, what: Callable[[Monitors], Any], for_s: float) -> Any:
        """What a node answers; TimeoutError if none does in time. The nodes are asked in turn: a job that by chance asks none
        but the one that is down would be late although nobody was away."""
        until = self.loop.time() + for_s
        first = self._random.randrange(len(self.nodes))
        turns = cycle((*self.nodes[first:], *self.nodes[:first]))
        while True:
            node = next(turns)
            left = until - self.loop.time()
            if left <= 0:
                raise TimeoutError
            if node.service is not None and not node.frozen:
                try:
                    async with asyncio.timeout(left):
                        answer = await node.ask(answer_of(what(Monitors(node.service))))
                except NodeGone:
                    answer = None
                if answer is not None:
                    return answer[0]
            await asyncio.sleep(_PAUSE_S)

    async def _job(self) -> None:
        minutes = self.hours * 60
        stops = sorted(self._random.sample(range(10, minutes - 40, 40), max(minutes // 240, 1)))
        self.stops = [(first, first + self._random.randint(10, 25)) for first in stops]
        for minute in range(1, minutes):
            at_s = minute * 60 + 20 + self._random.random() * 20
            await asyncio.sleep(max(at_s - self.loop.time(), 0))
            stopped = any(first <= minute < last for first, last in self.stops)
            try:
                if stopped:
                    # Only to find out whether an alarm is to be expected.
                    await self._ask(partial(Monitors.get, namespace="a", monitor_id="cron"), _TRIES_S)
                    continue
                for name in ("cron", "every"):
                    await self._ask(
                        lambda monitors, name=name: monitors.ping("a", name, Ping(PingEvent.SUCCESS)), _TRIES_S
                    )
                self.reported.add(minute)
            except TimeoutError:
                (self.away if stopped else self.in_vain).add(minute)

    async def _trouble(self) -> None:
        """Kills, freezes and stops nodes, sometimes both."""
        rng = self._random
        while True:
            await asyncio.sleep(rng.uniform(60, 900))
            chosen = rng.sample(self.nodes, rng.choice((1, 1, 2)))
            for node in chosen:
                how = rng.choice(("crash", "crash", "freeze", "close"))
                if node.supervisor is None:
                    continue
                if how == "freeze":
                    node.freeze()
                elif how == "crash":
                    await node.crash()
                else:
                    await node.close()
            await asyncio.sleep(rng.choice((1, 5, 30, 120, 600)))
            await self._heal()

    async def _heal(self) -> None:
        for node in self.nodes:
            if node.frozen:
                node.thaw()
            elif node.supervisor is None and (node._boot is None or node._boot.done()):
                node.start()
        await asyncio.sleep(5)

    async def _history(self, name: str) -> list[Period]:
        found: list[Period] = []
        cursor: str | None = None
        while True:
            ask = partial(Monitors.history, namespace="a", monitor_id=name, limit=1_000, cursor=cursor)
            page, cursor = await self._ask(ask, 60)
            found += page
            if cursor is None:
                return found

    # ------------------------------------------------------------------ what must hold

    def problems(self) -> list[str]:
        """What does not hold, in words."""
        found = []
        for name in ("cron", "every"):
            late = [
                (at - EPOCH_US) / MINUTE
                for at, content in self.notified
                if content["monitor"]["id"] == name and content["type"] == "monitor.late"
            ]
            for first, last in self.stops:
                # A late job is known after two minutes; after an outage of ours another period may be excused.
                quiet = any(
                    self.away.isdisjoint(range(begin, begin + QUIET_MINUTES))
                    for begin in range(first, last - QUIET_MINUTES)
                )
                if quiet and not any(first <= at < last + 1 for at in late):
                    found.append(f"{name}: no alarm for the stop from minute {first} to {last}")
            found += [
                f"{name}: alarm at minute {at:.1f}, though the job reported or tried to"
                for at in late
                if not any(first <= at <= last + 4 for first, last in self.stops)
            ]
        found += self._unaccounted(self.periods["cron"])
        return found

    def _unaccounted(self, periods: list[Period]) -> list[str]:
        """Each minute since the first report has one outcome: that of its report, if it was taken."""
        outcomes: dict[int, list[str]] = {}
        for period in periods:
            first = (period.expected_at - EPOCH_US) // MINUTE
            for minute in range(first, first + period.periods):
                outcomes.setdefault(minute, []).append(period.state)
        found = []
        for minute in range(min(self.reported) + 1, max(self.reported) + 1):
            states = outcomes.get(minute, [])
            if len(states) != 1:
                found.append(f"minute {minute} has the outcomes {states}")
            elif minute in self.reported and states[0] not in ("onTime", "late", "excused"):
                found.append(f"minute {minute} was reported, and is {states[0]}")
            elif minute not in self.reported and minute not in self.in_vain and states[0] not in ("missed", "excused"):
                found.append(f"minute {minute} was not reported, and is {states[0]}")
            elif minute in self.in_vain and states[0] == "missed":
                found.append(f"minute {minute} was reported in vain, and is missed")
        return found


def violation(seed: int, hours: int) -> str:
    """What is wrong in the run of a seed; empty if nothing is."""
    world = Monitored(seed, hours=hours)
    if world.run() is not None:
        return f"seed {seed}: {world.violation}"
    if not world.finished:
        return f"seed {seed}: the run did not end"
    return "\n".join(f"seed {seed}: {problem}" for problem in world.problems())


def main(seeds: int, hours: int = 24) -> int:
    """Runs the seeds; 1 if something is wrong in one."""
    found = [problem for seed in range(seeds) if (problem := violation(seed, hours))]
    for problem in found:
        sys.stdout.write(problem + "\n")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
