"""Which addresses may be called: the protection against server-side request forgery.

Checked twice. `check_url` checks the URL's text when a timer is created, for an early error. `refusal` decides for each
resolved address right before the connection, which then goes to exactly that address: a later change of the name's
addresses has no effect.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tocsin.http_client.target import Address, InvalidUrl, Origin, parse_url, split_authority
from tocsin.model.errors import ConfigError
from tocsin.model.setting import setting

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: IPv4 ranges outside the public Internet, the most specific name first.
_REFUSED_V4: tuple[tuple[ipaddress.IPv4Network, str], ...] = tuple(
    (ipaddress.IPv4Network(network), kind)
    for network, kind in (
        ("169.254.169.254/32", "a metadata"),
        ("100.100.100.200/32", "a metadata"),
        ("192.0.0.192/32", "a metadata"),
        ("168.63.129.16/32", "a metadata"),
        ("0.0.0.0/8", "an unspecified"),
        ("10.0.0.0/8", "a private"),
        ("100.64.0.0/10", "a shared (carrier-grade NAT)"),
        ("127.0.0.0/8", "a loopback"),
        ("169.254.0.0/16", "a link-local"),
        ("172.16.0.0/12", "a private"),
        ("192.0.0.0/24", "a reserved"),
        ("192.0.2.0/24", "a documentation"),
        ("192.88.99.0/24", "a reserved"),
        ("192.168.0.0/16", "a private"),
        ("198.18.0.0/15", "a benchmarking"),
        ("198.51.100.0/24", "a documentation"),
        ("203.0.113.0/24", "a documentation"),
        ("224.0.0.0/4", "a multicast"),
        ("240.0.0.0/4", "a reserved"),
    )
)
_REFUSED_V6: tuple[tuple[ipaddress.IPv6Network, str], ...] = tuple(
    (ipaddress.IPv6Network(network), kind)
    for network, kind in (
        ("fd00:ec2::254/128", "a metadata"),
        ("fd20:ce::254/128", "a metadata"),
        ("::/128", "an unspecified"),
        ("::1/128", "a loopback"),
        ("fc00::/7", "a private"),
        ("fe80::/10", "a link-local"),
        ("fec0::/10", "a private"),
        ("ff00::/8", "a multicast"),
        ("2001:db8::/32", "a documentation"),
        ("3fff::/20", "a documentation"),
    )
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_PROTOCOL_V6 = ipaddress.IPv6Network("2001::/23")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def _carried(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """The IPv4 addresses to which a packet for this IPv6 address would be translated or tunneled."""
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo
    elif address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


@lru_cache(maxsize=4_096)
def kind_refused(address: Address) -> str | None:
    """Why the address is refused, such as "a loopback"; None for an address on the public Internet."""
    if isinstance(address, ipaddress.IPv4Address):
        return next((kind for network, kind in _REFUSED_V4 if address in network), None)
    carried = list(_carried(address))
    for inner in carried:
        if (kind := kind_refused(inner)) is not None:
            return kind
    for network, kind in _REFUSED_V6:
        if address in network:
            return kind
    if carried and address.teredo is None:
        return None
    if address in _PROTOCOL_V6 or address not in _GLOBAL_V6:
        return "a reserved"
    return None


class _Rule(NamedTuple):
    network: Network | None
    name: str | None
    port: int | None

    def matches(self, address: Address, host: str, port: int) -> bool:
        if self.port is not None and self.port != port:
            return False
        if self.network is not None:
            # `in` is False, not an error, between the two versions of IP.
            return address in self.network
        return self.name == host.rstrip(".")


def _entries(entries: tuple[str, ...]) -> tuple[str, ...]:
    try:
        EgressPolicy(allow=entries)
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("egress.allow: ")) from None
    return entries


@dataclass(frozen=True, slots=True)
class EgressOptions:
    """Which addresses may be called, besides public ones."""

    allow: tuple[str, ...] = setting(
        (),
        "Addresses, networks and host names, each with or without a port, that callbacks and service calls may reach "
        "although they are not on the public Internet.",
        rule=_entries,
    )
    allow_private: bool | None = setting(
        None,
        "Allow callbacks and service calls to every loopback, private and link-local address. Unset: only if `host` "
        "is a loopback address and requests need no key.",
    )


class EgressPolicy:
    """Which addresses may be called: public ones always; others if `allow_private`, or if an entry of `allow` lists them.

    An entry is an address or network (`10.1.0.0/16`, `::1`), a host name (`hooks.internal`; with any address that
    it resolves to), or one of either with a port (`127.0.0.1:9000`, `[::1]:9000`, `hooks.internal:8080`). Raises ConfigError
    for anything else. `allow_private` changes when a server starts to require keys.
    """

    def __init__(self, allow_private: bool = False, allow: Sequence[str] = ()) -> None:
        self.allow_private = allow_private
        self._rules = tuple(_parse_rule(entry) for entry in allow)

    def check_url(self, url: str) -> str | None:
        """Why a timer with this callback URL is refused, phrased to follow the field's name; None if it is accepted.

        Checks only the text: a name may still resolve to a forbidden address, and the attempt is refused then.
        """
        try:
            origin = parse_url(url).origin
        except InvalidUrl as error:
            return str(error)
        return None if self.allow_private else self._check_origin(origin)

    def refusal(self, ip: str, host: str, port: int) -> str | None:
        """Why a connection to address `ip`, to which `host` resolved, and `port` is refused, phrased to follow the host; None
        if it is permitted. It does not reveal where a name leads, which whoever creates timers need not know."""
        if self.allow_private:
            return None
        address = ipaddress.ip_address(ip)
        kind = kind_refused(address)
        if kind is None:
            return None
        plain = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        for rule in self._rules:
            if rule.matches(address, host, port) or (plain is not None and rule.matches(plain, host, port)):
                return None
        if host != ip and not _is_localhost(host):
            return (
                "leads to an address that this server does not call; it calls public ones, and what egress.allow lists"
            )
        text = f"leads to {kind} address ({ip}), which this server does not call; use a public address"
        # Whoever reaches a metadata service has the machine's credentials.
        return text if kind == "a metadata" else f"{text}, or add {host} or its network to egress.allow"

    def _check_origin(self, origin: Origin) -> str | None:
        if origin.is_address:
            return self.refusal(origin.host, origin.host, origin.port)
        if _is_localhost(origin.host):
            refusals = [self.refusal(ip, origin.host, origin.port) for ip in ("127.0.0.1", "::1")]
            return refusals[0] if all(refusals) else None
        return None


def _is_localhost(host: str) -> bool:
    """Whether the name is that of this machine everywhere (RFC 6761 section 6.3)."""
    name = host.rstrip(".")
    return name == "localhost" or name.endswith(".localhost")


def _parse_rule(entry: str) -> _Rule:
    try:
        return _Rule(ipaddress.ip_network(entry, strict=False), None, None)
    except ValueError:
        pass  # Not a network: a name, or something with a port.
    try:
        host, port, address = split_authority(entry)
    except InvalidUrl as error:
        raise ConfigError(f"egress.allow: {entry!r} {error}") from error
    if address is not None:
        return _Rule(ipaddress.ip_network(address), None, port)
    return _Rule(None, host.rstrip("."), port)
