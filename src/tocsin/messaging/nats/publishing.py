"""A connection to a NATS server for very many messages, each of which has a reply.

It speaks the client protocol itself, as far as that takes: the client library makes coroutines, a queue entry and an object
for each message and each reply, which together take longer than a whole webhook does. Like `NatsConnection` it never
reconnects, so nothing that was sent on a lost connection is sent later.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from tocsin import __version__
from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.connection import REFUSED, VERSION_MIN, NatsAddress
from tocsin.model.errors import ConfigError
from tocsin.ports.bus import BrokerRefused, BusUnavailable

#: Bytes that the server may send before a line or a message is complete: replies have a few hundred.
_UNREAD_BYTES_MAX = 1024 * 1024
#: Replies that are taken before what they have led to is sent: meanwhile the server works on that.
_REPLIES_AT_ONCE = 32
_END = b"\r\n"


class _Info(msgspec.Struct):
    """What a server reports about itself."""

    version: str = "0.0.0"
    max_payload: int = 1024 * 1024
    tls_required: bool = False

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version; zeros if it has none that can be read."""
        found = re.match(r"(\d+)\.(\d+)", self.version)
        return (int(found[1]), int(found[2])) if found else (0, 0)


_encode = msgspec.json.Encoder().encode
_decode_info = msgspec.json.Decoder(_Info).decode


def _hello(name: str, address: NatsAddress, *, secure: bool) -> dict[str, Any]:
    hello = {
        "name": name,
        "lang": "python",
        "version": __version__,
        "protocol": 1,
        "verbose": False,
        "pedantic": False,
        "tls_required": secure,
        "headers": True,
        # Else a message that no stream takes would have no reply.
        "no_responders": True,
        "user": address.user,
        "pass": address.password,
        "auth_token": address.token,
    }
    return {key: value for key, value in hello.items() if value is not None}


async def connect(
    address: NatsAddress,
    limits: BusLimits,
    name: str,
    replied: Callable[[int, bytes], None],
    lost: Callable[[str], None],
) -> PublishingConnection:
    """A connection to the first server that lets it in. Raises BusUnavailable, BrokerRefused for wrong credentials or an
    untrusted certificate, ConfigError for a server that is too old."""
    timeout_s = limits.nats_connect_timeout_us / 1e6 / len(address.servers)
    failure = ""
    for server in address.servers:
        connection = PublishingConnection(limits, replied, lost)
        try:
            async with asyncio.timeout(timeout_s):
                await connection.open(server, address, name)
        except TimeoutError:
            connection.close()
            failure = f"no answer within {timeout_s:g} s"
        except (OSError, BusUnavailable) as error:
            connection.close()
            failure = str(error) or type(error).__name__
            if isinstance(error, ssl.SSLCertVerificationError) or REFUSED in failure.lower():
                raise BrokerRefused(f"no connection to NATS at {server}: {failure}") from error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise BusUnavailable(f"NATS at {address} is unreachable: {failure}")


class PublishingConnection(asyncio.Protocol):
    """`replied` gets the number of each message that has a reply, and the reply's payload, empty if nobody listens to
    the subject. `lost` is called once if the connection, after it was opened, ends for any reason other than `close`. All
    methods are called on one event loop's thread."""

    def __init__(self, limits: BusLimits, replied: Callable[[int, bytes], None], lost: Callable[[str], None]) -> None:
        self._limits = limits
        self._replied = replied
        self._lost = lost
        self._inbox = f"_INBOX.{uuid4().hex}"
        self._transport: asyncio.Transport | None = None
        #: What has arrived, and where of it the part begins that is not read yet.
        self._unread, self._at = b"", 0
        #: Whether the rest of the replies has its turn soon.
        self._reading = False
        #: What is sent with the next write, after this turn of the event loop.
        self._outgoing: list[bytes] = []
        self._info = _Info()
        # The server has introduced itself; it has let the client in.
        loop = asyncio.get_running_loop()
        self._greeted: asyncio.Future[None] = loop.create_future()
        self._entered: asyncio.Future[None] = loop.create_future()
        self._pinging: asyncio.TimerHandle | None = None
        self._pings = 0
        self._last_error = ""
        self._ended = False

    async def open(self, server: str, address: NatsAddress, name: str) -> None:
        """Connects to a server of the address. Raises BusUnavailable, OSError or ConfigError."""
        url, loop = urlsplit(server), asyncio.get_running_loop()
        assert url.hostname is not None and url.port is not None, "addresses are complete"
        await loop.create_connection(lambda: self, url.hostname, url.port)
        await self._greeted
        secure = url.scheme == "tls" or self._info.tls_required
        if secure and self._transport is not None:
            upgraded = await loop.start_tls(
                self._transport, self, ssl.create_default_context(), server_hostname=url.hostname
            )
            self._transport = cast(asyncio.Transport, upgraded)
        if self._info.release < VERSION_MIN:
            raise ConfigError(f"the NATS server at {server} has version {self._info.version}; requires 2.10 or newer")
        hello = _encode(_hello(name, address, secure=secure))
        self._write(b"CONNECT %b\r\nSUB %b.* 1\r\nPING\r\n" % (hello, self._inbox.encode()))
        # The server answers in order: after this it knows the subscription, too.
        await self._entered
        if not self.alive:
            # It was lost in the same moment.
            raise BusUnavailable(self._last_error or "the connection was closed")
        self._plan_ping()

    @property
    def alive(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return not self._ended and self._transport is not None and not self._transport.is_closing()

    @property
    def message_bytes_max(self) -> int:
        """The largest message that the server accepts, with its headers."""
        return self._info.max_payload

    def publish(self, number: int, subject: str, headers: bytes, payload: bytes) -> None:
        """Sends a message soon, in the order of the calls. `headers` begin with their version's line and end with an empty
        one. Does nothing after the connection has ended."""
        if self._ended:
            return
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        size = len(headers)
        head = f"HPUB {subject} {self._inbox}.{number} {size} {size + len(payload)}\r\n"
        self._outgoing += (head.encode("ascii"), headers, payload, _END)

    def close(self) -> None:
        """Ends the connection. Messages that were just passed to `publish` may be lost. Idempotent."""
        self._ended = True
        self._abort()

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        self._write(b"".join(outgoing))

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _abort(self) -> None:
        if self._pinging is not None:
            self._pinging.cancel()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    def _end(self, reason: str) -> None:
        """The connection is of no use any more, or never was of any."""
        self._abort()
        for waiting in (self._greeted, self._entered):
            if not waiting.done():
                waiting.set_exception(BusUnavailable(reason))
                # Nobody may be waiting for it.
                waiting.exception()
        if self._pinging is not None and not self._ended:
            self._ended = True
            self._lost(reason)

    def _plan_ping(self) -> None:
        self._pinging = asyncio.get_running_loop().call_later(self._limits.nats_ping_interval_us / 1e6, self._ping)

    def _ping(self) -> None:
        if self._pings >= self._limits.nats_pings_outstanding_max:
            self._end("the server answers no pings")
            return
        self._pings += 1
        self._write(b"PING\r\n")
        self._plan_ping()

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended: everything that waits for a reply fails."""
        self._end(self._last_error or str(exc or "the connection was closed"))

    def data_received(self, data: bytes) -> None:
        """Reads what is complete of it."""
        self._unread, self._at = self._unread[self._at :] + data, 0
        if not self._reading:
            self._read()

    def _read(self) -> None:
        try:
            self._reading = self._take()
        except (ValueError, IndexError, msgspec.DecodeError) as error:
            self._end(f"the server sent what is not NATS: {error}")
            return
        if self._reading:
            asyncio.get_running_loop().call_soon(self._read)
        elif len(self._unread) - self._at > _UNREAD_BYTES_MAX:
            self._end(f"the server sent a message of more than {_UNREAD_BYTES_MAX} bytes")

    def _take(self) -> bool:
        """Takes whole lines and messages; whether there are others. Raises ValueError, IndexError or DecodeError."""
        data, at, replies = self._unread, self._at, 0
        while (end := data.find(_END, at)) >= 0:
            if replies == _REPLIES_AT_ONCE:
                return True
            start = end + 2
            if data.startswith((b"MSG ", b"HMSG "), at):
                # MSG subject subscription bytes; HMSG has the bytes of the headers before those of everything.
                fields = data[at:end].split()
                begin, start = start, start + int(fields[-1])
                if len(data) < start + 2:
                    break
                if fields[0] == b"HMSG":
                    begin += int(fields[-2])
                self._replied(int(fields[1].rpartition(b".")[2]), data[begin:start])
                start += 2
                replies += 1
            else:
                self._control(data[at:end])
            self._at = at = start
        return False

    def _control(self, line: bytes) -> None:
        if line == b"PING":
            self._write(b"PONG\r\n")
        elif line == b"PONG":
            self._pings = 0
            if not self._entered.done():
                self._entered.set_result(None)
        elif line.startswith(b"INFO "):
            self._info = _decode_info(line[5:])
            if not self._greeted.done():
                self._greeted.set_result(None)
        elif line.startswith(b"-ERR"):
            # The server goes on after some errors, such as a subject that the user may not publish to.
            self._last_error = line[4:].decode(errors="replace").strip(" '")
        elif not line.startswith(b"+OK"):
            raise ValueError(f"a line that begins with {line[:20]!r}")
