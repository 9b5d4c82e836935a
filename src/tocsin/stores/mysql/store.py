"""The store in a MySQL or MariaDB database, which several nodes may share.

This file has the life cycle, the use of connections, and the administrative records. The statements on timers are in
`mysql_write`, `mysql_read` and `mysql_list`.
"""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec
from asyncmy import errors

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry
from tocsin.model.errors import ConfigError, StoreUnavailable
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
from tocsin.sql.keys import LeftEdges
from tocsin.sql.pool import Activity, Commits, WriterLane
from tocsin.sql.rows import LIVE, SUSPENDED
from tocsin.stores.mysql import access as mysql_access
from tocsin.stores.mysql import lists as mysql_list
from tocsin.stores.mysql import reads as mysql_read
from tocsin.stores.mysql import writes as mysql_write
from tocsin.stores.mysql.connection import MysqlPool, MysqlSettings
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.errors import DUPLICATE, code_of
from tocsin.stores.mysql.schema import prepare
from tocsin.stores.mysql.text import hexed, text

T = TypeVar("T")

_key_encoder = msgspec.json.Encoder()
_key_decoder = msgspec.json.Decoder(ApiKey)

_MIB = 1024 * 1024


class MysqlStore:
    """Timers in the MySQL or MariaDB database at `url` (`mysql://user:password@host:port/database`), which any number of
    nodes may share.

    The database belongs to Tocsin alone, and is created if it is missing. Each of `writers` connections commits for its own
    share of the shards, one batch after another. `loaders` connections serve the engine (loads, claims, heartbeats),
    `readers` connections lists and administration, so that a long list never delays a claim. Connections are opened when
    needed, and again after they broke.

    The server ends a statement after `statement_timeout_s` (MySQL only one that reads). If its answer takes `answer_grace_s`
    longer, the connection is closed, and a write's outcome is unknown if it was a COMMIT's answer. `lock_timeout_s`, in whole
    seconds, limits the wait for another transaction, `connect_timeout_s` that for a new connection, `acquire_timeout_s` that
    for a free connection of a pool. The server ends a transaction whose client has been idle for
    `idle_transaction_timeout_s`, in whole seconds; MySQL ends any idle session after it.

    `read_bytes_max` limits the records in one page of `load` or `list`, `statement_bytes_max` (and the server's
    max_allowed_packet) a packet, `delete_rows_max` the rows of a range that one statement deletes. A transaction that the
    server rolled back in favour of another is repeated up to `undone_retries_max` times. With `durable`, a server is refused
    that acknowledges commits before they are on disk. Without `create`, a missing database or missing tables raise
    StoreUnavailable.
    """

    capabilities = Capabilities(range_delete=True, exclusive=False)

    def __init__(
        self,
        url: str,
        *,
        writers: int = 1,
        loaders: int = 3,
        readers: int = 2,
        connect_timeout_s: float = 5.0,
        statement_timeout_s: float = 20.0,
        answer_grace_s: float = 5.0,
        lock_timeout_s: float = 10.0,
        acquire_timeout_s: float = 10.0,
        idle_transaction_timeout_s: float = 3.0,
        read_bytes_max: int = 16 * _MIB,
        statement_bytes_max: int = 4 * _MIB,
        delete_rows_max: int = 10_000,
        undone_retries_max: int = 5,
        durable: bool = True,
        application_name: str = "tocsin",
        create: bool = True,
    ) -> None:
        self._settings = MysqlSettings(
            url=url,
            application_name=application_name,
            connect_timeout_s=connect_timeout_s,
            statement_timeout_s=statement_timeout_s,
            answer_grace_s=answer_grace_s,
            lock_timeout_s=lock_timeout_s,
            acquire_timeout_s=acquire_timeout_s,
            idle_transaction_timeout_s=idle_transaction_timeout_s,
            durable=durable,
        )
        self._create = create
        self._sizes = (writers, loaders, readers)
        self._read_bytes_max = read_bytes_max
        self._limits = mysql_write.WriteLimits(statement_bytes_max, delete_rows_max, undone_retries_max)
        self._total_shards = 0
        self._lanes: builtins.list[WriterLane[MysqlPool]] = []
        self._loaders: MysqlPool | None = None
        self._readers: MysqlPool | None = None
        self._commits = Commits()
        self._edges = LeftEdges()

    async def open(self, total_shards: int | None) -> int:
        """Connects, migrates the schema, and fixes the number of shards at first use; returns the number in force. Nodes
        that start at once take turns."""
        if self._lanes:
            raise ConfigError(f"{self._settings.safe_url} is open already")
        writers, loaders, readers = self._sizes
        safe_url, database = self._settings.safe_url, self._settings.database
        # A migration has no time limit. Its lock ends with its session.
        beginning = MysqlPool(self._settings, 1, database=False, bounded=False)
        try:
            number = await beginning.run(
                Activity.CONNECTING,
                lambda connection: prepare(connection, database, safe_url, total_shards, create=self._create),
                bounded=False,
            )
        finally:
            await beginning.close()
        self._total_shards = number
        self._edges = LeftEdges()
        self._loaders = MysqlPool(self._settings, loaders)
        self._readers = MysqlPool(self._settings, readers)
        self._lanes = [WriterLane(MysqlPool(self._settings, 1)) for _ in range(writers)]
        return number

    async def close(self) -> None:
        """Waits for calls under way and disconnects."""
        lanes, self._lanes = self._lanes, []
        pools = [lane.pool for lane in lanes] + [pool for pool in (self._loaders, self._readers) if pool is not None]
        self._loaders = self._readers = None
        for pool in pools:
            await pool.close()

    async def now(self) -> int:
        """The server's clock."""
        return await self._load(_now)

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return await self._load(lambda connection: mysql_read.shards(connection, self._total_shards))

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. A claim
        waits for a batch of the shard that is still under way, whichever node sent it."""
        retries = self._limits.undone_retries_max
        return await self._write(
            lambda connection: mysql_write.claim(connection, shard_id, expected_epoch, owner, presumed_dead, retries)
        )

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        return await self._changes(mysql_write.release(shard_id, epoch, owner)) > 0

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds."""

        async def beat(connection: Connection) -> int:
            await mysql_write.changes(connection, mysql_write.heartbeat(member), self._limits.undone_retries_max)
            return await _now(connection)

        return await self._write(beat)

    async def members(self) -> builtins.list[Member]:
        """All member rows."""
        return await self._load(mysql_read.members)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row; with `counter`, only while the member's heartbeat counter is still that one, so that a member
        that has resumed meanwhile stays."""
        still = b"" if counter is None else b" AND member_counter = %d" % counter
        await self._changes(b"DELETE FROM members WHERE member_incarnation = " + hexed(incarnation) + still)

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. One transaction; batches of
        one shard follow one another."""
        if not batches:
            return []
        if not self._lanes:
            raise StoreUnavailable(f"{self._settings.safe_url} is not open")
        return await self._commits.run(
            self._lanes,
            batches,
            lambda pool: pool.run_in_task(
                Activity.WRITING,
                lambda connection: mysql_write.apply(connection, batches, self._edges, self._limits),
            ),
        )

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first, from a snapshot
        that began after the call."""
        bytes_max = self._read_bytes_max
        return await self._load(
            lambda connection: mysql_read.load(connection, LIVE, shard_id, after, up_to, limit, bytes_max)
        )

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        bytes_max = self._read_bytes_max
        return await self._load(
            lambda connection: mysql_read.load(connection, SUSPENDED, shard_id, after, KEY_MAX, limit, bytes_max)
        )

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        if not uuids:
            return {}
        return await self._load(lambda connection: mysql_read.fetch(connection, shard_id, uuids))

    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished. A page is read from one snapshot."""
        bytes_max = self._read_bytes_max
        return await self._read(lambda connection: mysql_list.list_rows(connection, query, bytes_max))

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history rows with expires_at ≤ now_us and returns how many."""
        return await self._changes(mysql_write.purge(now_us, limit))

    # -- administration

    async def namespaces(self) -> builtins.list[Namespace]:
        """All namespaces, by name."""
        sql = b"SELECT namespace_record FROM namespaces ORDER BY namespace_name"
        return await self._load(lambda connection: _records(connection, sql, decode_namespace))

    async def put_namespace(self, namespace: Namespace, *, create: bool) -> bool:
        """With `create`, inserts the namespace; False when it already exists."""
        name, record = text(namespace.name), text(encode_namespace(namespace).decode())
        if not create:
            sql = (
                b"UPDATE namespaces SET namespace_record = %b WHERE namespace_name = %b "
                b"AND CAST(COALESCE(JSON_EXTRACT(namespace_record, '$.version'), 0) AS SIGNED) = %d"
            )
            return await self._changes(sql % (record, name, namespace.version - 1)) > 0
        return await self._write(
            lambda connection: self._insert(connection, b"INSERT INTO namespaces VALUES (%b, %b)" % (name, record))
        )

    async def api_keys(self) -> builtins.list[ApiKey]:
        """All API keys, by key_id."""
        sql = b"SELECT key_record FROM api_keys ORDER BY key_id"
        return await self._read(lambda connection: _records(connection, sql, _key_decoder.decode))

    async def put_api_key(self, key: ApiKey) -> None:
        """Inserts the key, or replaces the one with its `key_id`."""
        sql = b"INSERT INTO api_keys VALUES (%b, %b) ON DUPLICATE KEY UPDATE key_record = VALUES(key_record)"
        await self._changes(sql % (text(key.key_id), text(_key_encoder.encode(key).decode())))

    async def delete_api_key(self, key_id: str) -> bool:
        """Removes the key and its sign-ins."""
        return await self._together(mysql_access.delete_api_key(key_id)) > 0

    async def shared_secret(self, name: str, fresh: str) -> str:
        """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
        stored."""
        insert = b"INSERT INTO secrets VALUES (%b, %b) ON DUPLICATE KEY UPDATE secret_name = secret_name"
        await self._changes(insert % (text(name), text(fresh)))
        sql = b"SELECT secret_value FROM secrets WHERE secret_name = " + text(name)
        return str((await self._read(lambda connection: connection.rows(sql)))[0][0])

    async def put_sign_in(self, sign_in: SignIn, now_us: int, keep: int) -> None:
        """Stores a sign-in, or replaces the one with its `token_hash`."""
        await self._together(mysql_access.put_sign_in(sign_in, now_us, keep))

    async def sign_ins(self, token_hashes: Sequence[str]) -> builtins.list[SignIn]:
        """The stored sign-ins with these token hashes, expired ones included, in any order."""
        return await self._read(lambda connection: mysql_access.sign_ins(connection, token_hashes))

    async def touch_sign_in(self, token_hash: str, seen_at: int) -> bool:
        """Updates the sign-in's last use, never to an earlier instant."""
        return await self._changes(mysql_access.touch(token_hash, seen_at)) > 0

    async def delete_sign_in(self, token_hash: str) -> bool:
        """Removes the sign-in."""
        return await self._changes(mysql_access.delete_sign_in(token_hash)) > 0

    async def put_audit(self, entry: AuditEntry) -> None:
        """Stores an entry."""
        await self._changes(mysql_access.put_audit(entry))

    async def audit(self, query: AuditQuery) -> builtins.list[AuditEntry]:
        """At most `limit` entries by (at, entry_id), descending."""
        return await self._read(lambda connection: mysql_access.audit(connection, query))

    async def purge_audit(self, before_us: int, limit: int) -> int:
        """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
        return await self._changes(mysql_access.purge_audit(before_us, limit))

    # -- connections

    async def _load(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._opened(self._loaders).run(Activity.READING, work)

    async def _read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._opened(self._readers).run(Activity.READING, work)

    async def _write(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._opened(self._loaders).run(Activity.WRITING, work)

    async def _changes(self, sql: bytes) -> int:
        """Runs a statement; returns how many rows it matched."""
        retries = self._limits.undone_retries_max
        return await self._write(lambda connection: mysql_write.changes(connection, sql, retries))

    async def _together(self, statements: Sequence[bytes]) -> int:
        """Runs the statements in one transaction; returns how many rows the last one matched."""
        retries = self._limits.undone_retries_max
        return await self._write(lambda connection: mysql_access.together(connection, statements, retries))

    async def _insert(self, connection: Connection, sql: bytes) -> bool:
        """Runs an INSERT; False if the row already existed."""
        try:
            await mysql_write.changes(connection, sql, self._limits.undone_retries_max)
        except errors.IntegrityError as error:
            if code_of(error) == DUPLICATE:
                return False
            raise
        return True

    def _opened(self, pool: MysqlPool | None) -> MysqlPool:
        if pool is None:
            raise StoreUnavailable(f"{self._settings.safe_url} is not open")
        return pool


async def _now(connection: Connection) -> int:
    return int((await connection.rows(mysql_write.NOW))[0][0])


async def _records(connection: Connection, sql: bytes, decode: Callable[[bytes], T]) -> builtins.list[T]:
    return [decode(values[0].encode()) for values in await connection.rows(sql)]
