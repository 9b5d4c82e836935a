"""How other nodes reach this node."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from tocsin.administration import shared_secret, stored_secret
from tocsin.cluster.handshake import ClusterSecrets, mark_of_chosen, mark_of_stored
from tocsin.cluster.tls import PeerTls
from tocsin.model.setting_values import STORED_SECRET
from tocsin.ports.observer import Event
from tocsin.ports.store import Store
from tocsin.settings import Settings

_EVERY_ADDRESS = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True)
class Peering:
    """Where a node listens for other nodes (port 0: any free one) and the address it announces to them. `address` has
    no port if the port is the listener's."""

    host: str
    port: int
    address: str
    secrets: ClusterSecrets

    def announced(self, port: int) -> str:
        """The announced address; `port` is the listener's."""
        return self.address if _has_port(self.address) else f"{self.address}:{port}"


@dataclass(frozen=True, slots=True)
class Peers:
    """The socket at which other nodes reach this one, and what they need for it."""

    peering: Peering
    listener: socket.socket
    #: None: nodes connect without TLS.
    tls: PeerTls | None = None

    @property
    def address(self) -> str:
        """The announced address."""
        return self.peering.announced(self.listener.getsockname()[1])


def loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def tls_of(settings: Settings, observe: Callable[[Event], None]) -> PeerTls | None:
    """TLS between nodes; None without it. Raises ConfigError for files that can't be used."""
    files = settings.cluster_tls.files
    return None if files is None else PeerTls(files, settings.cluster_tls.name, observe)


async def secrets_of(settings: Settings, store: Store, *, create: bool = True) -> ClusterSecrets:
    """The secrets by which this node and others know one another: chosen ones, or the random one that the store keeps. What
    the store lacks is created; without `create` nothing is written, and stands for a secret that no node knows. Raises
    StoreError."""

    async def kept(name: str, size: int) -> str:
        fresh = secrets.token_hex(size)
        return await shared_secret(store, name, fresh) if create else await stored_secret(store, name) or fresh

    salt = await kept("cluster-salt", 16)

    async def secret_and_mark(chosen: str | None) -> tuple[str, str]:
        if chosen is None:
            stored = await kept("cluster", 32)
            return stored, mark_of_stored(stored, salt)
        return chosen, await asyncio.to_thread(mark_of_chosen, chosen, salt)

    current, mark = await secret_and_mark(settings.cluster_secret)
    if settings.cluster_secret_former is None:
        return ClusterSecrets(current, None, (mark,))
    chosen = None if settings.cluster_secret_former == STORED_SECRET else settings.cluster_secret_former
    former, former_mark = await secret_and_mark(chosen)
    return ClusterSecrets(current, former, (mark, former_mark))


def peering_of(settings: Settings, *, secrets: ClusterSecrets, worker: int = 0) -> Peering:
    """How this node connects to other nodes of its store, which know one of `secrets`.

    Unless `advertise` is set, the node announces its bind address. If that is every address, it announces the address
    from which it reaches the database, since the other nodes are probably there too; if the database is on this
    machine, it announces the host name.
    """
    if settings.advertise is not None:
        address = settings.advertise
    elif settings.host not in _EVERY_ADDRESS:
        address = _bracketed(settings.host)
    else:
        address = _bracketed(_address_towards(urlsplit(settings.store_url()).hostname) or socket.gethostname())
    port = settings.cluster_port + worker if settings.cluster_port else 0
    # An address that only this machine can reach needs no listener for others.
    host = "127.0.0.1" if _host_of(address) == "127.0.0.1" else settings.host
    return Peering(host, port, address, secrets)


def _address_towards(host: str | None) -> str | None:
    """The local address from which packets to the host are sent; None if the host is this machine or that is not known."""
    if not host:
        return None
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, proto) as probe:
            # Sends nothing: it only selects the route.
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
