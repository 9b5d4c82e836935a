"""Single creates by `Client` beside urllib3, which it uses: see `bench/clients/__init__.py`."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
import uuid
from collections.abc import Callable

import urllib3
from tocsin_client import Client
from tocsin_client._version import __version__

HEADERS = {
    "accept": "application/json",
    "user-agent": f"tocsin-client-python/{__version__}",
    "tocsin-first-try": "1",
    "content-type": "application/json",
}


def _ways(url: str) -> dict[str, Callable[[int], None]]:
    """How one timer is created."""
    client, pool = Client(url), urllib3.PoolManager(maxsize=64)

    def sdk(number: int) -> None:
        client.timers.create(
            "default", f"sdk-{number}", "http://127.0.0.1:9/", delay="1h", payload={"order": number, "amount": 4200}
        )

    def bare(number: int) -> None:
        timer = {
            "namespace": "default",
            "id": f"bare-{number}",
            "callbackUrl": "http://127.0.0.1:9/",
            "delay": "1h",
            "payload": {"order": number, "amount": 4200},
            "idempotencyKey": str(uuid.uuid4()),
        }
        body = json.dumps(timer, separators=(",", ":")).encode()
        answer = pool.request("POST", f"{url}/api/v1/timers/create", body=body, headers=HEADERS, timeout=15.0)
        if answer.status != 200:
            raise SystemExit(answer.data.decode())

    return {"sdk": sdk, "bare": bare}


def _creates(create: Callable[[int], None], numbers: itertools.count[int], count: int, in_flight: int) -> None:
    def work() -> None:
        for _ in range(count // in_flight):
            create(next(numbers))

    if in_flight == 1:
        work()
        return
    threads = [threading.Thread(target=work) for _ in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(url: str, warm_up: int, rounds: int, each: int, in_flight: int) -> None:
    ways, numbers, results = _ways(url), itertools.count(), []
    for create in ways.values():
        _creates(create, numbers, warm_up, in_flight)
    for number in range(rounds):
        result = {}
        for name in sorted(ways, reverse=number % 2 == 0):
            began = time.process_time()
            _creates(ways[name], numbers, each, in_flight)
            result[name] = (time.process_time() - began) / each * 1e6
        results.append(result)
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
