"""The settings file: TOML, one level of tables, no key that isn't known."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.model.errors import ConfigError


class Entry(NamedTuple):
    """A value of the file, and where it stands."""

    value: Any
    place: str


def read_file(path: str | Path, known: Mapping[str, str]) -> dict[str, Entry]:
    """The file's entries by field. ConfigError for a file that can't be read, is no TOML or has an unknown key."""
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
            wrong.append(f"{key} ({place}) is no setting{did_you_mean(key, known)}")
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
    """The line on which the key stands; for what TOML can hide (dotted keys, inline tables) its table's line, or 1."""
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


#: Settings of earlier releases, for which one of a similar name would be wrong.
_GONE = frozenset({"api.batch_items_per_turn", "ui.sign_out_timeout", "ui.sign_outs_max", "ui.sign_outs_unread_max"})
_GONE_NAMES = _GONE | {"TOCSIN_" + name.replace(".", "_").upper() for name in _GONE}


def did_you_mean(name: str, known: Mapping[str, str]) -> str:
    """What to do about a name that is no setting."""
    if name in _GONE_NAMES:
        return " any more; remove it"
    close = difflib.get_close_matches(name, known, n=1) or [
        other for other in known if other.replace(".", "_") == name.replace(".", "_")
    ]
    return f"; did you mean {close[0]}?" if close else "; `tocsin config show` lists all"
