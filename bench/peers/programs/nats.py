"""NATS: message schedules of JetStream, which publish to a subject that a consumer pulls from."""

from __future__ import annotations

import asyncio
import sys

import nats
from nats.errors import TimeoutError as NothingThere
from nats.js.api import ConsumerConfig, StreamConfig

from bench.peers.programs.common import Poster, Timer, obey

_FETCHED = 256
_WAITING_MAX = 8_000
_STREAM, _CONSUMER, _DUE = "TIMERS", "worker", "due"


async def install(url: str) -> None:
    client = await nats.connect(url)
    stream = StreamConfig(name=_STREAM, subjects=["at.>", _DUE], allow_msg_schedules=True, allow_msg_ttl=True)
    await client.jetstream().add_stream(stream)
    consumer = ConsumerConfig(durable_name=_CONSUMER, filter_subject=_DUE, ack_wait=60, max_ack_pending=4 * _FETCHED)
    await client.jetstream().add_consumer(_STREAM, consumer)
    await client.close()


def _headers(timer: Timer) -> dict[str, str]:
    at = timer.due.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"Nats-Schedule": f"@at {at}", "Nats-Schedule-Target": _DUE, "Nats-Schedule-TTL": "5m"}


async def create(url: str) -> None:
    client = await nats.connect(url)
    stream = client.jetstream(timeout=60, publish_async_max_pending=_WAITING_MAX)

    async def call(timers: list[Timer]) -> None:
        if len(timers) == 1:
            timer = timers[0]
            await stream.publish(f"at.{timer.name}", timer.body.encode(), headers=_headers(timer))
            return
        sent = [
            await stream.publish_async(f"at.{timer.name}", timer.body.encode(), headers=_headers(timer))
            for timer in timers
        ]
        await asyncio.gather(*sent)

    await obey(call)


async def work(url: str, receiver: str) -> None:
    client, post, room = await nats.connect(url), Poster(receiver), asyncio.Semaphore(2 * _FETCHED)
    subscription = await client.jetstream().pull_subscribe_bind(_CONSUMER, stream=_STREAM)

    async def fire(message) -> None:
        try:
            await post(message.data.decode())
            await message.ack()
        finally:
            room.release()

    async with asyncio.TaskGroup() as tasks:
        while True:
            try:
                messages = await subscription.fetch(_FETCHED, timeout=5)
            except NothingThere:
                continue
            for message in messages:
                await room.acquire()
                tasks.create_task(fire(message))


if __name__ == "__main__":
    asyncio.run({"install": install, "create": create, "work": work}[sys.argv[1]](*sys.argv[2:]))
