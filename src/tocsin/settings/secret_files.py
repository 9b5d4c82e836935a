"""Settings whose values are secrets and may come from files, such as those that Kubernetes, systemd and Docker mount.

The setting `cluster.secret` is read from the file that `cluster.secret_file` names, where both stand in the same place: the
environment, or the settings file.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from tocsin.model.errors import ConfigError
from tocsin.settings.file import Entry
from tocsin.settings.names import env_name, setting_name

#: The settings that may come from a file. The one that names the file has the same name with `_file`.
SECRET_FIELDS = ("store", "agent_database", "broker", "cluster_secret", "cluster_secret_former")
SUFFIX = "_file"
#: No secret is longer; a larger file is probably another one.
_BYTES_MAX = 65_536
#: Permission to read for users that are neither the file's owner nor in its group. A group is how containers and systemd
#: give a file to a user that doesn't own it.
_EVERYBODY = 0o004


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


def secrets_of_environment(environment: Mapping[str, str], given_already: Container[str]) -> dict[str, Entry]:
    """The secrets whose files the environment names, but those of fields that flags set. Raises ConfigError."""
    given = {name.upper(): value for name, value in environment.items()}
    found = {}
    for field in SECRET_FIELDS:
        variable = env_name(field + SUFFIX)
        if variable not in given or field in given_already:
            continue
        if env_name(field) in given:
            raise ConfigError(
                f"{setting_name(field)}: {env_name(field)} and {variable} are both set; remove one of them"
            )
        path = given[variable]
        value = read_secret(path, f"{setting_name(field + SUFFIX)} ({variable})")
        found[field] = Entry(value, f"{variable}: {path}", secret=True)
    return found


def secrets_of_file(entries: Mapping[str, Entry], given_already: Container[str]) -> dict[str, Entry]:
    """The secrets whose files the settings file names, by its entries, but those of fields that flags or the environment
    set. Raises ConfigError."""
    found = {}
    for field in SECRET_FIELDS:
        entry = entries.get(field + SUFFIX)
        if entry is None or field in given_already:
            continue
        name = setting_name(field + SUFFIX)
        if field in entries:
            raise ConfigError(
                f"{setting_name(field)} ({entries[field].place}) and {name} ({entry.place}) are both set; remove one of them"
            )
        if not isinstance(entry.value, str):
            raise ConfigError(f"{name} ({entry.place}): {entry.value!r} is not a path")
        value = read_secret(entry.value, f"{name} ({entry.place})")
        found[field] = Entry(value, f"{entry.place}: {entry.value}", secret=True)
    return found


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
