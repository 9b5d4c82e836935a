"""A server that makes creates durable and does nothing else: what a single create costs in Python at the least.

It takes each `data_received` for a complete request, decodes its body, hashes its id and stores both in SQLite, with the
sync, clustered key and unique index of Tocsin's table. It validates nothing, has no keys, shards, owners or window, and
calls nobody.
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import sys
import threading
from pathlib import Path
from typing import NamedTuple, cast

import apsw
import msgspec
import uvloop

_SCHEMA = """
CREATE TABLE timers (shard_id INT, due TEXT, uuid BLOB, record TEXT, PRIMARY KEY (shard_id, due, uuid)) WITHOUT ROWID;
CREATE UNIQUE INDEX timers_by_uuid ON timers (shard_id, uuid);
"""
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


class _Body(msgspec.Struct):
    namespace: str
    id: str
    executeAt: str
    callbackUrl: str
    payload: msgspec.Raw


class _Create(NamedTuple):
    shard_id: int
    due: str
    uuid: bytes
    record: bytes
    client: asyncio.Transport


_decode = msgspec.json.Decoder(_Body).decode
_encode = msgspec.json.Encoder().encode


class _Writer:
    """Writes what has accumulated while the batch before was written, in a thread of its own."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.pragma("cache_size", -65_536)
        self._connection.pragma("wal_autocheckpoint", 20_000)
        self._connection.execute(_SCHEMA)
        self._waiting: list[_Create] = []
        self._busy = False
        self._batches: queue.SimpleQueue[list[_Create]] = queue.SimpleQueue()
        threading.Thread(target=self._write_all, daemon=True).start()

    def put(self, create: _Create) -> None:
        self._waiting.append(create)
        if not self._busy:
            self._busy = True
            # After the other requests that this turn of the loop reads.
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        batch, self._waiting = sorted(self._waiting, key=lambda create: create[:3]), []
        self._batches.put(batch)

    def _write_all(self) -> None:
        while True:
            batch = self._batches.get()
            values = [value for create in batch for value in (*create[:3], create.record.decode())]
            self._connection.execute("BEGIN IMMEDIATE")
            rows = ",".join(["(?,?,?,?)"] * len(batch))
            self._connection.execute(f"INSERT OR REPLACE INTO timers VALUES {rows}", values)
            self._connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(self._written, batch)

    def _written(self, batch: list[_Create]) -> None:
        self._busy = bool(self._waiting)
        if self._busy:
            self._begin()
        for create in batch:
            create.client.write(_HEAD % len(create.record) + create.record)


class _Connection(asyncio.Protocol):
    def __init__(self, writer: _Writer) -> None:
        self._put = writer.put

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        body = _decode(data[data.index(b"\r\n\r\n") + 4 :])
        uuid = hashlib.sha1(body.id.encode(), usedforsecurity=False).digest()[:16]
        self._put(_Create(uuid[0] & 15, body.executeAt, uuid, _encode(body), self._client))


async def _serve(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    writer = _Writer(folder / "bare.db", loop)
    server = await loop.create_server(lambda: _Connection(writer), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.setswitchinterval(5e-6)  # as in Tocsin's server
    uvloop.run(_serve(Path(sys.argv[1])))
