"""Who sends what: HTTP receivers get requests, NATS subjects get messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tocsin.model.answer import EGRESS_REFUSED, Refused
from tocsin.model.subjects import SCHEME, is_subject_url
from tocsin.ports.http import Caller, Exchange, Invocation


class ByScheme:
    """A `tocsin.ports.http.Caller` that has one of two send a timer, by the scheme of its URL."""

    def __init__(self, http: Caller, nats: Caller | None) -> None:
        """Without `nats`, timers that name a subject are refused: another node may have it, or this one later."""
        self._http = http
        self._nats = nats or _NoNats()

    def destination(self, url: str) -> str:
        """The key of the URL's concurrency limit."""
        return self._of(url).destination(url)

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Starts the attempt."""
        self._of(invocation.url).invoke(invocation, done)

    async def close(self) -> None:
        """Closes both."""
        await self._nats.close()
        await self._http.close()

    def _of(self, url: str) -> Caller:
        return self._nats if is_subject_url(url) else self._http


class _NoNats:
    """Stands for a NATS server that the settings do not name."""

    def destination(self, url: str) -> str:
        return SCHEME

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        refused = Refused(EGRESS_REFUSED, "the URL names a NATS subject, and nats_url is not set on this node")
        asyncio.get_running_loop().call_soon(done, Exchange(refused, None, 0))

    async def close(self) -> None:
        """Nothing is open."""
