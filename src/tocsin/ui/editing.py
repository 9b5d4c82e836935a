"""`/timers/new` and `/timers/edit`: the form that explains itself, and shows the equal command while one types."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.http import wire
from tocsin.http.access import Keyring
from tocsin.http.convert import RequestParser
from tocsin.http.instants import format_instant
from tocsin.http.reading import JsonReader
from tocsin.http.repeated import condition_of
from tocsin.model.access import Role
from tocsin.model.errors import (
    FieldError,
    IdempotencyConflict,
    InvalidInput,
    NamespaceNotFound,
    TimerExists,
    TimerNotFound,
    TimerNotPending,
)
from tocsin.model.instants import parse_duration
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.model.timer import Status, Timer
from tocsin.model.validation import METHODS
from tocsin.model.withheld import with_headers, with_url, withheld
from tocsin.service import TimerService, TimerView
from tocsin.ui.forms import TimerForm, command, curl
from tocsin.ui.listing import ListHandlers
from tocsin.ui.names import copy_ids, first_free
from tocsin.ui.pages import Pages
from tocsin.ui.plan import plan
from tocsin.ui.show import timer_path, version
from tocsin.ui.visit import Handler, Visit
from tocsin.ui.whenever import passed

#: What "in …" offers at a click: text in the field, words on the button.
DELAYS = (("30s", "30 s"), ("5m", "5 min"), ("1h", "1 h"), ("24h", "1 day"), ("7d", "7 days"))
#: What the fields are called, in their order on the page, by their names in the API.
_LABELS = {
    "callbackUrl": "URL",
    "delay": "In",
    "executeAt": "At",
    "namespace": "Namespace",
    "id": "Id",
    "tags": "Tags",
    "payload": "Payload",
    "maxAttempts": "Attempts in all",
    "initialInterval": "First delay",
    "backoffMultiplier": "Each delay",
    "maxInterval": "Longest delay",
    "maxAttemptsDuration": "Give up after",
    "callbackTimeoutSeconds": "Time-out",
    "headers": "Headers",
}


class EditHandlers:
    """Creating and changing. `keys`: whether the equal commands bring one."""

    def __init__(
        self,
        service: TimerService,
        parser: RequestParser,
        pages: Pages,
        lists: ListHandlers,
        *,
        keys: Keyring,
        id_chars_max: int,
    ) -> None:
        self._id_chars_max = id_chars_max
        self._service = service
        self._parser = parser
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
        """An empty form, or with `like` the copy of a timer, under an id of its own."""
        query = visit.query
        if "like" in query:
            namespace, timer_id = query.exact("namespace"), query.exact("like")
            visit.permit(Role.WRITE, namespace)
            form = TimerForm.of((await self._service.get(namespace, timer_id)).timer, when="in")
            form.like_namespace, form.like = namespace, timer_id
            form.id = await first_free(self._service, namespace, copy_ids(timer_id, self._id_chars_max))
        else:
            form = TimerForm(namespace=query.exact("namespace") or await self._first(visit), url=query.get("url"))
            form.id = f"timer-{uuid.uuid4().hex[:8]}"
        visit.permit(Role.WRITE, form.namespace)
        return await self._form(visit, form)

    async def create(self, visit: Visit) -> Response:
        """Creates it, or shows the form again with what is wrong, or with what it asks: whether to replace a pending timer of
        that id, and whether an instant that has passed is meant. Nothing that was typed is lost."""
        form = TimerForm.read(visit.form)
        form.id = visit.form.exact("instead") or form.id
        visit.permit(Role.WRITE, form.namespace)
        try:
            sent = self._create_reader.read(msgspec.json.encode(form.body()))
            timer = self._parser.timer(sent, visit.now_us, None)
            if form.like and withheld(timer.url, timer.headers):
                await self._with_secrets(visit, timer, form)
        except InvalidInput as error:
            return await self._form(visit, form, problem=error)
        if form.when == "at" and self._asks_of_past(visit, timer.execute_at):
            return await self._form(visit, form, past=timer.execute_at)
        replaced = await self._to_replace(visit, form)
        try:
            # Under the form's own key: sent twice, since its answer was lost, it is one timer and no question.
            key = visit.form.get("attempt") or None
            await self._service.create(timer, None if replaced else condition_of(sent, key, timer.execute_at))
        except (TimerExists, IdempotencyConflict):
            return await self._form(visit, form, existing=await self._existing(form))
        except InvalidInput as error:
            return await self._form(visit, form, problem=error)
        return RedirectResponse(_said(form.namespace, form.id, "replaced" if replaced else "created"), 303)

    async def _with_secrets(self, visit: Visit, timer: Timer, form: TimerForm) -> None:
        """Gives a copy the secrets of its original. Who may change the original may send them anywhere."""
        visit.permit(Role.WRITE, form.like_namespace)
        try:
            original = (await self._service.get(form.like_namespace, form.like)).timer
        except (TimerNotFound, NamespaceNotFound):
            return
        timer.url = with_url(timer.url, original.url)
        if timer.headers is not None:
            timer.headers = with_headers(timer.headers, original.headers)

    async def _to_replace(self, visit: Visit, form: TimerForm) -> bool:
        """Whether the timer that was shown is to be replaced, and is still as it was shown."""
        shown = visit.form.exact("replace")
        if not shown:
            return False
        found = await self._existing(form)
        return found is not None and found.timer.status is Status.PENDING and version(found) == shown

    async def _existing(self, form: TimerForm) -> TimerView | None:
        return (await self._service.get_many(form.namespace, [form.id])).get(form.id)

    def _asks_of_past(self, visit: Visit, execute_at: int) -> bool:
        """Whether the instant has passed, and nobody has said yet that it is meant."""
        return passed(execute_at, visit.now_us) and visit.form.exact("past") != str(execute_at)

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
                changes = self._parser.changes(sent, visit.now_us)
                at = changes.execute_at
                if form.when == "at" and isinstance(at, int) and self._asks_of_past(visit, at):
                    return await self._form(visit, form, view=view, past=at)
                await self._service.update(form.namespace, form.id, changes)
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
        """What the part beside the form shows: the same as commands, what is wrong, and the attempts to come."""
        shown: dict[str, Any] = {"errors": [], "curl": "", "command": "", "unchanged": False, "plan": None}
        try:
            timer = self._parser.timer(self._create_reader.read(msgspec.json.encode(form.body())), visit.now_us, None)
            first_at = timer.execute_at if view is None or form.when != "keep" else view.timer.execute_at
            shown["plan"] = plan(self._service.retry_policy(timer), max(first_at, visit.now_us))
            if view is None:
                body, path = form.body(), "/api/v1/timers/create"
            else:
                body, path = _at(form.changes(view), visit.now_us), "/api/v1/timers/update"
                if len(body) > 2:
                    self._parser.changes(self._update_reader.read(msgspec.json.encode(body)), visit.now_us)
        except InvalidInput as error:
            shown["errors"] = list(error.errors)
            if form.payload.strip() and any(bad.path == "payload" for bad in error.errors):
                return shown
            try:
                body, path = (
                    (form.body(), "/api/v1/timers/create")
                    if view is None
                    else (form.changes(view), "/api/v1/timers/update")
                )
            except InvalidInput:
                return shown
        shown["unchanged"] = view is not None and len(body) <= 2
        if not shown["unchanged"]:
            server = str(visit.request.base_url).rstrip("/")
            shown["curl"] = curl(server + path, body, key=self._keys.required)
            shown["command"] = command(server, body)
        return shown

    async def _form(
        self,
        visit: Visit,
        form: TimerForm,
        *,
        view: TimerView | None = None,
        problem: InvalidInput | TimerNotPending | None = None,
        existing: TimerView | None = None,
        past: int | None = None,
    ) -> Response:
        """`existing` has the id already, and `past` is an instant that has passed: the page asks what is meant."""
        errors: dict[str, str] = {}
        if isinstance(problem, InvalidInput):
            for bad in problem.errors:
                errors.setdefault(_field(bad.path), bad.reason)
        status = 200 if problem is None else 409 if isinstance(problem, TimerNotPending) else 400
        free = ""
        if existing is not None or past is not None:
            status = 409
        if existing is not None:
            free = await first_free(self._service, form.namespace, copy_ids(form.id, self._id_chars_max))
        return self._pages.page(
            "timers/form.html",
            visit,
            status,
            title="New timer" if view is None else "Change timer",
            form=form,
            view=view,
            errors=errors,
            problem=str(problem) if isinstance(problem, TimerNotPending) else "",
            existing=existing,
            free=free,
            labels=_LABELS,
            first_wrong=next((name for name in _LABELS if name in errors), ""),
            fresh=view is None and problem is None and status == 200,
            past=past,
            past_meant=visit.form.exact("past"),
            attempt=visit.form.get("attempt") or uuid.uuid4().hex,
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
