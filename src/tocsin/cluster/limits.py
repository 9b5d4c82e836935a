"""Limits of the traffic between nodes, and of worker processes, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.setting import Topic, setting

MS = 1_000
SECOND = 1_000 * MS


@dataclass(frozen=True, slots=True)
class ClusterLimits:
    """Durations in microseconds (`_us`)."""

    leave_delay_us: int = setting(
        1 * SECOND,
        "How long a stopping node keeps serving requests while `/readyz` reports it as not ready, and then again as "
        "long without accepting connections. Set it to the time that the load balancer takes to notice.",
        topic=Topic.LOGGING,
        least=0,
    )
    waiting_writes_max: int = setting(
        50_000,
        "Writes that wait on a node while their shard has no owner; further ones are refused with OVERLOADED (429). "
        "Higher values refuse fewer writes during takeovers, for more memory.",
    )
    send_queue_max: int = setting(
        20_000,
        "Writes queued for one other node; further ones are refused with OVERLOADED (429). Higher values bridge "
        "longer pauses of that node.",
    )
    message_age_max_us: int = setting(
        2 * SECOND,
        "How long a forwarded write may be in transit; an older one is returned and sent again. It bounds how late a "
        "write can still be done after the node that sent it died. Raise it if the network between nodes is slower.",
    )
    peer_timeout_us: int = setting(
        2 * SECOND,
        "How long a connection to another node may be silent before it is closed. Lower values detect broken "
        "connections sooner; if too low, short pauses close live ones.",
    )
    agent_wait_us: int = setting(
        15 * SECOND,
        "How long a request for a service call waits while no node runs the agent; then it is answered 503. Higher "
        "values bridge longer takeovers; clients wait longer.",
    )

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: Pause between two attempts to forward waiting writes to their shard's owner while no new owner is known.
    retry_interval_us: int = 50 * MS
    #: Writes sent to one node and not yet answered; more wait in the send queue.
    in_flight_max: int = 10_000
    #: Writes in one message between nodes.
    frame_writes_max: int = 500
    #: Bytes of writes after which a message between nodes is full. The last write may have `payload_bytes_max` more.
    frame_fill_bytes: int = 256 * 1024
    #: Bytes of a message that are accepted from another node; a larger one ends the connection.
    frame_bytes_max: int = 32 * 1024 * 1024
    #: How long connecting to another node may take, with the proof that both know the cluster's secret.
    connect_timeout_us: int = 2 * SECOND
    #: Pause after connecting to another node failed.
    reconnect_interval_us: int = 200 * MS
    #: How often an outage of a connection is reported again while attempts to connect fail.
    outage_report_interval_us: int = 30 * SECOND
    #: Longest pause after another node refused this one, which grows with each refusal: the reason lasts.
    reconnect_refused_max_us: int = 30 * SECOND
    #: How often a node signals another on their connection that it is alive; writes are dated by it. Must be shorter
    #: than `peer_timeout_us`.
    keepalive_interval_us: int = 500 * MS
    #: How long after a write's deadline its answer from another node is awaited: a commit may take `store_timeout`.
    answer_grace_us: int = 35 * SECOND
    #: How long `GET /cluster` and the overview wait for other nodes' reports; a late node is shown as unknown.
    report_timeout_us: int = 1 * SECOND
    #: How long a forwarded request for the service agent may take at the node that runs it.
    agent_timeout_us: int = 30 * SECOND
    #: Requests for the service agent that wait at once while no node runs it; further ones are answered 503.
    agent_waiting_max: int = 1_000
    #: Pause between two searches for the node that runs the service agent.
    agent_retry_interval_us: int = 100 * MS
    #: Connections of other nodes, at once.
    connections_max: int = 256
    #: Connections to the cluster's port, at once, that have not proven yet that they know its secret.
    unauthenticated_connections_max: int = 64
    #: Pause before a worker process that died is started again; it doubles while the worker dies before it is ready.
    worker_restart_backoff_us: int = 1 * SECOND
    #: Longest pause before a worker process that keeps dying is started again.
    worker_restart_backoff_max_us: int = 30 * SECOND
    #: How long a restarted worker may take to own its shards before a rolling restart continues with the next one.
    worker_ready_timeout_us: int = 60 * SECOND
