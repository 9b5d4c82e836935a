"""The form of a timer: converts between its fields, the equivalent API request and the equivalent commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from tocsin.model.condition import OnConflict
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import US_PER_SECOND, format_duration
from tocsin.model.redaction import redact_headers, redact_url
from tocsin.model.retry import DEFAULT_POLICY
from tocsin.model.timer import NULL_PAYLOAD, Timer
from tocsin.timers.service import TimerView
from tocsin.web.http.convert import raw_body_answer
from tocsin.web.pages.context import Fields
from tocsin.web.pages.filters import split_tags
from tocsin.web.pages.forms import (
    Body,
    RequestForm,
    flags,
    header_flags,
    json_errors,
    lined,
    number,
    policy_flags,
    repeated,
    server_flag,
)
from tocsin.web.pages.presentation import pretty_json

_DEFAULT_TIMEOUT = "10"


@dataclass(slots=True)
class TimerForm(RequestForm):
    """While editing, `when` may be `keep`. `retry` is `namespace` for the namespace's policy, `custom`, or `none` for a
    single attempt."""

    namespace: str = "default"
    payload: str = ""
    #: The timer's raw body in the format of the API; it is kept unless a payload is entered.
    raw: str = ""
    timeout: str = _DEFAULT_TIMEOUT
    retry: str = "namespace"
    expire_after: str = ""
    #: The timer that this is a copy of, which has the secrets that the form doesn't show.
    like: str = ""
    like_namespace: str = ""

    @classmethod
    def read(cls, form: Fields) -> TimerForm:
        """The fields of a submitted form."""
        exact = {name: form.exact(name) for name in ("namespace", "id", "raw", "like", "like_namespace")}
        return cls(**{**cls.texts(form), **exact, "payload": form.exact("payload").replace("\r\n", "\n")})

    @classmethod
    def of(cls, timer: Timer, *, when: str) -> TimerForm:
        """The fields of an existing timer. Its secrets are redacted; a field that is sent back redacted keeps its secret."""
        single = timer.retry is not None and timer.retry.max_attempts == 1
        return cls(
            namespace=timer.namespace,
            id=timer.id,
            when=when,
            url=redact_url(timer.url),
            method=timer.method,
            headers=list(redact_headers(timer.headers or {}).items()),
            payload="" if timer.payload == NULL_PAYLOAD else pretty_json(bytes(timer.payload)),
            raw="" if timer.body is None else msgspec.json.encode(raw_body_answer(timer.body)).decode(),
            tags=", ".join(timer.tags),
            timeout=f"{timer.timeout_us / US_PER_SECOND:g}",
            retry="namespace" if timer.retry is None else "none" if single else "custom",
            expire_after="" if timer.expire_after_us is None else format_duration(timer.expire_after_us),
            **cls.policy_texts(DEFAULT_POLICY if timer.retry is None or single else timer.retry),
        )

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
        if self.payload.strip():
            errors += json_errors("payload", self.payload)
            body["payload"] = msgspec.Raw(self.payload.strip().encode())
        elif self.raw:
            errors += json_errors("body", self.raw)
            body["body"] = msgspec.Raw(self.raw.encode())
        if self.method != "POST":
            body["method"] = self.method
        if self.headers:
            body["headers"] = self.header_values("headers", errors)
        if self.retry == "custom":
            body["retryPolicy"] = self.policy("retryPolicy", errors)
        elif self.retry == "none":
            body["retryPolicy"] = {"maxAttempts": 1}
        if self.timeout != _DEFAULT_TIMEOUT:
            body["callbackTimeoutSeconds"] = number("callbackTimeoutSeconds", self.timeout, errors)
        if self.expire_after:
            body["expireAfter"] = self.expire_after.replace(" ", "").lower()
        if tags := split_tags(self.tags):
            body["tags"] = tags
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
        empty: Body = {
            "payload": NULL_PAYLOAD,
            "method": "POST",
            "headers": None,
            "retryPolicy": None,
            "callbackTimeoutSeconds": float(_DEFAULT_TIMEOUT),
            "expireAfter": None,
            "tags": [],
        }
        if "body" in body:
            del empty["payload"]
        return {**empty, **body}


def command(server: str, body: Mapping[str, Any]) -> str:
    """The equivalent `tocsin` command."""
    if "timerId" in body:
        parts = ["tocsin timers update", shlex.quote(body["timerId"]), *flags(body, {"callbackUrl": "--url"})]
    else:
        parts = ["tocsin timers create", shlex.quote(body["callbackUrl"]), *flags(body, {"id": "--id"})]
    if body["namespace"] != "default":
        parts += flags(body, {"namespace": "--namespace"})
    parts += flags(body, {"delay": "--in", "executeAt": "--at", "onConflict": "--on-conflict"})
    parts += flags(body, {"payload": "--payload"}, lambda raw: bytes(raw).decode())
    if "body" in body:
        parts += _raw_flags(msgspec.json.decode(body["body"]))
    parts += flags(body, {"method": "--method"})
    parts += [*header_flags(body.get("headers")), *repeated("--tag", body.get("tags", ()))]
    parts += flags(body, {"callbackTimeoutSeconds": "--timeout"}, lambda seconds: f"{seconds:g}")
    if body.get("expireAfter", "") is None:
        parts.append("--no-expiry")
    else:
        parts += flags(body, {"expireAfter": "--expire-after"})
    parts += policy_flags(body.get("retryPolicy") or {})
    return lined([" ".join(parts[:2]), *parts[2:], *server_flag(server)])


def _raw_flags(body: Mapping[str, Any]) -> list[str]:
    text = body.get("text")
    # A value that begins with @ names a file, and - means standard input.
    literal = isinstance(text, str) and not text.startswith("@") and text != "-"
    value = shlex.quote(text) if isinstance(text, str) and literal else "@FILE"
    return [f"--body {value}", f"--content-type {shlex.quote(str(body.get('contentType')))}"]
