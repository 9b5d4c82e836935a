"""The form of a schedule: converts between its fields, the equivalent API request and the equivalent commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, ClassVar, Self

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.hooks import Event
from tocsin.model.instants import format_duration, format_instant
from tocsin.model.recurrence import time_zone
from tocsin.model.schedule import CatchUp, Definition, OnSkipped
from tocsin.model.schedule_reading import find_zone, read_sentence
from tocsin.timers.schedules import ScheduleView
from tocsin.web.pages.callback_forms import CallbackForm, callback_flags, with_empty_callback
from tocsin.web.pages.context import Fields, RequestContext, cookie_value
from tocsin.web.pages.forms import (
    Body,
    duration,
    duration_words,
    flags,
    is_local,
    lined,
    local_words,
    number,
    repeated,
    server_flag,
)
from tocsin.web.pages.schedules.presentation import CATCH_UP_WORDS, in_zone, is_interval, spoken, zone_of

#: The rules on offer: their names and their labels. `{}` stands for the minute and the hour of the rule so far.
PRESETS = {
    "quarters": ("Every 15 min", "*/15 * * * *"),
    "hours": ("Hourly", "0 * * * *"),
    "days": ("Daily", "{} * * *"),
    "weekdays": ("Weekdays", "{} * * MON-FRI"),
    "weeks": ("Weekly", "{} * * MON"),
    "months": ("Monthly", "{} 1 * *"),
}
_TIME_OF_DAY = re.compile(r"(\d+\s+\d+)\s+\S+\s+\S+\s+\S+")
_MORNING = "0 9"
DEFAULT_CRON = f"{_MORNING} * * MON-FRI"
#: The cookie in which a script notes the reader's time zone.
_ZONE_COOKIE = "tocsin-zone"
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


def reader_zone(context: RequestContext) -> str:
    """The reader's time zone, if a script has noted it."""
    try:
        return find_zone(cookie_value(context.request, _ZONE_COOKIE) or "UTC")
    except ValueError:
        return "UTC"


@dataclass(slots=True)
class ScheduleForm(CallbackForm):
    """`cron` is a cron expression or an interval, `sentence` the same in words. `sentence_before` and `rule_before` are what
    the page showed of both, from which follows what was changed. `anchor`, `start` and `end` are dates in `zone`."""

    sentence: str = ""
    cron: str = ""
    zone: str = "UTC"
    sentence_before: str = ""
    rule_before: str = ""
    #: Why the sentence isn't understood; empty if it is.
    misread: str = field(default="", init=False)
    anchor: str = ""
    start: str = ""
    end: str = ""
    occurrences: str = ""
    jitter: str = ""
    only: str = ""
    skip: str = ""
    on_skipped: str = OnSkipped.NONE.value
    catch_up: str = CatchUp.LATEST.value
    window: str = ""
    failures: str = ""

    #: All but those of monitors.
    events: ClassVar[Sequence[Event]] = tuple(each for each in Event if each is not Event.LATE)
    #: The names of the fields in the API, by those here.
    paths: ClassVar[Mapping[str, str]] = {"anchor": "anchor", "start": "startAt", "end": "endAt"}

    @classmethod
    def of(cls, view: ScheduleView) -> ScheduleForm:
        """The fields of an existing schedule."""
        definition: Definition = view.definition
        zone = time_zone(zone_of(definition))
        form = cls(
            **cls.callback_texts(view.timer),
            cron=definition.cron or format_duration(definition.every_us or 0),
            zone=definition.time_zone if definition.cron is not None else "UTC",
            anchor=_local(definition.anchor, zone),
            start=_local(definition.start_at, zone),
            end=_local(definition.end_at, zone),
            occurrences="" if definition.occurrences_max is None else str(definition.occurrences_max),
            jitter=format_duration(definition.jitter_us) if definition.jitter_us else "",
            only=", ".join(definition.only),
            skip=", ".join(definition.skip),
            on_skipped=definition.on_skipped.value,
            catch_up=definition.catch_up.value,
            window="" if definition.catch_up_window_us is None else format_duration(definition.catch_up_window_us),
            failures=str(definition.pause_after_failures) if definition.pause_after_failures else "",
        )
        form.rewrite()
        return form

    @classmethod
    def read(cls, form: Fields) -> Self:
        """The fields of a submitted form. Of the sentence and the fields beside it, what was changed decides on the others; a
        preset decides on all."""
        found = super(ScheduleForm, cls).read(form)
        found.jitter = form.get("add_jitter") or found.jitter
        cron, _, zone = found.rule_before.partition("|")
        if (preset := form.get("preset")) in PRESETS:
            found.cron = preset_cron(preset, found.cron)
            found.rewrite()
        elif found.sentence != found.sentence_before and found.cron == cron:
            try:
                rule = read_sentence(found.sentence)
            except ValueError as error:
                found.misread = str(error)
                return found
            found.cron = rule.cron or format_duration(rule.every_us or 0)
            found.zone = rule.zone or found.zone
            found.sentence_before, found.rule_before = found.sentence, f"{found.cron}|{found.zone}"
        elif (found.cron, found.zone) != (cron, zone):
            found.rewrite()
        return found

    def rewrite(self) -> None:
        """Puts what the other fields mean into words, if they are valid."""
        with suppress(ValueError):
            self.zone = find_zone(self.zone or "UTC")
        self.sentence = self.sentence_before = spoken(self.cron, self.zone)
        self.rule_before = f"{self.cron}|{self.zone}"

    @property
    def is_interval(self) -> bool:
        """Whether the rule is an interval."""
        return is_interval(self.cron)

    @property
    def preset(self) -> str:
        """The name of the preset that the rule is; empty without one."""
        return next((name for name in PRESETS if preset_cron(name, self.cron) == self.cron), "")

    def lines(self, plan: str) -> dict[str, str]:
        words = {each.value: text for each, text in CATCH_UP_WORDS.items()}
        window = duration_words(self.window or ("60s" if self.catch_up == CatchUp.NONE.value else "24h"))
        until = [
            f"From {local_words(self.start)}" if self.start else "From now on",
            f"until {local_words(self.end)}" if self.end else "without end",
            *([f"at most {self.occurrences} times"] if self.occurrences else []),
        ]
        return {
            **super(ScheduleForm, self).lines(plan),
            "calendars": self._calendar_words(),
            "missed": f"{words.get(self.catch_up, self.catch_up)}, up to {window} late",
            "jitter": f"Up to {duration_words(self.jitter)} later" if self.jitter else "None",
            "failures": f"Pause after {self.failures} failures in a row" if self.failures else "Keep running",
            "bounds": ", ".join(until),
        }

    def _calendar_words(self) -> str:
        words = [f"only on {', '.join(_names(self.only))}"] if _names(self.only) else []
        words += [f"not on {', '.join(_names(self.skip))}"] if _names(self.skip) else []
        if words and self.on_skipped == OnSkipped.NEXT.value:
            words.append("excluded instants move to the next date")
        return "; ".join(words).capitalize() if words else "Every date"

    def timing(self) -> Body:
        """The members of an API request that define when the schedule is due. Raises InvalidInput."""
        errors: list[FieldError] = []
        body: Body = {"every": duration(self.cron)} if self.is_interval else {"cron": self.cron}
        if not self.is_interval and self.zone not in ("", "UTC"):
            body["timeZone"] = self.zone
        zone: tzinfo = UTC
        try:
            zone = time_zone(self.zone or "UTC")
        except ValueError as error:
            if "timeZone" not in body:
                errors.append(FieldError("timeZone", str(error)))
            # Otherwise the API refuses it, together with other fields.
        errors += [FieldError("sentence", self.misread)] if self.misread else []
        for name, path in self.paths.items():
            if (text := getattr(self, name)) and not (name == "anchor" and not self.is_interval):
                body[path] = local_instant(path, text, zone, errors)
        if errors:
            raise InvalidInput(*errors)
        body |= {name: names for name in ("only", "skip") if (names := _names(getattr(self, name)))}
        return body | ({"onSkipped": self.on_skipped} if self.on_skipped not in ("", OnSkipped.NONE.value) else {})

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
        empty |= {"only": [], "skip": [], "onSkipped": OnSkipped.NONE.value}
        if self.is_interval:
            return {**empty, **with_empty_callback(body, self.events)}
        return {**empty, "timeZone": "UTC", **with_empty_callback(body, self.events)}


def _names(text: str) -> list[str]:
    """The calendars that a field names."""
    return [name for name in re.split(r"[\s,]+", text) if name]


def preset_cron(name: str, before: str) -> str:
    """The expression of a preset, at the time of day of the rule so far if that has one."""
    time = _TIME_OF_DAY.fullmatch(before)
    return PRESETS[name][1].format(time[1] if time else _MORNING)


def local_instant(path: str, text: str, zone: tzinfo, errors: list[FieldError]) -> str:
    """A date and time of a zone as the API takes it; any other text is left for the API to check."""
    if not is_local(text):
        return text.replace(" ", "T", 1)
    try:
        local = datetime.fromisoformat(text).replace(tzinfo=zone)
        return format_instant((local - _EPOCH) // timedelta(microseconds=1))
    except (ValueError, OverflowError):
        errors.append(FieldError(path, "is not a date and time; write it as 2027-01-31T09:00"))
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
    for name in ("only", "skip"):
        parts += repeated(f"--{name}", given.get(name, ())) or ([f"--clear {name}"] if name in given else [])
    parts += flags(given, {"onSkipped": "--on-skipped"})
    parts += flags(given, {**_INSTANTS, **{path: flag for path, (flag, _) in _LATENESS.items()}})
    cleared = {**_INSTANTS, **{path: flag for path, (flag, default) in _LATENESS.items() if default is None}}
    cleared["expireAfter"] = "--expire-after"
    parts += [f"--clear {flag[2:]}" for path, flag in cleared.items() if path in body and body[path] is None]
    parts += callback_flags(body)
    if body.get("retryPolicy", "") is None:
        parts.append("--retry-default")
    return lined([" ".join(parts[:2]), *parts[2:], *server_flag(server)])
