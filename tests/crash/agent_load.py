"""Clients that submit service calls to any node of a cluster, and the check of their outcomes."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.cluster import AnyNode, now_us
from tests.support.http import Client
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant, parse_instant

CLIENTS = 8
#: A client's pause between two calls: enough calls are in flight at any moment, and few enough to be checked in time.
PACE_S = 0.15
TENANTS = 3
#: How long a client waits for a response: longer than a request may wait for a node that runs the agent.
ANSWER_TIMEOUT_S = 25.0
#: The share of accepted calls that succeed at least: a kill interrupts those in flight.
SUCCEEDED_LEAST = 0.9


@dataclass
class Accepted:
    """A call that a node answered with 202."""

    tenant: str
    number: int
    due_at: int
    at_s: float


@dataclass
class AgentLoad:
    """Submits each call under one key until it is accepted; records every refusal."""

    nodes: list[ServerProcess]
    url: str
    seed: int
    accepted: dict[str, Accepted] = field(default_factory=dict)
    refused: list[tuple[float, int, str]] = field(default_factory=list)
    gone: set[ServerProcess] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._new_id = Uuid7Source(now_us)
        self._tenants = [self._new_id() for _ in range(TENANTS)]
        self._numbers = 0
        self._stopping = False
        self._clients: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts the clients."""
        self._clients = [asyncio.create_task(self._client(number)) for number in range(CLIENTS)]

    async def stop(self) -> None:
        """Returns when every submitted call has been accepted."""
        self._stopping = True
        await asyncio.gather(*self._clients)

    async def accepts(self, more: int) -> None:
        """Returns when this many more calls have been accepted."""
        wanted = len(self.accepted) + more
        async with asyncio.timeout(PATIENCE_S):
            while len(self.accepted) < wanted:  # noqa: ASYNC110 -- it is the clients' progress
                await asyncio.sleep(0.02)

    def longest_pause_s(self, since_s: float) -> float:
        """The longest time without an accepted call."""
        moments = sorted(call.at_s for call in self.accepted.values() if call.at_s >= since_s)
        return max(later - earlier for earlier, later in zip([since_s, *moments], moments, strict=False))

    async def _client(self, number: int) -> None:
        any_node = AnyNode(self.nodes, self.seed + number)
        any_node.gone = self.gone
        while not self._stopping:
            await self._submit(any_node)
            await asyncio.sleep(PACE_S)
        any_node.close()

    async def _submit(self, any_node: AnyNode) -> None:
        self._numbers += 1
        number, tenant = self._numbers, self._random.choice(self._tenants)
        delay_us = int(self._random.choice([0.0, 0.0, 0.5, 3.0]) * 1e6 * self._random.random())
        due_at = now_us() + delay_us
        body: dict[str, Any] = {
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
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    status, answer = await any_node.post(f"/api/v1/tenants/{tenant}/service-calls", body)
            except (OSError, EOFError, TimeoutError) as error:
                self.refused.append((time.monotonic(), 0, repr(error)))
                await asyncio.sleep(0.02)
                continue
            if status == 202:
                break
            assert status == 503, answer
            self.refused.append((time.monotonic(), status, str(answer)))
            await asyncio.sleep(0.02)
        assert answer["serviceCallId"] not in self.accepted, "two calls under one id"
        at_s = time.monotonic()
        self.accepted[answer["serviceCallId"]] = Accepted(tenant, number, due_at if delay_us else 0, at_s)


async def details_at_the_end(
    tenants: Mapping[str, str], node: ServerProcess, timeout_s: float = 60
) -> dict[str, dict[str, Any]]:
    """The details of each call from this node, by tenant, once all have finished or the timeout has passed."""
    details: dict[str, dict[str, Any]] = {}
    deadline_s = time.monotonic() + timeout_s
    calls = list(tenants.items())

    async def ask(some: list[tuple[str, str]]) -> None:
        client = Client(node.address)
        for call_id, tenant in some:
            while True:
                status, detail = await client.get(f"/api/v1/tenants/{tenant}/service-calls/{call_id}")
                assert status == 200, detail
                details[call_id] = detail
                if detail["status"] in ("Succeeded", "Failed") or time.monotonic() > deadline_s:
                    break
                await asyncio.sleep(0.05)
        client.close()

    await asyncio.gather(*(ask(calls[number::CLIENTS]) for number in range(CLIENTS)))
    return details


async def ends_reported(node: ServerProcess, tenant: str, call_id: str) -> int:
    """How many messages report the end of the call."""
    client = Client(node.address)
    status, trace = await client.get(f"/api/v1/tenants/{tenant}/service-calls/{call_id}/trace")
    assert status == 200, trace
    client.close()
    ends = ("ServiceCallSucceeded", "ServiceCallFailed")
    return sum(entry["kind"] == "message" and entry["name"] in ends for entry in trace["entries"])


def check(load: AgentLoad, details: dict[str, dict[str, Any]], receiver: SlowReceiver, logs: str = "") -> Counter[str]:
    """Checks that every accepted call has exactly one end and was executed no more often than its log shows."""
    arrived = Counter(path for path, _ in receiver.arrivals)
    first: dict[str, float] = {}
    for path, at in receiver.arrivals:
        first.setdefault(path, at)
    sums: Counter[str] = Counter()
    for call_id, call in load.accepted.items():
        detail, path = details[call_id], f"/{call.number}"
        assert detail["status"] in ("Succeeded", "Failed"), (call_id, detail, logs)
        sums[detail["status"]] += 1
        cut = sum("interrupted" in e.get("errorMessage", "").lower() for e in detail["executions"])
        sums["interrupted"] += cut
        # Once for the execution that ended, and at most once for each that was interrupted.
        assert arrived[path] <= 1 + cut, (call_id, arrived[path], detail)
        sums["repeated"] += arrived[path] > 1
        if detail["status"] == "Succeeded":
            assert arrived[path] >= 1
            assert sum(e.get("response", {}).get("status") == 200 for e in detail["executions"]) == 1
        else:
            assert detail["outcome"]["errorMeta"]["kind"] == "INTERRUPTED", detail
        if call.due_at and path in first:
            assert first[path] >= parse_instant(detail["dueAt"])
    return sums
