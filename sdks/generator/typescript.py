"""The TypeScript SDK: how types are written there, and which files are made."""

from __future__ import annotations

import textwrap
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .document import Api, Field, Type

#: Characters of a line of a comment, without its indentation.
_PROSE_CHARS = 110
_SENT = {
    "string": "string", "integer": "number", "number": "number", "boolean": "boolean", "code": "string",
    "instant": "InstantLike", "duration": "DurationLike", "json": "unknown",
}  # fmt: skip
_ANSWERED = {**_SENT, "instant": "Instant", "duration": "string"}


def sent_type(type_: Type) -> str:
    """The type of a value that is sent."""
    return _written(type_, _SENT, "readonly {}[]", "Readonly<Record<string, {}>>", "{}")


def answered_type(type_: Type) -> str:
    """The type of a value that is answered; enums are open."""
    return _written(type_, _ANSWERED, "{}[]", "Record<string, {}>", "Open<{}>")


def _written(type_: Type, scalars: dict[str, str], list_: str, map_: str, enum: str) -> str:
    if type_.of is not None:
        inner = _written(type_.of, scalars, list_, map_, enum)
        if type_.kind == "list" and " " in inner:
            inner = f"({inner})"
        written = (list_ if type_.kind == "list" else map_).format(inner)
    elif type_.kind == "enum":
        written = enum.format(type_.name)
    else:
        written = scalars.get(type_.kind, type_.name)
    return f"{written} | null" if type_.nullable and written != "unknown" else written


def converter(type_: Type) -> str:
    """The function that makes of a value what is sent; empty if it is sent as it is."""
    if type_.of is not None:
        inner = converter(type_.of)
        return f"each({inner})" if inner and type_.kind == "list" else ""
    return {"struct": f"encode{type_.name}", "instant": "encodeInstant", "duration": "encodeDuration"}.get(
        type_.kind, ""
    )


def _comment(text: str, indent: int = 0) -> str:
    lines = textwrap.wrap(text.replace("*/", "* /"), _PROSE_CHARS)
    pad = " " * indent
    if len(lines) == 1:
        return f"{pad}/** {lines[0]} */"
    return "\n".join([f"{pad}/**", *(f"{pad} * {line}" for line in lines), f"{pad} */"])


def _converted(fields: tuple[Field, ...]) -> list[tuple[str, str]]:
    return [(field.name, function) for field in fields if (function := converter(field.type))]


def _nested(fields: tuple[Field, ...]) -> list[str]:
    """The members of an answer that are answers themselves, or lists of such, as TypeScript."""
    found = []
    for field in fields:
        inner = field.type.of or field.type
        if inner.kind == "struct" and field.type.kind != "map":
            found.append(f'["{field.name}", "{inner.name}", {str(field.type.kind == "list").lower()}]')
    return found


def files(api: Api, templates: Path) -> dict[str, str]:
    """The generated files: their contents by path below `sdks/`."""
    environment = Environment(
        loader=FileSystemLoader(templates / "typescript"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        sent_type=sent_type, answered_type=answered_type, comment=_comment, converted=_converted, nested=_nested
    )
    # A struct's encoder is written after those that it uses.
    sent = {struct.name: struct for struct in reversed(api.requests)}
    context = {"api": api, "sent": list(sent.values()), "groups": sorted({error.group for error in api.errors})}
    return {
        f"typescript/src/generated/{name}": environment.get_template(f"{name}.jinja").render(context)
        for name in ("models.ts", "codecs.ts", "errors.ts", "operations.ts")
    }
