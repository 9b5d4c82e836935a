"""The sink drill: `python -m tests.drills.sink`, or `make drill-sink`.

Timers of a namespace with a sink are created and fire at a steady rate. Meanwhile the NATS server is killed, stays away, and
comes back with its streams. In the end each end of a timer is in the stream, or counted by a gap; the events of each shard
are there in their order; there is a gap only if more events than the backlog waited; and no timer was early, called twice or
kept waiting by the sink. If one of these is violated, the exit status is 1. It prints how late the timers were before, while
and after the sink was away, and how long the sink took to catch up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nats

from tests.drills.replay import p99
from tests.support.calls import Api
from tests.support.cluster import ended, now_us, until
from tests.support.http import Receiver
from tests.support.nats import NatsServer
from tests.support.program import running
from tests.support.server import ServerProcess
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid
from tocsin.model.instants import US_PER_SECOND, format_instant, parse_instant

NAMESPACE, SHARDS = "shop", 4
_STREAM, _SUBJECT = "SHOP", "shop.events"
#: Each second's timers are created so long before the first of them is due.
_AHEAD_S = 3
#: How long the sink may take to catch up, for each second that it was away, and at least.
_CATCH_UP_SHARE, _CATCH_UP_S = 1.0, 120.0
#: How much later than before the 99th percentile of timers may be while the sink is away, and how late it always may.
_LATE_RATIO, _LATE_MS = 1.5, 50.0


@dataclass(frozen=True)
class Plan:
    """How many timers end a second, for how many seconds the sink is away and the timers go on before and behind that, and
    how many events may wait in a shard (None: the setting's default)."""

    rate: int = 500
    away_s: int = 600
    beside_s: int = 30
    backlog: int | None = None


@dataclass(frozen=True)
class Event:
    """What the stream has of an event."""

    id: str
    type: str
    timer: str
    timestamp: str
    lost: int


class Call(NamedTuple):
    """A call of a timer: when it arrived, and how long after its instant."""

    timer: str
    arrived_at: int
    lag_us: int


class Drill:
    """The drill on a running server, of which `broker` has the stream."""

    def __init__(self, broker: NatsServer, server: ServerProcess, plan: Plan) -> None:
        self._broker, self._server, self._plan = broker, server, plan
        self._created = 0
        self._calls = list[Call]()
        #: Between which instants the sink was away.
        self._away = (0, 0)

    async def run(self) -> list[str]:
        """What is wrong."""
        api, plan = Api(self._server, namespace=NAMESPACE), self._plan
        client = await nats.connect(self._broker.url)
        await client.jetstream().add_stream(name=_STREAM, subjects=[f"{_SUBJECT}.>"])
        await client.close()
        status, answer = await api("namespaces/create", name=NAMESPACE, eventSink=f"nats://{_SUBJECT}")
        assert status == 200, answer
        async with Receiver(self._called) as receiver:
            creating = asyncio.create_task(self._create(api, receiver.url))
            await asyncio.sleep(plan.beside_s)
            self._broker.kill()
            begun = now_us()
            print(f"the sink is gone after {len(self._calls)} timers", flush=True)
            await asyncio.sleep(plan.away_s)
            self._away = begun, now_us()
            back = time.monotonic()
            await asyncio.to_thread(self._broker.start)
            print(f"it is back after {len(self._calls)} timers", flush=True)
            await creating

            async def all_called() -> bool:
                return len({call.timer for call in self._calls}) == self._created

            await until(all_called)
        events = await self._events()
        print(f"{time.monotonic() - back:.0f} s after it was back it had everything", flush=True)
        return [*self._wrong_calls(), *self._wrong_events(events)]

    def _called(self, body: dict[str, Any], _: dict[str, str]) -> tuple[int, bytes]:
        arrived = now_us()
        self._calls.append(Call(body["timerId"], arrived, arrived - parse_instant(body["executeAt"])))
        return 200, b""

    async def _create(self, api: Api, url: str) -> None:
        """Creates the timers of each second some seconds before, spread evenly over it."""
        rate, first_s = self._plan.rate, time.time() + _AHEAD_S
        for second in range(self._plan.away_s + 2 * self._plan.beside_s):
            due_us = int((first_s + second) * US_PER_SECOND)
            timers = [
                {
                    "namespace": NAMESPACE,
                    "id": f"t{self._created + number}",
                    "callbackUrl": url,
                    "executeAt": format_instant(due_us + number * US_PER_SECOND // rate),
                }
                for number in range(rate)
            ]
            status, answer = await api("timers/batch/create", timers=timers)
            assert status == 200, answer
            assert not any(each.get("error") for each in answer["results"]), answer
            self._created += rate
            await asyncio.sleep(max(first_s + second + 1 - _AHEAD_S - time.time(), 0))

    async def _events(self) -> list[Event]:
        """What the stream has, in its order, without what it was given twice, once every end is there or in a gap."""
        client = await nats.connect(self._broker.url)
        try:
            subscription = await client.jetstream().subscribe(f"{_SUBJECT}.>", stream=_STREAM, ordered_consumer=True)
            found, accounted = dict[str, Event](), 0
            async with asyncio.timeout(max(_CATCH_UP_S, self._plan.away_s * _CATCH_UP_SHARE)):
                while accounted < self._created:
                    data: dict[str, Any] = json.loads((await subscription.next_msg(timeout=_CATCH_UP_S)).data)
                    event = Event(
                        data["id"], data["type"], data.get("timerId", ""), data["timestamp"], data.get("lost", 0)
                    )
                    if event.id not in found:
                        found[event.id] = event
                        accounted += event.lost or 1
            return list(found.values())
        finally:
            await client.close()

    def _wrong_calls(self) -> list[str]:
        """What is wrong with the timers themselves."""
        times = Counter(call.timer for call in self._calls)
        wrong = [f"{timer} was called {count} times" for timer, count in times.items() if count != 1]
        wrong += [f"{call.timer} was early" for call in self._calls if call.lag_us < 0]
        begun, back = self._away
        before, meanwhile, after = (
            [call for call in self._calls if first <= call.arrived_at < last]
            for first, last in ((0, begun), (begun, back), (back, now_us()))
        )
        lags = [_late(part, name) for part, name in ((before, "before"), (meanwhile, "meanwhile"), (after, "after"))]
        if lags[1] > max(_LATE_RATIO * lags[0], _LATE_MS):
            wrong.append("timers were later while the sink was away")
        return wrong

    def _wrong_events(self, events: list[Event]) -> list[str]:
        """What is wrong with what the sink has."""
        hashed, last = namespace_hash(NAMESPACE), defaultdict[int, str](str)
        wrong = list[str]()
        for event in events:
            if event.type == "gap":
                continue
            shard = shard_of(hashed, timer_uuid(NAMESPACE, event.timer), SHARDS, SHARDS)
            if event.timestamp < last[shard]:
                wrong.append(f"the event of {event.timer} is behind a later one of shard {shard}")
            last[shard] = event.timestamp
        gaps = [event.lost for event in events if event.type == "gap"]
        ends = Counter(event.timer for event in events if event.type != "gap")
        print(f"{len(ends)} events, {sum(gaps)} counted by {len(gaps)} gaps, of {self._created} timers", flush=True)
        wrong += [f"{timer} has {count} events" for timer, count in ends.items() if count != 1]
        if len(ends) + sum(gaps) != self._created:
            wrong.append("events and gaps are not as many as timers have ended")
        if bool(gaps) != (self._plan.backlog is not None):
            wrong.append("there are gaps" if gaps else "there is no gap, though more events waited than may")
        return wrong


def _late(calls: Sequence[Call], name: str) -> float:
    """Prints how late these calls were; the 99th percentile, in milliseconds."""
    lags = sorted(call.lag_us / 1_000 for call in calls) or [0.0]
    print(
        f"{name}: {len(calls)} timers, late by p50 {lags[len(lags) // 2]:.1f} ms, p99 {p99(lags):.1f} ms, at most "
        f"{lags[-1]:.0f} ms"
    )
    return p99(lags)


async def drill(plan: Plan, folder: Path) -> list[str]:
    """Runs it; what is wrong."""
    with running(NatsServer()) as broker:
        env = {"TOCSIN_NATS_URL": broker.url, "TOCSIN_NATS_TARGETS": f"{NAMESPACE}={NAMESPACE}"}
        env["TOCSIN_SHARDS"] = str(SHARDS)
        if plan.backlog is not None:
            env["TOCSIN_SINK_BACKLOG_MAX"] = str(plan.backlog)
        server = ServerProcess(folder / "data", "--no-agent", env=env)
        async with ended(server):
            await server.start()
            return await Drill(broker, server, plan).run()


def main() -> int:
    """Runs the drill. The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=Plan.rate, help="timers that end a second")
    parser.add_argument("--away", type=int, default=Plan.away_s, help="seconds without the sink")
    parser.add_argument(
        "--backlog", type=int, help="events that may wait in a shard: fewer than there will be, so that there is a gap"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tocsin-drill-") as name:
        plan = Plan(rate=given.rate, away_s=given.away, backlog=given.backlog)
        wrong = asyncio.run(drill(plan, Path(name)))
    for each in wrong[:20]:
        print(f"WRONG: {each}")
    print("violated" if wrong else "kept", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
