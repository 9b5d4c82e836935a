"""Whether and how a node is to be reached by the others."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from tocsin.config import Settings

_EVERY_ADDRESS = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True)
class Peering:
    """Where a node listens for the others (port 0: any free one) and what it announces to them; `address` lacks its port
    where that is the listener's."""

    host: str
    port: int
    address: str
    secret: str

    def announced(self, port: int) -> str:
        """The address as others are told it; `port` is the listener's."""
        return self.address if _has_port(self.address) else f"{self.address}:{port}"


def loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def peering_of(settings: Settings, *, shared: bool, secret: str, worker: int = 0) -> Peering | None:
    """How this node meets others that know `secret`; None: its store is its alone, so there are none.

    What it announces, unless told: its bind address; where that is every address, the one from which it reaches the
    database, since that is where the others are, too; and where the database is on this machine, the host's name.
    """
    if not shared:
        return None
    if settings.advertise is not None:
        address = settings.advertise
    elif settings.host not in _EVERY_ADDRESS:
        address = _bracketed(settings.host)
    else:
        address = _bracketed(_address_towards(urlsplit(settings.store_url()).hostname) or socket.gethostname())
    port = settings.cluster_port + worker if settings.cluster_port else 0
    # Whom only this machine can reach need not listen for others.
    host = "127.0.0.1" if _host_of(address) == "127.0.0.1" else settings.host
    return Peering(host, port, address, secret)


def _address_towards(host: str | None) -> str | None:
    """From which address of this machine packets to the host leave; None if it is on this machine, or that isn't known."""
    if not host:
        return None
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, proto) as probe:
            # Nothing is sent: it only chooses the way.
            probe.connect(address)
            own = str(probe.getsockname()[0])
    except OSError:
        return None
    return None if loopback(own) else own


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _has_port(address: str) -> bool:
    return ":" in address.rpartition("]")[2]


def _host_of(address: str) -> str:
    return address.rpartition(":")[0] if _has_port(address) else address
