"""Each setting that `Settings` and its parts declare: how it is written, and how its value is read.

A field such as `connections_max` of the part with the table `callbacks` is the setting `callbacks.connections_max`: the
key `connections_max` in the file's table `[callbacks]`, and the variable TOCSIN_CALLBACKS_CONNECTIONS_MAX. The name lacks the
unit of a duration.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tocsin.model.instants import US_PER_SECOND, format_duration
from tocsin.model.setting import KEY, Declaration, Topic
from tocsin.model.setting_values import byte_count, bytes_text, count, duration, one_of, path, text, words, yes_no
from tocsin.settings.settings import SHARED, Part, Settings

ENV_PREFIX = "TOCSIN_"
#: Microseconds of the units in which dataclasses count durations.
_UNITS = {"_us": 1, "_ms": 1_000, "_s": US_PER_SECOND}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. `field` is its name as an identifier, `name` the one in the file and in messages: `egress_allow` and
    `egress.allow`. It is the field `attribute` of the part of Settings named `part`, or of Settings itself (""). `kind` is
    the type in that field's annotation, such as `Path`."""

    field: str
    name: str
    part: str
    attribute: str
    kind: str
    default: Any
    declaration: Declaration
    topic: Topic

    @property
    def unit_us(self) -> int:
        """Microseconds of the unit of a duration; 0 for another value."""
        return next((us for suffix, us in _UNITS.items() if self.attribute.endswith(suffix)), 0)

    @property
    def counts_bytes(self) -> bool:
        """Whether the value is a number of bytes."""
        return "bytes" in self.attribute.split("_")

    def parse(self, value: object) -> Any:
        """The value of what people wrote. Raises ValueError with the reason."""
        declared = self.declaration
        if self.kind == "tuple[str, ...]":
            value = words(value)
        if declared.rule is not None:
            return declared.rule(value)
        if declared.choices:
            return one_of(declared.choices, value)
        if self.unit_us:
            duration_us = duration(value, least=declared.least)
            if self.unit_us == US_PER_SECOND:
                return duration_us / US_PER_SECOND
            return max(declared.least, duration_us // self.unit_us)
        if self.kind == "int":
            return (byte_count if self.counts_bytes else count)(value, least=declared.least)
        return {"bool": yes_no, "Path": path}.get(self.kind, text)(value)

    def value(self, settings: Settings) -> Any:
        """The value in force, as the part takes it."""
        return getattr(getattr(settings, self.part) if self.part else settings, self.attribute)

    def written(self, value: Any) -> Any:
        """A value in the types of the settings file, as people write it; None if it is unset."""
        if value is None or isinstance(value, bool):
            return value
        if self.unit_us:
            return format_duration(round(value * self.unit_us))
        if self.counts_bytes:
            return bytes_text(value)
        if isinstance(value, tuple):
            return list(value)
        return value if isinstance(value, int) else str(value)


def _all() -> Iterator[Setting]:
    for declared in dataclasses.fields(Settings):
        part: Part | None = declared.metadata.get("part")
        if KEY in declared.metadata:
            yield _setting(declared, "", Part(Topic.SERVER, "", ""))
        elif part is not None:
            for inner in dataclasses.fields(declared.default):  # type: ignore[arg-type]
                if KEY in inner.metadata:
                    yield _setting(inner, declared.name, part)


def _setting(declared: dataclasses.Field[Any], name: str, part: Part) -> Setting:
    declaration: Declaration = declared.metadata[KEY]
    unit = next((suffix for suffix in _UNITS if declared.name.endswith(suffix)), "")
    plain = declaration.name or part.prefix + declared.name.removesuffix(unit)
    # A setting of the server itself can belong to a table, too.
    table = part.table or next((table for table in TABLES if not name and plain.startswith(f"{table}_")), "")
    plain = plain.removeprefix(f"{table}_") if table and not part.table else plain
    return Setting(
        f"{table}_{plain}" if table else plain,
        f"{table}.{plain}" if table else plain,
        name,
        declared.name,
        str(declared.type).removesuffix(" | None"),
        declared.default,
        declaration,
        declaration.topic or part.topic,
    )


#: Tables of the file. A name that begins as another one does stands before it.
TABLES = tuple(
    sorted(
        {part.table for each in dataclasses.fields(Settings) if (part := each.metadata.get("part")) and part.table},
        reverse=True,
    )
)
#: All settings by field, in the order in which they are listed within their topics.
SETTINGS: Mapping[str, Setting] = {each.field: each for each in _all()}


def by_topic() -> dict[Topic, list[Setting]]:
    """All settings, in the order in which they are listed."""
    return {topic: [each for each in SETTINGS.values() if each.topic is topic] for topic in Topic}


def made(values: Mapping[str, Any]) -> Settings:
    """The settings with these values, by field, and defaults elsewhere."""
    changes: dict[str, dict[str, Any]] = defaultdict(dict)
    for field, value in values.items():
        changes[SETTINGS[field].part][SETTINGS[field].attribute] = value
    for (part, attribute), field in SHARED.items():
        if field in values:
            changes[part][attribute] = values[field]
    own, default = changes.pop("", {}), Settings()
    parts = {part: dataclasses.replace(getattr(default, part), **inner) for part, inner in changes.items()}
    return dataclasses.replace(default, **own, **parts)


def setting_name(field: str) -> str:
    """How a field is written in the file and in messages: `egress.allow` for `egress_allow`."""
    return SETTINGS[field].name if field in SETTINGS else field


def env_name(field: str) -> str:
    """The environment variable of a field."""
    return ENV_PREFIX + field.upper()


def flag_name(field: str) -> str:
    """The flag of a field, where `tocsin serve` has one."""
    return "--" + field.replace("_", "-")
