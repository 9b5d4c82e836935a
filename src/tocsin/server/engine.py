"""The timer service of a node: the engine, its use cases, and the connections to the other nodes."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog

from tocsin.cluster.channel import ThisNode
from tocsin.cluster.cluster import Cluster
from tocsin.cluster.wire import RelayedRequest, RelayedResponse
from tocsin.ports.clock import Clock
from tocsin.ports.http import Caller
from tocsin.ports.seals import Seals
from tocsin.ports.store import Store
from tocsin.server.kernel_timer import wake_up
from tocsin.server.observers import Observers
from tocsin.server.peers import Peers
from tocsin.server.transfer_mark import refuse_transferred
from tocsin.settings import Settings
from tocsin.targets.credentials import CredentialCaller
from tocsin.tasks import end_tasks, spawn
from tocsin.telemetry.clock import ConfirmedClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.flow_shown import timers_waiting
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.quotas import exchange_quotas
from tocsin.timers.service import TimerService

#: How long a start waits for the shards of a store that only this node uses.
_OWN_TIMEOUT_US = 10_000_000

_log = structlog.get_logger("tocsin.server")


@dataclass(frozen=True, slots=True)
class Identity:
    """This node in the cluster: its name, the address at which others reach it, and what only this run of it has."""

    name: str
    address: str
    incarnation: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """What the parts of a node have in common. `ends` closes what they opened. `machine` is the machine's clock, or that of
    `tocsin dev`; `clock` is confirmed by the store. `peers` None: the store belongs to this node alone."""

    settings: Settings
    ends: AsyncExitStack
    store: Store
    machine: Clock
    clock: ConfirmedClock
    observers: Observers
    identity: Identity
    peers: Peers | None
    seals: Seals
    on_fatal: Callable[[BaseException], None]


@dataclass(frozen=True, slots=True)
class Engine:
    """`cluster` is None if the store belongs to this node alone."""

    context: Context
    supervisor: Supervisor
    service: TimerService
    cluster: Cluster | None
    total_shards: int

    def paused_reason(self) -> str | None:
        """Why nothing fires now; None while timers fire."""
        return self.supervisor.dispatcher.paused_reason

    def paused_since_us(self) -> int:
        """Since when, while that is so."""
        return self.supervisor.dispatcher.paused_since_us

    def in_flight(self) -> int:
        """Attempts in flight."""
        return self.supervisor.dispatcher.in_flight

    def caught_up(self) -> bool:
        """Whether every shard has an owner, and this node has loaded and begun all that is due in its own."""
        now_us, windows = self.context.clock.now_us(), [s.window for s in self.supervisor.dispatcher.shards.values()]
        return (
            not self.supervisor.placement.without_owner(self.total_shards)
            and all(window is not None and window.horizon[0] >= now_us for window in windows)
            and not self.supervisor.overdue_us()
        )

    def gauges(self) -> dict[str, float]:
        """The gauges of engine, service and cluster."""
        dispatcher = self.supervisor.dispatcher
        return {
            "tocsin_callbacks_in_flight": dispatcher.admission.callbacks.in_flight,
            "tocsin_messages_in_flight": dispatcher.admission.messages.in_flight,
            "tocsin_timers_deferred": dispatcher.waiting - timers_waiting(dispatcher.flows.rules.values()),
            "tocsin_destinations": len(dispatcher.admission.destinations),
            "tocsin_breakers_open": len(dispatcher.admission.open_breakers()),
            "tocsin_overdue_seconds": self.supervisor.overdue_us() / 1e6,
            "tocsin_window_timers": self.context.window_timers,
            "tocsin_window_bytes": self.context.window_bytes,
            "tocsin_results_waiting": sum(
                shard.window.unwritten()[0] for shard in dispatcher.shards.values() if shard.window is not None
            ),
            "tocsin_writes_waiting": self.service.writes_waiting,
            "tocsin_shards_owned": len(dispatcher.shards),
            "tocsin_writes_without_owner": 0 if self.cluster is None else self.cluster.router.waiting,
            "tocsin_shards_without_owner": self.supervisor.placement.without_owner(self.total_shards),
            "tocsin_node_names_shared": len(self.supervisor.membership.shared_names()),
            "tocsin_nodes_secret_differs": len(self.supervisor.membership.with_another_secret()),
            "tocsin_sink_backlog": self.supervisor.sinks.backlog,
            "tocsin_sink_behind_seconds": self.supervisor.sinks.behind_us / 1e6,
            "tocsin_dispatching": float(dispatcher.paused_reason is None),
        }


async def start_engine(
    parts: NodeParts,
    caller: Caller,
    internal: Mapping[str, Caller],
    *,
    total_shards: int,
    serve: Callable[[RelayedRequest], Awaitable[RelayedResponse]],
    has_agent: Callable[[], bool],
    credentials: CredentialCaller,
) -> Engine:
    """Starts the engine and connects it to the other nodes, if the store has others. `internal` has the callers of the
    namespaces whose timers this process handles itself. `serve` responds to requests for the service agent that other nodes
    forward. `credentials` gets those that are stored."""
    settings, observers = parts.settings, parts.observers
    context = Context(
        store=parts.store,
        caller=caller,
        internal=internal,
        clock=parts.machine,
        limits=settings.engine,
        breaker=settings.breaker,
        observe=observers.observe,
        random=random.Random(),
        incarnation=parts.identity.incarnation,
        seals=parts.seals,
        wake_up=wake_up,
        confirm_time=parts.clock.confirm,
        confirmed=parts.clock,
        note_read=observers.vitals.read,
        credential_gate=credentials,
    )
    context.credentials_changed = lambda: credentials.learn(context.credentials)
    supervisor = Supervisor(
        context,
        node=parts.identity.name,
        address=parts.identity.address,
        api_url=settings.advertise_api or "",
        secret_marks=() if parts.peers is None else parts.peers.peering.secrets.marks,
        total_shards=total_shards,
        fatal=parts.on_fatal,
    )
    service = TimerService(
        context,
        supervisor,
        namespace_num_shards=settings.namespace_num_shards,
        retention_us=settings.history_retention_us,
        has_agent=has_agent,
        agent_configured=settings.has_agent(),
        largest_shard_bytes=observers.metrics.largest_shard_bytes,
        vitals=observers.vitals.report,
        tester=credentials,
    )
    # What has waited for a credential is resumed without waiting for the next look at suspended timers.
    credentials.ready = supervisor.placement.refresh_requested.set
    cluster = None if parts.peers is None else await _connect(parts, parts.peers, supervisor, service, serve)
    engine = Engine(context, supervisor, service, cluster, total_shards)
    observers.gauges.add(engine.gauges)
    parts.ends.push_async_callback(supervisor.close)
    # Read once more behind the first heartbeat: a transfer that marks the store reads the members afterwards, so that it sees
    # this node, or this node its mark.
    await supervisor.lease.beat()
    await refuse_transferred(parts.store)
    await service.namespaces.ensure_default()
    await supervisor.start()
    if cluster is not None:
        exchange = exchange_quotas(context, service.reports, lambda: len(service.other_nodes()))
        parts.ends.push_async_callback(end_tasks, spawn(exchange, parts.on_fatal))
    if parts.store.capabilities.exclusive and not await supervisor.all_owned(_OWN_TIMEOUT_US):
        _log.warning("shards not claimed yet", effect="requests for them get 503")
    return engine


async def _connect(
    parts: NodeParts,
    peers: Peers,
    supervisor: Supervisor,
    service: TimerService,
    serve: Callable[[RelayedRequest], Awaitable[RelayedResponse]],
) -> Cluster:
    """The connections to the other nodes."""
    here = ThisNode(
        supervisor.placement,
        service,
        service.report,
        parts.machine,
        parts.settings.cluster,
        parts.observers.observe,
        serve,
    )
    cluster = Cluster(supervisor.incarnation, here, secrets=peers.peering.secrets, tls=peers.tls)
    supervisor.placement.announce = cluster.announce
    service.connect(cluster.router, cluster)
    parts.ends.push_async_callback(_leave, cluster, parts.settings.engine.store_timeout_us)
    await cluster.listen(peers.listener)
    return cluster


async def _leave(cluster: Cluster, timeout_us: int) -> None:
    try:
        await cluster.leave(timeout_us)
    finally:
        cluster.close()
