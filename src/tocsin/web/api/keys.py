"""Handlers of the operations on API keys."""

from __future__ import annotations

from functools import partial

import msgspec

from tocsin.keys import ApiKeys, make
from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditAction, Detail
from tocsin.ports.audit import AuditLog
from tocsin.web.api.request import ApiRequest, CustomResponse, Handler, shown_once
from tocsin.web.http import wire
from tocsin.web.http.access import require_grant
from tocsin.web.http.convert import created_key, key_request, keys_answer
from tocsin.web.http.errors import Unauthenticated
from tocsin.web.http.reading import JsonReader


class KeyHandlers:
    """Handles create, list and revoke. All of them require a key, even on a server that requires none otherwise: a key
    created anonymously would remain valid after the server starts to require keys."""

    def __init__(self, keys: ApiKeys, audit: AuditLog) -> None:
        self._keys = keys
        self._audit = audit
        self._encode = msgspec.json.Encoder().encode
        self._create = JsonReader(wire.CreateKey)
        self._list = JsonReader(wire.ListKeys)
        self._revoke = JsonReader(wire.RevokeKey)

    def by_name(self) -> dict[str, Handler]:
        """The handlers by operation name."""
        return {"createKey": self.create, "listKeys": self.list, "revokeKey": self.revoke}

    async def create(self, request: ApiRequest) -> CustomResponse:
        """Creates a key."""
        caller = _caller(request)
        key, secret = make(key_request(self._create.read(request.body)), request.now_us)
        require_grant(caller, key)
        await self._keys.add(key, partial(self._record, request))
        return shown_once(self._encode(created_key(key, secret)))

    async def list(self, request: ApiRequest) -> bytes:
        """Returns the keys within the scope of the caller's key."""
        caller = _caller(request)
        if request.body:
            self._list.read(request.body)
        return self._encode(keys_answer(await self._keys.seen_by(caller)))

    async def revoke(self, request: ApiRequest) -> bytes:
        """Revokes a key."""
        caller = _caller(request)
        await self._keys.revoke(self._revoke.read(request.body).key_id, caller, partial(self._record, request))
        return b""

    async def _record(self, request: ApiRequest, action: AuditAction, key_id: str, details: dict[str, Detail]) -> None:
        await self._audit.write(action, request.actor, key_id, details)


def _caller(request: ApiRequest) -> ApiKey:
    if request.key is None:
        raise Unauthenticated(
            "managing keys always requires an admin key; create the first one with "
            "`tocsin keys create --role admin` on the server's machine"
        )
    return request.key
