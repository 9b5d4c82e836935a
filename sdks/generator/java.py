"""The Java SDK: how types are written there, and which files are made. Each public class needs a file of its own."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .document import Api, Field, Struct, Type

#: Characters of a line of a comment, without its indentation.
_PROSE_CHARS = 100
_ROOT = "java/tocsin-client/src/main/java/dev/tocsin/client"
_BOXED = {
    "string": "String", "integer": "Long", "number": "Double", "boolean": "Boolean", "code": "String",
    "instant": "Instant", "duration": "Duration", "json": "Json",
}  # fmt: skip
_PRIMITIVES = {"integer": "long", "number": "double", "boolean": "boolean"}
_WRITERS = {"instant": "Values::toJson", "duration": "Values::toJson", "json": "value -> value"}
_READERS = {
    "string": "Json::asString", "code": "Json::asString", "integer": "Json::asLong", "number": "Json::asDouble",
    "boolean": "Json::asBoolean", "instant": "Values::toInstant", "duration": "Values::toDuration", "json": "value -> value",
}  # fmt: skip


def boxed(type_: Type) -> str:
    """The type of a value that can be null or an argument of a generic class."""
    if type_.of is not None:
        inner = f"@Nullable {boxed(type_.of)}" if type_.of.nullable else boxed(type_.of)
        return f"List<{inner}>" if type_.kind == "list" else f"Map<String, {inner}>"
    return _BOXED.get(type_.kind, type_.name)


def plain(type_: Type) -> str:
    """The type of a value that is always there."""
    return _PRIMITIVES.get(type_.kind, boxed(type_))


def answered(field: Field) -> str:
    """The type of a member of an answer."""
    return f"@Nullable {boxed(field.type)}" if is_nullable(field) else plain(field.type)


def is_nullable(field: Field) -> bool:
    """Whether a member of an answer can be null."""
    return not field.required or field.type.nullable


def writer(type_: Type) -> str:
    """The function that makes JSON of a value."""
    if type_.of is not None:
        shape = "Json.array" if type_.kind == "list" else "Json.object"
        return f"each -> {shape}(each, {writer(type_.of)})"
    if type_.kind in ("struct", "enum"):
        return f"{type_.name}::toJson"
    return _WRITERS.get(type_.kind, "Json::of")


def reader(type_: Type) -> str:
    """The function that reads a value that is not null."""
    if type_.of is not None:
        inner = reader(type_.of)
        inner = f"Json.nullable({inner})" if type_.of.nullable else inner
        return f"json -> json.{'asList' if type_.kind == 'list' else 'asMap'}({inner})"
    if type_.kind in ("struct", "enum"):
        return f"{type_.name}::fromJson"
    return _READERS[type_.kind]


def written(field: Field) -> str:
    """The expression that makes JSON of a member that is always there."""
    return _written(field.type, field.name)


def _written(type_: Type, value: str) -> str:
    if type_.of is not None:
        return f"Json.{'array' if type_.kind == 'list' else 'object'}({value}, {writer(type_.of)})"
    if type_.kind in ("struct", "enum"):
        return f"{value}.toJson()"
    return f"Values.toJson({value})" if type_.kind in ("instant", "duration") else f"Json.of({value})"


def factory_order(fields: list[Field]) -> list[Field]:
    """Required members in the order of a factory's parameters: what names the object comes first."""
    return sorted(fields, key=lambda field: (field.name != "namespace", not field.name.lower().endswith("id")))


def constant(value: str) -> str:
    """The name of an enum's value."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", value).upper()


def comment(text: str, indent: int = 0) -> str:
    """A description as text of Javadoc."""
    for character, written_as in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;"), ("*/", "*&#47;")):
        text = text.replace(character, written_as)
    escaped = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
    return ("\n" + " " * indent + " * ").join(textwrap.wrap(escaped, _PROSE_CHARS, break_long_words=False))


def _used(struct: Struct) -> set[str]:
    """The kinds of the members, and of what these contain."""
    kinds = set()
    for field in struct.fields:
        inner: Type | None = field.type
        while inner is not None:
            kinds.add(inner.kind)
            inner = inner.of
    return kinds


def _has_nullable_items(struct: Struct) -> bool:
    return any(field.type.of is not None and field.type.of.nullable for field in struct.fields)


def imports(struct: Struct, is_answer: bool, *always: str) -> list[str]:
    """What a record has to import, sorted."""
    used = _used(struct)
    nullable = _has_nullable_items(struct) or (is_answer and any(map(is_nullable, struct.fields)))
    names = {
        "dev.tocsin.client.Values": used & {"instant", "duration"}, "java.time.Instant": "instant" in used,
        "java.time.Duration": "duration" in used, "java.util.List": "list" in used, "java.util.Map": "map" in used,
        "org.jspecify.annotations.Nullable": nullable,
    }  # fmt: skip
    return sorted({name for name, needed in names.items() if needed} | set(always))


def files(api: Api, templates: Path) -> dict[str, str]:
    """The generated files: their contents by path below `sdks/`."""
    environment = Environment(
        loader=FileSystemLoader(templates / "java"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        boxed=boxed, plain=plain, answered=answered, writer=writer, reader=reader, written=written, constant=constant,
        comment=comment, factory_order=factory_order,
    )  # fmt: skip
    environment.globals.update(imports=imports, is_nullable=is_nullable)

    def render(template: str, **context: object) -> str:
        return environment.get_template(template).render(**context)

    made = {f"model/{enum.name}.java": render("Enum.java.jinja", enum=enum) for enum in api.enums}
    made |= {f"model/{struct.name}.java": render("Request.java.jinja", struct=struct) for struct in api.requests}
    made |= {f"model/{struct.name}.java": render("Answer.java.jinja", struct=struct) for struct in api.answers}
    own = [error for error in api.errors if error.name != error.group]
    made |= {f"error/{error.name}Exception.java": render("Error.java.jinja", error=error) for error in own}
    made["error/ErrorCodes.java"] = render("ErrorCodes.java.jinja", api=api)
    made["Operation.java"] = render("Operation.java.jinja", api=api)
    return {f"{_ROOT}/{name}": text for name, text in made.items()}
