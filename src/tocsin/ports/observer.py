"""Typed engine events. Logs, metrics and traces subscribe to them; `docs/reference/events.md` lists them.

Events about single timers are emitted on the hot path: observers must be fast and must not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class TimersCreated(NamedTuple):
    """Timers were created durably, in one commit."""

    namespace: str
    timers: int


class TimersChanged(NamedTuple):
    """Timers were updated or deleted durably, in one commit; `kind` is `updated` or `deleted`."""

    namespace: str
    kind: str
    timers: int


class OccurrenceEnded(NamedTuple):
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


class OccurrencesMissed(NamedTuple):
    """Instants of a schedule passed and do not fire, from the first to the last. `reason` is late (none could fire in time),
    overlap (the previous occurrence took too long), window (older than the catch-up window) or paused. At most 1,000 are
    counted."""

    shard_id: int
    namespace: str
    schedule_id: str
    reason: str
    instants: int
    first_at: int
    last_at: int


class ScheduleChanged(NamedTuple):
    """A schedule was changed durably. `kind` is created, changed, paused, resumed, triggered, backfilled,
    replanned (newer time zones moved its next instant), paused_after_failures, ended or deleted."""

    shard_id: int
    namespace: str
    schedule_id: str
    kind: str


class SchedulesReplanned(NamedTuple):
    """Newer time zones have moved the next instants of so many schedules that waited; they are planned again. `tzdata` is the
    version in use."""

    schedules: int
    tzdata: str


class AttemptFinished(NamedTuple):
    """An attempt to call a webhook ended. `outcome` is done, rescheduled, retried, failed, or superseded (the timer was
    changed meanwhile, so the result decides nothing). `lag_us` is the time from the attempt's instant, or from its acceptance
    if that is later, to the request's first byte; None if none was sent."""

    shard_id: int
    namespace: str
    timer_id: str
    attempt: int
    outcome: str
    error: str | None
    lag_us: int | None
    duration_us: int
    destination: str


class AttemptNotSent(NamedTuple):
    """A due timer's request was not sent for a local reason (`code`: NO_CONNECTION_SLOT, RESOLVER_FULL, NO_DESCRIPTOR,
    NO_MEMORY, NO_LOCAL_PORT, PROCESS_STALLED). It doesn't count as an attempt and is made again in a moment; with
    EGRESS_REFUSED (the settings forbid the host's addresses, which `detail` lists), the timer is suspended instead."""

    shard_id: int
    namespace: str
    timer_id: str
    attempt: int
    code: str
    detail: str | None
    destination: str


class TimerExpired(NamedTuple):
    """A due timer ended without another attempt, because none may begin after the limit that its `expireAfter` sets, which
    passed `late_us` ago. `status`: expired (no attempt was made), or failed."""

    shard_id: int
    namespace: str
    timer_id: str
    status: str
    late_us: int


class BatchCommitted(NamedTuple):
    """One transaction for `shards` shards became durable."""

    lane: int
    shards: int
    upserts: int
    deletes: int
    history: int
    duration_us: int


class BatchFailed(NamedTuple):
    """One transaction for `shards` shards failed. `kind` is read (the states that it depends on could not be read), definite
    (certainly no effect), unavailable (the same, for every write) or unknown (it may have taken effect)."""

    lane: int
    shards: int
    kind: str
    error: str


class PageLoaded(NamedTuple):
    """A page of timers was loaded into a shard's window."""

    shard_id: int
    rows: int
    duration_us: int


class LoadFailed(NamedTuple):
    """A read from the store failed and is retried. `shard_id` is None where it concerns no single shard (members, namespaces,
    retention)."""

    shard_id: int | None
    error: str


class NamespaceDamaged(NamedTuple):
    """The stored record of a namespace can't be read. Until it is restored, its timers are suspended and its operations
    refused."""

    namespace: str
    error: str


class RecordDamaged(NamedTuple):
    """The stored record of an API key, a sign-in or an entry of the audit trail can't be read. It is left out until it is
    restored or removed; others are read."""

    kind: str
    key: str
    error: str


class NodeNameShared(NamedTuple):
    """Several living nodes have the same name, so only one of them gets shards. Repeated at intervals while it lasts."""

    node: str
    incarnations: str


class ClusterSecretDiffers(NamedTuple):
    """A living node, perhaps this one, can't authenticate with those that started earlier: it owns no shards, and is not
    ready."""

    node: str
    incarnation: str
    remedy: str


class ShardClaimed(NamedTuple):
    """This node owns the shard, in this epoch."""

    shard_id: int
    epoch: int


class ShardLost(NamedTuple):
    """This node no longer owns the shard. `reason` is fenced, unknown_outcome, lease, newer_format, bad_rows, released or
    stopped."""

    shard_id: int
    epoch: int
    reason: str


class ShardReleased(NamedTuple):
    """This node released the shard gracefully, for another to claim."""

    shard_id: int
    epoch: int


class ClaimFailed(NamedTuple):
    """A claim failed or was lost to another node, or a release failed."""

    shard_id: int
    error: str


class TimerSuspended(NamedTuple):
    """A timer is being suspended; `reason` is `bad_record: …`, `namespace:…`, `destination:…` or `egress`."""

    shard_id: int
    uuid: bytes
    reason: str


class TimersResumed(NamedTuple):
    """Suspended timers of a shard are being resumed."""

    shard_id: int
    timers: int


class WriteRefused(NamedTuple):
    """One timer's write was removed from its batch because the store, or the encoder, refuses it."""

    shard_id: int
    uuid: bytes
    error: str


class DispatchPaused(NamedTuple):
    """The node fires nothing for now; `reason` is lease, clock_jump, clock_skew or unwritten_results."""

    reason: str
    detail: str


class DispatchResumed(NamedTuple):
    """The node fires again; `reason` is that of the pause."""

    reason: str


class HeartbeatFailed(NamedTuple):
    """A write of this node's heartbeat, or of a member row, failed."""

    error: str


class ClockOffset(NamedTuple):
    """The node's clock minus the store's in microseconds, measured at a heartbeat."""

    offset_us: int


class ClockDistrusted(NamedTuple):
    """The node's clock has differed from the store's for `member_timeout`, now by `offset_us`. Its shards go to nodes whose
    clocks are right, if there are any."""

    offset_us: int


class ClockTrusted(NamedTuple):
    """The node's clock has agreed with the store's for `member_timeout` again: the node takes its share of the shards."""

    offset_us: int


class HistoryPurged(NamedTuple):
    """Finished timers and runs were removed, because their retention was over or a schedule had more occurrences than it
    keeps."""

    timers: int


class PeerConnected(NamedTuple):
    """A connection to another node is ready, so clients' writes can be forwarded to it."""

    address: str


class PeerLost(NamedTuple):
    """A connection to another node could not be made, or ended."""

    address: str
    reason: str


class PeerRefused(NamedTuple):
    """A connection was refused because the peer did not prove membership of the cluster. `kind`: secret (it does not know the
    cluster's secret), tls (the TLS handshake failed, or its certificate is not a node's), plain (it connects without TLS) or
    connections (too many nodes)."""

    address: str
    reason: str
    kind: str = "secret"


class PeerCertificateLoaded(NamedTuple):
    """The certificate for connections between nodes was read from its file, at the start or because it changed. `ends_at`:
    when it ends, in seconds since 1970."""

    ends_at: int


class PeerCertificateNotLoaded(NamedTuple):
    """Changed files of certificates can't be used; new connections use the former ones."""

    error: str


class ClientRefused(NamedTuple):
    """The HTTP server refused a client before it read a request, or cut it off because it did not read its response.
    `address` is the client's; None if unknown."""

    reason: str
    address: str | None


class WritesSent(NamedTuple):
    """Clients' writes were sent to the owner of their shards in one message."""

    writes: int


class WritesForwarded(NamedTuple):
    """Clients' writes that were sent to the owners of their shards were settled. `outcome` is answered, moved (certainly not
    done, sent again to the shard's next owner) or unknown."""

    outcome: str
    writes: int


class StoreRequestRepeated(NamedTuple):
    """A request to the database failed temporarily and is sent again. `reason`: throttled, conflict, unprocessed, unanswered
    or unreachable."""

    reason: str


class StoreUnitsConsumed(NamedTuple):
    """Capacity units that the database charged for a request. `kind`: read or write."""

    kind: str
    units: float


class ShardSizeEstimated(NamedTuple):
    """The database's estimate of the size of a shard that this node writes has changed. It is an upper bound."""

    shard_id: int
    size_bytes: int


class PartitionSizeMeasured(NamedTuple):
    """The size of the largest shard that the database reports has changed."""

    size_bytes: int


Event = (
    TimersCreated
    | TimersChanged
    | OccurrenceEnded
    | OccurrencesMissed
    | ScheduleChanged
    | SchedulesReplanned
    | AttemptFinished
    | AttemptNotSent
    | TimerExpired
    | BatchCommitted
    | BatchFailed
    | PageLoaded
    | LoadFailed
    | NamespaceDamaged
    | RecordDamaged
    | NodeNameShared
    | ClusterSecretDiffers
    | ShardClaimed
    | ShardLost
    | ShardReleased
    | ClaimFailed
    | TimerSuspended
    | TimersResumed
    | WriteRefused
    | DispatchPaused
    | DispatchResumed
    | HeartbeatFailed
    | ClockOffset
    | ClockDistrusted
    | ClockTrusted
    | HistoryPurged
    | PeerConnected
    | PeerLost
    | PeerRefused
    | PeerCertificateLoaded
    | PeerCertificateNotLoaded
    | ClientRefused
    | WritesSent
    | WritesForwarded
    | StoreRequestRepeated
    | StoreUnitsConsumed
    | ShardSizeEstimated
    | PartitionSizeMeasured
)

Observer = Callable[[Event], None]


def fan_out(observers: list[Observer]) -> Observer:
    """One observer that notifies all of them, in order."""
    if len(observers) == 1:
        return observers[0]

    def notify(event: Event) -> None:
        for observer in observers:
            observer(event)

    return notify
