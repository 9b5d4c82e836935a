"""Cancels selected timers, or replays finished ones, from an open page. All that match a filter are changed by a job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.responses import Response

from tocsin.model.access import EVERY, Role
from tocsin.model.errors import TimerNotFound, TimerNotPending, TimerPending, TocsinError
from tocsin.model.timer import Changes, Status
from tocsin.timers.service import TimerView
from tocsin.web.pages.bulk import NAMED_MAX, Target, change_all, distinct, hosts, sent_ids, step
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.lists import key_of
from tocsin.web.pages.presentation import timer_path
from tocsin.web.pages.site import Part, Site, route
from tocsin.web.pages.timers.listing import TimerList


class BulkActions(Part):
    """The dialogs, the steps that their script requests, and the same cancellation in one step for browsers without it."""

    def __init__(self, site: Site, lists: TimerList) -> None:
        super().__init__(site)
        self._lists = lists

    @route("GET", "/ui/cancel")
    async def cancel_dialog(self, context: RequestContext) -> Response:
        """The dialog that the script fills in."""
        return await self._dialog(context, "cancel")

    @route("GET", "/ui/replay")
    async def replay_dialog(self, context: RequestContext) -> Response:
        """The dialog that the script fills in."""
        return await self._dialog(context, "replay")

    async def _dialog(self, context: RequestContext, kind: str) -> Response:
        filters = await self._lists.filters(context)
        self._permit(context, filters.scope)
        return self._pages.page(
            "bulk.html",
            context,
            noun="timer",
            filters=filters,
            every=False,
            kind=kind,
            limits=self._limits,
        )

    def _permit(self, context: RequestContext, scope: str) -> None:
        """Raises Forbidden unless the principal may change the timers of the scope."""
        if not self._lists.permit(context, scope):
            context.permit(Role.WRITE, None if scope == EVERY else scope)

    @route("POST", "/ui/cancel/selected")
    async def cancel_selected(self, context: RequestContext) -> Response:
        """Counts or cancels the pending timers among `ids`, a JSON array of namespaces and ids."""
        pending, other = await self._selected(context, pending=True)
        return await self._step(context, pending, other, self._cancel)

    @route("POST", "/ui/replay/selected")
    async def replay_selected(self, context: RequestContext) -> Response:
        """Counts or replays the finished timers among `ids`, a JSON array of namespaces and ids."""
        finished, other = await self._selected(context, pending=False)
        return await self._step(context, finished, other, self._replay)

    async def _replay(self, key: str) -> None:
        namespace, _, timer_id = key.partition("/")
        (outcome,) = await self._service.replay(namespace, [timer_id], Changes())
        if isinstance(outcome, TocsinError):
            raise outcome

    async def _cancel(self, key: str) -> None:
        namespace, _, timer_id = key.partition("/")
        await self._service.delete(namespace, timer_id)

    @route("POST", "/timers/cancel-many")
    async def cancel_many(self, context: RequestContext) -> Response:
        """Asks for confirmation first; then cancels the timers, and lists those that were refused and why."""
        keys = self._wanted(context, context.form.all("id"))
        back = context.form.exact("back")
        values: dict[str, Any] = {"keys": keys, "back": back if back.startswith("/timers?") else "/timers"}
        if context.form.get("confirmed") == "yes":
            refused = await change_all(keys, self._cancel, _reason)
            return self._pages.page("timers/canceled.html", context, title="Canceled", refused=refused, **values)
        views = await self._lists.get_many(context, EVERY, keys)
        pending = [view for key in keys if (view := views.get(key)) and view.timer.status is Status.PENDING]
        return self._pages.page(
            "timers/confirm_cancel.html",
            context,
            title="Cancel timers",
            pending=pending,
            hosts=hosts(view.timer.url for view in pending),
            named_max=NAMED_MAX,
            **values,
        )

    async def _selected(self, context: RequestContext, *, pending: bool) -> tuple[list[TimerView], int]:
        """The timers among the form's ids that are pending, or those that are not, and how many ids name others or none."""
        keys = self._wanted(context, sent_ids(context, self._limits.cancel_timers_max, "timer"))
        views = await self._lists.get_many(context, EVERY, keys)
        found = [views[key] for key in keys if key in views]
        wanted = [view for view in found if (view.timer.status is Status.PENDING) == pending]
        return wanted, len(keys) - len(wanted)

    def _wanted(self, context: RequestContext, sent: Sequence[str]) -> list[str]:
        """The distinct namespaces and ids. Raises InvalidInput, and Forbidden if the principal may not change one of the
        namespaces."""
        keys = distinct(sent, self._limits.cancel_timers_max, "timer")
        for namespace in {key.partition("/")[0] for key in keys}:
            context.permit(Role.WRITE, namespace)
        return keys

    async def _step(
        self,
        context: RequestContext,
        views: Sequence[TimerView],
        other: int,
        change: Callable[[str], Awaitable[object]],
    ) -> Response:
        """A step on these timers, as `bulk.step`."""
        timers = [view.timer for view in views]
        targets = [
            Target(key_of(timer), timer.id, timer_path(timer.namespace, timer.id), timer.url) for timer in timers
        ]
        return await step(context, targets, other, change, _reason)


def _reason(error: TocsinError) -> str:
    """Why a bulk action failed on a timer, as a phrase that follows its id."""
    if isinstance(error, TimerNotPending):
        return "has already finished"
    if isinstance(error, TimerPending):
        return "is pending again"
    if isinstance(error, TimerNotFound):
        return "no longer exists"
    return str(error)
