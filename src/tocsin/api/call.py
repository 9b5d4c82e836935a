"""What a handler gets and gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tocsin.http.access import require_namespace
from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditSource
from tocsin.ports.audit import Actor

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """Limits on requests as such; `tocsin.model.validation.InputLimits` limits their contents."""

    # Settings of the table `[api]`. `tocsin.config.groups` describes each under the same name.

    request_bytes_max: int = 256 * 1024
    batch_request_bytes_max: int = 32 * 1024 * 1024
    batch_items_max: int = 1_000
    request_bodies_bytes_max: int = 128 * 1024 * 1024
    request_read_timeout_s: float = 30.0
    request_head_timeout_s: float = 30.0

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: Bytes of a request line with its headers; a longer head is answered 431.
    request_head_bytes_max: int = 64 * 1024
    #: Headers of a request; more are answered 431.
    headers_max: int = 100
    #: Bytes of the values of all headers of a request; more are answered 431.
    header_bytes_max: int = 32 * 1024


class Call:
    """One request that has passed the gate: its body read, its key known (None: anybody, where keys are optional).

    `parameters` are those of its path, `query` those of its query, each where the operation has any.
    """

    __slots__ = ("address", "body", "correlation_id", "headers", "key", "now_us", "parameters", "query")

    def __init__(
        self,
        body: bytes,
        headers: Mapping[bytes, bytes],
        key: ApiKey | None,
        now_us: int,
        correlation_id: str,
        parameters: Mapping[str, str] = _NONE,
        query: Mapping[str, list[str]] = _NONE,
        address: str = "",
    ) -> None:
        #: The client's, empty where it isn't known, and on the short way, where nobody asks.
        self.address = address
        self.body = body
        self.headers = headers
        self.key = key
        self.now_us = now_us
        self.correlation_id = correlation_id
        self.parameters = parameters
        self.query = query

    @property
    def actor(self) -> Actor:
        """Who calls, for the audit trail."""
        return Actor(None if self.key is None else self.key.key_id, self.address, AuditSource.API)

    def permit(self, role: Role, namespace: str) -> None:
        """Raises Forbidden unless the caller has the role on the namespace."""
        if self.key is not None:
            require_namespace(self.key, role, namespace)


@dataclass(frozen=True, slots=True)
class Page:
    """An answer that isn't the operation's usual media type, or has headers of its own."""

    body: bytes
    content_type: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


def shown_once(body: bytes) -> Page:
    """An answer with a secret, which nothing on its way may keep."""
    return Page(body, "application/json", ((b"cache-control", b"no-store"),))


#: Answers with the encoded body.
Handler = Callable[[Call], Awaitable[bytes | Page]]
#: Takes a call without waiting for its result, which goes to the function given, as a value or an exception.
Begin = Callable[[Call, Callable[[object], None]], None]
#: The answer of such a result.
Encode = Callable[[Any], bytes | Page]
