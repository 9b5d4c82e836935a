"""Limits of the traffic between nodes."""

from __future__ import annotations

from dataclasses import dataclass

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class ClusterLimits:
    """All durations in microseconds (`_us`)."""

    #: Writes of this node's clients that wait for their shard to get an owner; beyond it they are refused as OVERLOADED.
    waiting_max: int = 50_000
    #: Pause between two tries to bring waiting writes to an owner, when nothing is heard meanwhile.
    retry_interval_us: int = 50 * MS
    #: Writes that wait to be sent to one node; beyond it they are refused as OVERLOADED.
    queue_max: int = 20_000
    #: Writes sent to one node whose answers are still to come.
    in_flight_max: int = 10_000
    #: Writes, and about how many bytes of them, in one message.
    frame_writes_max: int = 500
    frame_fill_bytes: int = 256 * 1024
    #: Bytes of a message that are accepted from another node.
    frame_bytes_max: int = 32 * 1024 * 1024
    #: How long connecting to another node and proving who one is may take.
    connect_timeout_us: int = 2 * SECOND
    #: Pause after a connection could not be made.
    reconnect_interval_us: int = 200 * MS
    #: Interval at which a node that takes writes says that it is there; writes are dated by it.
    tick_interval_us: int = 500 * MS
    #: A write that was under way between nodes for longer is sent back, to be sent again. It bounds how late a write can
    #: still be done whose node died after sending it.
    message_age_max_us: int = 2 * SECOND
    #: A connection on which nothing was heard for this long is given up.
    silence_max_us: int = 2 * SECOND
    #: How long after a write's deadline its answer is still waited for: a commit may take as long as `store_timeout`.
    answer_grace_us: int = 35 * SECOND
    #: How long `GET /cluster` and the overview wait for what other nodes say of themselves.
    report_timeout_us: int = 1 * SECOND
    #: How long a request for the service agent, brought to the node that runs it, may take.
    agent_timeout_us: int = 30 * SECOND
    #: How long a request for the service agent waits for a node that runs it, and how many requests may.
    agent_wait_us: int = 15 * SECOND
    agent_waiting_max: int = 1_000
    #: Pause between two looks for such a node.
    agent_retry_interval_us: int = 100 * MS
    #: Connections of other nodes, and of those that have not proven yet who they are.
    sessions_max: int = 256
    strangers_max: int = 64
    #: Pause before a worker process that died is started again; doubled, up to the second, as long as it dies before it is
    #: ready.
    worker_pause_us: int = 1 * SECOND
    worker_pause_max_us: int = 30 * SECOND
    #: How long a worker that was started again may take to get its share, before the next one is, in a rolling restart.
    worker_ready_timeout_us: int = 60 * SECOND
    #: How long the node goes on taking requests after it was told to stop, not ready and asking clients to leave.
    leave_delay_us: int = 1 * SECOND
