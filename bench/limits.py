"""The machine's own limits, measured in the same run: throughput of a bare HTTP server, and of one that stores."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from bench import processes
from bench.scenarios import SCATTERED

_RAW_SERVER = """
import msgspec, uvicorn, sys
class Body(msgspec.Struct):
    namespace: str; id: str; executeAt: str; callbackUrl: str; payload: msgspec.Raw
decode, encode = msgspec.json.Decoder(Body).decode, msgspec.json.Encoder().encode
async def app(scope, receive, send):
    body = (await receive())["body"]
    answer = encode(decode(body))
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]})
    await send({"type": "http.response.body", "body": answer})
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, http="httptools", loop="uvloop", lifespan="off", log_level="critical",
    access_log=False)).run([s])
"""


def raw_server(count: int) -> dict[str, Any]:
    """Single creates answered by uvicorn with a decode and an encode, and nothing behind it."""
    result = _answered([sys.executable, "-c", _RAW_SERVER], count)
    return {"raw HTTP server, requests per s": result["per_s"], "raw HTTP server, p99 ms": result["p99_ms"]}


def bare_durable(count: int, *, scattered: bool = False) -> dict[str, Any]:
    """Single creates made durable by a server that does nothing else: due together, or scattered over a day."""
    name, shape = ("bare durable server, scattered", SCATTERED) if scattered else ("bare durable server", {})
    with processes.folder() as folder:
        result = _answered([sys.executable, "-m", "bench.bare_durable", str(folder)], count, **shape)
    return {f"{name}, requests per s": result["per_s"], f"{name}, p99 ms": result["p99_ms"]}


def _answered(command: list[str], count: int, **shape: Any) -> dict[str, Any]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        return processes.load(port, 1, due_us=processes.now_us(), count=count, connections=64, **shape)
    finally:
        process.terminate()
        process.wait()
