"""Whose calls are shown: a tenant is part of every URL, and this browser remembers those that it has seen.

Tenants need no beginning: whoever has an id has a tenant. A key may be limited to some; then there are no others.
"""

from __future__ import annotations

from starlette.responses import Response

from tocsin.http.hosts import Hosts
from tocsin.model.access import Role
from tocsin.model.uuid7 import is_uuid7
from tocsin.ui.cookies import cookie_name, cookie_value
from tocsin.ui.limits import UiLimits
from tocsin.ui.visit import Visit

_SUFFIX = "-tenants"
_SEPARATOR = "."


class Tenants:
    """The choice."""

    def __init__(self, hosts: Hosts, limits: UiLimits) -> None:
        self._hosts = hosts
        self._limits = limits

    def known(self, visit: Visit) -> list[str]:
        """Those to choose from: remembered here, the last one first, and all that the visitor's key names."""
        named = [tenant.lower() for tenant in visit.visitor.key.tenants] if visit.visitor.key else []
        known = dict.fromkeys([*self._remembered(visit), *named])
        return [tenant for tenant in known if visit.visitor.may_call(Role.READ, tenant)]

    def remember(self, visit: Visit, tenant_id: str, response: Response) -> None:
        """Puts it first. What is no tenant's id is not remembered."""
        tenant = tenant_id.lower()
        before = self._remembered(visit)
        if not is_uuid7(tenant) or before[:1] == [tenant]:
            return
        after = [tenant, *(each for each in before if each != tenant)][: self._limits.tenants_remembered_max]
        name, secure = cookie_name(self._hosts, visit.request, _SUFFIX)
        response.set_cookie(
            name,
            _SEPARATOR.join(after),
            max_age=round(self._limits.tenants_remembered_s),
            path="/",
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def _remembered(self, visit: Visit) -> list[str]:
        name, _ = cookie_name(self._hosts, visit.request, _SUFFIX)
        sent = cookie_value(visit.request, name) or ""
        return [each for each in sent.split(_SEPARATOR) if is_uuid7(each)][: self._limits.tenants_remembered_max]
