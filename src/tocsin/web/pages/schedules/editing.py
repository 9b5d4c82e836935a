"""`/schedules/new` and `/schedules/edit`: the form of a schedule, with a preview and the equivalent commands."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from starlette.responses import Response

from tocsin.model.errors import InvalidInput, NamespaceNotFound, ScheduleEnded, ScheduleNotFound, Unavailable
from tocsin.model.hooks import field_of
from tocsin.model.schedule import CatchUp, Definition, ScheduleStatus
from tocsin.model.schedule_reading import zone_names
from tocsin.model.timer import Timer
from tocsin.timers.listing import IdListRequest
from tocsin.timers.schedules import ScheduleView
from tocsin.web.http import schedule_wire as wire
from tocsin.web.http.reading import JsonReader
from tocsin.web.http.schedules import ScheduleParser
from tocsin.web.pages.callback_forms import HOOK_LABELS, LABELS, copy_secrets, plan
from tocsin.web.pages.context import RequestContext, whole_number
from tocsin.web.pages.editing import CallbackEditing, Outcome
from tocsin.web.pages.forms import Body
from tocsin.web.pages.schedules.forms import DEFAULT_CRON, PRESETS, ScheduleForm, command, reader_zone
from tocsin.web.pages.schedules.presentation import (
    CATCH_UP_WORDS,
    ON_SKIPPED_WORDS,
    OTHERS_MAX,
    preview,
    schedule_path,
    spoken,
)
from tocsin.web.pages.site import Site

#: The labels of the fields by their names in the API, in their order on the page.
_LABELS = {
    "callbackUrl": "URL",
    "sentence": "When",
    "cron": "Cron or interval",
    "every": "Cron or interval",
    "timeZone": "Time zone",
    "startAt": "Start",
    "endAt": "End",
    "anchor": "Counted from",
    "maxOccurrences": "Max occurrences",
    "namespace": "Namespace",
    "id": "Id",
    "only": "Only on",
    "skip": "Not on",
    "onSkipped": "Excluded instants",
    "catchUp": "Missed instants",
    "catchUpWindow": "Catch-up window",
    "jitter": "Jitter",
    "pauseAfterFailures": "Pause after failures",
    **LABELS,
    **{field_of(event): HOOK_LABELS[field_of(event)] for event in ScheduleForm.events},
}

_create_reader = JsonReader(wire.CreateSchedule)
_update_reader = JsonReader(wire.UpdateSchedule)
_preview_reader = JsonReader(wire.PreviewSchedule)


class ScheduleEditing(CallbackEditing[ScheduleForm, ScheduleView]):
    """Creating and editing schedules, with a preview."""

    kind = "schedule"
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

    def version(self, view: ScheduleView) -> str:
        return str(view.version)

    def empty(self, context: RequestContext, namespace: str) -> ScheduleForm:
        """A rule that many want, in the reader's zone."""
        form = ScheduleForm(namespace=namespace, cron=DEFAULT_CRON, zone=reader_zone(context))
        form.rewrite()
        return form

    async def create(self, context: RequestContext) -> Response:
        """Shows the preview if that is asked for. Asks whether to replace another schedule with the same id."""
        form = self.sent(context)
        if self.only_checked(context):
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
        if not stored.unchanged:
            context.changed("schedules/create", form.namespace, form.id)
        return self.done(form, "unchanged" if stored.unchanged else "created" if existing is None else "replaced")

    async def update(self, context: RequestContext, form: ScheduleForm, body: Body) -> int | None:
        sent = _update_reader.read(msgspec.json.encode(body))
        changes, definition = self._schedule_parser.changes(sent)
        await self._schedules.update(form.namespace, form.id, changes, definition, whole_number(form.version))
        context.changed("schedules/update", form.namespace, form.id)
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

    async def outcome(self, context: RequestContext, form: ScheduleForm, view: ScheduleView | None) -> Outcome:
        found = await self._schedules.turns.run(self._outcome, context, form, view)
        preview = found.preview
        if preview is not None and preview.instants and form.cron and not form.jitter:
            found.more["others"] = await self._others(form, preview.instants[0].at)
        return found

    def _outcome(self, context: RequestContext, form: ScheduleForm, view: ScheduleView | None) -> Outcome:
        found = Outcome(more={"others": (0, False), "rule_presets": PRESETS})
        definition = self._definition(form, context.now_us)
        try:
            found.body = form.body() if view is None else form.changes(view)
            timer, definition = self._new(form, context.now_us)
        except InvalidInput as error:
            found.errors = error.errors
            timer = None
        if definition is None:
            return found
        created_at = context.now_us if view is None else view.timer.created_at
        found.preview = preview(
            definition, form.zone or "UTC", created_at, context.now_us, self._schedules.calendars(form.namespace)
        )
        found.when, found.first = spoken(form.cron, form.zone), found.preview.first
        for row in found.preview.instants[:1]:
            found.first += "" if row.time in found.when else f" at {row.time}"
        if timer is None:
            return found
        first, *following = [each.at for each in found.preview.instants] or [context.now_us]
        ends = [] if timer.expire_after_us is None else [first + timer.expire_after_us]
        if following and definition.catch_up is not CatchUp.ALL:
            # No attempt begins at the next instant or after it.
            ends.append(following[0] - 1)
        found.plan = plan(self._service.namespaces.retry_policy(timer), first, min(ends, default=None))
        return found

    def _definition(self, form: ScheduleForm, now_us: int) -> Definition | None:
        """The definition of the form's rule alone, even if other fields are invalid; None without a rule."""
        try:
            body = form.timing()
            if body.keys() & {"only", "skip"}:
                body["namespace"] = form.namespace
            found, _ = self._schedule_parser.preview(_preview_reader.read(msgspec.json.encode(body)), now_us)
        except InvalidInput:
            return None
        assert isinstance(found, Definition)
        return found

    async def _others(self, form: ScheduleForm, at: int) -> tuple[int, bool]:
        """How many other schedules of the namespace are due next at an instant, of those that one read finds, and whether
        there may be more. None while they can't be read: it is only an advice."""
        request = IdListRequest(limit=OTHERS_MAX, matches=lambda timer: timer.execute_at == at, reads_max=1)
        try:
            ids, cursor = await self._service.list_schedules(form.namespace, request, lambda view: view.timer.id)
        except (NamespaceNotFound, Unavailable):
            return 0, False
        return sum(each != form.id for each in ids), cursor is not None

    async def values(
        self, context: RequestContext, form: ScheduleForm, existing: ScheduleView | None
    ) -> dict[str, Any]:
        return {
            **await super().values(context, form, existing),
            "existing_next": [] if existing is None else existing.next_instants[:1],
            "digest": "" if existing is None else _digest(existing),
            "zones": zone_names(),
            "catch_up_words": CATCH_UP_WORDS,
            "on_skipped_words": ON_SKIPPED_WORDS,
            "calendar_names": [each.name for each in self._schedules.calendars(form.namespace).all()],
        }


def _differs(form: ScheduleForm, existing: ScheduleView) -> bool:
    """Whether the form's schedule is not the existing one already. A copy of another may have other secrets."""
    return bool(form.like) or len(form.changes(existing)) > 2


def _digest(view: ScheduleView) -> str:
    """A digest of a schedule's settings, by which a form names what it replaces."""
    settings = ScheduleForm.of(view).body_of_update()
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()
