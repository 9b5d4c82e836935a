"""The form of a timer: converts between its fields, the equivalent API request and the equivalent commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tocsin.model.condition import OnConflict
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.timer import Timer
from tocsin.timers.service import TimerView
from tocsin.web.pages.callback_forms import CallbackForm, callback_flags, with_empty_callback
from tocsin.web.pages.forms import Body, flags, lined, server_flag


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
