"""The connections of stores on database servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tocsin.sql.pool import Activity, C, Pool
from tocsin.sql.server_store import ServerStore


def writing_pool(store: ServerStore[Any, C]) -> Pool[Any, C]:
    """The pool of the first writing connection of an open store."""
    assert store._lanes is not None
    return store._lanes.pools[0]


@asynccontextmanager
async def busy(pool: Pool[Any, Any] | None) -> AsyncIterator[None]:
    """All of the pool's connections work until the end of the body."""
    assert pool is not None
    taken, released = asyncio.Semaphore(0), asyncio.Event()

    async def work(connection: object) -> None:
        taken.release()
        await released.wait()

    async with asyncio.TaskGroup() as works:
        for _ in range(pool.size):
            works.create_task(pool.run(Activity.READING, work))
        try:
            for _ in range(pool.size):
                await taken.acquire()
            yield
        finally:
            released.set()
