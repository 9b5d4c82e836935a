"""What a single create costs in each SDK, beside a bare HTTP client of that language: processor time of the client's process.

A program of each language creates timers on a real server by its SDK, and by the HTTP client that the SDK uses with the same
bytes, in turn, in one process that is warm. A bare create makes the JSON and an idempotency key, sends within a time limit,
without which no program should wait, reads the body of the answer and looks at the status; it parses nothing. The ratio is
what the SDK costs; it depends little on the machine's other work, as both kinds meet the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sdks.scenario_runner.http import Request, Response, serving

from bench import processes

ROOT = Path(__file__).parents[2]
#: How a program is started: of Node.js or another runtime, and of Java.
JAVASCRIPT = tuple(shlex.split(os.environ.get("TOCSIN_TEST_JAVASCRIPT", "node")))
JAVA = ("java", "-cp", str(ROOT / "sdks/java/tocsin-client/target/classes"))
_HERE = Path(__file__).parent
_GO = ROOT / "build/bench-clients-go"
#: Where an SDK is compiled, and how the program is started; further arguments are URL, warm-up, rounds, creates, and how many
#: are in flight.
_PROGRAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "python": ((), (sys.executable, "-m", "bench.clients.creates_sync")),
    "python-async": ((), (sys.executable, "-m", "bench.clients.creates_async")),
    "typescript": (("make", "--silent", "sdk-typescript"), (*JAVASCRIPT, str(_HERE / "creates.mjs"))),
    "go": (("go", "build", "-C", str(_HERE / "go"), "-o", str(_GO), "."), (str(_GO),)),
    "java": (("make", "--silent", "sdk-java"), (*JAVA, str(_HERE / "Creates.java"))),
}
LANGUAGES = tuple(_PROGRAMS)
WARM_UP = 10_000
ROUNDS = 10
_CREATES = 1_000


def measure(language: str, in_flight: int, *, scale: float) -> dict[str, Any]:
    """CPU microseconds of a create by SDK and bare client, in each round. SystemExit: they did not send the same."""
    build, program = _PROGRAMS[language]
    if build:
        subprocess.run(build, cwd=ROOT, check=True)
    with processes.folder() as folder, processes.server(folder) as server:
        url = f"http://127.0.0.1:{server.port}"
        _check_bytes(program, url)
        sizes = (int(WARM_UP * scale), ROUNDS, int(_CREATES * scale), in_flight)
        ran = subprocess.run([*program, url, *map(str, sizes)], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    rounds = json.loads(ran.stdout)
    sdk, bare = ([each[way] for each in rounds] for way in ("sdk", "bare"))
    return {
        "sdk_us": sdk,
        "bare_us": bare,
        "ratio": sum(sdk) / sum(bare),
        "ratios": [one / other for one, other in zip(sdk, bare, strict=True)],
    }


def show(results: dict[str, dict[str, Any]]) -> None:
    """Prints medians of the rounds, and in brackets their ranges."""
    table = Table(
        "SDK, in flight", "SDK, µs", "bare, µs", "ratio", title="Processor time of a single create, of the client"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for name, result in results.items():
        table.add_row(
            name,
            _range(result["sdk_us"], 0),
            _range(result["bare_us"], 0),
            f"{result['ratio']:.2f} ({min(result['ratios']):.2f}–{max(result['ratios']):.2f})",
        )
    Console(width=110).print(table)


def _range(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def _check_bytes(program: tuple[str, ...], url: str) -> None:
    """Records a create of each kind: only ids, keys and what follows from them may differ."""
    with urllib.request.urlopen(_create(url), timeout=10) as answered:
        timer = answered.read()
    recorded = asyncio.run(_recorded(program, timer))
    if len(recorded) != 2 or recorded[0] != recorded[1]:
        raise SystemExit("the SDK and the bare client don't send the same:\n" + "\n".join(recorded))


def _create(url: str) -> urllib.request.Request:
    timer = {"namespace": "default", "id": "any", "callbackUrl": "http://127.0.0.1:9/", "delay": "1h"}
    headers = {"content-type": "application/json"}
    return urllib.request.Request(f"{url}/api/v1/timers/create", json.dumps(timer).encode(), headers)


async def _recorded(program: tuple[str, ...], answer: bytes) -> list[str]:
    recorded: list[str] = []

    async def record(request: Request) -> Response:
        recorded.append(_comparable(request))
        return Response(200, [("content-type", "application/json")], answer)

    async with serving(record) as port:
        sizes = ("0", "1", "1", "1")
        process = await asyncio.create_subprocess_exec(
            *program, f"http://127.0.0.1:{port}", *sizes, cwd=ROOT, stdout=subprocess.DEVNULL
        )
        if await process.wait():
            raise SystemExit(f"{shlex.join(program)} failed")
    return recorded


def _comparable(request: Request) -> str:
    """Without what differs between any two creates, and the version of the Java SDK, which is not public there. Members of
    an object have no order, nor have headers."""
    headers = sorted(f"{name.lower()}: {value}" for name, value in request.headers if name.lower() != "content-length")
    headers = [re.sub(r"(?<=^user-agent: tocsin-client-java/).*", "…", header) for header in headers]
    body = json.dumps(json.loads(request.body), sort_keys=True)
    for varying in (r'(?<="id": ")[^"]+', r'(?<="idempotencyKey": ")[^"]+', r'(?<="order": )\d+'):
        body = re.sub(varying, "…", body)
    length = len(request.body) - sum(map(len, re.findall(rb"(?:sdk|bare)-\d+", request.body)))
    return "\n".join([f"{request.method} {request.target}", *headers, body, f"{length} bytes without the id"])
