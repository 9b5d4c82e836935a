"""Fixtures: receivers, clients, and both event loops."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import uvloop
from callback_receivers import Client, Receiver, Script


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Everything runs on both event loops; they differ in how connections end."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def receive() -> AsyncIterator[Callable[..., Awaitable[Receiver]]]:
    """Starts receivers: `await receive(script, host=…, tls=…)`."""
    started: list[Receiver] = []

    async def start(script: Script, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Receiver:
        receiver = Receiver(script)
        await receiver.start(host, tls)
        started.append(receiver)
        return receiver

    yield start
    for receiver in started:
        await receiver.stop()
        assert receiver.failures == []


@pytest.fixture
async def client_with(receive: object) -> AsyncIterator[Callable[..., Client]]:
    """Makes clients: `client_with(limits=…, egress=…, lookup=…, tls=…)`."""
    made: list[Client] = []

    def make(**options: Any) -> Client:
        made.append(Client(**options))
        return made[-1]

    yield make
    for client in made:
        await client.caller.close()
        await asyncio.sleep(0)
        assert client.broken_promises == []
        assert all(future.done() for future in client.begun)


@pytest.fixture
def client(client_with: Callable[..., Client]) -> Client:
    """A client that may call anything."""
    return client_with()
