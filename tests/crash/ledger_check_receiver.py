"""The receiver of the end-to-end check, a separate process: it answers every webhook with 200 and logs it.

It takes a file name, prints its port, and ends when its standard input ends. Each call is one `CALL` in the file, in order of
arrival: the timer's number, the version in its payload, the attempt, when it fired and when it arrived.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time
from pathlib import Path

import msgspec
import uvloop
from bench.wire import Answerer

from tocsin.model.instants import parse_instant

CALL = struct.Struct("<IIIqq")
_FLUSH_INTERVAL_S = 0.2


class _Payload(msgspec.Struct):
    v: int


class _Body(msgspec.Struct, rename="camel"):
    timer_id: str
    attempt: int
    fired_at: str
    payload: _Payload


class _Calls:
    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(_Body).decode
        self._unwritten = bytearray()

    def seen(self, body: bytes) -> None:
        arrived_at = time.time_ns() // 1_000
        call = self._decode(body)
        number, fired_at = int(call.timer_id), parse_instant(call.fired_at)
        self._unwritten += CALL.pack(number, call.payload.v, call.attempt, fired_at, arrived_at)

    async def write(self, path: Path) -> None:
        """Writes what arrived since the last time, until it is cancelled."""
        with path.open("ab") as file:
            while True:
                calls, self._unwritten = self._unwritten, bytearray()
                file.write(calls)
                file.flush()
                await asyncio.sleep(_FLUSH_INTERVAL_S)


async def _main(path: Path) -> None:
    loop, calls = asyncio.get_running_loop(), _Calls()
    server = await loop.create_server(lambda: Answerer(calls.seen), "127.0.0.1", 0, backlog=1024)
    writing = asyncio.create_task(calls.write(path))
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()
    await asyncio.sleep(2 * _FLUSH_INTERVAL_S)
    writing.cancel()


if __name__ == "__main__":
    uvloop.run(_main(Path(sys.argv[1])))
