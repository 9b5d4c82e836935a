"""Monitors of schedules for a day of virtual time on two nodes that are killed, frozen and stopped (rule 33, ADR 123).

Two schedules fire each minute. At times their receiver does not work: it refuses the occurrences of one, and takes minutes
for those of the other, which are late. Each has a monitor in the other shard. What must hold: an alarm for each such time,
none while the receiver works, however long no node fires anything, and each minute accounted for once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial

import msgspec

from tocsin.administration import put_namespace
from tocsin.model.answer import Response
from tocsin.model.hooks import Hook, Hooks
from tocsin.model.monitor import MonitorDefinition
from tocsin.model.namespace import Namespace
from tocsin.model.retry import RetryPolicy
from tocsin.model.schedule import Definition
from tocsin.model.timer import Timer
from tocsin.ports.http import Exchange, Invocation
from tocsin.testing.clock import EPOCH_US
from tocsin.timers.monitors import Monitors
from tocsin.timers.schedules import Schedules

from .monitored import GRACE, MINUTE, Hooked, Monitored, answer_of
from .node import Node
from .world import SECOND

#: The schedules, each with the monitor that watches it: it is in the other of the two shards.
_MONITORS = {"fails": "fails-watched", "late": "late"}
#: How many minutes after a stop an alarm may still come: nodes are away for ten, and then read what has ended meanwhile.
_AFTER = 14
#: A stop in which calls of so many different minutes did not work must have its alarm.
_REFUSED_MIN = 4
#: How long a call takes then that is not refused.
_SLOW_S = 200.0


class Working(Hooked):
    """Takes notifications, and the schedules' calls, for which it does not work while it is stopped."""

    def __init__(self, node: Node, world: Watched) -> None:
        super().__init__(node, world.notified)
        self._watched = world

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Answers a call by the minute in which it comes."""
        if "host1" not in invocation.url:
            super().invoke(invocation, done)
            return
        name = invocation.url.rpartition("/")[2]
        works = self._watched.called(name)
        took_s = 0.5 if works or name == "fails" else _SLOW_S
        answer = Response(200 if works or name == "late" else 500, b"")
        exchange = Exchange(answer, self._node.clock.now_us(), round(took_s * SECOND))
        asyncio.get_running_loop().call_later(took_s, done, exchange)


class Watched(Monitored):
    """Two nodes, two schedules and their monitors; `hours` of virtual time."""

    def __init__(self, seed: int, *, hours: int = 24) -> None:
        super().__init__(seed, hours=hours)
        for node in self.nodes:
            node._new_receiver = lambda incarnation=b"", node=node: Working(node, self)  # type: ignore[assignment,misc,return-value]
        #: The minutes in which calls came that did not work, by schedule.
        self.refused: dict[str, set[int]] = {name: set() for name in _MONITORS}

    def called(self, name: str) -> bool:
        """Whether a call of the schedule works that comes now."""
        minute = (self.true_us() - EPOCH_US) // MINUTE
        if not any(first <= minute < last for first, last in self.stops):
            return True
        self.refused[name].add(minute)
        return False

    async def _life(self) -> None:
        await put_namespace(self.store, Namespace("a", self.total_shards, 0, 0, retention_us=10**13), create=True)
        for node in self.nodes:
            node.start()
        await asyncio.sleep(7)
        minutes = self.hours * 60
        begins = sorted(self._random.sample(range(10, minutes - 45, 45), max(minutes // 240, 1)))
        self.stops = [(first, first + self._random.randint(10, 25)) for first in begins]
        for name, monitor in _MONITORS.items():
            url, once = f"http://host1/{name}", RetryPolicy(max_attempts=1)
            timer = Timer("a", name, 0, url, 0, 0, retry=once, timeout_us=10 * MINUTE)
            await self._schedule(timer)
            hooks = Hooks(late=Hook("http://host0/"), recovery=Hook("http://host0/"))
            watching = Timer("a", monitor, 0, "", 0, 0, hooks=hooks)
            definition = MonitorDefinition(schedule=name, grace_us=GRACE)
            await self._ask(partial(_put, watching, definition), 30)
        trouble = self.loop.create_task(self._trouble())
        await asyncio.sleep(minutes * 60 - self.loop.time())
        trouble.cancel()
        await asyncio.sleep(0)
        await self._heal()
        await asyncio.sleep(90)
        for name, monitor in _MONITORS.items():
            self.periods[name] = await self._history(monitor)
        for node in self.nodes:
            await node.crash()
        self.finished = True

    async def _schedule(self, timer: Timer) -> None:
        node = self.nodes[0]
        async with asyncio.timeout(60):
            while True:
                if node.service is not None:
                    creating = Schedules(node.service).create(timer, Definition(cron="* * * * *"))
                    if await node.ask(answer_of(creating)) is not None:
                        return
                await asyncio.sleep(1)

    # ------------------------------------------------------------------ what must hold

    def problems(self) -> list[str]:
        """What does not hold, in words."""
        found = []
        for name, kind in (("fails", "monitor.failed"), ("late", "monitor.late")):
            alarms = [
                ((at - EPOCH_US) // MINUTE, content["type"])
                for at, content in self.notified
                if content["monitor"]["id"] == _MONITORS[name] and content["type"] != "monitor.recovered"
            ]
            for first, last in self.stops:
                refused = [minute for minute in self.refused[name] if first <= minute < last]
                notified = any(first <= at <= last + _AFTER and what == kind for at, what in alarms)
                if len(refused) >= _REFUSED_MIN and not notified:
                    found.append(f"{name}: no alarm for the stop from minute {first} to {last}")
            found += [
                f"{name}: {what} in minute {at}, though the receiver worked"
                for at, what in alarms
                if not any(first <= at <= last + _AFTER for first, last in self.stops)
            ]
            found += self._counted(name)
        return found

    def _counted(self, name: str) -> list[str]:
        """Each minute has one outcome from the first to the last."""
        outcomes: dict[int, list[str]] = {}
        for period in self.periods[name]:
            first = (period.expected_at - EPOCH_US) // MINUTE
            for minute in range(first, first + period.periods):
                outcomes.setdefault(minute, []).append(period.state)
        return [
            f"{name}: minute {minute} has the outcomes {outcomes.get(minute, [])}"
            for minute in range(min(outcomes), max(outcomes) + 1)
            if len(outcomes.get(minute, [])) != 1
        ]


async def _put(timer: Timer, definition: MonitorDefinition, monitors: Monitors) -> object:
    return await monitors.put(msgspec.structs.replace(timer), definition)


def violation(seed: int, hours: int) -> str:
    """What is wrong in the run of a seed; empty if nothing is."""
    world = Watched(seed, hours=hours)
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
