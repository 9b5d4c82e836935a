"""The Go SDK: how types are written there, and which files are made. gofmt's layout is made here, so that no Go is needed."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .document import Api, Enum, Field, Struct, Type

#: Characters of a comment's line, without its indentation and slashes.
_PROSE_CHARS = 112
_INITIALISMS = {"id": "ID", "url": "URL", "uuid": "UUID", "api": "API", "json": "JSON"}
_SCALARS = {
    "string": "string", "integer": "int", "number": "float64", "boolean": "bool", "code": "string",
    "instant": "time.Time", "duration": "time.Duration", "json": "json.RawMessage",
}  # fmt: skip
#: Absent if they have their zero value, which nobody can mean.
_ZERO_IS_ABSENT = {"enum", "instant", "list", "map", "json", "struct"}
#: Likewise in requests other than updates.
_ZERO_IS_ABSENT_IN_REQUESTS = _ZERO_IS_ABSENT | {"string", "integer", "number", "boolean"}
_DURATIONS_OF_WHICH_ZERO_IS_ABSENT = {"delay", "every", "expireAfter", "jitter"}
#: A text that may be empty.
_TEXTS_OF_WHICH_EMPTY_IS_SENT = {("RawBody", "text"), ("RawBodyAnswer", "text")}


def name(wire: str) -> str:
    """The exported name of a member: callbackUrl is CallbackURL."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", wire)
    return "".join(_INITIALISMS.get(word.lower(), word[:1].upper() + word[1:]) for word in words)


def constant(enum: Enum, value: str) -> str:
    """The name of an enum's value: CALLBACK_NOT_OK is FailureKindCallbackNotOk."""
    return enum.name + "".join(word[:1].upper() + word[1:].lower() for word in re.split(r"[_\s-]", value))


def type_of(type_: Type) -> str:
    """The type of a value that is there."""
    if type_.of is not None:
        inner = type_of(type_.of)
        if type_.of.nullable:
            inner = f"Opt[{inner}]"
        return f"[]{inner}" if type_.kind == "list" else f"map[string]{inner}"
    return _SCALARS.get(type_.kind, type_.name)


def _is_optional(struct: Struct, field: Field, request: bool) -> bool:
    """Whether the member is an Opt: its zero value differs from its absence, or it can be null."""
    if field.type.kind == "json":
        return False  # nil and null differ
    if field.required:
        return field.type.nullable
    if request and struct.name.startswith("Update"):
        return True
    if (struct.name, field.name) in _TEXTS_OF_WHICH_EMPTY_IS_SENT:
        return True
    if not request:
        return field.type.kind not in _ZERO_IS_ABSENT | {"string"}
    if field.type.kind in ("list", "map", "struct"):
        return False  # where these can be null, null means the same as absence
    if field.type.kind == "duration":
        return field.type.nullable or field.name not in _DURATIONS_OF_WHICH_ZERO_IS_ABSENT
    # Version 0 states that there must be none.
    means_zero = field.name == "expectedVersion"
    return field.type.nullable or means_zero or field.type.kind not in _ZERO_IS_ABSENT_IN_REQUESTS


def field_type(struct: Struct, field: Field, request: bool) -> str:
    """The type of a member."""
    written = type_of(field.type)
    if _is_optional(struct, field, request):
        return f"Opt[{written}]"
    return f"*{written}" if field.type.kind == "struct" and not field.required else written


def fields(struct: Struct, request: bool) -> list[str]:
    """The lines of the struct's members. gofmt aligns the types of neighbours that no comment separates."""
    lines: list[str] = []
    block: list[tuple[str, str]] = []

    def flush() -> None:
        width = max((len(each) for each, _ in block), default=0)
        lines.extend(f"\t{each.ljust(width)} {type_}" for each, type_ in block)
        block.clear()

    for field in struct.fields:
        if field.description:
            flush()
            lines.extend(f"\t{line}" for line in comment(field.description).splitlines())
        block.append((name(field.name), field_type(struct, field, request)))
    flush()
    return lines


def members(struct: Struct) -> list[str]:
    """The lines of the table of the struct's members: gofmt does not align them."""
    return [
        f'\t\tmember{{"{field.name}", &v.{name(field.name)}, {"true" if field.required else "false"}}},'
        for field in struct.fields
    ]


def constants(enum: Enum) -> list[str]:
    """The lines of an enum's values, aligned."""
    names = [constant(enum, value) for value in enum.values]
    width = max(map(len, names))
    return [f'\t{each.ljust(width)} {enum.name} = "{value}"' for each, value in zip(names, enum.values, strict=True)]


def aligned(pairs: list[tuple[str, str]], indent: str = "\t") -> list[str]:
    """Lines of `key: value,` as gofmt aligns them."""
    width = max(len(key) for key, _ in pairs) + 1
    return [f"{indent}{(key + ':').ljust(width)} {value}," for key, value in pairs]


def comment(text: str) -> str:
    """A comment of as many lines as it needs."""
    text = re.sub(r"\s+", " ", text.replace("`", ""))
    return "\n".join(f"// {line}" for line in textwrap.wrap(text, _PROSE_CHARS))


def _errors(api: Api) -> list[str]:
    """The variables of the codes' errors, each with a comment."""
    lines = []
    for error in api.errors:
        if error.name == error.group:
            continue
        lines += [f"\t{line}" for line in comment(f"Err{error.name} is {error.code}: {error.description}").splitlines()]
        lines.append(f'\tErr{error.name} error = &class{{name: "{error.name}", above: Err{error.group}}}')
    return lines


def _codes(api: Api) -> list[str]:
    return aligned([(f'"{error.code}"', f"Err{error.name}") for error in api.errors])


def _operations(api: Api) -> list[str]:
    return aligned([(f'"{each.name}"', f'{{"{each.method}", "{each.path}"}}') for each in api.operations])


def files(api: Api, templates: Path) -> dict[str, str]:
    """The generated files: their contents by path below `sdks/`."""
    environment = Environment(
        loader=FileSystemLoader(templates / "go"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["comment"] = comment
    context = {
        "enums": [(enum, constants(enum)) for enum in api.enums],
        "structs": [(struct, fields(struct, True), members(struct), False) for struct in api.requests]
        + [(struct, fields(struct, False), members(struct), True) for struct in api.answers],
        "errors": _errors(api),
        "codes": _codes(api),
        "operations": _operations(api),
    }
    return {
        f"go/tocsin/{file}": environment.get_template(f"{file}.jinja").render(context).rstrip() + "\n"
        for file in ("generated_models.go", "generated_errors.go", "generated_operations.go")
    }
