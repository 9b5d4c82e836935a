"""Where a request comes from, and for which host: the client's address behind proxies, and for requests without a key, which
Host headers are accepted and whether the request may come through a proxy.

This protects against DNS rebinding, and against a proxy that exposes a server meant for its own machine only. A page of a
foreign site can make its own name resolve to this machine, and the browser then treats the page as this server's. It cannot
do so with an IP address, with `localhost`, or with a name that the operator configured.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from tocsin.web.http.errors import Forbidden

_FORWARDED_FOR = b"x-forwarded-for"
#: An address with a port, or an IPv6 address in brackets: `192.0.2.7:443`, `[2001:db8::7]:443`.
_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.]+)\](?::\d+)?|([0-9.]+):\d+")
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


def url_of(host: str | None, *, secure: bool) -> str:
    """The URL of this server as the client knows it that sent this Host header."""
    return f"{'https' if secure else 'http'}://{host or 'localhost'}"


def is_https(forwarded_proto: bytes | None) -> bool:
    """Whether this X-Forwarded-Proto header has it that the client uses https. Of several proxies the first added to it
    knows."""
    return (forwarded_proto or b"").split(b",")[0].strip().lower() == b"https"


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


def headers_by_name(sent: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers by name. Of those that were sent several times the last counts; but lines of X-Forwarded-For are one list,
    whose last line only the nearest proxy has written."""
    found = dict(sent)
    if len(found) < len(sent) and _FORWARDED_FOR in found:
        found[_FORWARDED_FOR] = b",".join(value for name, value in sent if name == _FORWARDED_FOR)
    return found


def is_of_host(origin: str | None, host: str) -> bool:
    """Whether the Origin header, if there is one, names this host."""
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        # No URL, such as `http://[`.
        return False


class Proxies:
    """`proxies` are the addresses and networks whose X-Forwarded-For and X-Forwarded-Proto headers are trusted; from others
    they are ignored."""

    def __init__(self, proxies: Iterable[str] = ()) -> None:
        self._proxies = [ipaddress.ip_network(proxy) for proxy in proxies]

    def address(self, client: tuple[str, int] | None, forwarded: bytes | None) -> str:
        """The client's address: the last one in `forwarded` that is not a trusted proxy's, or else the connection's. Empty if
        neither is known. `forwarded` has all lines of X-Forwarded-For (`headers_by_name`)."""
        if client is None:
            return ""
        address = client[0]
        if not self._proxies:
            return address
        for hop in reversed((forwarded or b"").decode("latin-1").split(",")):
            if not self._is_proxy(address):
                break
            try:
                address = str(ipaddress.ip_address(_without_port(hop.strip())))
            except ValueError:
                # Not an address: nothing before it can be trusted.
                break
        return address

    def secure(self, client: tuple[str, int] | None, forwarded_proto: bytes | None) -> bool:
        """Whether a trusted proxy has it that the client uses https; `client` is the connection's."""
        return client is not None and is_https(forwarded_proto) and self._is_proxy(client[0])

    def _is_proxy(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._proxies)


def _without_port(hop: str) -> str:
    found = _WITH_PORT.fullmatch(hop)
    return hop if found is None else found[1] or found[2]
