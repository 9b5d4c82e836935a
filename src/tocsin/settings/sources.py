"""Where settings come from: flags, the environment, the settings file, and files with one secret each.

The file is TOML with one level of tables; unknown keys are errors. The setting `cluster.secret` is read from the file that
`cluster.secret_file` names, such as one that Kubernetes, systemd and Docker mount; both stand in the same place, the
environment or the settings file.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.model.errors import ConfigError
from tocsin.settings.declared import ENV_PREFIX, SETTINGS, env_name, flag_name, setting_name
from tocsin.settings.settings import SECRET_FIELDS, Settings

SUFFIX = "_file"
#: No secret is longer; a larger file is probably another one.
_BYTES_MAX = 65_536
#: Permission to read for users that are neither the file's owner nor in its group. A group is how containers and systemd
#: give a file to a user that doesn't own it.
_EVERYBODY = 0o004


class Origin(Enum):
    """Which source a value came from."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class Source(NamedTuple):
    """Where a setting's value comes from; `place` is the flag, the variable, or the file and line ("" for a default)."""

    origin: Origin
    place: str


class Entry(NamedTuple):
    """What is written for a setting, and where. `secret`: it must not be shown."""

    value: Any
    source: Source
    secret: bool = False


def entries_of(flags: Mapping[str, Any]) -> dict[str, Entry]:
    """What is set, by field: flags before the environment, that before its aliases, these before the file. A secret from a
    file has the precedence of the setting that names the file. Raises ConfigError."""
    given = {
        name: Entry(value, Source(Origin.FLAG, flag_name(name))) for name, value in flags.items() if name in SETTINGS
    }
    variables = {name.upper(): value for name, value in os.environ.items()}
    environment = {
        field: Entry(variables[name], Source(Origin.ENVIRONMENT, name))
        for field in SETTINGS
        if (name := env_name(field)) in variables
    }
    above = _aliases(os.environ) | _with_secrets(environment, given) | given
    path = flags.get("config") or os.environ.get(ENV_PREFIX + "CONFIG")
    return _with_secrets(_file(path), above) | above if path else above


def _milliseconds(text: str) -> str:
    """A duration; a bare number counts milliseconds."""
    return f"{text.strip()}ms" if text.strip().isdigit() else text


def _unchanged(text: str) -> str:
    return text


#: Variables without our prefix, by which earlier services of this kind are configured: the field of each, and the function
#: that converts its text. The first variable that is set wins.
ALIASES: dict[str, tuple[str, Callable[[str], str]]] = {
    "TIMER_POLLING_INTERVAL": ("agent_polling_interval", _milliseconds),
    "TIMER_BATCH_SIZE": ("agent_polling_batch_max", _unchanged),
    "TIMER_DB_PATH": ("agent_database", _unchanged),
    "DB_PATH": ("agent_database", _unchanged),
    "TIMER_BROKER_URL": ("broker", _unchanged),
}


def _aliases(environment: Mapping[str, str]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for variable, (field, convert) in ALIASES.items():
        if variable in environment:
            found.setdefault(field, Entry(convert(environment[variable]), Source(Origin.ENVIRONMENT, variable)))
    return found


# -- the settings file


def _file(path: str | Path) -> dict[str, Entry]:
    """The file's entries by field. Raises ConfigError if the file can't be read, is not TOML or has an unknown key."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"config: {path} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"config: {path} is not TOML: {error}") from error
    known = {each.name: field for field, each in SETTINGS.items()}
    entries, wrong = {}, []
    for key, value in _flattened(tables):
        place = f"{path}, line {_line_of(text, key)}"
        if key in known:
            entries[known[key]] = Entry(value, Source(Origin.FILE, place))
        # A known table may be empty: all its settings are comments.
        elif value != {} or not any(name.startswith(f"{key}.") for name in known):
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
            best = number if f"{key}.".startswith(inside) else best
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


# -- files with secrets


def _with_secrets(entries: Mapping[str, Entry], above: Container[str]) -> dict[str, Entry]:
    """The entries of a source with the secrets whose files it names, but those that sources `above` it set."""
    found = dict(entries)
    for field in SECRET_FIELDS:
        entry = entries.get(field + SUFFIX)
        if entry is None or field in above:
            continue
        place, name = entry.source.place, setting_name(field + SUFFIX)
        if field in entries:
            raise ConfigError(
                f"{setting_name(field)} ({entries[field].source.place}) and {name} ({place}) are both set; remove one of them"
            )
        if not isinstance(entry.value, str):
            raise ConfigError(f"{name} ({place}): {entry.value!r} is not a path")
        value = read_secret(entry.value, f"{name} ({place})")
        found[field] = Entry(value, Source(entry.source.origin, f"{place}: {entry.value}"), secret=True)
    return found


def read_secret(path: str | Path, place: str) -> str:
    """The content of a file, without the newline at its end. Raises ConfigError if it can't be read, is empty, too large or
    not UTF-8; `place` is the setting that names it."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{place}: {path} can't be read: {error.strerror}") from error
    if len(raw) > _BYTES_MAX:
        raise ConfigError(f"{place}: {path} has more than {_BYTES_MAX} bytes; name a file with the secret alone")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{place}: {path} is not UTF-8 text") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise ConfigError(f"{place}: {path} is empty; write the secret into it, or leave the setting out")
    if "\n" in text:
        raise ConfigError(f"{place}: {path} has several lines; write the secret alone into it")
    return text


def open_to_everybody(paths: Mapping[str, Path | None]) -> Iterator[tuple[str, Path]]:
    """Those of the files, by their settings, that every user of the machine may read."""
    for name, path in paths.items():
        if path is None:
            continue
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 -- follows links, as reading does
        except OSError:
            # Reading it has reported that, or no longer needs it.
            continue
        if mode & _EVERYBODY:
            yield name, path


def secret_files(settings: Settings) -> dict[str, Path | None]:
    """The files with secrets that the settings name, by setting."""
    fields = [
        *(field + SUFFIX for field in SECRET_FIELDS),
        "admin_key_file",
        "cluster_tls_key_file",
        "secrets_key_file",
    ]
    return {SETTINGS[field].name: SETTINGS[field].value(settings) for field in fields}
