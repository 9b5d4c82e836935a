"""A change of a namespace while a node is frozen: it takes a bounded time, and the node makes no call of it afterwards."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from tests.support.cluster import is_ready, node, now_us, running, shared_by, until
from tests.support.http import Client, Receiver
from tocsin.model.instants import format_instant, parse_instant
from tocsin.timers.engine.limits import EngineLimits

LEASE_US = EngineLimits().namespaces_lease_us


async def test_a_node_frozen_during_a_pause_fires_nothing_of_the_namespace(tmp_path: Path, postgresql_url: str) -> None:
    fired: list[int] = []

    def answer(body: dict[str, object], _: dict[str, str]) -> tuple[int, bytes]:
        fired.append(parse_instant(str(body["firedAt"])))
        return 200, b""

    servers = [node(tmp_path, name, postgresql_url) for name in ("one", "two")]
    frozen = servers[1]
    async with Receiver(answer) as receiver, running(*servers):
        await shared_by(servers, {"one", "two"})
        client = Client(servers[0].address)
        # Due from now until long after the node resumes; both nodes own and have loaded some.
        began = now_us() + 500_000
        timers = [
            {
                "namespace": "default", "id": f"t{number}", "executeAt": format_instant(began + number * 20_000),
                "callbackUrl": receiver.url,
            }
            for number in range(900)
        ]  # fmt: skip
        assert (await client.post("/api/v1/timers/batch/create", {"timers": timers}))[0] == 200

        async def some_called() -> bool:
            return len(fired) >= 20

        await until(some_called)
        assert frozen.process is not None
        frozen.process.send_signal(signal.SIGSTOP)
        asked = now_us()
        status, answered = await client.post("/api/v1/namespaces/update", {"name": "default", "paused": True})
        acknowledged = now_us()
        frozen.process.send_signal(signal.SIGCONT)
        assert (status, answered["paused"]) == (200, True)
        print(f"acknowledged after {(acknowledged - asked) / 1e6:.1f} s")
        # The frozen node could not confirm the change.
        assert acknowledged - asked > LEASE_US // 2

        async def serves() -> bool:
            return await is_ready(frozen)

        await until(serves)
        await asyncio.sleep(LEASE_US / 1e6)
        assert [instant - acknowledged for instant in fired if instant > acknowledged] == []
        client.close()
