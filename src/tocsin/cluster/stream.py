"""Channels over TCP: a handshake, then frames of length, MAC and payload."""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from collections.abc import Callable
from typing import cast

from tocsin.cluster.channel import CallerEnd, Channel, End, PeerUnreachable
from tocsin.cluster.handshake import HELLO_BYTES, MAC_BYTES, PROOF_BYTES, WELCOME_BYTES, Handshake, Seal
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import PeerConfused

_LENGTH_BYTES = 4
#: What is sent instead of a welcome to whoever doesn't know the secret.
_REFUSED = b"\0" * WELCOME_BYTES


class Stream(asyncio.Protocol):
    """One connection. Subclasses do the handshake, and set the seals and the end when it has succeeded."""

    def __init__(self, limits: ClusterLimits) -> None:
        self.congested = False
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._end: End | None = None
        self._incoming: Seal | None = None
        self._outgoing: Seal | None = None
        self._over = False

    # -- the channel

    def send(self, payload: bytes) -> None:
        """See Channel."""
        if self._transport is None or self._over or self._outgoing is None:
            return
        self._transport.write(
            b"".join((len(payload).to_bytes(_LENGTH_BYTES, "big"), self._outgoing.of(payload), payload))
        )

    def close(self) -> None:
        """See Channel."""
        self._over = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """See Channel."""
        self._over = True
        self._end = None
        if self._transport is not None:
            self._transport.abort()

    # -- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._over = True
        end, self._end = self._end, None
        if end is not None:
            end.lost(str(exc) if exc is not None else "the other node closed the connection")

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self.congested = True

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self.congested = False
        if self._end is not None:
            self._end.writable()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._over:
            return
        self._buffer += data
        try:
            while not self._over and (self._shake() if self._incoming is None else self._frame()):
                pass
        except PeerConfused as error:
            end = self._end
            self.abort()
            if end is not None:
                end.lost(str(error))

    def _take(self, size: int) -> bytes | None:
        if len(self._buffer) < size:
            return None
        taken = bytes(memoryview(self._buffer)[:size])
        del self._buffer[:size]
        return taken

    def _frame(self) -> bool:
        """Hands the next whole frame over; False when there is none."""
        buffer = self._buffer
        head = _LENGTH_BYTES + MAC_BYTES
        if len(buffer) < head:
            return False
        size = int.from_bytes(buffer[:_LENGTH_BYTES], "big")
        if size > self._limits.frame_bytes_max:
            raise PeerConfused(f"a message of {size} bytes")
        whole = self._take(head + size)
        if whole is None:
            return False
        payload = whole[head:]
        assert self._incoming is not None
        if not self._incoming.fits(payload, whole[_LENGTH_BYTES:head]):
            raise PeerConfused("a message that was not sent so")
        if self._end is not None:
            self._end.received(payload)
        return True

    def _shake(self) -> bool:
        """The next step of the handshake; False when it needs more bytes."""
        raise NotImplementedError


class Called(Stream):
    """A connection that another node made. `arrived` is called once it has proven itself, with its incarnation, and
    returns who is to be told what it sends."""

    def __init__(
        self,
        limits: ClusterLimits,
        secret: str,
        own: bytes,
        arrived: Callable[[bytes, Channel], End],
        refused: Callable[[str, str], None],
        strangers: dict[Called, None],
    ) -> None:
        super().__init__(limits)
        self._handshake = Handshake(secret, own, os.urandom(32))
        self._arrived = arrived
        self._refused = refused
        self._strangers = strangers
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        if len(self._strangers) >= self._limits.unauthenticated_connections_max:
            # The one that has been silent for longest goes: who belongs here proves it at once, and must not be kept out.
            eldest = next(iter(self._strangers))
            del self._strangers[eldest]
            eldest.abort()
        self._strangers[self] = None
        self._late = asyncio.get_running_loop().call_later(self._limits.connect_timeout_us / 1e6, self.abort)
        assert self._transport is not None
        self._transport.write(self._handshake.hello())

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._known()
        super().connection_lost(exc)

    def _known(self) -> None:
        self._strangers.pop(self, None)
        if self._late is not None:
            self._late.cancel()

    def _shake(self) -> bool:
        proof = self._take(PROOF_BYTES)
        if proof is None:
            return False
        self._known()
        assert self._transport is not None
        accepted = self._handshake.check_proof(proof)
        if accepted is None:
            place = self._transport.get_extra_info("peername")
            self._refused(f"{place[0]}:{place[1]}" if place else "", "it doesn't know the cluster's secret")
            self._transport.write(_REFUSED)
            self.close()
            return False
        incarnation, welcome, seals = accepted
        self._incoming, self._outgoing = seals.caller, seals.called
        self._transport.write(welcome)
        self._end = self._arrived(incarnation, self)
        return True


class Caller(Stream):
    """A connection that this node makes. `met` is done when both have proven themselves."""

    def __init__(self, limits: ClusterLimits, secret: str, own: bytes, expected: bytes, end: CallerEnd) -> None:
        super().__init__(limits)
        self.met: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._handshake = Handshake(secret, own, os.urandom(32))
        self._expected = expected
        self._expected_welcome: bytes | None = None
        self._told = end

    def _shake(self) -> bool:
        if self._expected_welcome is None:
            hello = self._take(HELLO_BYTES)
            if hello is None:
                return False
            proven = self._handshake.prove(hello, self._expected)
            if proven is None:
                self._fail("another program, or another start of the node, answers there")
                return False
            proof, self._expected_welcome, self._seals = proven
            assert self._transport is not None
            self._transport.write(proof)
        welcome = self._take(WELCOME_BYTES)
        if welcome is None:
            return False
        if not hmac.compare_digest(welcome, self._expected_welcome):
            self._fail("it refuses this node: `cluster_secret` is not the same on both")
            return False
        self._incoming, self._outgoing = self._seals.called, self._seals.caller
        self._end = self._told
        self._told.opened(self)
        if not self.met.done():
            self.met.set_result(None)
        return True

    def _fail(self, reason: str) -> None:
        self.abort()
        if not self.met.done():
            self.met.set_exception(PeerUnreachable(reason))

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if not self.met.done():
            self.met.set_exception(PeerUnreachable("the connection ended before the nodes had met"))
        super().connection_lost(exc)


async def dial(
    limits: ClusterLimits, secret: str, own: bytes, incarnation: bytes, address: str, end: CallerEnd
) -> None:
    """Opens a channel to the node; PeerUnreachable."""
    host, _, port = address.rpartition(":")
    caller: Caller | None = None
    try:
        async with asyncio.timeout(limits.connect_timeout_us / 1e6):
            _, caller = await asyncio.get_running_loop().create_connection(
                lambda: Caller(limits, secret, own, incarnation, end), host.strip("[]"), int(port)
            )
            await caller.met
    except (OSError, TimeoutError, ValueError, OverflowError) as error:
        if caller is not None:
            caller.abort()
        raise PeerUnreachable(str(error) or "no answer in time") from error
