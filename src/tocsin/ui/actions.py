"""What people do to timers that exist: cancel one or many, fire now, move, run again under another id."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from tocsin.http import wire
from tocsin.http.convert import RequestParser
from tocsin.http.instants import format_instant, parse_instant
from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput, TimerNotPending, TocsinError
from tocsin.model.instants import parse_duration
from tocsin.model.timer import Status
from tocsin.service import TimerService
from tocsin.ui.cancels import NAMED_MAX, cancel_all, too_many
from tocsin.ui.detail import DetailHandlers
from tocsin.ui.limits import UiLimits
from tocsin.ui.names import run_again
from tocsin.ui.pages import Pages
from tocsin.ui.show import destination, timer_path
from tocsin.ui.visit import Handler, Visit
from tocsin.ui.whenever import passed, read_when


class ActionHandlers:
    """Every change is answered by a redirect to a page that says it, or by the page with the reason of the refusal."""

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
            ("POST", "/timers/move", self.move),
            ("POST", "/timers/again", self.again),
            ("POST", "/timers/cancel-many", self.cancel_many),
        ]

    async def cancel(self, visit: Visit) -> Response:
        """Cancels one."""
        namespace, timer_id = self._writable(visit)
        try:
            await self._service.delete(namespace, timer_id)
        except TimerNotPending as error:
            return await self._detail.of(visit, namespace, timer_id, status=409, problem=_sentence(error))
        return _to(namespace, timer_id, "canceled")

    async def fire(self, visit: Visit) -> Response:
        """Moves one to now."""
        return await self._moved(visit, format_instant(visit.now_us), "firing")

    async def move(self, visit: Visit) -> Response:
        """Moves one to another time, which must not have passed."""
        try:
            when = read_when(visit.form)
            if "delay" in when:
                when = {"executeAt": format_instant(visit.now_us + parse_duration(when["delay"]))}
            elif passed(parse_instant(when["executeAt"]), visit.now_us):
                raise ValueError(f"{when['executeAt']} has passed; use “Fire now” to fire it at once")
        except (InvalidInput, ValueError) as error:
            namespace, timer_id = self._writable(visit)
            return await self._detail.of(visit, namespace, timer_id, status=400, problem=f"When? {error}.")
        return await self._moved(visit, when["executeAt"], "moved")

    async def _moved(self, visit: Visit, execute_at: str, did: str) -> Response:
        namespace, timer_id = self._writable(visit)
        try:
            changes = self._parser.changes(wire.UpdateTimer(namespace, timer_id, execute_at=execute_at), visit.now_us)
            await self._service.update(namespace, timer_id, changes)
        except InvalidInput as error:
            return await self._detail.of(visit, namespace, timer_id, status=400, problem=_sentence(error))
        except TimerNotPending as error:
            return await self._detail.of(visit, namespace, timer_id, status=409, problem=_sentence(error))
        return _to(namespace, timer_id, did)

    async def again(self, visit: Visit) -> Response:
        """Creates another timer like a finished one, under a new id, so that the finished one keeps its history: to fire now,
        or with `when=same` at the former's own time, if that lies ahead."""
        namespace, timer_id = self._writable(visit)
        former = (await self._service.get(namespace, timer_id)).timer
        if former.status is Status.PENDING:
            reason = "It is pending; nothing was done."
            return await self._detail.of(visit, namespace, timer_id, status=409, problem=reason)
        same = visit.form.get("when") == "same" and former.execute_at > visit.now_us
        try:
            execute_at = former.execute_at if same else visit.now_us
            made = await run_again(self._service, self._parser, former, execute_at, visit.now_us, self._id_chars_max)
        except InvalidInput as error:
            return await self._detail.of(visit, namespace, timer_id, status=400, problem=_sentence(error))
        return _to(namespace, made, "again", of=timer_id)

    async def cancel_many(self, visit: Visit) -> Response:
        """First shows how many and which; does it when told so, and tells what became of each that was refused."""
        namespace = visit.form.exact("namespace")
        visit.permit(Role.WRITE, namespace)
        ids = list(dict.fromkeys(visit.form.all("id")))
        if len(ids) > self._limits.cancel_timers_max:
            raise too_many(len(ids), self._limits)
        back = visit.form.exact("back")
        values: dict[str, Any] = {
            "namespace": namespace,
            "ids": ids,
            "back": back if back.startswith("/timers?") else "/timers",
            "named_max": NAMED_MAX,
        }
        if visit.form.get("sure") != "yes":
            views = await self._service.get_many(namespace, ids)
            found = [views[timer_id] for timer_id in ids if timer_id in views]
            pending = [view for view in found if view.timer.status is Status.PENDING]
            hosts = Counter(destination(view.timer)[0] for view in pending).most_common()
            title = "Cancel timers"
            return self._pages.page("timers/sure.html", visit, title=title, pending=pending, hosts=hosts, **values)
        refused = await cancel_all(self._service, namespace, ids)
        return self._pages.page("timers/canceled.html", visit, title="Canceled", refused=refused, **values)

    def _writable(self, visit: Visit) -> tuple[str, str]:
        namespace, timer_id = visit.named(visit.form)
        visit.permit(Role.WRITE, namespace)
        return namespace, timer_id


def _to(namespace: str, timer_id: str, did: str, **more: str) -> Response:
    path = timer_path(namespace, timer_id)
    return RedirectResponse(f"{path}{'&' if '?' in path else '?'}{urlencode({'did': did, **more})}", 303)


def _sentence(error: TocsinError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
