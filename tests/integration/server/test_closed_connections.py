"""A connection that has closed leaves nothing in memory that has to be collected."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.raw import exchange
from tocsin.server.node import Server
from tocsin.settings import load_settings
from tocsin.web.api.protocol import ApiProtocol

CONNECTIONS = 5
#: Both go to uvicorn.
REQUESTS = tuple(
    f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode() for path in ("/healthz", "/metrics")
)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """The garbage collector does not run."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def connections() -> int:
    """Connections of clients in memory, open or not."""
    return sum(issubclass(type(each), ApiProtocol) for each in gc.get_objects())


@pytest.mark.usefixtures("uncollected")
async def test_a_closed_connection_and_its_last_request_are_released_at_once(tmp_path: Path) -> None:
    server = Server(load_settings({"port": 0, "data_dir": tmp_path, "shards": 1, "agent.enabled": False}))
    await server.start()
    try:
        address = urlsplit(server.url)
        assert address.hostname is not None and address.port is not None
        before = connections()
        for request in REQUESTS:
            for _ in range(CONNECTIONS):
                answer = await exchange((address.hostname, address.port), request)
                assert answer.status == 200
        # The client sees the end of a connection before the server has noticed its own.
        async with asyncio.timeout(PATIENCE_S):
            while connections() > before:  # noqa: ASYNC110 -- what is awaited is that objects go
                await asyncio.sleep(0.02)
    finally:
        await server.stop()
