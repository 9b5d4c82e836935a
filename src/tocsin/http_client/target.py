"""Parsing of callback URLs: which are accepted, and their parts in wire form.

Deliberately stricter than browsers. Input that two parsers might read differently (control characters, backslashes,
credentials before the host) is refused, so that the checked host is the host that is called.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from tocsin.ports.http import Tls

#: Characters of a callback URL.
URL_CHARS_MAX = 2_048

#: Characters of a host, with the dot at its end.
_HOST_CHARS_MAX = 254

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE | re.DOTALL)
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f-\xa0\\]")
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::(\d{0,5}))?", re.ASCII)
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
_NUMERIC = re.compile(r"(?:.*\.)?(?:\d+|0x[0-9a-f]*)\.?", re.ASCII)
_PORTS = {"http": 80, "https": 443}
_PRINTABLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))


class InvalidUrl(ValueError):
    """The URL can't be called; the message has the reason, and what is accepted."""


class Origin(NamedTuple):
    """Scheme, host and port.

    `host` is lower-case ASCII, without brackets; `is_address` means that it is an IP address, not a name.
    `destination` is the key by which concurrency is limited and connections are shared. `tls` replaces the client's own.
    """

    scheme: str
    host: str
    port: int
    is_address: bool
    destination: str
    tls: ssl.SSLContext | None = None


class Target(NamedTuple):
    """The target of a request: `path` includes the query; `host_header` omits the scheme's default port."""

    origin: Origin
    path: str
    host_header: str


def parse_url(url: str) -> Target:
    """The target of a callback URL. Fragments are dropped, non-ASCII is encoded. Raises InvalidUrl."""
    if len(url) > URL_CHARS_MAX:
        raise InvalidUrl(f"has {len(url)} characters; at most {URL_CHARS_MAX} are accepted")
    if _AMBIGUOUS.search(url):
        raise InvalidUrl("contains a space, control character or backslash; percent-encode it")
    match = _URL.fullmatch(url.partition("#")[0])
    if match is None:
        raise InvalidUrl("is not an http or https URL; write it as https://host/path")
    origin, host_header = parse_origin(match[1].lower(), match[2])
    path = match[3]
    if not path.isascii():
        try:
            path = quote(path, safe=_PRINTABLE_ASCII)
        except UnicodeEncodeError:
            raise InvalidUrl("contains a lone surrogate") from None
    if not path.startswith("/"):
        path = "/" + path
    return Target(origin, path, host_header)


def secured(origin: Origin, tls: Tls) -> Origin:
    """The origin with connections that are secured by `tls`, and shared with no request of another one."""
    return origin._replace(destination=f"{origin.destination} {tls.key}", tls=tls.context)


@lru_cache(maxsize=1_024)
def parse_origin(scheme: str, authority: str) -> tuple[Origin, str]:
    """The origin of `host[:port]` and its Host header. Raises InvalidUrl."""
    host, port, address = split_authority(authority)
    shown = f"[{host}]" if isinstance(address, ipaddress.IPv6Address) else host
    host_header = shown if port in (None, _PORTS[scheme]) else f"{shown}:{port}"
    actual = _PORTS[scheme] if port is None else port
    return Origin(scheme, host, actual, address is not None, f"{scheme}://{shown}:{actual}"), host_header


def split_authority(authority: str) -> tuple[str, int | None, Address | None]:
    """Host, port (if given) and address (if the host is an IP literal, in any of its spellings).

    Raises InvalidUrl for credentials, for a bad port and for what is neither a name nor an address.
    """
    if "@" in authority:
        raise InvalidUrl("contains credentials before the host; send them in a header")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise InvalidUrl("has an invalid host or port; write it as host:port")
    host, address = _host(match[1])
    port = None
    if match[2]:
        port = int(match[2])
        if not 1 <= port <= 65_535:
            raise InvalidUrl(f"has port {port}; ports are 1 to 65535")
    return host, port, address


def _host(text: str) -> tuple[str, Address | None]:
    if text.startswith("["):
        try:
            literal = ipaddress.IPv6Address(text[1:-1])
        except ValueError:
            raise InvalidUrl(f"has the host {text}, which is not an IPv6 address") from None
        if literal.scope_id is not None:
            raise InvalidUrl("has an IPv6 address with a zone; leave the zone out")
        return str(literal), literal
    host = text.lower()
    if len(host) > _HOST_CHARS_MAX:
        # Checked before encoding, which takes quadratic time.
        raise InvalidUrl(f"has a host of {len(host)} characters; at most {_HOST_CHARS_MAX} are accepted")
    if not host.isascii():
        # Also maps look-alikes such as full-width digits to digits, for the checks below.
        try:
            host = host.encode("idna").decode("ascii").lower()
        except UnicodeError:
            raise InvalidUrl(f"has the host {text}, which is not a host name") from None
    if not host:
        raise InvalidUrl("has no host; write it as https://host/path")
    if len(host) > _HOST_CHARS_MAX or _NAME.fullmatch(host) is None:
        raise InvalidUrl(f"has the host {text}, which is not a host name")
    if _NUMERIC.fullmatch(host):
        # getaddrinfo accepts 127.1, 0x7f000001 and 2130706433 as addresses, by the rules of inet_aton.
        try:
            address = ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
        except OSError:
            raise InvalidUrl(f"has the host {text}, which is not a host name or an IPv4 address") from None
        return str(address), address
    return host, None
