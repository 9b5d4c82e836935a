"""The real server, killed at random moments under load: no acknowledged write is lost, no canceled timer fires."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from pathlib import Path

import pytest

from tests.crash.ledger import Change, Ledger
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant

KILLS = 10
CLIENTS = 24
LIFETIME_S = (0.3, 1.6)
#: A client's average pause between two requests, which leaves most of the machine to the server, so that it starts sooner.
PACE_S = 0.02
#: With fewer writes the test would prove little.
ACKNOWLEDGED_MIN = 1_000
#: Results are durable within the commit interval; under load on a small machine a batch may take longer.
BEFORE_KILL_US = 2_000_000


def now_us() -> int:
    return time.time_ns() // 1_000


class Load:
    """Clients that create, replace, update and delete their own timers, each one request at a time."""

    def __init__(self, server: ServerProcess, ledger: Ledger, url: str, seed: int) -> None:
        self._server, self._ledger, self._url = server, ledger, url
        self._random = random.Random(seed)
        self._version = 0
        self.stopping = False

    async def client(self, number: int) -> None:
        client = Client(self._server.address)
        made = 0
        while not self.stopping:
            timer = f"c{number}-{made}"
            made += 1
            await self._send(client, timer, "create")
            for _ in range(self._random.randrange(3)):
                if self.stopping:
                    break
                await self._send(client, timer, self._random.choice(["create", "update", "update", "delete"]))
        client.close()

    async def _send(self, client: Client, timer: str, kind: str) -> None:
        await asyncio.sleep(self._random.random() * 2 * PACE_S)
        self._version += 1
        execute_at = now_us() + int(self._random.choice([0.0, 0.05, 0.3, 1.0, 2.5]) * 1e6 * self._random.random())
        change = Change(self._version, kind == "delete", now_us(), execute_at)
        body: dict[str, object] = {"namespace": "default"}
        if kind == "create":
            body |= {
                "id": timer,
                "callbackUrl": self._url,
                "retryPolicy": {"maxAttempts": 20, "initialInterval": "100ms"},
            }
        else:
            body["timerId"] = timer
        if kind != "delete":
            body |= {"executeAt": format_instant(execute_at), "payload": {"v": change.version}}
        self._ledger.changes[timer].append(change)
        try:
            status, _ = await client.post(f"/api/v1/timers/{kind}", body)
        except (OSError, EOFError, TimeoutError):
            await asyncio.sleep(0.02)
            return
        if status in (200, 204):
            change.acked_at = now_us()
        elif status in (404, 409):
            change.refused = True
        else:
            assert status == 503, status
            await asyncio.sleep(0.02)


@pytest.mark.timeout(400)
async def test_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    ledger = Ledger()

    def answer(body: dict[str, object], _: dict[str, str]) -> tuple[int, bytes]:
        ledger.receive(body, now_us())
        return (500, b"") if moments.random() < 0.03 else (200, b"")

    async with Receiver(answer) as receiver:
        server = ServerProcess(tmp_path / "data")
        await server.start()
        load = Load(server, ledger, receiver.url, seed)
        clients = [asyncio.create_task(load.client(number)) for number in range(CLIENTS)]
        for _ in range(KILLS):
            await asyncio.sleep(moments.uniform(*LIFETIME_S))
            ledger.kills.append(now_us())
            await server.kill()
            await server.start()
        # On a slow machine the server is being started most of the time.
        while ledger.acknowledged < ACKNOWLEDGED_MIN:  # noqa: ASYNC110 -- it is the clients' progress
            await asyncio.sleep(PACE_S)
        load.stopping = True
        await asyncio.gather(*clients)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                # Only the server's list shows that nothing is pending, so it is polled until then.
                while ledger.missing() or await _pending(server):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        assert await server.stop() == 0

    received = sum(len(receipts) for receipts in ledger.receipts.values())
    acked = ledger.acknowledged
    duplicates, unexplained = ledger.duplicates(BEFORE_KILL_US)
    print(f"{acked} acknowledged writes, {received} calls, {duplicates} duplicates, {len(ledger.kills)} kills")
    assert acked >= ACKNOWLEDGED_MIN
    assert ledger.missing() == []
    assert ledger.early() == []
    assert ledger.after_change() == []
    assert unexplained == []


async def _pending(server: ServerProcess) -> int:
    status, body = await Client(server.address).post(
        "/api/v1/timers/list", {"namespace": "default", "status": "pending", "limit": 1}
    )
    assert status == 200, body
    return len(body["timers"])
