"""The receiver process: answers webhooks, and reports on request how many arrived and how late.

`POST /stats` with the body `reset` answers a JSON object with all statistics and starts over; with another body it answers
only the count. Every other request counts as a webhook.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import msgspec
import uvloop

from bench.wire import Answerer
from tocsin.model.instants import parse_instant


class _Item(msgspec.Struct, rename="camel"):
    execute_at: str
    webhook_id: str


class _Body(msgspec.Struct, rename="camel"):
    execute_at: str = ""
    items: list[_Item] | None = None


_RESULT = b'{"webhookId":"%b","status":200}'


class Tally:
    """Lags of the webhooks in microseconds, and the times of the first and the last one."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(_Body).decode
        self._instants: dict[str, int] = {}
        self.reset()

    def reset(self) -> None:
        self.lags_us: list[int] = []
        self.first_at = self.last_at = 0

    def seen(self, body: bytes) -> bytes | None:
        now, found = time.time_ns() // 1_000, self._decode(body)
        if found.items is None:
            self._count(found.execute_at, now)
            return None
        for item in found.items:
            self._count(item.execute_at, now)
        results = b'{"items":[%b]}' % b",".join(_RESULT % item.webhook_id.encode() for item in found.items)
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(results), results)

    def _count(self, text: str, now: int) -> None:
        instant = self._instants.get(text)
        if instant is None:
            if len(self._instants) > 10_000:
                self._instants.clear()
            instant = self._instants[text] = parse_instant(text)
        self.lags_us.append(now - instant)
        self.first_at = self.first_at or now
        self.last_at = now

    def stats(self) -> dict[str, float]:
        lags = sorted(self.lags_us)
        count = len(lags)
        report = {
            "count": count,
            "early": sum(1 for lag in lags if lag < 0),
            "seconds": (self.last_at - self.first_at) / 1e6,
            "lag_p50_ms": lags[count // 2] / 1e3 if count else 0.0,
            "lag_p99_ms": lags[min(count - 1, count * 99 // 100)] / 1e3 if count else 0.0,
            "lag_max_ms": lags[-1] / 1e3 if count else 0.0,
            "first_at_us": self.first_at,
        }
        self.reset()
        return report


class _Receiver(Answerer):
    def __init__(self, tally: Tally) -> None:
        super().__init__(tally.seen)
        self._tally = tally

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"POST /stats"):
            assert self._transport is not None
            body = json.dumps({"count": len(self._tally.lags_us)}).encode()
            if b"reset" in data:
                body = json.dumps(self._tally.stats()).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            return
        super().data_received(data)


async def _main() -> None:
    tally = Tally()
    server = await asyncio.get_running_loop().create_server(lambda: _Receiver(tally), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Ends when the parent process closes the pipe.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    uvloop.run(_main())
