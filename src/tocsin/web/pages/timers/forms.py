"""The form of a timer: converts between its fields, the equivalent API request and the equivalent commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from tocsin.model.condition import OnConflict
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import US_PER_SECOND, format_duration
from tocsin.model.redaction import redact_headers, redact_url
from tocsin.model.retry import DEFAULT_POLICY
from tocsin.model.timer import NULL_PAYLOAD, Timer
from tocsin.timers.service import TimerView
from tocsin.web.http.convert import raw_body_answer, timer_answer
from tocsin.web.pages.context import Fields
from tocsin.web.pages.presentation import pretty_json
from tocsin.web.pages.when_fields import read_when

Body = dict[str, Any]

_DEFAULT_TIMEOUT = "10"
#: Fields of the retry policy: their names in the form, in the API and in the CLI.
_RETRY = (
    ("attempts", "maxAttempts", "--retry-attempts"),
    ("initial_interval", "initialInterval", "--retry-initial"),
    ("multiplier", "backoffMultiplier", "--retry-factor"),
    ("max_interval", "maxInterval", "--retry-max-interval"),
    ("max_duration", "maxAttemptsDuration", "--retry-for"),
)
_NUMBERS = frozenset({"attempts", "multiplier"})
#: How much of a field is read: more than is ever accepted, so that too long a value is refused; little enough to show again.
URL_CHARS_READ_MAX = 64 * 1024
_HEADERS_READ_MAX = 256


def header_pairs(form: Fields) -> list[tuple[str, str]]:
    """Names and values of the headers in a form, without empty rows."""
    pairs = zip(form.all("header_name"), form.all("header_value"), strict=False)
    return list(islice(((name.strip(), value) for name, value in pairs if name.strip() or value), _HEADERS_READ_MAX))


@dataclass(slots=True)
class TimerForm:
    """The text of each field. `when` is `in`, `at` or, while editing, `keep`; `retry` is `namespace` for the namespace's
    policy, `custom`, or `none` for a single attempt."""

    namespace: str = "default"
    id: str = ""
    when: str = "in"
    delay: str = "5m"
    at: str = ""
    zone_minutes: str = "0"
    url: str = ""
    method: str = "POST"
    headers: list[tuple[str, str]] = field(default_factory=list)
    payload: str = ""
    #: The timer's raw body in the format of the API; it is kept unless a payload is entered.
    raw: str = ""
    tags: str = ""
    timeout: str = _DEFAULT_TIMEOUT
    retry: str = "namespace"
    attempts: str = str(DEFAULT_POLICY.max_attempts)
    initial_interval: str = format_duration(DEFAULT_POLICY.initial_interval_us)
    multiplier: str = f"{DEFAULT_POLICY.backoff_multiplier:g}"
    max_interval: str = format_duration(DEFAULT_POLICY.max_interval_us)
    max_duration: str = ""
    #: The timer that this is a copy of, which has the secrets that the form doesn't show.
    like: str = ""
    like_namespace: str = ""

    @classmethod
    def read(cls, form: Fields) -> TimerForm:
        """The fields of a submitted form."""
        return cls(
            namespace=form.exact("namespace"),
            id=form.exact("id"),
            when=form.get("when", "in"),
            delay=form.get("delay"),
            at=form.get("at"),
            zone_minutes=form.get("zone_minutes", "0"),
            url=form.get("url")[:URL_CHARS_READ_MAX],
            method=form.get("method", "POST"),
            headers=header_pairs(form),
            payload=form.exact("payload").replace("\r\n", "\n"),
            raw=form.exact("raw"),
            tags=form.get("tags"),
            timeout=form.get("timeout"),
            retry=form.get("retry", "namespace"),
            attempts=form.get("attempts"),
            initial_interval=form.get("initial_interval"),
            multiplier=form.get("multiplier"),
            max_interval=form.get("max_interval"),
            max_duration=form.get("max_duration"),
            like=form.exact("like"),
            like_namespace=form.exact("like_namespace"),
        )

    @classmethod
    def of(cls, timer: Timer, *, when: str) -> TimerForm:
        """The fields of an existing timer. Its secrets are redacted; a field that is sent back redacted keeps its secret."""
        single = timer.retry is not None and timer.retry.max_attempts == 1
        policy = DEFAULT_POLICY if timer.retry is None or single else timer.retry
        total = policy.max_duration_us
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
            attempts=str(policy.max_attempts),
            initial_interval=format_duration(policy.initial_interval_us),
            multiplier=f"{policy.backoff_multiplier:g}",
            max_interval=format_duration(policy.max_interval_us),
            max_duration="" if total is None else format_duration(total),
        )

    def body(self) -> Body:
        """The equivalent API request to create the timer. Raises InvalidInput for fields that can't be converted."""
        errors: list[FieldError] = []
        body: Body = {
            "namespace": self.namespace, "id": self.id, "callbackUrl": self.url, "onConflict": OnConflict.REJECT.value,
        }  # fmt: skip
        try:
            body.update(
                read_when(
                    Fields(
                        [
                            ("when", self.when),
                            ("delay", self.delay),
                            ("at", self.at),
                            ("zone_minutes", self.zone_minutes),
                        ]
                    )
                )
            )
        except InvalidInput as error:
            errors.extend(error.errors)
        if self.payload.strip():
            errors.extend(json_errors("payload", self.payload))
            body["payload"] = msgspec.Raw(self.payload.strip().encode())
        elif self.raw:
            errors.extend(json_errors("body", self.raw))
            body["body"] = msgspec.Raw(self.raw.encode())
        if self.method != "POST":
            body["method"] = self.method
        if self.headers:
            body["headers"] = dict(self.headers)
            if len(body["headers"]) < len(self.headers):
                errors.append(FieldError("headers", "has a duplicate name; give each header once"))
        if self.retry == "custom":
            body["retryPolicy"] = self._policy(errors)
        elif self.retry == "none":
            body["retryPolicy"] = {"maxAttempts": 1}
        if self.timeout != _DEFAULT_TIMEOUT:
            body["callbackTimeoutSeconds"] = _number("callbackTimeoutSeconds", self.timeout, errors)
        tags = [tag.strip() for tag in self.tags.split(",") if tag.strip()]
        if tags:
            body["tags"] = tags
        if errors:
            raise InvalidInput(*errors)
        return body

    def _policy(self, errors: list[FieldError]) -> Body:
        policy: Body = {}
        for name, member, _ in _RETRY:
            text = getattr(self, name)
            if text:
                path = f"retryPolicy.{member}"
                policy[member] = _number(path, text, errors) if name in _NUMBERS else text.replace(" ", "")
        return policy

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
            "tags": [],
        }
        if "body" in body:
            del empty["payload"]
        return {**empty, **body}


def json_errors(path: str, text: str) -> list[FieldError]:
    """Why a text is not JSON, and where; empty if it is."""
    try:
        msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    else:
        return []
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        what = f"{error.msg[:1].lower()}{error.msg[1:]}"
        return [FieldError(path, f"is not JSON: {what} at line {error.lineno}, column {error.colno}")]
    except (ValueError, RecursionError):
        return [FieldError(path, "is nested too deeply")]
    return [FieldError(path, "is not JSON; numbers must be finite")]


def _number(path: str, text: str, errors: list[FieldError]) -> float | int:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        errors.append(FieldError(path, "is not a number"))
        return 0
    return int(value) if value.is_integer() else value


def curl(url: str, body: Mapping[str, Any], *, key: bool) -> str:
    """The curl command that sends the request."""
    lines = [f"curl {shlex.quote(url)}", "-H 'content-type: application/json'"]
    if key:
        lines.append('-H "authorization: Bearer $TOCSIN_KEY"')
    lines.append(f"-d {shlex.quote(_readable(body))}")
    return " \\\n  ".join(lines)


def _readable(body: Mapping[str, Any]) -> str:
    return pretty_json(msgspec.json.encode(dict(body)))


def command(server: str, body: Mapping[str, Any]) -> str:
    """The equivalent `tocsin` command."""
    updating = "timerId" in body
    if updating:
        parts = ["tocsin timers update", shlex.quote(body["timerId"])]
        if "callbackUrl" in body:
            parts.append(f"--url {shlex.quote(body['callbackUrl'])}")
    else:
        parts = ["tocsin timers create", shlex.quote(body["callbackUrl"]), f"--id {shlex.quote(body['id'])}"]
    if body["namespace"] != "default":
        parts.append(f"--namespace {shlex.quote(body['namespace'])}")
    parts += [
        f"--{flag} {shlex.quote(str(body[name]))}"
        for name, flag in (("delay", "in"), ("executeAt", "at"))
        if name in body
    ]
    if "onConflict" in body:
        parts.append(f"--on-conflict {body['onConflict']}")
    if "payload" in body:
        parts.append(f"--payload {shlex.quote(bytes(body['payload']).decode())}")
    if "body" in body:
        parts += _raw_flags(msgspec.json.decode(body["body"]))
    if "method" in body:
        parts.append(f"--method {body['method']}")
    parts += [f"--header {shlex.quote(f'{name}: {value}')}" for name, value in (body.get("headers") or {}).items()]
    parts += [f"--tag {shlex.quote(tag)}" for tag in body.get("tags", ())]
    if "callbackTimeoutSeconds" in body:
        parts.append(f"--timeout {body['callbackTimeoutSeconds']:g}")
    policy = body.get("retryPolicy") or {}
    parts += [f"{flag} {shlex.quote(str(policy[member]))}" for _, member, flag in _RETRY if member in policy]
    if server != "http://127.0.0.1:8080":
        parts.append(f"--server {shlex.quote(server)}")
    return " \\\n  ".join([" ".join(parts[:2]), *parts[2:]])


def _raw_flags(body: Mapping[str, Any]) -> list[str]:
    text = body.get("text")
    # A value that begins with @ names a file, and - means standard input.
    literal = isinstance(text, str) and not text.startswith("@") and text != "-"
    value = shlex.quote(text) if isinstance(text, str) and literal else "@FILE"
    return [f"--body {value}", f"--content-type {shlex.quote(str(body.get('contentType')))}"]


def exported(view: TimerView) -> bytes:
    """A timer in the format of the API."""
    return msgspec.json.encode(timer_answer(view))
