"""Running any number of finished timers again from an open page, a step at a time, as they are canceled.

Each run is a timer of its own under a new id: what has finished keeps its id and its history.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from starlette.responses import JSONResponse, Response

from tocsin.http.convert import RequestParser
from tocsin.model.access import Role
from tocsin.model.errors import TocsinError
from tocsin.model.timer import Status
from tocsin.service import TimerService, TimerView
from tocsin.ui.cancels import NAMED_MAX, PER_TURN, Refused, reason_of, wanted_ids
from tocsin.ui.limits import UiLimits
from tocsin.ui.listing import ListHandlers
from tocsin.ui.names import run_again
from tocsin.ui.pages import Pages
from tocsin.ui.show import destination, timer_path
from tocsin.ui.visit import Handler, Visit


class RunHandlers:
    """The dialog, and the steps that its script takes."""

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
        return [("GET", "/ui/again", self.dialog), ("POST", "/ui/again/these", self.these)]

    async def dialog(self, visit: Visit) -> Response:
        """What the script fills in."""
        filters, _ = await self._lists.filters(visit)
        visit.permit(Role.WRITE, filters.namespace)
        values: dict[str, Any] = {"filters": filters, "every": False, "kind": "again", "limits": self._limits}
        return self._pages.page("timers/bulk.html", visit, **values)

    async def these(self, visit: Visit) -> Response:
        """Counts those of `ids`, a JSON array, that have finished; with `sure=yes` it runs them again now. In its answer
        `pending` are those, and `other` the ones that are pending or gone."""
        namespace, ids = wanted_ids(visit, self._limits)
        views = await self._service.get_many(namespace, ids)
        finished = [
            views[timer_id]
            for timer_id in ids
            if timer_id in views and views[timer_id].timer.status is not Status.PENDING
        ]
        refused: list[Refused] = []
        if visit.form.get("sure") == "yes":
            for start in range(0, len(finished), PER_TURN):
                turn = finished[start : start + PER_TURN]
                outcomes = await asyncio.gather(*(self._run(view, visit.now_us) for view in turn))
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
