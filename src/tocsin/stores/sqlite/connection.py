"""Connections to a SQLite file: parameters, migrations, transactions, and translation of errors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreCorrupted, StoreError, StoreFull, StoreUnavailable
from tocsin.ports.store import FORMAT, refuse_other_format
from tocsin.sql.migrations import migrations_of, pending, readable_from
from tocsin.stores.options import SqliteOptions
from tocsin.stores.sqlite.dialect import DIALECT

E = TypeVar("E", bound=BaseException)
T = TypeVar("T")

#: Marks the file as Tocsin's ("Tocs"), so that another application's database is not taken for an old one of Tocsin.
APPLICATION_ID = 0x546F6373

#: SQLite can't open a database in less: its shared memory file has 32 KiB.
NEEDED_BYTES = 64 * 1024

#: The largest statements have about 12 KiB of text and a few dozen sizes.
_STATEMENTS_CACHED = 256

#: The file can't be used for now, or not by this process.
_UNAVAILABLE = (
    apsw.AuthError,
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.InterruptError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoLFSError,
    apsw.NoMemError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
    apsw.SchemaChangeError,
)

#: What `sync_wal` reads and writes at once.
_CHUNK_BYTES = 1024 * 1024

#: Raised by Python or apsw for a value that can't be bound: nothing was written, and other values may be accepted. And by a
#: decoder, for one that can't be read.
_BAD_VALUE = (TypeError, ValueError, OverflowError, msgspec.DecodeError)


def connect(path: Path, options: SqliteOptions, *, cache_bytes: int, read_only: bool) -> apsw.Connection:
    """Opens a connection with a page cache of this size. A writing one creates the file. Raises apsw's errors."""
    flags = apsw.SQLITE_OPEN_READWRITE | (0 if read_only else apsw.SQLITE_OPEN_CREATE)
    connection = apsw.Connection(str(path), flags=flags, vfs=options.vfs, statementcachesize=_STATEMENTS_CACHED)
    try:
        connection.set_busy_timeout(options.busy_timeout_ms)
        if read_only:
            connection.pragma("query_only", True)
        else:
            connection.pragma("page_size", options.page_bytes)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", options.synchronous)
            connection.pragma("wal_autocheckpoint", options.wal_checkpoint_pages)
            connection.pragma("journal_size_limit", options.wal_bytes_max)
        connection.pragma("cache_size", -(cache_bytes // 1024))
        connection.pragma("mmap_size", 0)
        connection.pragma("temp_store", "memory")
        connection.pragma("trusted_schema", False)
    except BaseException:
        connection.close()
        raise
    return connection


def sync_wal(connection: apsw.Connection, path: Path) -> None:
    """Writes the bytes of a WAL that an earlier process left once more, and syncs them. Other connections wait.

    If that process ended because an fsync failed, the kernel may hold pages of the WAL that are not on the disk and that it
    considers clean: no later fsync would write them. SQLite recovers them, and appends commits that a power cut would lose,
    because recovery ends at the gap. Raises StoreUnavailable if the file can't be written, or apsw's errors.
    """
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or wal.stat().st_size == 0:
        return
    # Administration may be connected: nobody appends or starts the WAL over while this lock is held.
    connection.execute("BEGIN IMMEDIATE")
    try:
        with wal.open("r+b") as file:
            while chunk := file.read(_CHUNK_BYTES):
                file.seek(-len(chunk), os.SEEK_CUR)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreUnavailable(
            f"{wal} can't be synced: {error.strerror}; check the disk, then start again. Don't delete the file: it has "
            "accepted writes"
        ) from error
    finally:
        connection.execute("ROLLBACK")


migrations = partial(migrations_of, "tocsin.stores.sqlite")


def migrate(
    connection: apsw.Connection,
    place: str | Path,
    known: list[tuple[int, str]] | None = None,
    *,
    application_id: int = APPLICATION_ID,
    meta: str = "meta",
) -> None:
    """Migrates the schema to the newest version, each step in its own transaction, forward only.

    `known` are the migrations, by default the timers'; the table `meta` has the format. Raises SchemaTooNew for a file of a
    newer release, StoreCorrupted for a database that is not Tocsin's, or has another format.
    """
    known = migrations() if known is None else known
    version = connection.pragma("user_version")
    foreign = connection.pragma("application_id") != application_id
    ours = version > 0 and not foreign
    if ours:
        refuse_other_format(str(place), _meta(connection, meta, "format"))
    steps = pending(known, version, str(place), _meta(connection, meta, "readable_from") if ours else None)
    if foreign and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StoreCorrupted(f"{place} is a SQLite database of another application; use another file")
    for count, (number, sql) in enumerate(known, 1):
        if (number, sql) in steps:
            values = {"readable_from": readable_from(known[:count]), "format": FORMAT}
            transact(connection, partial(_migrate_step, connection, number, sql, application_id, meta, values))


def _migrate_step(
    connection: apsw.Connection, number: int, sql: str, application_id: int, meta: str, values: dict[str, int]
) -> None:
    # Another process may have migrated first; only the version read inside the transaction counts.
    if connection.pragma("user_version") < number:
        connection.execute(sql)
        connection.pragma("user_version", number)
        connection.pragma("application_id", application_id)
        put = f"INSERT INTO {meta} VALUES (?, ?)" + DIALECT.or_update("meta_name", "meta_value")
        connection.executemany(put, values.items())


def _meta(connection: apsw.Connection, table: str, name: str) -> int | None:
    found: int | None = connection.execute(f"SELECT meta_value FROM {table} WHERE meta_name = ?", (name,)).get
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


def unwritable_after(path: Path | str, reason: str) -> StoreUnavailable:
    """The error for a write after a COMMIT that has failed with an I/O error."""
    return StoreUnavailable(f"{path} accepts no writes after a failed commit ({reason}); check the disk and restart")


def translate_error(error: E, path: Path | str, *, in_commit: bool = False) -> E | StoreError:
    """The store error for an error of the driver, or of a value. Any other is a defect of the program and returned as it
    is.

    A COMMIT that can't write (a read-only file system, an exceeded quota) has failed, as on a full disk: the frame that ends
    the transaction is written last, without it recovery ignores the others, and the next commit overwrites them. After any
    other I/O error, such as that of a sync, the outcome is unknown.
    """
    if not isinstance(error, (apsw.Error, *_BAD_VALUE)):
        return error
    text = f"{path}: {error}"
    if in_commit and isinstance(error, apsw.IOError) and not _is_of_a_write(error):
        return OutcomeUnknown(f"{path}: the commit failed with an I/O error: {error}")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreCorrupted(
            f"{path} is damaged or not a SQLite database ({error}); stop Tocsin, copy the file, then restore a backup, or "
            f"recover what is readable with: sqlite3 {Path(path).name} .recover"
        )
    if isinstance(error, apsw.FullError):
        return StoreFull(text)
    if isinstance(error, _UNAVAILABLE):
        return StoreUnavailable(text)
    return DefiniteFailure(f"{path}: {type(error).__name__}: {error}")


def _is_of_a_write(error: apsw.IOError) -> bool:
    # Errors that SQLite did not raise, such as those of a VFS in Python, have no code.
    return bool(getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_WRITE)
