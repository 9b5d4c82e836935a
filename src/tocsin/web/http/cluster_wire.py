"""The structs of HTTP responses about the cluster and a node's health."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tocsin.web.http.wire import Instant, ResponseStruct, about

LagMs = Annotated[
    float,
    about("How long its oldest due timer has waited, in ms, since its instant, or since it was accepted if later."),
]


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
