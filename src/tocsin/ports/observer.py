"""Typed engine events. Logs, metrics and traces subscribe to them; `docs/reference/events.md` is their table.

Events about single timers are emitted on the hot path: observers must be quick and must not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class TimersCreated(NamedTuple):
    """Creates became durable."""

    namespace: str
    timers: int


class TimersChanged(NamedTuple):
    """Updates or deletes became durable; `kind` is `updated` or `deleted`."""

    namespace: str
    kind: str
    timers: int


class AttemptFinished(NamedTuple):
    """A webhook was called. `outcome`: done, rescheduled, retried, failed or superseded (its answer decides nothing, the
    timer was changed meanwhile). `lag_us`: from the attempt's instant, or from when that was accepted if that is later, to
    the request's first byte; None if none was sent."""

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
    """A due timer's request could not be sent, for a reason of this machine's own (`code`: NO_CONNECTION_SLOT, RESOLVER_FULL,
    NO_DESCRIPTOR, NO_MEMORY, NO_LOCAL_PORT, PROCESS_STALLED): it counts for nothing and is made again in a moment."""

    shard_id: int
    namespace: str
    timer_id: str
    attempt: int
    code: str
    detail: str | None
    destination: str


class BatchCommitted(NamedTuple):
    """One transaction became durable, for `shards` shards."""

    lane: int
    shards: int
    upserts: int
    deletes: int
    history: int
    duration_us: int


class BatchFailed(NamedTuple):
    """One transaction did not, or nobody knows; `kind` is definite, unavailable or unknown."""

    lane: int
    shards: int
    kind: str
    error: str


class PageLoaded(NamedTuple):
    """The window was extended."""

    shard_id: int
    rows: int
    duration_us: int


class LoadFailed(NamedTuple):
    """A read failed and will be tried again; `shard_id` is None for what concerns no single shard (members, namespaces,
    retention)."""

    shard_id: int | None
    error: str


class NodeNameShared(NamedTuple):
    """Living nodes of different incarnations have one name, so that only one of them gets shards. Told again once in a while
    for as long as it lasts."""

    node: str
    incarnations: str


class ShardClaimed(NamedTuple):
    """This node owns the shard from now on."""

    shard_id: int
    epoch: int


class ShardLost(NamedTuple):
    """This node no longer owns the shard; `reason` is fenced, unknown_outcome, newer_format, bad_rows or stopped."""

    shard_id: int
    epoch: int
    reason: str


class ShardReleased(NamedTuple):
    """This node gave the shard up in order."""

    shard_id: int
    epoch: int


class ClaimFailed(NamedTuple):
    """A claim was lost to another node or failed."""

    shard_id: int
    error: str


class TimerSuspended(NamedTuple):
    """A timer was set aside; `reason` is `bad_record: …`, `namespace:…` or `destination:…`."""

    shard_id: int
    uuid: bytes
    reason: str


class TimersResumed(NamedTuple):
    """Suspended timers came back."""

    shard_id: int
    timers: int


class WriteRefused(NamedTuple):
    """One timer's write fails by itself and was taken out of its batch."""

    shard_id: int
    uuid: bytes
    error: str


class DispatchPaused(NamedTuple):
    """Nothing rings for now; `reason` is lease, clock_jump, clock_skew or unwritten_results."""

    reason: str
    detail: str


class DispatchResumed(NamedTuple):
    """It rings again."""

    reason: str


class HeartbeatFailed(NamedTuple):
    """The store did not take the heartbeat."""

    error: str


class ClockOffset(NamedTuple):
    """The node's clock minus the store's, as measured at a heartbeat, microseconds."""

    offset_us: int


class ClockDistrusted(NamedTuple):
    """The node's clock has been off the store's for a while, by so many microseconds: its shards go to nodes whose clocks
    are right, if there are any."""

    offset_us: int


class ClockTrusted(NamedTuple):
    """It has been right for a while again: the node takes its share of the shards."""

    offset_us: int


class HistoryPurged(NamedTuple):
    """Retention removed finished timers."""

    timers: int


class PeerConnected(NamedTuple):
    """This node can send its clients' writes to another."""

    address: str


class PeerLost(NamedTuple):
    """A connection to another node could not be made, or ended."""

    address: str
    reason: str


class PeerRefused(NamedTuple):
    """Somebody connected who is no member of the cluster."""

    address: str
    reason: str


class ClientRefused(NamedTuple):
    """A client of the HTTP server was turned away before it had a request, by reason; `address` is the client's, None
    where it is not known."""

    reason: str
    address: str | None


class WritesSent(NamedTuple):
    """Clients' writes went to the owner of their shards, together in one message."""

    writes: int


class WritesForwarded(NamedTuple):
    """Clients' writes sent to owners of their shards came to an end there; `outcome` is answered, moved (certainly not done,
    tried again with the shard's next owner) or unknown."""

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


Event = (
    TimersCreated
    | TimersChanged
    | AttemptFinished
    | AttemptNotSent
    | BatchCommitted
    | BatchFailed
    | PageLoaded
    | LoadFailed
    | NodeNameShared
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
    | ClientRefused
    | WritesSent
    | WritesForwarded
    | StoreRequestRepeated
    | StoreUnitsConsumed
    | ShardSizeEstimated
)

Observer = Callable[[Event], None]


def fan_out(observers: list[Observer]) -> Observer:
    """One observer that tells all of them."""
    if len(observers) == 1:
        return observers[0]

    def tell(event: Event) -> None:
        for observer in observers:
            observer(event)

    return tell
