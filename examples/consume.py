"""Consumes timers that Tocsin publishes to NATS: `python3 examples/consume.py nats://127.0.0.1:4222 orders`.

It needs `pip install nats-py`. The stream is created if there is none, and this program's place in it is kept there: what
comes while it is away waits for it. Put your work into `handle`, or pass the message on, to Kafka for example; it is
acknowledged when `handle` returns, and delivered again if it raises.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress

import nats
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingCame
from nats.js.api import ConsumerConfig
from nats.js.errors import NotFoundError

#: After so long without an acknowledgement a message is delivered again.
ACK_WAIT_S = 30


async def handle(webhook_id: str, subject: str, body: dict[str, object]) -> None:
    """What a timer is for. A `webhook_id` may come twice: repeat nothing that must happen once."""
    print(f"{subject}  {body['timerId']}  {json.dumps(body['payload'])}", flush=True)


async def consume(server: str, subject: str) -> None:
    """Handles the messages on the subject and below it, one after another, without end."""
    stream = subject.replace(".", "-").upper()
    client = await nats.connect(server)
    jetstream = client.jetstream()
    try:
        await jetstream.stream_info(stream)
    except NotFoundError:
        await jetstream.add_stream(name=stream, subjects=[subject, f"{subject}.>"])
    place = await jetstream.pull_subscribe(
        "", durable="consume-py", stream=stream, config=ConsumerConfig(ack_wait=ACK_WAIT_S)
    )
    print(f"listening on {subject}", flush=True)
    while True:
        try:
            messages = await place.fetch(100, timeout=30)
        except NothingCame:
            continue
        for message in messages:
            await _handle(message)


async def _handle(message: Msg) -> None:
    headers = message.headers or {}
    try:
        await handle(headers["webhook-id"], message.subject, json.loads(message.data))
    except Exception as error:  # noqa: BLE001 -- whatever it is, the message comes again
        print(f"{message.subject}: {error!r}; delivered again", file=sys.stderr, flush=True)
        await message.nak(delay=5)
    else:
        await message.ack()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(consume(sys.argv[1], sys.argv[2]))
