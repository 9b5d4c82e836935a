"""The form that creates and changes monitors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_duration
from tocsin.model.monitor import MonitorDefinition
from tocsin.model.schedule_reading import find_zone, read_sentence, zone_names
from tocsin.timers.monitors import MonitorView
from tocsin.web.http.monitor_wire import MonitorName, PutMonitor
from tocsin.web.http.monitors import MonitorRequests, monitor_answer
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.filters import split_tags
from tocsin.web.pages.forms import Body, by_field, duration
from tocsin.web.pages.monitors.monitors import MonitorPages
from tocsin.web.pages.monitors.presentation import monitor_path
from tocsin.web.pages.put_forms import PutForm
from tocsin.web.pages.schedules.forms import reader_zone
from tocsin.web.pages.schedules.presentation import is_interval
from tocsin.web.pages.site import Site, route

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


class MonitorEditing(PutForm):
    """The form, which changes a monitor unless somebody else has done so meanwhile."""

    kind, labels, name_field = "monitor", _LABELS, "id"
    taken = "has a monitor already: edit that one"

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
        return await self.form(context, form, edited=False)

    async def _view(self, namespace: str, name: str) -> MonitorView:
        return await self._requests.monitors.get(*self._requests.name(MonitorName(namespace, name)))

    async def stored(self, namespace: str, name: str) -> dict[str, str]:
        return _form_of(await self._view(namespace, name))

    def sent(self, form: Fields) -> dict[str, str]:
        return {name: form.get(name) for name in _FIELDS}

    async def put(self, context: RequestContext, fields: dict[str, str], expected: Body) -> Response:
        """Shows the ping URL of one that is new, or leads to the monitor's page."""
        stored = await self._view(fields["namespace"], fields["id"]) if expected["expectedVersion"] else None
        body = _body(fields, stored) | expected
        view = await self._requests.put(_reader.read(msgspec.json.encode(body)), context.now_us, context.actor)
        if view.token is not None:
            return self._monitor_pages.url_shown(context, view, "Monitor created")
        return RedirectResponse(monitor_path(view), 303)

    def errors(self, error: InvalidInput) -> dict[str, str]:
        return by_field(error)

    def values(self, fields: Mapping[str, str]) -> dict[str, Any]:
        return {"zones": zone_names()}


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
    shown = msgspec.to_builtins(monitor_answer(view, 0))
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
