"""The form of a schedule: converts between its fields, the equivalent API request and the equivalent commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from importlib import resources
from typing import Any, ClassVar

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_duration
from tocsin.model.recurrence import time_zone
from tocsin.model.schedule import CatchUp, Definition
from tocsin.timers.schedules import ScheduleView
from tocsin.web.http.instants import format_instant
from tocsin.web.pages.callback_forms import CallbackForm, callback_flags, with_empty_callback
from tocsin.web.pages.forms import Body, duration, flags, is_local, lined, number, server_flag
from tocsin.web.pages.schedules.presentation import in_zone, zone_of

#: Expressions that the form suggests, and what they mean.
CRONS = (
    ("0 9 * * MON-FRI", "every weekday at 09:00"),
    ("30 2 * * *", "every day at 02:30"),
    ("0 * * * *", "every hour"),
    ("*/15 * * * *", "every 15 minutes"),
    ("0 6 * * MON", "every Monday at 06:00"),
    ("0 0 1 * *", "on the first of each month"),
    ("0 18 LW * *", "on the last weekday of each month at 18:00"),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Fields of the definition besides the rule: their names in the API, their CLI flags, and their defaults.
_INSTANTS = {"anchor": "--anchor", "startAt": "--start", "endAt": "--end"}
_LATENESS: dict[str, tuple[str, Any]] = {
    "maxOccurrences": ("--max-occurrences", None),
    "jitter": ("--jitter", "0s"),
    "catchUp": ("--catch-up", CatchUp.LATEST.value),
    "catchUpWindow": ("--catch-up-window", None),
    "pauseAfterFailures": ("--pause-after-failures", 0),
}


@lru_cache(1)
def zone_names() -> list[str]:
    """The names of the time zones, for suggestions."""
    return sorted(resources.files("tzdata").joinpath("zones").read_text().split())


@dataclass(slots=True)
class ScheduleForm(CallbackForm):
    """`rule` is `cron` or `every`. `anchor`, `start` and `end` are dates and times in `zone`."""

    rule: str = "cron"
    cron: str = CRONS[0][0]
    every: str = "15m"
    zone: str = "UTC"
    anchor: str = ""
    start: str = ""
    end: str = ""
    occurrences: str = ""
    jitter: str = ""
    catch_up: str = CatchUp.LATEST.value
    window: str = ""
    failures: str = ""

    #: The names of the fields in the API, by those here.
    paths: ClassVar[Mapping[str, str]] = {"anchor": "anchor", "start": "startAt", "end": "endAt"}

    @classmethod
    def of(cls, view: ScheduleView) -> ScheduleForm:
        """The fields of an existing schedule."""
        definition: Definition = view.definition
        zone = time_zone(zone_of(definition))
        return cls(
            **cls.callback_texts(view.timer),
            rule="every" if definition.cron is None else "cron",
            cron=definition.cron or "",
            every="" if definition.every_us is None else format_duration(definition.every_us),
            zone=zone_of(definition),
            anchor=_local(definition.anchor, zone),
            start=_local(definition.start_at, zone),
            end=_local(definition.end_at, zone),
            occurrences="" if definition.occurrences_max is None else str(definition.occurrences_max),
            jitter=format_duration(definition.jitter_us) if definition.jitter_us else "",
            catch_up=definition.catch_up.value,
            window="" if definition.catch_up_window_us is None else format_duration(definition.catch_up_window_us),
            failures=str(definition.pause_after_failures) if definition.pause_after_failures else "",
        )

    def timing(self) -> Body:
        """The members of an API request that define when the schedule is due. Raises InvalidInput."""
        errors: list[FieldError] = []
        body: Body = {"every": duration(self.every)} if self.rule == "every" else {"cron": self.cron}
        if self.rule != "every" and self.zone not in ("", "UTC"):
            body["timeZone"] = self.zone
        zone: tzinfo = UTC
        try:
            zone = time_zone(self.zone or "UTC")
        except ValueError as error:
            if "timeZone" not in body:
                errors.append(FieldError("timeZone", str(error)))
            # Otherwise the API refuses it, together with other fields.
        for name, path in self.paths.items():
            if (text := getattr(self, name)) and not (name == "anchor" and self.rule != "every"):
                body[path] = local_instant(path, text, zone, errors)
        if errors:
            raise InvalidInput(*errors)
        return body

    def special(self, errors: list[FieldError]) -> Body:
        body: Body = {}
        try:
            body = self.timing()
        except InvalidInput as error:
            errors += error.errors
        return body | self._lateness(errors)

    def _lateness(self, errors: list[FieldError]) -> Body:
        """The members that define how many occurrences there are, and what becomes of late ones."""
        body: Body = {"jitter": duration(self.jitter), "catchUp": self.catch_up, "catchUpWindow": duration(self.window)}
        if self.occurrences:
            body["maxOccurrences"] = number("maxOccurrences", self.occurrences, errors)
        if self.failures:
            body["pauseAfterFailures"] = number("pauseAfterFailures", self.failures, errors)
        return {
            path: body[path] for path, (_, default) in _LATENESS.items() if body.get(path) not in (None, "", default)
        }

    def changes(self, view: ScheduleView) -> Body:
        """The API request that updates the schedule: only the fields that differ. Raises InvalidInput."""
        before, now = ScheduleForm.of(view).body_of_update(), self.body_of_update()
        changed = {name: value for name, value in now.items() if before.get(name) != value}
        return {"namespace": view.timer.namespace, "scheduleId": view.timer.id, **changed}

    def body_of_update(self) -> Body:
        """All fields that an update can change, empty ones included. Raises InvalidInput."""
        body = self.body()
        del body["namespace"], body["id"]
        empty: Body = {path: default for path, (_, default) in _LATENESS.items()} | dict.fromkeys(_INSTANTS)
        if self.rule == "every":
            return {**empty, **with_empty_callback(body)}
        return {**empty, "timeZone": "UTC", **with_empty_callback(body)}


def local_instant(path: str, text: str, zone: tzinfo, errors: list[FieldError]) -> str:
    """A date and time of a zone as the API takes it; any other text is left for the API to check."""
    if not is_local(text):
        return text.replace(" ", "T", 1)
    try:
        local = datetime.fromisoformat(text).replace(tzinfo=zone)
        return format_instant((local - _EPOCH) // timedelta(microseconds=1))
    except (ValueError, OverflowError):
        errors.append(FieldError(path, "is not a date and time"))
        return ""


def _local(instant_us: int | None, zone: tzinfo) -> str:
    """The value of a browser's date and time field."""
    if instant_us is None:
        return ""
    return in_zone(instant_us, zone).replace(tzinfo=None, microsecond=0).isoformat()


def command(server: str, body: Mapping[str, Any]) -> str:
    """The equivalent `tocsin` command."""
    if "scheduleId" in body:
        parts = ["tocsin schedules update", shlex.quote(body["scheduleId"]), *flags(body, {"callbackUrl": "--url"})]
    else:
        parts = [f"tocsin schedules create {shlex.quote(body['id'])}", shlex.quote(body["callbackUrl"])]
    given = {name: value for name, value in body.items() if value is not None}
    if body["namespace"] != "default":
        parts += flags(body, {"namespace": "--namespace"})
    parts += flags(given, {"cron": "--cron", "timeZone": "--time-zone", "every": "--every"})
    parts += flags(given, {**_INSTANTS, **{path: flag for path, (flag, _) in _LATENESS.items()}})
    cleared = {**_INSTANTS, **{path: flag for path, (flag, default) in _LATENESS.items() if default is None}}
    cleared["expireAfter"] = "--expire-after"
    parts += [f"--clear {flag[2:]}" for path, flag in cleared.items() if path in body and body[path] is None]
    parts += callback_flags(body)
    if body.get("retryPolicy", "") is None:
        parts.append("--retry-default")
    return lined([" ".join(parts[:2]), *parts[2:], *server_flag(server)])
