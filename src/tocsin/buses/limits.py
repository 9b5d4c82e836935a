"""The buses' limits. Each is a setting of the table `[bus]`; `docs/reference/settings.md` describes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BusLimits:
    """Durations in microseconds. Those that begin with `nats_` concern that broker alone."""

    #: Failed deliveries of a message, for a reason of its own, before it becomes a dead letter. Failures that pass (a
    #: database that is away) don't count.
    deliveries_max: int = 10
    #: First pause before a message whose handling failed is delivered again; each further pause is twice as long.
    backoff_initial_us: int = 200_000
    #: Longest pause before a message whose handling failed is delivered again.
    backoff_max_us: int = 30_000_000
    #: Longest pause of a whole subscription while no message at all can be handled, as when the database is away.
    pause_max_us: int = 5_000_000
    #: Messages of the bus that are not handled yet; beyond it new ones are refused, and stay in the outbox. Raised:
    #: more memory.
    waiting_max: int = 20_000
    #: Commands that wait for their reply, on either side; beyond it they are answered 503.
    requests_waiting_max: int = 2_000
    #: Ids of handled messages that a subscription remembers, to drop duplicates; at least half of it. Raised: more
    #: memory.
    ids_remembered_max: int = 50_000
    #: Dead letters that the bus within the process keeps in memory, the latest ones.
    dead_letters_max: int = 1_000
    #: How long one attempt to connect to the broker may take, with the streams that are set up then.
    nats_connect_timeout_us: int = 10_000_000
    #: First pause before the broker is connected to again; each further pause is twice as long.
    nats_reconnect_initial_us: int = 100_000
    #: Longest pause before the broker is connected to again. Lowered: back sooner after its outage.
    nats_reconnect_max_us: int = 5_000_000
    #: How often the broker is pinged on an otherwise silent connection.
    nats_ping_interval_us: int = 5_000_000
    #: Pings without an answer after which the connection to the broker is given up.
    nats_pings_outstanding_max: int = 2
    #: How long the broker may take to confirm a message before it counts as not published, and is published again.
    nats_publish_timeout_us: int = 5_000_000
    #: How long the broker waits for news of a delivered message before it delivers it again. Lowered: messages of a
    #: node that died come sooner elsewhere.
    nats_ack_wait_us: int = 30_000_000
    #: Messages asked of the broker in one request. Raised: fewer requests, more memory.
    nats_fetch_max: int = 500
    #: Messages delivered to a subscription and not yet acknowledged; the broker sends no more than that.
    nats_in_hand_max: int = 2_000
    #: How long one request for messages stands before it is made again.
    nats_fetch_expires_us: int = 30_000_000
    #: How often the broker shows during a request for messages that it is there; three missing ones end the request.
    #: Never longer than a third of `bus.nats_fetch_expires`.
    nats_heartbeat_us: int = 5_000_000
    #: How long messages stay in the broker's streams, handled or not. Raised: others can read further back, and what
    #: is secret in them stays for longer.
    nats_stream_age_max_us: int = 7 * 86_400_000_000
    #: How long the broker itself recognizes a message that is published twice.
    nats_duplicate_window_us: int = 120_000_000
    #: Copies of the streams in a cluster of brokers. Raised: brokers may fail without loss, for slower publishing; no
    #: more than there are brokers.
    nats_replicas: int = 1
    #: How often deadlines, heartbeats and the connection to the broker are checked.
    nats_tick_us: int = 250_000
    #: How long the end of a connection to the broker may take.
    nats_close_timeout_us: int = 2_000_000
