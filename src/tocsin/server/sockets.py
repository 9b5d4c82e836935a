"""Listening sockets."""

from __future__ import annotations

import asyncio
import ctypes
import select
import socket
import struct
import sys

from tocsin.model.errors import ConfigError

#: Of Linux's socket options, which Python doesn't name.
_SO_ATTACH_FILTER = 26
_DRAIN_LOOK_S = 0.001


def url_of(host: str, port: int) -> str:
    """Where a server on this address answers."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind(host: str, port: int, setting: str = "port") -> socket.socket:
    """A bound socket; ConfigError names the address, and the setting of the port."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigError(f"host: {host!r} is neither an address nor a name that can be resolved ({error})") from error
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ConfigError(f"{setting}: can't listen on {host}:{port}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


async def drain(listener: socket.socket, timeout_s: float = 1.0) -> None:
    """Lets no further client connect to a socket that this process alone listens on, and waits until those that had are
    accepted: the kernel resets whoever is still in the queue when the socket is closed.

    On Linux a filter drops the packets of newcomers, who try again a second later and find the port closed. Elsewhere
    it only waits for a moment at which nobody is in the queue.
    """
    if sys.platform == "linux":
        # Classic BPF, one instruction: accept 0 bytes of any packet.
        instruction = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0), 8)
        program = struct.pack("HP", 1, ctypes.addressof(instruction))
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while select.select([listener], [], [], 0)[0] and loop.time() < deadline:  # noqa: ASYNC110 -- the kernel tells nobody
        await asyncio.sleep(_DRAIN_LOOK_S)
