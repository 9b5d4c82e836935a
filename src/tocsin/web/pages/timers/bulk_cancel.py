"""Cancels any number of timers from an open page, step by step, so that the page shows progress and can stop.

A step takes some ids, or the next timers that match the filters of a list, and counts or cancels the pending ones.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from starlette.responses import JSONResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, TimerNotFound, TimerNotPending, TocsinError
from tocsin.model.timer import Status
from tocsin.timers.service import TimerService, TimerView
from tocsin.web.pages.context import Handler, RequestContext, whole_number
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.presentation import destination, timer_path
from tocsin.web.pages.timers.listing import ListHandlers
from tocsin.web.pages.timers.search import TimeBudget, earliest

#: Ids of a bulk action that are shown; the rest is counted.
NAMED_MAX = 8
#: Concurrent changes of a bulk action.
PER_TURN = 100
_ids_decoder = msgspec.json.Decoder(list[str])


@dataclass(frozen=True, slots=True)
class Refused:
    """A timer on which a bulk action failed, and why."""

    timer_id: str
    reason: str


async def cancel_all(service: TimerService, namespace: str, ids: Sequence[str]) -> list[Refused]:
    """Cancels each timer. Returns those that could not be canceled, in the order of the ids."""
    refused: list[Refused] = []
    for start in range(0, len(ids), PER_TURN):
        turn = ids[start : start + PER_TURN]
        outcomes = await asyncio.gather(
            *(service.delete(namespace, timer_id) for timer_id in turn), return_exceptions=True
        )
        for timer_id, outcome in zip(turn, outcomes, strict=True):
            if isinstance(outcome, TocsinError):
                refused.append(Refused(timer_id, reason_of(outcome)))
            elif isinstance(outcome, BaseException):
                raise outcome
    return refused


def wanted_ids(context: RequestContext, limits: UiLimits) -> tuple[str, list[str]]:
    """The namespace and the distinct ids of a step; `ids` is a JSON array. Raises InvalidInput, and Forbidden if the
    principal may not change the namespace."""
    namespace = context.form.exact("namespace")
    context.permit(Role.WRITE, namespace)
    try:
        ids = list(dict.fromkeys(_ids_decoder.decode(context.form.exact("ids"))))
    except msgspec.DecodeError:
        raise InvalidInput(FieldError("ids", "is not a list of ids")) from None
    if len(ids) > limits.cancel_timers_max:
        raise too_many(len(ids), limits)
    return namespace, ids


def too_many(number: int, limits: UiLimits) -> InvalidInput:
    """The error for more timers than one action accepts."""
    text = f"{number} timers are too many for one request; the maximum is {limits.cancel_timers_max}"
    return InvalidInput(FieldError("", text))


class CancelHandlers:
    """The dialog, and the steps that its script requests."""

    def __init__(self, service: TimerService, pages: Pages, lists: ListHandlers, limits: UiLimits) -> None:
        self._service = service
        self._pages = pages
        self._lists = lists
        self._limits = limits

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/ui/cancel", self.dialog),
            ("POST", "/ui/cancel/selected", self.selected),
            ("POST", "/ui/cancel/matching", self.matching),
        ]

    async def dialog(self, context: RequestContext) -> Response:
        """The dialog that the script fills in. With `all=yes` it is about all pending timers that match the current
        filters."""
        filters, _ = await self._lists.filters(context)
        context.permit(Role.WRITE, filters.namespace)
        every = context.query.get("all") == "yes"
        filters = filters.fixed(context.now_us)
        request = self._lists.request(filters, context.now_us)
        values: dict[str, Any] = {
            "filters": filters,
            "request": request,
            "every": every,
            "kind": "cancel",
            "limits": self._limits,
        }
        return self._pages.page("timers/bulk.html", context, **values)

    async def selected(self, context: RequestContext) -> Response:
        """Counts or cancels the pending timers among `ids`, a JSON array."""
        namespace, ids = wanted_ids(context, self._limits)
        views = await self._service.get_many(namespace, ids)
        found = [views[timer_id] for timer_id in ids if timer_id in views]
        return await self._step(context, namespace, found, len(ids) - len(found), None)

    async def matching(self, context: RequestContext) -> Response:
        """Counts or cancels the next timers that match the filters in the query and were created by `created_before`, the
        instant (microseconds) at which the dialog was opened."""
        filters, _ = await self._lists.filters(context)
        context.permit(Role.WRITE, filters.namespace)
        created_before = context.form.get("created_before")
        if not created_before.isdecimal():
            raise InvalidInput(FieldError("created_before", "is not an instant in microseconds"))
        rows = min(self._limits.cancel_timers_max, self._limits.list_rows_max)
        request = self._lists.request(replace(filters, view="pending", rows=rows), context.now_us)
        budget = TimeBudget(self._limits.list_search_timeout_s)
        found = await earliest(self._service.list, request, budget)
        created_before_us = whole_number(created_before)
        views = [view for view in found.views if view.timer.created_at <= created_before_us]
        return await self._step(context, filters.namespace, views, 0, found.cursor)

    async def _step(
        self, context: RequestContext, namespace: str, found: list[TimerView], missing: int, cursor: str | None
    ) -> Response:
        """`other` counts the timers that are no longer pending; `refused` lists the pending ones that could not be
        canceled."""
        pending = [view for view in found if view.timer.status is Status.PENDING]
        refused: list[Refused] = []
        if context.form.get("confirmed") == "yes":
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


def reason_of(error: TocsinError) -> str:
    """Why a bulk action failed on a timer, as a phrase that follows its id."""
    if isinstance(error, TimerNotPending):
        return "has already finished"
    if isinstance(error, TimerNotFound):
        return "no longer exists"
    return str(error)
