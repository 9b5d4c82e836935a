"""Two engines on a real database that both believe they own a shard, because the network delays one of them: only one
of them writes, and none of its writes is undone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.cluster import new_database, proxies_to
from tests.support.completions import Noted
from tests.support.patience import PATIENCE_S
from tocsin.model.errors import TocsinError, Unavailable
from tocsin.model.timer import Timer
from tocsin.ports.forward import Write, WriteKind, Written
from tocsin.ports.observer import Event, ShardLost
from tocsin.ports.store import Store
from tocsin.stores.dynamodb.store import DynamoStore
from tocsin.stores.mongodb.store import MongoStore
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.options import DynamoOptions, MongoOptions, MysqlOptions
from tocsin.stores.postgresql.store import PostgresStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.service import TimerService

DUE = 4_000_000_000_000_000
SHARDS = 8
#: Leases and timeouts are chosen for a busy machine; the shorter they are, the sooner the second node takes over.
LIMITS = EngineLimits(heartbeat_interval_us=200_000, node_lease_us=1_500_000, member_timeout_us=2_500_000)


class _Silent:
    """A caller that is never invoked: nothing falls due here."""

    def destination(self, url: str) -> str:
        return url


class _Node:
    def __init__(self, name: str, store: Store) -> None:
        self.store = store
        self.lost: set[int] = set()
        self.has_lost = asyncio.Event()
        self.clock = SystemClock()
        self._looked = asyncio.Event()
        context = Context(
            store=store, caller=_Silent(), clock=self.clock, limits=LIMITS, observe=self._observe,
            random=random.Random(name), incarnation=name.encode().ljust(16, b"."),
        )  # fmt: skip
        self.supervisor = Supervisor(context, node=name, address="", total_shards=SHARDS, fatal=self._fatal)
        self.supervisor.placement.watch(self._looked.set)
        self.service = TimerService(context, self.supervisor, namespace_num_shards=SHARDS, retention_us=10**12)

    def _observe(self, event: Event) -> None:
        if isinstance(event, ShardLost):
            self.lost.add(event.shard_id)
            self.has_lost.set()

    def _fatal(self, error: BaseException) -> None:
        raise error

    def owns(self, shard_id: int) -> bool:
        return self.supervisor.shards[shard_id].window is not None

    async def until_it_owns(self, shard_ids: set[int]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not all(self.owns(shard_id) for shard_id in shard_ids):
                self._looked.clear()
                await self._looked.wait()

    async def until_it_lost(self, shard_ids: set[int]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not shard_ids <= self.lost:
                self.has_lost.clear()
                await self.has_lost.wait()

    def write(self, shard_id: int, payload: str) -> asyncio.Future[Written | TocsinError | None]:
        """Creates or replaces the shard's timer."""
        answer: asyncio.Future[Written | TocsinError | None] = asyncio.get_running_loop().create_future()
        timer = Timer("default", "t", DUE, f"http://x/{payload}", 1, 1)
        deadline_us = self.clock.boottime_us() + 120_000_000
        write = Write(WriteKind.CREATE, shard_id, _uuid(shard_id), "default", timer, None, deadline_us)
        try:
            self.service.accept(write, None, Noted(answer.set_result))
        except Unavailable as error:
            answer.set_result(error)
        return answer

    async def durably_written(self, shard_id: int, payload: str) -> None:
        """As a client writes: again whenever the shard has no owner or is changing it. On a busy machine a lease may lapse at
        any moment, also between a look and the write after it."""
        async with asyncio.timeout(PATIENCE_S):
            while isinstance(answer := await self.write(shard_id, payload), Unavailable):
                await self.until_it_owns({shard_id})
        assert isinstance(answer, Written)

    async def stored(self, shard_id: int) -> str:
        found = (await self.store.fetch(shard_id, [_uuid(shard_id)]))[_uuid(shard_id)]
        assert found.live is not None
        return found.live.record.decode()


def _uuid(shard_id: int) -> bytes:
    return bytes([shard_id]) * 16


def _store(url: str) -> Store:
    if url.startswith("dynamodb"):
        # As with the others, a request is in doubt for as long as the silence lasts.
        return DynamoStore(url, DynamoOptions(connect_timeout_s=20, request_timeout_s=20))
    if url.startswith("mongodb"):
        return MongoStore(url, MongoOptions(operation_timeout_s=20))
    if url.startswith("mysql"):
        return MysqlStore(url, mysql=MysqlOptions(idle_transaction_timeout_s=1))
    return PostgresStore(url)


@asynccontextmanager
async def _node(name: str, url: str) -> AsyncIterator[_Node]:
    store = _store(url)
    await store.open(SHARDS)
    node = _Node(name, store)
    await node.service.namespaces.ensure_default()
    await node.supervisor.start()
    try:
        yield node
    finally:
        await node.supervisor.kill()
        await store.close()


# A request that comes late is one to every database, and tests of the stores prove that it has no effect. What the databases
# do differently is a batch that has begun: PostgreSQL ends it, MySQL keeps it open, DynamoDB gets it again, and MongoDB is
# asked by the next owner to end it.
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("database", "answers_only"),
    [("postgresql", False), ("postgresql", True), ("mysql", True), ("dynamodb", True), ("mongodb", True)],
    ids=[
        "postgresql-silence",
        "postgresql-answers-lost",
        "mysql-answers-lost",
        "dynamodb-answers-lost",
        "mongodb-answers-lost",
    ],
)
async def test_only_the_newer_of_two_shard_owners_can_write(
    database: str, answers_only: bool, request: pytest.FixtureRequest
) -> None:
    url = await new_database(request, database)
    async with proxies_to([url]) as ((proxy, through_proxy),), _node("first", through_proxy) as first:
        for shard_id in range(SHARDS):
            await first.durably_written(shard_id, "acknowledged")
        # What it has lost before, with a lapsed lease, is not what the second one takes from it.
        await first.until_it_owns(set(range(SHARDS)))
        first.lost = set()
        # Either nothing arrives until the silence ends, or the batch has begun (in PostgreSQL also ended) and its
        # result is not received.
        proxy.silence(answers_only=answers_only)
        in_doubt = {shard_id: first.write(shard_id, "in-doubt") for shard_id in range(SHARDS)}
        async with _node("second", url) as second:
            await second.until_it_owns(set(range(SHARDS)))
            assert all(first.owns(shard_id) for shard_id in range(SHARDS))
            for shard_id in range(SHARDS):
                await second.durably_written(shard_id, "by-the-second")
            proxy.speak()
            await first.until_it_lost(set(range(SHARDS)))
            async with asyncio.timeout(PATIENCE_S):
                answers = [await in_doubt[shard_id] for shard_id in range(SHARDS)]
            if not answers_only:
                assert all(isinstance(answer, TocsinError) for answer in answers)
            for shard_id in range(SHARDS):
                assert "by-the-second" in await second.stored(shard_id)
