"""The settings file: TOML with one level of tables. Unknown keys are errors."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.model.errors import ConfigError


class Entry(NamedTuple):
    """A value, and where it comes from: the file and line, or a variable. `secret`: it must not be shown."""

    value: Any
    place: str
    secret: bool = False


def read_file(path: str | Path, known: Mapping[str, str]) -> dict[str, Entry]:
    """The file's entries by field; `known` has the field of each setting. Raises ConfigError if the file can't be read,
    is not TOML or has an unknown key."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"config: {path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"config: {path} is not TOML: {error}") from error
    entries, wrong = {}, []
    for key, value in _flattened(tables):
        place = f"{path}, line {_line_of(text, key)}"
        if key in known:
            entries[known[key]] = Entry(value, place)
        else:
            wrong.append(f"{key} ({place}) {fault_of(key, known)}")
    if wrong:
        raise ConfigError("\n".join(wrong))
    return entries


def _flattened(tables: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in tables.items():
        if isinstance(value, dict):
            found += [(f"{key}.{name}", inner) for name, inner in value.items()] or [(key, value)]
        else:
            found.append((key, value))
    return found


def _line_of(text: str, key: str) -> int:
    """The key's line; if TOML hides it (an inline table, a key in parts), its table's line, or 1."""
    inside, best = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            inside = header[1] + "."
            best = number if key.startswith(inside) else best
            continue
        assigned = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=", line)
        if assigned and inside + assigned[1] == key:
            return number
    return best


def fault_of(name: str, known: Iterable[str]) -> str:
    """What is wrong with a name that is not a setting, and what to do: the rest of a sentence that begins with it."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1) or [
        other for other in names if other.replace(".", "_") == name.replace(".", "_")
    ]
    return (
        f"is not a setting; did you mean {close[0]}?" if close else "is not a setting; `tocsin config show` lists all"
    )
