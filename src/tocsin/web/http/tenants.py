"""Requests that are about a namespace or, instead, about the service calls of a tenant."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from tocsin.model.access import EVERY, ApiKey, Role
from tocsin.model.errors import FieldError
from tocsin.ports.agent_calls import Tenants
from tocsin.web.http import constraints as limits
from tocsin.web.http.access import listed_tenants, require_tenant
from tocsin.web.http.wire import about

_EXAMPLE = "01890a5d-ac96-774b-bcce-b302099a8057"
TenantId = Annotated[
    str, about("The tenant whose service calls are meant, instead of a namespace.", _EXAMPLE), limits.TENANT
]
ListedTenant = Annotated[
    str,
    about("The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to."),
    limits.TENANT_OR_EVERY,
]


def scope_errors(namespace: str | UnsetType, tenant: str | UnsetType) -> list[FieldError]:
    """What is wrong unless the request names exactly one of the two."""
    if namespace is UNSET and tenant is UNSET:
        return [FieldError("namespace", "is missing; give a namespace, or a tenant if service calls are meant")]
    if namespace is not UNSET and tenant is not UNSET:
        return [FieldError("tenant", "cannot be combined with namespace; give one of the two")]
    return []


def permitted_tenants(key: ApiKey | None, role: Role, tenant: str) -> Tenants:
    """What a request about this tenant reads; of EVERY, what the key has access to. Raises Forbidden."""
    if tenant != EVERY:
        require_tenant(key, role, tenant)
        return tenant.lower()
    return listed_tenants(key, tenant)
