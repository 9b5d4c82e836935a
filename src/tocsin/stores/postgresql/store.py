"""The store in a PostgreSQL database, which several nodes may share.

This file has the life cycle, the use of connections, and the administrative records. The statements on timers are in the
schema, `postgresql_write`, `postgresql_read` and `postgresql_list`.
"""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

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
from tocsin.stores.postgresql import access as postgresql_access
from tocsin.stores.postgresql import lists as postgresql_list
from tocsin.stores.postgresql import reads as postgresql_read
from tocsin.stores.postgresql import writes as postgresql_write
from tocsin.stores.postgresql.connection import PostgresPool, PostgresSettings
from tocsin.stores.postgresql.driver import Connection
from tocsin.stores.postgresql.schema import prepare

T = TypeVar("T")

_key_encoder = msgspec.json.Encoder()
_key_decoder = msgspec.json.Decoder(ApiKey)

_MIB = 1024 * 1024


class PostgresStore:
    """Timers in a schema of the PostgreSQL database at `url` (`postgresql://user:password@host:port/database`), which any
    number of nodes may share.

    The URL may name several hosts; the store connects to the primary. All tables are in `schema`, which is created if it is
    missing. Each of `writers` connections commits for its own share of the shards, one batch after another. `loaders`
    connections serve the engine (loads, claims, heartbeats), `readers` connections lists and administration, so that a long
    list never delays a claim. Connections are opened when needed, and again after they broke.

    The server ends a statement after `statement_timeout_s`, which is a definite failure. If its answer takes
    `answer_grace_s` longer, the connection is closed, and a write's outcome is unknown. `lock_timeout_s` limits the wait for
    another transaction, `connect_timeout_s` that for a new connection, `acquire_timeout_s` that for a free connection of a
    pool. `read_bytes_max` limits the records in one page of `load` or `list`. Without `create`, a missing schema raises
    StoreUnavailable.

    A connection pooler in between must preserve sessions (PgBouncer's transaction mode does not): statements are prepared,
    and parameters are set for the session.
    """

    capabilities = Capabilities(range_delete=True, exclusive=False)

    def __init__(
        self,
        url: str,
        *,
        schema: str = "tocsin",
        writers: int = 1,
        loaders: int = 3,
        readers: int = 2,
        connect_timeout_s: float = 5.0,
        statement_timeout_s: float = 20.0,
        answer_grace_s: float = 5.0,
        lock_timeout_s: float = 10.0,
        acquire_timeout_s: float = 10.0,
        read_bytes_max: int = 16 * _MIB,
        application_name: str = "tocsin",
        create: bool = True,
    ) -> None:
        self._settings = PostgresSettings(
            url=url,
            schema=schema,
            application_name=application_name,
            connect_timeout_s=connect_timeout_s,
            statement_timeout_s=statement_timeout_s,
            answer_grace_s=answer_grace_s,
            lock_timeout_s=lock_timeout_s,
            acquire_timeout_s=acquire_timeout_s,
        )
        self._create = create
        self._sizes = (writers, loaders, readers)
        self._read_bytes_max = read_bytes_max
        self._lanes: builtins.list[WriterLane[PostgresPool]] = []
        self._loaders: PostgresPool | None = None
        self._readers: PostgresPool | None = None
        self._commits = Commits()
        self._edges = LeftEdges()

    async def open(self, total_shards: int | None) -> int:
        """Connects, migrates the schema, and fixes the number of shards at first use; returns the number in force. Nodes
        that start at once take turns."""
        if self._lanes:
            raise ConfigError(f"{self._settings.safe_url} is already open")
        writers, loaders, readers = self._sizes
        pool = PostgresPool(self._settings, loaders)
        safe_url, schema = self._settings.safe_url, self._settings.schema
        try:
            number = await pool.run(
                Activity.CONNECTING,
                lambda connection: prepare(connection, schema, safe_url, total_shards, create=self._create),
                bounded=False,
            )
        except BaseException:
            await pool.close()
            raise
        self._edges = LeftEdges()
        self._loaders = pool
        self._readers = PostgresPool(self._settings, readers)
        self._lanes = [WriterLane(PostgresPool(self._settings, 1)) for _ in range(writers)]
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
        return int(await self._load(lambda connection: connection.fetchval(f"SELECT {postgresql_write.NOW}")))

    # -- ownership

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return await self._load(postgresql_read.shards)

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch. A claim
        waits for a batch of the shard that is still under way, whichever node sent it."""
        member, counter = presumed_dead or (None, None)
        epoch: int | None = await self._write(
            lambda connection: connection.fetchval(
                postgresql_write.CLAIM, shard_id, expected_epoch, owner, member, counter
            )
        )
        return epoch

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        return await self._changes(postgresql_write.RELEASE, shard_id, epoch, owner)

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds."""
        return int(await self._write(lambda connection: connection.fetchval(postgresql_write.HEARTBEAT, *member)))

    async def members(self) -> builtins.list[Member]:
        """All member rows."""
        return await self._load(postgresql_read.members)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row; with `counter`, only while the member's heartbeat counter is still that one, so that a member
        that has resumed meanwhile stays."""
        sql = "DELETE FROM members WHERE member_incarnation = $1 AND ($2::bigint IS NULL OR member_counter = $2)"
        await self._changes(sql, incarnation, counter)

    # -- timers

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. One statement, one
        transaction; batches of one shard follow one another."""
        if not batches:
            return []
        if not self._lanes:
            raise StoreUnavailable(f"{self._settings.safe_url} is not open")
        return await self._commits.run(
            self._lanes,
            batches,
            lambda pool: postgresql_write.apply(
                lambda work: pool.run_in_task(Activity.WRITING, work), batches, self._edges
            ),
        )

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first, from a snapshot
        that began after the call."""
        bytes_max = self._read_bytes_max
        return await self._load(
            lambda connection: postgresql_read.load(connection, LIVE, shard_id, after, up_to, limit, bytes_max)
        )

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        bytes_max = self._read_bytes_max
        return await self._load(
            lambda connection: postgresql_read.load(connection, SUSPENDED, shard_id, after, KEY_MAX, limit, bytes_max)
        )

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        if not uuids:
            return {}
        return await self._load(lambda connection: postgresql_read.fetch(connection, shard_id, uuids))

    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished. A page that needs several statements is read from several
        snapshots."""
        bytes_max = self._read_bytes_max
        return await self._read(lambda connection: postgresql_list.list_rows(connection, query, bytes_max))

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history rows with expires_at ≤ now_us and returns how many. Nodes that purge at once take
        different rows."""
        return int(await self._write(lambda connection: connection.fetchval(postgresql_write.PURGE, now_us, limit)))

    # -- administration

    async def namespaces(self) -> builtins.list[Namespace]:
        """All namespaces, by name."""
        sql = "SELECT namespace_record FROM namespaces ORDER BY namespace_name"
        return await self._load(lambda connection: _records(connection, sql, decode_namespace))

    async def put_namespace(self, namespace: Namespace, *, create: bool) -> bool:
        """With `create`, inserts the namespace; False when it already exists."""
        record = encode_namespace(namespace).decode()
        if create:
            sql = "INSERT INTO namespaces VALUES ($2, $1) ON CONFLICT DO NOTHING RETURNING 1"
            return await self._changes(sql, record, namespace.name)
        sql = (
            "UPDATE namespaces SET namespace_record = $1 WHERE namespace_name = $2 "
            "AND coalesce((namespace_record::json ->> 'version')::bigint, 0) = $3 RETURNING 1"
        )
        return await self._changes(sql, record, namespace.name, namespace.version - 1)

    async def api_keys(self) -> builtins.list[ApiKey]:
        """All API keys, by key_id."""
        sql = "SELECT key_record FROM api_keys ORDER BY key_id"
        return await self._read(lambda connection: _records(connection, sql, _key_decoder.decode))

    async def put_api_key(self, key: ApiKey) -> None:
        """Inserts the key, or replaces the one with its `key_id`."""
        sql = (
            "INSERT INTO api_keys VALUES ($1, $2) ON CONFLICT (key_id) DO UPDATE SET key_record = excluded.key_record "
            "RETURNING 1"
        )
        await self._changes(sql, key.key_id, _key_encoder.encode(key).decode())

    async def delete_api_key(self, key_id: str) -> bool:
        """Removes the key and its sign-ins."""
        return await self._changes(postgresql_access.DELETE_API_KEY, key_id)

    async def shared_secret(self, name: str, fresh: str) -> str:
        """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
        stored."""
        # The update changes nothing; it has the statement return the row that another node inserted first.
        sql = (
            "INSERT INTO secrets VALUES ($1, $2) ON CONFLICT (secret_name) DO UPDATE SET secret_name = secrets.secret_name "
            "RETURNING secret_value"
        )
        return str(await self._write(lambda connection: connection.fetchval(sql, name, fresh)))

    async def put_sign_in(self, sign_in: SignIn, now_us: int, keep: int) -> None:
        """Stores a sign-in, or replaces the one with its `token_hash`."""
        await self._changes(postgresql_access.PUT_SIGN_IN, *sign_in, now_us, keep - 1)

    async def sign_ins(self, token_hashes: Sequence[str]) -> builtins.list[SignIn]:
        """The stored sign-ins with these token hashes, expired ones included, in any order."""
        sql = postgresql_access.SIGN_INS
        hashes = [*token_hashes]
        rows = await self._read(lambda connection: connection.fetch(sql, hashes))
        return [SignIn(*row) for row in rows]

    async def touch_sign_in(self, token_hash: str, seen_at: int) -> bool:
        """Updates the sign-in's last use, never to an earlier instant."""
        return await self._changes(postgresql_access.TOUCH, token_hash, seen_at)

    async def delete_sign_in(self, token_hash: str) -> bool:
        """Removes the sign-in."""
        return await self._changes(postgresql_access.DELETE_SIGN_IN, token_hash)

    async def put_audit(self, entry: AuditEntry) -> None:
        """Stores an entry."""
        await self._changes(postgresql_access.PUT_AUDIT, *postgresql_access.audit_values(entry))

    async def audit(self, query: AuditQuery) -> builtins.list[AuditEntry]:
        """At most `limit` entries by (at, entry_id), descending."""
        return await self._read(lambda connection: postgresql_access.audit(connection, query))

    async def purge_audit(self, before_us: int, limit: int) -> int:
        """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
        sql = postgresql_access.PURGE_AUDIT
        return int(await self._write(lambda connection: connection.fetchval(sql, before_us, limit)))

    # -- connections

    async def _load(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._fetched(self._loaders, work)

    async def _read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._fetched(self._readers, work)

    async def _write(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._opened(self._loaders).run(Activity.WRITING, work)

    async def _changes(self, sql: str, *values: Any) -> bool:
        """Whether a statement with RETURNING changed a row."""
        return await self._write(lambda connection: connection.fetchval(sql, *values)) is not None

    async def _fetched(self, pool: PostgresPool | None, work: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._opened(pool).run(Activity.READING, work)

    def _opened(self, pool: PostgresPool | None) -> PostgresPool:
        if pool is None:
            raise StoreUnavailable(f"{self._settings.safe_url} is not open")
        return pool


async def _records(connection: Connection, sql: str, decode: Callable[[bytes], T]) -> builtins.list[T]:
    return [decode(values[0].encode()) for values in await connection.fetch(sql)]
