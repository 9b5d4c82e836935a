"""Whether and how a node is to be reached by the others."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from tocsin.config import Settings
from tocsin.model.errors import ConfigError

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
    """Whether a bind address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def peering_of(settings: Settings, *, shared: bool, worker: int = 0) -> Peering | None:
    """How this node meets others; None: it works alone. ConfigError where it was told to meet others on a network, and has
    no secret to know them by."""
    if not shared:
        return None
    port = settings.cluster_port + worker if settings.cluster_port else 0
    private = loopback(settings.host)
    if settings.cluster_secret is None:
        told = settings.advertise
        if told is not None and not loopback(_host_of(told)):
            raise ConfigError(
                f"advertise: {told} is for nodes on other machines, which have to prove that they belong here; give all of "
                "them the same secret (cluster.secret, TOCSIN_CLUSTER_SECRET)"
            )
        return Peering(settings.host, port, told or _bracketed(settings.host), "") if private else None
    if settings.advertise is not None:
        address = settings.advertise
    else:
        address = socket.gethostname() if settings.host in _EVERY_ADDRESS else _bracketed(settings.host)
    # Whom only this machine can reach need not listen for others.
    host = "127.0.0.1" if _host_of(address) == "127.0.0.1" else settings.host
    return Peering(host, port, address, settings.cluster_secret)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _has_port(address: str) -> bool:
    return ":" in address.rpartition("]")[2]


def _host_of(address: str) -> str:
    return address.rpartition(":")[0] if _has_port(address) else address
