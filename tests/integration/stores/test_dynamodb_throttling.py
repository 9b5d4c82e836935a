"""A node while DynamoDB throttles: one shard that is hot, and the whole table in bursts."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.support.calls import Api
from tests.support.cluster import STEADY, ended
from tests.support.dynamodb import DynamoServer
from tests.support.dynamodb_proxy import DynamoProxy, in_bursts, throttled_shard
from tests.support.patience import PATIENCE_S
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid
from tocsin.model.instants import parse_instant

SHARDS, HOT = 4, 0
SPACE = "default"
OPERATIONS = ("TransactWriteItems", "TransactGetItems", "PutItem", "UpdateItem", "Query", "GetItem", "BatchGetItem")


def _shard(name: str) -> int:
    return shard_of(namespace_hash(SPACE), timer_uuid(SPACE, name), SHARDS, SHARDS)


def _names(of_shard: Callable[[int], bool], count: int) -> list[str]:
    found: list[str] = []
    number = 0
    while len(found) < count:
        number += 1
        if of_shard(_shard(f"timer-{number}")):
            found.append(f"timer-{number}")
    return found


async def _throttled(server: ServerProcess) -> float:
    """How many requests the node has sent again because they were throttled."""
    text = await _text(server, "/metrics")
    found = re.search(r'^tocsin_store_requests_repeated_total\{reason="throttled"\} (\S+)$', text, re.M)
    return float(found[1]) if found else 0.0


async def _text(server: ServerProcess, path: str) -> str:
    reader, writer = await asyncio.open_connection(*server.address())
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 -- neither the API nor metrics have notifications
            await asyncio.sleep(0.05)


async def _created(api: Api, name: str, url: str, **more: Any) -> None:
    """Creates the timer, again and again as a client does that gets 503."""

    async def acknowledged() -> bool:
        status, answer = await api("timers/create", namespace=SPACE, id=name, callbackUrl=url, **more)
        assert status in (200, 503), answer
        return status == 200

    await _until(acknowledged)


def _early(receiver: ScriptedReceiver) -> list[str]:
    arrivals = [arrival for calls in receiver.calls.values() for arrival in calls]
    return [each.body["timerId"] for each in arrivals if each.arrived_at < parse_instant(each.body["executeAt"])]


def _server(folder: Path, database: DynamoServer, proxy: DynamoProxy, **more: str) -> ServerProcess:
    url = database.new_url().replace(f":{database.port}", f":{proxy.port}")
    env = {
        "TOCSIN_DYNAMODB_PATIENCE": "500ms",
        "TOCSIN_SHARDS": str(SHARDS),
        "TOCSIN_NAMESPACE_NUM_SHARDS": str(SHARDS),
        **more,
    }
    return ServerProcess(folder / "data", "--store", url, "--no-agent", env=env)


async def test_a_hot_shard_delays_no_other_and_loses_nothing(tmp_path: Path, shared_dynamodb: DynamoServer) -> None:
    mine, others = _names(HOT.__eq__, 4), _names(HOT.__ne__, 6)
    late, *mine = mine
    closed = asyncio.Event()
    scripts = {name: [Reply(200, until=closed)] for name in mine}
    async with DynamoProxy(shared_dynamodb.port) as proxy, ScriptedReceiver(scripts) as receiver:
        server = _server(tmp_path, shared_dynamodb, proxy, **STEADY)
        async with ended(server):
            await server.start()
            api = Api(server)
            for name in others:
                await _created(api, name, receiver.url(name), delay="3s")
            # Their calls end when the shard is hot, however long a busy machine takes until then.
            for name in mine:
                await _created(api, name, receiver.url(name), delay="3s", callbackTimeoutSeconds=60)
            for operation in ("TransactWriteItems", "Query"):
                proxy.always(operation, throttled_shard(HOT))
            closed.set()
            for name in others:
                await api.settled(name, "completed")
            status, answer = await api(
                "timers/create", namespace=SPACE, id=late, callbackUrl=receiver.url(late), delay="0s"
            )
            assert (status, receiver.calls[late]) == (503, []), answer
            for name in mine:
                await receiver.count(name, 1)

            # Their results, which wait in memory, are written again and again.
            async def seen() -> bool:
                return await _throttled(server) >= len(mine)

            await _until(seen)
            for operation in ("TransactWriteItems", "Query"):
                proxy.always(operation, None)
            await _created(api, late, receiver.url(late), delay="0s")
            for name in (*mine, late):
                await api.settled(name, "completed")
        assert Counter({name: len(calls) for name, calls in receiver.calls.items()}) == Counter([*mine, *others, late])
        assert _early(receiver) == []


async def test_bursts_of_throttling_and_a_kill_lose_nothing(tmp_path: Path, shared_dynamodb: DynamoServer) -> None:
    names = _names(lambda _: True, 16)
    async with DynamoProxy(shared_dynamodb.port) as proxy, ScriptedReceiver({}) as receiver:
        server = _server(tmp_path, shared_dynamodb, proxy)
        async with ended(server):
            await server.start()
            bursts = in_bursts(3, 4)
            for operation in OPERATIONS:
                proxy.always(operation, bursts)
            api = Api(server)
            for name in names[:8]:
                await _created(api, name, receiver.url(name), delay="1s")
            await receiver.count(names[0], 1)
            assert await _throttled(server) > 0
            await server.kill()
            await server.start()
            api = Api(server)
            for name in names[8:]:
                await _created(api, name, receiver.url(name), delay="1s")
            for name in names:
                await receiver.count(name, 1)
                await api.settled(name, "completed")
            assert await _throttled(server) > 0
        assert _early(receiver) == []
