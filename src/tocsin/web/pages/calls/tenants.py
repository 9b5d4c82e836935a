"""The choice of a tenant: each URL contains the tenant's id, and the browser remembers recent tenants in a cookie.

A tenant needs no setup: any id names one. An API key may be limited to some tenants.
"""

from __future__ import annotations

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.uuid7 import is_uuid7
from tocsin.web.http.hosts import Hosts
from tocsin.web.pages.context import RequestContext, cookie_name, cookie_value
from tocsin.web.pages.limits import UiLimits

_SUFFIX = "-tenants"
_SEPARATOR = "."


class Tenants:
    """The tenants to choose from."""

    def __init__(self, hosts: Hosts, limits: UiLimits) -> None:
        self._hosts = hosts
        self._limits = limits

    def known(self, context: RequestContext) -> list[str]:
        """The remembered tenants, the most recent first, and those that the principal's key names."""
        named = [tenant.lower() for tenant in context.principal.key.tenants] if context.principal.key else []
        known = dict.fromkeys([*self._remembered(context), *named])
        return [tenant for tenant in known if context.principal.may_call(Role.READ, tenant)]

    def remember(self, context: RequestContext, tenant_id: str, response: Response) -> None:
        """Remembers a tenant as the most recent one, unless the id is invalid."""
        tenant = tenant_id.lower()
        before = self._remembered(context)
        if not is_uuid7(tenant) or before[:1] == [tenant]:
            return
        after = [tenant, *(each for each in before if each != tenant)][: self._limits.tenants_remembered_max]
        name, secure = cookie_name(self._hosts, context.request, _SUFFIX)
        response.set_cookie(
            name,
            _SEPARATOR.join(after),
            max_age=round(self._limits.tenants_remembered_s),
            path="/",
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def _remembered(self, context: RequestContext) -> list[str]:
        name, _ = cookie_name(self._hosts, context.request, _SUFFIX)
        sent = cookie_value(context.request, name) or ""
        return [each for each in sent.split(_SEPARATOR) if is_uuid7(each)][: self._limits.tenants_remembered_max]
