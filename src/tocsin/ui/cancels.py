"""Canceling any number of timers from an open page, a step at a time, so that it can show how far it is and be stopped.

A step takes some ids, or the next of those that match the filters of a list, and counts or cancels what is pending.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from starlette.responses import JSONResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, TimerNotFound, TimerNotPending, TocsinError
from tocsin.model.timer import Status
from tocsin.service import TimerService, TimerView
from tocsin.ui.limits import UiLimits
from tocsin.ui.listing import ListHandlers
from tocsin.ui.pages import Pages
from tocsin.ui.search import Patience, earliest
from tocsin.ui.show import destination, timer_path
from tocsin.ui.visit import Handler, Visit, whole

#: Timers of a bulk action that are named before the rest is only counted.
NAMED_MAX = 8
#: Cancels that are under way at once.
_CANCELS_PER_TURN = 100
_ids_decoder = msgspec.json.Decoder(list[str])


@dataclass(frozen=True, slots=True)
class Refused:
    """A timer of a bulk action on which it failed, and why."""

    timer_id: str
    reason: str


async def cancel_all(service: TimerService, namespace: str, ids: Sequence[str]) -> list[Refused]:
    """Cancels each; those that weren't, in the order of the ids."""
    refused: list[Refused] = []
    for start in range(0, len(ids), _CANCELS_PER_TURN):
        turn = ids[start : start + _CANCELS_PER_TURN]
        outcomes = await asyncio.gather(
            *(service.delete(namespace, timer_id) for timer_id in turn), return_exceptions=True
        )
        for timer_id, outcome in zip(turn, outcomes, strict=True):
            if isinstance(outcome, TocsinError):
                refused.append(Refused(timer_id, _reason(outcome)))
            elif isinstance(outcome, BaseException):
                raise outcome
    return refused


def too_many(number: int, limits: UiLimits) -> InvalidInput:
    """The refusal of more than one action takes."""
    text = f"{number} timers are more than can be canceled at once ({limits.cancel_timers_max})"
    return InvalidInput(FieldError("", text))


class CancelHandlers:
    """The dialog, and the steps that its script takes."""

    def __init__(self, service: TimerService, pages: Pages, lists: ListHandlers, limits: UiLimits) -> None:
        self._service = service
        self._pages = pages
        self._lists = lists
        self._limits = limits

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/ui/cancel", self.dialog),
            ("POST", "/ui/cancel/these", self.these),
            ("POST", "/ui/cancel/matching", self.matching),
        ]

    async def dialog(self, visit: Visit) -> Response:
        """What the script fills in: with `all=yes`, for everything pending that matches the filters as they are now."""
        filters, _ = await self._lists.filters(visit)
        visit.permit(Role.WRITE, filters.namespace)
        every = visit.query.get("all") == "yes"
        filters = filters.fixed(visit.now_us)
        request = self._lists.request(filters, visit.now_us)
        return self._pages.page(
            "timers/bulk.html", visit, filters=filters, request=request, every=every, limits=self._limits
        )

    async def these(self, visit: Visit) -> Response:
        """Counts or cancels those of `ids`, a JSON array, that are pending."""
        namespace = visit.form.exact("namespace")
        visit.permit(Role.WRITE, namespace)
        try:
            ids = list(dict.fromkeys(_ids_decoder.decode(visit.form.exact("ids"))))
        except msgspec.DecodeError:
            raise InvalidInput(FieldError("ids", "is not a list of ids")) from None
        if len(ids) > self._limits.cancel_timers_max:
            raise too_many(len(ids), self._limits)
        views = await self._service.get_many(namespace, ids)
        found = [views[timer_id] for timer_id in ids if timer_id in views]
        return await self._step(visit, namespace, found, len(ids) - len(found), None)

    async def matching(self, visit: Visit) -> Response:
        """Counts or cancels the next of those that match the filters in the query and had been created by `asked`
        (microseconds), when somebody was shown what would be canceled."""
        filters, _ = await self._lists.filters(visit)
        visit.permit(Role.WRITE, filters.namespace)
        asked = visit.form.get("asked")
        if not asked.isdecimal():
            raise InvalidInput(FieldError("asked", "is not an instant in microseconds"))
        rows = min(self._limits.cancel_timers_max, self._limits.list_rows_max)
        request = self._lists.request(replace(filters, view="upcoming", rows=rows), visit.now_us)
        patience = Patience(self._limits.list_search_timeout_s)
        found = await earliest(self._service.list, request, patience)
        asked_us = whole(asked)
        views = [view for view in found.views if view.timer.created_at <= asked_us]
        return await self._step(visit, filters.namespace, views, 0, found.cursor)

    async def _step(
        self, visit: Visit, namespace: str, found: list[TimerView], missing: int, cursor: str | None
    ) -> Response:
        """`other` counts those that are not pending any more, `refused` names those of the pending that were not
        canceled."""
        pending = [view for view in found if view.timer.status is Status.PENDING]
        refused: list[Refused] = []
        if visit.form.get("sure") == "yes":
            refused = await cancel_all(self._service, namespace, [view.timer.id for view in pending])
        hosts = Counter(destination(view.timer)[0] for view in pending)
        return JSONResponse(
            {
                "pending": len(pending),
                "other": len(found) - len(pending) + missing,
                "named": [view.timer.id for view in pending[:NAMED_MAX]],
                "hosts": hosts.most_common(),
                "refused": [[one.timer_id, timer_path(namespace, one.timer_id), one.reason] for one in refused],
                "cursor": cursor,
            }
        )


def _reason(error: TocsinError) -> str:
    if isinstance(error, TimerNotPending):
        return "has finished already"
    if isinstance(error, TimerNotFound):
        return "does not exist any more"
    return str(error)
