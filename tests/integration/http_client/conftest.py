"""Fixtures: receivers, clients, and both event loops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
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


def a_dead_address() -> tuple[socket.socket, list[socket.socket]]:
    """A port that neither accepts nor refuses: its queue of connections is full."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(0)
    queue = []
    for _ in range(4):
        waiting = socket.socket()
        waiting.setblocking(False)
        waiting.connect_ex(listening.getsockname())
        queue.append(waiting)
    return listening, queue


@pytest.fixture
def dead_port() -> Iterator[int]:
    """The port of a dead address."""
    listening, queue = a_dead_address()
    yield listening.getsockname()[1]
    for open_socket in (listening, *queue):
        open_socket.close()
