"""The request that a handler receives, and the response that it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditSource
from tocsin.ports.audit import Actor
from tocsin.web.http.access import require_namespace

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """Limits on requests as such; `tocsin.model.validation.InputLimits` limits their contents."""

    # Settings of the table `[api]`. `tocsin.settings.groups` describes each under the same name.

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


class ApiRequest:
    """A request that has passed the gate: its body is read, its key authenticated (None: no key, where keys are optional).

    `parameters` are those of its path, `query` those of its query, if the operation has any.
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
        #: The client's address; empty if unknown, and on the direct path, where it isn't needed.
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
        """The caller, for the audit trail."""
        return Actor(None if self.key is None else self.key.key_id, self.address, AuditSource.API)

    def permit(self, role: Role, namespace: str) -> None:
        """Raises Forbidden unless the caller has the role on the namespace."""
        if self.key is not None:
            require_namespace(self.key, role, namespace)


@dataclass(frozen=True, slots=True)
class CustomResponse:
    """A response with its own media type or headers."""

    body: bytes
    content_type: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


def shown_once(body: bytes) -> CustomResponse:
    """A response with a secret, which no cache may store."""
    return CustomResponse(body, "application/json", ((b"cache-control", b"no-store"),))


#: Returns the encoded body.
Handler = Callable[[ApiRequest], Awaitable[bytes | CustomResponse]]
#: Starts a request without waiting for its result, which is passed to the function, as a value or an exception.
Begin = Callable[[ApiRequest, Callable[[object], None]], None]
#: Encodes the response of such a result.
Encode = Callable[[Any], bytes | CustomResponse]
