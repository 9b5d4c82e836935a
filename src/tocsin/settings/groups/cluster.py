"""Several nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from tocsin.cluster.limits import ClusterLimits
from tocsin.settings.groups.base import Group
from tocsin.settings.values import (
    Count,
    Duration,
    Port,
    api_url,
    dns_name,
    former_secret,
    name_of_node,
    peer_address,
    secret,
)
from tocsin.timers.engine.limits import EngineLimits

_ENGINE, _CLUSTER = EngineLimits(), ClusterLimits()


class Cluster(Group):
    """Names and addresses of nodes, failure detection, and writes that nodes forward."""

    title: ClassVar[str] = "Several nodes"
    intro: ClassVar[str] = (
        "How nodes find one another, and how soon they take over. [How to run several](../how-to/several-nodes.md)."
    )

    node_name: Annotated[str | None, BeforeValidator(name_of_node)] = Field(
        None,
        description="This node's name in `GET /cluster`; it decides which shards the node gets, so no two nodes may "
        "have the same. Unset: the host's name and the port.",
    )
    advertise: Annotated[str, BeforeValidator(peer_address)] | None = Field(
        None,
        description="Address, or address and port, at which other nodes reach this one. Unset: `host`; if that stands "
        "for every address, the one from which this node reaches the database, or the host's name if the database is "
        "on this machine.",
    )
    advertise_api: Annotated[str, BeforeValidator(api_url)] | None = Field(
        None,
        description="URL of this node's own API, such as `http://10.0.0.5:8080`, for clients that send each write to the "
        "node that owns its timer. Unset: such clients use the address they were given, and any node forwards their "
        "writes. Workers of one server share a URL, so theirs is not shown.",
    )
    cluster_port: Port = Field(
        0,
        description="Port for connections of other nodes; 0 picks a free port. Worker n of several listens on the "
        "n-th port after it.",
    )
    cluster_secret: Annotated[str, BeforeValidator(secret)] | None = Field(
        None,
        description="Shared secret by which nodes authenticate one another: at least 16 characters, the same on every "
        "node. A node with another secret gets no shards and is not ready. Unset: a random one that the store keeps for all "
        "nodes.",
    )
    cluster_secret_file: Path | None = Field(
        None, description="File with the value of `cluster.secret`. The server reads it at its start."
    )
    cluster_secret_former: Annotated[str, BeforeValidator(former_secret)] | None = Field(
        None,
        description="While `cluster.secret` is replaced, the value that it had before, or `stored` if it was unset. This "
        "node accepts nodes that still have it. Set it only until every node has the new secret.",
    )
    cluster_secret_former_file: Path | None = Field(
        None, description="File with the value of `cluster.secret_former`. The server reads it at its start."
    )
    cluster_tls_certificate_file: Path | None = Field(
        None,
        description="PEM file with the certificate that this node shows to other nodes, then the intermediate ones. With it, "
        "`cluster.tls_key_file` and `cluster.tls_ca_file`, nodes speak TLS with one another, and a connection without it is "
        "refused. The files are read again when they change.",
    )
    cluster_tls_key_file: Path | None = Field(
        None, description="PEM file with the private key of `cluster.tls_certificate_file`, without a passphrase."
    )
    cluster_tls_ca_file: Path | None = Field(
        None,
        description="PEM file with the certificates of the authorities that sign nodes' certificates. While an authority is "
        "replaced, it has the former and the new one.",
    )
    cluster_tls_name: Annotated[str, BeforeValidator(dns_name)] = Field(
        "tocsin-node",
        description="DNS name that the certificate of every node has as a subject alternative name. A certificate of the "
        "same authority without it is refused.",
    )
    heartbeat_interval: Duration = Field(
        _ENGINE.heartbeat_interval_us,
        description="How often a node writes its heartbeat and reads those of the others; must be shorter than "
        "`node_lease`. Lower values detect failures sooner and query the store more often.",
    )
    node_lease: Duration = Field(
        _ENGINE.node_lease_us,
        description="How long a node keeps firing after its last successful heartbeat; must be shorter than "
        "`member_timeout`, so that it stops before others take over. Higher values bridge longer outages of the "
        "database.",
    )
    member_timeout: Duration = Field(
        _ENGINE.member_timeout_us,
        description="How long a node's heartbeat must be missing before others take over its shards; also how long "
        "the first node on a database server waits after its start. Lower values take over sooner after a crash; if "
        "too low, a node that merely paused loses its shards.",
    )
    clock_skew_max: Duration = Field(
        _ENGINE.clock_skew_max_us,
        description="How far a node's clock may differ from the store's; beyond it the node fires nothing. With "
        "higher values timers may fire early by as much; lower values pause nodes with poorly kept clocks more often.",
    )
    namespaces_interval: Duration = Field(
        _ENGINE.namespaces_interval_us,
        description="How often a node reads namespaces again, to apply changes made through other nodes; must be "
        "shorter than `namespaces_lease`. Lower values apply them sooner, for more queries.",
    )
    namespaces_lease: Duration = Field(
        _ENGINE.namespaces_lease_us,
        description="How long a node keeps dispatching after its last successful read of the namespaces. A change of "
        "a namespace waits up to a fifth longer than this for a node that does not confirm it, before it is "
        "acknowledged. Higher values bridge longer outages of the store.",
    )
    duplicate_name_warning_interval: Duration = Field(
        _ENGINE.duplicate_name_warning_interval_us,
        description="Shortest time between two log warnings that two live nodes have the same name. Higher values log "
        "less.",
    )
    cluster_waiting_writes_max: Count = Field(
        _CLUSTER.waiting_writes_max,
        description="Writes that wait on a node while their shard has no owner; further ones are refused with "
        "OVERLOADED (429). Higher values refuse fewer writes during takeovers, for more memory.",
    )
    cluster_send_queue_max: Count = Field(
        _CLUSTER.send_queue_max,
        description="Writes queued for one other node; further ones are refused with OVERLOADED (429). Higher values "
        "bridge longer pauses of that node.",
    )
    cluster_message_age_max: Duration = Field(
        _CLUSTER.message_age_max_us,
        description="How long a forwarded write may be in transit; an older one is returned and sent again. It bounds "
        "how late a write can still be done after the node that sent it died. Raise it if the network between nodes "
        "is slower.",
    )
    cluster_peer_timeout: Duration = Field(
        _CLUSTER.peer_timeout_us,
        description="How long a connection to another node may be silent before it is closed. Lower values detect "
        "broken connections sooner; if too low, short pauses close live ones.",
    )
    cluster_agent_wait: Duration = Field(
        _CLUSTER.agent_wait_us,
        description="How long a request for a service call waits while no node runs the agent; then it is answered 503. "
        "Higher values bridge longer takeovers; clients wait longer.",
    )
