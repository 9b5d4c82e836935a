"""Single creates by `AsyncClient` beside aiohttp, which it uses: see `bench/clients/__init__.py`."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable

import aiohttp
from tocsin_client import AsyncClient

from bench.clients.creates_sync import HEADERS

Create = Callable[[int], Awaitable[None]]


def _ways(url: str, client: AsyncClient, session: aiohttp.ClientSession) -> dict[str, Create]:
    """How one timer is created."""

    async def sdk(number: int) -> None:
        await client.timers.create(
            "default", f"sdk-{number}", "http://127.0.0.1:9/", delay="1h", payload={"order": number, "amount": 4200}
        )

    async def bare(number: int) -> None:
        timer = {
            "namespace": "default",
            "id": f"bare-{number}",
            "callbackUrl": "http://127.0.0.1:9/",
            "delay": "1h",
            "payload": {"order": number, "amount": 4200},
            "idempotencyKey": str(uuid.uuid4()),
        }
        body = json.dumps(timer, separators=(",", ":")).encode()
        async with session.post(f"{url}/api/v1/timers/create", data=body, headers=HEADERS) as answer:
            read = await answer.read()
            if answer.status != 200:
                raise SystemExit(read.decode())

    return {"sdk": sdk, "bare": bare}


async def _creates(create: Create, numbers: itertools.count[int], count: int, in_flight: int) -> None:
    async def work() -> None:
        for _ in range(count // in_flight):
            await create(next(numbers))

    await asyncio.gather(*(work() for _ in range(in_flight)))


async def main(url: str, warm_up: int, rounds: int, each: int, in_flight: int) -> None:
    async with AsyncClient(url) as client, aiohttp.ClientSession() as session:
        ways, numbers, results = _ways(url, client, session), itertools.count(), []
        for create in ways.values():
            await _creates(create, numbers, warm_up, in_flight)
        for number in range(rounds):
            result = {}
            for name in sorted(ways, reverse=number % 2 == 0):
                began = time.process_time()
                await _creates(ways[name], numbers, each, in_flight)
                result[name] = (time.process_time() - began) / each * 1e6
            results.append(result)
    print(json.dumps(results))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
