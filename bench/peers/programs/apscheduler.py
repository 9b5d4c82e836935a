"""APScheduler 3: jobs in SQLite. A job store belongs to one process, which creates and fires."""

from __future__ import annotations

import asyncio
import sys
from functools import cache

import sqlalchemy
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bench.peers.programs.common import Poster, Timer, obey

#: By the name that jobs are stored with: this module runs as `__main__`.
_FIRE = "bench.peers.programs.apscheduler:fire"
_poster = cache(Poster)


async def fire(receiver: str, body: str) -> None:
    await _poster(receiver)(body)


async def create(url: str, receiver: str) -> None:
    engine = sqlalchemy.create_engine(url)

    @sqlalchemy.event.listens_for(engine, "connect")
    def synced(connection, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    scheduler = AsyncIOScheduler(
        jobstores={"default": SQLAlchemyJobStore(engine=engine)}, job_defaults={"misfire_grace_time": None}
    )
    scheduler.start()

    async def call(timers: list[Timer]) -> None:
        for timer in timers:
            scheduler.add_job(_FIRE, "date", run_date=timer.due, args=(receiver, timer.body), id=timer.name)
            # It has blocked the loop.
            await asyncio.sleep(0)

    await obey(call)


if __name__ == "__main__":
    asyncio.run(create(*sys.argv[2:]))
