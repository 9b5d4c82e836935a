"""Actions on an existing timer: cancel, fire now, reschedule, run again under another id."""

from __future__ import annotations

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.errors import InvalidInput, TimerNotPending
from tocsin.model.instants import parse_duration
from tocsin.model.timer import Status, Timer
from tocsin.timers.service import TimerService
from tocsin.web.http import wire
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.errors import problem_kind
from tocsin.web.http.instants import format_instant, parse_instant
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import UNLESS_EXISTS, due, fresh_id, passed
from tocsin.web.pages.presentation import sentence, timer_path, with_query
from tocsin.web.pages.site import Part, Site, route
from tocsin.web.pages.timers.detail import TimerDetail


async def run_again(
    service: TimerService, parser: RequestParser, original: Timer, execute_at: int, now_us: int, chars_max: int
) -> str:
    """Creates a pending timer with the settings of a finished one, which keeps its id and its history; returns the new id.
    Raises InvalidInput if callbacks to the URL are no longer allowed, and what `TimerService.create` raises."""
    checked = parser.changes(wire.UpdateTimer(original.namespace, original.id, callback_url=original.url), now_us)
    timer = msgspec.structs.replace(
        original,
        id=fresh_id(original.id, chars_max),
        url=original.url if checked.url is msgspec.UNSET else checked.url,
        execute_at=execute_at,
        created_at=now_us,
        updated_at=now_us,
        traceparent=None,
        firing="",
        attempts=0,
        first_attempt_at=None,
        last_error=None,
        attempt_log=(),
        status=Status.PENDING,
        executed_at=None,
        keys=(),
    )
    await service.create(timer, UNLESS_EXISTS)
    return timer.id


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
        # A run that has begun is another one afterwards, so that is not undone.
        undoable = notice == "rescheduled" and not before.attempts and before.execute_at > context.now_us
        return _to(namespace, timer_id, notice, **({"was": format_instant(before.execute_at)} if undoable else {}))

    @route("POST", "/timers/run-again")
    async def run_again(self, context: RequestContext) -> Response:
        """Creates a copy of a finished timer under a new id; the finished timer keeps its history. The copy fires now, or
        with `when=same` at the original's time if that is in the future."""
        namespace, timer_id = context.writable(context.form)
        original = (await self._service.get(namespace, timer_id)).timer
        if original.status is Status.PENDING:
            reason = "The timer is pending and can't be run again. Nothing was done."
            return await self._detail.of(context, namespace, timer_id, status=409, problem=reason)
        same = context.form.get("when") == "same" and original.execute_at > context.now_us
        try:
            execute_at = original.execute_at if same else context.now_us
            new_id = await run_again(
                self._service, self._parser, original, execute_at, context.now_us, self._id_chars_max
            )
        except InvalidInput as error:
            return await self._refused(context, error)
        return _to(namespace, new_id, "run-again", of=timer_id)

    async def _refused(self, context: RequestContext, error: InvalidInput | TimerNotPending) -> Response:
        status = problem_kind(error).status
        return await self._detail.of(context, *context.writable(context.form), status=status, problem=sentence(error))


def _to(namespace: str, timer_id: str, notice: str, **more: str) -> Response:
    return RedirectResponse(with_query(timer_path(namespace, timer_id), {"notice": notice, **more}), 303)
