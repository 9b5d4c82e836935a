"""The form of a service call: converts between its fields, the equivalent API request and the equivalent command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_duration, parse_duration
from tocsin.model.redaction import REDACTED, is_secret, is_secret_name, redact_url
from tocsin.model.retry import DEFAULT_POLICY
from tocsin.service_calls.api.ports import CallRecord
from tocsin.web.http.instants import format_instant
from tocsin.web.pages.calls.presentation import STAR
from tocsin.web.pages.context import Fields
from tocsin.web.pages.presentation import pretty_json
from tocsin.web.pages.timers.filters import split_tags
from tocsin.web.pages.timers.forms import URL_CHARS_READ_MAX, header_pairs, json_errors
from tocsin.web.pages.when_fields import read_when

Body = dict[str, Any]

#: The methods on offer, the most common first; the agent checks them.
METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_NAME_CHARS = 80
#: Fields of the retry policy: their names in the form, in the API and in the CLI.
_RETRY = (
    ("attempts", "maxAttempts", "--retry-attempts"),
    ("initial_interval", "initialInterval", "--retry-initial"),
    ("multiplier", "backoffMultiplier", "--retry-factor"),
    ("max_interval", "maxInterval", "--retry-max-interval"),
    ("max_duration", "maxAttemptsDuration", "--retry-for"),
)
_NUMBERS: dict[str, Callable[[str], float]] = {"attempts": int, "multiplier": float}
#: The placeholder of a secret in a URL, also percent-encoded.
_MASKED = (REDACTED, REDACTED.replace("[", "%5B").replace("]", "%5D"))


@dataclass(slots=True)
class CallForm:
    """The text of each field. `when` is `now`, `in` or `at`. `id` makes submitting the form idempotent."""

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
        """The fields of a submitted form."""
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
        """A copy of a call, to be sent now. Secrets are not copied; the user enters them again."""
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
        """The equivalent API request to submit the call. Raises InvalidInput for fields that can't be converted."""
        errors: list[FieldError] = []
        spec: Body = {"method": self.method, "url": self.url}
        if any(mask in self.url for mask in _MASKED):
            errors.append(FieldError("requestSpec.url", "contains a redacted secret; enter the secret again"))
        if self.headers:
            spec["headers"] = dict(self.headers)
            if len(spec["headers"]) < len(self.headers):
                errors.append(FieldError("requestSpec.headers", "has a duplicate name; give each header once"))
            errors += [
                FieldError(
                    "requestSpec.headers", f"needs the value of {name}, which is secret and not copied; enter it again"
                )
                for name, value in self.headers
                if value == REDACTED or (not value and is_secret_name(name))
            ]
        if self.body.strip():
            errors += json_errors("requestSpec.body", self.body)
            spec["body"] = msgspec.Raw(self.body.strip().encode())
        if self.retry:
            spec["retryPolicy"] = self._policy(errors)
        request: Body = {"name": self.name or self._default_name(), "requestSpec": spec}
        due_at = self._due_at(now_us, errors)
        if due_at is not None:
            request["dueAt"] = due_at
        if tags := split_tags(self.tags):
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

    def _default_name(self) -> str:
        """The name of a call that is submitted without one: its method and URL."""
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
    """The equivalent `tocsin` command; it passes a delay on as such."""
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
    # After two dashes a name that begins with a dash is no option.
    if request["name"].startswith("-"):
        return " \\\n  ".join(["tocsin calls submit", *parts, " ".join(["--", *named])])
    return " \\\n  ".join([" ".join(["tocsin calls submit", *named]), *parts])
