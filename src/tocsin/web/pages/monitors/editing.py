"""The form that creates and changes monitors."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, VersionConflict
from tocsin.model.instants import format_duration
from tocsin.model.monitor import MonitorDefinition
from tocsin.model.schedule_reading import find_zone, read_sentence, zone_names
from tocsin.timers.monitors import MonitorView
from tocsin.web.http.monitor_wire import MonitorName, PutMonitor
from tocsin.web.http.monitors import MonitorRequests, monitor_answer
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import RequestContext, whole_number
from tocsin.web.pages.filters import split_tags
from tocsin.web.pages.forms import Body, by_field, duration
from tocsin.web.pages.monitors.monitors import MonitorPages
from tocsin.web.pages.monitors.presentation import monitor_path
from tocsin.web.pages.schedules.forms import reader_zone
from tocsin.web.pages.schedules.presentation import is_interval
from tocsin.web.pages.site import Part, Site, preferred, route

#: The labels of the fields by their names in the API, in their order on the page.
_LABELS = {
    "namespace": "Namespace",
    "id": "Id",
    "cron": "Expected",
    "every": "Expected",
    "timeZone": "Time zone",
    "schedule": "Or as a schedule fires",
    "grace": "Grace",
    "onLate": "When it is late or fails",
    "onRecovery": "When it has recovered",
    "repeat": "While it is late, again each",
    "description": "Description",
    "tags": "Tags",
}
_FIELDS = (
    "namespace", "id", "rule", "zone", "schedule", "grace", "on_late", "on_recovery", "repeat", "description", "tags",
    "version",
)  # fmt: skip
#: The hooks by their names in the form and in the API.
_HOOKS = {"on_late": "onLate", "on_recovery": "onRecovery"}
_reader = JsonReader(PutMonitor)


class MonitorEditing(Part):
    """The form."""

    def __init__(self, site: Site, requests: MonitorRequests, pages: MonitorPages) -> None:
        super().__init__(site)
        self._requests, self._monitor_pages = requests, pages

    @route("GET", "/monitors/new")
    async def new(self, context: RequestContext) -> Response:
        """The form for a new monitor."""
        if context.scope:
            context.permit(Role.WRITE, context.scope)
        elif not context.principal.may_somewhere(Role.WRITE):
            context.permit(Role.WRITE)
        form = dict.fromkeys(_FIELDS, "") | {"namespace": context.scope, "zone": reader_zone(context)}
        return await self._form(context, form, edited=False)

    @route("POST", "/monitors/new")
    async def create(self, context: RequestContext) -> Response:
        """Creates a monitor, and shows its ping URL. One that exists is not replaced."""
        return await self._put(context, edited=False)

    @route("GET", "/monitors/edit")
    async def edit(self, context: RequestContext) -> Response:
        """The form of a monitor."""
        namespace, name = context.writable(context.query)
        return await self._form(context, _form_of(await self._view(namespace, name)), edited=True)

    @route("POST", "/monitors/edit")
    async def replace(self, context: RequestContext) -> Response:
        """Changes a monitor, unless somebody else has done so meanwhile."""
        return await self._put(context, edited=True)

    async def _view(self, namespace: str, name: str) -> MonitorView:
        return await self._requests.monitors.get(*self._requests.name(MonitorName(namespace, name)))

    async def _put(self, context: RequestContext, *, edited: bool) -> Response:
        form = {name: context.form.get(name) for name in _FIELDS}
        context.permit(Role.WRITE, form["namespace"])
        stored = await self._view(form["namespace"], form["id"]) if edited else None
        try:
            expected = whole_number(form["version"]) if edited else 0
            body = _body(form, stored) | {"expectedVersion": expected}
            view = await self._requests.put(_reader.read(msgspec.json.encode(body)), context.now_us, context.actor)
        except InvalidInput as error:
            return await self._form(context, form, edited=edited, errors=by_field(error), status=400)
        except VersionConflict:
            if edited:
                problem = "Somebody has changed the monitor since this form was opened. Open it again to change that."
                return await self._form(context, form, edited=edited, problem=problem, status=409)
            errors = {"id": "has a monitor already: edit that one"}
            return await self._form(context, form, edited=edited, errors=errors, status=409)
        if view.token is not None:
            return self._monitor_pages.url_shown(context, view, "Monitor created")
        return RedirectResponse(monitor_path(view), 303)

    async def _form(
        self,
        context: RequestContext,
        form: dict[str, str],
        *,
        edited: bool,
        errors: dict[str, str] | None = None,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        namespaces = await self.visible_namespaces(context, Role.WRITE)
        errors = errors or {}
        return self._pages.page(
            "monitors/form.html",
            context,
            status,
            title="Edit monitor" if edited else "New monitor",
            form=form | {"namespace": form["namespace"] or preferred(namespaces)},
            edited=edited,
            namespaces=namespaces,
            zones=zone_names(),
            errors=errors,
            problem=problem,
            labels=_LABELS,
            first_invalid=next((each for each in _LABELS if each in errors), ""),
        )


def _form_of(view: MonitorView) -> dict[str, str]:
    """The fields of a stored monitor."""
    timer, definition = view.timer, view.monitor.definition
    shown = _hooks_of(view)
    return {
        "namespace": timer.namespace,
        "id": timer.id,
        "rule": _rule_text(definition),
        "zone": definition.time_zone,
        "schedule": definition.schedule or "",
        "grace": format_duration(definition.grace_us),
        "repeat": "" if definition.repeat_us is None else format_duration(definition.repeat_us),
        **{name: shown.get(path, {}).get("url", "") for name, path in _HOOKS.items()},
        "description": timer.description or "",
        "tags": ", ".join(timer.tags),
        "version": str(view.monitor.state.version),
    }


def _rule_text(definition: MonitorDefinition) -> str:
    """The rule as the form has it; empty where a schedule is watched."""
    return definition.cron or ("" if definition.every_us is None else format_duration(definition.every_us))


def _hooks_of(view: MonitorView) -> dict[str, Any]:
    """The hooks as the API shows them, without secrets."""
    shown = msgspec.to_builtins(monitor_answer(view))
    return {path: shown[path] for path in _HOOKS.values() if path in shown}


def _body(form: dict[str, str], stored: MonitorView | None) -> Body:
    """The API request for a form. A hook whose URL stays keeps its headers. Raises InvalidInput."""
    body: Body = {
        "namespace": form["namespace"],
        "id": form["id"],
        **_rule(form["rule"], form["zone"], form["schedule"]),
    }
    for name in ("grace", "repeat"):
        if form[name]:
            body[name] = duration(form[name])
    known = {} if stored is None else _hooks_of(stored)
    for name, path in _HOOKS.items():
        if form[name]:
            hook = known.get(path, {})
            body[path] = hook if hook.get("url") == form[name] else {"url": form[name]}
    if form["description"]:
        body["description"] = form["description"]
    if tags := split_tags(form["tags"]):
        body["tags"] = tags
    return body


def _rule(text: str, zone: str, schedule: str) -> Body:
    """`cron` with its time zone, `every`, or `schedule`. Raises InvalidInput."""
    if schedule:
        if text:
            raise InvalidInput(
                FieldError("schedule", "conflicts with when a report is expected; leave one of them empty")
            )
        return {"schedule": schedule}
    if not text:
        raise InvalidInput(
            FieldError("cron", "is missing; write it in words, as cron or as an interval, or name a schedule to watch")
        )
    if is_interval(text):
        return {"every": duration(text)}
    try:
        rule = read_sentence(text)
    except ValueError as error:
        raise InvalidInput(FieldError("cron", str(error))) from None
    if rule.every_us is not None:
        return {"every": format_duration(rule.every_us)}
    return {"cron": rule.cron, "timeZone": rule.zone or _zone(zone)}


def _zone(text: str) -> str:
    try:
        return find_zone(text or "UTC")
    except ValueError as error:
        raise InvalidInput(FieldError("timeZone", str(error))) from None
