"""Names to addresses, with a short memory."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Sequence

from tocsin.callbacks.limits import CallbackLimits

#: Asks for the addresses of a host name, the preferred first. Raises OSError when it has none.
Lookup = Callable[[str], Awaitable[Sequence[str]]]


async def system_lookup(host: str) -> Sequence[str]:
    """What the system's resolver answers (hosts file, DNS), in its order of preference (RFC 6724)."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class Resolver:
    """Resolves names; simultaneous questions for one name are asked once. Failures are not remembered.

    A caller that is cancelled doesn't cancel the question, which others may wait for.
    """

    def __init__(self, limits: CallbackLimits, lookup: Lookup = system_lookup) -> None:
        self._limits = limits
        self._lookup = lookup
        self._known: dict[str, tuple[int, Sequence[str]]] = {}
        self._asked: dict[str, asyncio.Task[Sequence[str]]] = {}

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses of `host`, the preferred first. Raises OSError when there are none."""
        known = self._known.get(host)
        if known is not None and known[0] > time.monotonic_ns():
            return known[1]
        question = self._asked.get(host)
        if question is None:
            question = asyncio.get_running_loop().create_task(self._ask(host))
            self._asked[host] = question
            question.add_done_callback(lambda task: self._answered(host, task))
        return await asyncio.shield(question)

    def close(self) -> None:
        """Gives up what is being asked."""
        for question in self._asked.values():
            question.cancel()

    async def _ask(self, host: str) -> Sequence[str]:
        try:
            addresses = await self._lookup(host)
        except UnicodeError as error:
            raise OSError(f"not a resolvable name: {error}") from error
        if not addresses:
            raise OSError("the name has no address")
        self._known.pop(host, None)
        while len(self._known) >= self._limits.dns_names_cached_max:
            del self._known[next(iter(self._known))]
        self._known[host] = (time.monotonic_ns() + self._limits.dns_ttl_us * 1_000, addresses)
        return addresses

    def _answered(self, host: str, task: asyncio.Task[Sequence[str]]) -> None:
        del self._asked[host]
        if not task.cancelled():
            task.exception()  # Whoever waits has it too; a question that nobody waits for any more may fail unheard.
