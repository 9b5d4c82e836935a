"""Schemas suited to client generators, made from msgspec's schemas of the wire structs.

- Requests have no `default`: a generated client would send it, even in an update, and so reset fields that the caller did
  not set. A field's description explains what its absence means.
- Responses require the fields that are always sent.
- Enums in requests are closed, `type: string`. In responses they are open (the enum, or any other string), so that a
  client keeps working when a later release adds a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from scripts.openapi.codes import CODES, FAILURES

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction, AuditSource
from tocsin.model.condition import OnConflict
from tocsin.model.credential_type import ClientAuth, CredentialType
from tocsin.model.explanation import TimerState, WaitsFor
from tocsin.model.failure_groups import FailedKind
from tocsin.model.job import JobAction, JobKind, JobState, WaitingStatus
from tocsin.model.monitor import MonitorStatus, PingEvent
from tocsin.model.namespace import Answers, HistoryMode
from tocsin.model.period import PeriodStatus
from tocsin.model.run import RunStatus
from tocsin.model.schedule import CatchUp, OnSkipped, ScheduleStatus, Source
from tocsin.model.timer import Status
from tocsin.model.validation import METHODS
from tocsin.service_calls.messages import CallStatus
from tocsin.timers.engine.breaker import BreakerState
from tocsin.web.http.calendars import Weekday
from tocsin.web.http.failures import FailureGroupedBy
from tocsin.web.http.schedule_wire import ExclusionReason, LiveScheduleStatus
from tocsin.web.http.statistics import StatisticsResolution
from tocsin.web.http.wire import RequestStruct

Json = dict[str, Any]

#: The document's enums by name, with their values and description.
ENUMS: dict[str, tuple[Sequence[str], str]] = {
    "ErrorCode": (list(CODES), "What went wrong; docs/reference/errors.md has a remedy for each."),
    "FailureKind": (
        [kind for kind in FAILURES if "<" not in kind],
        "Why an attempt failed; docs/reference/errors.md has a remedy for each.",
    ),
    "TimerStatus": (list(Status), "A timer's state. Only `pending` timers fire and can be changed."),
    "BreakerState": (list(BreakerState), " ".join((BreakerState.__doc__ or "").split())),
    "TimerState": (list(TimerState), " ".join((TimerState.__doc__ or "").split())),
    "TimerWaitsFor": (list(WaitsFor), " ".join((WaitsFor.__doc__ or "").split())),
    "OnConflict": (list(OnConflict), "What a create does if a timer with its id exists."),
    "CallbackMethod": (METHODS, "The method of a callback. GET and HEAD have no body."),
    "HistoryMode": (list(HistoryMode), "Which finished timers stay visible until retention removes them."),
    "CallbackAnswers": (list(Answers), "How responses to a namespace's callbacks are interpreted."),
    "RunStatus": (list(RunStatus), "How a run stands or ended."),
    "ScheduleStatus": (list(ScheduleStatus), "A schedule's state. Only `active` schedules fire at their instants."),
    "JobAction": (list(JobAction), "What a job does with each row."),
    "JobKind": (list(JobKind), "What a job changes."),
    "WaitingStatus": (list(WaitingStatus), " ".join((WaitingStatus.__doc__ or "").split())),
    # Nobody sees one that is not known to be alone yet.
    "JobState": (
        [state for state in JobState if state is not JobState.STARTING],
        "running and paused ones go on, or may; completed, canceled and failed ones have ended.",
    ),
    "LiveScheduleStatus": (list(LiveScheduleStatus), "The state of a schedule that has not ended."),
    "CatchUp": (list(CatchUp), "What becomes of instants that pass while a schedule cannot fire."),
    "CredentialType": (list(CredentialType), "How a request identifies itself."),
    "ClientAuth": (list(ClientAuth), "Where a token endpoint gets the client's secret."),
    "OnSkipped": (list(OnSkipped), "What becomes of an instant that a calendar excludes."),
    "MonitorState": (list(MonitorStatus), "What is known of a monitor's job."),
    "PeriodState": (list(PeriodStatus), "How a period of a monitor ended."),
    "PingEvent": (list(PingEvent), "What a ping reports."),
    "Weekday": (list(Weekday), "A day of the week."),
    "ExclusionReason": (list(ExclusionReason), " ".join((ExclusionReason.__doc__ or "").split())),
    "OccurrenceSource": (list(Source), "Why an occurrence fired."),
    "ServiceCallStatus": (list(CallStatus), "A service call's state."),
    "ServiceCallMethod": ((*METHODS, "OPTIONS"), "The method of a service call's request."),
    "KeyRole": (list(Role), "What an API key allows; each role includes the previous ones."),
    "AuditAction": (list(AuditAction), "The action that an entry records."),
    "AuditSource": (list(AuditSource), "Where a change came from."),
    "FailedKind": (list(FailedKind), "What failed."),
    "FailureGroupedBy": (list(FailureGroupedBy), "What the failures of a group have in common."),
    "StatisticsResolution": (list(StatisticsResolution), "The length of a slot."),
}
#: Enums of the code whose name in the document differs.
_RENAMED = {
    Status.__name__: "TimerStatus",
    MonitorStatus.__name__: "MonitorState",
    PeriodStatus.__name__: "PeriodState",
    RunStatus.__name__: "RunStatus",
    WaitsFor.__name__: "TimerWaitsFor",
    CallStatus.__name__: "ServiceCallStatus",
    Source.__name__: "OccurrenceSource",
    Role.__name__: "KeyRole",
    Answers.__name__: "CallbackAnswers",
}

#: Fields of responses that are plain strings in the code and hold an enum's values, by struct and field.
_WORDS: dict[str, dict[str, str]] = {
    "Problem": {"error": "ErrorCode"},
    "ItemError": {"error": "ErrorCode"},
    "ErrorMeta": {"kind": "FailureKind"},
    "Timer": {"method": "CallbackMethod"},
    "Schedule": {"method": "CallbackMethod"},
    "AuditEntry": {"action": "AuditAction", "source": "AuditSource"},
    "RequestLine": {"method": "ServiceCallMethod"},
    "ShownRequest": {"method": "ServiceCallMethod"},
    "ExecutedRequest": {"method": "ServiceCallMethod"},
}

_REF = "#/components/schemas/"


def ref(name: str | type[msgspec.Struct]) -> Json:
    """A reference to a component."""
    return {"$ref": _REF + (name if isinstance(name, str) else name.__name__)}


def target(field: Json) -> Json:
    """The schema that constraints apply to: for a nullable field, the part that isn't null."""
    for part in field.get("anyOf", ()):
        if part.get("type") not in (None, "null"):
            return part  # type: ignore[no-any-return]
    return field


def request_structs() -> dict[str, type[msgspec.Struct]]:
    """The structs of requests by their names."""
    return {struct.__name__: struct for struct in _descendants(RequestStruct)}


def components(structs: Sequence[type[msgspec.Struct]]) -> Json:
    """The schemas of the structs and of all structs that they refer to."""
    _, schemas = msgspec.json.schema_components(structs, ref_template=_REF + "{name}")
    sent = request_structs()
    described = dict(_inner(structs))
    for name, struct in described.items():
        schema = schemas[name]
        for field in msgspec.structs.fields(struct):
            part = schema["properties"][field.encode_name]
            part.pop("default", None)
            _lift(part)
            if (word := _WORDS.get(name, {}).get(field.encode_name)) is not None:
                _become(part, word)
            _name_enums(part, is_open=name not in sent)
        if name not in sent:
            schema["required"] = [
                field.encode_name for field in msgspec.structs.fields(struct) if field.default is not msgspec.UNSET
            ]
    kept = {name: schemas[name] for name in schemas if name in described}
    for name, (words, meaning) in ENUMS.items():
        kept[name] = {"type": "string", "description": meaning, "enum": [str(word) for word in words]}
    for schema in kept.values():
        # Generators would name the class after a title, which could differ from the component's name.
        schema.pop("title", None)
        if "description" in schema:
            schema["description"] = " ".join(schema["description"].split())
        _number_formats(schema)
    return dict(sorted(kept.items()))


def _lift(part: Json) -> None:
    """Takes the description of a nullable field from its part that isn't null."""
    for inner in part.get("anyOf", ()):
        for name in ("description", "examples"):
            if name in inner:
                part.setdefault(name, inner.pop(name))


def _become(part: Json, word: str) -> None:
    """Turns a string field into a reference to an enum."""
    part.pop("type")
    part.pop("examples", None)
    part["$ref"] = _REF + word


def _name_enums(part: Json, *, is_open: bool) -> None:
    """Renames references to enums to their name in the document, and opens those in responses."""
    name = part.get("$ref", "").removeprefix(_REF)
    name = _RENAMED.get(name, name)
    if name in ENUMS:
        part["$ref"] = _REF + name
        if is_open:
            # oapi-codegen would make a struct of anyOf; Go's string types are open anyway.
            part.update({"anyOf": [{"$ref": part.pop("$ref")}, {"type": "string"}], "x-go-type": name})
            return
    for inner in (*part.get("anyOf", ()), *([part["items"]] if "items" in part else ())):
        _name_enums(inner, is_open=is_open)


def _number_formats(schema: Any) -> None:
    """Declares numbers as double: some generators take a number without a format for a 32-bit float."""
    if isinstance(schema, list):
        for part in schema:
            _number_formats(part)
    elif isinstance(schema, dict):
        if schema.get("type") == "number":
            schema["format"] = "double"
        for part in schema.values():
            _number_formats(part)


def _descendants(struct: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    yield struct
    for inner in struct.__subclasses__():
        yield from _descendants(inner)


def _inner(structs: Sequence[type[msgspec.Struct]]) -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """The structs and all structs that they refer to."""
    waiting = [msgspec.inspect.type_info(struct) for struct in structs]
    met: set[type[msgspec.Struct]] = set()
    while waiting:
        info: Any = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in met:
                continue
            met.add(info.cls)
            yield info.cls.__name__, info.cls
            waiting += [field.type for field in info.fields]
        else:
            for name in ("type", "item_type", "key_type", "value_type"):
                if isinstance(inner := getattr(info, name, None), msgspec.inspect.Type):
                    waiting.append(inner)
            waiting += getattr(info, "types", ())
