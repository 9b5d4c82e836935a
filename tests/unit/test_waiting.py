"""A start that waits for its store: what is tried again, what answers meanwhile, what ends it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import httpx
import pytest

from tocsin.model.errors import ConfigError, OutcomeUnknown, StoreUnavailable, StoreUnreachable
from tocsin.server import waiting
from tocsin.server.waiting import start_when_reachable


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.setblocking(False)
        yield bound


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_PAUSE_MAX_US", 1_000)


async def test_health_is_answered_until_the_store_is_reachable(listener: socket.socket) -> None:
    reachable, tries = asyncio.Event(), 0

    async def start() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise StoreUnreachable("postgresql://db.internal/tocsin: connection refused")
        await reachable.wait()
        if tries == 2:
            raise OutcomeUnknown("the connection broke")

    starting = asyncio.create_task(start_when_reachable(start, listener, asyncio.Event()))
    url = "http://{}:{}".format(*listener.getsockname())
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=20)) as client:
        alive, ready, create = (
            await client.get(url + "/healthz"),
            await client.get(url + "/readyz"),
            await client.post(url + "/api/v1/timers/create", json={}),
        )
    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    for refused in (ready, create):
        assert (refused.status_code, refused.json()["error"]) == (503, "NOT_READY")
        assert "waits for its store" in refused.text
        assert "db.internal" not in refused.text
    reachable.set()
    assert await starting
    assert tries == 3
    # The node itself can listen now.
    (await asyncio.start_server(lambda reader, writer: None, sock=listener)).close()


@pytest.mark.parametrize("away", [0, 1])
async def test_a_stop_ends_the_try_under_way(listener: socket.socket, away: int) -> None:
    stopping, hangs, cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
    tries = 0

    async def start() -> None:
        nonlocal tries
        tries += 1
        if tries <= away:
            raise StoreUnreachable("away")
        hangs.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    starting = asyncio.create_task(start_when_reachable(start, listener, stopping))
    await hangs.wait()
    stopping.set()
    assert not await starting
    assert cancelled.is_set()


@pytest.mark.parametrize("error", [ConfigError("store: wrong password"), StoreUnavailable("no schema")])
async def test_what_an_operator_must_change_ends_the_start(listener: socket.socket, error: Exception) -> None:
    async def start() -> None:
        raise error

    with pytest.raises(type(error)):
        await start_when_reachable(start, listener, asyncio.Event())
