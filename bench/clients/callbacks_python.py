"""Callbacks of 1 MiB by the Python receiver: see `bench/clients/callbacks.py`."""

from __future__ import annotations

import hmac
import json
import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tocsin_client.receiver import Receiver, done

BODY = b"x" * (1024 * 1024)
_PROCESS = Path("/proc/self")


def _grown_bytes(work: Callable[[], int]) -> tuple[int, int]:
    """What it returns, and by how much the process grew at most."""
    (_PROCESS / "clear_refs").write_text("5")  # the peak starts over
    before = _peak_kb()
    result = work()
    return result, (_peak_kb() - before) * 1024


def _peak_kb() -> int:
    lines = (_PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _milliseconds(rounds: int, work: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(rounds):
        began = time.process_time_ns()
        work()
        times.append((time.process_time_ns() - began) / 1e6)
    return times


def main(rounds: int, webhook_id: str, timestamp: str, signature: str, *secrets: str) -> None:
    logging.disable()
    receiver = Receiver(secrets)

    def callback(number: int, body: bytes = BODY) -> int:
        wrong = "v1," + "A" * 43 + "="
        headers = {
            "webhook-id": webhook_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": signature if number == 1 else " ".join([wrong] * number),
            "tocsin-namespace": "default",
            "tocsin-timer-id": "large",
        }
        return receiver.handle(headers, body, lambda _: done()).status

    results: dict[str, dict[str, Any]] = {}
    numbers = (1, 10, 4_000)
    for number in numbers:
        for _ in range(100):
            callback(number, b"x")
    for number in numbers:
        status, grown = _grown_bytes(partial(callback, number))
        results[str(number)] = {"status": status, "bytes": grown}
    for number in numbers:
        results[str(number)]["ms"] = _milliseconds(rounds, partial(callback, number))
    results["hash"] = {"ms": _milliseconds(rounds, lambda: hmac.new(b"key", BODY, "sha256").digest())}
    print(json.dumps(results))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
