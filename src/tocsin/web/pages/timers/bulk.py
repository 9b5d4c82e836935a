"""Cancels selected timers, or replays finished ones. All that match a filter are changed by a job."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from tocsin.model.access import EVERY, Role
from tocsin.model.errors import TimerNotFound, TimerNotPending, TimerPending, TocsinError
from tocsin.model.timer import Changes, Status
from tocsin.timers.service import TimerView
from tocsin.web.pages.bulk import Action, Target, ask_or_change, selected
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import row_key, timer_path
from tocsin.web.pages.site import Part, Site, route
from tocsin.web.pages.timers.listing import TimerList

_CANCEL = Action(
    "/timers/cancel-many",
    "timer",
    "Cancel",
    "canceled",
    ("It will not fire.", "They will not fire."),
    ("was not pending when listed, or is no longer", "were not pending when listed, or are no longer"),
    "None of the selected timers was pending when listed and still is, so there is nothing to cancel.",
    "None of them will fire. An in-flight attempt may still arrive.",
    takes=True,
)
_REPLAY = Action(
    "/timers/replay-many",
    "timer",
    "Replay",
    "replayed",
    ("It fires again at once, under the same webhook-id.", "They fire again at once, under the same webhook-ids."),
    ("was pending when listed, or has changed since", "were pending when listed, or have changed since"),
    "Each of the selected timers was pending when listed, or has changed since, so there is nothing to replay.",
    "They are pending until they finish.",
)


class BulkActions(Part):
    """Each asks first, and then changes the timers."""

    def __init__(self, site: Site, lists: TimerList) -> None:
        super().__init__(site)
        self._lists = lists

    @route("POST", _CANCEL.path)
    async def cancel_many(self, context: RequestContext) -> Response:
        """Cancels the pending ones of the selected timers."""
        return await self._change(context, _CANCEL)

    @route("POST", _REPLAY.path)
    async def replay_many(self, context: RequestContext) -> Response:
        """Replays the finished ones of the selected timers."""
        return await self._change(context, _REPLAY)

    async def _change(self, context: RequestContext, action: Action) -> Response:
        keys = selected(context, action, self._limits.selected_max)
        subjects = {key: self._lists.subject(key) for key in keys}
        for namespace in {subject.partition("/")[0] for subject in subjects.values()}:
            context.permit(Role.WRITE, namespace)
        views = await self._lists.get_many(context, EVERY, list(dict.fromkeys(subjects.values())))
        pending, change = (True, self._cancel) if action is _CANCEL else (False, self._replay)
        # A row of a run that has ended selects that run, not what became of its timer since.
        targets = [
            _target(view)
            for key, subject in subjects.items()
            if (view := views.get(subject))
            and row_key(view) == key
            and (view.timer.status is Status.PENDING) == pending
        ]
        return await ask_or_change(
            self._pages, context, action, targets, len(keys) - len(targets), partial(change, context), _reason
        )

    async def _replay(self, context: RequestContext, key: str) -> None:
        namespace, _, timer_id = self._lists.subject(key).partition("/")
        (outcome,) = await self._service.replay(namespace, [timer_id], Changes())
        if isinstance(outcome, TocsinError):
            raise outcome
        context.changed("timers/replay", namespace, timer_id)

    async def _cancel(self, context: RequestContext, key: str) -> None:
        namespace, _, timer_id = self._lists.subject(key).partition("/")
        await self._service.delete(namespace, timer_id)
        context.changed("timers/delete", namespace, timer_id)


def _target(view: TimerView) -> Target:
    timer = view.timer
    return Target(row_key(view), timer.id, timer_path(timer.namespace, timer.id), timer.url)


def _reason(error: TocsinError) -> str:
    """Why the action failed on a timer, as a phrase that follows its id."""
    if isinstance(error, TimerNotPending):
        return "has already finished"
    if isinstance(error, TimerPending):
        return "is pending again"
    if isinstance(error, TimerNotFound):
        return "no longer exists"
    return str(error)
