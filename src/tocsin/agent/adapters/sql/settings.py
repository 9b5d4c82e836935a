"""How the agent's database is used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """Durations in the unit of the name's end."""

    #: SQLite: FULL waits for the disk at every commit. NORMAL may lose the last ones when the machine, not only the
    #: process, dies; the file stays sound.
    synchronous: str = "FULL"
    #: SQLite: how long to wait for the file while another program writes to it.
    busy_timeout_ms: int = 5_000
    #: SQLite: connections that read, each with a thread; pages of the write-ahead log after which it is copied into the
    #: file; bytes that the log may keep after that; memory of the connection that writes.
    readers_max: int = 2
    wal_checkpoint_pages: int = 8_000
    wal_bytes_max: int = 256 * 1024 * 1024
    cache_bytes: int = 64 * 1024 * 1024
    #: SQLite: pieces of work that one transaction may take together.
    group_max: int = 64
    #: PostgreSQL: connections beside the one that holds the lock; how long to wait for one of them, and for a new one.
    pool_max: int = 8
    pool_timeout_s: float = 10.0
    connect_timeout_s: float = 10.0
    #: PostgreSQL: how long a statement may take, and wait for another's rows.
    statement_timeout_ms: int = 30_000
    lock_timeout_ms: int = 5_000
    #: PostgreSQL: how long a transaction may stand still before the server ends it. What a frozen agent held is free then.
    transaction_idle_ms: int = 3_000
    #: PostgreSQL: how often work is done again after a conflict with another transaction.
    conflicts_max: int = 10
    #: How long a start waits for another agent to give the database up, before it stands by or fails.
    lock_wait_s: float = 2.0
    #: PostgreSQL: how often the agent shows that it moves, and those who stand by look at that.
    lock_check_s: float = 1.0
    #: PostgreSQL: pause between two tries for a lock that another has, or whose connection was lost.
    lock_retry_s: float = 0.2
    #: PostgreSQL: an agent that has not moved for this long loses the database to one that stands by.
    lock_lease_s: float = 5.0
    #: Pause after taking over from another node has failed.
    takeover_pause_s: float = 5.0
