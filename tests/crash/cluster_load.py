"""Clients that create, replace, update and delete timers through any node of a cluster, and a ledger of the answers."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter

from tests.crash.ledger import Change, Ledger
from tests.support.cluster import AnyNode, now_us
from tests.support.http import Client
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant

CLIENTS = 16
#: A client's pause between two requests, on average: two or three hundred requests a second in all. Without one, the load
#: itself starves the nodes of a small machine, and what is seen is that.
PACE_S = 0.05


class ClusterLoad:
    """The clients. `failures` counts, by kind, answers that are neither success nor refusal, and requests without an
    answer."""

    def __init__(
        self, servers: list[ServerProcess], ledger: Ledger, url: str, seed: int, pace_s: float = PACE_S
    ) -> None:
        self.failures: Counter[str] = Counter()
        self.gone: set[ServerProcess] = set()
        self._servers, self._ledger, self._url = servers, ledger, url
        self._random = random.Random(seed)
        self._pace_s = pace_s
        self._version = 0
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts the clients."""
        self._tasks = [asyncio.create_task(self._client(number)) for number in range(CLIENTS)]

    async def stop(self) -> None:
        """Stops the clients; each finishes its present request."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def abandon(self) -> None:
        """Stops the clients at once, whose nodes are gone; what they wait for stays unacknowledged."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _client(self, number: int) -> None:
        client = AnyNode(self._servers, number)
        client.gone = self.gone
        made = 0
        while not self._stopping:
            timer = f"c{number}-{made}"
            made += 1
            await self._send(client, timer, "create")
            for _ in range(self._random.randrange(3)):
                if self._stopping:
                    break
                await self._send(client, timer, self._random.choice(["create", "update", "update", "delete"]))
        client.close()

    async def _send(self, client: AnyNode, timer: str, kind: str) -> None:
        await asyncio.sleep(self._random.random() * 2 * self._pace_s)
        self._version += 1
        execute_at = now_us() + int(self._random.choice([0.0, 0.05, 0.3, 1.0, 2.5]) * 1e6 * self._random.random())
        change = Change(self._version, kind == "delete", now_us(), execute_at)
        body: dict[str, object] = {"namespace": "default"}
        if kind == "create":
            policy = {"maxAttempts": 20, "initialInterval": "100ms"}
            body |= {"id": timer, "callbackUrl": self._url, "retryPolicy": policy}
        else:
            body["timerId"] = timer
        if kind != "delete":
            body |= {"executeAt": format_instant(execute_at), "payload": {"v": change.version}}
        self._ledger.changes[timer].append(change)
        try:
            status, answer = await client.post(f"/api/v1/timers/{kind}", body)
        except (OSError, EOFError, TimeoutError) as error:
            self.failures[type(error).__name__] += 1
            await asyncio.sleep(0.02)
            return
        if status in (200, 204):
            change.acked_at = now_us()
        elif status in (404, 409):
            change.refused = True
        else:
            self.failures[str(status)] += 1
            print(kind, status, answer, flush=True)
            await asyncio.sleep(0.02)


async def drained(server: ServerProcess, ledger: Ledger, timeout_s: float = 60.0) -> None:
    """Returns when no timer is owed or pending any more, or after a time limit; the later check finds out which."""
    client = Client(server.address)
    query = {"namespace": "default", "status": "pending", "limit": 1}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            while True:
                status, body = await client.post("/api/v1/timers/list", query)
                if status == 200 and not body["timers"] and not ledger.missing():
                    break
                await asyncio.sleep(0.2)
    client.close()


def latest(ledger: Ledger) -> float:
    """The greatest lag of a first attempt, in seconds."""
    due = {(timer, c.version): c.execute_at for timer, changes in ledger.changes.items() for c in changes}
    late_us = [
        receipt.arrived_at - due[timer, receipt.version]
        for timer, receipts in ledger.receipts.items()
        for receipt in receipts
        if receipt.attempt == 1
    ]
    return max(late_us, default=0) / 1e6


def reckon(ledger: Ledger, load: ClusterLoad, before_us: int) -> None:
    """Checks that every guarantee holds, with duplicates only of calls shortly before a fault."""
    acked = ledger.acknowledged
    received = sum(len(receipts) for receipts in ledger.receipts.values())
    duplicates, unexplained = ledger.duplicates(before_us)
    print(
        f"{acked} acknowledged writes, {received} calls, {duplicates} duplicates, latest {latest(ledger):.1f} s late, "
        f"failures {dict(load.failures)}"
    )
    assert acked > 500
    assert ledger.missing() == []
    assert ledger.early() == []
    assert ledger.after_change() == []
    assert unexplained == [], unexplained[:9]
