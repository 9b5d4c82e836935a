"""The address of the client behind a proxy."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence

_FORWARDED_FOR = b"x-forwarded-for"
#: An address with a port, or an IPv6 address in brackets: `192.0.2.7:443`, `[2001:db8::7]:443`.
_WITH_PORT = re.compile(r"\[([0-9a-fA-F:.]+)\](?::\d+)?|([0-9.]+):\d+")


def headers_by_name(sent: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers by name. Of those that were sent several times the last counts; but lines of X-Forwarded-For are one list,
    whose last line only the nearest proxy has written."""
    found = dict(sent)
    if len(found) < len(sent) and _FORWARDED_FOR in found:
        found[_FORWARDED_FOR] = b",".join(value for name, value in sent if name == _FORWARDED_FOR)
    return found


class Proxies:
    """`proxies` are the addresses and networks whose X-Forwarded-For header is trusted; from others it is ignored."""

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

    def _is_proxy(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._proxies)


def _without_port(hop: str) -> str:
    found = _WITH_PORT.fullmatch(hop)
    return hop if found is None else found[1] or found[2]
