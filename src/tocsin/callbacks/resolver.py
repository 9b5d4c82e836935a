"""Names to addresses, with a bounded memory."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import pycares

from tocsin.callbacks.faults import ResolverFull, check_descriptors
from tocsin.callbacks.limits import CallbackLimits

#: Returns the addresses of a host name, the preferred first. Raises OSError, and NoSuchName when it certainly has none.
Lookup = Callable[[str], Awaitable[Sequence[str]]]

#: How often a question is put to a server that doesn't answer it; the pauses double, the first is a few of its usual times.
_TRIES = 4
#: Addresses of one name that are used: each is checked and tried at every connection, and a name may have thousands.
_ADDRESSES_MAX = 16
#: With an outdated answer at hand, how long a new one is waited for (RFC 8767 section 5 recommends 1.8 s).
_STALE_ANSWER_AFTER_S = 1.0

_NO_SUCH_NAME = frozenset(
    {pycares.errno.ARES_ENOTFOUND, pycares.errno.ARES_ENODATA, pycares.errno.ARES_EBADNAME, pycares.errno.ARES_ENONAME}
)


class NoSuchName(OSError):
    """The name has no address, by the word of whoever is responsible for it."""


class SystemLookup:
    """Asks as the system is set up to: hosts file, name servers, search domains; in its order of preference (RFC 6724).

    Names that nobody answers for take up neither a thread nor a descriptor each, so they never keep others waiting.
    Modules of the name service switch other than `files` and `dns` are not asked. `servers` and `domains` replace the
    system's.
    """

    def __init__(self, servers: Sequence[str] | None = None, domains: Sequence[str] | None = None) -> None:
        self._servers = servers
        self._domains = domains
        self._channel: pycares.Channel | None = None

    async def __call__(self, host: str) -> Sequence[str]:
        """See Lookup."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def resolved(result: Any, error: int | None) -> None:
            # In the library's thread, or in this one before `getaddrinfo` returns.
            with contextlib.suppress(RuntimeError):  # The loop is closed: nobody waits any more.
                loop.call_soon_threadsafe(_settle, answer, result, error)

        try:
            channel = self._open_channel()
            channel.getaddrinfo(host, None, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM, callback=resolved)
        except (pycares.AresError, UnicodeError) as error:
            check_descriptors()
            raise OSError(f"not resolvable: {error}") from error
        return await answer

    def close(self) -> None:
        """Gives up every question."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _open_channel(self) -> pycares.Channel:
        if self._channel is None:
            # It starts a thread: only if any name has to be resolved.
            check_descriptors()
            self._channel = pycares.Channel(servers=self._servers, domains=self._domains, tries=_TRIES)
        return self._channel


def _settle(answer: asyncio.Future[Sequence[str]], result: Any, error: int | None) -> None:
    if answer.done():
        return
    if error is None:
        found = (node.addr[0] for node in result.nodes)
        answer.set_result(list(dict.fromkeys(ip.decode() if isinstance(ip, bytes) else ip for ip in found)))
        return
    try:
        # Without one it reports that no server could be reached.
        check_descriptors()
    except OSError as exhausted:
        answer.set_exception(exhausted)
        return
    kind = NoSuchName if error in _NO_SUCH_NAME else OSError
    answer.set_exception(kind(pycares.errno.strerror(error)))


class _Known(NamedTuple):
    addresses: Sequence[str]
    fresh_until_ns: int


class Resolver:
    """Resolves names; simultaneous questions for one name are asked once. Failures are not remembered.

    An outdated answer is used when a new one doesn't come soon, or not at all, unless the name is said to be gone. A caller
    that is cancelled doesn't cancel the question, which others may wait for.
    """

    def __init__(self, limits: CallbackLimits, lookup: Lookup) -> None:
        self._limits = limits
        self._lookup = lookup
        self._known: dict[str, _Known] = {}
        self._asked: dict[str, asyncio.Task[Sequence[str]]] = {}

    @property
    def resolving(self) -> int:
        """Names that are being resolved."""
        return len(self._asked)

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses of `host`, the preferred first. Raises OSError when there are none, ResolverFull when the name wasn't
        asked for."""
        now_ns = time.monotonic_ns()
        known = self._known.get(host)
        if known is not None and now_ns < known.fresh_until_ns:
            return known.addresses
        usable = known is not None and now_ns < known.fresh_until_ns + self._limits.dns_stale_max_us * 1_000
        question = self._asked.get(host)
        if question is None:
            if len(self._asked) >= self._limits.dns_lookups_max:
                if known is not None and usable:
                    return known.addresses
                raise ResolverFull(f"{len(self._asked)} names are being resolved")
            question = asyncio.get_running_loop().create_task(self._ask(host))
            self._asked[host] = question
            question.add_done_callback(lambda task: self._answered(host, task))
        if known is None or not usable:
            return await asyncio.shield(question)
        await asyncio.wait({question}, timeout=_STALE_ANSWER_AFTER_S)
        if not question.done():
            return known.addresses
        try:
            return question.result()
        except NoSuchName:
            raise
        except OSError:
            return known.addresses

    def close(self) -> None:
        """Gives up what is being asked."""
        for question in self._asked.values():
            question.cancel()

    async def _ask(self, host: str) -> Sequence[str]:
        addresses = (await self._lookup(host))[:_ADDRESSES_MAX]
        if not addresses:
            raise NoSuchName("the name has no address")
        self._known.pop(host, None)
        while len(self._known) >= self._limits.dns_names_cached_max:
            del self._known[next(iter(self._known))]
        self._known[host] = _Known(addresses, time.monotonic_ns() + self._limits.dns_ttl_us * 1_000)
        return addresses

    def _answered(self, host: str, task: asyncio.Task[Sequence[str]]) -> None:
        del self._asked[host]
        if not task.cancelled():
            task.exception()  # Whoever waits has it too; a question that nobody waits for any more may fail unheard.
