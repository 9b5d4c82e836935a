"""The buses' limits, by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BusLimits:
    """Durations in microseconds (`_us`). Names that begin with `nats_` concern NATS alone."""

    # Settings of the table `[bus]`. `tocsin.settings.groups` describes each under the same name.

    deliveries_max: int = 10
    queue_max: int = 20_000
    nats_connect_timeout_us: int = 10_000_000
    nats_publish_timeout_us: int = 5_000_000
    nats_ack_wait_us: int = 30_000_000
    nats_ack_pending_max: int = 2_000
    nats_stream_age_max_us: int = 7 * 86_400_000_000
    nats_replicas: int = 1

    # Constants. Operators have no reason to change them; tests inject smaller ones.

    #: First pause before a message whose handling failed is delivered again; each further pause is twice as long.
    backoff_initial_us: int = 200_000
    #: Longest pause before a message whose handling failed is delivered again.
    backoff_max_us: int = 30_000_000
    #: Longest pause of a whole subscription while no message can be handled, as when the database is unreachable.
    pause_max_us: int = 5_000_000
    #: Commands that wait for their reply, on either side; further ones are answered 503.
    pending_requests_max: int = 2_000
    #: Ids of handled messages that a subscription keeps to drop duplicates; at least half of it.
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
