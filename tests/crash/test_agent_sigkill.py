"""The service agent, killed at random moments: every accepted call has exactly one end, and a call is executed twice
only if a kill interrupted its execution, which the log then shows."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.crash.agent_load import details_at_the_end, ends_reported
from tests.support.http import Client
from tests.support.nats import NatsServer
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant, parse_instant

KILLS = 3
CLIENTS = 12
LIFETIME_S = (0.4, 2.0)
#: A client's pause between two calls: some calls are in flight at any moment, and few enough that waiting for and checking
#: their ends takes less time than the kills.
PACE_S = 0.05
#: Fewer calls would prove little.
ACCEPTED_MIN = 120
TENANTS = 5
#: The watchdog's grace, short enough for a test.
SETTINGS = {"TOCSIN_AGENT_WATCHDOG_GRACE": "4s", "TOCSIN_AGENT_REQUEST_TIMEOUT": "5s", "TOCSIN_SHARDS": "1"}


def now_us() -> int:
    return time.time_ns() // 1_000


@dataclass
class Accepted:
    """A call that the server answered with 202."""

    tenant: str
    number: int
    due_at: int


@dataclass
class Load:
    """Clients that submit calls, each under one key until it is accepted."""

    server: ServerProcess
    url: str
    seed: int
    stopping: bool = False
    accepted: dict[str, Accepted] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        new_id = Uuid7Source(now_us)
        self._tenants = [new_id() for _ in range(TENANTS)]
        self._numbers = 0

    async def client(self) -> None:
        client = Client(self.server.address)
        while not self.stopping:
            self._numbers += 1
            number, tenant = self._numbers, self._random.choice(self._tenants)
            delay_us = int(self._random.choice([0.0, 0.0, 0.3, 1.0, 3.0]) * 1e6 * self._random.random())
            due_at = now_us() + delay_us
            body = {
                "name": f"call {number}",
                "idempotencyKey": f"key-{number}",
                "requestSpec": {
                    "method": self._random.choice(["POST", "PUT"]),
                    "url": f"{self.url}/{number}",
                    "body": number,
                },
            }
            if delay_us:
                body["dueAt"] = format_instant(due_at)
            while True:
                try:
                    status, answer = await client.post(f"/api/v1/tenants/{tenant}/service-calls", body)
                except (OSError, EOFError, TimeoutError):
                    await asyncio.sleep(0.02)
                    continue
                if status == 202:
                    break
                assert status == 503, answer
                await asyncio.sleep(0.02)
            assert answer["serviceCallId"] not in self.accepted, "two calls under one id"
            self.accepted[answer["serviceCallId"]] = Accepted(tenant, number, due_at if delay_us else 0)
            await asyncio.sleep(PACE_S)
        client.close()


async def run(folder: Path, *flags: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    async with SlowReceiver(lambda path: moments.choice([0.0, 0.0, 0.01, 0.2])) as receiver:
        server = ServerProcess(folder / "data", *flags, env=SETTINGS)
        await server.start()
        load = Load(server, receiver.url, seed)
        clients = [asyncio.create_task(load.client()) for _ in range(CLIENTS)]
        for _ in range(KILLS):
            await asyncio.sleep(moments.uniform(*LIFETIME_S))
            await server.kill()
            await server.start()
        # On a slow machine the server is starting most of the time.
        while len(load.accepted) < ACCEPTED_MIN:  # noqa: ASYNC110 -- it is the clients' progress
            await asyncio.sleep(PACE_S)
        load.stopping = True
        await asyncio.gather(*clients)
        tenants = {call_id: call.tenant for call_id, call in load.accepted.items()}
        details = await details_at_the_end(tenants, server)
        check(load, details, receiver)
        for call_id in moments.sample(sorted(details), min(100, len(details))):
            assert await ends_reported(server, tenants[call_id], call_id) == 1
        with contextlib.suppress(ProcessLookupError):
            assert await server.stop() == 0


def check(load: Load, details: dict[str, dict[str, Any]], receiver: SlowReceiver) -> None:
    statuses = Counter(detail["status"] for detail in details.values())
    arrived = Counter(path for path, _ in receiver.arrivals)
    first = {}
    for path, at in receiver.arrivals:
        first.setdefault(path, at)
    interrupted = repeated = 0
    for call_id, call in load.accepted.items():
        detail, path = details[call_id], f"/{call.number}"
        assert detail["status"] in ("Succeeded", "Failed"), (call_id, detail, load.server.log()[-2000:])
        cut = [e for e in detail["executions"] if "interrupted" in e.get("errorMessage", "").lower()]
        interrupted += len(cut)
        # Once for the execution that ended, and at most once for each that was interrupted.
        assert arrived[path] <= 1 + len(cut), (call_id, arrived[path], detail)
        repeated += arrived[path] > 1
        if detail["status"] == "Succeeded":
            assert arrived[path] >= 1
            assert sum(e.get("response", {}).get("status") == 200 for e in detail["executions"]) == 1
        else:
            assert detail["outcome"]["errorMeta"]["kind"] == "INTERRUPTED", detail
        if call.due_at and path in first:
            assert first[path] >= parse_instant(detail["dueAt"])
    print(f"{len(details)} calls: {dict(statuses)}; {interrupted} executions interrupted, {repeated} arrived twice")
    assert len(details) >= ACCEPTED_MIN
    assert statuses["Succeeded"] > len(details) * 0.9


@pytest.mark.timeout(400)
async def test_kills_lose_no_call_on_sqlite_with_the_embedded_bus(tmp_path: Path) -> None:
    await run(tmp_path)


@pytest.mark.timeout(400)
async def test_kills_lose_no_call_on_postgresql_with_nats(
    tmp_path: Path, nats: NatsServer, postgresql_url: str
) -> None:
    await run(tmp_path, "--broker", nats.url, "--agent-database", postgresql_url)


@pytest.mark.timeout(400)
async def test_kills_lose_no_call_with_the_timer_engine(tmp_path: Path) -> None:
    await run(tmp_path, "--agent-timer", "engine")
