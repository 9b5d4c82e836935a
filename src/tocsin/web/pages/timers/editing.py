"""`/timers/new` and `/timers/edit`: the form of a timer, with the equivalent API request and the equivalent commands."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.condition import OnConflict
from tocsin.model.errors import (
    FieldError,
    IdempotencyConflict,
    InvalidInput,
    TimerExists,
    TimerNotPending,
)
from tocsin.model.instants import parse_duration
from tocsin.model.timer import Status, Timer
from tocsin.model.validation import METHODS
from tocsin.timers.service import TimerView
from tocsin.web.http import wire
from tocsin.web.http.instants import format_instant
from tocsin.web.http.reading import JsonReader
from tocsin.web.http.repeated import condition_of
from tocsin.web.pages.callback_forms import (
    LABELS,
    CallbackForm,
    callback_flags,
    copy_secrets,
    plan,
    with_empty_callback,
)
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import (
    DELAYS,
    RETRY_LABELS,
    Body,
    by_field,
    curl,
    flags,
    fresh_id,
    lined,
    passed,
    server_flag,
)
from tocsin.web.pages.presentation import timer_path, version, with_query
from tocsin.web.pages.site import Part, preferred, route


@dataclass(slots=True)
class TimerForm(CallbackForm):
    """While editing, `when` may be `keep`."""

    @classmethod
    def of(cls, timer: Timer, *, when: str) -> TimerForm:
        """The fields of an existing timer."""
        return cls(when=when, **cls.callback_texts(timer))

    def body(self) -> Body:
        """The equivalent API request to create the timer. Raises InvalidInput for fields that can't be converted."""
        errors: list[FieldError] = []
        body: Body = {
            "namespace": self.namespace, "id": self.id, "callbackUrl": self.url, "onConflict": OnConflict.REJECT.value,
        }  # fmt: skip
        try:
            body |= self.due()
        except InvalidInput as error:
            errors.extend(error.errors)
        body |= self.callback(errors)
        if errors:
            raise InvalidInput(*errors)
        return body

    def changes(self, view: TimerView) -> Body:
        """The API request that updates the timer: only the fields that differ. Raises InvalidInput."""
        before, now = TimerForm.of(view.timer, when="keep").body_of_update(), self.body_of_update()
        changed = {
            name: value for name, value in now.items() if name in ("executeAt", "delay") or before.get(name) != value
        }
        return {"namespace": view.timer.namespace, "timerId": view.timer.id, **changed}

    def body_of_update(self) -> Body:
        """All fields that an update can change, empty ones included. Raises InvalidInput."""
        body = self.body()
        if self.when == "keep":
            body.pop("delay", None)
            body.pop("executeAt", None)
        del body["namespace"], body["id"], body["onConflict"]
        return with_empty_callback(body)


def command(server: str, body: Mapping[str, Any]) -> str:
    """The equivalent `tocsin` command."""
    if "timerId" in body:
        parts = ["tocsin timers update", shlex.quote(body["timerId"]), *flags(body, {"callbackUrl": "--url"})]
    else:
        parts = ["tocsin timers create", shlex.quote(body["callbackUrl"]), *flags(body, {"id": "--id"})]
    if body["namespace"] != "default":
        parts += flags(body, {"namespace": "--namespace"})
    parts += flags(body, {"delay": "--in", "executeAt": "--at", "onConflict": "--on-conflict"})
    parts += callback_flags(body)
    if body.get("expireAfter", "") is None:
        parts.append("--no-expiry")
    return lined([" ".join(parts[:2]), *parts[2:], *server_flag(server)])


#: The labels of the fields by their names in the API, in their order on the page.
_LABELS = {
    "callbackUrl": "URL",
    "delay": "In",
    "executeAt": "At",
    "namespace": "Namespace",
    "id": "Id",
    **LABELS,
}


_create_reader = JsonReader(wire.CreateTimer)
_update_reader = JsonReader(wire.UpdateTimer)


class TimerEditing(Part):
    """Creating and editing timers."""

    @route("GET", "/timers/new")
    async def new(self, context: RequestContext) -> Response:
        """An empty form, or with `like` a copy of a timer under a new id."""
        query = context.query
        if "like" in query:
            namespace, timer_id = query.exact("namespace"), query.exact("like")
            context.permit(Role.WRITE, namespace)
            form = TimerForm.of((await self._service.get(namespace, timer_id)).timer, when="in")
            form.like_namespace, form.like = namespace, timer_id
            form.id = fresh_id(timer_id, self._id_chars_max)
        else:
            namespace = query.exact("namespace") or preferred(await self.visible_namespaces(context, Role.WRITE))
            form = TimerForm(namespace=namespace, url=query.get("url"))
            form.id = f"timer-{uuid.uuid4().hex[:8]}"
        context.permit(Role.WRITE, form.namespace)
        return await self._form(context, form)

    @route("POST", "/timers/new")
    async def create(self, context: RequestContext) -> Response:
        """Creates the timer, or shows the form again with its errors or with a question: whether to replace a pending timer
        with the same id, or whether a time in the past is intended. The form keeps all input."""
        form = TimerForm.read(context.form)
        form.id = context.form.exact("instead") or form.id
        context.permit(Role.WRITE, form.namespace)
        try:
            sent = _create_reader.read(msgspec.json.encode(form.body()))
            timer = self._parser.timer(sent, context.now_us, None)
            await copy_secrets(context, form, timer, self._service.get)
        except InvalidInput as error:
            return await self._form(context, form, problem=error)
        if form.when == "at" and self._must_confirm_past(context, timer.execute_at):
            return await self._form(context, form, past=timer.execute_at)
        replaced = await self._to_replace(context, form)
        try:
            # The form has an idempotency key: sent again after a lost response, it creates one timer and asks nothing.
            key = context.form.get("attempt") or None
            await self._service.create(timer, None if replaced else condition_of(sent, key, timer.execute_at))
        except (TimerExists, IdempotencyConflict):
            return await self._form(context, form, existing=await self._existing(form))
        except InvalidInput as error:
            return await self._form(context, form, problem=error)
        return RedirectResponse(_with_notice(form.namespace, form.id, "replaced" if replaced else "created"), 303)

    async def _to_replace(self, context: RequestContext, form: TimerForm) -> bool:
        """Whether to replace the existing timer: the user chose that, and the timer is unchanged since it was shown."""
        shown = context.form.exact("replace")
        if not shown:
            return False
        found = await self._existing(form)
        return found is not None and found.timer.status is Status.PENDING and version(found) == shown

    async def _existing(self, form: TimerForm) -> TimerView | None:
        return (await self._service.get_many(form.namespace, [form.id])).get(form.id)

    def _must_confirm_past(self, context: RequestContext, execute_at: int) -> bool:
        """Whether the instant is in the past and the form does not confirm it yet."""
        return passed(execute_at, context.now_us) and context.form.exact("past") != str(execute_at)

    @route("GET", "/timers/edit")
    async def edit(self, context: RequestContext) -> Response:
        """The form with the settings of a pending timer."""
        namespace, timer_id = context.timer_name(context.query)
        context.permit(Role.WRITE, namespace)
        view = await self._service.get(namespace, timer_id)
        return await self._form(context, TimerForm.of(view.timer, when="keep"), view=view)

    @route("POST", "/timers/edit")
    async def change(self, context: RequestContext) -> Response:
        """Updates the fields that differ."""
        form = TimerForm.read(context.form)
        context.permit(Role.WRITE, form.namespace)
        view = await self._service.get(form.namespace, form.id)
        try:
            body = form.changes(view)
            if len(body) > 2:
                sent = _update_reader.read(msgspec.json.encode(_at(body, context.now_us)))
                changes = self._parser.changes(sent, context.now_us)
                at = changes.execute_at
                if form.when == "at" and isinstance(at, int) and self._must_confirm_past(context, at):
                    return await self._form(context, form, view=view, past=at)
                await self._service.update(form.namespace, form.id, changes)
        except (InvalidInput, TimerNotPending) as error:
            return await self._form(context, form, view=view, problem=error)
        return RedirectResponse(_with_notice(form.namespace, form.id, "updated"), 303)

    @route("POST", "/ui/equivalent")
    async def equivalent(self, context: RequestContext) -> Response:
        """The equivalent commands, and the form's errors, for the script that requests them on input."""
        form = TimerForm.read(context.form)
        context.permit(Role.READ, form.namespace)
        view = None
        if context.form.get("mode") == "edit":
            view = await self._service.get(form.namespace, form.id)
        return HTMLResponse(
            self._pages.text("timers/equivalent.html", context, await self._equivalent(context, form, view))
        )

    async def _equivalent(self, context: RequestContext, form: TimerForm, view: TimerView | None) -> dict[str, Any]:
        """The values shown next to the form: equivalent commands, errors, and the plan of attempts."""
        shown: dict[str, Any] = {"errors": [], "curl": "", "command": "", "unchanged": False, "plan": None}
        try:
            body = form.body() if view is None else form.changes(view)
        except InvalidInput as error:
            return {**shown, "errors": list(error.errors)}
        shown["unchanged"] = view is not None and len(body) <= 2
        try:
            timer = self._parser.timer(_create_reader.read(msgspec.json.encode(form.body())), context.now_us, None)
            first_at = timer.execute_at if view is None or form.when != "keep" else view.timer.execute_at
            shown["plan"] = plan(
                self._service.namespaces.retry_policy(timer),
                max(first_at, context.now_us),
                None if timer.expire_after_us is None else first_at + timer.expire_after_us,
            )
            if view is not None and not shown["unchanged"]:
                body = _at(body, context.now_us)
                self._parser.changes(_update_reader.read(msgspec.json.encode(body)), context.now_us)
        except InvalidInput as error:
            shown["errors"] = list(error.errors)
            if form.payload.strip() and any(bad.path == "payload" for bad in error.errors):
                return shown
        if not shown["unchanged"]:
            server = str(context.request.base_url).rstrip("/")
            path = "/api/v1/timers/create" if view is None else "/api/v1/timers/update"
            shown["curl"] = curl(server + path, body, key=self._site.keys.required)
            shown["command"] = command(server, body)
        return shown

    async def _form(
        self,
        context: RequestContext,
        form: TimerForm,
        *,
        view: TimerView | None = None,
        problem: InvalidInput | TimerNotPending | None = None,
        existing: TimerView | None = None,
        past: int | None = None,
    ) -> Response:
        """The page. `existing` is a timer with the same id and `past` a time in the past: both make the page ask."""
        errors = by_field(problem)
        status = 200 if problem is None else 409 if isinstance(problem, TimerNotPending) else 400
        free = ""
        if existing is not None or past is not None:
            status = 409
        if existing is not None:
            free = fresh_id(form.id, self._id_chars_max)
        return self._pages.page(
            "timers/form.html",
            context,
            status,
            title="New timer" if view is None else "Edit timer",
            form=form,
            view=view,
            errors=errors,
            problem=str(problem) if isinstance(problem, TimerNotPending) else "",
            existing=existing,
            free=free,
            labels=_LABELS,
            retry_labels=RETRY_LABELS,
            first_invalid=next((name for name in _LABELS if name in errors), ""),
            fresh=view is None and problem is None and status == 200,
            past=past,
            confirmed_past=context.form.exact("past"),
            attempt=context.form.get("attempt") or uuid.uuid4().hex,
            namespaces=await self.visible_namespaces(context, Role.WRITE),
            methods=METHODS,
            delays=DELAYS,
            equivalent=await self._equivalent(context, form, view),
        )


def _at(body: dict[str, Any], now_us: int) -> dict[str, Any]:
    """The request with a delay converted to an instant: an update accepts no delay."""
    if "delay" not in body:
        return body
    try:
        instant = format_instant(now_us + parse_duration(body["delay"]))
    except (ValueError, OverflowError) as error:
        raise InvalidInput(FieldError("delay", str(error))) from None
    return {**{name: value for name, value in body.items() if name != "delay"}, "executeAt": instant}


def _with_notice(namespace: str, timer_id: str, notice: str) -> str:
    """The path of the timer's page, with a notice."""
    return with_query(timer_path(namespace, timer_id), {"notice": notice})
