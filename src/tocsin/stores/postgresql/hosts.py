"""The hosts that a PostgreSQL URL names, of which one is the primary."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import zip_longest
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg  # type: ignore[import-untyped]

#: Another host may serve instead: this one doesn't answer, is starting or ending, or is a standby.
_NEXT = (
    OSError,
    asyncpg.CannotConnectNowError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.TargetServerAttributeNotMatched,
)


def urls_of_hosts(url: str) -> list[str]:
    """The URL for each of its hosts, in their order; itself if it names one or none."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    if hosts:
        return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    names = parameters.get("host", "").split(",")
    ports = parameters.get("port", "").split(",")
    if len(names) == 1 or len(ports) not in (1, len(names)):
        return [url]
    each = zip_longest(names, ports, fillvalue=ports[0])
    queries = [parameters | {"host": name} | ({"port": port} if port else {}) for name, port in each]
    return [urlunsplit(parts._replace(query=urlencode(query))) for query in queries]


class Hosts:
    """Opens sessions on the primary, beginning with the host that was it last."""

    def __init__(self, url: str) -> None:
        self._urls = urls_of_hosts(url)

    async def connect(self, timeout_s: float, **arguments: Any) -> Any:
        """A session with the first host that accepts writes. Each host has an equal share of the time that is left, so that a
        silent one doesn't keep the others from being asked; the driver's own time-out is for all of them together. Raises the
        last host's error."""
        clock = asyncio.get_running_loop().time
        deadline_s = clock() + timeout_s
        *others, last = urls = list(self._urls)
        for number, url in enumerate(others):
            with contextlib.suppress(*_NEXT):
                return await self._connect(url, (deadline_s - clock()) / (len(urls) - number), arguments)
        return await self._connect(last, deadline_s - clock(), arguments)

    async def _connect(self, url: str, timeout_s: float, arguments: dict[str, Any]) -> Any:
        # A standby's data may be out of date.
        connection = await asyncpg.connect(url, timeout=timeout_s, target_session_attrs="read-write", **arguments)
        self._urls.sort(key=lambda other: other != url)
        return connection
