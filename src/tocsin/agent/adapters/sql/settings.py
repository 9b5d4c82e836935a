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
    #: SQLite: connections that read, each with a thread. Raised: more lists at once, for more memory.
    readers_max: int = 2
    #: SQLite: pages in the agent's write-ahead log after which it is copied into the file. Raised: fewer, longer
    #: copies.
    wal_checkpoint_pages: int = 8_000
    #: SQLite: bytes that the agent's write-ahead log may keep on disk after it was copied.
    wal_bytes_max: int = 256 * 1024 * 1024
    #: SQLite: memory for pages of the agent's database in the connection that writes.
    cache_bytes: int = 64 * 1024 * 1024
    #: SQLite: units of work that one transaction takes together. Raised: more throughput, in longer transactions.
    group_max: int = 64
    #: PostgreSQL: connections of the agent beside the one that holds its lock. Raised: more work at once.
    pool_max: int = 8
    #: PostgreSQL: how long work of the agent waits for one of these connections before it fails as if the database
    #: were away.
    pool_timeout_s: float = 10.0
    #: PostgreSQL: how long a new connection of the agent may take.
    connect_timeout_s: float = 10.0
    #: PostgreSQL: how long a statement of the agent may take before the server ends it.
    statement_timeout_ms: int = 30_000
    #: PostgreSQL: how long a statement of the agent waits for rows that another transaction has locked.
    lock_timeout_ms: int = 5_000
    #: PostgreSQL: how long a transaction of the agent may stand still before the server ends it. Lowered: what a
    #: frozen node had locked is free sooner.
    transaction_idle_ms: int = 3_000
    #: PostgreSQL: how often work of the agent is repeated after a conflict with another transaction.
    conflicts_max: int = 10
    #: How long a start waits for another agent to give the database up, before it stands by, or fails where it can't.
    lock_wait_s: float = 2.0
    #: PostgreSQL: how often the agent shows that it moves, and those that stand by check it. Has to be well below
    #: `agent_sql.lock_lease`.
    lock_check_s: float = 1.0
    #: PostgreSQL: pause between two tries for the lock by which one node runs the agent. Lowered: a sooner takeover,
    #: for more queries.
    lock_retry_s: float = 0.2
    #: PostgreSQL: how long the agent may stand still before another node takes over. Lowered: sooner; too low, and a
    #: pause counts as an end.
    lock_lease_s: float = 5.0
    #: Pause after a takeover of the agent has failed, before it is tried again.
    takeover_pause_s: float = 5.0
