"""The databases that keep timers."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from tocsin.model.instants import US_PER_SECOND
from tocsin.settings.groups.base import Group
from tocsin.settings.values import US_PER_MS, Bytes, Count, Duration, Synchronous, YesNo, milliseconds, one_of
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.timers.engine.limits import EngineLimits


class Sqlite(Group):
    """The store in an SQLite file."""

    title: ClassVar[str] = "SQLite"
    intro: ClassVar[str] = "How the file of a `sqlite:///` store is written."

    sqlite_synchronous: Annotated[Synchronous, BeforeValidator(partial(one_of, ("FULL", "NORMAL")))] = Field(
        "FULL",
        description="`FULL` syncs the disk at every commit and keeps acknowledged writes through a power failure. "
        "`NORMAL` is faster and may lose the last moments. Applies to the agent's SQLite file too.",
    )
    sqlite_cache_bytes: Bytes = Field(
        64 << 20,
        description="Page cache of the connection that writes timers, in bytes. Higher values read less from disk "
        "with many pending timers.",
    )
    sqlite_wal_bytes_max: Bytes = Field(
        256 << 20,
        description="Bytes that the timers' write-ahead log keeps on disk after a checkpoint. Lower values free disk "
        "sooner after a burst.",
    )
    sqlite_busy_timeout: Duration = Field(
        milliseconds(SqlSettings().busy_timeout_ms),
        description="How long a transaction waits while another program, such as a backup, writes to the file. Applies "
        "to the agent's SQLite file too. Higher values outlast longer backups; writes wait as long.",
    )

    def sqlite_options(self) -> dict[str, Any]:
        """Keyword arguments of SqliteStore."""
        return {
            "synchronous": self.sqlite_synchronous,
            "cache_bytes": self.sqlite_cache_bytes,
            "wal_bytes_max": self.sqlite_wal_bytes_max,
            "busy_timeout_ms": max(1, self.sqlite_busy_timeout // US_PER_MS),
        }


class DatabaseServer(Group):
    """The store on PostgreSQL, MySQL or MariaDB."""

    title: ClassVar[str] = "Database server"
    intro: ClassVar[str] = (
        "How a node uses [PostgreSQL](../how-to/postgresql.md), or [MySQL or MariaDB](../how-to/mysql.md), as its store."
    )

    lanes: Count = Field(
        EngineLimits().lanes,
        description="Commits at once, each over a connection of its own and for a part of the shards. Higher values "
        "raise throughput where commits wait for the network, for more connections. SQLite has one writer.",
    )
    database_load_connections: Count = Field(
        3,
        description="Connections for loads, claims and heartbeats. With higher values more shards load at once.",
    )
    database_read_connections: Count = Field(
        2, description="Connections for lists, namespaces and API keys. Higher values serve more lists at once."
    )
    database_connect_timeout: Duration = Field(
        5 * US_PER_SECOND,
        description="How long connecting to the server may take. Lower values report an unreachable server sooner; if "
        "too low, a slow network prevents connections.",
    )
    database_acquire_timeout: Duration = Field(
        10 * US_PER_SECOND,
        description="How long a query waits for a free connection before it fails as if the server were unreachable. "
        "Higher values bridge longer bursts; clients wait longer.",
    )
    database_statement_timeout: Duration = Field(
        20 * US_PER_SECOND,
        description="How long a statement may run before the server cancels it; keep it below `store_timeout`. "
        "PostgreSQL includes the commit; MySQL, unlike MariaDB, cancels only statements that read. Lower "
        "values end stuck statements sooner; if too low, slow commits fail.",
    )
    database_lock_timeout: Duration = Field(
        10 * US_PER_SECOND,
        description="How long a statement waits for rows that another transaction has locked. MySQL and MariaDB count "
        "whole seconds. With lower values a statement fails sooner behind a stuck transaction.",
    )
    postgresql_schema: str = Field(
        "tocsin", description="PostgreSQL schema of the timers' tables. Created if it is missing."
    )
    mysql_idle_transaction_timeout: Duration = Field(
        3 * US_PER_SECOND,
        description="How long a transaction may be idle before MySQL or MariaDB ends it, in whole seconds. Keep it "
        "below `member_timeout`, so that the locks of a failed node are free when another takes over. MySQL ends "
        "every session that is idle for this long.",
    )
    mysql_durable: YesNo = Field(
        True,
        description="Refuse a MySQL or MariaDB server that can lose acknowledged timers: one whose "
        "`innodb_flush_log_at_trx_commit` is not 1, or that has a binary log and `sync_binlog` is not 1.",
    )

    def _connection_options(self) -> dict[str, Any]:
        return {
            "writers": self.lanes,
            "loaders": self.database_load_connections,
            "readers": self.database_read_connections,
            "connect_timeout_s": self.database_connect_timeout / US_PER_SECOND,
            "acquire_timeout_s": self.database_acquire_timeout / US_PER_SECOND,
            "statement_timeout_s": self.database_statement_timeout / US_PER_SECOND,
            "lock_timeout_s": self.database_lock_timeout / US_PER_SECOND,
        }

    def postgresql_options(self) -> dict[str, Any]:
        """Keyword arguments of PostgresStore. Each of the engine's lanes has a writing connection."""
        return {**self._connection_options(), "schema": self.postgresql_schema}

    def mysql_options(self) -> dict[str, Any]:
        """Keyword arguments of MysqlStore. Each of the engine's lanes has a writing connection."""
        return {
            **self._connection_options(),
            "idle_transaction_timeout_s": self.mysql_idle_transaction_timeout / US_PER_SECOND,
            "durable": self.mysql_durable,
        }


class Cassandra(Group):
    """The store in a keyspace of Cassandra."""

    title: ClassVar[str] = "Cassandra"
    intro: ClassVar[str] = "How a node uses [Cassandra](../how-to/cassandra.md) as its store."

    cassandra_connect_timeout: Duration = Field(
        5 * US_PER_SECOND,
        description="How long connecting to a node of Cassandra may take. Lower values skip an unreachable contact point "
        "sooner; if too low, a slow network or TLS prevents connections.",
    )
    cassandra_request_timeout: Duration = Field(
        5 * US_PER_SECOND,
        description="How long a node waits for the response to one request. Keep it above Cassandra's own "
        "`write_request_timeout` and below `store_timeout`. A commit without a response gives up its shard, so lower values "
        "lose shards during pauses of the servers; higher ones notice a silent server later.",
    )
    cassandra_durable: YesNo = Field(
        True,
        description="Refuse a Cassandra cluster that can lose acknowledged timers: nodes whose `commitlog_sync` is "
        "`periodic`, or a keyspace with `durable_writes = false`. If off, the replicas of a timer must not end at once.",
    )

    def cassandra_options(self) -> dict[str, Any]:
        """Keyword arguments of CassandraStore."""
        return {
            "connect_timeout_s": self.cassandra_connect_timeout / US_PER_SECOND,
            "request_timeout_s": self.cassandra_request_timeout / US_PER_SECOND,
            "durable": self.cassandra_durable,
        }


class Dynamodb(Group):
    """The store in a DynamoDB table."""

    title: ClassVar[str] = "DynamoDB"
    intro: ClassVar[str] = "How a node uses [DynamoDB](../how-to/dynamodb.md) as its store."

    dynamodb_request_timeout: Duration = Field(
        3 * US_PER_SECOND,
        description="How long a node waits for the response to one request before it sends the request again. Lower values "
        "replace lost requests sooner. Keep it, together with `dynamodb.patience`, below `store_timeout`.",
    )
    dynamodb_patience: Duration = Field(
        8 * US_PER_SECOND,
        description="How long a request that is throttled, conflicts or gets no response is sent again before it fails. "
        "Higher values bridge longer throttling; clients wait longer.",
    )
    dynamodb_connections_max: Count = Field(
        50,
        description="Connections of a node, half of them for lists. With higher values more shards commit and load at once.",
    )

    def dynamodb_options(self) -> dict[str, Any]:
        """Keyword arguments of DynamoStore."""
        return {
            "request_timeout_s": self.dynamodb_request_timeout / US_PER_SECOND,
            "patience_s": self.dynamodb_patience / US_PER_SECOND,
            "connections_max": self.dynamodb_connections_max,
        }


class Mongodb(Group):
    """The store in a MongoDB database."""

    title: ClassVar[str] = "MongoDB"
    intro: ClassVar[str] = "How a node uses [MongoDB](../how-to/mongodb.md) as its store."

    mongodb_operation_timeout: Duration = Field(
        10 * US_PER_SECOND,
        description="How long a transaction, or a statement outside one, may take in all, including the wait "
        "for a primary. Lower values end stuck transactions sooner; if too low, slow commits fail. Keep it below "
        "`store_timeout`.",
    )
    mongodb_connect_timeout: Duration = Field(
        5 * US_PER_SECOND,
        description="How long connecting may take, and at the start also the wait for a replica set to have a primary. Lower "
        "values report an unreachable server sooner; if too low, a slow network prevents connections.",
    )
    mongodb_connections_max: Count = Field(
        50,
        description="Connections of a node to each member of the replica set. With higher values more shards commit and load "
        "at once.",
    )

    def mongodb_options(self) -> dict[str, Any]:
        """Keyword arguments of MongoStore."""
        return {
            "operation_timeout_s": self.mongodb_operation_timeout / US_PER_SECOND,
            "connect_timeout_s": self.mongodb_connect_timeout / US_PER_SECOND,
            "connections_max": self.mongodb_connections_max,
        }
