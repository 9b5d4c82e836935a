"""The API as the SDKs need it, read from the OpenAPI document: no language yet, and nothing that no SDK offers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Json = dict[str, Any]

#: Paths of operations that SDKs don't have: probes.
_LEFT_OUT = re.compile(r"/(healthz|readyz|metrics)\b")
#: The durations of the document have this pattern in common.
_DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(us|ms|s|m|h|d))+$"
_SCALARS = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}
#: The class of errors for each status; other statuses below 500 are wrong input, others the server's.
_GROUPS = {
    401: "Unauthenticated", 403: "Forbidden", 404: "NotFound", 408: "Unavailable", 409: "Conflict", 429: "Overloaded",
    502: "Unavailable", 503: "Unavailable", 504: "Unavailable",
}  # fmt: skip


@dataclass(frozen=True)
class Type:
    """The type of a value. `kind`: string, integer, number, boolean, instant, duration, json (any value), code (an error's),
    enum, struct (both with a `name`), list or map (both `of` something)."""

    kind: str
    name: str = ""
    of: Type | None = None
    nullable: bool = False


@dataclass(frozen=True)
class Field:
    """A member of an object, by its name on the wire."""

    name: str
    type: Type
    required: bool
    description: str


@dataclass(frozen=True)
class Struct:
    """An object that is sent or answered; members that must be there come first."""

    name: str
    description: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Enum:
    """The values of a text. Later releases add some: in answers SDKs accept any text."""

    name: str
    description: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Operation:
    """How an operation is requested; `path` has a name in braces for each parameter. `status` is that of success."""

    name: str
    method: str
    path: str
    status: int


@dataclass(frozen=True)
class Error:
    """An error code, its class, and the class above that. `name` equals `group` if the class has that one code."""

    code: str
    name: str
    group: str
    status: int
    description: str


@dataclass(frozen=True)
class Api:
    """Everything that SDKs generate."""

    enums: tuple[Enum, ...]
    requests: tuple[Struct, ...]
    answers: tuple[Struct, ...]
    operations: tuple[Operation, ...]
    errors: tuple[Error, ...]


def read(path: Path) -> Api:
    """The API of an OpenAPI document. Raises ValueError for what the SDKs can't express."""
    return _Reader(json.loads(path.read_text())).api()


class _Reader:
    def __init__(self, document: Json) -> None:
        self._document = document
        self._schemas: dict[str, Json] = document["components"]["schemas"]
        self._used_enums: set[str] = set()

    def api(self) -> Api:
        requests: dict[str, Struct] = {}
        answers: dict[str, Struct] = {}
        operations = []
        for path, methods in self._document["paths"].items():
            if _LEFT_OUT.match(path):
                continue
            for method, described in methods.items():
                status = min(int(status) for status in described["responses"])
                operations.append(Operation(described["operationId"], method.upper(), path, status))
                self._reach(described.get("requestBody", {}), requests)
                self._reach(described["responses"][str(status)], answers)
        if both := requests.keys() & answers.keys():
            raise ValueError(
                f"{sorted(both)} are sent and answered; the SDKs treat absent members differently in these"
            )
        # An object without members needs no class.
        sent = tuple(struct for struct in requests.values() if struct.fields)
        enums = tuple(self._enum(name) for name in sorted(self._used_enums))
        return Api(enums, sent, tuple(answers.values()), tuple(operations), self._errors())

    def _reach(self, described: Json, found: dict[str, Struct]) -> None:
        """Adds the structs to which the content refers, and those to which they refer."""
        for content in described.get("content", {}).values():
            schema = content["schema"]
            for choice in schema.get("anyOf", [schema]):
                if "$ref" in choice:
                    self._add(choice["$ref"].rpartition("/")[2], found)

    def _add(self, name: str, found: dict[str, Struct]) -> None:
        schema = self._schemas[name]
        if name in found or "properties" not in schema:
            return
        required = schema.get("required", [])
        fields = [
            Field(member, self._type(described), member in required, described.get("description", ""))
            for member, described in schema["properties"].items()
        ]
        fields.sort(key=lambda field: not field.required)
        found[name] = Struct(name, schema.get("description", name), tuple(fields))
        for field in fields:
            inner: Type | None = field.type
            while inner is not None:
                if inner.kind == "struct":
                    self._add(inner.name, found)
                inner = inner.of

    def _type(self, schema: Json) -> Type:
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2])
        if "anyOf" in schema:
            choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
            nullable = len(choices) < len(schema["anyOf"])
            named = [type_ for type_ in map(self._type, choices) if type_.kind in ("enum", "code")]
            if not named and len(choices) > 1:
                return Type("json")
            return replace(named[0] if named else self._type(choices[0]), nullable=nullable)
        kind = schema.get("type")
        if kind == "array":
            return Type("list", of=self._type(schema["items"]))
        if kind == "object":
            values = schema.get("additionalProperties")
            return Type("map", of=self._type(values) if isinstance(values, dict) else Type("json"))
        if schema.get("format") == "date-time":
            return Type("instant")
        if schema.get("pattern") == _DURATION_PATTERN:
            return Type("duration")
        return Type(_SCALARS.get(kind or "", "json"))

    def _named(self, name: str) -> Type:
        if name == "ErrorCode":
            return Type("code")
        if "enum" not in self._schemas[name]:
            return Type("struct", name)
        self._used_enums.add(name)
        return Type("enum", name)

    def _enum(self, name: str) -> Enum:
        schema = self._schemas[name]
        return Enum(name, schema.get("description", ""), tuple(schema["enum"]))

    def _errors(self) -> tuple[Error, ...]:
        codes = self._schemas["ErrorCode"]["x-tocsin-codes"]
        return tuple(
            Error(code, _class_name(code), _group(about["status"]), about["status"], about["description"])
            for code, about in codes.items()
        )


def _class_name(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_"))


def _group(status: int) -> str:
    return _GROUPS.get(status, "InvalidInput" if status < 500 else "ServerError")
