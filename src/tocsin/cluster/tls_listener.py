"""Accepts connections of other nodes with TLS, each with the certificates that are in force when it begins."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.stream import TLS_BEGINS, AcceptedConnection, place_of
from tocsin.cluster.tls import PeerTls, fault_of

#: Stands for the beginning of a node that waits to be greeted.
_SILENCE = b"\0"
#: Pause after a connection could not be accepted, such as without a free file descriptor.
_ACCEPT_PAUSE_S = 0.1


class TlsListener:
    """`make` creates the protocol of a connection; `refused` gets the address, the reason and its kind."""

    def __init__(
        self,
        listener: socket.socket,
        tls: PeerTls,
        make: Callable[[], AcceptedConnection],
        limits: ClusterLimits,
        refused: Callable[[str, str, str], None],
    ) -> None:
        self._listener = listener
        self._tls = tls
        self._make = make
        self._limits = limits
        self._refused = refused
        # Connections that have not finished the TLS handshake, the eldest first.
        self._beginning: dict[asyncio.Task[None], None] = {}
        listener.listen(128)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._accept()), loop.create_task(tls.follow())]

    def close(self) -> None:
        """Accepts no more connections; those that exist continue. Idempotent."""
        for task in (*self._tasks, *self._beginning):
            task.cancel()
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except OSError:
                # Such as without a free file descriptor. Nothing is lost: nodes that don't get in try again, and report it.
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            if len(self._beginning) >= self._limits.unauthenticated_connections_max:
                # As for connections without TLS: a node of the cluster finishes its handshake at once and must get in.
                eldest = next(iter(self._beginning))
                del self._beginning[eldest]
                eldest.cancel()
            beginning = loop.create_task(self._begin(accepted))
            self._beginning[beginning] = None
            beginning.add_done_callback(lambda done: self._beginning.pop(done, None))

    async def _begin(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        place = _address_of(accepted)
        connected = False
        try:
            begins = await self._first_byte(accepted)
            if not begins:
                # As before the handshake without TLS: the other side went away.
                return
            if begins != TLS_BEGINS[:1]:
                self._refused(place, "it connects without TLS (cluster.tls_certificate_file)", "plain")
                return
            try:
                await self._connect(accepted)
            except (OSError, TimeoutError) as error:
                self._refused(place, f"the TLS handshake failed: {_why(error)}", "tls")
            else:
                connected = True
        except OSError:
            # The other side went away.
            return
        finally:
            if not connected:
                accepted.close()

    async def _connect(self, accepted: socket.socket) -> None:
        """Begins the nodes' own handshake after that of TLS."""
        protocol = self._make()
        protocol.admits = self._admits
        async with asyncio.timeout(self._limits.connect_timeout_us / 1e6):
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, accepted, ssl=self._tls.accepting
            )

    def _admits(self, transport: asyncio.BaseTransport) -> bool:
        fault = self._tls.refusal_of(transport.get_extra_info("peercert"))
        if fault is not None:
            self._refused(place_of(transport), fault, "tls")
        return fault is None

    async def _first_byte(self, accepted: socket.socket) -> bytes:
        """What the other side begins with; empty if it closes the connection. A node without TLS waits to be greeted, so
        silence counts as its beginning."""
        # The other side gives up after `connect_timeout_us`; its refusal should be reported before.
        wait_us = self._limits.connect_timeout_us // 2
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(accepted.fileno(), readable.set)
        try:
            async with asyncio.timeout(wait_us / 1e6):
                await readable.wait()
        except TimeoutError:
            return _SILENCE
        finally:
            loop.remove_reader(accepted.fileno())
        # Left in the socket's buffer for the handshake.
        return accepted.recv(1, socket.MSG_PEEK)


def _address_of(accepted: socket.socket) -> str:
    try:
        place = accepted.getpeername()
    except OSError:
        return ""
    return f"{place[0]}:{place[1]}"


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return fault_of(error)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    # A node that does not accept this one's certificate ends the connection without a word.
    return "the other side ended it, perhaps because it does not accept this node's certificate"
