"""What a receiver spends on a callback of 1 MiB, in each SDK, however many signatures it carries.

A program of each language has the SDK's receiver verify requests in its own process, without a network: with one right
signature, with ten wrong ones, with 4,000. The receiver has two secrets, as during a rotation. Beside it, the program hashes
such a body once by the language's own HMAC-SHA256. Time is the processor's, of the whole process, in Java of the
thread; memory is by how much the process's resident set grew at most during the first such request (Linux only), the body
itself not included.
"""

from __future__ import annotations

import base64
import json
import secrets
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.clients import JAVA, JAVASCRIPT, ROOT
from tocsin.model.ids import timer_uuid
from tocsin.model.secrets import signatures

_HERE = Path(__file__).parent
_GO = ROOT / "build/bench-callbacks-go"
#: Where an SDK is compiled, and how the program is started.
_PROGRAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "python": ((), (sys.executable, "-m", "bench.clients.callbacks_python")),
    "typescript": (("make", "--silent", "sdk-typescript"), (*JAVASCRIPT, str(_HERE / "callbacks.mjs"))),
    "go": (("go", "build", "-C", str(_HERE / "go"), "-o", str(_GO), "./callbacks"), (str(_GO),)),
    "java": (("make", "--silent", "sdk-java"), (*JAVA, str(_HERE / "Callbacks.java"))),
}
LANGUAGES = tuple(_PROGRAMS)
BODY_BYTES = 1024 * 1024
ROUNDS = 30
#: What is answered to a request with so many signatures, of which one is right only if it is alone.
_STATUSES = {"1": 200, "10": 503, "4000": 503}


def measure(language: str, rounds: int) -> dict[str, Any]:
    """For each number of signatures the milliseconds of each request, and the bytes of the first one. SystemExit: a receiver
    did not answer as it should."""
    build, program = _PROGRAMS[language]
    if build:
        subprocess.run(build, cwd=ROOT, check=True)
    keys = ["whsec_" + base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(2)]
    webhook_id, now_s, body = f"msg_{timer_uuid('default', 'large').hex()}_1", int(time.time()), b"x" * BODY_BYTES
    given = [webhook_id, str(now_s), signatures(keys[1:], webhook_id, now_s, body), *keys]
    ran = subprocess.run([*program, str(rounds), *given], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    results: dict[str, Any] = json.loads(ran.stdout)
    answered = {number: results[number]["status"] for number in _STATUSES}
    if answered != _STATUSES:
        raise SystemExit(f"{language}: the statuses are {answered}, not {_STATUSES}")
    return results


def show(results: dict[str, dict[str, Any]]) -> None:
    """Prints medians of the rounds, and in brackets their ranges."""
    table = Table(
        "receiver",
        "signatures",
        "ms",
        "hashes of the body",
        "MiB more",
        title="A callback of 1 MiB: processor time, memory",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for language, result in results.items():
        once = statistics.median(result["hash"]["ms"])
        table.add_row(language, "one hash", f"{once:.2f}", "1.0", "")
        for number in _STATUSES:
            times = result[number]["ms"]
            table.add_row(
                "",
                number,
                f"{statistics.median(times):.2f} ({min(times):.2f}–{max(times):.2f})",
                f"{statistics.median(times) / once:.1f}",
                f"{result[number]['bytes'] / 2**20:.1f}",
            )
    Console(width=110).print(table)
