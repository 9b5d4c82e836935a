"""Limits of flows on three nodes of a shared database, of which one is killed and one is frozen: of what the receiver gets,
nothing exceeds a limit beyond what is promised, and every timer fires."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cluster import node, now_us, running, shared_by, until
from tests.support.http import Client, Receiver
from tocsin.model.instants import parse_instant

NAMESPACE = "shop"
KEYS, TIMERS_OF_KEY = 200, 20
#: Timers fall due over this time, and the faults come within it.
DUE_S, KILL_S, FREEZE_S, FROZEN_S = 20.0, 5.0, 9.0, 10.0
#: Windows over which attempts are counted.
WINDOWS_S = (1, 5, 60)
#: A grant may be used for a second after it was requested: the promise.
GRANT_S = 1.0


class Limit(NamedTuple):
    """What the flows of a prefix allow for each key: attempts a second, how many at once, and how many in flight."""

    rate: int | None
    burst: int
    parallelism: int | None

    def request(self) -> dict[str, Any]:
        """The limit as a rule has it."""
        limits: dict[str, Any] = {}
        if self.rate is not None:
            limits |= {"rate": {"count": self.rate, "per": "1s"}, "burst": self.burst}
        return limits if self.parallelism is None else limits | {"parallelism": self.parallelism}


LIMITS = {
    "slow:": Limit(2, 1, None),
    "bursts:": Limit(4, 5, None),
    "one:": Limit(None, 1, 1),
    "both:": Limit(10, 2, 2),
}


def key_of(number: int) -> str:
    return f"{list(LIMITS)[number % len(LIMITS)]}{number}"


class Arrival(NamedTuple):
    """A request: when its attempt began, by the node, when it came, and when it was answered (microseconds)."""

    began_at: int
    came_at: int
    left_at: int
    timer_id: str


class KeyedReceiver(Receiver):
    """Takes a while for each request, whose payload is the timer's flow key."""

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.arrivals: dict[str, list[Arrival]] = defaultdict(list)
        self.seen: Counter[str] = Counter()
        self._rng = random.Random(1)

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        body, came_at = json.loads(raw), now_us()
        await asyncio.sleep(self._rng.uniform(0.01, 0.2))
        began_at = parse_instant(body["firedAt"])
        self.arrivals[body["payload"]].append(Arrival(began_at, came_at, now_us(), body["timerId"]))
        self.seen[body["timerId"]] += 1
        return 200, b""


def exceeded(key: str, arrivals: Sequence[Arrival]) -> list[str]:
    """What the arrivals of a key exceed."""
    limit, found = LIMITS[f"{key.partition(':')[0]}:"], []
    if limit.parallelism is not None:
        moments = sorted(moment for arrival in arrivals for moment in ((arrival.came_at, 1), (arrival.left_at, -1)))
        present = most = 0
        for _, change in moments:
            present += change
            most = max(most, present)
        if most > limit.parallelism:
            found.append(f"{key}: {most} at once, {limit.parallelism} allowed")
    if limit.rate is not None:
        # A busy machine brings requests together that were not sent together.
        began = sorted(arrival.began_at for arrival in arrivals)
        for window_s in WINDOWS_S:
            allowed = limit.burst + limit.rate * (window_s + GRANT_S)
            most = max(sum(since <= at < since + window_s * 1_000_000 for at in began) for since in began)
            if most > allowed:
                found.append(f"{key}: {most} within {window_s} s, {allowed:g} allowed")
    return found


@pytest.mark.timeout(300)
async def test_limits_hold_while_a_node_is_killed_and_another_freezes(tmp_path: Path, postgresql_url: str) -> None:
    servers = [node(tmp_path, name, postgresql_url) for name in ("one", "two", "three")]
    async with KeyedReceiver() as receiver, running(*servers):
        await shared_by(servers, {"one", "two", "three"})
        client = Client(servers[0].address)

        async def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
            status, answer = await client.post(f"/api/v1/{path}", body)
            assert status == 200, answer
            return dict(answer)

        await post("namespaces/create", {"name": NAMESPACE, "numShards": 16})
        for match, limit in LIMITS.items():
            await post("flows/put", {"namespace": NAMESPACE, "match": match, "perKey": limit.request()})
        rng = random.Random(2)
        timers = [
            {
                "namespace": NAMESPACE, "id": f"{key_of(number)}-{each}", "callbackUrl": receiver.url,
                "delay": f"{2_000 + int(rng.uniform(0, DUE_S) * 1000)}ms", "flowKey": key_of(number),
                "payload": key_of(number),
                "retryPolicy": {"maxAttempts": 20, "initialInterval": "1s", "maxInterval": "3s"},
            }
            for number in range(KEYS)
            for each in range(TIMERS_OF_KEY)
        ]  # fmt: skip
        rng.shuffle(timers)
        for first in range(0, len(timers), 500):
            answer = await post("timers/batch/create", {"timers": timers[first : first + 500]})
            assert all("timer" in result for result in answer["results"])
        await asyncio.sleep(KILL_S)
        await servers[1].kill()
        await asyncio.sleep(FREEZE_S - KILL_S)
        assert servers[2].process is not None
        servers[2].process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_S)
        servers[2].process.send_signal(signal.SIGCONT)

        async def all_fired() -> bool:
            return len(receiver.seen) == len(timers)

        await until(all_fired, 120)
        client.close()
    repeated = sum(times - 1 for times in receiver.seen.values())
    print(f"{len(receiver.seen)} timers, {repeated} repeated attempts")
    found = [fault for key, arrivals in receiver.arrivals.items() for fault in exceeded(key, arrivals)]
    assert not found, found
