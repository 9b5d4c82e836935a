"""`/ui/find`: what people paste into the palette: ids of timers, schedules and calls, webhook-ids, correlation ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.responses import JSONResponse, Response

from tocsin.model.access import EVERY, Role
from tocsin.model.errors import InvalidInput, StoreError
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.timers.listing import TimerView
from tocsin.timers.lookup import NAMESPACES_MAX, PREFIX_ROWS_MAX, look_up
from tocsin.web.http.access import listed_tenants
from tocsin.web.pages.calls import presentation as calls_shown
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import count, state_of, timer_path
from tocsin.web.pages.schedules.presentation import schedule_path
from tocsin.web.pages.site import Part, RouteEntry

#: Hits in one response.
_HITS_MAX = 20


class Finder(Part):
    """Looks up a text in all namespaces and tenants that the principal may read. On a node without the service agent, the
    node that runs it answers; if there is none, calls are left out."""

    def routes(self) -> Sequence[RouteEntry]:
        return [("GET", "/ui/find", self._site.gate(self.find, otherwise=self.find_without_calls))]

    async def find(self, context: RequestContext) -> Response:
        """The hits as JSON, exact ones first: kind, id, namespace or name, state, and the path of the page; and what was left
        out, in words."""
        return await self._answer(context, context.calls)

    async def find_without_calls(self, context: RequestContext) -> Response:
        """Likewise of timers and schedules alone."""
        return await self._answer(context, None)

    async def _answer(self, context: RequestContext, calls: ServiceCalls | None) -> Response:
        text = context.query.exact("q").strip()
        if not text or len(text) > self._id_chars_max:
            return JSONResponse({"found": [], "left_out": ""})
        names = [each.name for each in await self.visible_namespaces(context)]
        of_calls = self._calls(context, calls, text) if calls is not None else _none()
        views, records = await asyncio.gather(look_up(self._service, names, text, _HITS_MAX), of_calls)
        views = await self._service.explained(views)
        timers = [self._hit(view, context.now_us) for view in views]
        exact = [hit for hit, view in zip(timers, views, strict=True) if view.timer.id == text]
        others = [hit for hit, view in zip(timers, views, strict=True) if view.timer.id != text]
        return JSONResponse({"found": [*exact, *records, *others][:_HITS_MAX], "left_out": _left_out(len(names))})

    async def _calls(self, context: RequestContext, calls: ServiceCalls, text: str) -> list[dict[str, str]]:
        if not context.principal.may_call_somewhere(Role.READ):
            return []
        tenants = listed_tenants(context.principal.key, EVERY)
        assert not isinstance(tenants, str)
        try:
            found = await calls.look_up(text, tenants, self._site.tenants.known(context), _HITS_MAX)
        except (InvalidInput, StoreError):
            # The agent's database is not the timers': these are found without it.
            return []
        return [
            {
                "what": "call",
                "name": call.service_call_id,
                "where": call.name,
                "state": calls_shown.state_of(call, context.now_us).word,
                "href": calls_shown.path(call.tenant_id, call.service_call_id),
            }
            for call in found
        ]

    def _hit(self, view: TimerView, now_us: int) -> dict[str, str]:
        timer, schedule = view.timer, view.timer.schedule
        paused = self._service.namespaces.is_paused(timer.namespace)
        word = state_of(view, now_us, paused=paused).word
        if schedule is not None and view.next_attempt_at is not None:
            word = "paused" if paused or schedule.state.paused else "active"
        path = timer_path if schedule is None else schedule_path
        return {
            "what": "timer" if schedule is None else "schedule",
            "name": timer.id,
            "where": timer.namespace,
            "state": word,
            "href": path(timer.namespace, timer.id),
        }


async def _none() -> list[dict[str, str]]:
    return []


def _left_out(namespaces: int) -> str:
    """What a text may name without being found."""
    first = f"the first {count(NAMESPACES_MAX)} namespaces" if namespaces > NAMESPACES_MAX else "all namespaces"
    return (
        f"Looked for this id in {first}, and for ids that begin so among the next {count(PREFIX_ROWS_MAX)} pending timers "
        "and the schedules."
    )
