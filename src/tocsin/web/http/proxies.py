"""The address of the client behind a proxy."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


class Proxies:
    """`proxies` are the addresses and networks whose X-Forwarded-For header is trusted; from others it is ignored."""

    def __init__(self, proxies: Iterable[str] = ()) -> None:
        self._proxies = [ipaddress.ip_network(proxy) for proxy in proxies]

    def address(self, client: tuple[str, int] | None, forwarded: bytes | None) -> str:
        """The client's address: the last one in the header that is not a trusted proxy's, or else the connection's. Empty if
        neither is known."""
        if client is None:
            return ""
        address = client[0]
        if not self._proxies:
            return address
        for hop in reversed((forwarded or b"").decode("latin-1").split(",")):
            if not self._is_proxy(address):
                break
            try:
                address = str(ipaddress.ip_address(hop.strip()))
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
