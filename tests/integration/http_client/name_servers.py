"""A name server on loopback, and a scripted lookup."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Self

TYPE_A = 1
NO_ERROR, SERVER_FAILED, NO_SUCH_NAME = 0, 2, 3


class Names:
    """A lookup with fixed answers that counts its queries."""

    def __init__(self, **addresses: Sequence[str]) -> None:
        self.addresses = {name.replace("_", "."): found for name, found in addresses.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        await asyncio.sleep(0)
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.addresses[host]


class NameServer(asyncio.DatagramProtocol):
    """Answers every name with 127.0.0.1, but names in `.missing` with NXDOMAIN, and those in `.silent` not at all."""

    silent = ".silent"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._was_asked = asyncio.Event()
        self.address = ""
        self._transport: asyncio.DatagramTransport

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, ("127.0.0.1", 0))
        self.address = "127.0.0.1:{}".format(self._transport.get_extra_info("sockname")[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._transport.close()

    async def has_been_asked(self, *names: str) -> None:
        """Returns once it has been asked for all of the names."""
        while not set(names) <= set(self.asked):
            self._was_asked.clear()
            await self._was_asked.wait()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """Listens."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answers one query (RFC 1035 section 4)."""
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        name = ".".join(labels).lower()
        self.asked.append(name)
        self._was_asked.set()
        if name.endswith(self.silent):
            return
        code = NO_SUCH_NAME if name.endswith(".missing") else NO_ERROR
        found = b""
        if code == NO_ERROR and struct.unpack(">H", data[at + 1 : at + 3]) == (TYPE_A,):
            # A pointer to the question's name, class IN, not to be cached.
            found = struct.pack(">HHHIH4B", 0xC00C, TYPE_A, 1, 0, 4, 127, 0, 0, 1)
        head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, 1 if found else 0, 0, 0)
        self._transport.sendto(head + data[12 : at + 5] + found, addr)
