"""Numbered migrations of a store's schema, forward only: the files NNNN_name.sql in the folder `migrations` of a package."""

from __future__ import annotations

import re
from importlib import resources

from tocsin.model.errors import SchemaTooNew

_NAME = re.compile(r"(\d{4})_\w+\.sql")


def migrations_of(package: str) -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = resources.files(package) / "migrations"
    found = ((match, file) for file in folder.iterdir() if (match := _NAME.fullmatch(file.name)))
    return sorted((int(match[1]), file.read_text(encoding="utf-8")) for match, file in found)


def pending(known: list[tuple[int, str]], version: int, place: str) -> list[tuple[int, str]]:
    """The migrations that a schema of this version lacks. Raises SchemaTooNew for a schema of a newer release; `place` names
    it."""
    newest = known[-1][0]
    if version > newest:
        raise SchemaTooNew(
            f"{place} has schema version {version}, this release supports versions up to {newest}; run the newer release, or "
            "restore a backup"
        )
    return [(number, sql) for number, sql in known if number > version]
