"""Failed authentication: how many failures an address may cause, and how many of them are logged."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from tocsin.rate_limit import RateLimit
from tocsin.web.http.errors import TooManyFailures

#: Failures that an address may cause in a burst, and seconds until it may cause another. A valid key never counts and is
#: never refused, so one client cannot lock out others behind the same address. Guessing is hopeless anyway: keys have
#: 256 random bits. The limit bounds the work and the log lines that a client with an invalid key causes.
_BURST = 20
_REFILL_S = 3.0
#: Addresses with a failure count; beyond it, the address that failed longest ago starts over.
_ADDRESSES_MAX = 10_000
#: Log lines per window, over all addresses; the next line has the number of those left out.
_LINES_MAX = 10
_LINES_WINDOW_S = 60.0
#: Providers assign a subscriber an IPv6 network with this prefix length.
_IPV6_PREFIX = 64

_log = structlog.get_logger("tocsin.access")


class Failed(Protocol):
    """Called for each failure with the reason: `unknown_key`, `expired_key` or `malformed`."""

    def __call__(self, reason: str) -> None: ...


class AuthFailures:
    """Failed authentications at one node. `failed` counts them."""

    def __init__(self, failed: Failed | None = None, now_s: Callable[[], float] = time.monotonic) -> None:
        self._failed = failed
        self._now_s = now_s
        self._log_limit = RateLimit(_LINES_MAX, _LINES_WINDOW_S, now_s)
        #: By address: failures left, and the time of that count; the latest failure last.
        self._left: dict[str, tuple[float, float]] = {}

    def failure(self, address: str, reason: str, where: str) -> int | None:
        """Records a failure; `where` is `api` or `pages`. If it was logged, the number of log lines left out before it; else
        None. Raises TooManyFailures if the address has exceeded its limit."""
        if self._failed is not None:
            self._failed(reason)
        suppressed = self._log_limit.grant()
        if suppressed is not None:
            _log.warning("authentication failed", address=address, reason=reason, where=where, suppressed=suppressed)
        source, now_s = _source(address), self._now_s()
        left, since_s = self._left.pop(source, (_BURST, now_s))
        left = min(_BURST, left + (now_s - since_s) / _REFILL_S)
        refused = left < 1
        self._left[source] = (left if refused else left - 1, now_s)
        if len(self._left) > _ADDRESSES_MAX:
            del self._left[next(iter(self._left))]
        if refused:
            raise TooManyFailures(
                "too many requests with an invalid key from this address; correct the key, then retry",
                retry_after_s=(1 - left) * _REFILL_S,
            )
        return suppressed


def _source(address: str) -> str:
    """What counts as one client: an IPv4 address, or the network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
