"""How each kind of store is used: what operators can set, and constants, which tests change. Imports no driver."""

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

    #: Bytes of a page of a new file.
    page_bytes: int = 4096
    #: Page cache of each connection that reads.
    read_cache_bytes: int = 8 << 20
    #: Pages of the write-ahead log after which a thread checkpoints it.
    wal_checkpoint_pages: int = 20_000
    #: Bytes of the records on one page of `load` or `list`.
    read_bytes_max: int = 16 << 20
    #: SQLite's own name of the layer above the file system; None for the usual one.
    vfs: str | None = None


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

    #: Bytes of a packet, even if the server accepts more.
    statement_bytes_max: int = 4 << 20
    #: Rows of a range that one statement deletes.
    delete_rows_max: int = 10_000
    #: How often a transaction is repeated that the server rolled back in favour of another.
    undone_retries_max: int = 5


@dataclass(frozen=True, slots=True)
class DynamoOptions:
    """Options of DynamoStore. A request that was sent before `patience_s` was over may end later."""

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
    time_to_live: bool = setting(
        False,
        "Leave the removal of finished timers, occurrences and failures to DynamoDB's time to live, which takes no write "
        "units: 12 instead of 17 for a timer with history. They stay for some days longer than their retention. If off, "
        "Tocsin removes them when their retention is over.",
    )

    #: How long connecting may take.
    connect_timeout_s: float = 5.0
    #: Requests of one call at once.
    parallel_max: int = 16
    #: Writes and bytes of a transaction, including its fence. DynamoDB takes 100 of 4 MiB.
    actions_max: int = 100
    bytes_max: int = 7 * (4 << 20) // 8
    #: Items that a query reads.
    page_items_max: int = 1_000
    #: How long the creation of the table may take.
    create_timeout_s: float = 120.0
    application_name: str = "tocsin"


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
        "a keyspace with `durable_writes = false`. If off, the replicas of a timer must not end at once. Of ScyllaDB, "
        "which syncs conditional writes always, only the keyspace is checked.",
    )

    #: How long a row of the history is kept at least, so that a retention that has already ended when the row is written does
    #: not make it unreadable.
    history_ttl_min_s: int = 60
    #: Keys of one read, rows of one, and requests of one call at once.
    keys_max: int = 100
    page_rows_max: int = 2_000
    parallel_max: int = 16
    #: About how many bytes of records a page of rows has at most.
    read_bytes_max: int = 16 << 20
    #: How often the size of partitions is read.
    size_interval_s: float = 60.0
    #: Begins the name of each partition, so that several stores can share a table.
    scope: str = ""
    application_name: str = "tocsin"


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

    #: How often a transaction is sent that MongoDB rolls back in favour of another.
    conflict_retries_max: int = 5
    #: About how many bytes of records a page of rows has at most.
    read_bytes_max: int = 16 << 20
    #: Whether MongoDB deletes what has expired, too.
    expire: bool = True
    application_name: str = "tocsin"
