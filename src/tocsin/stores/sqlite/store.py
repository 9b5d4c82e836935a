"""The embedded store: one SQLite file, one writing thread, two reading threads.

This file has the life cycle, the threads, and the translation of errors. The statements on timers are in `sqlite_write`,
`sqlite_read` and `sqlite_list`.
"""

from __future__ import annotations

import asyncio
import builtins
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry
from tocsin.model.errors import ConfigError, StoreError, StoreUnavailable
from tocsin.model.namespace import Namespace, decode_namespace, encode_namespace
from tocsin.ports.store import (
    KEY_MAX,
    Applied,
    AuditQuery,
    Capabilities,
    FireKey,
    Found,
    Listed,
    ListQuery,
    Loaded,
    Member,
    ShardBatch,
    ShardState,
    SignIn,
)
from tocsin.private_files import make_database, make_folder
from tocsin.stores import TOTAL_SHARDS_DEFAULT, shards_are_fixed
from tocsin.stores.sqlite import access as sqlite_access
from tocsin.stores.sqlite import lists as sqlite_list
from tocsin.stores.sqlite import reads as sqlite_read
from tocsin.stores.sqlite import writes as sqlite_write
from tocsin.stores.sqlite.checkpoint import Checkpointer
from tocsin.stores.sqlite.connection import (
    TRANSLATED,
    CommitFailed,
    SqliteSettings,
    connect,
    migrate,
    transact,
    translate_error,
)
from tocsin.stores.sqlite.lock import FolderLock
from tocsin.stores.sqlite.rows import LIVE, SUSPENDED

T = TypeVar("T")

_key_encoder = msgspec.json.Encoder()
_key_decoder = msgspec.json.Decoder(ApiKey)

_MIB = 1024 * 1024


class _ConnectionThread:
    """A thread with a connection that only it uses."""

    def __init__(self, name: str, connection: apsw.Connection) -> None:
        self.connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"tocsin-sqlite-{name}")

    async def run(self, work: Callable[[apsw.Connection], T]) -> T:
        """Runs `work` in the thread. Work that has begun continues to its end if the caller is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self.connection)

    async def close(self) -> None:
        """Waits for the work under way, then closes the connection."""
        await self.run(lambda connection: connection.close())
        self._thread.shutdown()


class SqliteStore:
    """Timers in the SQLite file at `path`.

    `node` False does not take the folder's lock, for administration beside a running server. With `synchronous` FULL an
    acknowledged write survives a power failure, with NORMAL only a crash of the process. `cache_bytes` is the page cache of
    the writing connection, `read_cache_bytes` that of each reading one; `mmap_bytes` maps that much of the file instead of
    reading it. A thread checkpoints the write-ahead log (WAL) after every `wal_checkpoint_pages` pages; the WAL file is then
    truncated to `wal_bytes_max`. `busy_timeout_ms` limits the wait for another process's transaction. `read_bytes_max` limits
    the records in one page of `load` or `list`.

    `on_commit_io_error` is called in the writing thread when a COMMIT fails with an I/O error. What is on the disk is unknown
    then: the call raises OutcomeUnknown, and every later write is refused with StoreUnavailable until the file is opened
    again. `on_checkpoint_error` is called, in any thread, when a checkpoint fails; no data is lost, the WAL keeps growing.
    """

    capabilities = Capabilities(range_delete=True, exclusive=True)

    def __init__(
        self,
        path: str | Path,
        *,
        node: bool = True,
        synchronous: str = "FULL",
        page_bytes: int = 4096,
        cache_bytes: int = 64 * _MIB,
        read_cache_bytes: int = 8 * _MIB,
        mmap_bytes: int = 0,
        wal_checkpoint_pages: int = 20_000,
        wal_bytes_max: int = 256 * _MIB,
        busy_timeout_ms: int = 5_000,
        read_bytes_max: int = 16 * _MIB,
        vfs: str | None = None,
        on_commit_io_error: Callable[[Exception], None] | None = None,
        on_checkpoint_error: Callable[[Exception], None] | None = None,
    ) -> None:
        if synchronous not in ("FULL", "NORMAL", "EXTRA"):
            raise ConfigError(f"synchronous is {synchronous!r}; use FULL, NORMAL or EXTRA")
        self._path = Path(path)
        self._settings = SqliteSettings(
            path=self._path,
            synchronous=synchronous,
            page_bytes=page_bytes,
            cache_bytes=cache_bytes,
            mmap_bytes=mmap_bytes,
            wal_checkpoint_pages=wal_checkpoint_pages,
            wal_bytes_max=wal_bytes_max,
            busy_timeout_ms=busy_timeout_ms,
            vfs=vfs,
        )
        self._read_cache_bytes = read_cache_bytes
        self._read_bytes_max = read_bytes_max
        self._lock = FolderLock(self._path.parent) if node else None
        self._threads: list[_ConnectionThread] = []
        self._commit_io_error: str | None = None
        self._checkpointer: Checkpointer | None = None
        self.on_commit_io_error = on_commit_io_error
        self.on_checkpoint_error = on_checkpoint_error

    async def open(self, total_shards: int | None) -> int:
        """Connects, migrates the schema, and fixes the number of shards at first use; returns the number in force. Creates
        the folder and the file if they are missing."""
        if self._threads:
            raise ConfigError(f"{self._path} is already open")
        return await asyncio.get_running_loop().run_in_executor(None, self._open, total_shards)

    def _open(self, total_shards: int | None) -> int:
        try:
            make_folder(self._path.parent)
        except OSError as error:
            raise StoreUnavailable(f"the data folder {self._path.parent} can't be created: {error.strerror}") from error
        if self._lock is not None:
            self._lock.acquire()
        connections: list[apsw.Connection] = []
        try:
            make_database(self._path)
            writer = connect(self._settings, cache_bytes=self._settings.cache_bytes, read_only=False)
            connections.append(writer)
            migrate(writer, self._path)
            number = transact(writer, lambda: _fix_total_shards(writer, total_shards))
            for _ in range(2):
                reader = connect(self._settings, cache_bytes=self._read_cache_bytes, read_only=True)
                connections.append(reader)
            if self._lock is not None:
                self._start_checkpointer(writer)
        except BaseException as error:
            for connection in connections:
                connection.close()
            if self._lock is not None:
                self._lock.release()
            if isinstance(error, TRANSLATED):
                raise translate_error(error, self._path) from error
            if isinstance(error, OSError):
                raise StoreUnavailable(f"{self._path} can't be created: {error.strerror}") from error
            raise
        self._threads = [_ConnectionThread(*pair) for pair in zip(("write", "load", "read"), connections, strict=True)]
        return number

    def _start_checkpointer(self, writer: apsw.Connection) -> None:
        connection = connect(self._settings, cache_bytes=self._read_cache_bytes, read_only=False)
        for each in (writer, connection):
            each.pragma("wal_autocheckpoint", 0)
        self._checkpointer = Checkpointer(connection, self._settings.wal_checkpoint_pages, self._checkpoint_failed)

    def _checkpoint_failed(self, error: Exception) -> None:
        if self.on_checkpoint_error is not None:
            self.on_checkpoint_error(translate_error(error, self._path))

    async def close(self) -> None:
        """Waits for calls under way and disconnects. Closing the last connection checkpoints the WAL."""
        # The writer is closed last: reading connections can't checkpoint.
        threads, self._threads = self._threads[::-1], []
        checkpointer, self._checkpointer = self._checkpointer, None
        try:
            if checkpointer is not None:
                await asyncio.get_running_loop().run_in_executor(None, checkpointer.close)
            for thread in threads:
                await thread.close()
        except apsw.Error as error:
            raise translate_error(error, self._path) from error
        finally:
            if threads and self._lock is not None:
                self._lock.release()

    async def now(self) -> int:
        """The machine's clock, because the store is exclusive."""
        return time.time_ns() // 1000

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return await self._load(sqlite_read.shards)

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch."""
        return await self._write(
            lambda connection: sqlite_write.claim(connection, shard_id, expected_epoch, owner, presumed_dead)
        )

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        return await self._write(lambda connection: sqlite_write.release(connection, shard_id, epoch, owner))

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds."""
        await self._write(lambda connection: sqlite_write.put_member(connection, member))
        return await self.now()

    async def members(self) -> builtins.list[Member]:
        """All member rows."""
        return await self._load(sqlite_read.members)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row; with `counter`, only while the member's heartbeat counter is still that one, so that a member
        that has resumed meanwhile stays."""
        sql = "DELETE FROM members WHERE member_incarnation = ?1 AND (?2 IS NULL OR member_counter = ?2)"
        await self._write(lambda connection: _changes(connection, sql, incarnation, counter))

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. One transaction, one
        fsync."""
        if not batches:
            return []
        return await self._write(lambda connection: sqlite_write.apply(connection, batches))

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first, from a snapshot
        that began after the call."""
        bytes_max = self._read_bytes_max
        return await self._load(
            lambda connection: sqlite_read.load(connection, LIVE, shard_id, after, up_to, limit, bytes_max)
        )

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        bytes_max = self._read_bytes_max
        return await self._load(
            lambda connection: sqlite_read.load(connection, SUSPENDED, shard_id, after, KEY_MAX, limit, bytes_max)
        )

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        return await self._load(lambda connection: sqlite_read.fetch(connection, shard_id, uuids))

    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished."""
        bytes_max = self._read_bytes_max
        return await self._read(
            lambda connection: _snapshot(connection, lambda: sqlite_list.list_rows(connection, query, bytes_max))
        )

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history rows with expires_at ≤ now_us and returns how many."""
        return await self._write(lambda connection: sqlite_write.purge_history(connection, now_us, limit))

    # -- administration

    async def namespaces(self) -> builtins.list[Namespace]:
        """All namespaces, by name."""
        sql = "SELECT namespace_record FROM namespaces ORDER BY namespace_name"
        return [decode_namespace(record) for record in await self._records(sql)]

    async def put_namespace(self, namespace: Namespace, *, create: bool) -> bool:
        """With `create`, inserts the namespace; False when it already exists."""
        record = encode_namespace(namespace).decode()
        if create:
            sql = "INSERT INTO namespaces (namespace_record, namespace_name) VALUES (?, ?) ON CONFLICT DO NOTHING"
            return await self._write(lambda connection: _changes(connection, sql, record, namespace.name) > 0)
        sql = (
            "UPDATE namespaces SET namespace_record = ? WHERE namespace_name = ? "
            "AND coalesce(json_extract(namespace_record, '$.version'), 0) = ?"
        )
        former = namespace.version - 1
        return await self._write(lambda connection: _changes(connection, sql, record, namespace.name, former) > 0)

    async def api_keys(self) -> builtins.list[ApiKey]:
        """All API keys, by key_id."""
        sql = "SELECT key_record FROM api_keys ORDER BY key_id"
        return [_key_decoder.decode(record) for record in await self._records(sql)]

    async def put_api_key(self, key: ApiKey) -> None:
        """Inserts the key, or replaces the one with its `key_id`."""
        sql = "INSERT OR REPLACE INTO api_keys (key_id, key_record) VALUES (?, ?)"
        record = _key_encoder.encode(key).decode()
        await self._write(lambda connection: _changes(connection, sql, key.key_id, record))

    async def delete_api_key(self, key_id: str) -> bool:
        """Removes the key and its sign-ins."""
        return await self._write(lambda connection: sqlite_access.delete_api_key(connection, key_id))

    async def shared_secret(self, name: str, fresh: str) -> str:
        """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
        stored."""

        def kept(connection: apsw.Connection) -> str:
            connection.execute("INSERT INTO secrets VALUES (?, ?) ON CONFLICT DO NOTHING", (name, fresh))
            return str(connection.execute("SELECT secret_value FROM secrets WHERE secret_name = ?", (name,)).get)

        return await self._write(kept)

    async def put_sign_in(self, sign_in: SignIn, now_us: int, keep: int) -> None:
        """Stores a sign-in, or replaces the one with its `token_hash`."""
        await self._write(lambda connection: sqlite_access.put_sign_in(connection, sign_in, now_us, keep))

    async def sign_ins(self, token_hashes: Sequence[str]) -> builtins.list[SignIn]:
        """The stored sign-ins with these token hashes, expired ones included, in any order."""
        return await self._read(lambda connection: sqlite_access.sign_ins(connection, token_hashes))

    async def touch_sign_in(self, token_hash: str, seen_at: int) -> bool:
        """Updates the sign-in's last use, never to an earlier instant."""
        return await self._write(lambda connection: _changes(connection, sqlite_access.TOUCH, token_hash, seen_at) > 0)

    async def delete_sign_in(self, token_hash: str) -> bool:
        """Removes the sign-in."""
        sql = "DELETE FROM sign_ins WHERE sign_in_token_hash = ?"
        return await self._write(lambda connection: _changes(connection, sql, token_hash) > 0)

    async def put_audit(self, entry: AuditEntry) -> None:
        """Stores an entry."""
        await self._write(lambda connection: sqlite_access.put_audit(connection, entry))

    async def audit(self, query: AuditQuery) -> builtins.list[AuditEntry]:
        """At most `limit` entries by (at, entry_id), descending."""
        return await self._read(lambda connection: sqlite_access.audit(connection, query))

    async def purge_audit(self, before_us: int, limit: int) -> int:
        """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
        return await self._write(lambda connection: _changes(connection, sqlite_access.PURGE_AUDIT, before_us, limit))

    # -- threads

    async def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._thread(0).run(lambda connection: self._transact(connection, work))

    async def _load(self, work: Callable[[apsw.Connection], T]) -> T:
        """The engine's reads have a thread of their own, so that a long list never delays them."""
        return await self._thread(1).run(lambda connection: self._translated(connection, work))

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._thread(2).run(lambda connection: self._translated(connection, work))

    async def _records(self, sql: str) -> builtins.list[bytes]:
        return await self._read(lambda connection: [row[0].encode() for row in connection.execute(sql)])

    def _thread(self, index: int) -> _ConnectionThread:
        if not self._threads:
            raise StoreUnavailable(f"{self._path} is not open")
        return self._threads[index]

    def _transact(self, connection: apsw.Connection, work: Callable[[apsw.Connection], T]) -> T:
        if self._commit_io_error is not None:
            raise StoreUnavailable(
                f"{self._path} accepts no writes after a failed commit ({self._commit_io_error}); check the disk and restart"
            )
        try:
            result = transact(connection, lambda: work(connection))
        except CommitFailed as error:
            raise self._commit_failed(error) from error
        except TRANSLATED as error:
            raise translate_error(error, self._path) from error
        if self._checkpointer is not None:
            self._checkpointer.committed(connection)
        return result

    def _commit_failed(self, error: CommitFailed) -> StoreError:
        store_error = translate_error(error, self._path)
        if isinstance(error.__cause__, apsw.IOError):
            # After a failed fsync the kernel may have dropped the pages, and the next fsync would report success.
            self._commit_io_error = str(error)
            if self.on_commit_io_error is not None:
                self.on_commit_io_error(store_error)
        return store_error

    def _translated(self, connection: apsw.Connection, work: Callable[[apsw.Connection], T]) -> T:
        try:
            return work(connection)
        except (*TRANSLATED, msgspec.DecodeError) as error:
            raise translate_error(error, self._path) from error


def _fix_total_shards(connection: apsw.Connection, wanted: int | None) -> int:
    """Fixes the number of shards and returns it. Until the first claim there is no data, and the number may still change."""
    fixed: int | None = connection.execute("SELECT meta_value FROM meta WHERE meta_name = 'total_shards'").get
    if fixed is not None and wanted in (None, fixed):
        return fixed
    if fixed is not None and connection.execute("SELECT 1 FROM timers LIMIT 1").get is not None:
        raise shards_are_fixed(fixed, wanted)
    number = wanted or TOTAL_SHARDS_DEFAULT
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('total_shards', ?)", (number,))
    return number


def _changes(connection: apsw.Connection, sql: str, *values: Any) -> int:
    connection.execute(sql, values)
    return connection.changes()


def _snapshot(connection: apsw.Connection, work: Callable[[], T]) -> T:
    connection.execute("BEGIN")
    try:
        return work()
    finally:
        connection.execute("ROLLBACK")
