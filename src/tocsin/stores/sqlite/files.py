"""Databases of SQLite from outside their server, which may be using them: a look into one, and consistent copies."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import apsw
import msgspec

from tocsin.administration import API_KEYS
from tocsin.model.access import ApiKey
from tocsin.model.errors import StoreCorrupted, StoreError, StoreUnavailable
from tocsin.private_files import make_database, sync
from tocsin.stores.sqlite.connection import has_no_space, no_space, translate_error
from tocsin.stores.sqlite.dialect import DIALECT

#: How long to wait for a transaction that recovers the log.
_GLANCE_TIMEOUT_MS = 5_000
_KEYS = f"SELECT record_value FROM records WHERE record_kind = '{API_KEYS}' AND record_key <> ''"
_TRANSFER = "SELECT record_value FROM records WHERE record_kind = 'transfer' AND record_key = 'state'"
#: How long the copy waits for another process's lock, such as that of a database which is being opened.
_COPY_TIMEOUT_MS = 30_000
#: Of the WAL of a database that no longer has one, and of one whose server was killed.
BESIDE = ("-wal", "-shm", "-journal")


class Glance(NamedTuple):
    """What a database records about itself. `key_expiries` in microseconds, None: never. `transfer`: the record of its part
    in one, as `tocsin.server.transfer_mark` has it; None if there is none."""

    application: int
    schema: int
    format: int | None
    readable_from: int | None
    key_expiries: list[int | None]
    transfer: str | None


def glance(path: Path, *, alone: bool) -> Glance:
    """Reads the file. `alone`: no server uses it; a file that was closed in order is then read without creating the files
    that connections share. Raises StoreError."""
    closed = alone and not path.with_name(path.name + "-wal").exists()
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if closed else ''}"
    try:
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(_GLANCE_TIMEOUT_MS)
            schema = connection.pragma("user_version")
            application = connection.pragma("application_id")
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            meta = dict(connection.execute("SELECT meta_name, meta_value FROM meta")) if "meta" in tables else {}
            records = connection.execute(_KEYS) if "records" in tables else ()
            expiries = [msgspec.json.decode(record, type=ApiKey).expires_at for (record,) in records]
            marks = connection.execute(_TRANSFER).fetchall() if "records" in tables else []
            transfer = next((str(mark) for (mark,) in marks), None)
            return Glance(application, schema, meta.get("format"), meta.get("readable_from"), expiries, transfer)
        finally:
            connection.close()
    except (apsw.Error, msgspec.DecodeError) as error:
        raise _translated(error, path) from error


def copy_database(source: Path, target: Path) -> None:
    """Copies the state of one moment into a new private file, durably, while other processes read and write the source, and
    checks the copy. The source's log can't be truncated until it is copied. Raises StoreCorrupted if the source is damaged,
    other StoreErrors, OSError."""
    make_database(target)
    try:
        # Not read-only: the last connection to close removes the log, which opening a database creates.
        reading = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _copy(reading, target)
        finally:
            reading.close()
        _check(target, source)
    except apsw.Error as error:
        if isinstance(error, apsw.FullError) or has_no_space(target.parent):
            raise no_space(target.parent) from error
        raise _translated(error, source) from error
    sync(target)
    sync(target.parent)


def _copy(reading: apsw.Connection, target: Path) -> None:
    reading.set_busy_timeout(_COPY_TIMEOUT_MS)
    reading.pragma("query_only", True)
    writing = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        # In one step: a write of another process between two steps would start it over.
        with writing.backup("main", reading, "main") as copying:
            copying.step(-1)
    finally:
        writing.close()


def _check(copy: Path, source: Path) -> None:
    """Looks at all pages and rows of a copy, without what is in indexes: a new one can be made of those."""
    connection = apsw.Connection(
        f"file:{quote(str(copy.absolute()))}?mode=ro&immutable=1",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )
    try:
        ((found,),) = connection.execute("PRAGMA quick_check(1)")
    finally:
        connection.close()
    if found != "ok":
        raise StoreCorrupted(
            f"{source} is damaged ({found.splitlines()[-1]}); check the disk, and restore an earlier backup"
        )


def set_in_records(path: Path, kind: str, member: str, value: bool | str, *, instead_of: str | None = None) -> None:
    """Sets a member of each record of a kind, or of those that have the other value, in a timers' database that no server
    uses. Raises StoreError."""
    with _changing(path) as connection:
        connection.execute(
            "UPDATE records SET record_value = json_set(record_value, '$.' || :member, json(:value)), "
            "record_version = record_version + 1 "
            "WHERE record_kind = :kind AND record_key <> '' AND CASE "
            # Damaged ones stay as they are.
            "WHEN NOT json_valid(record_value) THEN false WHEN :former IS NULL THEN true "
            "ELSE json_extract(record_value, '$.' || :member) = :former END",
            {"member": member, "value": json.dumps(value), "kind": kind, "former": instead_of},
        )


def delete_records(path: Path, kind: str, key: str, obsolete: Callable[[str], bool]) -> None:
    """Removes all records of a kind if the one with the key is obsolete, in a timers' database that no server uses. Raises
    StoreError."""
    of_key = "SELECT record_value FROM records WHERE record_kind = ? AND record_key = ?"
    with _changing(path) as connection:
        if any(obsolete(str(value)) for (value,) in connection.execute(of_key, (kind, key)).fetchall()):
            connection.execute("DELETE FROM records WHERE record_kind = ? AND record_key <> ''", (kind,))


def begin_epochs(path: Path, raised: int) -> None:
    """Clears the owners of all shards, and raises their epochs by this number, in a timers' database that no server uses.
    Raises StoreError."""
    with _changing(path) as connection:
        shards = [(raised, shard_id) for shard_id, _, _ in connection.execute(DIALECT.shards)]
        connection.executemany(
            f"UPDATE timers SET shard_owner = NULL, shard_version = shard_version + ? WHERE {DIALECT.shard_row}", shards
        )


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[apsw.Connection]:
    """A transaction without a log: the file alone is the database. Raises StoreError."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.pragma("journal_mode", "delete")
            with connection:
                yield connection
        finally:
            connection.close()
    except apsw.Error as error:
        raise _translated(error, path) from error


def _translated(error: Exception, path: Path) -> StoreError:
    translated = translate_error(error, path)
    return translated if isinstance(translated, StoreError) else StoreUnavailable(f"{path}: {error}")
