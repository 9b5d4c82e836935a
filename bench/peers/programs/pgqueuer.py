"""PgQueuer: jobs in PostgreSQL with `execute_after`."""

from __future__ import annotations

import asyncio
import sys

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.peers.programs.common import Poster, Timer, obey

_CONNECTIONS = 16
_BATCH = 100


async def install(url: str) -> None:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.optimize_autovacuum()
    await connection.close()


async def create(url: str) -> None:
    pool = await asyncpg.create_pool(url, min_size=_CONNECTIONS, max_size=_CONNECTIONS)
    queries = Queries.from_asyncpg_pool(pool)

    async def call(timers: list[Timer]) -> None:
        bodies = [timer.body.encode() for timer in timers]
        await queries.enqueue(
            ["fire"] * len(timers), bodies, [0] * len(timers), execute_after=[timer.left() for timer in timers]
        )

    await obey(call)


async def work(url: str, receiver: str) -> None:
    post = Poster(receiver)
    queue = PgQueuer.from_asyncpg_pool(await asyncpg.create_pool(url, min_size=4, max_size=8))

    @queue.entrypoint("fire")
    async def fire(job) -> None:
        await post(job.payload.decode())

    await queue.run(batch_size=_BATCH)


if __name__ == "__main__":
    asyncio.run({"install": install, "create": create, "work": work}[sys.argv[1]](*sys.argv[2:]))
