"""The addresses of NATS servers, and the credentials."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from tocsin.model.errors import ConfigError

_SCHEMES = ("nats", "tls")
_PORT = 4222


@dataclass(frozen=True, slots=True)
class NatsAddress:
    """One or more servers of one cluster, each as `scheme://host:port`. `str()` and `repr()` never contain secrets."""

    servers: tuple[str, ...]
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return ",".join(self.servers)


def parse_nats_address(url: str) -> NatsAddress:
    """Parses `nats://user:password@host:port`, `nats://token@host` or `tls://…`. Several servers are separated by
    commas; the credentials of the first one that has any apply to all. Raises ConfigError, which does not repeat the
    URL because it may contain a password."""
    parts = [_split(part.strip()) for part in url.split(",")]
    servers = tuple(f"{part.scheme}://{_host(part)}:{part.port or _PORT}" for part in parts)
    first = next((part for part in parts if part.username), None)
    if first is None or first.username is None:
        return NatsAddress(servers)
    if first.password is None:
        return NatsAddress(servers, token=unquote(first.username))
    return NatsAddress(servers, user=unquote(first.username), password=unquote(first.password))


def _split(text: str) -> SplitResult:
    try:
        part = urlsplit(text)
        right = part.scheme in _SCHEMES and bool(part.hostname) and part.path in ("", "/") and part.port != 0
    except ValueError:
        right = False
    if not right or part.query or part.fragment:
        raise ConfigError("broker is not a NATS URL; write it as nats://host:4222 or tls://user:password@host")
    return part


def _host(part: SplitResult) -> str:
    host = part.hostname or ""
    return f"[{host}]" if ":" in host else host
