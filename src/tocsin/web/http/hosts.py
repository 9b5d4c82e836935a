"""Which Host headers are accepted on requests without a key, and whether such a request may come through a proxy: the
protection against DNS rebinding, and against a proxy that exposes a server meant for its own machine only.

A page of a foreign site can make its own name resolve to this machine, and the browser then treats the page as this
server's. It cannot do so with an IP address, with `localhost`, or with a name that the operator configured.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlsplit

from tocsin.web.http.errors import Forbidden

#: Headers in which proxies name the client.
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
#: Cached values of the Host header that were accepted.
_ACCEPTED_MAX = 64


class Hosts:
    """`bound` is the address that the server listens on; `origins` are further origins under which people reach it, such as
    `https://tocsin.example`. `proxied`: requests without a key may come through a proxy."""

    def __init__(self, bound: str, origins: Iterable[str] = (), *, proxied: bool = False) -> None:
        self._proxied = proxied
        self._accepted: set[bytes] = set()
        split = [urlsplit(origin) for origin in origins]
        self._names = {"localhost", bound.lower(), *(parts.hostname or "" for parts in split)}
        self._secure = frozenset(parts.netloc.lower() for parts in split if parts.scheme == "https")

    def accepts(self, host: str | None) -> bool:
        """Whether this Host header names this server."""
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
        """Raises Forbidden for a request without a key whose Host header does not name this server, or that came through a
        proxy."""
        if not _FORWARDING.isdisjoint(headers):
            self.check_unforwarded(headers)
        sent = headers.get(b"host", b"")
        if sent in self._accepted:
            return
        host = sent.decode("latin-1")
        if not self.accepts(host):
            raise Forbidden(
                f"requests without an API key are not accepted for the host {host!r}; send a key, use the server's "
                "address, or add the host's origin to the setting ui.origins"
            )
        if len(self._accepted) < _ACCEPTED_MAX:
            self._accepted.add(sent)

    def check_unforwarded(self, headers: Collection[bytes]) -> None:
        """Raises Forbidden for a request that came through a proxy; `headers` are names in lower case."""
        if self._proxied or _FORWARDING.isdisjoint(headers):
            return
        name = min(_FORWARDING.intersection(headers)).decode()
        raise Forbidden(
            f"the request came through a proxy (header {name}), and this server requires no API key: create one with `tocsin "
            "keys create` and send it, or admit everybody who passes the proxy with the setting insecure"
        )

    def secure(self, host: str | None) -> bool:
        """Whether clients reach this host over https, through a proxy that terminates TLS."""
        return (host or "").lower() in self._secure


def _name(host: str | None) -> str | None:
    """The name or address in a Host header, without brackets and port."""
    if not host or len(host) > 300:
        return None
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 -- raises for an invalid port
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and not parts.username else None
