"""Typed engine events. Logs, metrics and traces subscribe to them; `docs/reference/events.md` lists them.

Events about single timers are emitted on the hot path: observers must be fast and must not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from logging import DEBUG, ERROR, INFO, WARNING

from tocsin.ports.event import DURATION_SECONDS, LAG_SECONDS, AnyEvent, Counter, Gauge, Histogram, LineLimit

_ROWS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
#: An outage of the store fails every shard again and again.
_STORE_FAILURES = LineLimit(1, 10.0, shards=True)
_COMMITS = Counter(
    "tocsin_commits",
    "Transactions by result: durable, definite (failed), unavailable, unknown, read, fenced.",
    ("result",),
    from_zero=("durable", "definite", "unavailable", "unknown", "read", "fenced"),
)
_CERTIFICATE_READS = Counter(
    "tocsin_peer_certificate_reads",
    "Reads of the files with the certificate for other nodes, at the start and after changes, by result: loaded, failed.",
    ("result",),
    from_zero=("loaded", "failed"),
)


class Event(AnyEvent, frozen=True):
    """Base of the events of the engine, the store, the cluster and the web server."""


class TimersCreated(Event, frozen=True):
    """Timers were created durably, in one commit."""

    namespace: str
    timers: int
    counter = Counter("tocsin_timers_created", "Timers durably created or replaced.", ("namespace",), by="timers")


class TimersChanged(Event, frozen=True):
    """Timers were updated, deleted or replayed durably, in one commit; `kind` is one of these words."""

    namespace: str
    kind: str
    timers: int
    counter = Counter("tocsin_timers_changed", "Timers changed or replayed.", ("namespace", "kind"), by="timers")


class OccurrenceEnded(Event, frozen=True):
    """An occurrence of a schedule has ended durably. `source` is regular, trigger or backfill, `firing` the end of its
    attempts' `webhook-id`; `outcome` is completed, failed or expired."""

    shard_id: int
    namespace: str
    schedule_id: str
    source: str
    instant: int
    firing: str
    outcome: str
    attempts: int
    counter = Counter(
        "tocsin_occurrences",
        "Occurrences of schedules that ended: completed, failed, expired.",
        ("namespace", "source", "outcome"),
    )


class OccurrencesMissed(Event, frozen=True):
    """Instants of a schedule passed and do not fire. `reason` is late (none could fire in time), overlap (the previous one
    took too long), window (older than the catch-up window), paused, or excluded, which is no warning. At most 1,000 count."""

    shard_id: int
    namespace: str
    schedule_id: str
    reason: str
    instants: int
    first_at: int
    last_at: int
    counter = Counter(
        "tocsin_occurrences_missed",
        "Instants of schedules that did not fire: late, overlap, window, paused, excluded; at most 1,000 at once.",
        ("namespace", "reason"),
        by="instants",
    )

    def severity(self) -> int:
        return DEBUG if self.reason == "excluded" else WARNING


class ScheduleChanged(Event, frozen=True):
    """A schedule was changed durably. `kind` is created, changed, paused, resumed, triggered, backfilled, skipped,
    unskipped, replanned (time zones or calendars moved its next instant), paused_after_failures, ended or deleted."""

    shard_id: int
    namespace: str
    schedule_id: str
    kind: str
    counter = Counter(
        "tocsin_schedules_changed",
        "Schedules durably created, changed, paused, resumed, replanned, ended.",
        ("namespace", "kind"),
    )


class SchedulesReplanned(Event, frozen=True):
    """Newer time zones or changed calendars have moved the next instants of `schedules` waiting schedules; they are planned
    again. `tzdata` is the version of the time zones in use."""

    schedules: int
    tzdata: str
    level = INFO


ATTEMPTS = Counter(
    "tocsin_attempts", "Attempts by outcome: done, rescheduled, retried, failed, superseded.", ("namespace", "outcome")
)
LAG = Histogram(
    "tocsin_lag_seconds",
    "From an attempt's due time, or its acceptance if later, to the first byte of its request.",
    LAG_SECONDS,
    "lag_us",
)
CALLBACK_DURATION = Histogram(
    "tocsin_callback_duration_seconds",
    "From the start of an attempt to the end of the response.",
    DURATION_SECONDS,
    "duration_us",
)


class AttemptFinished(Event, frozen=True):
    """An attempt to call a webhook ended. `outcome` is done, rescheduled, retried, failed, or superseded (the timer was
    changed meanwhile, so the result decides nothing). `lag_us` is the time from the attempt's instant, or from its acceptance
    if that is later, to the request's first byte; None if none was sent. `path`: that of its URL if it failed."""

    shard_id: int
    namespace: str
    timer_id: str
    attempt: int
    outcome: str
    error: str | None
    lag_us: int | None
    duration_us: int
    destination: str
    path: str = ""
    unlogged = ("path",)
    line_limit = LineLimit(10)
    counter = ATTEMPTS
    histograms = (LAG, CALLBACK_DURATION)

    def severity(self) -> int:
        return WARNING if self.outcome == "failed" else DEBUG

    def sentence(self) -> str:
        return "timer failed" if self.outcome == "failed" else "attempt finished"


class AttemptNotSent(Event, frozen=True):
    """A due timer's request was not sent for a local reason (`code`: NO_CONNECTION_SLOT, RESOLVER_FULL, NO_DESCRIPTOR,
    NO_MEMORY, NO_LOCAL_PORT, PROCESS_STALLED). It doesn't count as an attempt and is made again in a moment. With
    EGRESS_REFUSED (`detail` has the addresses), SECRET_UNREADABLE or CREDENTIAL_NOT_READY, the timer is suspended."""

    shard_id: int
    namespace: str
    timer_id: str
    attempt: int
    code: str
    detail: str | None
    destination: str
    level = WARNING
    line_limit = LineLimit(5)
    counter = Counter(
        "tocsin_attempts_not_sent",
        "Requests that could not be sent, by code; they do not count as attempts, and are retried or suspend the timer.",
        ("code",),
    )


class TimerExpired(Event, frozen=True):
    """A due timer ended without another attempt, because none may begin after the limit that its `expireAfter` sets, which
    passed `late_us` ago. `status`: expired (no attempt was made), or failed."""

    shard_id: int
    namespace: str
    timer_id: str
    status: str
    late_us: int
    level = WARNING
    line_limit = LineLimit(5)
    counter = Counter(
        "tocsin_timers_expired",
        "Timers that ended without another attempt, because their `expireAfter` was over, by status: expired (no attempt was "
        "made), failed.",
        ("namespace", "status"),
    )


class BatchCommitted(Event, frozen=True):
    """One transaction for `shards` shards became durable."""

    lane: int
    shards: int
    upserts: int
    deletes: int
    history: int
    duration_us: int
    counter = _COMMITS
    result = "durable"
    histograms = (
        Histogram(
            "tocsin_commit_duration_seconds",
            "Duration of one transaction in the store.",
            DURATION_SECONDS,
            "duration_us",
        ),
        Histogram("tocsin_commit_rows", "Upserts, deletes and history rows in one transaction.", _ROWS, "rows"),
    )

    @property
    def rows(self) -> int:
        return self.upserts + self.deletes + self.history


class BatchFailed(Event, frozen=True):
    """One transaction for `shards` shards failed. `kind` is read (what it needs could not be read), definite (no effect),
    unavailable (none, for every write), unknown (perhaps some) or fenced (results of a shard given up before are lost)."""

    lane: int
    shards: int
    kind: str
    error: str
    level = ERROR
    line_limit = replace(_STORE_FAILURES, each="kind")
    counter = replace(_COMMITS, values=("kind",))


class PageLoaded(Event, frozen=True):
    """A page of timers was loaded into a shard's window."""

    shard_id: int
    rows: int
    duration_us: int
    counter = Counter("tocsin_rows_loaded", "Timers loaded from the store into the windows.", by="rows")
    histograms = (
        Histogram("tocsin_load_duration_seconds", "Duration of loading a page.", DURATION_SECONDS, "duration_us"),
    )


class LoadFailed(Event, frozen=True):
    """A read from the store failed and is retried. `shard_id` is None where it concerns no single shard (members, namespaces,
    retention)."""

    shard_id: int | None
    error: str
    level = ERROR
    line_limit = _STORE_FAILURES
    counter = Counter("tocsin_load_failures", "Failed reads of the store, which are retried.")


class NamespaceDamaged(Event, frozen=True):
    """A namespace's stored record can't be read. Meanwhile its timers are suspended and its operations refused."""

    namespace: str
    error: str
    level = ERROR
    counter = Counter("tocsin_namespaces_damaged", "Namespaces whose stored record was found damaged.")


class RecordDamaged(Event, frozen=True):
    """A stored record can't be read: of an API key, a sign-in, the audit trail or statistics. Only it is left out."""

    kind: str
    key: str
    error: str
    level = ERROR
    # Each reader of a list meets it again.
    line_limit = LineLimit(5)
    counter = Counter("tocsin_records_damaged", "Times that a damaged record was left out, by kind.", ("kind",))


class NodeNameShared(Event, frozen=True):
    """Several living nodes have the same name, so only one of them gets shards. Repeated at intervals while it lasts."""

    node: str
    incarnations: str
    level = WARNING


class ClusterSecretDiffers(Event, frozen=True):
    """A living node, perhaps this one, can't authenticate with those that started earlier: it owns no shards, and is not
    ready."""

    node: str
    incarnation: str
    remedy: str
    level = ERROR


class ShardClaimed(Event, frozen=True):
    """This node owns the shard, in this epoch."""

    shard_id: int
    epoch: int
    counter = Counter("tocsin_claims", "Shards claimed.")


class ShardLost(Event, frozen=True):
    """This node no longer owns the shard. `reason` is fenced, unknown_outcome, lease, newer_format, bad_rows, released or
    stopped."""

    shard_id: int
    epoch: int
    reason: str
    level = WARNING
    counter = Counter("tocsin_shards_lost", "Shards that this node lost, by reason.", ("reason",))

    def severity(self) -> int:
        return DEBUG if self.reason in ("released", "stopped") else WARNING


class ShardReleased(Event, frozen=True):
    """This node released the shard gracefully, for another to claim."""

    shard_id: int
    epoch: int


class ClaimFailed(Event, frozen=True):
    """A claim failed or was lost to another node, or a release failed."""

    shard_id: int
    error: str
    level = WARNING
    line_limit = _STORE_FAILURES
    counter = Counter("tocsin_claim_failures", "Claims that failed or were lost to another node.")


class TimerSuspended(Event, frozen=True):
    """A timer is suspended: `egress`, `secret`, `credential:…`, `namespace:…`, `destination:…`, `flow:…`, `bad_record: …`."""

    shard_id: int
    uuid: bytes
    reason: str
    level = WARNING
    line_limit = LineLimit(5, shards=True)
    counter = Counter(
        "tocsin_timers_suspended",
        "Timers suspended, by reason: namespace, destination, flow, credential, egress, secret or bad_record.",
        ("reason",),
        values=("cause",),
        from_zero=("namespace", "destination", "flow", "credential", "egress", "secret", "bad_record"),
    )

    @property
    def cause(self) -> str:
        return self.reason.partition(":")[0]

    def severity(self) -> int:
        return WARNING if self.reason.startswith("bad_record") else DEBUG


class TimersResumed(Event, frozen=True):
    """Suspended timers of a shard are being resumed."""

    shard_id: int
    timers: int
    level = INFO
    counter = Counter("tocsin_timers_resumed", "Suspended timers that were resumed.", by="timers")


class WriteRefused(Event, frozen=True):
    """One timer's write was removed from its batch because the store, or the encoder, refuses it."""

    shard_id: int
    uuid: bytes
    error: str
    level = ERROR
    line_limit = LineLimit(5, shards=True)
    counter = Counter("tocsin_writes_refused", "Writes of single timers that were refused and left out of their batch.")


class DispatchPaused(Event, frozen=True):
    """The node fires nothing for now; `reason` is lease, clock_jump, clock_skew or unwritten_results."""

    reason: str
    detail: str
    level = WARNING


class DispatchResumed(Event, frozen=True):
    """The node fires again; `reason` is that of the pause."""

    reason: str
    level = INFO


class HeartbeatFailed(Event, frozen=True):
    """A write of this node's heartbeat, or of a member row, failed."""

    error: str
    level = ERROR
    line_limit = _STORE_FAILURES
    counter = Counter("tocsin_heartbeat_failures", "Heartbeats that could not be written to the store.")


class ClockOffset(Event, frozen=True):
    """The node's clock minus the store's in microseconds, measured at a heartbeat."""

    offset_us: int
    gauge = Gauge("tocsin_clock_offset_seconds", "This node's clock minus the store's, last measured.", "offset_us")


class ClockDistrusted(Event, frozen=True):
    """The node's clock has differed from the store's for `member_timeout`, now by `offset_us`. Its shards go to nodes whose
    clocks are right, if there are any."""

    offset_us: int
    level = WARNING


class ClockTrusted(Event, frozen=True):
    """The node's clock has agreed with the store's for `member_timeout` again: the node takes its share of the shards."""

    offset_us: int
    level = INFO


class HistoryPurged(Event, frozen=True):
    """Finished timers and runs were removed: their retention was over, or a schedule keeps fewer occurrences."""

    timers: int
    counter = Counter("tocsin_history_purged", "Finished timers and runs removed by retention.", by="timers")


class PeerConnected(Event, frozen=True):
    """A connection to another node is ready, so clients' writes can be forwarded to it."""

    address: str
    level = INFO


class PeerLost(Event, frozen=True):
    """A connection to another node ended, or could not be made. Repeated every 30 seconds while attempts to connect fail."""

    address: str
    reason: str
    level = WARNING
    counter = Counter(
        "tocsin_peer_losses",
        "Connections to other nodes that broke or could not be made. An outage counts once, and again every 30 seconds while "
        "attempts to connect fail; a node that stops in order does not count.",
    )


class PeerLeft(Event, frozen=True):
    """Another node has closed its connection because it stops."""

    address: str
    level = INFO


class PeerRefused(Event, frozen=True):
    """A connection was refused because the peer did not prove membership of the cluster. `kind`: secret (it does not know the
    cluster's secret), tls (the TLS handshake failed, or its certificate is not a node's), plain (it connects without TLS) or
    connections (too many nodes)."""

    address: str
    reason: str
    kind: str = "secret"
    level = WARNING
    line_limit = LineLimit(5)
    counter = Counter(
        "tocsin_peers_refused",
        "Connections refused because the peer did not prove to be a node of the cluster, by reason: secret, tls (no valid "
        "certificate), plain (without TLS), connections (too many).",
        ("reason",),
        values=("kind",),
        from_zero=("secret", "tls", "plain", "connections"),
    )


class PeerCertificateLoaded(Event, frozen=True):
    """The certificate for connections between nodes was read from its file, at the start or because it changed. `ends_at`:
    when it ends, in seconds since 1970."""

    ends_at: int
    level = INFO
    counter = _CERTIFICATE_READS
    result = "loaded"
    gauge = Gauge(
        "tocsin_peer_certificate_expiry_timestamp_seconds",
        "When the certificate for other nodes expires; 0 without TLS.",
        "ends_at",
    )


class PeerCertificateNotLoaded(Event, frozen=True):
    """Changed files of certificates can't be used; new connections use the former ones."""

    error: str
    level = ERROR
    counter = _CERTIFICATE_READS
    result = "failed"


class ClientRefused(Event, frozen=True):
    """The HTTP server refused a client before it read a request, or cut it off because it did not read its response.
    `address` is the client's; None if unknown."""

    reason: str
    address: str | None
    level = WARNING
    line_limit = LineLimit(5)
    counter = Counter(
        "tocsin_clients_refused",
        "Clients refused before their request was complete, by reason: not HTTP, too many connections, bodies take too much "
        "memory; clients cut off because unread responses take too much memory; and the number of seconds without a free "
        "file descriptor.",
        ("reason",),
    )


class WritesSent(Event, frozen=True):
    """Clients' writes were sent to the owner of their shards in one message."""

    writes: int
    counter = Counter("tocsin_forward_messages", "Messages with forwarded client writes; many writes share a message.")


class WritesForwarded(Event, frozen=True):
    """Clients' writes that were sent to the owners of their shards were settled. `outcome` is answered, moved (certainly not
    done, sent again to the shard's next owner) or unknown."""

    outcome: str
    writes: int
    counter = Counter(
        "tocsin_writes_forwarded",
        "Client writes forwarded to other nodes, by outcome: answered, moved, unknown.",
        ("outcome",),
        by="writes",
    )


class StoreRequestRepeated(Event, frozen=True):
    """A request to the database failed temporarily and is sent again. `reason`: throttled, conflict, unprocessed, unanswered
    or unreachable."""

    reason: str
    counter = Counter(
        "tocsin_store_requests_repeated",
        "Requests sent to DynamoDB again, by reason: throttled, conflict, unprocessed, unanswered, unreachable.",
        ("reason",),
    )


class StoreUnitsConsumed(Event, frozen=True):
    """Capacity units that the database charged for a request. `kind`: read or write."""

    kind: str
    units: float
    counter = Counter("tocsin_store_units", "Units consumed in DynamoDB, by kind: read, write.", ("kind",), by="units")


class ShardSizeEstimated(Event, frozen=True):
    """The database's estimate of the size of a shard that this node writes has changed. It is an upper bound."""

    shard_id: int
    size_bytes: int

    def severity(self) -> int:
        # DynamoDB limits a shard to 10 GiB.
        return WARNING if self.size_bytes >= 8 << 30 else DEBUG


class PartitionSizeMeasured(Event, frozen=True):
    """The size of the largest shard that the database reports has changed."""

    size_bytes: int

    def severity(self) -> int:
        # Cassandra has no limit, but compactions and repairs of partitions of many GiB take long.
        return WARNING if self.size_bytes >= 1 << 30 else DEBUG


Observer = Callable[[Event], None]


def fan_out(observers: list[Observer]) -> Observer:
    """One observer that notifies all of them, in order."""
    if len(observers) == 1:
        return observers[0]

    def notify(event: Event) -> None:
        for observer in observers:
            observer(event)

    return notify
