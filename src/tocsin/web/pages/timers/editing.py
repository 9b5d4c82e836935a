"""`/timers/new` and `/timers/edit`: the form of a timer, with the equivalent API request and the equivalent commands."""

from __future__ import annotations

import hashlib
import shlex
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import Response

from tocsin.model.condition import OnConflict
from tocsin.model.errors import FieldError, IdempotencyConflict, InvalidInput, TimerExists
from tocsin.model.timer import Status, Timer
from tocsin.timers.service import TimerView
from tocsin.web.http import wire
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
from tocsin.web.pages.editing import CallbackEditing, Outcome
from tocsin.web.pages.forms import DELAYS, Body, flags, lined, passed, server_flag
from tocsin.web.pages.presentation import timer_path
from tocsin.web.pages.presentation import version as version_of_row


@dataclass(slots=True)
class TimerForm(CallbackForm):
    """While editing, `when` may be `keep`."""

    @classmethod
    def of(cls, timer: Timer, *, when: str) -> TimerForm:
        """The fields of an existing timer."""
        return cls(when=when, **cls.callback_texts(timer))

    def special(self, errors: list[FieldError]) -> Body:
        return {"onConflict": OnConflict.REJECT.value, **self.due()}

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
        return with_empty_callback(body, self.events)


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
    "callbackUrl": "URL", "delay": "In", "executeAt": "At", "namespace": "Namespace", "id": "Id", **LABELS,
}  # fmt: skip

_create_reader = JsonReader(wire.CreateTimer)
_update_reader = JsonReader(wire.UpdateTimer)


class TimerEditing(CallbackEditing[TimerForm, TimerView]):
    """Creating and editing timers."""

    kind = "timer"
    labels = _LABELS
    form_type = TimerForm
    page_path = staticmethod(timer_path)
    command = staticmethod(command)

    async def get(self, namespace: str, id: str) -> TimerView:
        return await self._service.get(namespace, id)

    def form_of(self, view: TimerView) -> TimerForm:
        return TimerForm.of(view.timer, when="keep")

    def version(self, view: TimerView) -> str:
        """A digest of what the form shows, and the time, which it does not: an attempt meanwhile changes neither. Secrets are
        in neither of them: the form keeps those that are stored when it is sent."""
        shown = msgspec.json.encode(TimerForm.callback_texts(view.timer), order="sorted")
        return f"{hashlib.sha256(shown).hexdigest()}.{view.timer.execute_at}"

    def outdated(self, form: TimerForm, view: TimerView) -> bool:
        """A form that keeps the time keeps whichever there is, as of a timer that is pushed back again and again."""
        if form.when == "keep":
            return form.version.partition(".")[0] != self.version(view).partition(".")[0]
        return super().outdated(form, view)

    async def create(self, context: RequestContext) -> Response:
        """Asks whether to replace a pending timer with the same id, and whether a time in the past is intended."""
        form = self.sent(context)
        if self.only_checked(context):
            return await self.form(context, form)
        try:
            sent = _create_reader.read(msgspec.json.encode(form.body()))
            timer = self._parser.timer(sent, context.now_us, None)
            await copy_secrets(context, form, timer, self.get)
        except InvalidInput as error:
            return await self.form(context, form, problem=error)
        if form.when == "at" and self._must_confirm_past(context, timer.execute_at):
            return await self.form(context, form, past=timer.execute_at)
        replaced = await self._to_replace(context, form)
        try:
            # The form has an idempotency key: sent again after a lost response, it creates one timer and asks nothing.
            key = context.form.get("attempt") or None
            await self._service.create(timer, None if replaced else condition_of(sent, key, timer.execute_at))
        except (TimerExists, IdempotencyConflict):
            return await self.form(context, form, existing=await self._existing(form))
        except InvalidInput as error:
            return await self.form(context, form, problem=error)
        context.changed("timers/create", form.namespace, form.id)
        return self.done(form, "replaced" if replaced else "created")

    async def _to_replace(self, context: RequestContext, form: TimerForm) -> bool:
        """Whether to replace the existing timer: the user chose that, and the timer is unchanged since it was shown."""
        shown = context.form.exact("replace")
        if not shown:
            return False
        found = await self._existing(form)
        return found is not None and found.timer.status is Status.PENDING and version_of_row(found) == shown

    async def _existing(self, form: TimerForm) -> TimerView | None:
        return (await self._service.get_many(form.namespace, [form.id])).get(form.id)

    def _must_confirm_past(self, context: RequestContext, execute_at: int) -> bool:
        """Whether the instant is in the past and the form does not confirm it yet."""
        return passed(execute_at, context.now_us) and context.form.exact("past") != str(execute_at)

    async def update(self, context: RequestContext, form: TimerForm, body: Body) -> int | None:
        changes = self._parser.changes(_update_reader.read(msgspec.json.encode(body)), context.now_us)
        at = changes.execute_at
        if form.when == "at" and isinstance(at, int) and self._must_confirm_past(context, at):
            return at
        await self._service.update(form.namespace, form.id, changes)
        context.changed("timers/update", form.namespace, form.id)
        return None

    async def outcome(self, context: RequestContext, form: TimerForm, view: TimerView | None) -> Outcome:
        found = Outcome(when=form.due_words() if view is None or form.when != "keep" else "at the time that it has")
        try:
            found.body = form.body() if view is None else form.changes(view)
            timer = self._parser.timer(_create_reader.read(msgspec.json.encode(form.body())), context.now_us, None)
            first_at = timer.execute_at if view is None or form.when != "keep" else view.timer.execute_at
            found.plan = plan(
                self._service.namespaces.retry_policy(timer),
                max(first_at, context.now_us),
                None if timer.expire_after_us is None else first_at + timer.expire_after_us,
            )
            if view is not None and len(found.body) > 2:
                self._parser.changes(_update_reader.read(msgspec.json.encode(found.body)), context.now_us)
        except InvalidInput as error:
            found.errors = error.errors
            if form.payload.strip() and any(bad.path == "payload" for bad in error.errors):
                found.body = None
        return found

    async def values(self, context: RequestContext, form: TimerForm, existing: TimerView | None) -> dict[str, Any]:
        return {
            **await super().values(context, form, existing),
            "confirmed_past": context.form.exact("past"),
            "attempt": context.form.get("attempt") or uuid.uuid4().hex,
            "delays": DELAYS,
        }
