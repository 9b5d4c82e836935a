"""The buses' limits. Each is a setting of the table `[bus]`; `docs/reference/settings.md` describes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BusLimits:
    """Durations in microseconds. Those that begin with `nats_` concern that broker alone."""

    #: After so many failures of a message by itself it becomes a dead letter. Failures that pass are not counted.
    deliveries_max: int = 10
    #: The first and the longest pause before a message is tried again; each is twice the one before.
    backoff_initial_us: int = 200_000
    backoff_max_us: int = 30_000_000
    #: The longest pause of a whole subscription while nothing at all gets through (a database that is away).
    pause_max_us: int = 5_000_000
    #: Messages taken and not yet settled, of the bus; beyond it `post` reports BusOverloaded.
    waiting_max: int = 20_000
    #: Commands that wait for their reply, on either side.
    requests_waiting_max: int = 2_000
    #: Ids that each subscription knows as dealt with, to drop duplicates; never fewer than half of it.
    ids_remembered_max: int = 50_000
    #: Dead letters kept in memory by the embedded bus, the latest ones.
    dead_letters_max: int = 1_000
    #: One attempt to connect, with all that is to be set up on the broker.
    nats_connect_timeout_us: int = 10_000_000
    #: The first and the longest pause between attempts to connect again.
    nats_reconnect_initial_us: int = 100_000
    nats_reconnect_max_us: int = 5_000_000
    #: How often the broker is asked whether it is there, and how many answers may be missing.
    nats_ping_interval_us: int = 5_000_000
    nats_pings_outstanding_max: int = 2
    #: A message that the broker has not confirmed for this long counts as not taken.
    nats_publish_timeout_us: int = 5_000_000
    #: How long the broker waits for a sign of life about a message before it sends it again.
    nats_ack_wait_us: int = 30_000_000
    #: Messages asked for at once, and delivered to a subscription and not yet acknowledged.
    nats_fetch_max: int = 500
    nats_in_hand_max: int = 2_000
    #: How long one request for messages stands, and how often the broker says meanwhile that it is there.
    nats_fetch_expires_us: int = 30_000_000
    nats_heartbeat_us: int = 5_000_000
    #: How long messages stay in the streams, and for how long the broker itself knows duplicates.
    nats_stream_age_max_us: int = 7 * 86_400_000_000
    nats_duplicate_window_us: int = 120_000_000
    #: Copies of the streams in a cluster of brokers.
    nats_replicas: int = 1
    #: How often deadlines, signs of life and the connection are looked at.
    nats_tick_us: int = 250_000
    #: How long the end of a connection may take.
    nats_close_timeout_us: int = 2_000_000
