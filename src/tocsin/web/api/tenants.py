"""The handler of the operation on tenants."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction
from tocsin.model.errors import FieldError, Unavailable
from tocsin.model.uuid7 import is_uuid7
from tocsin.ports.audit import AuditLog
from tocsin.web.api.request import ApiRequest, CustomResponse, Handler, shown_once
from tocsin.web.api.service_calls import AgentSource
from tocsin.web.http import agent_wire as wire
from tocsin.web.http.access import require_tenant
from tocsin.web.http.audit import rotation_details
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.instants import format_instant
from tocsin.web.http.reading import JsonReader


class TenantHandlers:
    """Handles the rotation of the secret."""

    def __init__(self, agent: AgentSource, parser: RequestParser, audit: AuditLog) -> None:
        self._agent = agent
        self._parser = parser
        self._audit = audit
        self._encode = msgspec.json.Encoder().encode
        self._rotate = JsonReader(wire.RotateTenantSecret)

    def by_name(self) -> dict[str, Handler]:
        """The handlers by operation name."""
        return {"rotateTenantSecret": self.rotate}

    async def rotate(self, request: ApiRequest) -> CustomResponse:
        """Rotates the secret that signs the tenant's service calls."""
        sent = self._rotate.read(request.body)
        if request.key is not None:
            require_tenant(request.key, Role.ADMIN, sent.tenant_id)
        tenant_id = sent.tenant_id.lower()
        errors = []
        if not is_uuid7(tenant_id):
            reason = "is not a UUID of version 7, such as 01890a5d-ac96-774b-bcce-b302099a8057"
            errors.append(FieldError("tenantId", reason))
        rotation = self._parser.rotation(sent, errors)
        agent = self._agent()
        if agent is None:
            raise Unavailable("the service agent has just moved to another node; try again")
        signing = await agent.rotate_secret(tenant_id, rotation.secret, rotation.grace_us, force=rotation.force)
        details = rotation_details("tenant", rotation)
        await self._audit.write(AuditAction.SECRET_ROTATED, request.actor, tenant_id, details)
        previous_until = signing.previous_until(request.now_us)
        answer = wire.RotatedTenantSecret(
            tenant_id=tenant_id,
            secret=rotation.secret,
            previous_until=UNSET if previous_until is None else format_instant(previous_until),
        )
        return shown_once(self._encode(answer))
