"""Keys that nobody knows: how many of them an address may try, and how much is said of it."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from tocsin.http.errors import TooManyFailures

#: Failures that an address may cause at once, and after which time it may cause another. A correct key counts for nothing
#: here and is never refused, so one client can't lock out others behind the same address; guessing is hopeless anyway, since
#: keys have 256 random bits. What the limit ends is the work and the noise of a client that goes on with a wrong key.
_BURST = 20
_REFILL_S = 3.0
#: Addresses that are remembered; beyond it the one that failed longest ago starts over.
_ADDRESSES_MAX = 10_000
#: Lines of the log in that time, over all addresses; the next one says how many were left out.
_LINES_MAX = 10
_LINES_WINDOW_S = 60.0
#: Providers give a subscriber this many bits of an IPv6 address.
_IPV6_PREFIX = 64

_log = structlog.get_logger("tocsin.access")


class Failed(Protocol):
    """Is called for each failure with the reason: `unknown_key`, `expired_key` or `malformed`."""

    def __call__(self, reason: str) -> None: ...


class Ration:
    """At most `most` of something in `window_s`, in windows that begin with the first one."""

    def __init__(self, most: int, window_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._window_s = window_s
        self._now_s = now_s
        self._begun_s = -window_s
        self._taken = 0
        self._left_out = 0

    def take(self) -> int | None:
        """How many were left out since the one before, if this one may pass; else None."""
        now_s = self._now_s()
        if now_s - self._begun_s >= self._window_s:
            self._begun_s, self._taken = now_s, 0
        if self._taken >= self._most:
            self._left_out += 1
            return None
        self._taken += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class Attempts:
    """Failures to authenticate at one node. `failed` counts them."""

    def __init__(self, failed: Failed | None = None, now_s: Callable[[], float] = time.monotonic) -> None:
        self._failed = failed
        self._now_s = now_s
        self._ration = Ration(_LINES_MAX, _LINES_WINDOW_S, now_s)
        #: Failures left, and when that was so; the one that failed last at the end.
        self._left: dict[str, tuple[float, float]] = {}

    def failure(self, address: str, reason: str, where: str) -> int | None:
        """Notes one; `where` is `api` or `pages`. When the log had a line for it, how many were left out before, for others
        who report it. Raises TooManyFailures where the address has had its share."""
        if self._failed is not None:
            self._failed(reason)
        left_out = self._ration.take()
        if left_out is not None:
            _log.warning("authentication failed", address=address, reason=reason, where=where, left_out=left_out)
        source, now_s = _source(address), self._now_s()
        left, since_s = self._left.pop(source, (_BURST, now_s))
        left = min(_BURST, left + (now_s - since_s) / _REFILL_S)
        refused = left < 1
        self._left[source] = (left if refused else left - 1, now_s)
        if len(self._left) > _ADDRESSES_MAX:
            del self._left[next(iter(self._left))]
        if refused:
            raise TooManyFailures(
                "too many requests with a wrong key came from this address; correct the key, and slow down",
                retry_after_s=(1 - left) * _REFILL_S,
            )
        return left_out


def _source(address: str) -> str:
    """What counts as one client: an IPv4 address, or the network of an IPv6 one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
