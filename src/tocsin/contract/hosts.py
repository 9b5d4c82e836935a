"""Which names this server answers browsers under: the guard against DNS rebinding.

A page of a foreign site can let its own name resolve to this machine, and then counts as this server's in the browser's
eyes. It can't do so with an IP address, nor with `localhost`, nor with a name that the operator gave.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit


class Hosts:
    """`bound` is the address that the server listens on, `origins` are further ones under which people reach it, such as
    `https://tocsin.example`."""

    def __init__(self, bound: str, origins: Iterable[str] = ()) -> None:
        split = [urlsplit(origin) for origin in origins]
        self._names = {"localhost", bound.lower(), *(parts.hostname or "" for parts in split)}
        self._secure = frozenset(parts.netloc.lower() for parts in split if parts.scheme == "https")

    def accepts(self, host: str | None) -> bool:
        """Whether a request with this Host header is meant for this server."""
        name = _name(host)
        if name is None:
            return False
        if name in self._names or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def secure(self, host: str | None) -> bool:
        """Whether people reach the server by https under this Host header, through something that ends TLS."""
        return (host or "").lower() in self._secure


def _name(host: str | None) -> str | None:
    """The name or address in a Host header, without brackets and port."""
    if not host or len(host) > 300:
        return None
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 -- raises for what is no port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and not parts.username else None
