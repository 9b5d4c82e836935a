"""What the forms of timers and of schedules share: the callback's fields, their conversion, the CLI's flags for them,
and the plan of the attempts."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import msgspec

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, NamespaceNotFound, ScheduleNotFound, TimerNotFound
from tocsin.model.hooks import NO_HOOKS, Event, Hook, field_of, redacted
from tocsin.model.instants import US_PER_SECOND, format_duration
from tocsin.model.redaction import redact_headers, redact_url
from tocsin.model.retry import DEFAULT_POLICY, RetryPolicy, next_attempt_at
from tocsin.model.stored_secrets import take_secrets, withholds
from tocsin.model.timer import NULL_PAYLOAD, Timer
from tocsin.timers.schedules import ScheduleView
from tocsin.timers.service import TimerView
from tocsin.web.http.convert import raw_body_answer
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.filters import split_tags
from tocsin.web.pages.forms import (
    RETRY_LABELS,
    Body,
    RequestForm,
    duration,
    duration_words,
    flags,
    header_flags,
    json_errors,
    number,
    policy_flags,
    repeated,
)
from tocsin.web.pages.presentation import initial, pretty_json, span

DEFAULT_TIMEOUT = "10"

HOOK_LABELS = {
    "onFailure": "When it fails",
    "onSuccess": "When it succeeds",
    "onRecovery": "When it succeeds after a failure",
    "onMissed": "When it misses an instant",
    "onPaused": "When it pauses itself",
    "onLate": "When a monitor is late, or its job fails",
}
#: The labels of the fields that the forms of timers and of schedules end with, by their names in the API.
LABELS = {
    "description": "Description",
    "flowKey": "Flow",
    "credential": "Credential",
    "tags": "Tags",
    "expireAfter": "Expires after",
    "payload": "Payload",
    **RETRY_LABELS,
    "callbackTimeoutSeconds": "Timeout",
    "headers": "Headers",
    **{name: HOOK_LABELS[name] for name in ("onFailure", "onSuccess", "onRecovery")},
}


@dataclass(slots=True)
class CallbackForm(RequestForm):
    """`retry` is `namespace` for the namespace's policy, `custom`, or `none` for a single attempt."""

    namespace: str = "default"
    payload: str = ""
    #: The stored raw body in the format of the API; it is kept unless a payload is entered.
    raw: str = ""
    timeout: str = DEFAULT_TIMEOUT
    retry: str = "namespace"
    expire_after: str = ""
    description: str = ""
    flow_key: str = ""
    credential: str = ""
    on_failure: str = ""
    on_success: str = ""
    on_recovery: str = ""
    on_missed: str = ""
    on_paused: str = ""
    #: The stored hooks in the format of the API: one whose URL is not changed keeps its headers.
    hooks: str = "{}"
    #: What this is a copy of, which has the secrets that the form doesn't show.
    like: str = ""
    like_namespace: str = ""
    #: Of what it is filled from, while editing.
    version: str = ""

    #: Fields that are read exactly as sent.
    exact: ClassVar[tuple[str, ...]] = ("namespace", "id", "raw", "hooks", "like", "like_namespace")
    #: What hooks may be notified of.
    events: ClassVar[Sequence[Event]] = (Event.FAILURE, Event.SUCCESS, Event.RECOVERY)

    @classmethod
    def read(cls, form: Fields) -> Self:
        """The fields of a submitted form."""
        exact = {name: form.exact(name) for name in cls.exact}
        return cls(**{**cls.texts(form), **exact, "payload": form.exact("payload").replace("\r\n", "\n")})

    @classmethod
    def callback_texts(cls, timer: Timer) -> dict[str, Any]:
        """The fields of what is stored. Its secrets are redacted; a field that is sent back redacted keeps its secret."""
        single = timer.retry is not None and timer.retry.max_attempts == 1
        hooks = {event: redacted(hook) for event in cls.events if (hook := getattr(timer.hooks or NO_HOOKS, event))}
        return {
            "namespace": timer.namespace,
            "id": timer.id,
            "url": redact_url(timer.url),
            "method": timer.method,
            "headers": list(redact_headers(timer.headers or {}).items()),
            "payload": "" if timer.payload == NULL_PAYLOAD else pretty_json(bytes(timer.payload)),
            "raw": "" if timer.body is None else msgspec.json.encode(raw_body_answer(timer.body)).decode(),
            "tags": ", ".join(timer.tags),
            "timeout": f"{timer.timeout_us / US_PER_SECOND:g}",
            "expire_after": "" if timer.expire_after_us is None else format_duration(timer.expire_after_us),
            "description": timer.description or "",
            "flow_key": timer.flow_key,
            "credential": timer.credential,
            **{f"on_{event}": hook.url for event, hook in hooks.items()},
            "hooks": msgspec.json.encode(hooks).decode(),
            "retry": "namespace" if timer.retry is None else "none" if single else "custom",
            **cls.policy_texts(DEFAULT_POLICY if timer.retry is None or single else timer.retry),
        }

    def lines(self, plan: str) -> dict[str, str]:
        policy = {"namespace": "the namespace’s policy", "custom": "a policy of its own"}.get(self.retry, "")
        retries = ", ".join(filter(None, [plan.rstrip(".:").replace("over about", "in"), policy])) or "No retries"
        payload = " ".join(self.payload.split())
        words = super(CallbackForm, self).lines(initial(retries))
        return {
            **words,
            "id": f"{self.id or 'None'} in {self.namespace}",
            "payload": payload or ("A raw body" if self.raw else "None"),
            "headers": f"{words['headers']}; {self.timeout} s to respond",
            "details": " · ".join(filter(None, [self.description, self.tags, self.flow_key, self.credential]))
            or "None",
            "hooks": hook_words(self, self.events),
            "expiry": f"{duration_words(self.expire_after)} after its time" if self.expire_after else "Never",
        }

    @property
    def hook_fields(self) -> dict[str, str]:
        """The names of the hooks' fields here, with those in the API."""
        return {f"on_{event}": field_of(event) for event in self.events}

    def special(self, errors: list[FieldError]) -> Body:
        """The members of an API request to create it that other forms don't have. Raises InvalidInput."""
        raise NotImplementedError

    def changes(self, view: Any) -> Body:
        """The API request that updates what is stored: only the fields that differ. Raises InvalidInput."""
        raise NotImplementedError

    def body(self) -> Body:
        """The equivalent API request to create it. Raises InvalidInput for fields that can't be converted."""
        errors: list[FieldError] = []
        body: Body = {"namespace": self.namespace, "id": self.id, "callbackUrl": self.url}
        try:
            body |= self.special(errors)
        except InvalidInput as error:
            errors += error.errors
        body |= self.callback(errors)
        if errors:
            raise InvalidInput(*errors)
        return body

    def callback(self, errors: list[FieldError]) -> Body:
        """The members of an API request that define what is sent and how often it is tried, the URL excepted."""
        body: Body = {}
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
        if self.timeout != DEFAULT_TIMEOUT:
            body["callbackTimeoutSeconds"] = number("callbackTimeoutSeconds", self.timeout, errors)
        if self.expire_after:
            body["expireAfter"] = duration(self.expire_after)
        if self.description:
            body["description"] = self.description
        if self.flow_key:
            body["flowKey"] = self.flow_key
        if self.credential:
            body["credential"] = self.credential
        if tags := split_tags(self.tags):
            body["tags"] = tags
        return body | self._hooks(errors)

    def _hooks(self, errors: list[FieldError]) -> Body:
        wanted = {event: url for event in self.events if (url := getattr(self, f"on_{event}"))}
        try:
            stored = msgspec.json.decode(self.hooks or "{}", type=dict[str, Hook])
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            errors.append(FieldError("hooks", f"can't be read: {error}; load the page again"))
            stored = {}
        hooks: Body = {}
        for event, url in wanted.items():
            known = stored.get(event)
            same = known is not None and known.url == url
            hooks[field_of(event)] = msgspec.to_builtins(known) if same else {"url": url}
        return hooks


async def copy_secrets(
    context: RequestContext,
    form: CallbackForm,
    timer: Timer,
    get: Callable[[str, str], Awaitable[TimerView | ScheduleView]],
) -> None:
    """Gives a copy the secrets of its original, which `get` returns. This requires the permission to change the original,
    which includes sending its secrets to another URL."""
    if not form.like or not withholds(timer):
        return
    context.permit(Role.WRITE, form.like_namespace)
    try:
        original = await get(form.like_namespace, form.like)
    except (TimerNotFound, ScheduleNotFound, NamespaceNotFound):
        return
    take_secrets(timer, original.timer)


def with_empty_callback(body: Body, events: Sequence[Event]) -> Body:
    """A request with all members that `CallbackForm.callback` leaves out at their defaults."""
    empty: Body = {
        "payload": NULL_PAYLOAD,
        "method": "POST",
        "headers": None,
        "retryPolicy": None,
        "callbackTimeoutSeconds": float(DEFAULT_TIMEOUT),
        "expireAfter": None,
        "description": None,
        "flowKey": None,
        "credential": None,
        "tags": [],
        **{field_of(event): None for event in events},
    }
    if "body" in body:
        del empty["payload"]
    return {**empty, **body}


def callback_flags(body: Mapping[str, Any]) -> list[str]:
    """The CLI flags for what `CallbackForm.callback` returns. Removing the expiry is a flag of each command."""
    parts = flags(body, {"payload": "--payload"}, lambda raw: bytes(raw).decode())
    if "body" in body:
        parts += _raw_flags(msgspec.json.decode(body["body"]))
    parts += flags(body, {"method": "--method"})
    parts += [*header_flags(body.get("headers")), *repeated("--tag", body.get("tags", ()))]
    parts += flags(body, {"callbackTimeoutSeconds": "--timeout"}, lambda seconds: f"{seconds:g}")
    if body.get("expireAfter") is not None:
        parts += flags(body, {"expireAfter": "--expire-after"})
    # An empty one removes it.
    removable = {"description": "--description", "flowKey": "--flow-key", "credential": "--credential"}
    parts += flags(body, removable, lambda text: text or "")
    return parts + hook_flags(body) + policy_flags(body.get("retryPolicy") or {})


def hook_flags(body: Mapping[str, Any]) -> list[str]:
    """The CLI flags for the hooks in a request; an empty one removes it."""
    return flags(body, {field_of(event): f"--on-{event}" for event in Event}, lambda hook: hook["url"] if hook else "")


def hook_words(form: RequestForm, events: Sequence[Event]) -> str:
    """What the form's hooks are notified of, for its folded line."""
    words = [HOOK_LABELS[field_of(each)].lower() for each in events if getattr(form, f"on_{each}")]
    return ", ".join(words) or "Nobody is notified"


def _raw_flags(body: Mapping[str, Any]) -> list[str]:
    text = body.get("text")
    # A value that begins with @ names a file, and - means standard input.
    literal = isinstance(text, str) and not text.startswith("@") and text != "-"
    value = shlex.quote(text) if isinstance(text, str) and literal else "@FILE"
    return [f"--body {value}", f"--content-type {shlex.quote(str(body.get('contentType')))}"]


#: Attempts that are listed: the first ones, and the last.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Planned:
    """One attempt; `after_us` is its distance from the first one, in microseconds."""

    number: int
    at: int
    after_us: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The attempts if each fails at once: all, or the first ones and the last if there are many."""

    words: str
    attempts: list[Planned]


def plan(policy: RetryPolicy, first_at: int, expires_at: int | None = None) -> Plan:
    """The plan for a first attempt at an instant; none begins after `expires_at`, if there is such a limit. Actual attempts
    are a little later: each one takes time, and a response may request a longer delay."""
    attempts = [Planned(1, first_at, 0)]
    while (
        at := next_attempt_at(
            policy, attempts_made=len(attempts), first_attempt_at=first_at, now_us=attempts[-1].at, jitter=0.0
        )
    ) is not None and (expires_at is None or at <= expires_at):
        attempts.append(Planned(len(attempts) + 1, at, at - first_at))
    shown = attempts if len(attempts) <= _SHOWN else [*attempts[: _SHOWN - 1], attempts[-1]]
    return Plan(_words(attempts), shown)


def _words(attempts: list[Planned]) -> str:
    if len(attempts) == 1:
        return "One attempt, no retries."
    return f"Up to {len(attempts)} attempts over about {span(attempts[-1].after_us)}:"
