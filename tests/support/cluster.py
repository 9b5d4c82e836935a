"""Nodes of a cluster as processes, and clients that use any of them, as behind a load balancer."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.cassandra import CassandraServer
from tests.support.dynamodb import DynamoServer
from tests.support.http import Client
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tests.support.proxy import Proxy
from tests.support.server import ServerProcess

#: So that nodes find one another soon. A silent node is presumed dead after the usual time.
SOON = {"TOCSIN_HEARTBEAT_INTERVAL": "250ms"}
#: For nodes of which none dies in a test: where a busy machine halts for seconds, each keeps its links, and its shards for as
#: long as the usual time allows after which a node is presumed dead. A longer one would delay the first shards of each node.
STEADY = {
    "TOCSIN_NODE_LEASE": "4900ms",
    "TOCSIN_CLUSTER_PEER_TIMEOUT": "50s",
    "TOCSIN_AGENT_SQL_LEADER_LEASE": "50s",
}

#: Servers that nodes can share.
DATABASES = ("postgresql", "mysql", "dynamodb", "cassandra", "mongodb")
#: The one on which tests run that need one only: what they test is the engine's. `make test-cluster` names another.
DATABASE = os.environ.get("TOCSIN_TEST_DATABASE", "postgresql")


async def new_database(request: pytest.FixtureRequest, kind: str) -> str:
    """The URL of an empty database of that kind."""
    if kind == "postgresql":
        server: PostgresServer = request.getfixturevalue("shared_postgresql")
        return await server.create_database()
    return str(request.getfixturevalue(f"{kind}_url"))


async def own_database(
    request: pytest.FixtureRequest, kind: str
) -> tuple[PostgresServer | MysqlServer | DynamoServer | CassandraServer | MongoServer, str]:
    """A server of that kind that the test may stop, and the URL of an empty database on it."""
    if kind == "postgresql":
        postgresql: PostgresServer = request.getfixturevalue("postgresql")
        return postgresql, await postgresql.create_database()
    server: MysqlServer | DynamoServer | CassandraServer | MongoServer = request.getfixturevalue(kind)
    return server, server.new_url()


def now_us() -> int:
    """This machine's clock, which all the nodes share."""
    return time.time_ns() // 1_000


def node(
    folder: Path, name: str, store: str, *flags: str, secret: str | None = None, steady: bool = False
) -> ServerProcess:
    """A node, not started. It has no service agent: these tests are about timers. `steady`: with the leases of `STEADY`."""
    env = {**SOON, "TOCSIN_NODE_NAME": name, **({} if secret is None else {"TOCSIN_CLUSTER_SECRET": secret})}
    env |= STEADY if steady else {}
    return ServerProcess(folder / name, "--store", store, "--no-agent", *flags, env=env)


def through(server: ServerProcess, proxy: Proxy, peer_port: int) -> None:
    """Makes the other nodes reach this one through the proxy, which must lead to the port."""
    server.env |= {"TOCSIN_CLUSTER_PORT": str(peer_port), "TOCSIN_ADVERTISE": f"127.0.0.1:{proxy.port}"}


@asynccontextmanager
async def proxies_to(urls: Sequence[str]) -> AsyncIterator[list[tuple[Proxy, str]]]:
    """For each of the servers' URLs a proxy, and the URL by which it is reached through that."""
    async with AsyncExitStack() as stack:
        reached = []
        for url in urls:
            # A table's server stands in its parameters.
            server = url.rpartition("endpoint=")[2]
            parts = urlsplit(server)
            assert parts.hostname is not None and parts.port is not None
            proxy = await stack.enter_async_context(Proxy((parts.hostname, parts.port)))
            place = parts.netloc.rpartition(":")[0]
            through_proxy = parts._replace(netloc=f"{place}:{proxy.port}").geturl()
            reached.append((proxy, url.removesuffix(server) + through_proxy))
        yield reached


async def is_ready(server: ServerProcess) -> bool:
    """Whether the node reports, in time for a load balancer, that it is ready."""
    client = Client(server.address)
    try:
        status, _ = await client.get("/readyz", timeout_s=1)
    except (OSError, EOFError, TimeoutError):
        return False
    finally:
        client.close()
    return status == 200


@asynccontextmanager
async def balanced(servers: list[ServerProcess], gone: set[ServerProcess]) -> AsyncIterator[None]:
    """While it runs, keeps `gone` equal to the nodes that aren't ready, as a load balancer would."""

    async def watch(server: ServerProcess) -> None:
        while True:
            if await is_ready(server):
                gone.discard(server)
            else:
                gone.add(server)
            await asyncio.sleep(0.3)

    watchers = [asyncio.create_task(watch(server)) for server in servers]
    try:
        yield
    finally:
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)


async def view(server: ServerProcess) -> dict[str, Any]:
    """The cluster as the node reports it."""
    client = Client(server.address)
    try:
        status, body = await client.get("/api/v1/cluster")
    finally:
        client.close()
    assert status == 200, body
    return dict(body)


async def owners(server: ServerProcess) -> Counter[str | None]:
    """How many shards each node owns; empty if the node can't be reached."""
    try:
        shards = (await view(server))["shards"]
    except (OSError, EOFError, TimeoutError):
        return Counter()
    return Counter(shard["owner"] for shard in shards)


async def until(condition: Callable[[], Awaitable[bool]], timeout_s: float = PATIENCE_S) -> None:
    """Polls until the condition holds."""
    async with asyncio.timeout(timeout_s):
        while not await condition():  # noqa: ASYNC110 -- clients get no notification of ownership: they poll
            await asyncio.sleep(0.1)


def evenly(owned: Counter[str | None]) -> bool:
    """Whether all shards are owned, and each owner has its share: then none of them moves any more."""
    return None not in owned and max(owned.values(), default=0) - min(owned.values(), default=0) <= 1


async def shared_by(servers: list[ServerProcess], names: set[str], timeout_s: float = PATIENCE_S) -> None:
    """Returns when these nodes own all shards, each its share, as each of the servers sees it."""

    async def are_shared() -> bool:
        found = [await owners(server) for server in servers]
        return all(owned.keys() == names and evenly(owned) for owned in found)

    await until(are_shared, timeout_s)


@asynccontextmanager
async def running(*servers: ServerProcess) -> AsyncIterator[None]:
    """Starts the nodes, the first one separately, since it creates the tables; at the end kills those still running."""
    async with ended(*servers):
        await servers[0].start()
        await asyncio.gather(*(server.start() for server in servers[1:]))
        yield


@asynccontextmanager
async def ended(*servers: ServerProcess) -> AsyncIterator[None]:
    """At the end kills the nodes that were started meanwhile and still run."""
    try:
        yield
    finally:
        for server in servers:
            if server.process is not None and server.process.returncode is None:
                await server.kill()


#: After that a client believes no longer in an answer: nodes are stopped under it, without notice.
ANSWER_TIMEOUT_S = 15.0


class AnyNode:
    """A client of a cluster: it asks a node that answers its port, and another when that one refuses the connection or
    has asked it to leave. `gone` are the nodes to skip, as a load balancer would."""

    def __init__(self, servers: list[ServerProcess], seed: int) -> None:
        self._servers = servers
        self._random = random.Random(seed)
        self._clients = {server.port: Client(server.address) for server in servers}
        self.gone: set[ServerProcess] = set()

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Like Client, from any node. Raises OSError, EOFError or TimeoutError if a request was sent without a response."""
        while True:
            # If no node is left, a load balancer uses any.
            servers = [server for server in self._servers if server not in self.gone] or self._servers
            server = self._random.choice(servers)
            try:
                return await self._client(server).post(path, body, ANSWER_TIMEOUT_S)
            except ConnectionRefusedError:
                # Nothing was sent.
                await asyncio.sleep(0.01)

    def _client(self, server: ServerProcess) -> Client:
        return self._clients.setdefault(server.port, Client(server.address))

    def close(self) -> None:
        """Drops all connections."""
        for client in self._clients.values():
            client.close()
