"""The Python SDK with `routing="owners"` on two nodes: writes go to the owners of their shards, or fall back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tocsin_client import AsyncClient, CreateTimer
from tocsin_client._core.steps import Reply, Send
from tocsin_client._transport_aiohttp import AiohttpTransport

from tests.support.cluster import node, running, shared_by, until
from tests.support.ports import free_port
from tests.support.server import ServerProcess

TIMERS = 24


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Each answered write: the node that it was sent to, and whether that one forwarded it."""
    seen: list[tuple[str, bool]] = []
    send = AiohttpTransport._send

    async def recorded(self: AiohttpTransport, step: Send) -> Reply:
        reply = await send(self, step)
        if "/timers/" in step.url:
            seen.append((step.url.partition("/api")[0], reply.headers.get("tocsin-forwarded") == "1"))
        return reply

    monkeypatch.setattr(AiohttpTransport, "_send", recorded)
    return seen


def _node(folder: Path, name: str, store: str) -> ServerProcess:
    port = free_port()
    server = node(folder, name, store, "--port", str(port), steady=True)
    server.env["TOCSIN_ADVERTISE_API"] = f"http://127.0.0.1:{port}"
    return server


def _timer(number: int) -> CreateTimer:
    return CreateTimer(namespace="default", id=f"t{number}", callback_url="http://127.0.0.1:9/", delay="30d")


async def test_writes_go_to_owners_and_fall_back(tmp_path: Path, postgresql_url: str, writes: Any) -> None:
    servers = [_node(tmp_path, name, postgresql_url) for name in ("one", "two")]
    async with running(*servers), AsyncClient(servers[0].url, routing="owners") as client:
        await shared_by(servers, {"one", "two"})
        both = {server.url for server in servers}

        async def routed() -> bool:
            """Whether the client has read a map in which both nodes serve."""
            writes.clear()
            for number in range(TIMERS):
                await client.timers.create(_timer(number).namespace, f"t{number}", "http://127.0.0.1:9/", delay="30d")
            return {url for url, _ in writes} == both and not any(forwarded for _, forwarded in writes)

        await until(routed)
        writes.clear()
        results = await client.timers.create_many(_timer(number) for number in range(TIMERS))
        assert all(result.timer for result in results)
        assert sorted(writes) == sorted((url, False) for url in both)
        async with client.timers.batcher() as batcher:
            futures = [await batcher.add(_timer(number)) for number in range(TIMERS)]
        assert len({(await future).id for future in futures}) == TIMERS
        assert not any(forwarded for _, forwarded in writes)

        await servers[1].kill()
        for number in range(TIMERS):
            await client.timers.update("default", f"t{number}", tags=["later"])
        writes.clear()
        await client.timers.delete("default", "t0")
        assert {url for url, _ in writes} == {servers[0].url}
