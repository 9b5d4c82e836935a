"""A TCP proxy that can drop data, delay it, or cut every connection."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from pathlib import Path

_CHUNK_BYTES = 256 * 1024


class Proxy:
    """Brings connections to `target`, (host, port), from a loopback port of its own, `port`.

    Silent is what a broken network is: nobody answers, nothing is closed, and what was sent before or meanwhile arrives
    when the silence ends, as retransmitted packets would.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self.port = 0
        #: Added to the way of whatever passes, in each direction.
        self.delay_s = 0.0
        self._awaited: tuple[bytes, Callable[[], object]] | None = None
        self._target = target
        self._server: asyncio.Server | None = None
        self._pairs: dict[asyncio.Task[None], _Pair] = {}
        self._is_silent: Callable[[int], bool] = _nobody

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=128)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.speak()
        tasks = list(self._pairs)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def silence(self, process: int | None = None, *, answers_only: bool = False) -> None:
        """From now on nothing passes, on connections old and new; or only on those that this process made. With
        `answers_only`, what goes to the target still does on old ones."""
        self._is_silent = _everybody if process is None else _made_by(process, self.port)
        for pair in self._pairs.values():
            if self._is_silent(pair.client_port):
                pair.answering.clear()
                if not answers_only:
                    pair.asking.clear()

    def speak(self) -> None:
        """Lets data pass again."""
        self._is_silent = _nobody
        for pair in self._pairs.values():
            pair.asking.set()
            pair.answering.set()

    def reset(self) -> int:
        """Cuts every connection, with RST on both sides and without what was under way; returns how many they were."""
        for pair in self._pairs.values():
            pair.abort()
        return len(self._pairs)

    def when(self, text: bytes, then: Callable[[], object]) -> None:
        """Calls `then` once, when a client sends the text, before the target receives it."""
        self._awaited = text, then

    def asked(self, data: bytes) -> None:
        """Handles data from a client."""
        if self._awaited is not None and self._awaited[0] in data:
            (_, then), self._awaited = self._awaited, None
            then()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = _Pair(writer.get_extra_info("peername")[1], reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._pairs[task] = pair
        try:
            if self._is_silent(pair.client_port):
                pair.asking.clear()
                pair.answering.clear()
            await pair.asking.wait()
            await pair.run(self._target, self)
        except* OSError:
            # Whichever side broke, the other's connection breaks as well.
            pass
        except* asyncio.CancelledError:
            # The test is over.
            pass
        finally:
            pair.abort()
            del self._pairs[task]


class _Pair:
    """A client's connection, and the corresponding one to the target."""

    def __init__(self, client_port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.client_port = client_port
        self.asking, self.answering = asyncio.Event(), asyncio.Event()
        self.asking.set()
        self.answering.set()
        self._reader = reader
        self._writers = [writer]

    async def run(self, target: tuple[str, int], proxy: Proxy) -> None:
        """Returns when both directions have ended."""
        reader, writer = await asyncio.open_connection(*target)
        self._writers.append(writer)
        async with asyncio.TaskGroup() as directions:
            directions.create_task(self._pass(self._reader, writer, proxy, self.asking, asks=True))
            directions.create_task(self._pass(reader, self._writers[0], proxy, self.answering, asks=False))

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        proxy: Proxy,
        passing: asyncio.Event,
        *,
        asks: bool,
    ) -> None:
        try:
            while data := await reader.read(_CHUNK_BYTES):
                if asks:
                    proxy.asked(data)
                await asyncio.sleep(proxy.delay_s)
                await passing.wait()
                writer.write(data)
                await writer.drain()
        finally:
            # While data is dropped, the end of a connection is not forwarded either.
            await passing.wait()
        writer.write_eof()

    def abort(self) -> None:
        """Closes both sides immediately."""
        self.asking.set()
        self.answering.set()
        for writer in self._writers:
            raw = writer.get_extra_info("socket")
            if raw is not None and not writer.transport.is_closing():
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


def _nobody(_: int) -> bool:
    return False


def _everybody(_: int) -> bool:
    return True


def _made_by(process: int, port: int) -> Callable[[int], bool]:
    """Whether a connection to `port` from a client's port belongs to the process: what the kernel lists of both."""

    def made(client_port: int) -> bool:
        ends = f":{client_port:04X} ", f":{port:04X} "
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {line[9] for line in lines if (line[1] + " ").endswith(ends[0]) and (line[2] + " ").endswith(ends[1])}
        return bool(inodes & _sockets(process))

    return made


def _sockets(process: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    return found
