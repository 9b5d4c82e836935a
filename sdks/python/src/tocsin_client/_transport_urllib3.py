"""Sends requests with urllib3, on connections that are kept."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    EmptyPoolError,
    HTTPError,
    LocationValueError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
)
from urllib3.util import Retry, Timeout, make_headers

from tocsin_client._core.steps import Reply, Result, Send, Steps
from tocsin_client._error_bases import TransportError
from tocsin_client._forks import leave_to_parent, renew_after_fork
from tocsin_client._proxies import credentials_of, proxy_of
from tocsin_client._trust import is_untrusted

CONNECTIONS_PER_HOST = 64
#: Below the 75 s after which the server closes idle connections.
IDLE_S_MAX = 60.0
_CHUNK_BYTES = 65_536
#: The server can't have received the request.
_NOT_SENT = (ConnectTimeoutError, EmptyPoolError, NewConnectionError, NameResolutionError, ProxyError)
_NO_RETRIES = Retry(False)
#: What certainly fits into the buffers of a socket, so that sending it takes no time.
_BUFFERED_BYTES = 16_384


class _Sending(threading.local):
    """The request that this thread sends."""

    #: When its time is over, by the monotonic clock.
    end: float = 0.0
    #: Whether the server can't have received all of it.
    is_cut: bool = False


_SENDING = _Sending()

#: urllib3's `urlopen` of a pool or of a manager.
_Open = Callable[..., urllib3.BaseHTTPResponse]


class Urllib3Transport:
    """Blocking; any number of threads may share it."""

    def __init__(self, ssl_context: ssl.SSLContext | None, http_client: urllib3.PoolManager | None) -> None:
        self._ssl_context = ssl_context
        self._given = http_client
        #: How requests are sent to each base URL, and what their targets begin with.
        self._routes: dict[str, tuple[_Open, str]] = {}
        self._used_at = time.monotonic()
        renew_after_fork(self)

    def run(self, steps: Steps[Result]) -> Result:
        """Does what the steps ask for until they return or raise."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Send):
                    try:
                        outcome: Reply | TransportError = self._send(step)
                    except TransportError as failed:
                        outcome = failed
                    step = steps.send(outcome)
                else:
                    time.sleep(step.seconds)
                    step = steps.send(None)
        except StopIteration as done:
            result: Result = done.value
            return result
        finally:
            steps.close()

    def close(self) -> None:
        """Closes the connections, but not those of a pool that was given."""
        self._routes = {}

    def renew_in_child(self) -> None:
        """The parent goes on using its connections, so this process makes its own."""
        leave_to_parent(self._routes)
        self._routes = {}
        if self._given is not None:
            pools = self._given.pools
            leave_to_parent(pools)
            self._given.pools = type(pools)(pools._maxsize)

    def _send(self, step: Send) -> Reply:
        now = time.monotonic()
        if now - self._used_at > IDLE_S_MAX:
            self.close()
        self._used_at = now
        _SENDING.end, _SENDING.is_cut = now + step.timeout_s, False
        connect_timeout_s = step.connect_timeout_s
        if self._given is not None and len(step.body or b"") > _BUFFERED_BYTES:
            # urllib3's own connections send under the limit of connecting.
            connect_timeout_s = step.timeout_s
        try:
            route = self._routes.get(step.base)
            if route is None:
                # Of two threads that come here at once, one gets a pool that serves this request only.
                route = self._routes[step.base] = self._route(step.base)
            urlopen, prefix = route
            response = urlopen(
                step.method,
                prefix + step.target,
                body=step.body,
                headers=step.headers,
                timeout=Timeout(connect=connect_timeout_s, total=step.timeout_s),
                retries=_NO_RETRIES,
                redirect=False,
                preload_content=False,
                # Waiting for a free connection is part of the time, too.
                pool_timeout=step.timeout_s,
            )
            try:
                body = _read(response, now + step.timeout_s)
            except BaseException:
                response.close()  # the rest of the answer makes the connection useless
                raise
            response.release_conn()
        except HTTPError as failed:
            # The next try would fail likewise.
            is_final = is_untrusted(failed) or isinstance(failed, LocationValueError)
            raise TransportError(
                f"{step.method} {step.url}: {failed}",
                maybe_done=not (is_final or _SENDING.is_cut or isinstance(failed, _NOT_SENT)),
                final=is_final,
            ) from failed
        return Reply(response.status, response.headers, body)

    def _route(self, base: str) -> tuple[_Open, str]:
        if self._given is not None:
            return self._given.urlopen, base
        options: dict[str, Any] = {
            "maxsize": CONNECTIONS_PER_HOST,
            "block": True,
            "ssl_context": self._ssl_context,
        }
        proxy = proxy_of(base)
        if proxy is not None:
            credentials = credentials_of(proxy)
            headers = make_headers(proxy_basic_auth=":".join(credentials)) if credentials else None
            return _with_own_connections(urllib3.ProxyManager(proxy, proxy_headers=headers, **options)).urlopen, base
        # Asked for once: to find the pool of a URL takes longer than to encode the request.
        pool = _with_own_connections(urllib3.PoolManager(**options)).connection_from_url(base)
        return pool.urlopen, urlsplit(base).path


class _Connection(HTTPConnection):
    """urllib3 would send under the limit of connecting, and does not report whether a request was sent completely."""

    _is_open = False

    def connect(self) -> None:
        self._is_open = False
        super().connect()
        self._is_open = True

    def send(self, data: Any) -> None:
        if self._is_open and self.sock is not None:
            self.sock.settimeout(max(_SENDING.end - time.monotonic(), 0.001))
        try:
            super().send(data)
        except OSError:
            _SENDING.is_cut = True
            raise


class _TlsConnection(_Connection, HTTPSConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except ssl.SSLError as failed:
            # An SSLError also comes after the request.
            raise NewConnectionError(self, f"TLS handshake failed: {failed}") from failed


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


_Manager = TypeVar("_Manager", bound=urllib3.PoolManager)


def _with_own_connections(manager: _Manager) -> _Manager:
    """The manager, whose connections have a request's whole time to send it, and fail with NewConnectionError until TLS is
    agreed on."""
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return manager


def _read(response: urllib3.BaseHTTPResponse, end: float) -> bytes:
    """The whole body; TransportError: it is still arriving at the end of the time."""
    parts: list[bytes] = []
    while part := response.read1(_CHUNK_BYTES):
        parts.append(part)
        if time.monotonic() > end:
            raise TransportError("the answer took too long", maybe_done=True)
    return b"".join(parts)
