"""Actions on existing timers: cancel one or many, fire now, reschedule, run again under another id."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput, TimerNotPending, TocsinError
from tocsin.model.instants import parse_duration
from tocsin.model.timer import Status
from tocsin.timers.service import TimerService
from tocsin.web.http import wire
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.instants import format_instant, parse_instant
from tocsin.web.pages.context import Handler, RequestContext
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.presentation import destination, timer_path
from tocsin.web.pages.timers.bulk_cancel import NAMED_MAX, cancel_all, too_many
from tocsin.web.pages.timers.derived_ids import run_again
from tocsin.web.pages.timers.detail import DetailHandlers
from tocsin.web.pages.when_fields import passed, read_when


class ActionHandlers:
    """Each action redirects to a page that confirms it, or responds with the timer's page and the reason of the refusal."""

    def __init__(
        self,
        service: TimerService,
        parser: RequestParser,
        pages: Pages,
        detail: DetailHandlers,
        limits: UiLimits,
        *,
        id_chars_max: int,
    ) -> None:
        self._id_chars_max = id_chars_max
        self._service = service
        self._parser = parser
        self._pages = pages
        self._detail = detail
        self._limits = limits

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("POST", "/timers/cancel", self.cancel),
            ("POST", "/timers/fire", self.fire),
            ("POST", "/timers/reschedule", self.reschedule),
            ("POST", "/timers/run-again", self.run_again),
            ("POST", "/timers/cancel-many", self.cancel_many),
        ]

    async def cancel(self, context: RequestContext) -> Response:
        """Cancels one timer."""
        namespace, timer_id = self._writable(context)
        try:
            await self._service.delete(namespace, timer_id)
        except TimerNotPending as error:
            return await self._detail.of(context, namespace, timer_id, status=409, problem=_sentence(error))
        return _to(namespace, timer_id, "canceled")

    async def fire(self, context: RequestContext) -> Response:
        """Reschedules one timer to now."""
        return await self._reschedule(context, format_instant(context.now_us), "firing")

    async def reschedule(self, context: RequestContext) -> Response:
        """Reschedules one timer to a time in the future."""
        try:
            when = read_when(context.form)
            if "delay" in when:
                when = {"executeAt": format_instant(context.now_us + parse_duration(when["delay"]))}
            elif passed(parse_instant(when["executeAt"]), context.now_us):
                raise ValueError(f"{when['executeAt']} is in the past; use “Fire now” to fire at once")
        except (InvalidInput, ValueError) as error:
            namespace, timer_id = self._writable(context)
            return await self._detail.of(context, namespace, timer_id, status=400, problem=f"Not rescheduled: {error}.")
        return await self._reschedule(context, when["executeAt"], "rescheduled")

    async def _reschedule(self, context: RequestContext, execute_at: str, notice: str) -> Response:
        namespace, timer_id = self._writable(context)
        try:
            changes = self._parser.changes(wire.UpdateTimer(namespace, timer_id, execute_at=execute_at), context.now_us)
            await self._service.update(namespace, timer_id, changes)
        except InvalidInput as error:
            return await self._detail.of(context, namespace, timer_id, status=400, problem=_sentence(error))
        except TimerNotPending as error:
            return await self._detail.of(context, namespace, timer_id, status=409, problem=_sentence(error))
        return _to(namespace, timer_id, notice)

    async def run_again(self, context: RequestContext) -> Response:
        """Creates a copy of a finished timer under a new id; the finished timer keeps its history. The copy fires now, or
        with `when=same` at the original's time if that is in the future."""
        namespace, timer_id = self._writable(context)
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
            return await self._detail.of(context, namespace, timer_id, status=400, problem=_sentence(error))
        return _to(namespace, new_id, "run-again", of=timer_id)

    async def cancel_many(self, context: RequestContext) -> Response:
        """Asks for confirmation first; then cancels the timers, and lists those that were refused and why."""
        namespace = context.form.exact("namespace")
        context.permit(Role.WRITE, namespace)
        ids = list(dict.fromkeys(context.form.all("id")))
        if len(ids) > self._limits.cancel_timers_max:
            raise too_many(len(ids), self._limits)
        back = context.form.exact("back")
        values: dict[str, Any] = {
            "namespace": namespace,
            "ids": ids,
            "back": back if back.startswith("/timers?") else "/timers",
            "named_max": NAMED_MAX,
        }
        if context.form.get("confirmed") != "yes":
            views = await self._service.get_many(namespace, ids)
            found = [views[timer_id] for timer_id in ids if timer_id in views]
            pending = [view for view in found if view.timer.status is Status.PENDING]
            hosts = Counter(destination(view.timer)[0] for view in pending).most_common()
            title = "Cancel timers"
            return self._pages.page(
                "timers/confirm_cancel.html", context, title=title, pending=pending, hosts=hosts, **values
            )
        refused = await cancel_all(self._service, namespace, ids)
        return self._pages.page("timers/canceled.html", context, title="Canceled", refused=refused, **values)

    def _writable(self, context: RequestContext) -> tuple[str, str]:
        namespace, timer_id = context.timer_name(context.form)
        context.permit(Role.WRITE, namespace)
        return namespace, timer_id


def _to(namespace: str, timer_id: str, notice: str, **more: str) -> Response:
    path = timer_path(namespace, timer_id)
    return RedirectResponse(f"{path}{'&' if '?' in path else '?'}{urlencode({'notice': notice, **more})}", 303)


def _sentence(error: TocsinError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
