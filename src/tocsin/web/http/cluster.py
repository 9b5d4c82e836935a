"""The HTTP responses about the cluster and a node's health: their structs, and how they are made."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tocsin.model.instants import US_PER_SECOND, format_instant
from tocsin.ports.forward import NodeVitals
from tocsin.timers.service import ClusterView, NodeView, OwnersView, ShardView
from tocsin.web.http.optional import or_absent
from tocsin.web.http.wire import Instant, ResponseStruct, about

T = TypeVar("T")

#: 9999-12-31T23:59:59Z: represents "no end" in a format with four-digit years.
_INSTANT_TEXT_MAX_US = 253_402_300_799 * US_PER_SECOND

LagMs = Annotated[
    float,
    about("How long its oldest due timer has waited, in ms, since its instant, or since it was accepted if later."),
]


class Vitals(ResponseStruct):
    """A node's vital data. Latencies and the lag of the event loop are those of the last minute; latencies are null if
    nothing was measured."""

    uptime_s: Annotated[int, about("Seconds since the process started.")]
    cpu_cores: Annotated[float, about("Processor cores in use, over the last minute.")]
    memory_bytes: Annotated[int | None, about("Memory of the process in RAM; null if the system does not report it.")]
    loop_lag_ms: Annotated[float, about("By how much the event loop was late at most, in ms.")]
    read_p50_ms: Annotated[float | None, about("Median of the time that a small read of the store takes, in ms.")]
    read_p99_ms: Annotated[float | None, about("Its 99th percentile.")]
    commit_p50_ms: Annotated[float | None, about("Median of the time that a transaction takes, in ms.")]
    commit_p99_ms: Annotated[float | None, about("Its 99th percentile.")]
    in_flight: Annotated[int, about("Callbacks in flight.")]
    callback_connections: Annotated[int, about("Connections to receivers.")]
    client_connections: Annotated[int, about("Connections of clients.")]
    store_error: Annotated[str | None, about("The store's latest error; null if there was none since the start.")]
    store_error_at: Annotated[Instant | None, about("When that was.")]


class Node(ResponseStruct):
    """A node of the cluster. `self` marks the node that responds. Fields that only the node itself knows are null if it could
    not be reached: `version` (of its release), `dispatching`, `agent` (whether it runs the service agent), `windowTimers`,
    `lagMs`, `largestShardBytes`."""

    node: str
    incarnation: str
    address: str
    alive: bool
    self: bool
    shards: int
    leaving: Annotated[bool, about("Whether the node is handing over its shards.")] = False
    skewed: Annotated[
        bool, about("Whether its clock differs from the store's, so that other nodes take its shards if there are any.")
    ] = False
    version: str | None = None
    dispatching: bool | None = None
    agent: bool | None = None
    window_timers: int | None = None
    lag_ms: LagMs | None = None
    shares_name: Annotated[
        bool, about("Whether another live node has the same name: then only one of them gets shards.")
    ] = False
    secret_differs: Annotated[
        bool,
        about(
            "Whether its `cluster.secret` differs from that of nodes that started earlier, so that it owns no shards."
        ),
    ] = False
    largest_shard_bytes: Annotated[
        int | None,
        about(
            "Size of the largest shard, as the database reported it to the node. Null with databases that report no sizes."
        ),
    ] = None
    paused_since: Annotated[
        Instant | None, about("Since when it fires nothing; null while it fires, and if it could not be reached.")
    ] = None
    paused_reason: Annotated[
        str | None,
        about(
            "Why it fires nothing: starting, lease (the store did not answer in time), clock_skew, clock_jump, "
            "unwritten_results or stopped; null like pausedSince.",
            "lease",
        ),
    ] = None
    vitals: Annotated[Vitals | None, about("Null if the node could not be reached.")] = None


class Shard(ResponseStruct):
    """A shard; the statistics of its window are present only if its owner could be reached. `version` is its epoch."""

    shard_id: int
    version: int
    owner: str | None
    owned_here: bool
    window_timers: int | UnsetType = UNSET
    in_flight: int | UnsetType = UNSET
    complete_to: Instant | UnsetType = UNSET
    lag_ms: LagMs | UnsetType = UNSET


class Cluster(ResponseStruct):
    """Nodes, shards, and whether the responding node is dispatching timers."""

    total_shards: int
    dispatching: bool
    nodes: list[Node]
    shards: list[Shard]
    dispatch_paused_reason: str | UnsetType = UNSET


class OwnerNode(ResponseStruct):
    """A node of the cluster, for clients that send writes to the owners of shards."""

    api_url: Annotated[
        str | None,
        about("The URL of the node's API, from its setting `advertise_api`; null if it has none of its own."),
    ]
    alive: bool
    leaving: Annotated[bool, about("Whether the node is handing over its shards.")]
    skewed: Annotated[bool, about("Whether its clock differs from the store's, so that other nodes take its shards.")]


class ShardOwners(ResponseStruct):
    """Which node owns each shard, as the responding node last read it. `owners` has for each shard, by its number, the index
    of its owner in `nodes`, or null while none is known."""

    total_shards: int
    nodes: list[OwnerNode]
    owners: list[int | None]


class Health(ResponseStruct):
    """The node responds."""

    status: Annotated[str, Meta(examples=["ok"])]
    notices: (
        Annotated[
            list[str],
            Meta(
                description="Parts of the node that do not work, on which no other depends; absent if there are none.",
                examples=[["inbox: its database has not answered for 12 s; its rows wait there"]],
            ),
        ]
        | UnsetType
    ) = UNSET


def cluster_answer(view: ClusterView) -> Cluster:
    """The cluster as clients see it."""
    return Cluster(
        total_shards=view.total_shards,
        dispatching=view.dispatching,
        nodes=[_node_answer(node) for node in view.nodes],
        shards=[_shard_answer(shard) for shard in view.shards],
        dispatch_paused_reason=or_absent(view.dispatch_paused_reason),
    )


def owners_answer(view: OwnersView) -> ShardOwners:
    """The owners of the shards as clients see them."""
    nodes = [OwnerNode(node.api_url, node.alive, node.leaving, node.skewed) for node in view.nodes]
    return ShardOwners(len(view.owners), nodes, view.owners)


def _node_answer(node: NodeView) -> Node:
    fields = asdict(node)
    release, lag_us, since_us = fields.pop("release"), fields.pop("lag_us"), fields.pop("paused_since_us")
    fields["vitals"] = None if node.vitals is None else _vitals_answer(node.vitals)
    return Node(
        **fields,
        version=release,
        lag_ms=None if lag_us is None else lag_us / 1_000,
        paused_since=None if since_us is None else format_instant(since_us),
    )


def _vitals_answer(vitals: NodeVitals) -> Vitals:
    error_at = vitals.store_error_at
    fields = msgspec.structs.asdict(vitals) | {
        "store_error": vitals.store_error or None,
        "store_error_at": format_instant(error_at) if error_at else None,
    }
    return Vitals(**fields)


def _shard_answer(shard: ShardView) -> Shard:
    complete_to = shard.complete_to
    return Shard(
        shard_id=shard.shard_id,
        version=shard.epoch,
        owner=shard.owner,
        owned_here=shard.owned_here,
        window_timers=or_absent(shard.window_timers),
        in_flight=or_absent(shard.in_flight),
        complete_to=UNSET if complete_to is None else _bounded_instant(complete_to),
        lag_ms=UNSET if shard.lag_us is None else shard.lag_us / 1_000,
    )


def _bounded_instant(instant_us: int) -> str:
    """An instant of a shard's window, which may be the smallest or largest key, clamped to the calendar's range."""
    return format_instant(min(max(instant_us, 0), _INSTANT_TEXT_MAX_US))
