"""How the agent's database is used."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.setting import setting


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """Durations in milliseconds (`_ms`) or seconds (`_s`)."""

    connections_max: int = setting(
        8,
        "Connections of the agent to PostgreSQL, besides the one that holds its lock. Higher values handle more "
        "messages at once.",
    )
    statement_timeout_ms: int = setting(
        30_000,
        "How long a statement of the agent may run before PostgreSQL cancels it. Lower values free the connection of "
        "a stuck statement sooner; if too low, slow statements fail.",
    )
    lock_wait_s: float = setting(
        2.0,
        "How long a start waits for another agent to release the database. Then it stands by, or fails where it "
        "cannot stand by. Higher values let a restart overlap its predecessor's end for longer.",
    )
    leader_lease_s: float = setting(
        5.0,
        "How long the agent on PostgreSQL may make no progress before another node takes over. Lower values take over "
        "sooner; if too low, a pause counts as a failure.",
    )

    # Filled by the settings of other parts (`tocsin.settings.settings.SHARED`).

    synchronous: str = "FULL"
    busy_timeout_ms: int = 5_000

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
