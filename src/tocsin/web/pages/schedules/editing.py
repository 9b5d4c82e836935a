"""`/schedules/new` and `/schedules/edit`: the form of a schedule, with a preview and the equivalent commands."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from starlette.responses import Response

from tocsin.model.errors import InvalidInput, ScheduleEnded, ScheduleNotFound
from tocsin.model.ids import schedule_uuid
from tocsin.model.schedule import CatchUp, Definition, ScheduleStatus
from tocsin.model.timer import Timer
from tocsin.timers.schedules import ScheduleView
from tocsin.web.http import schedule_wire as wire
from tocsin.web.http.reading import JsonReader
from tocsin.web.http.schedules import ScheduleParser, sentence
from tocsin.web.pages.callback_forms import LABELS, copy_secrets, plan
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.editing import Editing
from tocsin.web.pages.forms import Body
from tocsin.web.pages.schedules.forms import CRONS, ScheduleForm, command, zone_names
from tocsin.web.pages.schedules.presentation import CATCH_UP_WORDS, Preview, preview, schedule_path, zoned
from tocsin.web.pages.site import Site

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


class ScheduleEditing(Editing[ScheduleForm, ScheduleView]):
    """Creating and editing schedules, with a preview."""

    kind = "schedule"
    equivalent_path = "/ui/schedules/equivalent"
    labels = _LABELS
    form_type = ScheduleForm
    page_path = staticmethod(schedule_path)
    command = staticmethod(command)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._schedules = site.schedules
        self._schedule_parser = ScheduleParser(site.parser)

    async def get(self, namespace: str, id: str) -> ScheduleView:
        return await self._schedules.get(namespace, id)

    def form_of(self, view: ScheduleView) -> ScheduleForm:
        return ScheduleForm.of(view)

    async def create(self, context: RequestContext) -> Response:
        """Shows the preview if that is asked for. Asks whether to replace another schedule with the same id."""
        form = self.sent(context)
        if context.form.get("preview"):
            return await self.form(context, form)
        try:
            timer, definition = await self._schedules.turns.run(self._new, form, context.now_us)
            await copy_secrets(context, form, timer, self.get)
            existing = await self._live(form)
            if existing is not None and context.form.exact("replace") != _digest(existing) and _differs(form, existing):
                return await self.form(context, form, existing=existing)
            stored = await self._schedules.create(timer, definition)
        except (InvalidInput, ScheduleEnded) as error:
            return await self.form(context, form, problem=error)
        return self.done(form, "unchanged" if stored.unchanged else "created" if existing is None else "replaced")

    async def update(self, context: RequestContext, form: ScheduleForm, body: Body) -> int | None:
        sent = _update_reader.read(msgspec.json.encode(body))
        await self._schedules.update(form.namespace, form.id, *self._schedule_parser.changes(sent))
        return None

    def _new(self, form: ScheduleForm, now_us: int) -> tuple[Timer, Definition]:
        return self._schedule_parser.new(_create_reader.read(msgspec.json.encode(form.body())), now_us, None)

    async def _live(self, form: ScheduleForm) -> ScheduleView | None:
        """The schedule with the form's id, unless it has ended."""
        try:
            view = await self._schedules.get(form.namespace, form.id)
        except ScheduleNotFound:
            return None
        return None if view.status is ScheduleStatus.ENDED else view

    async def beside(self, context: RequestContext, form: ScheduleForm, view: ScheduleView | None) -> dict[str, Any]:
        """The same, and the preview."""
        return await self._schedules.turns.run(self._beside, context, form, view)

    def _beside(self, context: RequestContext, form: ScheduleForm, view: ScheduleView | None) -> dict[str, Any]:
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
        return shown if shown["unchanged"] else shown | self.commands(context, body, new=view is None)

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

    def values(self, context: RequestContext, form: ScheduleForm, existing: ScheduleView | None) -> dict[str, Any]:
        return {
            "existing_next": [] if existing is None else zoned(existing.next_instants[:1], form.zone or "UTC"),
            "digest": "" if existing is None else _digest(existing),
            "sentence": sentence,
            "crons": CRONS,
            "zones": zone_names(),
            "catch_up_words": CATCH_UP_WORDS,
        }


def _differs(form: ScheduleForm, existing: ScheduleView) -> bool:
    """Whether the form's schedule is not the existing one already. A copy of another may have other secrets."""
    return bool(form.like) or len(form.changes(existing)) > 2


def _digest(view: ScheduleView) -> str:
    """A digest of a schedule's settings, by which a form names what it replaces."""
    settings = ScheduleForm.of(view).body_of_update()
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()
