"""Where the NATS servers are, and who we are to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from tocsin.model.errors import ConfigError

_SCHEMES = ("nats", "tls")
_PORT = 4222


@dataclass(frozen=True, slots=True)
class NatsAddress:
    """One or more servers of one cluster, `scheme://host:port` each. Secrets are never part of `str()` or `repr()`."""

    servers: tuple[str, ...]
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return ",".join(self.servers)


def parse_nats_address(url: str) -> NatsAddress:
    """From `nats://user:password@host:port`, `nats://token@host` or `tls://…`; several servers are separated by commas, and
    the first one's credentials hold for all. Raises ConfigError, which doesn't repeat the URL: it may hold a password."""
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
        raise ConfigError(
            "the broker's URL is not one of NATS; write it as nats://host:4222 or tls://user:password@host"
        )
    return part


def _host(part: SplitResult) -> str:
    host = part.hostname or ""
    return f"[{host}]" if ":" in host else host
