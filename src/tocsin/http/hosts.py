"""Under which names this server answers whoever shows no key, and whether a proxy may stand between: the guard against DNS
rebinding, and against a proxy that opens a server to everybody that was meant for its own machine.

A page of a foreign site can let its own name resolve to this machine, and then counts as this server's in the browser's
eyes. It can't do so with an IP address, nor with `localhost`, nor with a name that the operator gave.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlsplit

from tocsin.http.errors import Forbidden

#: Headers by which proxies name those for whom they ask.
_FORWARDING = frozenset(
    {
        b"forwarded",
        b"via",
        b"x-real-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"true-client-ip",
        b"cf-connecting-ip",
        b"x-envoy-external-address",
        b"x-original-forwarded-for",
        b"x-original-host",
        b"x-forwarded",
        *(b"x-forwarded-" + what for what in (b"for", b"host", b"proto", b"port", b"server", b"by", b"scheme", b"ssl")),
    }
)
#: Values of the Host header that were accepted are remembered, up to this many.
_ACCEPTED_MAX = 64


class Hosts:
    """`bound` is the address that the server listens on, `origins` are further ones under which people reach it, such as
    `https://tocsin.example`. `proxied`: everybody may come in, also through a proxy."""

    def __init__(self, bound: str, origins: Iterable[str] = (), *, proxied: bool = False) -> None:
        self._proxied = proxied
        self._accepted: set[bytes] = set()
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

    def check_keyless(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises Forbidden, with the mend, for a request without a key that is not meant for this server, or that a proxy
        sent on behalf of somebody."""
        if not _FORWARDING.isdisjoint(headers):
            self.check_unforwarded(headers)
        sent = headers.get(b"host", b"")
        if sent in self._accepted:
            return
        host = sent.decode("latin-1")
        if not self.accepts(host):
            raise Forbidden(
                f"requests without an API key are not answered under the name {host!r}; send a key, use the server's "
                "address, or name it in the setting ui.origins"
            )
        if len(self._accepted) < _ACCEPTED_MAX:
            self._accepted.add(sent)

    def check_unforwarded(self, headers: Collection[bytes]) -> None:
        """The same for a proxy alone; `headers` are names in lower case."""
        if self._proxied or _FORWARDING.isdisjoint(headers):
            return
        name = min(_FORWARDING.intersection(headers)).decode()
        raise Forbidden(
            f"this came through a proxy (header {name}), and this server asks nobody for an API key: make one with `tocsin "
            "keys create` and send it, or let in everybody who gets through the proxy with the setting insecure"
        )

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
