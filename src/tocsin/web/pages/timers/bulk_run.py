"""Runs any number of finished timers again from an open page, step by step.

Each run is a new timer with a new id; the finished timer keeps its id and its history.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from starlette.responses import JSONResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import TocsinError
from tocsin.model.timer import Status
from tocsin.timers.service import TimerService, TimerView
from tocsin.web.http.convert import RequestParser
from tocsin.web.pages.context import Handler, RequestContext
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.presentation import destination, timer_path
from tocsin.web.pages.timers.bulk_cancel import NAMED_MAX, PER_TURN, Refused, reason_of, wanted_ids
from tocsin.web.pages.timers.derived_ids import run_again
from tocsin.web.pages.timers.listing import ListHandlers


class RunHandlers:
    """The dialog, and the steps that its script requests."""

    def __init__(
        self,
        service: TimerService,
        parser: RequestParser,
        pages: Pages,
        lists: ListHandlers,
        limits: UiLimits,
        *,
        id_chars_max: int,
    ) -> None:
        self._service = service
        self._parser = parser
        self._pages = pages
        self._lists = lists
        self._limits = limits
        self._id_chars_max = id_chars_max

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [("GET", "/ui/run-again", self.dialog), ("POST", "/ui/run-again/selected", self.selected)]

    async def dialog(self, context: RequestContext) -> Response:
        """The dialog that the script fills in."""
        filters, _ = await self._lists.filters(context)
        context.permit(Role.WRITE, filters.namespace)
        values: dict[str, Any] = {"filters": filters, "every": False, "kind": "run-again", "limits": self._limits}
        return self._pages.page("timers/bulk.html", context, **values)

    async def selected(self, context: RequestContext) -> Response:
        """Counts the finished timers among `ids`, a JSON array; with `confirmed=yes` runs them again now. In the response
        `pending` counts these, and `other` the timers that are pending or no longer exist."""
        namespace, ids = wanted_ids(context, self._limits)
        views = await self._service.get_many(namespace, ids)
        finished = [
            views[timer_id]
            for timer_id in ids
            if timer_id in views and views[timer_id].timer.status is not Status.PENDING
        ]
        refused: list[Refused] = []
        if context.form.get("confirmed") == "yes":
            for start in range(0, len(finished), PER_TURN):
                turn = finished[start : start + PER_TURN]
                outcomes = await asyncio.gather(*(self._run(view, context.now_us) for view in turn))
                refused += [outcome for outcome in outcomes if outcome is not None]
        hosts = Counter(destination(view.timer)[0] for view in finished)
        return JSONResponse(
            {
                "pending": len(finished),
                "other": len(ids) - len(finished),
                "named": [view.timer.id for view in finished[:NAMED_MAX]],
                "hosts": hosts.most_common(),
                "refused": [[one.timer_id, timer_path(namespace, one.timer_id), one.reason] for one in refused],
                "cursor": None,
            }
        )

    async def _run(self, view: TimerView, now_us: int) -> Refused | None:
        try:
            await run_again(self._service, self._parser, view.timer, now_us, now_us, self._id_chars_max)
        except TocsinError as error:
            return Refused(view.timer.id, reason_of(error))
        return None
