"""What operators can set of each kind of store, without the imports of its driver."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.setting import setting


@dataclass(frozen=True, slots=True)
class SqliteOptions:
    """Options of SqliteStore."""

    synchronous: str = setting(
        "FULL",
        "`FULL` syncs the disk at every commit and keeps acknowledged writes through a power failure. `NORMAL` is "
        "faster and may lose the last moments. Applies to the agent's SQLite file too.",
        choices=("FULL", "NORMAL"),
    )
    cache_bytes: int = setting(
        64 << 20,
        "Page cache of the connection that writes timers, in bytes. Higher values read less from disk with many "
        "pending timers.",
    )
    wal_bytes_max: int = setting(
        256 << 20,
        "Bytes that the timers' write-ahead log keeps on disk after a checkpoint. Lower values free disk sooner after "
        "a burst.",
    )
    busy_timeout_ms: int = setting(
        5_000,
        "How long a transaction waits while another program, such as a backup, writes to the file. Applies to the "
        "agent's SQLite file too. Higher values outlast longer backups; writes wait as long.",
    )


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options that PostgresStore and MysqlStore share."""

    loaders: int = setting(
        3,
        "Connections for loads, claims and heartbeats. With higher values more shards load at once.",
        name="load_connections",
    )
    readers: int = setting(
        2,
        "Connections for lists, namespaces and API keys. Higher values serve more lists at once.",
        name="read_connections",
    )
    connect_timeout_s: float = setting(
        5.0,
        "How long connecting to the server may take. Lower values report an unreachable server sooner; if too low, a "
        "slow network prevents connections.",
    )
    acquire_timeout_s: float = setting(
        10.0,
        "How long a query waits for a free connection before it fails as if the server were unreachable. Higher "
        "values bridge longer bursts; clients wait longer.",
    )
    statement_timeout_s: float = setting(
        20.0,
        "How long a statement may run before the server cancels it; keep it below `store_timeout`. PostgreSQL "
        "includes the commit; MySQL, unlike MariaDB, cancels only statements that read. Lower values end stuck "
        "statements sooner; if too low, slow commits fail.",
    )
    lock_timeout_s: float = setting(
        10.0,
        "How long a statement waits for rows that another transaction has locked. MySQL and MariaDB count whole "
        "seconds. With lower values a statement fails sooner behind a stuck transaction.",
    )


@dataclass(frozen=True, slots=True)
class PostgresOptions:
    """Further options of PostgresStore."""

    schema: str = setting(
        "tocsin",
        "PostgreSQL schema of the timers' tables. Created if it is missing.",
    )


@dataclass(frozen=True, slots=True)
class MysqlOptions:
    """Further options of MysqlStore."""

    idle_transaction_timeout_s: float = setting(
        3.0,
        "How long a transaction may be idle before MySQL or MariaDB ends it, in whole seconds. Keep it below "
        "`member_timeout`, so that the locks of a failed node are free when another takes over. MySQL ends every "
        "session that is idle for this long.",
    )
    durable: bool = setting(
        True,
        "Refuse a MySQL or MariaDB server that can lose acknowledged timers: one whose "
        "`innodb_flush_log_at_trx_commit` is not 1, or that has a binary log and `sync_binlog` is not 1.",
    )


@dataclass(frozen=True, slots=True)
class DynamoOptions:
    """Options of DynamoStore."""

    request_timeout_s: float = setting(
        3.0,
        "How long a node waits for the response to one request before it sends the request again. Lower values "
        "replace lost requests sooner. Keep it, together with `dynamodb.patience`, below `store_timeout`.",
    )
    patience_s: float = setting(
        8.0,
        "How long a request that is throttled, conflicts or gets no response is sent again before it fails. Higher "
        "values bridge longer throttling; clients wait longer.",
    )
    connections_max: int = setting(
        50,
        "Connections of a node, half of them for lists. With higher values more shards commit and load at once.",
    )


@dataclass(frozen=True, slots=True)
class CassandraOptions:
    """Options of CassandraStore."""

    connect_timeout_s: float = setting(
        5.0,
        "How long connecting to a node of Cassandra may take. Lower values skip an unreachable contact point sooner; "
        "if too low, a slow network or TLS prevents connections.",
    )
    request_timeout_s: float = setting(
        5.0,
        "How long a node waits for the response to one request. Keep it above Cassandra's own `write_request_timeout` "
        "and below `store_timeout`. A commit without a response gives up its shard, so lower values lose shards "
        "during pauses of the servers; higher ones notice a silent server later.",
    )
    durable: bool = setting(
        True,
        "Refuse a Cassandra cluster that can lose acknowledged timers: nodes whose `commitlog_sync` is `periodic`, or "
        "a keyspace with `durable_writes = false`. If off, the replicas of a timer must not end at once.",
    )


@dataclass(frozen=True, slots=True)
class MongoOptions:
    """Options of MongoStore."""

    operation_timeout_s: float = setting(
        10.0,
        "How long a transaction, or a statement outside one, may take in all, including the wait for a primary. Lower "
        "values end stuck transactions sooner; if too low, slow commits fail. Keep it below `store_timeout`.",
    )
    connect_timeout_s: float = setting(
        5.0,
        "How long connecting may take, and at the start also the wait for a replica set to have a primary. Lower "
        "values report an unreachable server sooner; if too low, a slow network prevents connections.",
    )
    connections_max: int = setting(
        50,
        "Connections of a node to each member of the replica set. With higher values more shards commit and load at "
        "once.",
    )
