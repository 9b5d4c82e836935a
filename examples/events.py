"""Consumes the events of a namespace from NATS: `python3 examples/events.py nats://127.0.0.1:4222 shop.events [KAFKA TOPIC]`.

It needs `pip install nats-py`, and aiokafka to write to Kafka: then give the address of a broker, such as `localhost:9092`,
and a topic. Without them events are printed. The stream is created if there is none, and this program's place in it is kept
there: what comes while it is away waits for it.

An event is acknowledged once Kafka has it, so each is written at least once: drop what is repeated by its `id`. The record's
key is what ended, so that a partition has all events of a timer in their order.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import nats
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingCame
from nats.js.api import ConsumerConfig
from nats.js.errors import NotFoundError

#: After so long without an acknowledgement an event is delivered again.
ACK_WAIT_S = 30

#: Writes an event, given its key and its data; raises if it is not written.
Write = Callable[[str, bytes], Coroutine[Any, Any, None]]


@asynccontextmanager
async def to_kafka(broker: str, topic: str) -> AsyncIterator[Write]:
    """Writes to a topic of Kafka."""
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=broker, acks="all", enable_idempotence=True) as producer:

        async def write(key: str, data: bytes) -> None:
            await producer.send_and_wait(topic, data, key=key.encode())

        yield write


@asynccontextmanager
async def to_stdout() -> AsyncIterator[Write]:
    """Prints events."""

    async def write(key: str, data: bytes) -> None:
        print(f"{json.loads(data)['type']}  {key}", flush=True)

    yield write


async def consume(server: str, subject: str, write: Write) -> None:
    """Writes the events below the subject, one after another, without end."""
    stream = subject.replace(".", "-").upper()
    client = await nats.connect(server)
    jetstream = client.jetstream()
    try:
        await jetstream.stream_info(stream)
    except NotFoundError:
        await jetstream.add_stream(name=stream, subjects=[f"{subject}.>"])
    # One at a time, so that an event that is delivered again does not come after later ones.
    place = await jetstream.pull_subscribe(
        "", durable="events-py", stream=stream, config=ConsumerConfig(ack_wait=ACK_WAIT_S, max_ack_pending=1)
    )
    print(f"listening on {subject}", flush=True)
    while True:
        with suppress(NothingCame):
            for message in await place.fetch(1, timeout=30):
                await _write(message, write)


async def _write(message: Msg, write: Write) -> None:
    event = json.loads(message.data)
    key = event.get("timerId") or event.get("scheduleId") or event.get("monitorId") or event["namespace"]
    try:
        await write(key, message.data)
    except Exception as error:  # noqa: BLE001 -- whatever it is, the event comes again
        print(f"{event['id']}: {error!r}; delivered again", file=sys.stderr, flush=True)
        await message.nak(delay=5)
    else:
        await message.ack()


async def main(server: str, subject: str, *kafka: str) -> None:
    """Consumes until it is interrupted."""
    async with to_kafka(*kafka) if kafka else to_stdout() as write:
        await consume(server, subject, write)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
