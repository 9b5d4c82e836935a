"""The broker or the database fails while calls are being executed, for longer than a request may take: every call whose
service answered 200 becomes Succeeded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.crash.agent_load import details_at_the_end
from tests.support.cluster import running, until
from tests.support.http import Client
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tests.support.proxy import Proxy
from tests.support.server import ServerProcess
from tests.support.slow_receiver import SlowReceiver
from tocsin.model.ids import Uuid7Source

CALLS = 20
#: Requests take this long, so that the outage begins while they are in flight; a busy machine may add to it until they time
#: out.
ANSWER_S = 1.0
REQUEST_TIMEOUT_S, GRACE_S = 4.0, 0.5
#: Longer than the watchdog waits before it checks a call that began.
OUTAGE_S = REQUEST_TIMEOUT_S + 2 * GRACE_S + 1.0
SETTINGS = {
    "TOCSIN_AGENT_REQUEST_TIMEOUT": f"{REQUEST_TIMEOUT_S:g}s",
    "TOCSIN_AGENT_WATCHDOG_GRACE": f"{GRACE_S:g}s",
    "TOCSIN_AGENT_WATCHDOG_INTERVAL": "200ms",
    "TOCSIN_SHARDS": "1",
}

Switch = Callable[[], Awaitable[object]]


async def run(
    folder: Path,
    flags: list[str],
    away: Switch,
    back: Switch,
    *,
    outage_s: float = OUTAGE_S,
    settings: dict[str, str] | None = None,
) -> int:
    """Submits calls, takes the part away once their requests have arrived, and restores it. Returns the number of
    requests. Every call has succeeded by then."""
    async with SlowReceiver(lambda path: ANSWER_S) as receiver:
        server = ServerProcess(folder / "data", *flags, env=SETTINGS if settings is None else settings)
        await server.start()
        client, tenant, calls = Client(server.address), Uuid7Source(lambda: 1_800_000_000_000_000)(), {}
        for number in range(CALLS):
            body = {"name": f"call {number}", "requestSpec": {"method": "POST", "url": f"{receiver.url}/{number}"}}
            status, answer = await client.post(f"/api/v1/tenants/{tenant}/service-calls", body)
            assert status == 202, answer
            calls[answer["serviceCallId"]] = tenant
        async with asyncio.timeout(PATIENCE_S):
            while len(receiver.arrivals) < CALLS:  # noqa: ASYNC110 -- it is the receiver's progress
                await asyncio.sleep(0.02)
        await away()
        await asyncio.sleep(outage_s)
        await back()
        async with asyncio.timeout(PATIENCE_S):
            while (await client.get(f"/api/v1/tenants/{tenant}/service-calls"))[0] != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        client.close()
        details = await details_at_the_end(calls, server)
        ends = [
            detail.get("outcome", {}).get("errorMeta", {}).get("kind", detail["status"]) for detail in details.values()
        ]
        assert ends == ["Succeeded"] * CALLS, server.log()[-4000:]
        assert await server.stop() == 0
        return len(receiver.arrivals)


@pytest.mark.timeout(200)
async def test_accepted_calls_succeed_after_a_broker_outage(tmp_path: Path, nats: NatsServer) -> None:
    arrivals = await run(
        tmp_path, ["--broker", nats.url], lambda: asyncio.to_thread(nats.kill), lambda: asyncio.to_thread(nats.start)
    )
    assert arrivals == CALLS


@pytest.mark.timeout(200)
async def test_a_node_starts_without_its_broker_and_takes_calls_once_it_is_there(
    tmp_path: Path, nats: NatsServer
) -> None:
    await asyncio.to_thread(nats.stop)
    server = ServerProcess(tmp_path / "data", "--broker", nats.url, env=SETTINGS)
    tenant = Uuid7Source(lambda: 1_800_000_000_000_000)()
    async with SlowReceiver(lambda path: 0.0) as receiver, running(server):
        client = Client(server.address)
        body = {"name": "one", "requestSpec": {"method": "POST", "url": f"{receiver.url}/one"}}

        async def accepted() -> bool:
            return (await client.post(f"/api/v1/tenants/{tenant}/service-calls", body))[0] == 202

        await asyncio.to_thread(nats.start)
        await until(accepted)
        await until(lambda: _arrived(receiver))
        client.close()


async def _arrived(receiver: SlowReceiver) -> bool:
    return len(receiver.arrivals) == 1


@pytest.mark.timeout(200)
async def test_accepted_calls_succeed_after_a_database_outage(tmp_path: Path) -> None:
    database = PostgresServer()
    database.init()
    database.start()
    try:
        arrivals = await run(
            tmp_path,
            ["--agent-database", database.url()],
            lambda: asyncio.to_thread(database.kill),
            lambda: asyncio.to_thread(database.start),
        )
    finally:
        database.remove()
    assert arrivals == CALLS


@pytest.mark.timeout(200)
async def test_accepted_calls_succeed_after_a_database_freeze(
    tmp_path: Path, shared_postgresql: PostgresServer
) -> None:
    url = await shared_postgresql.create_database()
    async with Proxy(("127.0.0.1", shared_postgresql.port)) as proxy:

        async def silence() -> None:
            proxy.silence()

        async def speak() -> None:
            proxy.speak()

        flags = ["--agent-database", url.replace(f":{shared_postgresql.port}/", f":{proxy.port}/")]
        assert await run(tmp_path, flags, silence, speak) == CALLS
