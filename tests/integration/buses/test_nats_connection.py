"""Ends and beginnings of connections to a NATS server that doesn't keep up, or breaks amid them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
import pytest_asyncio

from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.proxy import Proxy
from tocsin.buses.nats import NatsBus
from tocsin.model.envelope import Envelope
from tocsin.model.uuid7 import Uuid7Source
from tocsin.ports.bus import BusUnavailable, Delivery
from tocsin.testing.bus_conformance_base import LIMITS, Notes, check

_prefixes = Uuid7Source(lambda: 1_700_000_000_000_000)


@pytest.fixture
def prefix() -> str:
    """Subjects of the test's own on the shared server."""
    return "t" + _prefixes().replace("-", "")[-24:]


@pytest_asyncio.fixture
async def proxy(shared_nats: NatsServer) -> AsyncIterator[Proxy]:
    async with Proxy(("127.0.0.1", shared_nats.port)) as proxy:
        yield proxy


async def handle_nothing(deliveries: Sequence[Delivery]) -> None:
    raise AssertionError("nothing was sent")


async def answer_nothing(commands: Sequence[Envelope]) -> Sequence[Envelope]:
    raise AssertionError("nothing was asked")


async def test_it_has_not_started_before_the_server_knows_who_answers(
    proxy: Proxy, shared_nats: NatsServer, prefix: str
) -> None:
    """Others may ask at once, by connections of their own."""
    limits = replace(LIMITS, nats_connect_timeout_us=2_000_000, nats_close_timeout_us=100_000)
    notes = Notes()
    bus = NatsBus(f"nats://127.0.0.1:{proxy.port}", limits, check, notes.observe, prefix=prefix, owner="database")
    bus.respond("answering", ["Do"], answer_nothing)
    proxy.when(f"SUB {prefix}-cmd".encode(), proxy.silence)
    with pytest.raises(BusUnavailable, match="in time"):
        await bus.start()
    await bus.close()


@pytest.mark.parametrize("asked", ["$JS.API.STREAM.INFO", "$JS.API.CONSUMER.CREATE", "SUB {prefix}-cmd"])
async def test_a_connection_that_breaks_while_it_is_set_up_is_made_anew_at_once(
    proxy: Proxy, prefix: str, asked: str
) -> None:
    """Instead of waiting for answers until the time for an attempt is over."""
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


async def test_a_process_that_stood_still_has_not_found_the_broker_silent(shared_nats: NatsServer, prefix: str) -> None:
    bus = NatsBus(shared_nats.url, LIMITS, check, Notes().observe, prefix=prefix, owner="database")
    bus.subscribe("one", ["Happened"], handle_nothing)
    await bus.start()
    assert bus._attached is not None
    (consumer,) = bus._attached.consumers
    now_s = asyncio.get_running_loop().time() + 3_600
    consumer.tick(now_s)
    assert bus.connected
    # Who looks, and hears nothing, has.
    for _ in range(4 * LIMITS.nats_heartbeat_us // LIMITS.nats_check_interval_us):
        now_s += LIMITS.nats_check_interval_us / 1e6
        consumer.tick(now_s)
    assert not bus.connected
    await bus.close()


async def test_a_bus_that_is_closed_as_an_answer_comes_ends(
    proxy: Proxy, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for it within the client takes the answer then, and forgets that it was to end."""
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
        if isinstance(answer, asyncio.Future) and task is not None and task.get_name() == "bus connection":
            answer.add_done_callback(close)
        return await wait_for(answer, timeout)

    monkeypatch.setattr(asyncio, "wait_for", wait_and_close)
    proxy.reset()
    async with asyncio.timeout(PATIENCE_S):
        await (await closing)
    assert not bus.connected
