"""The JSON Schema of the file that `tocsin apply` reads: for editors, and for checks without a server."""

from __future__ import annotations

from typing import Any

import msgspec
from scripts.openapi.document import ONE_SCHEDULE, limit
from scripts.openapi.schemas import components, request_structs

from tocsin.cli.declared.document import Declaration, DeclaredSchedule

Json = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_COMPONENTS, _DEFINITIONS = "#/components/schemas/", "#/$defs/"


def declaration_schema() -> bytes:
    """The schema as indented JSON."""
    schemas = components([Declaration])
    limit(schemas, [struct for name, struct in request_structs().items() if name in schemas])
    schemas[DeclaredSchedule.__name__] |= ONE_SCHEDULE
    root = schemas.pop(Declaration.__name__)
    root["properties"] = {"$schema": {"type": "string", "description": "For editors; ignored."}, **root["properties"]}
    # What YAML's anchors are defined under.
    root["patternProperties"] = {"^x-": {}}
    document = {"$schema": _DIALECT, "title": "Tocsin declaration", **root, "$defs": _reached(root, schemas)}
    return msgspec.json.format(msgspec.json.encode(_relocated(document)), indent=2) + b"\n"


def _reached(root: Json, schemas: Json) -> Json:
    """The schemas to which the root leads."""
    found: Json = {}
    waiting: list[Any] = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix(_COMPONENTS)
            if name in schemas and name not in found:
                found[name] = schemas[name]
                waiting.append(schemas[name])
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return dict(sorted(found.items()))


def _relocated(part: Any) -> Any:
    """The same with references to definitions of this document."""
    if isinstance(part, dict):
        return {
            name: _DEFINITIONS + value.removeprefix(_COMPONENTS) if name == "$ref" else _relocated(value)
            for name, value in part.items()
        }
    return [_relocated(each) for each in part] if isinstance(part, list) else part
