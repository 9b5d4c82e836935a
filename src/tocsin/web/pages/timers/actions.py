"""Actions on an existing timer: cancel, fire now, reschedule, replay."""

from __future__ import annotations

from msgspec import UNSET
from starlette.responses import RedirectResponse, Response

from tocsin.model.errors import Conflict, InvalidInput, TimerNotPending, TocsinError
from tocsin.model.instants import format_instant, parse_duration
from tocsin.web.http import wire
from tocsin.web.http.errors import problem_kind
from tocsin.web.http.instants import parse_instant
from tocsin.web.http.replays import ReplayTimers
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import due, passed
from tocsin.web.pages.presentation import sentence, timer_path, with_query
from tocsin.web.pages.site import Part, Site, route
from tocsin.web.pages.timers.detail import TimerDetail


class TimerActions(Part):
    """Each action redirects to a page that confirms it, or responds with the timer's page and the reason of the refusal."""

    def __init__(self, site: Site, detail: TimerDetail) -> None:
        super().__init__(site)
        self._detail = detail

    @route("POST", "/timers/cancel")
    async def cancel(self, context: RequestContext) -> Response:
        """Cancels one timer."""
        namespace, timer_id = context.writable(context.form)
        try:
            await self._service.delete(namespace, timer_id)
        except TimerNotPending as error:
            return await self._refused(context, error)
        context.changed("timers/delete", namespace, timer_id)
        return _to(namespace, timer_id, "canceled")

    @route("POST", "/timers/fire")
    async def fire(self, context: RequestContext) -> Response:
        """Reschedules one timer to now."""
        return await self._reschedule(context, format_instant(context.now_us), "firing")

    @route("POST", "/timers/reschedule")
    async def reschedule(self, context: RequestContext) -> Response:
        """Reschedules one timer to a time in the future."""
        try:
            form = context.form
            when = due(form.get("when"), form.get("delay"), form.get("at"), form.get("zone_minutes"))
            if "delay" in when:
                when = {"executeAt": format_instant(context.now_us + parse_duration(when["delay"]))}
            elif passed(parse_instant(when["executeAt"]), context.now_us):
                raise ValueError(f"{when['executeAt']} is in the past; use “Fire now” to fire at once")
        except (InvalidInput, ValueError) as error:
            namespace, timer_id = context.writable(context.form)
            return await self._detail.of(context, namespace, timer_id, status=400, problem=f"Not rescheduled: {error}.")
        return await self._reschedule(context, when["executeAt"], "rescheduled")

    async def _reschedule(self, context: RequestContext, execute_at: str, notice: str) -> Response:
        namespace, timer_id = context.writable(context.form)
        before = (await self._service.get(namespace, timer_id)).timer
        try:
            changes = self._parser.changes(wire.UpdateTimer(namespace, timer_id, execute_at=execute_at), context.now_us)
            await self._service.update(namespace, timer_id, changes)
        except (InvalidInput, TimerNotPending) as error:
            return await self._refused(context, error)
        context.changed("timers/update", namespace, timer_id)
        # A run that has begun is another one afterwards, so that is not undone.
        undoable = notice == "rescheduled" and not before.attempts and before.execute_at > context.now_us
        return _to(namespace, timer_id, notice, **({"was": format_instant(before.execute_at)} if undoable else {}))

    @route("POST", "/timers/replay")
    async def replay(self, context: RequestContext) -> Response:
        """Fires a finished timer again under its webhook-id: at once, at the local time `at`, or at `instant` if that is in
        the future; with another URL if one is given."""
        namespace, timer_id = context.writable(context.form)
        form, execute_at = context.form, ""
        try:
            if form.get("at"):
                execute_at = due("at", "", form.get("at"), form.get("zone_minutes"))["executeAt"]
            elif form.get("instant") and not passed(parse_instant(form.get("instant")), context.now_us):
                execute_at = form.get("instant")
            wanted = ReplayTimers(namespace, [timer_id], execute_at or UNSET, set_url=form.get("url") or UNSET)
            changes = self._parser.replay(wanted, context.now_us)
            (outcome,) = await self._service.replay(namespace, [timer_id], changes)
            if isinstance(outcome, TocsinError):
                raise outcome
        except (InvalidInput, Conflict) as error:
            return await self._refused(context, error)
        except ValueError as error:
            return await self._detail.of(context, namespace, timer_id, status=400, problem=f"Not replayed: {error}.")
        context.changed("timers/replay", namespace, timer_id)
        return _to(namespace, timer_id, "replayed")

    async def _refused(self, context: RequestContext, error: InvalidInput | Conflict) -> Response:
        status = problem_kind(error).status
        return await self._detail.of(context, *context.writable(context.form), status=status, problem=sentence(error))


def _to(namespace: str, timer_id: str, notice: str, **more: str) -> Response:
    return RedirectResponse(with_query(timer_path(namespace, timer_id), {"notice": notice, **more}), 303)
