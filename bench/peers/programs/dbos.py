"""DBOS: workflows that are enqueued with a delay, in PostgreSQL."""

from __future__ import annotations

import asyncio
import sys

import sqlalchemy
from dbos import DBOS, DBOSClient

from bench.peers.programs.common import Poster, Timer, obey_in_threads

_NAME = "timers"
_CONNECTIONS = 64
_POLL_S = 0.1
#: It keeps whole milliseconds, rounded down.
_ROUNDING_S = 0.001


def _address(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def create(url: str) -> None:
    engine = sqlalchemy.create_engine(_address(url), pool_size=_CONNECTIONS)
    client = DBOSClient(system_database_engine=engine, application_name=_NAME)

    def options(timer: Timer) -> dict[str, object]:
        delay_s = timer.left().total_seconds() + _ROUNDING_S
        return {"workflow_name": "fire", "queue_name": "fire", "app_version": "1", "delay_seconds": delay_s}

    def call(timers: list[Timer]) -> None:
        if len(timers) == 1:
            client.enqueue(options(timers[0]), timers[0].body)
            return
        with engine.begin() as transaction:
            for timer in timers:
                client.enqueue_in_transaction(transaction, options(timer), timer.body)

    obey_in_threads(call)


async def work(url: str, receiver: str) -> None:
    post = Poster(receiver)
    DBOS(
        config={
            "name": _NAME,
            "system_database_url": _address(url),
            "application_version": "1",
            "log_level": "WARNING",
        }
    )

    @DBOS.workflow(name="fire")
    async def fire(body: str) -> None:
        await post(body)

    DBOS.launch()
    await DBOS.register_queue_async("fire", polling_interval_sec=_POLL_S)
    print("{}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[1] == "create":
        create(sys.argv[2])
    else:
        asyncio.run(work(*sys.argv[2:]))
