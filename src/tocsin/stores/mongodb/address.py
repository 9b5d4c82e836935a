"""The address of a database, and the limits of its use. Imports no driver, so that addresses are checked without one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from tocsin.model.errors import ConfigError

#: The version of the collections' layout.
LAYOUT = 1
#: The oldest version of the layout whose release can use this one.
LAYOUT_READABLE_FROM = 1

SCHEMES = ("mongodb", "mongodb+srv")
_FORM = "mongodb://user:password@host1,host2/DATABASE?replicaSet=NAME"
_DATABASE = re.compile(r"[A-Za-z0-9_-]{1,63}\Z")
#: MongoDB's own databases.
_RESERVED = frozenset({"admin", "config", "local"})
#: Parameters that are passed to the driver as they are.
_PASSED = (
    "authMechanism",
    "authMechanismProperties",
    "authSource",
    "compressors",
    "directConnection",
    "replicaSet",
    "srvMaxHosts",
    "srvServiceName",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsAllowInvalidHostnames",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "tlsCertificateKeyFilePassword",
)
#: Parameters that may be given with the value that Tocsin uses anyway, and what another value would mean.
_FIXED = {
    "w": ("majority", "a failover could undo acknowledged timers"),
    "journal": ("true", "a crash could undo acknowledged timers"),
    "readConcernLevel": ("majority", "a node could read what a failover undoes"),
    "readPreference": ("primary", "a node could read an older state"),
    "retryWrites": ("true", "a failover would make writes fail that can be repeated"),
}
#: Accepted and not used: connection strings of Atlas contain it.
_IGNORED = ("appName",)
PARAMETERS = tuple(sorted((*_PASSED, *_FIXED, *_IGNORED), key=str.lower))


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A database on a replica set: the URL for the driver, its name, and the URL without credentials for people."""

    url: str
    database: str
    place: str


def parse_address(url: str) -> DatabaseAddress:
    """The address in `mongodb://…/DATABASE` or `mongodb+srv://…/DATABASE`. Raises ConfigError."""
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2]
    database = parts.path.removeprefix("/")
    place = f"{parts.scheme}://{hosts}/{database}"
    if "@" in parts.path:
        raise ConfigError(
            f"store: in the credentials of this {parts.scheme} URL, write / as %2F, @ as %40, : as %3A and % as %25"
        )
    if not hosts or not _DATABASE.match(database) or database in _RESERVED:
        raise ConfigError(
            f"store: {place} names no database; write {_FORM}, where the name is 1 to 63 of A-Z a-z 0-9 _ - and not "
            f"{', '.join(sorted(_RESERVED))}"
        )
    names = {name.lower(): name for name in PARAMETERS}
    for given, value in parse_qsl(parts.query, keep_blank_values=True):
        name = names.get(given.lower())
        if name is None:
            raise ConfigError(
                f"store: {place}: unknown parameter {given}; use {', '.join(PARAMETERS)}. Timeouts and connections are the "
                "settings mongodb.*"
            )
        wanted, why = _FIXED.get(name, (value, ""))
        if value.lower() != wanted:
            raise ConfigError(
                f"store: {place}: {name}={value} is not supported, because {why}; leave it out, or write {name}={wanted}"
            )
    return DatabaseAddress(url, database, place)
