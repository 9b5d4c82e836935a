"""The address of a keyspace, and the limits of requests to it."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from tocsin.model.errors import ConfigError

#: The layout of the table that this release writes.
LAYOUT = 1
#: The oldest release whose SERIAL reads are linearizable and that publishes its settings in tables.
OLDEST = (4, 0)

PARAMETERS = ("consistency", "datacenter", "replication", "ssl-ca", "ssl-cert", "ssl-key", "ssl-mode")
#: Consistency levels of an address: writes of all data centers agree, or those of one.
CONSISTENCIES = ("quorum", "local_quorum")
SSL_MODES = ("DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")

_PORT = 9042
_KEYSPACE = re.compile(r"[a-z][a-z0-9_]{0,47}\Z")
_FORM = "cassandra://user:password@host1:9042,host2/KEYSPACE?datacenter=dc1"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a keyspace is. `hosts` are contact points; the driver finds the other nodes. `replication` is the number of
    replicas of a keyspace that is created (None: 3, or all nodes if there are fewer)."""

    hosts: tuple[tuple[str, int], ...]
    keyspace: str
    user: str | None = None
    password: str | None = None
    datacenter: str | None = None
    consistency: str = "quorum"
    replication: int | None = None
    ssl_mode: str = "DISABLED"
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None

    @property
    def place(self) -> str:
        """The address for people, without credentials."""
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"cassandra://{hosts}/{self.keyspace}"

    def ssl_context(self) -> ssl.SSLContext | None:
        """The context for TLS; None without TLS. Raises ConfigError for files that cannot be used."""
        if self.ssl_mode == "DISABLED":
            return None
        try:
            context = ssl.create_default_context(cafile=self.ssl_ca)
            context.check_hostname = self.ssl_mode == "VERIFY_IDENTITY"
            context.verify_mode = ssl.CERT_NONE if self.ssl_mode == "REQUIRED" else ssl.CERT_REQUIRED
            if self.ssl_cert:
                context.load_cert_chain(self.ssl_cert, self.ssl_key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"store: {self.place}: ssl-ca, ssl-cert or ssl-key cannot be used: {error}") from error
        return context


def parse_address(url: str) -> Address:
    """The parts of `cassandra://user:password@host1:9042,host2/KEYSPACE?…`; ConfigError names what is wrong."""
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    keyspace = parts.path.strip("/")
    places = tuple(_host(text) for text in hosts.split(","))
    shown = f"cassandra://{hosts}{parts.path}"
    if not _KEYSPACE.match(keyspace) or parts.fragment:
        raise ConfigError(
            f"store: {shown} names no keyspace; write {_FORM}, the keyspace of 1 to 48 of a-z 0-9 _, a letter first"
        )
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := parameters.keys() - set(PARAMETERS):
        raise ConfigError(f"store: {shown}: no parameter {min(unknown)}; there are {', '.join(PARAMETERS)}")
    _check_choice(shown, parameters, "consistency", CONSISTENCIES)
    _check_choice(shown, parameters, "ssl-mode", SSL_MODES)
    replication = parameters.get("replication")
    if replication is not None and not re.fullmatch(r"[1-9][0-9]?", replication):
        raise ConfigError(f"store: {shown}: replication {replication!r} is no number of replicas; write it as 3")
    default_mode = "VERIFY_IDENTITY" if "ssl-ca" in parameters else "DISABLED"
    address = Address(
        places, keyspace, unquote(user) or None, unquote(password) if credentials else None,
        parameters.get("datacenter") or None, parameters.get("consistency", "quorum"),
        int(replication) if replication else None, parameters.get("ssl-mode", default_mode),
        parameters.get("ssl-ca"), parameters.get("ssl-cert"), parameters.get("ssl-key"),
    )  # fmt: skip
    if address.consistency == "local_quorum" and address.datacenter is None:
        raise ConfigError(
            f"store: {shown}: consistency=local_quorum requires datacenter, the same for all nodes of Tocsin"
        )
    address.ssl_context()
    return address


def _check_choice(shown: str, parameters: dict[str, str], name: str, choices: tuple[str, ...]) -> None:
    value = parameters.get(name, choices[0])
    if value not in choices:
        raise ConfigError(f"store: {shown}: {name} {value!r} is unknown; use one of {', '.join(choices)}")


def _host(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        if parts.hostname and parts.port != 0:
            return parts.hostname, parts.port or _PORT
    except ValueError:
        pass  # Reported below.
    raise ConfigError(f"store: {text!r} is no host of Cassandra; write {_FORM}")
