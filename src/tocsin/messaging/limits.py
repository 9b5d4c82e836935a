"""The buses' limits, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.model.setting import Topic, setting


@dataclass(frozen=True, slots=True)
class BusLimits:
    """Durations in microseconds (`_us`). Names that begin with `nats_` concern NATS alone."""

    nats_stream_age_max_us: int = setting(
        7 * 86_400_000_000,
        "How long messages stay in the streams on NATS, handled or not. Higher values let others read further back, "
        "and keep any secrets in messages for longer.",
        topic=Topic.RETENTION,
    )
    deliveries_max: int = setting(
        10,
        "Failed deliveries after which a message becomes a dead letter. Failures that affect every message, such as "
        "an unreachable database, do not count. Higher values repeat failing messages for longer.",
    )
    queue_max: int = setting(
        20_000,
        "Messages on the bus that are not yet published or handled; further ones are refused and stay in the outbox. "
        "Higher values take more memory.",
    )
    nats_connect_timeout_us: int = setting(
        10_000_000,
        "How long one attempt to connect to NATS may take, with the setup of its streams. With lower values the next "
        "attempt begins sooner.",
    )
    nats_publish_timeout_us: int = setting(
        5_000_000,
        "How long NATS may take to acknowledge a published message before it is published again. Lower values publish "
        "more duplicates, which handlers drop.",
    )
    nats_ack_wait_us: int = setting(
        30_000_000,
        "How long NATS waits for the acknowledgement of a delivered message, or a sign of progress, before it "
        "delivers the message again. Lower values move the messages of a failed node to another sooner.",
    )
    nats_ack_pending_max: int = setting(
        2_000,
        "Messages that NATS delivers to one subscription before they are acknowledged. Higher values keep more "
        "messages in memory.",
    )
    nats_replicas: int = setting(
        1,
        "Replicas of the streams in a NATS cluster, at most as many as there are servers. With higher values servers "
        "may fail without loss, for slower publishing.",
    )

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: First pause before a message whose handling failed is delivered again; each further pause is twice as long.
    backoff_initial_us: int = 200_000
    #: Longest pause before a message whose handling failed is delivered again.
    backoff_max_us: int = 30_000_000
    #: Longest pause of a whole subscription while no message can be handled, as when the database is unreachable.
    pause_max_us: int = 5_000_000
    #: Commands that wait for their reply, on either side; further ones are answered 503.
    pending_requests_max: int = 2_000
    #: For how long a subscription knows a handled message, to drop duplicates; up to twice as long while messages follow.
    #: Brokers deliver again what was not acknowledged within `nats_ack_wait_us`. Handlers drop what comes later.
    deduplication_us: int = 300_000_000
    #: Ids of handled messages that a subscription keeps at most; with more it knows the latest half of them.
    deduplication_ids_max: int = 50_000
    #: Dead letters that the bus within the process keeps in memory, the latest ones.
    dead_letters_max: int = 1_000
    #: First pause before the broker is connected to again; each further pause is twice as long.
    nats_reconnect_initial_us: int = 100_000
    #: Longest pause before the broker is connected to again.
    nats_reconnect_max_us: int = 5_000_000
    #: How often the broker is pinged on an otherwise silent connection.
    nats_ping_interval_us: int = 5_000_000
    #: Unanswered pings after which the connection to the broker is closed.
    nats_pings_outstanding_max: int = 2
    #: Messages that one request asks of the broker.
    nats_fetch_max: int = 500
    #: How long one request for messages is valid before it is made again.
    nats_fetch_expires_us: int = 30_000_000
    #: How often the broker signals during a request for messages that it is alive; three missing signals end the
    #: request. At most a third of `nats_fetch_expires_us`.
    nats_heartbeat_us: int = 5_000_000
    #: How long the broker itself recognizes a message that is published twice.
    nats_duplicate_window_us: int = 120_000_000
    #: How often deadlines, heartbeats and the connection to the broker are checked.
    nats_check_interval_us: int = 250_000
    #: How long closing the connection to the broker may take.
    nats_close_timeout_us: int = 2_000_000
