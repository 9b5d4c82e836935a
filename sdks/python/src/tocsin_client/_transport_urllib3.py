"""Sends requests with urllib3, on connections that are kept."""

from __future__ import annotations

import ssl
import time

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    EmptyPoolError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
)
from urllib3.util import Timeout

from tocsin_client._core.steps import Reply, Result, Send, Steps
from tocsin_client._error_bases import TransportError

CONNECTIONS_PER_HOST = 64
#: Below the 75 s after which the server closes idle connections.
IDLE_S_MAX = 60.0
_CHUNK_BYTES = 65_536
#: The server can't have received the request.
_NOT_SENT = (ConnectTimeoutError, EmptyPoolError, NewConnectionError, NameResolutionError)


class Urllib3Transport:
    """Blocking; any number of threads may share it."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._pools = urllib3.PoolManager(
            maxsize=CONNECTIONS_PER_HOST, block=True, retries=False, ssl_context=ssl_context
        )
        self._used_at = time.monotonic()

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
        """Closes the connections."""
        self._pools.clear()

    def _send(self, step: Send) -> Reply:
        now = time.monotonic()
        if now - self._used_at > IDLE_S_MAX:
            self._pools.clear()
        self._used_at = now
        end = now + step.timeout_s
        try:
            response = self._pools.request(
                step.method,
                step.url,
                body=step.body,
                headers=dict(step.headers),
                timeout=Timeout(connect=step.connect_timeout_s, total=step.timeout_s),
                redirect=False,
                preload_content=False,
                # Waiting for a free connection is part of the time, too.
                pool_timeout=step.timeout_s,
            )
            try:
                body = _read(response, end)
            except BaseException:
                response.close()  # the rest of the answer makes the connection useless
                raise
            response.release_conn()
        except HTTPError as failed:
            raise TransportError(
                f"{step.method} {step.url}: {failed}", maybe_done=not isinstance(failed, _NOT_SENT)
            ) from failed
        return Reply(response.status, {name.lower(): value for name, value in response.headers.items()}, body)


def _read(response: urllib3.BaseHTTPResponse, end: float) -> bytes:
    """The whole body; TransportError: it is still arriving at the end of the time."""
    parts: list[bytes] = []
    while part := response.read1(_CHUNK_BYTES):
        parts.append(part)
        if time.monotonic() > end:
            raise TransportError("the answer took too long", maybe_done=True)
    return b"".join(parts)
