"""The traffic of a drill: timers created beforehand, clients that go on creating, changing and deleting, and a receiver."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.crash.cluster_load import ClusterLoad
from tests.crash.ledger import Change, Ledger
from tests.support.cluster import AnyNode, now_us
from tests.support.http import Receiver
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant

_BATCH_TIMERS = 500
#: Versions of timers that were created beforehand, beyond those that the clients count.
_FIRST_VERSION = 1_000_000_000


@dataclass
class Traffic:
    """What is known of all writes and calls. `load` is the clients'; a drill may start others after them."""

    ledger: Ledger
    url: str
    seed: int

    def load(self, servers: list[ServerProcess]) -> ClusterLoad:
        """Clients of these nodes, not started."""
        return ClusterLoad(servers, self.ledger, self.url, self.seed)


@asynccontextmanager
async def traffic() -> AsyncIterator[Traffic]:
    """A receiver that answers 200 to everything."""
    seed, ledger = random.SystemRandom().randrange(2**32), Ledger()
    print(f"seed {seed}", flush=True)

    def answer(body: dict[str, object], _: dict[str, str]) -> tuple[int, bytes]:
        ledger.receive(body, now_us())
        return 200, b""

    async with Receiver(answer) as receiver:
        yield Traffic(ledger, receiver.url, seed)


async def create(traffic: Traffic, servers: list[ServerProcess], timers: int, due_s: tuple[float, float]) -> None:
    """Creates timers, due evenly within that many seconds from now. Raises AssertionError if one is refused."""
    chance, client, begun = random.Random(traffic.seed), AnyNode(servers, traffic.seed), now_us()
    for first in range(0, timers, _BATCH_TIMERS):
        numbers = range(first, min(first + _BATCH_TIMERS, timers))
        sent, changes, items = now_us(), {}, []
        for number in numbers:
            due, version = begun + int(chance.uniform(*due_s) * 1e6), _FIRST_VERSION + number
            changes[f"b{number}"] = Change(version, False, sent, due)
            item = {"id": f"b{number}", "executeAt": format_instant(due), "payload": {"v": version}}
            items.append({**item, "namespace": "default", "callbackUrl": traffic.url})
        for timer, change in changes.items():
            traffic.ledger.changes[timer].append(change)
        status, answer = await client.post("/api/v1/timers/batch/create", {"timers": items})
        assert status == 200, (status, answer)
        acked = now_us()
        for change in changes.values():
            change.acked_at = acked
    client.close()


async def balanced_out(ledger: Ledger, server: ServerProcess, timeout_s: float) -> None:
    """Returns when no timer is owed or pending any more, or after a time limit; the caller finds out which."""
    client = AnyNode([server], 0)
    query = {"namespace": "default", "status": "pending", "limit": 1}
    deadline = asyncio.get_running_loop().time() + timeout_s
    while asyncio.get_running_loop().time() < deadline:
        status, body = await client.post("/api/v1/timers/list", query)
        if status == 200 and not body["timers"] and not ledger.missing():
            break
        await asyncio.sleep(0.5)
    client.close()


def as_of(ledger: Ledger, begun: int, ended: int) -> Ledger:
    """What a backup owes that was taken between two instants: what was acknowledged before it began must be in it, and what
    was sent before it ended may be."""
    owed = Ledger(receipts=ledger.receipts)
    for timer, changes in ledger.changes.items():
        for change in changes:
            if change.sent_at <= ended:
                acked = change.acked_at if change.acked_at is not None and change.acked_at < begun else None
                copy = Change(change.version, change.deletes, change.sent_at, change.execute_at, acked, change.refused)
                owed.changes[timer].append(copy)
    return owed


def repeated(ledger: Ledger) -> int:
    """Calls of an attempt that had arrived before."""
    calls = [(timer, call.version, call.attempt) for timer, calls in ledger.receipts.items() for call in calls]
    return len(calls) - len(set(calls))
