"""The gate that every request to the API passes: headers, key or Host header, role and scope."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from tocsin.model.access import EVERY, ApiKey
from tocsin.web.api.heads import Head
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiLimits, Client
from tocsin.web.api.routes import Route
from tocsin.web.http import access
from tocsin.web.http.errors import ForeignSource, Headers, HeadersTooLarge, NotReady
from tocsin.web.http.parts import WebParts

_NOT_RELAYED: Mapping[str, Any] = MappingProxyType({})


class RequestGate:
    """Decides who may do what."""

    def __init__(self, limits: ApiLimits, parts: WebParts) -> None:
        #: Why nobody may do anything for a moment but look at the node's health; None: it is as usual.
        self.closed: str | None = None
        self._limits = limits
        self._keys, self._auth_failures = parts.keys, parts.auth_failures
        self._hosts, self._proxies = parts.hosts, parts.proxies
        # What this turn of the event loop has admitted.
        self._admitted: dict[Head, ApiKey | None] = {}

    def check_size(self, sent: Headers, headers: Mapping[bytes, bytes]) -> None:
        """`sent` has all headers, and `headers` one of each name. Raises HeadersTooLarge."""
        limits = self._limits
        if len(sent) > limits.headers_max or sum(map(len, headers.values())) > limits.header_bytes_max:
            raise HeadersTooLarge(
                f"at most {limits.headers_max} headers with {limits.header_bytes_max} bytes in total are accepted"
            )

    def admit(
        self,
        route: Route,
        headers: Mapping[bytes, bytes],
        client: Client,
        parameters: Mapping[str, str],
        scope: Mapping[str, Any] = _NOT_RELAYED,
    ) -> ApiKey | None:
        """The caller's key; None for an anonymous client. Raises NotReady, Unauthenticated, TooManyFailures, Forbidden."""
        operation = route.operation
        if self.closed is not None and operation.reach is not Reach.OPEN:
            raise NotReady([self.closed])
        if route.is_open:
            if operation.reach is not Reach.OPEN:
                self._hosts.check_keyless(headers)
            return None
        key = self.authenticate(headers, client, scope)
        if operation.key_required:
            access.require_key(key)
        if key is not None:
            if key.operations and operation.role is not None:
                access.require_operation(key, operation.scope, operation.role)
            _check_reach(operation, key, parameters)
        return key

    def admit_again(self, head: Head, client: Client, parameters: Mapping[str, str]) -> ApiKey | None:
        """The same for a head that was admitted before: once for all of its requests in one turn of the event loop, unless
        the key depends on the client's address."""
        admitted = self._admitted
        if head in admitted:
            return admitted[head]
        key = self.admit(head.route, head.headers, client, parameters)
        if key is None or not key.sources:
            if not admitted:
                asyncio.get_running_loop().call_soon(admitted.clear)
            admitted[head] = key
        return key

    def authenticate(self, headers: Mapping[bytes, bytes], client: Client, scope: Mapping[str, Any]) -> ApiKey | None:
        """The same without operation, role and reach. `scope` has what the relaying node reports about a relayed request."""
        if (identity := scope.get(access.IDENTITY)) is not None:
            return cast("ApiKey", identity)
        authorization = headers.get(b"authorization")
        key_hash = scope.get(access.KEY_HASH, "")
        failed = partial(self._failed, client, headers) if authorization is not None or key_hash else None
        key = access.authenticate(authorization, self._keys, key_hash, failed)
        if key is not None:
            if key.sources:
                self._check_source(key, client, headers)
            self._keys.used(key)
        elif not scope.get(access.RELAYED, False):
            # DNS rebinding: a page of any site could otherwise send requests from its user's browser.
            self._hosts.check_keyless(headers)
        return key

    def _check_source(self, key: ApiKey, client: Client, headers: Mapping[bytes, bytes]) -> None:
        address = self.address(client, headers)
        try:
            access.require_source(key, address)
        except ForeignSource:
            self._auth_failures.report(address, "foreign_source", "api", key.key_id)
            raise

    def address(self, client: Client, headers: Mapping[bytes, bytes]) -> str:
        """The client's address; empty if unknown."""
        return self._proxies.address(client, headers.get(b"x-forwarded-for"))

    def _failed(self, client: Client, headers: Mapping[bytes, bytes], reason: str) -> None:
        """Records a failed authentication. Raises TooManyFailures."""
        self._auth_failures.failure(self.address(client, headers), reason, "api")


def _check_reach(operation: Operation, key: ApiKey, parameters: Mapping[str, str]) -> None:
    if operation.role is None:
        return
    if operation.reach is Reach.SERVICE:
        access.require_service(key, operation.role)
    elif operation.reach is Reach.TENANT and parameters["tenantId"] != EVERY:
        access.require_tenant(key, operation.role, parameters["tenantId"])
    else:
        # Only lists take all tenants, those that the key has access to; others refuse the name.
        access.require_role(key, operation.role)
