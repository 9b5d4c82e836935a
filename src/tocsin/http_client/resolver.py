"""Resolves host names to addresses, with a bounded cache."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import pycares

from tocsin.http_client.faults import ResolverFull, check_descriptors
from tocsin.http_client.limits import CallbackLimits

#: Returns the addresses of a host name, in order of preference. Raises OSError; NoSuchName if the name certainly has none.
Lookup = Callable[[str], Awaitable[Sequence[str]]]

#: Tries of a query to a server that doesn't respond; the pauses double, starting at a few of its usual response times.
_TRIES = 4
#: Queries whose answers nobody waits for any more, before they are ended: all at once, since the library can end none alone.
_ABANDONED_MAX = 1_024
#: Addresses used per name: each is checked and tried for every connection, and a name may have thousands.
_ADDRESSES_MAX = 16
#: How long a query may take before a stale cached answer is used (RFC 8767 section 5 recommends 1.8 s).
_STALE_ANSWER_AFTER_S = 1.0

_NO_SUCH_NAME = frozenset(
    {pycares.errno.ARES_ENOTFOUND, pycares.errno.ARES_ENODATA, pycares.errno.ARES_EBADNAME, pycares.errno.ARES_ENONAME}
)


class NoSuchName(OSError):
    """The name has no address, by an authoritative answer."""


class _Ended(OSError):
    """The query was ended without an answer."""


class SystemLookup:
    """Resolves by the system's configuration: hosts file, name servers, search domains; sorted by RFC 6724.

    Pending queries take neither a thread nor a descriptor each, so that names whose servers don't respond never delay
    others. Only the modules `files` and `dns` of the name service switch are used. `servers` and `domains` replace the
    system's. A call that is cancelled leaves its query to the library, which gives it up after many seconds: once there are
    many of these, all are ended, and the others begin again.
    """

    def __init__(self, servers: Sequence[str] | None = None, domains: Sequence[str] | None = None) -> None:
        self._servers = servers
        self._domains = domains
        self._channel: pycares.Channel | None = None
        self._abandoned: set[asyncio.Future[Sequence[str]]] = set()
        # How often all queries were ended.
        self._endings = 0

    async def __call__(self, host: str) -> Sequence[str]:
        """The addresses of `host`, in order of preference. Raises OSError, NoSuchName."""
        while True:
            endings = self._endings
            try:
                answer = self._ask(self._open_channel(), host)
            except (pycares.AresError, UnicodeError) as error:
                check_descriptors()
                raise OSError(f"not resolvable: {error}") from error
            try:
                return await answer
            except _Ended:
                if endings == self._endings:
                    raise
            except asyncio.CancelledError:
                if answer.cancelled():
                    self._abandon(answer)
                raise

    def _ask(self, channel: pycares.Channel, host: str) -> asyncio.Future[Sequence[str]]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def resolved(result: Any, error: int | None) -> None:
            # Runs in the library's thread, or in this one before `getaddrinfo` or `cancel` returns.
            with contextlib.suppress(RuntimeError):  # The loop is closed.
                loop.call_soon_threadsafe(self._resolved, answer, result, error)

        channel.getaddrinfo(host, None, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM, callback=resolved)
        return answer

    def _resolved(self, answer: asyncio.Future[Sequence[str]], result: Any, error: int | None) -> None:
        self._abandoned.discard(answer)
        _settle(answer, result, error)

    def _abandon(self, answer: asyncio.Future[Sequence[str]]) -> None:
        self._abandoned.add(answer)
        if len(self._abandoned) >= _ABANDONED_MAX and self._channel is not None:
            self._abandoned.clear()
            self._endings += 1
            self._channel.cancel()

    def close(self) -> None:
        """Cancels every query."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _open_channel(self) -> pycares.Channel:
        if self._channel is None:
            # The channel starts a thread: created only when a name has to be resolved.
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
        # Without a free descriptor the library reports that no server could be reached.
        check_descriptors()
    except OSError as exhausted:
        answer.set_exception(exhausted)
        return
    if error == pycares.errno.ARES_ECANCELLED:
        answer.set_exception(_Ended("the query was ended"))
        return
    kind = NoSuchName if error in _NO_SUCH_NAME else OSError
    answer.set_exception(kind(pycares.errno.strerror(error)))


class _Known(NamedTuple):
    addresses: Sequence[str]
    fresh_until_ns: int


class _Query:
    """A query, and how many wait for its answer."""

    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Task[Sequence[str]]) -> None:
        self.task, self.waiting = task, 0


class Resolver:
    """Resolves names; concurrent lookups of one name share a query. Failures are not cached.

    A stale cached answer is used if a query takes long or fails, unless the answer is that the name does not exist. A
    caller that is cancelled does not cancel the query, whose answer others may use; but a query that nobody waits for gives
    way to others once there are as many as may be, so that names that don't resolve take no room from those that do.
    """

    def __init__(self, limits: CallbackLimits, lookup: Lookup) -> None:
        self._limits = limits
        self._lookup = lookup
        self._known: dict[str, _Known] = {}
        self._queries: dict[str, _Query] = {}

    @property
    def resolving(self) -> int:
        """Names being resolved."""
        return len(self._queries)

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses of `host`, in order of preference. Raises OSError if there are none, ResolverFull if the limit of
        concurrent lookups is reached."""
        now_ns = time.monotonic_ns()
        known = self._known.get(host)
        if known is not None and now_ns < known.fresh_until_ns:
            return known.addresses
        usable = known is not None and now_ns < known.fresh_until_ns + self._limits.dns_stale_max_us * 1_000
        query = self._queries.get(host)
        if query is None:
            if len(self._queries) >= self._limits.dns_lookups_max and not self._make_room():
                if known is not None and usable:
                    return known.addresses
                raise ResolverFull(f"{len(self._queries)} names are being resolved, the maximum")
            query = self._begin(host)
        query.waiting += 1
        try:
            if known is None or not usable:
                return await asyncio.shield(query.task)
            await asyncio.wait({query.task}, timeout=_STALE_ANSWER_AFTER_S)
        finally:
            query.waiting -= 1
        if not query.task.done():
            return known.addresses
        try:
            return query.task.result()
        except NoSuchName:
            raise
        except OSError:
            return known.addresses

    def close(self) -> None:
        """Cancels all queries."""
        for query in self._queries.values():
            query.task.cancel()

    def _begin(self, host: str) -> _Query:
        query = self._queries[host] = _Query(asyncio.get_running_loop().create_task(self._ask(host)))

        def answered(task: asyncio.Task[Sequence[str]]) -> None:
            # One that gave way may have been replaced.
            if self._queries.get(host) is query:
                del self._queries[host]
            if not task.cancelled():
                task.exception()  # Callers raise it; marks it as retrieved if none is left.

        query.task.add_done_callback(answered)
        return query

    def _make_room(self) -> bool:
        """Ends the queries that nobody waits for; whether there are any."""
        unwanted = [host for host, query in self._queries.items() if not query.waiting]
        for host in unwanted:
            self._queries.pop(host).task.cancel()
        return bool(unwanted)

    async def _ask(self, host: str) -> Sequence[str]:
        try:
            addresses = (await self._lookup(host))[:_ADDRESSES_MAX]
            if not addresses:
                raise NoSuchName("the name has no address")
        except NoSuchName:
            # Otherwise a later failure would bring the former addresses back.
            self._known.pop(host, None)
            raise
        self._known.pop(host, None)
        while len(self._known) >= self._limits.dns_names_cached_max:
            del self._known[next(iter(self._known))]
        self._known[host] = _Known(addresses, time.monotonic_ns() + self._limits.dns_ttl_us * 1_000)
        return addresses
