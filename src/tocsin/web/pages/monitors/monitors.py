"""`/monitors`: the list with a panel beside it, the page of a monitor, and what changes one."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import EVERY, Role
from tocsin.model.audit import AuditAction
from tocsin.model.errors import NotFound
from tocsin.model.monitor import MonitorStatus
from tocsin.timers.monitors import MonitorListRequest, MonitorView
from tocsin.web.http.access import listed_in
from tocsin.web.http.monitor_wire import DeleteMonitor, MonitorName
from tocsin.web.http.monitors import MonitorRequests
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.counts import BoundedCount, Numbers, badge
from tocsin.web.pages.monitors import presentation
from tocsin.web.pages.monitors.presentation import STATES, MonitorRow, monitor_path, rank
from tocsin.web.pages.overview.alarms import ALARMING
from tocsin.web.pages.schedules.outcomes import STRIP_CELLS, Strip
from tocsin.web.pages.site import Part, Site, route

#: Monitors on a page. If a scope has no more, they are sorted and counted by state.
_ROWS = 200
#: Periods on a page of a history, and beside the list.
_PERIODS, _PERIODS_BESIDE = 50, 5
#: Strips that are kept, each until its monitor has another period or state.
_STRIPS_MAX = 2_000
#: Strips that are read at once.
_READ_AT_ONCE = 8
#: A monitor that is late gets another period each time that one passes.
_LATE_FOR_US = 60_000_000
#: The tabs by the states that they list.
_TABS = {"": "All", **{status.value: state.word.capitalize() for status, state in STATES.items()}}


class MonitorPages(Part):
    """The list, a monitor, and what changes it."""

    def __init__(self, site: Site, requests: MonitorRequests) -> None:
        super().__init__(site)
        self._requests, self._monitors = requests, requests.monitors
        self._strips: OrderedDict[bytes, tuple[tuple[object, ...], Strip]] = OrderedDict()
        self._reading = asyncio.Semaphore(_READ_AT_ONCE)

    @route("GET", "/monitors")
    async def table(self, context: RequestContext) -> Response:
        """The monitors of the scope; a script reloads the live part. `peek` names one to show beside them."""
        scope = self._scope(context)
        tab = context.query.get("state")
        tab = tab if tab in _TABS else ""
        views, cursor = await self._monitors.list(MonitorListRequest(scope, limit=_ROWS))
        numbers: Counter[str] = Counter()
        if cursor is None and not context.query.exact("cursor"):
            numbers.update(view.monitor.state.status.value for view in views)
            numbers[""] = len(views)
            by_rank = partial(rank, now_us=context.now_us)
            views = sorted((view for view in views if tab in ("", view.monitor.state.status)), key=by_rank)
        else:
            # Too many to be sorted: by namespace and id, page by page.
            states = frozenset({MonitorStatus(tab)} if tab else ())
            after = context.query.exact("cursor") or None
            views, cursor = await self._monitors.list(MonitorListRequest(scope, states, limit=_ROWS, cursor=after))
        rows = await asyncio.gather(*(self._row(view, context.now_us) for view in views))
        peeked = await self._peeked(context)
        return self._pages.page(
            "monitors/live.html" if context.fragment else "monitors/list.html",
            context,
            title="Monitors",
            polled=True,
            rows=rows,
            tabs=_TABS,
            tab=tab,
            numbers=numbers,
            link=lambda **more: _link(context, {"state": tab, **more}),
            cursor=cursor,
            may_write=context.principal.may_somewhere(Role.WRITE),
            shown=presentation,
            **peeked,
        )

    @route("GET", "/ui/monitors")
    async def count(self, context: RequestContext) -> Response:
        """The number in the rail: monitors that are late or have failed, as of a few seconds ago."""
        scope = self._scope(context)

        async def read() -> Numbers:
            wanted = MonitorListRequest(scope, ALARMING, limit=_ROWS, reads_max=1)
            views, cursor = await self._monitors.list(wanted)
            return {"trouble": BoundedCount(len(views), cursor is not None and bool(views))}

        return badge((await self._site.counts.of(("monitors", scope), read)).get("trouble"))

    @route("POST", "/monitors/{change:str}")
    async def change(self, context: RequestContext) -> Response:
        """Pauses, resumes or deletes a monitor, or gives it another ping URL, which only this response shows."""
        name = MonitorName(context.form.exact("namespace"), context.form.exact("id"))
        context.permit(Role.WRITE, name.namespace)
        change = context.request.path_params["change"]
        if change == "delete":
            await self._requests.delete(DeleteMonitor(name.namespace, name.id), context.actor)
            return RedirectResponse(f"/monitors?{urlencode({'namespace': name.namespace})}", 303)
        actions = {
            "pause": AuditAction.MONITOR_PAUSED,
            "resume": AuditAction.MONITOR_RESUMED,
            "rotate": AuditAction.MONITOR_ROTATED,
        }
        if change not in actions:
            raise NotFound("there is no such page")
        view = await self._requests.change(actions[change], name, context.actor)
        if view.token is not None:
            return self.url_shown(context, view, "New ping URL")
        return RedirectResponse(monitor_path(view), 303)

    def url_shown(self, context: RequestContext, view: MonitorView, title: str) -> Response:
        """The page with a ping URL, which is shown once."""
        assert view.token is not None
        url = self._requests.ping_url(view.token, dict(context.request.headers.raw))
        return self._pages.page("monitors/created.html", context, title=title, view=view, url=url, shown=presentation)

    @route("GET", "/monitors/{namespace}/{id}")
    async def show(self, context: RequestContext) -> Response:
        """A monitor with its history; a script reloads the live part."""
        parameters = context.request.path_params
        namespace, name = parameters["namespace"], parameters["id"] or context.query.exact("id")
        context.permit(Role.READ, namespace)
        view = await self._monitors.get(*self._requests.name(MonitorName(namespace, name)))
        cursor = context.query.exact("cursor") or None
        periods, older = await self._monitors.history(namespace, name, _PERIODS, cursor)
        return self._pages.page(
            "monitors/detail_live.html" if context.fragment else "monitors/detail.html",
            context,
            title=name,
            polled=True,
            view=view,
            timer=view.timer,
            state=view.monitor.state,
            definition=view.monitor.definition,
            periods=periods,
            longest_us=max((took for each in periods if (took := presentation.took_us(each))), default=0),
            row=await self._row(view, context.now_us),
            older=None if older is None else f"{monitor_path(view)}?{urlencode({'cursor': older})}",
            newest=cursor is None,
            may_write=context.principal.may(Role.WRITE, namespace),
            shown=presentation,
        )

    def _scope(self, context: RequestContext) -> Any:
        if context.scope:
            context.permit(Role.READ, context.scope)
        elif not context.principal.may_somewhere(Role.READ):
            context.permit(Role.READ)
        return listed_in(context.principal.key, context.scope or EVERY)

    async def _peeked(self, context: RequestContext) -> dict[str, Any]:
        """What the panel beside the list shows; nothing if the monitor is gone meanwhile."""
        namespace, _, name = context.query.exact("peek").partition("/")
        if not name or not context.principal.may(Role.READ, namespace):
            return {"peeked": None}
        try:
            view = await self._monitors.get(*self._requests.name(MonitorName(namespace, name)))
        except NotFound:
            return {"peeked": None}
        periods, _ = await self._monitors.history(namespace, name, _PERIODS_BESIDE)
        may_write = context.principal.may(Role.WRITE, namespace)
        return {"peeked": view, "periods": periods[:_PERIODS_BESIDE], "may_write_peeked": may_write}

    async def _row(self, view: MonitorView, now_us: int) -> MonitorRow:
        state = view.monitor.state
        late_for = now_us // _LATE_FOR_US if state.status is MonitorStatus.LATE else 0
        version = (state.recorded, state.status, late_for)
        known = self._strips.get(view.uuid)
        if known is None or known[0] != version:
            async with self._reading:
                periods, _ = await self._monitors.history(view.timer.namespace, view.timer.id, STRIP_CELLS)
            known = version, presentation.strip(view, periods)
            self._strips[view.uuid] = known
        self._strips.move_to_end(view.uuid)
        if len(self._strips) > _STRIPS_MAX:
            self._strips.popitem(last=False)
        return MonitorRow(view, known[1], presentation.state_of(view, now_us))


def _link(context: RequestContext, wanted: dict[str, str]) -> str:
    """The list with these parameters, in the scope."""
    given = {name: value for name, value in {"namespace": context.scope, **wanted}.items() if value}
    return f"/monitors?{urlencode(given)}" if given else "/monitors"
