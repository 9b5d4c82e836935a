"""Channels over TCP: a handshake, then frames of length, MAC (none under TLS) and payload. Each connection of another
node with TLS is accepted with the certificates that are in force when it begins."""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
import ssl
from collections.abc import Callable
from typing import Any, cast

from tocsin.cluster import handshake
from tocsin.cluster.channel import CallerEnd, Channel, End, PeerRefuses, PeerUnreachable
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.tls import PeerTls, fault_of
from tocsin.cluster.wire import PeerProtocolError

_LENGTH_BYTES = 4
#: The first bytes of a TLS connection: a record of the handshake, and the version that all releases write there.
TLS_BEGINS = b"\x16\x03\x01"
#: Sent instead of a welcome to a peer that does not know the secret.
_REFUSED = b"\0" * handshake.WELCOME_BYTES


class PeerConnection(asyncio.Protocol):
    """One connection. Subclasses implement the handshake, and set the seals and the end when it succeeds."""

    def __init__(self, limits: ClusterLimits) -> None:
        self.congested = False
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._end: End | None = None
        self._incoming: handshake.Seal | handshake.NoSeal | None = None
        self._outgoing: handshake.Seal | handshake.NoSeal | None = None
        self._over = False

    # -- Channel

    def send(self, payload: bytes) -> None:
        """Sends a frame; drops it if the connection is closed or not authenticated."""
        if self._transport is None or self._over or self._outgoing is None:
            return
        self._transport.write(
            b"".join((len(payload).to_bytes(_LENGTH_BYTES, "big"), self._outgoing.of(payload), payload))
        )

    def close(self) -> None:
        """Closes the connection after all frames were sent."""
        self._over = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once, without an event to the end."""
        self._over = True
        self._end = None
        if self._transport is not None:
            self._transport.abort()

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Stores the transport and disables Nagle's algorithm."""
        self._transport = cast(asyncio.Transport, transport)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Reports the end of the connection."""
        self._over = True
        end, self._end = self._end, None
        if end is not None:
            end.lost(str(exc) if exc is not None else "the other node closed the connection")

    def pause_writing(self) -> None:
        """The transport's write buffer is full."""
        self.congested = True

    def resume_writing(self) -> None:
        """The transport's write buffer has room again."""
        self.congested = False
        if self._end is not None:
            self._end.writable()

    def data_received(self, data: bytes) -> None:
        """Processes the handshake and whole frames."""
        if self._over:
            return
        self._buffer += data
        try:
            while not self._over and (self._advance_handshake() if self._incoming is None else self._frame()):
                pass
        except PeerProtocolError as error:
            end = self._end
            self.abort()
            if end is not None:
                end.lost(str(error))

    def _sealed_by(self, seals: handshake.Seals) -> handshake.Seals:
        """The seals of the connection's frames: those given, or none under TLS."""
        assert self._transport is not None
        return seals if self._transport.get_extra_info("ssl_object") is None else handshake.UNSEALED

    def _take(self, size: int) -> bytes | None:
        if len(self._buffer) < size:
            return None
        taken = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return taken

    def _frame(self) -> bool:
        """Passes the next whole frame on. Returns False if there is none."""
        buffer, seal = self._buffer, self._incoming
        assert seal is not None
        head = _LENGTH_BYTES + seal.size
        if len(buffer) < head:
            return False
        size = int.from_bytes(buffer[:_LENGTH_BYTES], "big")
        if size > self._limits.frame_bytes_max:
            raise PeerProtocolError(f"a message of {size} bytes, which is too large")
        whole = self._take(head + size)
        if whole is None:
            return False
        payload = whole[head:]
        if not seal.fits(payload, whole[_LENGTH_BYTES:head]):
            raise PeerProtocolError("a message with an invalid MAC")
        if self._end is not None:
            self._end.received(payload)
        return True

    def _advance_handshake(self) -> bool:
        """The next step of the handshake. Returns False if it needs more bytes."""
        raise NotImplementedError


class AcceptedConnection(PeerConnection):
    """A connection that another node opened. `arrived` is called with its incarnation once it is authenticated, and
    returns the end that receives its messages."""

    def __init__(
        self,
        limits: ClusterLimits,
        secrets: handshake.ClusterSecrets,
        own: bytes,
        arrived: Callable[[bytes, Channel], End],
        refused: Callable[[str, str, str], None],
        unauthenticated: dict[AcceptedConnection, None],
    ) -> None:
        super().__init__(limits)
        self._handshake = handshake.Handshake(secrets.current, own, os.urandom(32), former=secrets.former)
        self._arrived = arrived
        self._refused = refused
        self._unauthenticated = unauthenticated
        self._late: asyncio.TimerHandle | None = None
        #: Returns whether the other side may begin the handshake: TLS has shown its certificate.
        self.admits: Callable[[asyncio.BaseTransport], bool] = lambda transport: True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts the handshake and its timeout."""
        super().connection_made(transport)
        if not self.admits(transport):
            self.abort()
            return
        if len(self._unauthenticated) >= self._limits.unauthenticated_connections_max:
            # Closes the oldest unauthenticated connection: a node of the cluster authenticates at once and must get in.
            eldest = next(iter(self._unauthenticated))
            del self._unauthenticated[eldest]
            eldest.abort()
        self._unauthenticated[self] = None
        self._late = asyncio.get_running_loop().call_later(self._limits.connect_timeout_us / 1e6, self.abort)
        assert self._transport is not None
        self._transport.write(self._handshake.hello())

    def connection_lost(self, exc: Exception | None) -> None:
        """Reports the end of the connection."""
        self._leave_unauthenticated()
        super().connection_lost(exc)

    def _leave_unauthenticated(self) -> None:
        self._unauthenticated.pop(self, None)
        if self._late is not None:
            self._late.cancel()

    def _advance_handshake(self) -> bool:
        proof = self._take(handshake.PROOF_BYTES)
        if proof is None:
            return False
        self._leave_unauthenticated()
        assert self._transport is not None
        accepted = self._handshake.check_proof(proof)
        if accepted is None:
            # What a node with TLS sends first is as long as a proof.
            secured = proof.startswith(TLS_BEGINS)
            fault = "it connects with TLS, which this node does not use" if secured else "wrong cluster.secret"
            self._refused(place_of(self._transport), fault, "tls" if secured else "secret")
            self._transport.write(_REFUSED)
            self.close()
            return False
        incarnation, welcome, seals = accepted
        seals = self._sealed_by(seals)
        self._incoming, self._outgoing = seals.caller, seals.called
        self._transport.write(welcome)
        self._end = self._arrived(incarnation, self)
        return True


class DialedConnection(PeerConnection):
    """A connection that this node opens. `authenticated` is done when both nodes have proven themselves."""

    def __init__(self, limits: ClusterLimits, secret: str, own: bytes, expected: bytes, end: CallerEnd) -> None:
        super().__init__(limits)
        self.authenticated: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._handshake = handshake.Handshake(secret, own, os.urandom(32))
        self._expected = expected
        self._expected_welcome: bytes | None = None
        self._caller_end = end

    def _advance_handshake(self) -> bool:
        if self._expected_welcome is None:
            hello = self._take(handshake.HELLO_BYTES)
            if hello is None:
                return False
            proven = self._handshake.prove(hello, self._expected)
            if proven is None:
                self._fail("a different program, or a different incarnation of the node, listens there")
                return False
            proof, self._expected_welcome, self._seals = proven
            assert self._transport is not None
            self._transport.write(proof)
        welcome = self._take(handshake.WELCOME_BYTES)
        if welcome is None:
            return False
        if not hmac.compare_digest(welcome, self._expected_welcome):
            self._fail("the node refused this one: cluster.secret differs between them", PeerRefuses)
            return False
        seals = self._sealed_by(self._seals)
        self._incoming, self._outgoing = seals.called, seals.caller
        self._end = self._caller_end
        self._caller_end.opened(self)
        if not self.authenticated.done():
            self.authenticated.set_result(None)
        return True

    def _fail(self, reason: str, kind: type[PeerUnreachable] = PeerUnreachable) -> None:
        self.abort()
        if not self.authenticated.done():
            self.authenticated.set_exception(kind(reason))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fails a pending handshake and reports the end of the connection."""
        if not self.authenticated.done():
            why = "" if exc is None else f": {exc}"
            self.authenticated.set_exception(PeerUnreachable(f"the connection ended during the handshake{why}"))
        super().connection_lost(exc)


def place_of(transport: asyncio.BaseTransport) -> str:
    """The other side's address and port."""
    place = transport.get_extra_info("peername")
    return f"{place[0]}:{place[1]}" if place else ""


async def dial(
    limits: ClusterLimits,
    secret: str,
    own: bytes,
    incarnation: bytes,
    address: str,
    end: CallerEnd,
    tls: PeerTls | None = None,
) -> None:
    """Opens a channel to the node, with TLS if `tls` is given. Raises PeerUnreachable."""
    host, _, port = address.rpartition(":")
    caller: DialedConnection | None = None
    secured: dict[str, Any] = {} if tls is None else {"ssl": tls.dialing, "server_hostname": tls.name}
    try:
        async with asyncio.timeout(limits.connect_timeout_us / 1e6):
            _, caller = await asyncio.get_running_loop().create_connection(
                lambda: DialedConnection(limits, secret, own, incarnation, end), host.strip("[]"), int(port), **secured
            )
            await caller.authenticated
    except (OSError, TimeoutError, ValueError, OverflowError) as error:
        if caller is not None:
            caller.abort()
        reason = fault_of(error) if isinstance(error, ssl.SSLError) else str(error)
        raise PeerUnreachable(reason or "no answer in time") from error


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
