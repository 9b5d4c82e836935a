"""`/flows`: the rules of flows, and what is in flight and waits of each."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import NotFound
from tocsin.model.flow import FLOWS_MAX, FlowLimits
from tocsin.model.instants import format_duration
from tocsin.web.http.flows import FlowName, FlowRequests, PauseFlow
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import State, with_query
from tocsin.web.pages.site import Part, Site, route

_PAUSED, _WAITING, _FREE = State("paused", "suspended"), State("at its limit", "waiting"), State("in order", "done")


class FlowsPage(Part):
    """The table, and what changes a rule."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._flows = site.service.flow_rules
        self._requests = FlowRequests(self._flows, site.rules, site.audit)

    @route("GET", "/flows")
    async def table(self, context: RequestContext) -> Response:
        """The rules of the scope; a script reloads the live part."""
        if context.scope:
            context.permit(Role.READ, context.scope)
            views, more = await self._flows.list(context.scope, "", FLOWS_MAX)
        else:
            views, more = await self._flows.of_all(lambda name: context.principal.may(Role.READ, name), FLOWS_MAX)
        rows = []
        for view in views:
            paused = view.flow.closed_until(context.now_us) is not None
            state = _PAUSED if paused else _WAITING if view.counts.waiting else _FREE
            rows.append((view, state, in_words(view.flow.per_key), in_words(view.flow.total), paused))
        return self._pages.page(
            "flows/live.html" if context.fragment else "flows/list.html",
            context,
            title="Flows",
            polled=True,
            rows=rows,
            more=more,
            complete=all(view.complete for view in views),
            may_change=context.principal.may(Role.ADMIN),
        )

    @route("POST", "/flows/{change:str}")
    async def change(self, context: RequestContext) -> Response:
        """Pauses, resumes or deletes a rule."""
        context.permit(Role.ADMIN)
        namespace, match = context.form.exact("namespace"), context.form.exact("match")
        change = context.request.path_params["change"]
        if change == "pause":
            await self._requests.pause(PauseFlow(namespace, match), context.actor, context.now_us)
        elif change == "resume":
            await self._requests.resume(FlowName(namespace, match), context.actor)
        elif change == "delete":
            await self._requests.delete(FlowName(namespace, match), context.actor)
        else:
            raise NotFound("there is no such page")
        scope = context.form.exact("scope")
        return RedirectResponse(with_query("/flows", {"namespace": scope}) if scope else "/flows", 303)


def in_words(limits: FlowLimits | None) -> str:
    """The limits in a cell of the table; empty for none."""
    if limits is None:
        return ""
    parts = []
    if limits.rate is not None:
        burst = f", {limits.burst} at once" if limits.burst > 1 else ""
        parts.append(f"{limits.rate.count:,} in {format_duration(limits.rate.per_us)}{burst}")
    if limits.parallelism is not None:
        parts.append(f"{limits.parallelism:,} in flight")
    return "; ".join(parts)
