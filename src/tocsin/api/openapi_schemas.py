"""Schemas as generators of clients need them, made from what msgspec says of the wire structs.

- Requests have no `default`: a generated client would send it, with an update too, and so reset what nobody named. What a
  field means when it is absent stands in its description.
- Answers require what is always sent.
- Words that requests may use are closed enums, `type: string`. In answers they are open (the enum, or any other string),
  so that a client goes on working when a later release adds a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tocsin.agent.api.validation import CallStatus
from tocsin.http.codes import CODES, FAILURES
from tocsin.http.wire import RequestStruct
from tocsin.model.access import Role
from tocsin.model.audit import AuditAction, AuditSource
from tocsin.model.condition import OnConflict
from tocsin.model.namespace import Answers, HistoryMode
from tocsin.model.timer import Status
from tocsin.model.validation import METHODS

Json = dict[str, Any]

#: The names under which the document has its enums, with their words and meaning.
ENUMS: dict[str, tuple[Sequence[str], str]] = {
    "ErrorCode": (list(CODES), "What went wrong; docs/reference/errors.md says what to do about each."),
    "FailureKind": (
        [kind for kind in FAILURES if "<" not in kind],
        "Why an attempt failed; docs/reference/errors.md says what to do about each.",
    ),
    "TimerStatus": (list(Status), "Where a timer stands. Only `pending` timers still fire, and can be changed."),
    "OnConflict": (list(OnConflict), "What becomes of a create when a timer of its id exists."),
    "CallbackMethod": (METHODS, "The method of a callback. GET and HEAD carry no body."),
    "HistoryMode": (list(HistoryMode), "Which finished timers stay visible until retention removes them."),
    "CallbackAnswers": (list(Answers), "By which table a namespace's callbacks are judged."),
    "ServiceCallStatus": (list(CallStatus), "Where a service call stands."),
    "ServiceCallMethod": ((*METHODS, "OPTIONS"), "The method of a service call's request."),
    "KeyRole": (list(Role), "What an API key allows; each role includes the ones before it."),
    "AuditAction": (list(AuditAction), "What an entry reports."),
    "AuditSource": (list(AuditSource), "Which way a change came."),
}
#: Enums of the code that have another name there.
_RENAMED = {
    Status.__name__: "TimerStatus",
    CallStatus.__name__: "ServiceCallStatus",
    Role.__name__: "KeyRole",
    Answers.__name__: "CallbackAnswers",
}

#: Fields of answers that are plain strings to the code and have one of an enum's words, by struct and field.
_WORDS: dict[str, dict[str, str]] = {
    "Problem": {"error": "ErrorCode"},
    "ItemError": {"error": "ErrorCode"},
    "ErrorMeta": {"kind": "FailureKind"},
    "Timer": {"method": "CallbackMethod"},
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
    """Where constraints belong: in the part of a nullable field that isn't null."""
    for part in field.get("anyOf", ()):
        if part.get("type") not in (None, "null"):
            return part  # type: ignore[no-any-return]
    return field


def components(structs: Sequence[type[msgspec.Struct]]) -> Json:
    """The schemas of the structs and of all that they name."""
    _, schemas = msgspec.json.schema_components(structs, ref_template=_REF + "{name}")
    sent = {struct.__name__ for struct in _descendants(RequestStruct)}
    described = dict(_inner(structs))
    for name, struct in described.items():
        schema = schemas[name]
        for field in msgspec.structs.fields(struct):
            part = schema["properties"][field.encode_name]
            part.pop("default", None)
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
        # A title beside the component's name would name the generated class, and differ from it one day.
        schema.pop("title", None)
        if "description" in schema:
            schema["description"] = " ".join(schema["description"].split())
        _number_formats(schema)
    return dict(sorted(kept.items()))


def _become(part: Json, word: str) -> None:
    """A string that has one of an enum's words."""
    part.pop("type")
    part.pop("examples", None)
    part["$ref"] = _REF + word


def _name_enums(part: Json, *, is_open: bool) -> None:
    """References to enums: by their name in the document, and open where other words may come."""
    name = part.get("$ref", "").removeprefix(_REF)
    name = _RENAMED.get(name, name)
    if name in ENUMS:
        part["$ref"] = _REF + name
        if is_open:
            # oapi-codegen makes a struct of a choice; Go's string types are open anyhow.
            part.update({"anyOf": [{"$ref": part.pop("$ref")}, {"type": "string"}], "x-go-type": name})
            return
    for inner in (*part.get("anyOf", ()), *([part["items"]] if "items" in part else ())):
        _name_enums(inner, is_open=is_open)


def _number_formats(schema: Any) -> None:
    """Numbers are double: some generators take one without a format for a float of 32 bits."""
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
    """All structs that these name, themselves included."""
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
