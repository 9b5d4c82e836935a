"""`/timers/new` and `/timers/edit`: the form that explains itself, and shows the equal command while one types."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.contract import wire
from tocsin.contract.access import KeyRing
from tocsin.contract.convert import Intake
from tocsin.contract.instants import format_instant
from tocsin.contract.reading import JsonReader
from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, TimerNotPending
from tocsin.model.instants import parse_duration
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.model.validation import METHODS
from tocsin.service import TimerService, TimerView
from tocsin.ui.forms import TimerForm, command, curl
from tocsin.ui.listing import ListHandlers
from tocsin.ui.pages import Pages
from tocsin.ui.show import timer_path
from tocsin.ui.visit import Handler, Visit

#: What "in …" offers at a click: text in the field, words on the button.
DELAYS = (("30s", "30 s"), ("5m", "5 min"), ("1h", "1 h"), ("24h", "1 day"), ("7d", "7 days"))


class EditHandlers:
    """Creating and changing. `keys`: whether the equal commands bring one."""

    def __init__(
        self, service: TimerService, intake: Intake, pages: Pages, lists: ListHandlers, *, keys: KeyRing
    ) -> None:
        self._service = service
        self._intake = intake
        self._pages = pages
        self._lists = lists
        self._keys = keys
        self._create_reader = JsonReader(wire.CreateTimer)
        self._update_reader = JsonReader(wire.UpdateTimer)

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/timers/new", self.new),
            ("POST", "/timers/new", self.create),
            ("GET", "/timers/edit", self.edit),
            ("POST", "/timers/edit", self.change),
            ("POST", "/ui/equal", self.equal),
        ]

    async def new(self, visit: Visit) -> Response:
        """An empty form, or with `like` the copy of a timer."""
        query = visit.query
        if "like" in query:
            namespace, timer_id = query.exact("namespace"), query.exact("like")
            visit.permit(Role.WRITE, namespace)
            form = TimerForm.of((await self._service.get(namespace, timer_id)).timer, when="in")
        else:
            form = TimerForm(namespace=query.exact("namespace") or await self._first(visit), url=query.get("url"))
            form.id = f"timer-{uuid.uuid4().hex[:8]}"
        visit.permit(Role.WRITE, form.namespace)
        return await self._form(visit, form)

    async def create(self, visit: Visit) -> Response:
        """Creates it, or shows the form again with what is wrong."""
        form = TimerForm.read(visit.form)
        visit.permit(Role.WRITE, form.namespace)
        try:
            sent = self._create_reader.read(msgspec.json.encode(form.body()))
            timer = self._intake.timer(sent, visit.now_us, None)
            await self._service.create(timer)
        except InvalidInput as error:
            return await self._form(visit, form, problem=error)
        return RedirectResponse(_said(form.namespace, form.id, "created"), 303)

    async def edit(self, visit: Visit) -> Response:
        """The form of a pending timer."""
        namespace, timer_id = visit.named(visit.query)
        visit.permit(Role.WRITE, namespace)
        view = await self._service.get(namespace, timer_id)
        return await self._form(visit, TimerForm.of(view.timer, when="keep"), view=view)

    async def change(self, visit: Visit) -> Response:
        """Changes what differs."""
        form = TimerForm.read(visit.form)
        visit.permit(Role.WRITE, form.namespace)
        view = await self._service.get(form.namespace, form.id)
        try:
            body = form.changes(view)
            if len(body) > 2:
                sent = self._update_reader.read(msgspec.json.encode(_at(body, visit.now_us)))
                await self._service.update(form.namespace, form.id, self._intake.changes(sent, visit.now_us))
        except (InvalidInput, TimerNotPending) as error:
            return await self._form(visit, form, view=view, problem=error)
        return RedirectResponse(_said(form.namespace, form.id, "changed"), 303)

    async def equal(self, visit: Visit) -> Response:
        """The commands that would do the same, and what is still wrong, while somebody types."""
        form = TimerForm.read(visit.form)
        visit.permit(Role.READ, form.namespace)
        view = None
        if visit.form.get("mode") == "edit":
            view = await self._service.get(form.namespace, form.id)
        return HTMLResponse(self._pages.text("timers/equal.html", visit, await self._equal(visit, form, view)))

    async def _equal(self, visit: Visit, form: TimerForm, view: TimerView | None) -> dict[str, Any]:
        server = str(visit.request.base_url).rstrip("/")
        errors: list[FieldError] = []
        try:
            if view is None:
                body, path = form.body(), "/api/v1/timers/create"
                self._intake.timer(self._create_reader.read(msgspec.json.encode(body)), visit.now_us, None)
            else:
                body, path = _at(form.changes(view), visit.now_us), "/api/v1/timers/update"
                if len(body) > 2:
                    self._intake.changes(self._update_reader.read(msgspec.json.encode(body)), visit.now_us)
        except InvalidInput as error:
            errors = list(error.errors)
            if form.payload.strip() and any(bad.path == "payload" for bad in errors):
                return {"errors": errors, "curl": "", "command": "", "unchanged": False}
            try:
                body, path = (form.body(), "/api/v1/timers/create") if view is None else (form.changes(view), "")
            except InvalidInput:
                return {"errors": errors, "curl": "", "command": "", "unchanged": False}
        unchanged = view is not None and len(body) <= 2
        return {
            "errors": errors,
            "curl": ""
            if unchanged
            else curl(server + (path or "/api/v1/timers/update"), body, key=self._keys.required),
            "command": "" if unchanged else command(server, body),
            "unchanged": unchanged,
        }

    async def _form(
        self,
        visit: Visit,
        form: TimerForm,
        *,
        view: TimerView | None = None,
        problem: InvalidInput | TimerNotPending | None = None,
    ) -> Response:
        errors: dict[str, str] = {}
        if isinstance(problem, InvalidInput):
            for bad in problem.errors:
                errors.setdefault(_field(bad.path), bad.reason)
        status = 200 if problem is None else 409 if isinstance(problem, TimerNotPending) else 400
        return self._pages.page(
            "timers/form.html",
            visit,
            status,
            title="New timer" if view is None else "Change timer",
            form=form,
            view=view,
            errors=errors,
            problem=str(problem) if isinstance(problem, TimerNotPending) else "",
            namespaces=[
                each for each in await self._lists.visible_namespaces(visit) if visit.visitor.may(Role.WRITE, each.name)
            ],
            methods=METHODS,
            delays=DELAYS,
            equal=await self._equal(visit, form, view),
        )

    async def _first(self, visit: Visit) -> str:
        names = [
            each.name
            for each in await self._lists.visible_namespaces(visit)
            if visit.visitor.may(Role.WRITE, each.name)
        ]
        return DEFAULT_NAMESPACE if DEFAULT_NAMESPACE in names or not names else names[0]


def _at(body: dict[str, Any], now_us: int) -> dict[str, Any]:
    """An update has no delay: it becomes the instant that it means now."""
    if "delay" not in body:
        return body
    try:
        instant = format_instant(now_us + parse_duration(body["delay"]))
    except (ValueError, OverflowError) as error:
        raise InvalidInput(FieldError("delay", str(error))) from None
    return {**{name: value for name, value in body.items() if name != "delay"}, "executeAt": instant}


def _field(path: str) -> str:
    """The part of the form that a path of the API belongs to."""
    first = path.split(".", 1)[0].split("[", 1)[0]
    if path.startswith("retryPolicy."):
        return path.partition(".")[2]
    return first or "form"


def _said(namespace: str, timer_id: str, did: str) -> str:
    path = timer_path(namespace, timer_id)
    return f"{path}{'&' if '?' in path else '?'}did={did}"
