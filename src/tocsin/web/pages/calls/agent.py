"""Access of the pages to the service agent, which may be disabled or run on another node; and the choice of a tenant, which
each URL contains."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.errors import Unavailable
from tocsin.model.ids import is_uuid7
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.web.http.parts import Relay, relay_request
from tocsin.web.pages.context import Handler, Relayed, RequestContext, cookie_name, cookie_value
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.outages import Outages
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.presentation import sentence


@dataclass(frozen=True, slots=True)
class AgentUnavailable:
    """Why this node has no service calls: the title, text and HTTP status of a page."""

    title: str
    text: str
    status: int


OFF = AgentUnavailable(
    "Service calls are disabled",
    "The service agent is off on this server. To turn it on, set agent.enabled, or start the server without --no-agent. "
    "With a MySQL store, also set the agent's database (agent.database).",
    404,
)
STANDBY = AgentUnavailable(
    "Service calls are served by another node",
    "The service agent is on standby on this node. The node that holds the agent's database serves the calls; if this node "
    "takes over, this page works here.",
    503,
)


#: How long another node may take to serve calls, while this one knows that the database does not answer.
_OUTAGE_RELAY_S = 1.0
UNREADABLE = AgentUnavailable(
    "Service calls can’t be read now", "They are shown again once the database answers; those that come due wait.", 503
)


def standby(node: str) -> AgentUnavailable:
    """STANDBY with the name of the node that runs the agent; `node` is empty if it is unknown."""
    return replace(STANDBY, text=f"The service agent runs on node {node}. {STANDBY.text}") if node else STANDBY


#: Called for each page, because a node may get or lose the agent at any time.
AgentSource = Callable[[], ServiceCalls | AgentUnavailable]


class Gate:
    """Gives handlers the agent. On a node without the agent it relays the request with `relay`, or explains why not."""

    def __init__(self, source: AgentSource, pages: Pages, outages: Outages, relay: Relay | None = None) -> None:
        self.source = source
        self._pages = pages
        self._outages = outages
        self._relay = relay

    def __call__(
        self,
        handler: Handler,
        *,
        relayed: bool = True,
        otherwise: Handler | None = None,
        in_outage: Handler | None = None,
    ) -> Handler:
        """The handler for a route; `handler` finds the service calls in its context. Unless `relayed`, it needs none, and
        handles the request instead of the relay. `otherwise` handles it where no node serves calls now, `in_outage` where
        that is so while this node's database does not answer."""

        async def handle(context: RequestContext) -> Response:
            calls = self.source()
            if not isinstance(calls, AgentUnavailable):
                context.calls = calls
                return await handler(context)
            if self._relay is not None and not relayed:
                return await handler(context)
            outage = await self._outages.present()
            if self._relay is not None:
                scope, correlation_id = context.request.scope, context.correlation_id
                try:
                    async with asyncio.timeout(None if outage is None else _OUTAGE_RELAY_S):
                        answer = await relay_request(
                            self._relay,
                            scope,
                            context.body,
                            correlation_id,
                            context.address,
                            secure=context.secure,
                        )
                except TimeoutError:
                    calls = UNREADABLE
                except Unavailable as error:
                    if context.fragment and otherwise is None:
                        raise
                    calls = AgentUnavailable("Service calls are unavailable", sentence(error), 503)
                else:
                    if answer is not None:
                        return Relayed(*answer)
            if otherwise is not None:
                return await otherwise(context)
            if outage is not None and calls.status == 503:
                # The agent needs the database, too: which node would serve the calls is not the point.
                if in_outage is not None:
                    return await in_outage(context)
                calls = UNREADABLE
            return self._pages.page(
                "calls/unavailable.html", context, calls.status, title="Calls", unavailable=calls, outage=outage
            )

        return handle


_SUFFIX = "-tenants"
_SEPARATOR = "."


class Tenants:
    """The tenants to choose from: those that the browser remembers in a cookie, the most recent first. A tenant needs no
    setup, since any id names one, but an API key may be limited to some."""

    def __init__(self, limits: UiLimits) -> None:
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
        response.set_cookie(
            cookie_name(context.request, _SUFFIX, secure=context.secure),
            _SEPARATOR.join(after),
            max_age=round(self._limits.tenants_remembered_s),
            path="/",
            httponly=True,
            samesite="strict",
            secure=context.secure,
        )

    def _remembered(self, context: RequestContext) -> list[str]:
        name = cookie_name(context.request, _SUFFIX, secure=context.secure)
        sent = cookie_value(context.request, name) or ""
        return [each for each in sent.split(_SEPARATOR) if is_uuid7(each)][: self._limits.tenants_remembered_max]
