"""The cluster view: members, owners of shards, and the size and lag of each shard's window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tocsin import __version__
from tocsin.ports.forward import NodeReport, NodeVitals, ShardReport
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.membership import Flag, address_of, api_url_of
from tocsin.timers.engine.placement import SECRET_REMEDY
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.explaining import PAUSE_TEXTS
from tocsin.timers.quotas import reported_use


@dataclass(frozen=True, slots=True)
class ShardView:
    """A shard. Fields of its window are None if its owner did not answer. `lag_us` is how long the oldest due timer has
    waited; 0 when none is due."""

    shard_id: int
    epoch: int
    owner: str | None
    owned_here: bool
    window_timers: int | None = None
    in_flight: int | None = None
    complete_to: int | None = None
    lag_us: int | None = None


@dataclass(frozen=True, slots=True)
class NodeView:
    """A member of the cluster. Fields that only the member itself reports are None if it did not answer."""

    node: str
    incarnation: str
    address: str
    alive: bool
    self: bool
    shards: int
    leaving: bool = False
    skewed: bool = False
    #: Whether another living node has its name.
    shares_name: bool = False
    #: Whether it can't authenticate with nodes that started earlier.
    secret_differs: bool = False
    release: str | None = None
    dispatching: bool | None = None
    agent: bool | None = None
    window_timers: int | None = None
    lag_us: int | None = None
    #: Of the largest shard, as the database reported it to the member; also None if it reports no sizes.
    largest_shard_bytes: int | None = None
    paused_since_us: int | None = None
    #: A code of `PAUSE_TEXTS`.
    paused_reason: str | None = None
    vitals: NodeVitals | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything `GET /cluster` shows."""

    total_shards: int
    nodes: list[NodeView]
    shards: list[ShardView]
    dispatching: bool
    dispatch_paused_reason: str | None


@dataclass(frozen=True, slots=True)
class ApiNode:
    """A member as clients need it that send writes to owners. `api_url` is None if the member announces none, or shares it
    with another living one."""

    api_url: str | None
    alive: bool
    leaving: bool
    skewed: bool


@dataclass(frozen=True, slots=True)
class OwnersView:
    """Which member owns each shard: `owners` has for each shard the index of its owner in `nodes`, or None."""

    nodes: list[ApiNode]
    owners: list[int | None]


def report_of(
    supervisor: Supervisor,
    context: Context,
    *,
    agent: bool,
    agent_configured: bool,
    largest_shard_bytes: int | None,
    vitals: NodeVitals | None,
) -> NodeReport:
    """This node's report about itself."""
    reason = supervisor.dispatcher.paused_reason
    now_us = context.clock.now_us()
    shards = []
    for shard in supervisor.dispatcher.shards.values():
        window = shard.window
        if window is None:
            continue
        shards.append(
            ShardReport(
                shard.shard_id,
                window.epoch,
                len(window.rows),
                window.in_flight_count,
                window.horizon[0] if window.horizon[0] > 0 else None,
                window.longest_wait_us(now_us),
            )
        )
    return NodeReport(
        __version__,
        reason is None,
        reason,
        agent,
        shards,
        largest_shard_bytes=largest_shard_bytes,
        paused_since_us=None if reason is None else supervisor.dispatcher.paused_since_us,
        vitals=vitals,
        quotas=reported_use(context),
        agent_configured=agent_configured,
    )


def cluster_view(
    supervisor: Supervisor, own: NodeReport, reports: Mapping[bytes, NodeReport], *, alone: bool = False
) -> ClusterView:
    """The cluster as this node sees it. `reports` come from the other nodes, by incarnation. `alone`: the store belongs to
    this node alone, so other members are its former starts and are left out."""
    reports = {**reports, supervisor.incarnation: own}
    reported = {
        shard.shard_id: (incarnation, shard) for incarnation, report in reports.items() for shard in report.shards
    }
    owners = _owners(supervisor, reported)
    shards = [
        _shard_view(supervisor, shard_id, owners[shard_id], reported.get(shard_id))
        for shard_id in range(supervisor.total_shards)
    ]
    return ClusterView(
        supervisor.total_shards,
        [
            view
            for view in _node_views(supervisor, reports, [owner for owner, _ in owners.values()])
            if view.self or not alone
        ],
        shards,
        own.dispatching,
        own.dispatch_paused_reason,
    )


def owners_view(supervisor: Supervisor, *, alone: bool = False) -> OwnersView:
    """Members and owners as this node last read them, without asking the others; they may be out of date. `alone` is that of
    `cluster_view`."""
    membership, placement = supervisor.membership, supervisor.placement
    members = sorted(membership.members(), key=lambda member: (member.node, member.incarnation))
    if alone:
        members = [member for member in members if member.incarnation == supervisor.incarnation]
    living = Counter(api_url_of(member) for member in members if membership.alive(member.incarnation))
    nodes = []
    for member in members:
        url, incarnation = api_url_of(member), member.incarnation
        alive = membership.alive(incarnation)
        nodes.append(
            ApiNode(
                None if living[url] > alive else url,
                alive,
                membership.has(incarnation, Flag.LEAVING),
                membership.has(incarnation, Flag.SKEWED),
            )
        )
    index = {member.incarnation: number for number, member in enumerate(members)}
    owners = (placement.owner(shard_id) for shard_id in range(supervisor.total_shards))
    return OwnersView(nodes, [None if owner is None else index.get(owner.incarnation) for owner in owners])


def _owners(
    supervisor: Supervisor, reported: Mapping[int, tuple[bytes, ShardReport]]
) -> dict[int, tuple[bytes | None, int]]:
    """Owner and epoch of each shard: as read from the store, or as the owner reports if its epoch is newer."""
    owners: dict[int, tuple[bytes | None, int]] = {}
    for shard_id in range(supervisor.total_shards):
        _, epoch, owner = supervisor.placement.state(shard_id)
        newest = reported.get(shard_id)
        if newest is not None and newest[1].epoch >= epoch:
            owner, epoch = newest[0], newest[1].epoch
        owners[shard_id] = (owner, epoch)
    return owners


def others_alive(supervisor: Supervisor) -> dict[bytes, str]:
    """Names of the other living nodes, by incarnation."""
    known = supervisor.membership
    others = [member for member in known.members() if member.incarnation != supervisor.incarnation]
    return {member.incarnation: member.node for member in others if known.alive(member.incarnation)}


def _node_views(
    supervisor: Supervisor, reports: Mapping[bytes, NodeReport], owners: list[bytes | None]
) -> list[NodeView]:
    membership = supervisor.membership
    shared_names = {incarnation for incarnations in membership.shared_names().values() for incarnation in incarnations}
    views = []
    for member in sorted(membership.members(), key=lambda member: (member.node, member.incarnation)):
        report = reports.get(member.incarnation)
        views.append(
            NodeView(
                member.node,
                member.incarnation.hex(),
                address_of(member),
                membership.alive(member.incarnation),
                member.incarnation == supervisor.incarnation,
                sum(1 for owner in owners if owner == member.incarnation),
                membership.has(member.incarnation, Flag.LEAVING),
                membership.has(member.incarnation, Flag.SKEWED),
                member.incarnation in shared_names,
                membership.secret_differs(member.incarnation),
                *(
                    ()
                    if report is None
                    else (
                        report.release,
                        report.dispatching,
                        report.agent,
                        sum(shard.window_timers for shard in report.shards),
                        max((shard.lag_us for shard in report.shards), default=0),
                        report.largest_shard_bytes,
                        report.paused_since_us,
                        report.dispatch_paused_reason,
                        report.vitals,
                    )
                ),
            )
        )
    return views


def _shard_view(
    supervisor: Supervisor, shard_id: int, known: tuple[bytes | None, int], reported: tuple[bytes, ShardReport] | None
) -> ShardView:
    owner, epoch = known
    names = {member.incarnation: member.node for member in supervisor.membership.members()}
    names[supervisor.incarnation] = supervisor.node
    view = ShardView(
        shard_id,
        epoch,
        None if owner is None else names.get(owner, owner.hex()),
        owned_here=owner == supervisor.incarnation,
    )
    if reported is None or reported[0] != owner:
        return view
    report = reported[1]
    return replace(
        view,
        window_timers=report.window_timers,
        in_flight=report.in_flight,
        complete_to=report.complete_to,
        lag_us=report.lag_us,
    )


def not_ready_because(supervisor: Supervisor, *, alone: bool, full: str | None) -> list[str]:
    """The reasons why the node should get no traffic now; empty when it is ready. `alone`: no other node can own shards.
    `full`: why the store has no space for writes."""
    reasons = []
    if supervisor.lease.leaving or supervisor.draining:
        reasons.append("the node is shutting down")
    elif not supervisor.placement.joined:
        reasons.append("the node observes the other members before it takes its share of the shards")
    if supervisor.membership.secret_differs(supervisor.incarnation):
        reasons.append(f"cluster.secret differs from that of nodes that started earlier; {SECRET_REMEDY}")
    paused = supervisor.dispatcher.paused_reason
    if paused is not None:
        reasons.append(f"dispatch paused: {PAUSE_TEXTS.get(paused, paused)}")
    if full is not None:
        reasons.append(f"the store takes no writes until there is space: {full}")
    if alone:
        missing = sum(1 for shard in supervisor.shards.values() if shard.window is None)
        if missing:
            reasons.append(f"{missing} of {supervisor.total_shards} shards are not owned yet")
    return reasons
