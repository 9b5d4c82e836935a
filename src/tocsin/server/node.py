"""A node: the timer service and the service agent.

`Server.start` constructs the parts in the order in which they depend on one another; each registers how it ends, and
`Server.stop` ends them in the reverse order.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import cast

import structlog

from tocsin.cluster.tls import PeerTls
from tocsin.inbox.inbox import Inbox
from tocsin.keys import ApiKeys
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.validation import InputRules
from tocsin.native import native
from tocsin.ports.seals import NoSeals
from tocsin.ports.store import Store
from tocsin.private_files import tighten_folder
from tocsin.server.access import Access, open_access
from tocsin.server.agent import ServiceAgent, agent_database_shared
from tocsin.server.backup import CALLS, TIMERS, database_files
from tocsin.server.clock_mover import DevClock
from tocsin.server.dev_folder import refuse_dev_folder
from tocsin.server.engine import Engine, Identity, NodeParts, start_engine
from tocsin.server.extras import require_extras
from tocsin.server.former_run import last_write_us, report_interruption
from tocsin.server.front import HttpServer
from tocsin.server.inbox import start_inbox
from tocsin.server.mcp import open_mcp
from tocsin.server.observers import Observers, observers
from tocsin.server.outgoing import Outgoing, outgoing, signing_keys
from tocsin.server.peers import Peers, loopback, peering_of, secrets_of, tls_of
from tocsin.server.relay import AgentRelay
from tocsin.server.seals import open_seals, start_resealing
from tocsin.server.sockets import bind, connections_max, url_of
from tocsin.server.stores import agent_database_name, check_payload_limit, open_store, store_name
from tocsin.server.transfer_log import ChangeLog
from tocsin.server.transfer_mark import Patience
from tocsin.server.transfer_watch import TransferWatch
from tocsin.server.waiting import start_when_reachable
from tocsin.server.worker_metrics import WorkerMetrics
from tocsin.server.workers import WorkerSlot
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.service_calls.engine_timers import NAMESPACE, DueCaller
from tocsin.service_calls.events import AgentEvent, AgentObserver
from tocsin.settings import Settings, secret_files
from tocsin.settings.shown import in_force
from tocsin.settings.sources import open_to_everybody
from tocsin.statistics.keeping import StatisticsKeeper
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.reading import StatisticsReader
from tocsin.stores.service_calls.database import Claimant
from tocsin.targets.call_credentials import OfNamespace
from tocsin.targets.signing_keys import SigningKeys
from tocsin.tasks import end_tasks, spawn
from tocsin.telemetry.clock import ConfirmedClock, SystemClock
from tocsin.telemetry.metrics import BreakerMetrics, DiskMetrics, FlowMetrics, Metrics
from tocsin.telemetry.tracing import Tracer, open_tracer
from tocsin.timers.engine.call_flows import CallFlows
from tocsin.timers.engine.flow_shown import busiest
from tocsin.timers.job_runner import JobRunner
from tocsin.timers.jobs import Jobs
from tocsin.timers.service import TimerService
from tocsin.web.api.app import Api, ApiMetrics
from tocsin.web.api.clients import Clients
from tocsin.web.api.dev import DevApi, DevHandlers
from tocsin.web.api.mcp.handlers import McpHandlers
from tocsin.web.api.scopes import OPERATION_NAMES
from tocsin.web.http.hosts import Hosts, Proxies
from tocsin.web.http.parts import WebParts
from tocsin.web.pages import compose as pages
from tocsin.web.pages.app import Ui
from tocsin.web.pages.calls.agent import OFF, STANDBY, AgentUnavailable, standby

_PAUSED = "the node is paused until a transfer has moved its store; try again"


class Server:
    """A node: store, engine, API. `start` returns when it serves requests, at `url`.

    With several workers, each is a node in its `place`, and all share the listening socket `listener`. With `dev`, the node
    goes by that clock, and the API moves it. `on_pause` is called when a transfer of the store asks the server to stop until
    it has switched over: whoever stops it starts another one, which waits for that.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_fatal: Callable[[BaseException], None] | None = None,
        on_pause: Callable[[], None] = lambda: None,
        listener: socket.socket | None = None,
        place: WorkerSlot | None = None,
        dev: DevClock | None = None,
        statistics: StatisticsLimits | None = None,
    ) -> None:
        self._settings = settings
        self._statistics_limits = statistics or StatisticsLimits()
        self._dev = dev
        self._place = place
        self._worker = 0 if place is None else place.number
        self._on_fatal = on_fatal or self._record_fatal
        self._on_pause = on_pause
        self._patience = Patience()
        self._listener = listener
        # Whether another server takes the socket over.
        self._hands_over = False
        self._signing: SigningKeys | None = None
        self._log = structlog.get_logger("tocsin.server")
        self._ends = AsyncExitStack()
        #: The service agent; None where it never runs.
        self.agent: ServiceAgent | None = None
        #: The timers; None before `start`.
        self.engine: Engine | None = None
        self.fatal: BaseException | None = None
        self.url = ""
        self._tls: PeerTls | None = None

    @property
    def service(self) -> TimerService | None:
        """The timers' use cases; None before `start`."""
        return None if self.engine is None else self.engine.service

    async def start(self, stopping: asyncio.Event | None = None) -> bool:
        """Starts everything in order; on failure ends what was started, and raises a TocsinError or OSError.

        With `stopping`, a store that can't be reached is awaited until that is set; then it returns False, and nothing
        runs."""
        require_extras(self._settings)
        async with AsyncExitStack() as ends:
            listener = self._bind(ends)
            if stopping is None:
                await self._start(ends, listener)
            elif not await start_when_reachable(lambda: self._try_start(ends, listener), listener, stopping):
                return False
            self._ends = ends.pop_all()
        return True

    async def _try_start(self, ends: AsyncExitStack, listener: socket.socket) -> None:
        """Starts everything, which `ends` will end, or nothing."""
        async with AsyncExitStack() as started:
            await self._start(started, listener)
            ends.push_async_exit(started.pop_all())

    def _bind(self, ends: AsyncExitStack) -> socket.socket:
        """The socket of the API: first, since a second server on the same port must fail before it touches anything."""
        if self._dev is None:
            refuse_dev_folder(self._settings)
        listener = bind(self._settings.host, self._settings.port) if self._listener is None else self._listener
        self._listener = listener
        ends.callback(listener.close)
        self.url = url_of(self._settings.host, listener.getsockname()[1])
        return listener

    async def stop(self) -> None:
        """Waits for requests in flight, releases the shards, closes everything. Idempotent."""
        await self._ends.aclose()

    def hand_over(self) -> socket.socket:
        """The socket of the API for the next server of this process. Call it before `stop`: clients that connect in between
        wait."""
        assert self._listener is not None
        self._hands_over = True
        return self._listener.dup()

    def reload(self) -> None:
        """Reads again what can change while the server runs: the certificates for other nodes."""
        if self._tls is not None:
            self._tls.refresh(always=True)
        self._log.info("reload done", other_settings="need a restart")

    async def _start(self, ends: AsyncExitStack, listener: socket.socket) -> None:
        settings, dev = self._settings, self._dev
        for path in tighten_folder(settings.data_dir):
            self._log.warning("data file readable by other users", path=str(path), remedy="chmod 600")
        for name, path in open_to_everybody(secret_files(settings)):
            self._log.warning("secret file readable by every user", setting=name, path=str(path), remedy="chmod o-r")
        machine = SystemClock() if dev is None else dev.clock
        clock = ConfirmedClock(machine, settings.engine.clock_skew_max_us)
        tracer = self._open_tracer(ends)
        more = [part.observe for part in (dev, tracer) if part is not None]
        watching = observers(settings, clock, self._statistics_limits, more)
        store = open_store(settings, clock=machine, observe=watching.observe, on_fatal=self._on_fatal)
        ends.push_async_callback(store.close)
        check_payload_limit(settings, store.capabilities)
        files = database_files(settings)
        written_us = last_write_us(files[TIMERS]) if TIMERS in files else None
        total_shards = await store.open(settings.shards)
        await self._patience.refuse_transferred(store)
        seals = await open_seals(settings, store, machine.now_us())
        peers = None if store.capabilities.exclusive else await self._listen_to_peers(ends, store, watching)
        identity = self._identity(listener.getsockname()[1], peers)
        changes = ChangeLog(store, identity.incarnation)
        store = cast("Store", changes)
        access = await open_access(ends, settings, store, total_shards, identity.name, watching)
        paths = {"database": files.get(TIMERS), "agent_database": files.get(CALLS) if settings.has_agent() else None}
        watching.metrics.registry.register(
            DiskMetrics({name: path for name, path in paths.items() if path is not None})
        )
        signed_by = None if dev is None else dev.real
        signing = self._signing = signing_keys(settings, store, signed_by or clock, seals)
        sending = outgoing(
            settings, access.keys, clock, seals, signing, published=access.published, signed_by=signed_by
        )
        watching.gauges.add(sending.gauges)
        parts = NodeParts(
            settings=settings,
            ends=ends,
            store=store,
            machine=machine,
            clock=clock,
            observers=watching,
            identity=identity,
            peers=peers,
            seals=seals,
            on_fatal=self._on_fatal,
        )
        relay = AgentRelay(settings.cluster, expected=settings.has_agent())
        if access.keys.provider is not None:
            relay.identified = access.keys.provider.known
        # The agent's timers fire on the node that owns their shard, which may never run the agent.
        forward_due = None if peers is None else relay.report_due
        keeper = StatisticsKeeper(
            store,
            watching.statistics,
            watching.outages,
            clock=clock,
            node=identity.name,
            incarnation=identity.incarnation,
            observe=watching.observe,
            timeout_s=settings.engine.store_timeout_us / 1e6,
            fatal=self._on_fatal,
        )
        # After the engine, whose last attempts count, and before the store.
        ends.push_async_callback(keeper.close)
        due_caller = DueCaller(clock, settings.agent.polling_batch_max, forward_due)
        ends.push_async_callback(sending.caller.close)
        if signing is not None:
            signing.ready = sending.credentials.woken
            ends.push_async_callback(end_tasks, spawn(signing.run(), self._on_fatal))
        ends.push_async_callback(due_caller.close)
        agent = relay.agent = await self._open_agent(parts, sending, due_caller, tracer)
        if store.capabilities.exclusive:
            # Not before: a start that is refused claims nothing, and the next one would report the same.
            await report_interruption(store, written_us)
        engine = self.engine = await start_engine(
            parts,
            sending.caller if tracer is None else tracer.traced(sending.caller),
            {NAMESPACE: due_caller} if peers is not None or settings.agent_timer == "engine" else {},
            total_shards=total_shards,
            serve=relay.serve,
            has_agent=lambda: self.calls() is not None,
            credentials=sending.credentials,
        )
        watching.metrics.registry.register(
            FlowMetrics(lambda most: busiest(engine.supervisor.dispatcher.flows.rules.values(), most))
        )
        watching.metrics.registry.register(BreakerMetrics(engine.supervisor.dispatcher.admission.longest_open))
        watch = TransferWatch(
            changes, engine.supervisor.shards.values, self._on_pause, settings.engine.store_timeout_us / 1e6
        )
        ends.push_async_callback(end_tasks, spawn(watch.run(), self._on_fatal))
        access.audit.acts_for_all = engine.supervisor.acts_for_all
        relay.cluster = engine.cluster
        watching.outages.attach(identity.name, engine)
        keeper.tidies = engine.supervisor.acts_for_all
        keeper.start()
        ends.push_async_callback(watching.vitals.close)
        watching.vitals.start()
        reader = StatisticsReader(store, keeper, clock, watching.observe, settings.engine.store_timeout_us / 1e6)
        ends.push_async_callback(reader.close)
        jobs = self._start_jobs(parts, engine, access)
        start_resealing(ends, engine, parts.seals, self.calls, self._on_fatal)
        inbox = start_inbox(parts, engine, access, sending.rules)
        if agent is not None:
            await agent.start(
                engine.service,
                CallFlows(engine.supervisor.dispatcher, settings.agent.flow_namespace),
                OfNamespace(settings.agent.credentials_namespace, engine.service.credentials, sending.credentials),
            )
            ends.push_async_callback(agent.stop)
        if dev is not None:
            dev.attach(engine, clock, agent)
        await self._start_front(parts, engine, listener, access, sending.rules, relay, reader, jobs, tracer, inbox)
        self._log.info(
            "server started",
            url=self.url,
            store=settings.store_url_redacted(),
            shards=total_shards,
            node=identity.name,
            native=native().description,
        )

    def _start_jobs(self, parts: NodeParts, engine: Engine, access: Access) -> Jobs:
        """The jobs; where this node owns the first shard, it works on them."""
        runner = JobRunner(
            engine.context,
            engine.service,
            ApiKeys(parts.store, access.keys.changed),
            access.audit,
            acts_for_all=engine.supervisor.acts_for_all,
            calls=self.calls,
            fatal=self._on_fatal,
        )
        jobs = Jobs(parts.store, engine.service.namespaces, engine.context.clock, engine.context.observe)
        jobs.changed = runner.changed
        parts.observers.gauges.add(lambda: {"tocsin_jobs_running": runner.running})
        parts.ends.push_async_callback(runner.close)
        runner.start()
        return jobs

    def _open_tracer(self, ends: AsyncExitStack) -> Tracer | None:
        tracer = open_tracer(self._settings.tracing, self._settings.node_name or self.url)
        if tracer is not None:
            ends.push_async_callback(asyncio.to_thread, tracer.close)
        return tracer

    async def _listen_to_peers(self, ends: AsyncExitStack, store: Store, watching: Observers) -> Peers:
        """The socket at which the other nodes of the store reach this one."""
        settings = self._settings
        tls = self._tls = tls_of(settings, watching.observe)
        peering = peering_of(settings, secrets=await secrets_of(settings, store), worker=self._worker)
        listener = bind(peering.host, peering.port, "cluster.port")
        ends.callback(listener.close)
        return Peers(peering, listener, tls)

    def _identity(self, port: int, peers: Peers | None) -> Identity:
        settings = self._settings
        name = settings.node_name or f"{socket.gethostname()}:{port}"
        name = f"{name}/{self._worker}" if settings.workers > 1 else name
        return Identity(name, self.url if peers is None else peers.address, uuid.uuid4().bytes)

    async def _open_agent(
        self, parts: NodeParts, sending: Outgoing, due_caller: DueCaller, tracer: Tracer | None
    ) -> ServiceAgent | None:
        """The service agent, which may hold its database already; None where it never runs."""
        settings = self._settings
        if not settings.has_agent():
            return None
        if self._worker > 0 and not agent_database_shared(settings):
            return None
        agent = self.agent = ServiceAgent(
            settings,
            sending.client if tracer is None else tracer.traced_requester(sending.client),
            due_caller,
            parts.clock,
            sending.rules,
            self._call_observer(parts.observers),
            Claimant(parts.identity.name, parts.identity.incarnation.hex()),
            timers_shared=parts.peers is not None,
            fatal=self._on_fatal,
        )
        parts.observers.metrics.registry.register(agent.metrics)
        parts.ends.push_async_callback(agent.stop)
        await agent.open()
        return agent

    async def _scrape(self, ends: AsyncExitStack, metrics: Metrics) -> Callable[[], Awaitable[tuple[bytes, str]]]:
        """What answers a scrape: this node, or all workers."""

        async def own() -> tuple[bytes, str]:
            return metrics.exposition()

        if self._place is None:
            return own
        workers = WorkerMetrics(self._place.number, self._settings.workers, self._place.folder, metrics.exposition)
        await workers.start()
        ends.push_async_callback(workers.close)
        return workers.scrape

    def _call_observer(self, watching: Observers) -> AgentObserver:
        """What gets the agent's events besides its metrics and log."""
        if self._dev is None:
            return watching.call_statistics
        statistics, dev = watching.call_statistics, self._dev

        def observe(event: AgentEvent) -> None:
            statistics(event)
            dev.observe(event)

        return observe

    async def _start_front(
        self,
        parts: NodeParts,
        engine: Engine,
        listener: socket.socket,
        access: Access,
        rules: InputRules,
        relay: AgentRelay,
        reader: StatisticsReader,
        jobs: Jobs,
        tracer: Tracer | None,
        inbox: Inbox | None,
    ) -> None:
        """Serves the API and the pages."""
        settings, ends, agent = parts.settings, parts.ends, self.agent
        web = WebParts(
            service=engine.service,
            rules=rules,
            clock=parts.clock,
            keys=access.keys,
            hosts=Hosts(settings.host, settings.ui_origins, proxied=settings.insecure),
            proxies=Proxies(settings.trusted_proxies),
            auth_failures=access.failures,
            audit=access.audit,
            export=access.export,
            records=access.store,
            statistics=reader,
            jobs=jobs,
            seals=not isinstance(parts.seals, NoSeals),
            relay=None if engine.cluster is None and agent is None else relay.ask,
            notices=list if inbox is None else inbox.notices,
            inbox=None if inbox is None else inbox.of_node,
            base_url=settings.public_url,
            signing_keys=self._signing,
        )
        api_keys = ApiKeys(access.store, access.keys.changed)
        ui = self._pages(web, engine, access, api_keys, parts.observers)
        metrics = parts.observers.metrics
        mcp = await open_mcp(ends, settings, parts.store, web)
        app = relay.app = (Api if self._dev is None else DevApi)(
            web,
            api_keys=api_keys,
            metrics=ApiMetrics(
                await self._scrape(ends, metrics),
                # Unset, metrics require a key wherever other operations do.
                open=settings.metrics_open is True,
                measure=metrics.requests,
                item_refused=metrics.requests.item_refused,
            ),
            limits=settings.api,
            agent=None if agent is None else self.calls,
            clients=self._clients(parts.observers),
            extra=ui,
            more=(mcp,) if self._dev is None else (mcp, DevHandlers(self._dev)),
            traces=tracer,
        )
        if isinstance(mcp, McpHandlers):
            mcp.api = app
        http = HttpServer(
            app,
            listener,
            # In whole seconds, rounded up, as the HTTP server counts.
            keep_alive_timeout_s=-(-settings.keep_alive_timeout_us // US_PER_SECOND),
            write_timeout_us=engine.context.limits.write_timeout_us,
        )
        ends.push_async_callback(http.close)
        # Each open page holds a connection, for whose end the HTTP server would wait.
        ends.push_async_callback(ui.close)
        await http.start()
        if engine.cluster is not None:
            delay_s = settings.cluster.leave_delay_us / 1e6
            ends.push_async_callback(self._ask_clients_to_leave, http, app, delay_s)
        ends.push_async_callback(_drain, engine, agent)
        ends.callback(_leave, engine, app)
        if self._dev is not None:
            ends.callback(self._dev.close)

    async def _ask_clients_to_leave(self, http: HttpServer, app: Api, delay_s: float) -> None:
        if self._hands_over:
            # All nodes are paused, and nobody takes the shards. So that no write waits for that, none is accepted from now
            # on, while the shards are this node's for about the time that the others may be behind.
            app.gate.closed = _PAUSED
        await http.ask_clients_to_leave(delay_s, own_port=self._settings.workers == 1 and not self._hands_over)

    def _pages(self, web: WebParts, engine: Engine, access: Access, api_keys: ApiKeys, watching: Observers) -> Ui:
        settings = self._settings
        # With a shared port or several nodes, the URL might lead to another node.
        reached = loopback(settings.host) and engine.cluster is None and settings.workers == 1
        return pages.compose(
            web,
            sign_ins=access.sign_ins,
            statistics=watching.statistics,
            call_statistics=watching.call_statistics,
            agent=self._calls_for_pages,
            api_keys=api_keys,
            operations=OPERATION_NAMES,
            settings=in_force(settings),
            own_url=self.url if reached else None,
            limits=settings.ui,
            database=store_name(settings),
            agent_database=agent_database_name(settings),
            clock_mover=self._dev,
            provider=access.keys.provider,
        )

    def _clients(self, watching: Observers) -> Clients:
        """The clients' connections, as many as descriptors are left beside those of callbacks."""
        settings = self._settings
        callbacks = settings.callbacks
        callbacks_max = callbacks.connections_max + (callbacks.agent_connections_max if self.agent is not None else 0)
        clients = Clients(settings.api, connections_max(settings.api_connections_max, callbacks_max), watching.observe)
        watching.gauges.add(
            lambda: {
                "tocsin_client_connections": clients.count,
                "tocsin_request_bodies_bytes": clients.bodies_bytes,
                "tocsin_unread_responses_bytes": clients.responses_bytes,
            }
        )
        return clients

    def calls(self) -> ServiceCalls | None:
        """The agent, while it runs on this node."""
        return None if self.agent is None else self.agent.calls

    def _calls_for_pages(self) -> ServiceCalls | AgentUnavailable:
        """The agent, as the pages find it now."""
        if self.agent is None:
            clustered = self.engine is not None and self.engine.cluster is not None
            return STANDBY if clustered and self._settings.has_agent() else OFF
        return self.agent.calls or standby(self.agent.runs_at)

    def _record_fatal(self, error: BaseException) -> None:
        self.fatal = error
        self._log.critical("fatal engine error", error=repr(error), exc_info=error)


async def _drain(engine: Engine, agent: ServiceAgent | None) -> None:
    """Awaits what is in flight while the API still serves, unless another node takes over: then it need not."""
    await engine.supervisor.leave()
    if not engine.supervisor.has_successor():
        await asyncio.gather(engine.supervisor.drain(), *([] if agent is None else [agent.drain()]))


def _leave(engine: Engine, app: Api) -> None:
    """Reports the node as not ready, in the cluster and to load balancers."""
    engine.supervisor.draining = True
    app.leaving = True
