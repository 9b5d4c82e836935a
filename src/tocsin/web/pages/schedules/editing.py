"""`/schedules/new` and `/schedules/edit`: the form of a schedule, with a preview and the equivalent commands."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput, ScheduleEnded, ScheduleNotFound
from tocsin.model.ids import schedule_uuid
from tocsin.model.schedule import CatchUp, Definition, ScheduleStatus
from tocsin.model.timer import Timer
from tocsin.model.validation import METHODS
from tocsin.timers.schedules import ScheduleView
from tocsin.web.http import schedule_wire as wire
from tocsin.web.http.reading import JsonReader
from tocsin.web.http.schedules import ScheduleParser, sentence
from tocsin.web.pages.callback_forms import LABELS, copy_secrets, plan
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import RETRY_LABELS, Body, by_field, curl, fresh_id
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.schedules.forms import CRONS, ScheduleForm, command, zone_names
from tocsin.web.pages.schedules.presentation import CATCH_UP_WORDS, Preview, preview, schedule_path, zoned
from tocsin.web.pages.site import Part, Site, preferred, route

#: The labels of the fields by their names in the API, in their order on the page.
_LABELS = {
    "callbackUrl": "URL",
    "cron": "Cron",
    "every": "Every",
    "timeZone": "Time zone",
    "startAt": "Start",
    "endAt": "End",
    "anchor": "Counted from",
    "maxOccurrences": "Max occurrences",
    "namespace": "Namespace",
    "id": "Id",
    "catchUp": "Missed instants",
    "catchUpWindow": "Catch-up window",
    "jitter": "Jitter",
    "pauseAfterFailures": "Pause after failures",
    **LABELS,
}

_create_reader = JsonReader(wire.CreateSchedule)
_update_reader = JsonReader(wire.UpdateSchedule)
_preview_reader = JsonReader(wire.PreviewSchedule)


class ScheduleEditing(Part):
    """Creating and editing schedules."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._schedules = site.schedules
        self._schedule_parser = ScheduleParser(site.parser)

    @route("GET", "/schedules/new")
    async def new(self, context: RequestContext) -> Response:
        """An empty form, or with `like` a copy of a schedule under a new id."""
        query = context.query
        if "like" in query:
            namespace, schedule_id = query.exact("namespace"), query.exact("like")
            context.permit(Role.WRITE, namespace)
            form = ScheduleForm.of(await self._schedules.get(namespace, schedule_id))
            form.like_namespace, form.like = namespace, schedule_id
            form.id = fresh_id(schedule_id, self._id_chars_max)
            return await self._form(context, form)
        namespace = query.exact("namespace") or preferred(await self.visible_namespaces(context, Role.WRITE))
        context.permit(Role.WRITE, namespace)
        form = ScheduleForm(namespace=namespace, url=query.get("url"), cron=CRONS[0][0], every="15m")
        form.id = f"schedule-{uuid.uuid4().hex[:8]}"
        return await self._form(context, form)

    @route("POST", "/schedules/new")
    async def create(self, context: RequestContext) -> Response:
        """Creates the schedule, or shows the form again with its errors, its preview, or the question whether to replace
        another schedule with the same id. The form keeps all input."""
        form = ScheduleForm.read(context.form)
        form.id = context.form.exact("instead") or form.id
        context.permit(Role.WRITE, form.namespace)
        if context.form.get("preview"):
            return await self._form(context, form)
        try:
            timer, definition = await self._schedules.turns.run(self._new, form, context.now_us)
            await copy_secrets(context, form, timer, self._schedules.get)
            existing = await self._live(form)
            if existing is not None and context.form.exact("replace") != _digest(existing) and _differs(form, existing):
                return await self._form(context, form, existing=existing)
            stored = await self._schedules.create(timer, definition)
        except (InvalidInput, ScheduleEnded) as error:
            return await self._form(context, form, problem=error)
        if stored.unchanged:
            return _to(form, "unchanged")
        return _to(form, "created" if existing is None else "replaced")

    @route("GET", "/schedules/edit")
    async def edit(self, context: RequestContext) -> Response:
        """The form with the settings of a schedule."""
        namespace, schedule_id = context.timer_name(context.query)
        context.permit(Role.WRITE, namespace)
        view = await self._schedules.get(namespace, schedule_id)
        return await self._form(context, ScheduleForm.of(view), view=view)

    @route("POST", "/schedules/edit")
    async def change(self, context: RequestContext) -> Response:
        """Updates the fields that differ."""
        form = ScheduleForm.read(context.form)
        context.permit(Role.WRITE, form.namespace)
        view = await self._schedules.get(form.namespace, form.id)
        if context.form.get("preview"):
            return await self._form(context, form, view=view)
        try:
            body = form.changes(view)
            if len(body) > 2:
                sent = _update_reader.read(msgspec.json.encode(body))
                await self._schedules.update(form.namespace, form.id, *self._schedule_parser.changes(sent))
        except (InvalidInput, ScheduleEnded) as error:
            return await self._form(context, form, view=view, problem=error)
        return _to(form, "updated")

    @route("POST", "/ui/schedules/equivalent")
    async def equivalent(self, context: RequestContext) -> Response:
        """The preview, the equivalent commands, and the form's errors, for the script that requests them on input."""
        form = ScheduleForm.read(context.form)
        context.permit(Role.READ, form.namespace)
        view = None
        if context.form.get("mode") == "edit":
            view = await self._schedules.get(form.namespace, form.id)
        values = await self._schedules.turns.run(self._equivalent, context, form, view)
        return HTMLResponse(self._pages.text("schedules/equivalent.html", context, {**values, "zone": form.zone}))

    def _new(self, form: ScheduleForm, now_us: int) -> tuple[Timer, Definition]:
        return self._schedule_parser.new(_create_reader.read(msgspec.json.encode(form.body())), now_us, None)

    async def _live(self, form: ScheduleForm) -> ScheduleView | None:
        """The schedule with the form's id, unless it has ended."""
        try:
            view = await self._schedules.get(form.namespace, form.id)
        except ScheduleNotFound:
            return None
        return None if view.status is ScheduleStatus.ENDED else view

    def _equivalent(self, context: RequestContext, form: ScheduleForm, view: ScheduleView | None) -> dict[str, Any]:
        """The values shown next to the form: preview, equivalent commands, errors, and the plan of attempts."""
        shown: dict[str, Any] = {"errors": [], "curl": "", "command": "", "unchanged": False, "plan": None}
        shown["preview"] = self._preview(form, view, context.now_us)
        try:
            body = form.body() if view is None else form.changes(view)
            shown["unchanged"] = view is not None and len(body) <= 2
            timer, definition = self._new(form, context.now_us)
        except InvalidInput as error:
            return {**shown, "errors": list(error.errors)}
        shown["preview"] = self._preview(form, view, context.now_us, definition)
        first, *following = [each.at for each in shown["preview"].instants] or [context.now_us]
        ends = [] if timer.expire_after_us is None else [first + timer.expire_after_us]
        if following and definition.catch_up is not CatchUp.ALL:
            # No attempt begins at the next instant or after it.
            ends.append(following[0] - 1)
        shown["plan"] = plan(self._service.namespaces.retry_policy(timer), first, min(ends, default=None))
        if not shown["unchanged"]:
            server = str(context.request.base_url).rstrip("/")
            path = "/api/v1/schedules/create" if view is None else "/api/v1/schedules/update"
            shown["curl"] = curl(server + path, body, key=self._site.keys.required)
            shown["command"] = command(server, body)
        return shown

    def _preview(
        self, form: ScheduleForm, view: ScheduleView | None, now_us: int, definition: Definition | None = None
    ) -> Preview | None:
        """The preview of a definition, or of the form's rule, even if other fields are invalid; None without a rule."""
        if definition is None:
            try:
                sent = _preview_reader.read(msgspec.json.encode(form.timing()))
                found, _ = self._schedule_parser.preview(sent, now_us)
            except InvalidInput:
                return None
            assert isinstance(found, Definition)
            definition = found
        created_at = now_us if view is None else view.timer.created_at
        return preview(definition, schedule_uuid(form.namespace, form.id), form.zone or "UTC", created_at, now_us)

    async def _form(
        self,
        context: RequestContext,
        form: ScheduleForm,
        *,
        view: ScheduleView | None = None,
        problem: InvalidInput | ScheduleEnded | None = None,
        existing: ScheduleView | None = None,
    ) -> Response:
        """The page. `existing` is another schedule with the same id: it makes the page ask."""
        errors = by_field(problem)
        status = 200 if problem is None and existing is None else 400 if isinstance(problem, InvalidInput) else 409
        free = ""
        if existing is not None:
            free = fresh_id(form.id, self._id_chars_max)
        return self._pages.page(
            "schedules/form.html",
            context,
            status,
            title="New schedule" if view is None else "Edit schedule",
            form=form,
            view=view,
            errors=errors,
            problem=str(problem) if isinstance(problem, ScheduleEnded) else "",
            existing=existing,
            existing_next=[] if existing is None else zoned(existing.next_instants[:1], form.zone or "UTC"),
            digest="" if existing is None else _digest(existing),
            sentence=sentence,
            free=free,
            labels=_LABELS,
            retry_labels=RETRY_LABELS,
            first_invalid=next((name for name in _LABELS if name in errors), ""),
            fresh=view is None and status == 200,
            namespaces=await self.visible_namespaces(context, Role.WRITE),
            methods=METHODS,
            crons=CRONS,
            zones=zone_names(),
            catch_up_words=CATCH_UP_WORDS,
            equivalent=await self._schedules.turns.run(self._equivalent, context, form, view),
        )


def _settings(view: ScheduleView) -> Body:
    return ScheduleForm.of(view).body_of_update()


def _differs(form: ScheduleForm, existing: ScheduleView) -> bool:
    """Whether the form's schedule is not the existing one already. A copy of another may have other secrets."""
    return bool(form.like) or len(form.changes(existing)) > 2


def _digest(view: ScheduleView) -> str:
    """A digest of a schedule's settings, by which a form names what it replaces."""
    return hashlib.sha256(msgspec.json.encode(_settings(view), order="sorted")).hexdigest()


def _to(form: ScheduleForm, notice: str) -> Response:
    return RedirectResponse(with_query(schedule_path(form.namespace, form.id), {"notice": notice}), 303)
