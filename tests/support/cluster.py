"""Nodes of one cluster as processes, and clients that ask any of them, as behind a load balancer."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.http import Client
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

#: Servers that nodes can share.
DATABASES = ("postgresql", "mysql")


async def new_database(request: pytest.FixtureRequest, kind: str) -> str:
    """The URL of an empty database of that kind."""
    if kind == "postgresql":
        server: PostgresServer = request.getfixturevalue("shared_postgresql")
        return await server.create_database()
    return str(request.getfixturevalue("mysql_url"))


def now_us() -> int:
    """This machine's clock, which all the nodes share."""
    return time.time_ns() // 1_000


def node(folder: Path, name: str, store: str, *flags: str, secret: str | None = None) -> ServerProcess:
    """A node, not started. It has no service agent: these tests are about timers."""
    env = {"TOCSIN_NODE_NAME": name, **({} if secret is None else {"TOCSIN_CLUSTER_SECRET": secret})}
    return ServerProcess(folder / name, "--store", store, "--no-agent", *flags, env=env)


async def view(server: ServerProcess) -> dict[str, Any]:
    """What the node says of the cluster."""
    client = Client(server.address)
    try:
        status, body = await client.get("/api/v1/cluster")
    finally:
        client.close()
    assert status == 200, body
    return dict(body)


async def owners(server: ServerProcess) -> Counter[str | None]:
    """How many shards each node owns; nothing when the node can't be asked now."""
    try:
        shards = (await view(server))["shards"]
    except (OSError, EOFError, TimeoutError):
        return Counter()
    return Counter(shard["owner"] for shard in shards)


async def until(condition: Callable[[], Awaitable[bool]], timeout_s: float = 30.0) -> None:
    """Asks until it holds."""
    async with asyncio.timeout(timeout_s):
        while not await condition():  # noqa: ASYNC110 -- nobody tells a client who owns what: it has to ask
            await asyncio.sleep(0.1)


async def shared_by(servers: list[ServerProcess], names: set[str]) -> None:
    """Returns when all shards are owned, and these nodes own all of them, each some, as each of the servers sees it."""

    async def are_shared() -> bool:
        return all([(await owners(server)).keys() == names for server in servers])

    await until(are_shared)


@asynccontextmanager
async def running(*servers: ServerProcess) -> AsyncIterator[None]:
    """Starts them; at the end kills whoever still runs."""
    try:
        for server in servers:
            await server.start()
        yield
    finally:
        for server in servers:
            if server.process is not None and server.process.returncode is None:
                await server.kill()


class AnyNode:
    """A client of a cluster: it asks a node that answers its port, and another when that one refuses the connection or
    has asked it to leave. `gone` are nodes that it is told not to ask, as a load balancer would know."""

    def __init__(self, servers: list[ServerProcess], seed: int) -> None:
        self._servers = servers
        self._random = random.Random(seed)
        self._clients = {server.port: Client(server.address) for server in servers}
        self.gone: set[ServerProcess] = set()

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """As Client's, from any node. OSError, EOFError or TimeoutError when a request was sent and not answered."""
        while True:
            servers = [server for server in self._servers if server not in self.gone]
            server = self._random.choice(servers)
            try:
                return await self._client(server).post(path, body)
            except ConnectionRefusedError:
                # Nothing was sent.
                await asyncio.sleep(0.01)

    def _client(self, server: ServerProcess) -> Client:
        return self._clients.setdefault(server.port, Client(server.address))

    def close(self) -> None:
        """Drops all connections."""
        for client in self._clients.values():
            client.close()
