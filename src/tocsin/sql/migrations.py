"""Numbered migrations of a schema, forward only: the files NNNN_name.sql in a folder of a package.

A migration adds, so that the nodes of the release before still run on its schema. One that they can't run on states the
oldest schema version whose release can, in a comment on a separate line: `-- readable from: 12`.
"""

from __future__ import annotations

import re
from importlib import resources

from tocsin.model.errors import SchemaNotMigrated
from tocsin.ports.store import refuse_newer_schema

_NAME = re.compile(r"(\d{4})_\w+\.sql")
_READABLE_FROM = re.compile(r"^-- readable from: (\d+)$", re.MULTILINE)


def migrations_of(package: str, folder: str = "migrations") -> list[tuple[int, str]]:
    """(number, SQL) of every migration in a folder of the package, in order."""
    files = resources.files(package).joinpath(folder).iterdir()
    found = ((match, file) for file in files if (match := _NAME.fullmatch(file.name)))
    return sorted((int(match[1]), file.read_text(encoding="utf-8")) for match, file in found)


def readable_from(known: list[tuple[int, str]]) -> int:
    """The oldest schema version whose release can use a schema with all these migrations."""
    stated = [int(found[1]) for _, sql in known if (found := _READABLE_FROM.search(sql))]
    return max(stated, default=known[0][0])


def older_schema(place: str, version: int, newest: int) -> SchemaNotMigrated:
    """The error where a schema lacks migrations and must not get them. `place` names the schema."""
    return SchemaNotMigrated(
        f"{place} has version {version}, and this Tocsin uses {newest}; `tocsin migrate` or the next start of a server "
        "migrates it"
    )


def pending(
    known: list[tuple[int, str]], version: int, place: str, stored_readable_from: int | None
) -> list[tuple[int, str]]:
    """The migrations that a schema of this version lacks; none if a newer release has migrated it. Raises SchemaTooNew if
    that release's schema can't be used by this one, by its `stored_readable_from`; `place` names the schema."""
    refuse_newer_schema(place, version, known[-1][0], stored_readable_from)
    return [(number, sql) for number, sql in known if number > version]
