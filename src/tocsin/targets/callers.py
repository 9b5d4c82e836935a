"""Who sends what: HTTP receivers get requests, NATS subjects get messages."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.model.subjects import is_subject_url
from tocsin.ports.http import Caller, Exchange, Invocation


class ByScheme:
    """A `tocsin.ports.http.Caller` that has one of two send a timer, by the scheme of its URL."""

    def __init__(self, http: Caller, nats: Caller) -> None:
        self._http = http
        self._nats = nats

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
