"""The load process: posts requests from many connections and prints one JSON object with rates and latencies."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator

import uvloop

from bench.wire import Caller, request
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid, uuid7_text
from tocsin.model.instants import format_instant


def _timer(identifier: str, url: str, execute_at: str, flow: str) -> str:
    key = f'"flowKey":"{flow}{identifier}",' if flow else ""
    return (
        f'{{"namespace":"default","id":"{identifier}","executeAt":"{execute_at}",{key}'
        f'"callbackUrl":"{url}","payload":{{"order":"{identifier}","amount":4200}}}}'
    )


def _identifiers(args: argparse.Namespace, connection: int) -> Iterator[str]:
    """Timer ids; with `owned`, only ids in a shard of the node that the connection uses."""
    names = (f"{args.prefix}-{connection}-{number}" for number in itertools.count())
    if not args.owned:
        return names
    shares = args.owned.split(";")
    owned = {int(shard_id) for shard_id in shares[connection % len(shares)].split(",")}
    arc = namespace_hash("default")
    return (
        name
        for name in names
        if shard_of(arc, timer_uuid("default", name), args.total_shards, args.total_shards) in owned
    )


def _bodies(args: argparse.Namespace, connection: int, deadline: float) -> Iterator[bytes]:
    """The requests of one connection: single creates or batches, due together (spread 0) or evenly over `spread` seconds, in
    the order of their instants or, scattered, in none."""
    share = args.count // args.connections
    due = args.due_us
    step = args.spread * 1e6 / max(args.count, 1)
    instants = random.Random(f"{args.prefix} {connection}") if args.order == "random" else None

    def offset_us(number: int) -> int:
        if instants is not None:
            return int(instants.random() * args.spread * 1e6)
        return int((number * args.connections + connection) * step)

    identifiers = _identifiers(args, connection)
    sent = 0
    while sent < share and time.perf_counter() < deadline:
        size = min(args.batch, share - sent) if args.batch else 1
        timers = [
            _timer(
                next(identifiers),
                args.receiver,
                format_instant(due + offset_us(sent + i)),
                args.flow,
            )
            for i in range(size)
        ]
        sent += size
        if args.batch:
            yield request("/api/v1/timers/batch/create", ('{"timers":[' + ",".join(timers) + "]}").encode())
        else:
            yield request("/api/v1/timers/create", timers[0].encode())


def _changes(args: argparse.Namespace, connection: int, deadline: float) -> Iterator[bytes]:
    """The requests of one connection with another `operation` than creates: update, get or delete of the timers that creates
    with the same prefix, count and connections have made; lists of 100, each from a random instant within the spread; or
    mixed, for each two new timers: two creates, an update and a get of the first, a delete of the second."""
    instants = random.Random(connection)
    creates = _bodies(args, connection, deadline)
    identifiers = _identifiers(args, connection)
    for number in range(args.count // args.connections):
        operation, identifier = args.operation, ""
        if operation == "mixed":
            operation = ("create", "create", "update", "get", "delete")[number % 5]
            if number % 5 == 0:
                pair = (next(identifiers), next(identifiers))
            identifier = pair[number % 5 == 4]
        elif operation != "list":
            identifier = next(identifiers)
        if operation == "create":
            yield next(creates)
            continue
        sent: dict[str, object] = {"namespace": "default"}
        if operation == "list":
            after = format_instant(args.due_us + int(instants.random() * args.spread * 1e6))
            sent |= {"status": ["pending"], "limit": 100, "executeAfter": after}
        else:
            sent["timerId"] = identifier
        if operation == "update":
            later = int(instants.random() * args.spread * 1e6) if args.order == "random" else number
            sent |= {
                "executeAt": format_instant(args.due_us + 3_600_000_000 + later),
                "payload": {"order": identifier},
            }
        yield request(f"/api/v1/timers/{operation}", json.dumps(sent).encode())


def _calls(args: argparse.Namespace, connection: int) -> Iterator[bytes]:
    """Submissions of service calls, for `tenants` tenants in turn: due now (spread 0) or evenly over `spread` seconds.
    Their bodies contain the due time, so that the receiver can compute the lag."""
    random_tenants = random.Random(17)
    tenants = [uuid7_text(args.due_us // 1_000, random_tenants.getrandbits(74)) for _ in range(args.tenants)]
    step = args.spread * 1e6 / max(args.count, 1)
    for sent in range(args.count // args.connections):
        number = sent * args.connections + connection
        due = format_instant(args.due_us + int(number * step))
        when = f'"dueAt":"{due}",' if args.spread else ""
        yield request(
            f"/api/v1/tenants/{tenants[number % args.tenants]}/service-calls",
            f'{{"name":"{args.prefix}-{number}",{when}"requestSpec":{{"method":"POST","url":"{args.receiver}",'
            f'"body":{{"executeAt":"{due}","order":"{number}","amount":4200}}}}}}'.encode(),
        )


def _requests(args: argparse.Namespace, connection: int, deadline: float) -> Iterator[bytes]:
    if args.tenants:
        return _calls(args, connection)
    return (_bodies if args.operation == "create" else _changes)(args, connection, deadline)


def _pace(interval_s: float) -> Callable[[], float]:
    """How long a connection waits before each next request. Each has a slot of that length, and is sent at a random moment in
    it; one whose time has passed when the answer before it came is sent at once. So the rate holds however long it lasts."""
    began, slots = time.perf_counter(), itertools.count()
    return lambda: began + (next(slots) + random.random()) * interval_s - time.perf_counter()


async def _run(args: argparse.Namespace) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    finished = asyncio.Event()
    left = args.connections

    def done() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            finished.set()

    # Up to 200,000 bodies are built before the clock starts, so that building them is not measured.
    deadline = time.perf_counter() + args.seconds + 3600 * (args.count <= 200_000)
    sources = [_requests(args, number, deadline) for number in range(args.connections)]
    if args.count <= 200_000:
        sources = [iter(list(source)) for source in sources]
    began = time.perf_counter()
    callers: list[Caller] = []
    ports = [int(port) for port in args.port.split(",")]
    for number, source in enumerate(sources):
        port = ports[number % len(ports)]
        pace = _pace(args.connections / args.rate) if args.rate else None
        _, caller = await loop.create_connection(
            lambda source=source, pace=pace: Caller(source, done, pace), args.host, port
        )
        callers.append(caller)
    await finished.wait()
    seconds = time.perf_counter() - began
    latencies = sorted(latency for caller in callers for latency in caller.latencies_s)
    requests = len(latencies)
    failures = sum(caller.failures for caller in callers)
    per = args.batch or 1
    return {
        "requests": requests,
        "timers": requests * per,
        "seconds": seconds,
        "per_s": requests * per / seconds,
        "p50_ms": latencies[requests // 2] * 1e3 if requests else None,
        "p99_ms": latencies[min(requests - 1, requests * 99 // 100)] * 1e3 if requests else None,
        "failures": failures,
        "first_failure": next((c.first_failure.decode(errors="replace") for c in callers if c.failures), None),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", required=True, help="one port, or several separated by commas, used in turn")
    parser.add_argument(
        "--owned", default="", help="shards of each port's node, as 0,2;1,3: each node receives only its own"
    )
    parser.add_argument("--total-shards", type=int, default=0, help="with --owned: shards of cluster and namespace")
    parser.add_argument("--receiver", required=True)
    parser.add_argument("--operation", default="create", choices=["create", "update", "get", "delete", "list", "mixed"])
    parser.add_argument("--prefix", default="t")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--due-us", type=int, required=True)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument(
        "--order", default="instant", choices=["instant", "random"], help="of creates, by their instants"
    )
    parser.add_argument("--flow", default="", help="prefix of flow keys; each timer has one of its own")
    parser.add_argument("--tenants", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0)
    print(json.dumps(uvloop.run(_run(parser.parse_args()))))


if __name__ == "__main__":
    main()
