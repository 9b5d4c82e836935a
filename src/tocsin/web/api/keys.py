"""The operations on API keys."""

from __future__ import annotations

from functools import partial

from tocsin.keys import ApiKeys, make
from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditAction, Detail
from tocsin.ports.audit import AuditLog
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import wire
from tocsin.web.http.access import require_grant
from tocsin.web.http.convert import created_key, key_request, keys_answer
from tocsin.web.http.repeated import refuse_key

_operation = partial(Operation, role=Role.ADMIN, reach=Reach.VISIBLE, key_required=True)


class KeyHandlers:
    """Handles create, list and revoke. All of them require a key, even on a server that requires none otherwise: a key
    created anonymously would remain valid after the server starts to require keys."""

    def __init__(self, keys: ApiKeys, audit: AuditLog) -> None:
        self._keys = keys
        self._audit = audit

    @_operation("createKey", "/api/v1/keys/create")
    async def create(self, request: ApiRequest, sent: wire.CreateKey) -> wire.CreatedKey:
        """Only this response shows the key. It can't exceed the key of the request: no other namespaces or tenants, and no
        later expiry. The request always requires a key, even if the server requires none otherwise; `tocsin keys create`
        creates the first one. Other nodes accept the new key within `keys_refresh`."""
        caller = _caller(request)
        refuse_key(request.headers)
        key, secret = make(key_request(sent), request.now_us)
        require_grant(caller, key)
        await self._keys.add(key, partial(self._record, request))
        request.forbid_storing()
        return created_key(key, secret)

    @_operation("listKeys", "/api/v1/keys/list", body_optional=True)
    async def list(self, request: ApiRequest, sent: wire.ListKeys) -> wire.KeyList:
        """Lists the keys within the scope of the request's key."""
        return keys_answer(await self._keys.seen_by(_caller(request)))

    @_operation("revokeKey", "/api/v1/keys/revoke", status=204)
    async def revoke(self, request: ApiRequest, sent: wire.RevokeKey) -> None:
        """Revokes one of the keys that `keys/list` shows. The responding node refuses it immediately, other nodes within
        `keys_refresh`. Its sign-ins end as well."""
        await self._keys.revoke(sent.key_id, _caller(request), partial(self._record, request))

    async def _record(self, request: ApiRequest, action: AuditAction, key_id: str, details: dict[str, Detail]) -> None:
        await self._audit.write(action, request.actor, key_id, details)


def _caller(request: ApiRequest) -> ApiKey:
    assert request.key is not None
    return request.key
