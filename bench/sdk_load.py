"""The load process of the SDK: creates timers by `tocsin_client` and prints one JSON object with rate and latencies.

Tasks use one client for each node in turn, as a load balancer would spread them. With `--owners` each client sends its writes
to the owners of their shards instead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from typing import Literal

import uvloop
from tocsin_client import AsyncClient, CreateTimer

#: Before the clock starts, so that connections exist and the clients know the owners.
_WARM_UP = 8


def _timers(args: argparse.Namespace, task: int) -> Iterator[list[CreateTimer]]:
    """The calls of one task: so many timers each."""
    size = args.batch or 1
    for call in range(args.count // (args.tasks * size)):
        yield [
            CreateTimer(
                namespace="default",
                id=f"{args.prefix}-{task}-{call}-{each}",
                callback_url="http://127.0.0.1:9/",
                delay="1h",
                payload={"order": call, "amount": 4200},
            )
            for each in range(size)
        ]


async def _create(client: AsyncClient, timers: list[CreateTimer]) -> int:
    """Returns how many of them are created."""
    if len(timers) > 1:
        return sum(each.timer is not None for each in await client.timers.create_many(timers))
    (each,) = timers
    await client.timers.create(each.namespace, each.id, each.callback_url, delay=each.delay, payload=each.payload)
    return 1


async def _run(args: argparse.Namespace) -> dict[str, float]:
    routing: Literal["owners"] | None = "owners" if args.owners else None
    clients = [AsyncClient(f"http://127.0.0.1:{port}", routing=routing) for port in args.ports.split(",")]
    for client in clients:
        for number in range(_WARM_UP):
            await client.timers.create("default", f"{args.prefix}-warm-{number}", "http://127.0.0.1:9/", delay="1h")
    latencies: list[float] = []
    created = 0

    async def work(task: int, client: AsyncClient, calls: list[list[CreateTimer]]) -> None:
        nonlocal created
        for timers in calls:
            began = time.perf_counter()
            made = await _create(client, timers)
            created += made
            latencies.append(time.perf_counter() - began)

    tasks = [work(task, clients[task % len(clients)], list(_timers(args, task))) for task in range(args.tasks)]
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*tasks)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    for client in clients:
        await client.close()
    latencies.sort()
    return {
        "timers": created,
        "per_s": created / seconds,
        "p50_ms": latencies[len(latencies) // 2] * 1e3,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1e3,
        "client_cpu_s": cpu,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ports", required=True)
    parser.add_argument("--owners", action="store_true")
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--tasks", type=int, required=True)
    print(json.dumps(uvloop.run(_run(parser.parse_args()))))


if __name__ == "__main__":
    main()
