"""Start and end of connections to a NATS server that is slow or fails in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
import pytest_asyncio

from tests.conformance.bus.base import LIMITS, Notes, check
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.proxy import Proxy
from tocsin.messaging.nats.bus import NatsBus
from tocsin.model.ids import Uuid7Source
from tocsin.ports.bus import BusUnavailable, Delivery, Envelope

_prefixes = Uuid7Source(lambda: 1_700_000_000_000_000)


@pytest.fixture
def prefix() -> str:
    """A subject prefix for this test only on the shared server."""
    return "t" + _prefixes().replace("-", "")[-24:]


@pytest_asyncio.fixture
async def proxy(shared_nats: NatsServer) -> AsyncIterator[Proxy]:
    async with Proxy(("127.0.0.1", shared_nats.port)) as proxy:
        yield proxy


async def handle_nothing(deliveries: Sequence[Delivery]) -> None:
    raise AssertionError("nothing was sent")


async def answer_nothing(commands: Sequence[Envelope]) -> Sequence[Envelope]:
    raise AssertionError("nothing was asked")


async def test_start_returns_after_the_server_knows_the_responders(
    proxy: Proxy, shared_nats: NatsServer, prefix: str
) -> None:
    """Other clients may send requests at once, on their own connections."""
    limits = replace(LIMITS, nats_connect_timeout_us=2_000_000, nats_close_timeout_us=100_000)
    notes = Notes()
    bus = NatsBus(f"nats://127.0.0.1:{proxy.port}", limits, check, notes.observe, prefix=prefix, owner="database")
    bus.respond("answering", ["Do"], answer_nothing)
    proxy.when(f"SUB {prefix}-cmd".encode(), proxy.silence)
    with pytest.raises(BusUnavailable, match="in time"):
        await bus.start()
    await bus.close()


@pytest.mark.parametrize("asked", ["$JS.API.STREAM.INFO", "$JS.API.CONSUMER.CREATE", "SUB {prefix}-cmd"])
async def test_a_connection_lost_during_setup_is_replaced_at_once(proxy: Proxy, prefix: str, asked: str) -> None:
    """Instead of waiting for responses until the timeout of the attempt."""
    limits = replace(LIMITS, nats_connect_timeout_us=2 * round(PATIENCE_S * 1e6))
    bus = NatsBus(f"nats://127.0.0.1:{proxy.port}", limits, check, Notes().observe, prefix=prefix, owner="database")
    bus.subscribe("one", ["Happened"], handle_nothing)
    bus.respond("answering", ["Do"], answer_nothing)
    proxy.when(asked.format(prefix=prefix).encode(), proxy.reset)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(BusUnavailable):
            await bus.start()
        await bus.start()
    await bus.close()


async def test_a_freeze_of_this_process_does_not_count_as_silence(shared_nats: NatsServer, prefix: str) -> None:
    bus = NatsBus(shared_nats.url, LIMITS, check, Notes().observe, prefix=prefix, owner="database")
    bus.subscribe("one", ["Happened"], handle_nothing)
    await bus.start()
    assert bus._attached is not None
    (consumer,) = bus._attached.consumers
    now_s = asyncio.get_running_loop().time() + 3_600
    consumer.tick(now_s)
    assert bus.connected
    # A poll without a result shows it.
    for _ in range(4 * LIMITS.nats_heartbeat_us // LIMITS.nats_check_interval_us):
        now_s += LIMITS.nats_check_interval_us / 1e6
        consumer.tick(now_s)
    assert not bus.connected
    await bus.close()


async def test_close_ends_the_bus_while_a_response_arrives(
    proxy: Proxy, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The NATS client's wait takes the response then, and loses the cancellation."""
    notes = Notes()
    bus = NatsBus(f"nats://127.0.0.1:{proxy.port}", LIMITS, check, notes.observe, prefix=prefix, owner="database")
    bus.subscribe("one", ["Happened"], handle_nothing)
    await bus.start()
    closing: asyncio.Future[asyncio.Task[None]] = asyncio.get_running_loop().create_future()
    wait_for = asyncio.wait_for

    def close(_: object) -> None:
        if not closing.done():
            closing.set_result(asyncio.create_task(bus.close()))

    async def wait_and_close(answer: asyncio.Future[object], timeout: float | None) -> object:
        task = asyncio.current_task()
        if isinstance(answer, asyncio.Future) and task is not None and task.get_name() == "nats request":
            answer.add_done_callback(close)
        return await wait_for(answer, timeout)

    monkeypatch.setattr(asyncio, "wait_for", wait_and_close)
    proxy.reset()
    async with asyncio.timeout(PATIENCE_S):
        await (await closing)
    assert not bus.connected
