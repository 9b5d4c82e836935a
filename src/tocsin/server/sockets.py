"""Listening sockets."""

from __future__ import annotations

import asyncio
import ctypes
import resource
import select
import socket
import struct
import sys

from tocsin.model.errors import ConfigError

#: Connections of clients where the limit on descriptors would allow for more: each may take some memory.
CONNECTIONS_DEFAULT_MAX = 10_000
#: Descriptors for what is no connection of a client or to a receiver: files of the stores, connections to databases, a broker
#: and other nodes, the log.
_DESCRIPTORS_RESERVED = 100
#: Of Linux's socket options, which Python doesn't name.
_SO_ATTACH_FILTER = 26
_DRAIN_LOOK_S = 0.001


def url_of(host: str, port: int) -> str:
    """Where a server on this address answers."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def raise_descriptor_limit() -> str | None:
    """Lets this process open as many files as the system allows it to: each client and each callback is one, and the usual
    soft limit of 1,024 is below our own limits. What kept it from doing so, if anything did."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return None
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        return f"the limit of {soft} open files could not be raised to {hard}: {error}"
    return None


def connections_max(wanted: int | None, callbacks_max: int, descriptors: int | None = None) -> int:
    """How many connections of clients a process takes: as many as wanted, or the default, if the descriptors that may be open
    (None: this process's limit) leave as many for them. Callbacks come first, up to half of the descriptors.

    Raises ConfigError when more are wanted than there can be at all.
    """
    if descriptors is None:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors == resource.RLIM_INFINITY:
        return wanted or CONNECTIONS_DEFAULT_MAX
    if wanted is not None:
        most = max(1, descriptors - _DESCRIPTORS_RESERVED)
        if wanted > most:
            raise ConfigError(
                f"api.connections_max: {wanted} connections need more than the {descriptors} files that this process may "
                f"open; raise that limit (ulimit -n, LimitNOFILE=) or set at most {most}"
            )
        return wanted
    reserved = min(descriptors // 2, callbacks_max + _DESCRIPTORS_RESERVED)
    return max(1, min(CONNECTIONS_DEFAULT_MAX, descriptors - reserved))


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
