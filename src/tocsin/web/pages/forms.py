"""What the forms of timers and of calls share: fields, their conversion to an API request, and the equivalent commands."""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Self

import msgspec

from tocsin.model.condition import Condition, OnConflict
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import US_PER_SECOND, format_duration, parse_duration
from tocsin.model.retry import DEFAULT_POLICY, RetryPolicy
from tocsin.web.pages.context import Fields
from tocsin.web.pages.presentation import clock, host_and_path, pretty_json, whole_span

Body = dict[str, Any]

#: The pages create timers under this condition, so that they never replace a timer unasked.
UNLESS_EXISTS = Condition(OnConflict.REJECT)
_RANDOM_DIGITS = 8

#: The quick choices of a delay: the text for the field, the label of the button.
DELAYS = (("30s", "30 s"), ("5m", "5 min"), ("1h", "1 h"), ("24h", "1 day"), ("7d", "7 days"))
#: Fields of the retry policy: their names in the form, in the API and in the CLI, and their labels.
_RETRY = (
    ("attempts", "maxAttempts", "--retry-attempts", "Max attempts"),
    ("initial_interval", "initialInterval", "--retry-initial", "Initial interval"),
    ("multiplier", "backoffMultiplier", "--retry-factor", "Backoff multiplier"),
    ("max_interval", "maxInterval", "--retry-max-interval", "Max interval"),
    ("max_duration", "maxAttemptsDuration", "--retry-for", "Max duration"),
)
RETRY_LABELS = {member: label for _, member, _, label in _RETRY}
_NUMBERS = frozenset({"attempts", "multiplier"})
#: Fields that have their default value if the form does not contain them.
_DEFAULTED = frozenset({"when", "zone_minutes", "method", "retry"})
#: How much of a field is read: more than is ever accepted, so that too long a value is refused; little enough to show again.
_URL_CHARS_READ_MAX = 64 * 1024
_HEADERS_READ_MAX = 256

_LOCAL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?\Z", re.ASCII)
_ZONE_MINUTES_MAX = 26 * 60
#: A chosen instant may pass while the form is filled in; an instant further in the past was chosen by mistake.
_PASSED_US = 60 * US_PER_SECOND
#: What a form keeps that is refused because it is outdated.
KEPT = "What you entered is still here."
_DEFAULT_SERVER = "http://127.0.0.1:8080"


@dataclass(slots=True)
class RequestForm:
    """The text of each field. `when` is `in` or `at`, or another choice of a form; the fields from `attempts` on are those of
    a retry policy."""

    id: str = ""
    when: str = "in"
    delay: str = "5m"
    at: str = ""
    zone_minutes: str = "0"
    url: str = ""
    method: str = "POST"
    headers: list[tuple[str, str]] = field(default_factory=list)
    tags: str = ""
    attempts: str = str(DEFAULT_POLICY.max_attempts)
    initial_interval: str = format_duration(DEFAULT_POLICY.initial_interval_us)
    multiplier: str = f"{DEFAULT_POLICY.backoff_multiplier:g}"
    max_interval: str = format_duration(DEFAULT_POLICY.max_interval_us)
    max_duration: str = ""

    @classmethod
    def read(cls, form: Fields) -> Self:
        """The fields of a submitted form."""
        return cls(**cls.texts(form))

    @classmethod
    def texts(cls, form: Fields) -> dict[str, Any]:
        """The fields of a submitted form, by their names here."""
        defaults = {each.name: each.default if each.name in _DEFAULTED else "" for each in fields(cls) if each.init}
        texts: dict[str, Any] = {name: form.get(name, str(default)) for name, default in defaults.items()}
        pairs = zip(form.all("header_name"), form.all("header_value"), strict=False)
        headers = ((name.strip(), value) for name, value in pairs if name.strip() or value)
        texts["headers"] = list(islice(headers, _HEADERS_READ_MAX))
        texts["url"] = texts["url"][:_URL_CHARS_READ_MAX]
        return texts

    @staticmethod
    def policy_texts(policy: RetryPolicy) -> dict[str, str]:
        """The fields of a retry policy."""
        total = policy.max_duration_us
        return {
            "attempts": str(policy.max_attempts),
            "initial_interval": format_duration(policy.initial_interval_us),
            "multiplier": f"{policy.backoff_multiplier:g}",
            "max_interval": format_duration(policy.max_interval_us),
            "max_duration": "" if total is None else format_duration(total),
        }

    def due_words(self) -> str:
        """When it is due, in words."""
        if self.when == "at":
            return f"on {local_words(self.at)}" if is_local(self.at) else f"at {self.at}" if self.at else ""
        return f"in {duration_words(self.delay)}" if self.when == "in" else "now"

    @property
    def target(self) -> str:
        """The method and the path of what is called; its host, if it has no path."""
        host, path = host_and_path(self.url.partition("?")[0])
        return f"{self.method} {path or host}"

    def lines(self, plan: str) -> dict[str, str]:
        """What the summary lines of the form show, by their names; `plan` is that of the attempts, in words."""
        return {"headers": ", ".join(name for name, _ in self.headers) or "None", "retries": plan}

    def due(self) -> dict[str, str]:
        """`{"delay": …}` or `{"executeAt": …}`, as the API takes them. Raises InvalidInput."""
        return due(self.when, self.delay, self.at, self.zone_minutes)

    def policy(self, path: str, errors: list[FieldError]) -> Body:
        """The retry policy, for the API."""
        policy: Body = {}
        for name, member, *_ in _RETRY:
            text = getattr(self, name)
            if text and name in _NUMBERS:
                policy[member] = number(f"{path}.{member}", text, errors)
            elif text:
                policy[member] = duration(text)
        return policy

    def header_values(self, path: str, errors: list[FieldError]) -> dict[str, str]:
        """The headers, for the API."""
        headers = dict(self.headers)
        if len(headers) < len(self.headers):
            errors.append(FieldError(path, "has a duplicate name; give each header once"))
        return headers


def due(when: str, delay: str, at: str, zone_minutes: str) -> dict[str, str]:
    """`{"delay": …}` or `{"executeAt": …}`, as the API takes them.

    `at` is the value of a browser's date and time field, in a zone that is `zone_minutes` ahead of UTC at that time; a value
    with its own zone is passed on unchanged. Raises InvalidInput.
    """
    if when != "at":
        return {"delay": duration(delay)}
    if not is_local(at):
        return {"executeAt": at.replace(" ", "T", 1)}
    try:
        minutes = int(zone_minutes or "0")
        if abs(minutes) > _ZONE_MINUTES_MAX:
            raise ValueError
        instant = datetime.fromisoformat(at).replace(tzinfo=UTC) - timedelta(minutes=minutes)
    except (ValueError, OverflowError):
        raise InvalidInput(FieldError("executeAt", "is not a date and time; write it as 2027-01-31T09:00")) from None
    return {"executeAt": instant.isoformat().replace("+00:00", "Z")}


def local_words(text: str) -> str:
    """The value of a browser's date and time field in words, such as `Sun 1 Jul 2040, 12:00`."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at:%a} {at.day} {at:%b %Y}, {clock(at)}"


def is_local(text: str) -> bool:
    """Whether a text is the value of a browser's date and time field, which has no zone."""
    return _LOCAL.match(text) is not None


def duration(text: str) -> str:
    """A duration as the API takes it."""
    return text.replace(" ", "").lower()


def duration_words(text: str) -> str:
    """A duration as people read it; another text unchanged."""
    try:
        return whole_span(parse_duration(duration(text)))
    except (ValueError, OverflowError):
        return text


def passed(instant_us: int, now_us: int) -> bool:
    """Whether an instant is so far in the past that the form asks for confirmation."""
    return instant_us < now_us - _PASSED_US


def number(path: str, text: str, errors: list[FieldError]) -> float:
    """The number in a field; 0 with an error if there is none."""
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        errors.append(FieldError(path, f"is not a number: {text!r}"))
        return 0
    return int(value) if value.is_integer() else value


def json_errors(path: str, text: str) -> list[FieldError]:
    """Why a text is not JSON, and where; empty if it is."""
    try:
        # As the API reads it: checked, and no object made of it.
        msgspec.json.decode(text.encode(), type=msgspec.Raw)
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


def by_field(problem: Exception | None, prefix: str = "", nested: Container[str] = ()) -> dict[str, str]:
    """The reasons of invalid input by the names of the form's fields. `prefix` is what the API's paths begin with; `nested`
    are the fields whose names are whole paths."""
    errors: dict[str, str] = {}
    for bad in problem.errors if isinstance(problem, InvalidInput) else ():
        path = bad.path.removeprefix(prefix)
        name = path.removeprefix("retryPolicy.")
        if name == path and path not in nested:
            name = re.split(r"[.\[]", path)[0]
        errors.setdefault(name or "form", bad.reason)
    return errors


def curl(url: str, body: Mapping[str, Any], *, key: bool) -> str:
    """The curl command that sends the request."""
    lines = [f"curl {shlex.quote(url)}", "-H 'content-type: application/json'"]
    if key:
        lines.append('-H "authorization: Bearer $TOCSIN_KEY"')
    lines.append(f"-d {shlex.quote(pretty_json(msgspec.json.encode(dict(body))))}")
    return lined(lines)


def lined(parts: Sequence[str]) -> str:
    """The parts of a command, one on each line."""
    return " \\\n  ".join(parts)


def flags(body: Mapping[str, Any], names: Mapping[str, str], words: Callable[[Any], str] = str) -> list[str]:
    """The CLI flags of those fields that a request has; `names` are the flags by the fields' names in the API."""
    return [f"{flag} {shlex.quote(words(body[name]))}" for name, flag in names.items() if name in body]


def repeated(flag: str, values: Iterable[str]) -> list[str]:
    """A CLI flag for each of the values."""
    return [f"{flag} {shlex.quote(value)}" for value in values]


def header_flags(headers: Mapping[str, str] | None) -> list[str]:
    """The CLI flags for headers."""
    return repeated("--header", map(": ".join, (headers or {}).items()))


def policy_flags(policy: Mapping[str, Any]) -> list[str]:
    """The CLI flags for a retry policy."""
    return flags(policy, {member: flag for _, member, flag, _ in _RETRY})


def server_flag(server: str) -> list[str]:
    """The CLI flag for a server other than the default one."""
    return [] if server == _DEFAULT_SERVER else [f"--server {shlex.quote(server)}"]


def outdated_words(what: str, kept: str = KEPT, what_happened: str = "changed") -> str:
    """Why the form of something is refused that is no longer as the form was filled from it."""
    return f"The {what} was {what_happened} since this form was opened. Nothing was saved. {kept}"


def fresh_id(original: str, chars_max: int) -> str:
    """An id for a copy of a timer or schedule: the original's, cut off if it is long, with random digits behind it."""
    return f"{original[: chars_max - _RANDOM_DIGITS - 1]}-{uuid.uuid4().hex[:_RANDOM_DIGITS]}"
