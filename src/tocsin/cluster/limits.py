"""Limits of the traffic between nodes."""

from __future__ import annotations

from dataclasses import dataclass

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class ClusterLimits:
    """All durations in microseconds (`_us`)."""

    #: Writes of this node's clients that wait for their shard to get an owner; beyond it they are refused as
    #: OVERLOADED (429). Raised: more memory during takeovers.
    waiting_max: int = 50_000
    #: Pause between two tries to forward waiting writes to their shard's owner, while no news of it comes.
    retry_interval_us: int = 50 * MS
    #: Writes that wait to be sent to one node; beyond it they are refused as OVERLOADED (429).
    queue_max: int = 20_000
    #: Writes sent to one node and not yet answered; more wait in `cluster.queue_max`.
    in_flight_max: int = 10_000
    #: Writes in one message between nodes. Raised: fewer, larger messages.
    frame_writes_max: int = 500
    #: Bytes of writes after which a message between nodes is full. With `payload_bytes_max` it has to stay below
    #: `cluster.frame_bytes_max`.
    frame_fill_bytes: int = 256 * 1024
    #: Bytes of a message that are accepted from another node; a larger one ends the connection.
    frame_bytes_max: int = 32 * 1024 * 1024
    #: How long connecting to another node may take, with the proof that both know the cluster's secret.
    connect_timeout_us: int = 2 * SECOND
    #: Pause after another node could not be connected to.
    reconnect_interval_us: int = 200 * MS
    #: How often a node shows another on their connection that it is there; writes are dated by it. Has to be shorter
    #: than `cluster.silence_max`.
    tick_interval_us: int = 500 * MS
    #: A write that was under way between nodes for longer is sent back, to be sent again. It bounds how late a write can
    #: still be done whose node died after sending it.
    message_age_max_us: int = 2 * SECOND
    #: How long a connection to another node may be silent before it is given up. Lowered: dead connections are noticed
    #: sooner; too low, and pauses cut live ones.
    silence_max_us: int = 2 * SECOND
    #: How long after a write's deadline its answer from another node is still waited for; a commit may take
    #: `store_timeout`.
    answer_grace_us: int = 35 * SECOND
    #: How long `GET /cluster` and the overview wait for other nodes' reports; a node that is late is shown as unknown.
    report_timeout_us: int = 1 * SECOND
    #: How long a forwarded request for the service agent may take at the node that runs it.
    agent_timeout_us: int = 30 * SECOND
    #: How long a request for the service agent waits while no node runs it, before it is answered 503.
    agent_wait_us: int = 15 * SECOND
    #: Requests for the service agent that wait at once while no node runs it; further ones are answered 503.
    agent_waiting_max: int = 1_000
    #: Pause between two looks for the node that runs the service agent.
    agent_retry_interval_us: int = 100 * MS
    #: Connections of other nodes, at once.
    sessions_max: int = 256
    #: Connections to the cluster's port, at once, that have not proven yet that they know its secret.
    strangers_max: int = 64
    #: Pause before a worker process that died is started again; it doubles as long as the worker dies before it is
    #: ready.
    worker_pause_us: int = 1 * SECOND
    #: Longest pause before a worker process that keeps dying is started again.
    worker_pause_max_us: int = 30 * SECOND
    #: How long a worker that was started again may take to get its share, before the next one is, in a rolling restart.
    worker_ready_timeout_us: int = 60 * SECOND
    #: How long a node that stops goes on taking requests, not ready and asking clients to leave, and again as long
    #: without new connections. Has to be as long as the load balancer takes to notice `/readyz`.
    leave_delay_us: int = 1 * SECOND
