"""The JSON Schema of a tool's arguments, made from their struct."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from tocsin.web.http.constraints import constraints_of

Json = dict[str, Any]


@cache
def input_schema(arguments: type[msgspec.Struct]) -> Json:
    """Without references, which some clients can't follow. Limits are the built-in ones."""
    _, components = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    schema: Json = _inlined(components[arguments.__name__], components)
    schema.pop("title", None)
    for name, constraint in constraints_of(arguments).items():
        limits = {key: value for key, value in constraint.schema.items() if key != "$ref" and not key.startswith("x-")}
        schema["properties"][name] |= limits
    return schema


def _inlined(schema: Any, components: Json) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, components) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = dict(schema)
    if (reference := schema.pop("$ref", None)) is not None:
        named = components[reference.rpartition("/")[2]]
        # The field's description goes before the type's.
        schema = {key: value for key, value in named.items() if key not in ("title", "description")} | schema
    return {key: _inlined(value, components) for key, value in schema.items()}
