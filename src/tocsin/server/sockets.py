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

#: Default limit of client connections where the descriptor limit allows more: each may use some memory.
CONNECTIONS_DEFAULT_MAX = 10_000
#: Descriptors reserved for everything except connections of clients and to receivers: store files, connections to
#: databases, a broker and other nodes, the log.
_DESCRIPTORS_RESERVED = 100
#: A Linux socket option that Python's socket module lacks.
_SO_ATTACH_FILTER = 26
_DRAIN_POLL_S = 0.001
#: In which a client that has begun to connect has done so.
_HANDSHAKE_S = 0.25
#: The longest that an event loop full of requests may take until it has accepted the connections that were queued.
_QUEUE_S_MAX = 10.0
#: Classic BPF, as (code, jump if true, jump if false, operand), of packets that begin with the TCP header: those with SYN and
#: without ACK are dropped, all others kept whole.
_DROP_SYN = ((0x30, 0, 0, 13), (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))


def url_of(host: str, port: int) -> str:
    """The URL of a server on this address."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def raise_descriptor_limit() -> str | None:
    """Raises the process's limit of open files to the hard limit: each client and each callback takes a descriptor, and the
    usual soft limit of 1,024 is below the default limits. Returns the error, if there was one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return None
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        return f"soft limit {soft}, hard limit {hard}: {error}"
    return None


def connections_max(wanted: int | None, callbacks_max: int, descriptors: int | None = None) -> int:
    """The limit of client connections: the number wanted, or else the default, reduced to what the descriptor limit
    `descriptors` (None: this process's) leaves. Callbacks take precedence, up to half of the descriptors.

    Raises ConfigError if `wanted` exceeds the descriptor limit.
    """
    if descriptors is None:
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors == resource.RLIM_INFINITY:
        return wanted or CONNECTIONS_DEFAULT_MAX
    if wanted is not None:
        most = max(1, descriptors - _DESCRIPTORS_RESERVED)
        if wanted > most:
            raise ConfigError(
                f"api.connections_max: {wanted} connections exceed the {descriptors} files that this process may "
                f"open; raise that limit (ulimit -n, LimitNOFILE=) or set {most} or less"
            )
        return wanted
    reserved = min(descriptors // 2, callbacks_max + _DESCRIPTORS_RESERVED)
    return max(1, min(CONNECTIONS_DEFAULT_MAX, descriptors - reserved))


def bind(host: str, port: int, setting: str = "port") -> socket.socket:
    """A bound socket. Raises ConfigError with the address and the name of the port's setting."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigError(
            f"host: {host!r} can't be resolved ({error}); give an address of this machine, such as 127.0.0.1, or 0.0.0.0 "
            "for all of them"
        ) from error
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ConfigError(f"{setting}: can't listen on {host}:{port}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


async def drain(listener: socket.socket, timeout_s: float = _QUEUE_S_MAX) -> None:
    """Stops new connections to a socket on which only this process listens, and waits until queued ones are accepted: the
    kernel resets connections that are still in the queue when the socket is closed.

    On Linux a filter drops the first packet of new clients, which retry a second later and find the port closed. Clients that
    have begun to connect may complete it: they count as connected already, and send their request. Elsewhere this only waits
    for a moment when the queue is empty.
    """
    if sys.platform == "linux":
        code = b"".join(struct.pack("HBBI", *instruction) for instruction in _DROP_SYN)
        instructions = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(instructions))
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
        await asyncio.sleep(_HANDSHAKE_S)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while select.select([listener], [], [], 0)[0] and loop.time() < deadline:  # noqa: ASYNC110 -- the kernel sends no notification
        await asyncio.sleep(_DRAIN_POLL_S)
