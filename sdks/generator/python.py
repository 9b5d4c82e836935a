"""The Python SDK: how types are written there, and which files are made."""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .document import Api, Field, Type

#: Characters of a line of a comment or docstring, without its indentation.
_PROSE_CHARS = 115
_SENT = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "code": "str",
    "instant": "Instant", "duration": "Duration", "json": "JsonValue",
}  # fmt: skip
_ANSWERED = {**_SENT, "instant": "datetime", "duration": "str", "json": "Any"}


def snake(name: str) -> str:
    """The name of a member in Python; of one that is a word of the language, with an underscore behind it."""
    written = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    return f"{written}_" if keyword.iskeyword(written) else written


def sent_type(type_: Type) -> str:
    """The annotation of a value that is sent."""
    return _annotation(type_, _SENT, "Sequence[{}]", "Mapping[str, {}]", "{}")


def answered_type(type_: Type) -> str:
    """The annotation of a value that is answered; enums are open."""
    return _annotation(type_, _ANSWERED, "list[{}]", "dict[str, {}]", "{} | str")


def _annotation(type_: Type, scalars: dict[str, str], list_: str, map_: str, enum: str) -> str:
    if type_.of is not None:
        inner = _annotation(type_.of, scalars, list_, map_, enum)
        written = (list_ if type_.kind == "list" else map_).format(inner)
    elif type_.kind == "enum":
        written = enum.format(type_.name)
    elif type_.kind == "struct" and scalars is _SENT:
        written = f"{type_.name} | Mapping[str, Any]"
    else:
        written = scalars.get(type_.kind, type_.name)
    return f"{written} | None" if type_.nullable else written


def encoded(field: Field) -> str:
    """The expression of what is sent for a member."""
    return _converted(field.type, f"self.{snake(field.name)}", _encoder(field))


def decoded(type_: Type, value: str) -> str:
    """The expression of what an answer's value becomes."""
    return _converted(type_, value, _decoder(type_))


def _converted(type_: Type, value: str, conversion: str) -> str:
    if conversion == "{}":
        return value
    converted = conversion.format(value)
    return f"None if {value} is None else {converted}" if type_.nullable else converted


def _encoder(field: Field) -> str:
    """Names the member in errors, as the caller of the SDK wrote it."""
    name, type_ = snake(field.name), field.type
    if type_.of is not None:
        if type_.of.kind == "struct":
            return f'[object_json("{name}", each, {type_.of.name}) for each in {{}}]'
        return f'{type_.kind}_json("{name}", {{}})'
    if type_.kind == "number" and name.endswith("_seconds"):
        return f'seconds_of("{name}", {{}})'
    return {
        "struct": f'object_json("{name}", {{}}, {type_.name})',
        "instant": f'instant_text("{name}", {{}})',
        "duration": f'duration_text("{name}", {{}})',
    }.get(type_.kind, "{}")


def _decoder(type_: Type) -> str:
    if type_.of is not None:
        inner = _decoder(type_.of)
        return "{}" if inner == "{}" else f"[{inner.format('each')} for each in {{}}]"
    return {"struct": type_.name + ".from_json({})", "instant": "parse_instant({})"}.get(type_.kind, "{}")


def _comment(text: str, indent: int = 0) -> str:
    return "\n".join(f"{' ' * indent}#: {line}" for line in textwrap.wrap(text, _PROSE_CHARS))


def _docstring(text: str, indent: int = 4) -> str:
    text = text.replace('"', "'").replace("\\", "\\\\")
    return ("\n" + " " * indent).join(textwrap.wrap(f'"""{text}"""', _PROSE_CHARS))


def files(api: Api, templates: Path) -> dict[str, str]:
    """The generated files: their contents by path below `sdks/`."""
    environment = Environment(
        loader=FileSystemLoader(templates / "python"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        snake=snake, sent_type=sent_type, answered_type=answered_type, comment=_comment, docstring=_docstring
    )
    environment.globals.update(encoded=encoded, decoded=decoded)
    context: dict[str, Any] = {"api": api, "groups": sorted({error.group for error in api.errors})}
    made = {
        name: environment.get_template(f"{name}.jinja").render(context)
        for name in ("__init__.py", "models.py", "errors.py", "operations.py")
    }
    return {f"python/src/tocsin_client/_generated/{name}": _formatted(text) for name, text in made.items()}


def _formatted(source: str) -> str:
    """The source in the form in which the repository keeps Python."""
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--line-length", "120", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
