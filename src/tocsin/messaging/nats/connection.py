"""The addresses of NATS servers, and one connection to them. It never reconnects: a lost one is replaced by another object.

Therefore nothing that was sent on a lost connection is ever sent later: everything in flight is decided when it is
lost.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from tocsin.messaging.limits import BusLimits
from tocsin.model.errors import ConfigError
from tocsin.ports.bus import BrokerRefused, BusUnavailable
from tocsin.tasks import end_tasks

_SCHEMES = ("nats", "tls")
_PORT = 4222


@dataclass(frozen=True, slots=True)
class NatsAddress:
    """One or more servers of one cluster, each as `scheme://host:port`. `str()` and `repr()` never contain secrets."""

    servers: tuple[str, ...]
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return ",".join(self.servers)


def parse_nats_address(url: str, setting: str = "broker") -> NatsAddress:
    """Parses `nats://user:password@host:port`, `nats://token@host` or `tls://…`. Several servers are separated by
    commas; the credentials of the first one that has any apply to all. Raises ConfigError, which names the `setting` and does
    not repeat the URL because it may contain a password."""
    parts = [_split(part.strip(), setting) for part in url.split(",")]
    servers = tuple(f"{part.scheme}://{_host(part)}:{part.port or _PORT}" for part in parts)
    first = next((part for part in parts if part.username), None)
    if first is None or first.username is None:
        return NatsAddress(servers)
    if first.password is None:
        return NatsAddress(servers, token=unquote(first.username))
    return NatsAddress(servers, user=unquote(first.username), password=unquote(first.password))


def _split(text: str, setting: str) -> SplitResult:
    try:
        part = urlsplit(text)
        right = part.scheme in _SCHEMES and bool(part.hostname) and part.path in ("", "/") and part.port != 0
    except ValueError:
        right = False
    if not right or part.query or part.fragment:
        raise ConfigError(f"{setting} is not a NATS URL; write it as nats://host:4222 or tls://user:password@host")
    return part


def _host(part: SplitResult) -> str:
    host = part.hostname or ""
    return f"[{host}]" if ":" in host else host


T = TypeVar("T")

_VERSION_MIN = (2, 10)
#: Part of the server's text for wrong or missing credentials.
_REFUSED = "authorization violation"


class JetStreamError(Exception):
    """A request that JetStream refused. `code` is JetStream's error code."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(f"{description} ({code})")
        self.code = code


class NatsConnection:
    """`lost` is called once, on the event loop, if the connection ends for any reason other than `close`."""

    def __init__(self, address: NatsAddress, limits: BusLimits, name: str, lost: Callable[[str], None]) -> None:
        self._address = address
        self._limits = limits
        self._name = name
        self._lost = lost
        self._client = Client()
        self._outgoing: deque[tuple[str, bytes, str, dict[str, str] | None]] = deque()
        self._wake = asyncio.Event()
        self._written = asyncio.Event()
        self._written.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._asking: set[asyncio.Task[Any]] = set()
        self._ended = False
        #: The last error of the broker or the socket.
        self.last_error = ""
        # The server ends the connection after it has refused the client, which may be the last error.
        self._refusal = ""

    async def open(self) -> None:
        """Connects. Raises BusUnavailable, BrokerRefused for wrong credentials or an untrusted certificate, ConfigError for a
        server that is too old."""
        address, limits = self._address, self._limits
        secure = any(server.startswith("tls:") for server in address.servers)
        try:
            await self._client.connect(
                servers=list(address.servers),
                name=self._name,
                user=address.user,
                password=address.password,
                token=address.token,
                tls=ssl.create_default_context() if secure else None,
                allow_reconnect=False,
                # Each server is tried twice; reconnecting is up to the bus.
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=max(1, limits.nats_connect_timeout_us // 2_000_000),
                ping_interval=max(1, limits.nats_ping_interval_us // 1_000_000),
                max_outstanding_pings=limits.nats_pings_outstanding_max,
                # Nothing is buffered while there is no connection.
                pending_size=0,
                error_cb=self._noticed,
                closed_cb=self._closed,
            )
        except Exception as error:
            self.last_error = self.last_error or _text(error)
            await self._abandon()
            if self._refusal or isinstance(error, ssl.SSLCertVerificationError):
                refusal = self._refusal or self.last_error
                raise BrokerRefused(f"broker: no connection to NATS at {address}: {refusal}") from error
            raise BusUnavailable(f"NATS at {address} is unreachable: {self.last_error}") from error
        except BaseException:
            await self._abandon()
            raise
        version = self._client.connected_server_version
        if (version.major, version.minor) < _VERSION_MIN:
            await self._abandon()
            raise ConfigError(
                f"the NATS server at {address} has version {version.major}.{version.minor}; requires 2.10 or newer"
            )
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._send_all(), name="nats sending"),
            loop.create_task(self._watch(), name="nats check"),
        ]

    @property
    def alive(self) -> bool:
        """Whether the connection is open, as far as the client knows."""
        return not self._ended and self._client.is_connected

    @property
    def payload_bytes_max(self) -> int:
        """The largest message that the server accepts."""
        return self._client.max_payload

    @property
    def asking(self) -> int:
        """Requests that wait for their reply."""
        return len(self._asking)

    def new_inbox(self) -> str:
        """A unique subject."""
        return self._client.new_inbox()

    def send(self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None) -> None:
        """Sends soon, in the order of the calls. Does nothing after the connection has ended."""
        if self._ended:
            return
        self._outgoing.append((subject, payload, reply, headers))
        self._written.clear()
        self._wake.set()

    async def listen(self, subject: str, received: Callable[[Msg], None], queue: str = "") -> Subscription:
        """Calls `received` for each message on the subject. Raises BusUnavailable."""

        async def callback(message: Msg) -> None:
            received(message)

        # The client calls back for one message at a time and limits those that wait; `received` never waits.
        try:
            return await self._client.subscribe(subject, queue=queue, cb=callback)
        except (NatsError, OSError) as error:
            raise BusUnavailable(f"NATS: {_text(error)}") from error

    async def unlisten(self, subscription: Subscription) -> None:
        """Ends a subscription that `listen` began."""
        try:
            await subscription.unsubscribe()
        except (NatsError, OSError) as error:
            # The subscription has ended with its connection.
            self.last_error = _text(error)

    async def request(self, subject: str, payload: bytes, timeout_s: float) -> Msg:
        """The reply to a message. Raises NoRespondersError, TimeoutError, or BusUnavailable."""
        return await self._ask(lambda: self._client.request(subject, payload, timeout=timeout_s))

    async def call(self, subject: str, request: dict[str, Any]) -> dict[str, Any]:
        """JetStream's response to an API request. Raises JetStreamError or BusUnavailable."""
        timeout_s = self._limits.nats_connect_timeout_us / 1e6
        try:
            message = await self.request(f"$JS.API.{subject}", msgspec.json.encode(request), timeout_s)
        except NoRespondersError as error:
            raise BusUnavailable("JetStream is not enabled or not ready; start the NATS server with -js") from error
        except TimeoutError as error:
            raise BusUnavailable(f"NATS: {subject}: {_text(error)}") from error
        answer: dict[str, Any] = msgspec.json.decode(message.data)
        if failure := answer.get("error"):
            code, description = int(failure.get("err_code", 0)), str(failure.get("description", ""))
            if int(failure.get("code", 0)) == 503:
                raise BusUnavailable(f"JetStream: {description} ({code})")
            raise JetStreamError(code, description)
        return answer

    async def synchronize(self) -> None:
        """Returns when the server has read everything that was sent. Raises BusUnavailable or TimeoutError."""
        await self._written.wait()
        await self._ask(lambda: self._client.flush(max(1, self._limits.nats_connect_timeout_us // 1_000_000)))

    async def _ask(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of one of the client's calls. Raises BusUnavailable as soon as the connection ends: the client
        would wait until its timeout."""
        if self._ended:
            raise BusUnavailable(f"the connection to NATS ended: {self.last_error}")
        asking = asyncio.get_running_loop().create_task(work(), name="nats request")
        self._asking.add(asking)
        try:
            return await asking
        except (NoRespondersError, TimeoutError):
            raise
        except (NatsError, OSError) as error:
            raise BusUnavailable(f"NATS: {_text(error)}") from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._ended or (task is not None and task.cancelling()):
                raise
            raise BusUnavailable(f"the connection to NATS ended: {self.last_error}") from None
        finally:
            self._asking.discard(asking)

    async def flush(self) -> None:
        """Returns when the server has read everything that was sent, or after a timeout."""
        try:
            async with asyncio.timeout(self._limits.nats_close_timeout_us / 1e6):
                await self.synchronize()
        except (BusUnavailable, TimeoutError) as error:
            self.last_error = _text(error)

    async def close(self) -> None:
        """Ends the connection. Messages that were just passed to `send` may be lost. Idempotent."""
        self._ended = True
        for asking in self._asking:
            asking.cancel()
        await end_tasks(*self._tasks)
        await self._abandon()

    def end(self, reason: str) -> None:
        """The connection is of no use any more: everything that waits for a reply fails."""
        if self._ended:
            return
        self._ended, self.last_error = True, reason
        self._outgoing.clear()
        self._written.set()
        for asking in self._asking:
            asking.cancel()
        self._lost(reason)

    async def _watch(self) -> None:
        """Detects an end of the connection that the client did not report."""
        while not self._ended:
            await asyncio.sleep(self._limits.nats_check_interval_us / 1e6)
            self._check_alive()

    def _check_alive(self) -> None:
        if not self._client.is_connected:
            self.end("the connection was closed")

    async def _send_all(self) -> None:
        try:
            while True:
                while self._outgoing:
                    await self._send_one(*self._outgoing.popleft())
                self._written.set()
                self._wake.clear()
                await self._wake.wait()
        except Exception as error:  # noqa: BLE001 - after any error nothing can be sent
            self.end(_text(error))

    async def _send_one(self, subject: str, payload: bytes, reply: str, headers: dict[str, str] | None) -> None:
        try:
            await self._client.publish(subject, payload, reply, headers)
        except (NatsError, OSError) as error:
            # The sender gets an error when no confirmation arrives or the end of the connection is detected.
            self.last_error = _text(error)
            self._check_alive()

    async def _noticed(self, error: Exception) -> None:
        self.last_error = _text(error)
        if _REFUSED in self.last_error.lower():
            self._refusal = self.last_error

    async def _closed(self) -> None:
        self.end(self.last_error or "the connection was closed")

    async def _abandon(self) -> None:
        """Closes the client, with a timeout: a server that no longer reads must not block."""
        self._ended = True
        try:
            async with asyncio.timeout(self._limits.nats_close_timeout_us / 1e6):
                await self._client.close()
        except (NatsError, OSError, TimeoutError) as error:
            self.last_error = self.last_error or _text(error)


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
