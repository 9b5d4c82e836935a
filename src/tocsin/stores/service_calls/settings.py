"""How the agent's database is used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """Durations in milliseconds (`_ms`) or seconds (`_s`)."""

    # Settings of the table `[agent_sql]`, but the first two of `[sqlite]`. `tocsin.settings.groups` describes each under the
    # same name.

    synchronous: str = "FULL"
    busy_timeout_ms: int = 5_000
    connections_max: int = 8
    statement_timeout_ms: int = 30_000
    lock_wait_s: float = 2.0
    leader_lease_s: float = 5.0

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: SQLite: connections that read, each with a thread.
    readers_max: int = 2
    #: SQLite: pages of the agent's write-ahead log after which a commit checkpoints it.
    wal_checkpoint_pages: int = 8_000
    #: SQLite: bytes that the agent's write-ahead log keeps on disk after a checkpoint.
    wal_bytes_max: int = 256 * 1024 * 1024
    #: SQLite: page cache of the connection that writes.
    cache_bytes: int = 64 * 1024 * 1024
    #: SQLite: units of work that one transaction commits together.
    group_max: int = 64
    #: PostgreSQL: how long a unit of work waits for a free connection before it fails as if the server were unreachable.
    pool_timeout_s: float = 10.0
    #: PostgreSQL: how long connecting may take.
    connect_timeout_s: float = 10.0
    #: PostgreSQL: how long a statement waits for rows that another transaction has locked.
    lock_timeout_ms: int = 5_000
    #: PostgreSQL: how long a transaction may be idle before the server ends it, and frees the locks of a frozen node.
    idle_transaction_timeout_ms: int = 3_000
    #: PostgreSQL: how often a unit of work is repeated after a conflict with another transaction.
    conflict_retries_max: int = 10
    #: PostgreSQL: how often the leader renews its lease, and standbys check it. Well below `leader_lease_s`.
    leader_renew_interval_s: float = 1.0
    #: PostgreSQL: pause between two attempts of a standby to become the leader.
    leader_retry_interval_s: float = 0.2
    #: Pause before a failed takeover of the agent is tried again.
    takeover_retry_interval_s: float = 5.0
