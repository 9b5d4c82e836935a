"""Hooks for schemathesis: valid requests keep to what a schema can't express, so that the server has to take each of them.

No other machine is called: all requests go to a local port on which nothing listens.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

import schemathesis
from hypothesis import strategies as st

NOBODY = "http://127.0.0.1:1/"
_BEGAN = datetime.now(UTC)

# Later than this run's end, as some must lie in the future, and within the years of its clock that the server takes.
schemathesis.openapi.format(
    "date-time",
    st.integers(3_600, 10**9).map(lambda seconds: (_BEGAN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")),
)
schemathesis.openapi.format("date", st.dates(date(1970, 1, 1), date(9998, 12, 31)).map(date.isoformat))
schemathesis.openapi.format("uri", st.sampled_from([NOBODY, f"{NOBODY}x?y=%20", "HTTP://localhost:1"]))


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    """Makes requests that schemathesis considers valid valid for the server."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if isinstance(case.body, dict):
        case.body = {name: _possible(name, value) for name, value in case.body.items() if name not in _THERE_IS_NONE}
        if case.path.startswith(("/api/v1/failures/", "/api/v1/jobs/list")):
            _name_scope(case.body, required=case.path != "/api/v1/jobs/list")
        if case.path in ("/api/v1/inbox/replay", "/api/v1/inbox/delete"):
            case.body = dict([*case.body.items()][:1])
        if "idempotencyKey" in case.body and case.headers:
            # The header means the same, and another value is refused.
            case.headers.pop("idempotency-key", None)
        if case.body.get("method") in ("GET", "HEAD"):
            case.body = {name: value for name, value in case.body.items() if name not in ("payload", "body")}
        if case.body.get("onConflict") == "debounce":
            case.body.pop("executeAt", None)
            case.body |= {"delay": "90m", "maxDelay": "3h"}
            if case.body.get("method") in ("GET", "HEAD") or "body" in case.body:
                case.body.pop("collect", None)
        else:
            # Examples of single fields are combined, even if the schema forbids the combination.
            case.body = {name: value for name, value in case.body.items() if name not in ("maxDelay", "collect")}
        if "dueAt" in case.body or "executeAt" in case.body:
            case.body.pop("delay", None)
        if not case.path.startswith("/api/v1/calendars/"):
            # Calendars that there are.
            case.body = {name: value for name, value in case.body.items() if name not in _OF_CALENDARS}
    if case.query:
        case.query = {name: value for name, value in case.query.items() if name != "cursor"}
    if "tag" in case.path_parameters:
        # As it stands in the path.
        case.path_parameters["tag"] = quote(_visible(unquote(case.path_parameters["tag"])), safe="")


#: A cursor is one that a list gave, a credential one that was put; this server has no NATS server for a sink.
_THERE_IS_NONE = ("cursor", "credential", "eventSink")

#: Fields of schedules that name calendars, or need one.
_OF_CALENDARS = ("only", "skip", "onSkipped")


def _name_scope(body: dict[str, Any], *, required: bool) -> None:
    """Makes the body name a namespace or a tenant, and what either has."""
    if "namespace" in body or (required and "tenant" not in body):
        body.pop("tenant", None)
        body.setdefault("namespace", "default")
    of_calls = "tenant" in body
    if (body.get("kind") == "call") != of_calls:
        body.pop("kind", None)
    if "groupBy" in body:
        lacking = "namespace" if of_calls else "tenant"
        body["groupBy"] = [each for each in body["groupBy"] if each != lacking] or ["error"]


def _possible(name: str, value: Any) -> Any:
    """The value, adjusted to rules that the schema can't express."""
    if isinstance(value, float) and value.is_integer() and name not in ("payload", "body"):
        # To JSON Schema 3.0 is a whole number.
        value = int(value)
    match name, value:
        case (("delay" | "retention" | "grace" | "expireAfter" | "every" | "jitter" | "catchUpWindow" | "per"), str()):
            return "90m"
        case "linger", str():
            return "1s500ms"
        case "callbackBatch", dict():
            return {field: _possible(field, given) for field, given in value.items()}
        case "cron", str():
            return "0 9 * * MON-FRI"
        case "timeZone", str():
            return "Europe/Berlin"
        case "endAt", str():
            # Later than any startAt.
            return "2199-01-01T00:00:00Z"
        case "after", str():
            return "2026-01-01T00:00:00Z"
        case "before", str():
            return "2026-01-02T00:00:00Z"
        case "numShards", int():
            # At most as many as the store has.
            return 1 + value % 4
        case "retryPolicy", dict():
            times = {"initialInterval": "2s", "maxInterval": "1h30m", "maxAttemptsDuration": "1d"}
            return {
                field: times.get(field, _possible(field, given)) if given else given for field, given in value.items()
            }
        case "callbackUrl" | "url", str():
            return NOBODY
        case "headers", dict():
            # Names that differ in case only, or that the server sets itself.
            return {f"x-{number}": text.strip() for number, text in enumerate(value.values())}
        case "tags", list():
            return [f"{number}{_visible(tag)}"[:64] for number, tag in enumerate(value)]
        case (("id" | "name" | "idempotencyKey" | "description"), str()):
            return _visible(value)
        case "ranges", list():
            return [dict(zip(("first", "last"), sorted(each.values()), strict=True)) for each in value]
        case (("limits" | "perKey" | "total"), dict()):
            # Keys are ordered in namespaces with one shard.
            possible = {field: _possible(field, given) for field, given in value.items() if field != "ordered"}
            return possible or {"parallelism": 1}
        case (
            ("onFailure" | "onSuccess" | "onRecovery" | "onMissed" | "onPaused" | "onLate") | ("rate" | "quotas"),
            dict(),
        ):
            return _without_credential(value)
        case "setHeaders", dict():
            return _possible("headers", value)
        case "setUrl", str():
            return NOBODY
        case "requestSpec", dict():
            bodiless = value.get("method") in ("GET", "HEAD")
            return {
                field: given for field, given in _without_credential(value).items() if field != "body" or not bodiless
            }
        case _:
            return value


def _without_credential(value: dict[str, Any]) -> dict[str, Any]:
    """The fields, adjusted, but for the name of a credential that there is not."""
    return {field: _possible(field, given) for field, given in value.items() if field != "credential"}


def _visible(text: str) -> str:
    """The text without invisible characters."""
    return "".join(letter for letter in text if letter.isprintable()) or "x"
