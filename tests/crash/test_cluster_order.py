"""Ordered keys of flows on three nodes of a shared database, while the owner of their shard is killed, and the next one is
frozen: measured at the receiver, each timer begins when the one before it has been accepted."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import node, now_us, running, shared_by, until
from tests.support.http import Client, Receiver
from tocsin.model.instants import format_instant

KEYS, TIMERS_OF_KEY = 20, 25
#: Timers fall due over this time, and the faults come within it.
DUE_S, FAULT_S, FROZEN_S = 20.0, 5.0, 15.0
#: Within this time, all are created; each further try has twice as long.
CREATING_S, TRIES = 8, 3
#: A seventh of the timers is refused this often before it is accepted.
REFUSED_TIMES = 2


class OrderedReceiver(Receiver):
    """Refuses some timers for a while. Notes what begins before the former timer of its key was accepted."""

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.seen: Counter[str] = Counter()
        self.accepted: dict[str, set[int]] = defaultdict(set)
        self.faults: list[str] = []
        self.retried = 0
        self._rng = random.Random(1)

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        body = json.loads(raw)
        key, place = body["payload"]["key"], body["payload"]["place"]
        timer = f"{key}-{place}"
        self.seen[timer] += 1
        missing = [each for each in range(place) if each not in self.accepted[key]]
        if missing:
            self.faults.append(f"{timer} begins before {missing}")
        await asyncio.sleep(self._rng.uniform(0.01, 0.1))
        if place % 7 == 3 and self.seen[timer] <= REFUSED_TIMES:
            self.retried += 1
            return 500, b""
        self.accepted[key].add(place)
        return 200, b""


def orders(namespace: str, url: str, first_us: int) -> list[dict[str, Any]]:
    """Requests for all timers, in no order: their instants are their order."""
    timers = [
        {
            "namespace": namespace, "id": f"{key}-{place}", "callbackUrl": url,
            "executeAt": format_instant(first_us + int(place * DUE_S * 1e6 / TIMERS_OF_KEY)), "flowKey": f"order:{key}",
            "payload": {"key": key, "place": place},
            "retryPolicy": {"maxAttempts": 20, "initialInterval": "500ms", "maxInterval": "2s"},
        }
        for key in range(KEYS)
        for place in range(TIMERS_OF_KEY)
    ]  # fmt: skip
    random.Random(2).shuffle(timers)
    return timers


@pytest.mark.timeout(300)
async def test_the_order_holds_while_its_owners_are_killed_and_frozen(tmp_path: Path, postgresql_url: str) -> None:
    names = ("one", "two", "three")
    servers = {name: node(tmp_path, name, postgresql_url) for name in names}
    async with AsyncExitStack() as receivers, running(*servers.values()):
        await shared_by(list(servers.values()), set(names))
        clients = {name: Client(server.address) for name, server in servers.items()}

        async def post(by: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
            status, answer = await clients[by].post(f"/api/v1/{path}", body)
            assert status == 200, answer
            return dict(answer)

        async def owner(by: str, among: Sequence[str]) -> str:
            """The node of these that owns the shard, once one does."""
            found: list[str] = []

            async def is_known() -> bool:
                last = {"namespace": namespace, "timerId": "last"}
                status, explained = await clients[by].post("/api/v1/timers/explain", last)
                found[:] = [explained.get("owner", "")] if status == 200 else [""]
                return found[0] in among

            await until(is_known)
            return found[0]

        # What is created when others of its key are due comes after them. Then another namespace begins later.
        for number in range(TRIES):
            namespace, receiver = f"orders-{number}", await receivers.enter_async_context(OrderedReceiver())
            await post("one", "namespaces/create", {"name": namespace, "numShards": 1})
            await post("one", "flows/put", {"namespace": namespace, "match": "order:", "perKey": {"ordered": True}})
            first_us = now_us() + CREATING_S * 2**number * 1_000_000
            created = {"timers": orders(namespace, receiver.url, first_us)}
            answer = await post("one", "timers/batch/create", created)
            assert all("timer" in result for result in answer["results"])
            if now_us() < first_us:
                break
            await post("one", "namespaces/update", {"name": namespace, "paused": True})
        else:
            pytest.fail(f"the timers were not created within {CREATING_S * 2 ** (TRIES - 1)} s")
        last = {"namespace": namespace, "id": "last", "callbackUrl": receiver.url, "delay": "1h"}
        await post("one", "timers/create", last)
        await asyncio.sleep(max((first_us - now_us()) / 1e6, 0) + FAULT_S)
        killed = await owner("one", names)
        await servers[killed].kill()
        others = [name for name in names if name != killed]
        await owner(others[0], others)
        await asyncio.sleep(FAULT_S)
        frozen = await owner(others[0], others)
        process = servers[frozen].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_S)
        process.send_signal(signal.SIGCONT)

        async def all_accepted() -> bool:
            return sum(map(len, receiver.accepted.values())) == KEYS * TIMERS_OF_KEY

        await until(all_accepted, 120)
        for client in clients.values():
            client.close()
    repeated = sum(receiver.seen.values()) - KEYS * TIMERS_OF_KEY - receiver.retried
    print(f"{KEYS * TIMERS_OF_KEY} timers, {receiver.retried} refused and {repeated} repeated attempts")
    assert receiver.retried >= KEYS * 3
    assert not receiver.faults, receiver.faults
