"""Connections to a SQLite file: settings, migrations, transactions, and translation of errors."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec

from tocsin.model.errors import DefiniteFailure, StoreCorrupted, StoreError, StoreFull
from tocsin.ports.store import FORMAT, refuse_other_format
from tocsin.sql.migrations import migrations_of, pending, readable_from
from tocsin.sql.sqlite_errors import CODES, store_error
from tocsin.stores.sqlite.dialect import DIALECT

E = TypeVar("E", bound=BaseException)
T = TypeVar("T")

#: Marks the file as Tocsin's ("Tocs"), so that another application's database is not taken for an old one of Tocsin.
APPLICATION_ID = 0x546F6373

#: SQLite can't open a database in less: its shared memory file has 32 KiB.
NEEDED_BYTES = 64 * 1024

#: The largest statements have about 12 KiB of text and a few dozen sizes.
_STATEMENTS_CACHED = 256

#: Result codes by the exceptions of apsw, which another VFS may raise without a code.
_CODES = {type(apsw.exceptionfor(code)): code for code in CODES}

#: Raised by Python or apsw for a value that can't be bound: nothing was written, and other values may be accepted. And by a
#: decoder, for one that can't be read.
_BAD_VALUE = (TypeError, ValueError, OverflowError, msgspec.DecodeError)


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


migrations = partial(migrations_of, "tocsin.stores.sqlite")


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Migrates the schema to the newest version, each step in its own transaction, forward only.

    Raises SchemaTooNew for a file of a newer release, StoreCorrupted for a database that is not Tocsin's, or has another
    format.
    """
    known = migrations()
    version = connection.pragma("user_version")
    ours = version > 0 and connection.pragma("application_id") == APPLICATION_ID
    if ours:
        refuse_other_format(str(path), _meta(connection, "format"))
    steps = pending(known, version, str(path), _meta(connection, "readable_from") if ours else None)
    foreign = connection.pragma("application_id") != APPLICATION_ID
    if foreign and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StoreCorrupted(f"{path} is a SQLite database of another application; use another file")
    for count, (number, sql) in enumerate(known, 1):
        if (number, sql) in steps:
            transact(connection, partial(_migrate_step, connection, number, sql, readable_from(known[:count])))


def _migrate_step(connection: apsw.Connection, number: int, sql: str, readable: int) -> None:
    # Another process may have migrated first; only the version read inside the transaction counts.
    if connection.pragma("user_version") < number:
        connection.execute(sql)
        connection.pragma("user_version", number)
        connection.pragma("application_id", APPLICATION_ID)
        _put_meta(connection, "readable_from", readable)
        _put_meta(connection, "format", FORMAT)


def _put_meta(connection: apsw.Connection, name: str, value: int) -> None:
    put = "INSERT INTO meta VALUES (?, ?)" + DIALECT.or_update("meta_name", "meta_value")
    connection.execute(put, (name, value))


def _meta(connection: apsw.Connection, name: str) -> int | None:
    found: int | None = connection.execute("SELECT meta_value FROM meta WHERE meta_name = ?", (name,)).get
    return found


def transact(connection: apsw.Connection, work: Callable[[], T]) -> T:
    """Runs `work` in one write transaction: durable when this returns, rolled back when it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work()
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls back by itself on some errors, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def has_no_space(folder: Path) -> bool:
    """Whether the folder's disk is full, which SQLite reports as an I/O error when it can't make its files."""
    return shutil.disk_usage(folder).free < NEEDED_BYTES


def no_space(folder: Path) -> StoreFull:
    """The error for a full disk."""
    return StoreFull(f"no space left in {folder}; free some, or use another disk")


def translate_error(error: E, path: Path, *, in_commit: bool = False) -> E | StoreError:
    """The store error for an error of the driver, or of a value. Any other is a defect of the program and returned as it
    is."""
    if not isinstance(error, (apsw.Error, *_BAD_VALUE)):
        return error
    known = store_error(_CODES.get(type(error), 0), error, str(path), in_commit=in_commit)
    return known or DefiniteFailure(f"{path}: {type(error).__name__}: {error}")
