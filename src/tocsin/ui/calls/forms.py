"""The form of a service call: between what people type and the request that a client of the API would send."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET

from tocsin.agent.api.ports import CallRecord
from tocsin.http.instants import format_instant
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_duration, parse_duration
from tocsin.model.redaction import REDACTED, is_secret, is_secret_name, redact_url
from tocsin.model.retry import DEFAULT_POLICY
from tocsin.ui.calls.show import STAR
from tocsin.ui.filters import words
from tocsin.ui.forms import URL_CHARS_READ_MAX, header_pairs, json_errors
from tocsin.ui.show import pretty_json
from tocsin.ui.visit import Fields
from tocsin.ui.whenever import read_when

Body = dict[str, Any]

#: In the order in which people look for them; the agent's rules have the last word.
METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_NAME_CHARS = 80
#: Fields of the retry policy: in the form, in the API, in the CLI.
_RETRY = (
    ("attempts", "maxAttempts", "--retry-attempts"),
    ("initial_interval", "initialInterval", "--retry-initial"),
    ("multiplier", "backoffMultiplier", "--retry-factor"),
    ("max_interval", "maxInterval", "--retry-max-interval"),
    ("max_duration", "maxAttemptsDuration", "--retry-for"),
)
_NUMBERS: dict[str, Callable[[str], float]] = {"attempts": int, "multiplier": float}
#: What no URL has as it is written: it was put in a secret's place.
_MASKED = (REDACTED, REDACTED.replace("[", "%5B").replace("]", "%5D"))


@dataclass(slots=True)
class CallForm:
    """The texts in the fields. `when` is `now`, `in` or `at`; `id` makes sending the form again the same call."""

    tenant: str = ""
    id: str = ""
    name: str = ""
    method: str = "POST"
    url: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: str = ""
    when: str = "now"
    delay: str = "5m"
    at: str = ""
    zone_minutes: str = "0"
    tags: str = ""
    retry: bool = False
    attempts: str = str(DEFAULT_POLICY.max_attempts)
    initial_interval: str = format_duration(DEFAULT_POLICY.initial_interval_us)
    multiplier: str = f"{DEFAULT_POLICY.backoff_multiplier:g}"
    max_interval: str = format_duration(DEFAULT_POLICY.max_interval_us)
    max_duration: str = ""

    @classmethod
    def read(cls, form: Fields) -> CallForm:
        """As it was sent."""
        return cls(
            tenant=form.get("tenant").lower(),
            id=form.get("id"),
            name=form.get("name"),
            method=form.get("method", "POST"),
            url=form.get("url")[:URL_CHARS_READ_MAX],
            headers=header_pairs(form),
            body=form.exact("body").replace("\r\n", "\n"),
            when=form.get("when", "now"),
            delay=form.get("delay"),
            at=form.get("at"),
            zone_minutes=form.get("zone_minutes", "0"),
            tags=form.get("tags"),
            retry="retry" in form,
            **{name: form.get(name) for name, _, _ in _RETRY},
        )

    @classmethod
    def like(cls, call: CallRecord, new_id: str) -> CallForm:
        """A call's wish once more, to be made now. Secrets are never shown, so they have to be typed again."""
        spec, policy = call.request_spec, call.retry_policy or DEFAULT_POLICY
        total = policy.max_duration_us
        return cls(
            tenant=call.tenant_id,
            id=new_id,
            name=call.name,
            method=spec.method,
            url=redact_url(spec.url),
            headers=[(name, "" if is_secret(name, value) else value) for name, value in spec.headers.items()],
            body="" if spec.body is UNSET else pretty_json(bytes(spec.body)),
            tags=", ".join(tag for tag in call.tags if tag != STAR),
            retry=call.retry_policy is not None,
            attempts=str(policy.max_attempts),
            initial_interval=format_duration(policy.initial_interval_us),
            multiplier=f"{policy.backoff_multiplier:g}",
            max_interval=format_duration(policy.max_interval_us),
            max_duration="" if total is None else format_duration(total),
        )

    def request(self, now_us: int) -> Body:
        """The request to submit it, as a client of the API would send it. InvalidInput for what can't be one."""
        errors: list[FieldError] = []
        spec: Body = {"method": self.method, "url": self.url}
        if any(mask in self.url for mask in _MASKED):
            errors.append(FieldError("requestSpec.url", "has a part that is never shown; type the secret again"))
        if self.headers:
            spec["headers"] = dict(self.headers)
            if len(spec["headers"]) < len(self.headers):
                errors.append(FieldError("requestSpec.headers", "has a name twice; give each header once"))
            errors += [
                FieldError("requestSpec.headers", f"needs the value of {name}, which is never shown; type it again")
                for name, value in self.headers
                if value == REDACTED or (not value and is_secret_name(name))
            ]
        if self.body.strip():
            errors += json_errors("requestSpec.body", self.body)
            spec["body"] = msgspec.Raw(self.body.strip().encode())
        if self.retry:
            spec["retryPolicy"] = self._policy(errors)
        request: Body = {"name": self.name or self._usual_name(), "requestSpec": spec}
        due_at = self._due_at(now_us, errors)
        if due_at is not None:
            request["dueAt"] = due_at
        if tags := words(self.tags):
            request["tags"] = tags
        if errors:
            raise InvalidInput(*errors)
        return request

    def _policy(self, errors: list[FieldError]) -> Body:
        policy: Body = {}
        for name, member, _ in _RETRY:
            text = getattr(self, name)
            if not text:
                continue
            try:
                policy[member] = _NUMBERS[name](text) if name in _NUMBERS else text.replace(" ", "")
            except ValueError:
                errors.append(FieldError(f"requestSpec.retryPolicy.{member}", f"is not a number: {text!r}"))
        return policy

    def _usual_name(self) -> str:
        """What a call without a name is called: what it does."""
        return f"{self.method} {redact_url(self.url).partition('://')[2].partition('?')[0]}"[:_NAME_CHARS]

    def _due_at(self, now_us: int, errors: list[FieldError]) -> str | None:
        if self.when not in ("in", "at"):
            return None
        fields = [("when", self.when), ("delay", self.delay), ("at", self.at), ("zone_minutes", self.zone_minutes)]
        try:
            when = read_when(Fields(fields))
            return when["executeAt"] if "executeAt" in when else format_instant(now_us + parse_duration(when["delay"]))
        except InvalidInput as error:
            errors.extend(FieldError("dueAt", each.reason) for each in error.errors)
        except (ValueError, OverflowError) as error:
            errors.append(FieldError("delay", str(error)))
        return None


def command(server: str, tenant: str, request: Mapping[str, Any], form: CallForm) -> str:
    """The same with the CLI, which counts a delay itself."""
    spec = request["requestSpec"]
    parts = [f"--tenant {shlex.quote(tenant)}", f"--method {shlex.quote(spec['method'])}"]
    parts += [f"--header {shlex.quote(f'{name}: {value}')}" for name, value in spec.get("headers", {}).items()]
    if "body" in spec:
        parts.append(f"--body {shlex.quote(bytes(spec['body']).decode())}")
    if form.when == "in":
        parts.append(f"--in {shlex.quote(form.delay.replace(' ', '').lower())}")
    elif "dueAt" in request:
        parts.append(f"--at {shlex.quote(request['dueAt'])}")
    parts += [f"--tag {shlex.quote(tag)}" for tag in request.get("tags", ())]
    if "retryPolicy" in spec:
        policy = spec["retryPolicy"]
        given = [f"{flag} {shlex.quote(f'{policy[member]}')}" for _, member, flag in _RETRY if member in policy]
        parts += given or ["--retry"]
    if server != "http://127.0.0.1:8080":
        parts.append(f"--server {shlex.quote(server)}")
    named = [shlex.quote(request["name"]), shlex.quote(spec["url"])]
    # A name that begins like an option is none behind two dashes, where options end.
    if request["name"].startswith("-"):
        return " \\\n  ".join(["tocsin calls submit", *parts, " ".join(["--", *named])])
    return " \\\n  ".join([" ".join(["tocsin calls submit", *named]), *parts])
