"""A proxy before Cassandra that speaks as ScyllaDB documents to do, where that differs and a client can see it.

The differences are those of ScyllaDB's manual ("How does ScyllaDB LWT differ from Apache Cassandra?", "Lightweight
Transactions") and of the results that its repository states for its own tests (`test/cql/lwt_*.result`): a conditional
statement's result always has the condition's columns, also if it was applied; a conditional batch's has a row for each of its
statements, with the primary key; the server names release 3.0.8 as its own, has a table `system.scylla_local`, and none of
Cassandra's virtual tables; keyspaces that are created here have tablets, and refuse conditional writes. Cassandra knows no
tablets: those without were created before.

What Cassandra does not report is null here: the former values of an applied statement.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

RELEASE = "3.0.8"
_HEAD = struct.Struct(">BBhBI")
_ERROR, _QUERY, _RESULT, _PREPARE, _EXECUTE, _BATCH = 0x00, 0x07, 0x08, 0x09, 0x0A, 0x0D
_ROWS, _PREPARED = 2, 4
_INVALID = 0x2200
_SKIP_METADATA = 0x02
_GLOBAL_TABLE, _NO_METADATA = 0x01, 0x04
_BIGINT, _BLOB, _BOOLEAN, _TEXT = 0x02, 0x03, 0x04, 0x0D
#: The columns of Tocsin's table as ScyllaDB lists them: key, static, regular.
_COLUMNS = {"p": _TEXT, "k": _BLOB, "epoch": _BIGINT, "latest": _BLOB, "owner": _BLOB, "n": _BIGINT, "v": _BLOB}
_TABLETS_REFUSE = "LWT is not yet supported with tablets"


class _Frame(NamedTuple):
    version: int
    flags: int
    stream: int
    opcode: int
    body: bytes

    def packed(self) -> bytes:
        return _HEAD.pack(*self[:4], len(self.body)) + self.body

    def answered(self, opcode: int, body: bytes) -> _Frame:
        """An answer to this request that the server never sees."""
        return _Frame(self.version | 0x80, 0, self.stream, opcode, body)


class _Conditional(NamedTuple):
    """What a conditional request is answered with: a row of these columns for each of its statements."""

    columns: tuple[str, ...]
    statements: int


class ScyllaProxy:
    """Forwards to the server at `target_port`. `port` is its own."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        #: How many answers to conditional statements and batches it has changed.
        self.changed = 0
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        #: The text of each prepared statement, by its id.
        self._texts: dict[bytes, str] = {}
        self._with_tablets: set[str] = set()

    async def __aenter__(self) -> ScyllaProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        server, to_server = await asyncio.open_connection("127.0.0.1", self._target_port)
        connection = _Connection(self, to_client, to_server)
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_each(client, connection.asked))
                directions.create_task(_each(server, connection.answered))
        except* (OSError, asyncio.IncompleteReadError):
            # Whichever side ended, the other's connection ends as well.
            pass
        finally:
            to_client.close()
            to_server.close()
            self._tasks.discard(task)

    def text_of(self, statement: bytes) -> str:
        """The text of a prepared statement."""
        return self._texts[statement]

    def note_prepared(self, statement: bytes, text: str) -> None:
        """Notes the text that the server has given this id."""
        self._texts[statement] = text

    def refusal(self, text: str) -> str | None:
        """Why ScyllaDB refuses a statement that Cassandra takes."""
        if created := re.search(r"CREATE KEYSPACE IF NOT EXISTS (\w+)", text):
            self._with_tablets.add(created[1])
        if "system_views." in text:
            return "unconfigured table settings"
        table = re.search(r"(?:UPDATE|INTO|FROM) (\w+)\.(\w+)", text)
        if _condition(text) is not None and table is not None and table[1] in self._with_tablets:
            return f"Cannot use LightWeight Transactions for table {table[1]}.{table[2]}: {_TABLETS_REFUSE}"
        return None


@contextlib.contextmanager
def scylla(target_port: int) -> Iterator[ScyllaProxy]:
    """A proxy that runs in a thread of its own, so that tests may block."""
    proxy = ScyllaProxy(target_port)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="scylla")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result()
        yield proxy
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Connection:
    """One connection of a client, and the proxy's own to the server."""

    def __init__(self, proxy: ScyllaProxy, to_client: asyncio.StreamWriter, to_server: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._to_client, self._to_server = to_client, to_server
        #: Of requests without an answer, by their streams: the statement to be prepared, or what a condition needs.
        self._preparing: dict[int, str] = {}
        self._conditional: dict[int, _Conditional] = {}

    async def asked(self, frame: _Frame) -> None:
        """Handles a request of the client."""
        texts = self._texts(frame)
        if frame.opcode == _PREPARE:
            self._preparing[frame.stream] = texts[0]
            refused = self._proxy.refusal(texts[0]) if "system_views." in texts[0] else None
        else:
            refused = next(filter(None, map(self._proxy.refusal, texts)), None)
        if refused is not None:
            self._to_client.write(frame.answered(_ERROR, struct.pack(">I", _INVALID) + _string(refused)).packed())
        elif texts and "'scylla_local'" in texts[0]:
            self._to_client.write(frame.answered(_RESULT, _rows(("table_name",), [(b"scylla_local",)])).packed())
        else:
            conditions = [found for text in texts if (found := _condition(text)) is not None]
            if conditions and frame.opcode != _PREPARE:
                key = ("p", "k") if frame.opcode == _BATCH else ()
                named = {*key, *(name for found in conditions for name in found)}
                self._conditional[frame.stream] = _Conditional(
                    tuple(name for name in _COLUMNS if name in named), len(texts) if frame.opcode == _BATCH else 1
                )
            self._to_server.write((_with_metadata(frame) if frame.opcode == _EXECUTE else frame).packed())
            await self._to_server.drain()
        await self._to_client.drain()

    async def answered(self, frame: _Frame) -> None:
        """Handles an answer, or an event, of the server."""
        text = self._preparing.pop(frame.stream, None)
        conditional = self._conditional.pop(frame.stream, None)
        body = frame.body
        kind = struct.unpack_from(">I", body)[0] if frame.opcode == _RESULT else None
        if kind == _PREPARED and text is not None:
            length = struct.unpack_from(">H", body, 4)[0]
            self._proxy.note_prepared(body[6 : 6 + length], text)
        elif kind == _ROWS and conditional is not None:
            self._proxy.changed += 1
            names, rows = _read_rows(body)
            values = [dict(zip(names, row, strict=True)) for row in rows]
            # Cassandra names the rows whose conditions failed; ScyllaDB has one of each statement.
            given = values[0] if conditional.statements == 1 or len(values) == 1 else {"[applied]": b"\x00"}
            row = (given["[applied]"], *(given.get(name) for name in conditional.columns))
            body = _rows(("[applied]", *conditional.columns), [row] * conditional.statements)
        elif kind == _ROWS:
            body = _with_release(body)
        self._to_client.write(frame._replace(body=body).packed())
        await self._to_client.drain()

    def _texts(self, frame: _Frame) -> list[str]:
        """The statements of a request."""
        body = frame.body
        if frame.opcode in (_QUERY, _PREPARE):
            return [body[4 : 4 + struct.unpack_from(">I", body)[0]].decode()]
        if frame.opcode == _EXECUTE:
            length = struct.unpack_from(">H", body)[0]
            return [self._proxy.text_of(body[2 : 2 + length])]
        return list(self._of_batch(body)) if frame.opcode == _BATCH else []

    def _of_batch(self, body: bytes) -> Iterator[str]:
        count, at = struct.unpack_from(">H", body, 1)[0], 3
        for _ in range(count):
            prepared = body[at]
            assert prepared, "Tocsin's batches have prepared statements only"
            length = struct.unpack_from(">H", body, at + 1)[0]
            yield self._proxy.text_of(body[at + 3 : at + 3 + length])
            at += 3 + length
            values = struct.unpack_from(">H", body, at)[0]
            at += 2
            for _ in range(values):
                at += 4 + max(struct.unpack_from(">i", body, at)[0], 0)


async def _each(reader: asyncio.StreamReader, handle: Callable[[_Frame], Awaitable[None]]) -> None:
    while True:
        version, flags, stream, opcode, length = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        await handle(_Frame(version, flags, stream, opcode, await reader.readexactly(length)))


def _condition(text: str) -> tuple[str, ...] | None:
    """The columns that the result of a conditional statement has; None for one without a condition."""
    words = text.upper()
    if words.startswith(("SELECT", "CREATE")) or " IF " not in words:
        return None
    if words.endswith("EXISTS"):
        return tuple(_COLUMNS)
    return tuple(re.findall(r"(\w+) !?= ", text[words.rindex(" IF ") :]))


def _with_metadata(frame: _Frame) -> _Frame:
    """The request for a result that names its columns."""
    body = bytearray(frame.body)
    length = struct.unpack_from(">H", body)[0]
    body[2 + length + 2] &= ~_SKIP_METADATA
    return frame._replace(body=bytes(body))


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded


def _rows(names: tuple[str, ...], rows: list[tuple[bytes | None, ...]]) -> bytes:
    """The body of a result with rows of Tocsin's table."""
    parts = [struct.pack(">III", _ROWS, _GLOBAL_TABLE, len(names)), _string("k"), _string("tocsin")]
    for name in names:
        kind = _BOOLEAN if name == "[applied]" else _COLUMNS.get(name, _TEXT)
        parts += [_string(name), struct.pack(">H", kind)]
    parts.append(struct.pack(">I", len(rows)))
    for row in rows:
        for value in row:
            parts.append(struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value)
    return b"".join(parts)


def _read_rows(body: bytes) -> tuple[list[str], list[list[bytes | None]]]:
    """The names of the columns, and the values."""
    names, at, _ = _read_head(body)
    count = struct.unpack_from(">I", body, at)[0]
    at += 4
    rows = []
    for _ in range(count):
        row = []
        for _ in names:
            value, at = _read_value(body, at)
            row.append(value)
        rows.append(row)
    return names, rows


def _read_value(body: bytes, at: int) -> tuple[bytes | None, int]:
    length = struct.unpack_from(">i", body, at)[0]
    return (None, at + 4) if length < 0 else (body[at + 4 : at + 4 + length], at + 4 + length)


def _read_head(body: bytes) -> tuple[list[str], int, int]:
    """The names of the columns, where the rows begin, and the flags. The results that are read are of one page."""
    flags, count = struct.unpack_from(">II", body, 4)
    at = 12
    if flags & _NO_METADATA:
        return [], at, flags
    if flags & _GLOBAL_TABLE:
        at = _past_string(body, _past_string(body, at))
    names = []
    for _ in range(count):
        if not flags & _GLOBAL_TABLE:
            at = _past_string(body, _past_string(body, at))
        end = _past_string(body, at)
        names.append(body[at + 2 : end].decode())
        at = _past_type(body, end)
    return names, at, flags


def _past_string(body: bytes, at: int) -> int:
    return at + 2 + int(struct.unpack_from(">H", body, at)[0])


def _past_type(body: bytes, at: int) -> int:
    """Behind a column's type: a number, and for some its parts."""
    kind = struct.unpack_from(">H", body, at)[0]
    at += 2
    if kind == 0x00:  # custom
        return _past_string(body, at)
    if kind in (0x20, 0x22):  # list, set
        return _past_type(body, at)
    if kind == 0x21:  # map
        return _past_type(body, _past_type(body, at))
    if kind == 0x30:  # user-defined
        at = _past_string(body, _past_string(body, at))
        fields = struct.unpack_from(">H", body, at)[0]
        at += 2
        for _ in range(fields):
            at = _past_type(body, _past_string(body, at))
    elif kind == 0x31:  # tuple
        fields = struct.unpack_from(">H", body, at)[0]
        at += 2
        for _ in range(fields):
            at = _past_type(body, at)
    return at


def _with_release(body: bytes) -> bytes:
    """The rows with ScyllaDB's release, if they have the server's."""
    names, at, _ = _read_head(body)
    if "release_version" not in names:
        return body
    position = names.index("release_version")
    _, rows = _read_rows(body)
    parts = [body[:at], struct.pack(">I", len(rows))]
    for row in rows:
        row[position] = RELEASE.encode()
        parts += [struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value for value in row]
    return b"".join(parts)
