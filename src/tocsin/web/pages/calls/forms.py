"""The form of a service call: converts between its fields, the equivalent API request and the equivalent command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgspec
from msgspec import UNSET

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.hooks import NO_HOOKS, Event, field_of, redacted
from tocsin.model.instants import format_instant, parse_duration
from tocsin.model.redaction import REDACTED, is_secret, is_secret_name, redact_url
from tocsin.model.retry import DEFAULT_POLICY
from tocsin.service_calls.ports import CallRecord
from tocsin.web.pages.callback_forms import hook_flags, hook_words
from tocsin.web.pages.calls.presentation import STAR
from tocsin.web.pages.context import Fields
from tocsin.web.pages.filters import split_tags
from tocsin.web.pages.forms import (
    Body,
    RequestForm,
    flags,
    header_flags,
    json_errors,
    lined,
    policy_flags,
    repeated,
    server_flag,
)
from tocsin.web.pages.presentation import pretty_json

#: The methods on offer, the most common first; the agent checks them.
METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_NAME_CHARS = 80
#: The placeholder of a secret in a URL, also percent-encoded.
_MASKED = (REDACTED, REDACTED.replace("[", "%5B").replace("]", "%5D"))
#: What hooks of calls may be notified of.
_EVENTS = (Event.FAILURE, Event.SUCCESS)
#: What the paths of fields in an API request begin with.
SPEC = "requestSpec."


@dataclass(slots=True)
class CallForm(RequestForm):
    """`when` may be `now`. `id` makes submitting the form idempotent."""

    when: str = "now"
    tenant: str = ""
    name: str = ""
    body: str = ""
    retry: bool = False
    flow_key: str = ""
    credential: str = ""
    on_failure: str = ""
    on_success: str = ""

    @classmethod
    def read(cls, form: Fields) -> Self:
        """The fields of a submitted form."""
        tenant = form.get("new_tenant") or form.get("tenant")
        texts = {**cls.texts(form), "tenant": tenant.lower(), "retry": "retry" in form}
        return cls(**{**texts, "body": form.exact("body").replace("\r\n", "\n")})

    @classmethod
    def like(cls, call: CallRecord, new_id: str) -> CallForm:
        """A copy of a call, to be sent now. Secrets are not copied; the user enters them again."""
        spec = call.request_spec
        return cls(
            tenant=call.tenant_id,
            id=new_id,
            name=call.name,
            method=spec.method,
            url=redact_url(spec.url),
            headers=[(name, "" if is_secret(name, value) else value) for name, value in spec.headers.items()],
            body="" if spec.body is UNSET else pretty_json(bytes(spec.body)),
            tags=", ".join(tag for tag in call.tags if tag != STAR),
            flow_key=call.flow_key or "",
            credential=spec.credential or "",
            **{
                f"on_{event}": redacted(hook).url
                for event in _EVENTS
                if (hook := getattr(call.hooks or NO_HOOKS, event))
            },
            retry=call.retry_policy is not None,
            **cls.policy_texts(call.retry_policy or DEFAULT_POLICY),
        )

    def lines(self, plan: str) -> dict[str, str]:
        retries = f"Up to {self.attempts} attempts" if self.retry else "None"
        payload = " ".join(self.body.split())
        details = {
            "name": self.name or (self._default_name() if self.url else "None"),
            "tenant": self.tenant,
            "payload": payload or "None",
            "tags": " · ".join(filter(None, [self.tags, self.flow_key, self.credential])) or "None",
            "hooks": hook_words(self, _EVENTS),
        }
        return {**super(CallForm, self).lines(retries), **details}

    def request(self, now_us: int) -> Body:
        """The equivalent API request to submit the call. Raises InvalidInput for fields that can't be converted."""
        errors: list[FieldError] = []
        spec: Body = {"method": self.method, "url": self.url}
        if any(mask in self.url for mask in _MASKED):
            errors.append(FieldError(f"{SPEC}url", "contains a redacted secret; enter the secret again"))
        if self.headers:
            spec["headers"] = self.header_values(f"{SPEC}headers", errors)
            errors += [
                FieldError(
                    f"{SPEC}headers", f"needs the value of {name}, which is secret and not copied; enter it again"
                )
                for name, value in self.headers
                if value == REDACTED or (not value and is_secret_name(name))
            ]
        if self.body.strip():
            errors += json_errors(f"{SPEC}body", self.body)
            spec["body"] = msgspec.Raw(self.body.strip().encode())
        if self.retry:
            spec["retryPolicy"] = self.policy(f"{SPEC}retryPolicy", errors)
        if self.credential:
            spec["credential"] = self.credential
        request: Body = {"name": self.name or (self._default_name() if self.url else "None"), "requestSpec": spec}
        for event in _EVENTS:
            if url := getattr(self, f"on_{event}"):
                request[field_of(event)] = {"url": url}
        due_at = self._due_at(now_us, errors)
        if due_at is not None:
            request["dueAt"] = due_at
        if tags := split_tags(self.tags):
            request["tags"] = tags
        if self.flow_key:
            request["flowKey"] = self.flow_key
        if errors:
            raise InvalidInput(*errors)
        return request

    def _default_name(self) -> str:
        """The name of a call that is submitted without one: its method and URL."""
        return f"{self.method} {redact_url(self.url.partition('?')[0]).partition('://')[2]}"[:_NAME_CHARS]

    def _due_at(self, now_us: int, errors: list[FieldError]) -> str | None:
        if self.when not in ("in", "at"):
            return None
        try:
            when = self.due()
            return when["executeAt"] if "executeAt" in when else format_instant(now_us + parse_duration(when["delay"]))
        except InvalidInput as error:
            errors.extend(FieldError("dueAt", each.reason) for each in error.errors)
        except (ValueError, OverflowError) as error:
            errors.append(FieldError("delay", str(error)))
        return None


def command(server: str, tenant: str, request: Mapping[str, Any], form: CallForm) -> str:
    """The equivalent `tocsin` command; it passes a delay on as such."""
    spec = request["requestSpec"]
    parts = [*flags({"tenant": tenant}, {"tenant": "--tenant"}), *flags(spec, {"method": "--method"})]
    parts += header_flags(spec.get("headers"))
    parts += flags(spec, {"body": "--body"}, lambda raw: bytes(raw).decode())
    parts += flags(form.due(), {"delay": "--in"}) if form.when == "in" else flags(request, {"dueAt": "--at"})
    parts += repeated("--tag", request.get("tags", ()))
    parts += flags(request, {"flowKey": "--flow-key"}) + flags(spec, {"credential": "--credential"})
    if "retryPolicy" in spec:
        parts += policy_flags(spec["retryPolicy"]) or ["--retry"]
    parts += hook_flags(request)
    parts += server_flag(server)
    named = [shlex.quote(request["name"]), shlex.quote(spec["url"])]
    # After two dashes a name that begins with a dash is no option.
    if request["name"].startswith("-"):
        return lined(["tocsin calls submit", *parts, " ".join(["--", *named])])
    return lined([" ".join(["tocsin calls submit", *named]), *parts])
