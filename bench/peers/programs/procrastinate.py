"""Procrastinate: jobs in PostgreSQL with `schedule_at`."""

from __future__ import annotations

import asyncio
import sys
from itertools import groupby

import procrastinate

from bench.peers.programs.common import Poster, Timer, obey

_CONNECTIONS = 16
_CONCURRENCY = 32
#: Its default of 5 s would be the lag.
_POLL_S = 0.1


def application(url: str, connections: int) -> procrastinate.App:
    return procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=url, min_size=min(connections, 4), max_size=connections)
    )


async def install(url: str) -> None:
    async with application(url, 1).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def create(url: str) -> None:
    async with application(url, _CONNECTIONS).open_async() as app:

        async def call(timers: list[Timer]) -> None:
            # A call has one instant.
            for due, together in groupby(timers, lambda timer: timer.due):
                bodies = [{"body": timer.body} for timer in together]
                job = app.configure_task("fire", schedule_at=due)
                await (job.defer_async(**bodies[0]) if len(bodies) == 1 else job.batch_defer_async(*bodies))

        await obey(call)


async def work(url: str, receiver: str) -> None:
    post, app = Poster(receiver), application(url, 8)

    @app.task(name="fire")
    async def fire(body: str) -> None:
        await post(body)

    async with app.open_async():
        await app.run_worker_async(concurrency=_CONCURRENCY, fetch_job_polling_interval=_POLL_S, delete_jobs="always")


if __name__ == "__main__":
    asyncio.run({"install": install, "create": create, "work": work}[sys.argv[1]](*sys.argv[2:]))
