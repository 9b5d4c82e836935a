"""Connections to a SQLite file: settings, migrations, transactions, and translation of errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TypeVar

import apsw

from tocsin.model.errors import (
    DefiniteFailure,
    OutcomeUnknown,
    SchemaTooNew,
    StoreCorrupted,
    StoreError,
    StoreUnavailable,
)

T = TypeVar("T")

#: Marks the file as Tocsin's ("Tocs"), so that another application's database is not taken for an old one of Tocsin.
APPLICATION_ID = 0x546F6373

#: The largest statements have about 12 KiB of text and a few dozen sizes.
_STATEMENTS_CACHED = 256

_MIGRATION_NAME = re.compile(r"(\d{4})_\w+\.sql")

_UNAVAILABLE = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.AuthError,
    apsw.NoMemError,
    apsw.NoLFSError,
    apsw.ProtocolError,
    apsw.SchemaChangeError,
    apsw.InterruptError,
)

#: Raised by Python or apsw for a value that can't be bound: nothing was written, and other values may be accepted.
_BAD_VALUE = (TypeError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class SqliteSettings:
    """The settings of `SqliteStore`, which documents each."""

    path: Path
    synchronous: str
    page_bytes: int
    cache_bytes: int
    mmap_bytes: int
    wal_checkpoint_pages: int
    wal_bytes_max: int
    busy_timeout_ms: int
    vfs: str | None


def connect(settings: SqliteSettings, *, cache_bytes: int, read_only: bool) -> apsw.Connection:
    """Opens a connection with these settings. A writing one creates the file. Raises apsw's errors."""
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    connection = apsw.Connection(
        str(settings.path), flags=flags, vfs=settings.vfs, statementcachesize=_STATEMENTS_CACHED
    )
    try:
        connection.set_busy_timeout(settings.busy_timeout_ms)
        if read_only:
            connection.pragma("query_only", True)
        else:
            connection.pragma("page_size", settings.page_bytes)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", settings.synchronous)
            connection.pragma("wal_autocheckpoint", settings.wal_checkpoint_pages)
            connection.pragma("journal_size_limit", settings.wal_bytes_max)
        connection.pragma("cache_size", -(cache_bytes // 1024))
        connection.pragma("mmap_size", settings.mmap_bytes)
        connection.pragma("temp_store", "memory")
        connection.pragma("trusted_schema", False)
    except BaseException:
        connection.close()
        raise
    return connection


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = resources.files("tocsin.stores.sqlite") / "migrations"
    found = ((match, file) for file in folder.iterdir() if (match := _MIGRATION_NAME.fullmatch(file.name)))
    return sorted((int(match[1]), file.read_text(encoding="utf-8")) for match, file in found)


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Migrates the schema to the newest version, each step in its own transaction, forward only.

    Raises SchemaTooNew for a file of a newer release, StoreCorrupted for a database that is not Tocsin's.
    """
    steps = migrations()
    newest = steps[-1][0]
    version = connection.pragma("user_version")
    if version > newest:
        raise SchemaTooNew(
            f"{path} has schema version {version}, this release supports versions up to {newest}; run the newer release, or "
            "restore a backup"
        )
    foreign = connection.pragma("application_id") != APPLICATION_ID
    if foreign and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StoreCorrupted(f"{path} is a SQLite database of another application; use another file")
    for number, sql in steps:
        if number > version:
            transact(connection, partial(_migrate_step, connection, number, sql))


def _migrate_step(connection: apsw.Connection, number: int, sql: str) -> None:
    # Another process may have migrated first; only the version read inside the transaction counts.
    if connection.pragma("user_version") < number:
        connection.execute(sql)
        connection.pragma("user_version", number)
        connection.pragma("application_id", APPLICATION_ID)


class CommitFailed(Exception):
    """COMMIT itself failed; the cause is the driver's error."""


def transact(connection: apsw.Connection, work: Callable[[], T]) -> T:
    """Runs `work` in one write transaction: durable when this returns, rolled back when it raises.

    BEGIN IMMEDIATE takes the write lock at once, so that a busy file fails before any work is done. Raises CommitFailed from
    the driver's error if COMMIT fails.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work()
    except BaseException:
        _rollback(connection)
        raise
    try:
        connection.execute("COMMIT")
    except apsw.Error as error:
        _rollback(connection)
        raise CommitFailed(str(error)) from error
    return result


def _rollback(connection: apsw.Connection) -> None:
    # SQLite rolls back by itself on some errors, a full disk among them.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def translate_error(error: Exception, path: Path) -> StoreError:
    """The store error for a driver's error."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, CommitFailed):
        cause = error.__cause__
        if isinstance(cause, apsw.IOError):
            return OutcomeUnknown(f"{path}: the commit failed with an I/O error: {cause}")
        error = cause if isinstance(cause, apsw.Error) else error
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return StoreCorrupted(
            f"{path} is damaged or not a SQLite database ({error}); stop Tocsin, copy the file, then restore a backup, or "
            f"recover what is readable with: sqlite3 {path.name} .recover"
        )
    if isinstance(error, _UNAVAILABLE):
        return StoreUnavailable(f"{path}: {error}")
    return DefiniteFailure(f"{path}: {type(error).__name__}: {error}")


#: The errors that `translate_error` takes; any other is a defect of the program and is not translated.
TRANSLATED = (apsw.Error, CommitFailed, *_BAD_VALUE)
