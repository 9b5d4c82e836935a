"""A node: the timer service and the service agent."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import structlog
import uvicorn

from tocsin.cluster.cluster import Cluster
from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.http import HttpCaller
from tocsin.keys import ApiKeys
from tocsin.model.errors import ConfigError
from tocsin.model.validation import InputRules
from tocsin.ports.observer import fan_out
from tocsin.private_files import tighten_folder
from tocsin.server.access import Keyring, keep_current
from tocsin.server.agent import ServiceAgent, agent_database_shared
from tocsin.server.audit import Audit
from tocsin.server.peers import Peering, loopback, peering_of
from tocsin.server.relay import AgentRelay
from tocsin.server.sign_ins import SignIns
from tocsin.server.sockets import bind, connections_max, drain, url_of
from tocsin.server.stores import observe_store, open_store
from tocsin.service_calls.adapters.agent_caller import AgentCaller
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.settings import Settings
from tocsin.stores.service_calls.postgresql_lock import Claimant
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.telemetry.clock import ConfirmedClock, SystemClock
from tocsin.telemetry.logs import EventLog
from tocsin.telemetry.metrics import Metrics
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.service import TimerService
from tocsin.web.api.app import Api
from tocsin.web.api.clients import Clients
from tocsin.web.api.protocol import ApiProtocol
from tocsin.web.http.auth_failures import AuthFailures
from tocsin.web.http.hosts import Hosts
from tocsin.web.http.proxies import Proxies
from tocsin.web.pages import compose as ui
from tocsin.web.pages.app import Ui
from tocsin.web.pages.calls.agent import OFF, STANDBY, AgentUnavailable, standby

#: How long a start waits for the shards of a store that only this node uses.
_OWN_TIMEOUT_US = 10_000_000


class _HttpServer(uvicorn.Server):
    """uvicorn without its own signal handling: the process's handler also drains the engine."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Installs no signal handlers."""
        yield


class Server:
    """A node: store, engine, API. `start` returns when it serves requests, at `url`.

    With several workers, each is a node with its number `worker`, and all share the listening socket `listener`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_fatal: Callable[[BaseException], None] | None = None,
        listener: socket.socket | None = None,
        worker: int = 0,
    ) -> None:
        self._settings = settings
        self._worker = worker
        self._on_fatal = on_fatal or self._record_fatal
        self._log = structlog.get_logger("tocsin.server")
        self._store = open_store(settings)
        if isinstance(self._store, SqliteStore):
            # Called in the writer thread: the state on disk is uncertain, and only a restart can determine it.
            self._store.on_commit_io_error = self._on_fatal
            self._store.on_checkpoint_error = self._log_checkpoint_error
        self._tasks: list[asyncio.Task[None]] = []
        self._http: _HttpServer | None = None
        self._socket = listener
        self._cluster: Cluster | None = None
        self._app: Api | None = None
        self._clients: Clients | None = None
        self._supervisor: Supervisor | None = None
        self._caller: AgentCaller | None = None
        self._client: HttpCaller | None = None
        self._pages: Ui | None = None
        self._agent: ServiceAgent | None = None
        self._keys: Keyring | None = None
        self._sign_ins: SignIns | None = None
        self.service: TimerService | None = None
        self.fatal: BaseException | None = None
        self.url = ""

    async def start(self) -> None:
        """Opens everything in order; on failure closes what was opened, and raises a TocsinError or OSError."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        settings = self._settings
        private = loopback(settings.host)
        # The port first: a second server on the same port must fail before it touches anything.
        if self._socket is None:
            self._socket = bind(settings.host, settings.port)
        port = self._socket.getsockname()[1]
        self.url = url_of(settings.host, port)
        for path in tighten_folder(settings.data_dir):
            self._log.warning("data file readable by other users", path=str(path), remedy="chmod 600")
        shared = not self._store.capabilities.exclusive
        total_shards = await self._store.open(settings.shards)
        secret = ""
        if shared:
            secret = settings.cluster_secret or await self._store.shared_secret("cluster", secrets.token_hex(32))
        peering = peering_of(settings, shared=shared, secret=secret, worker=self._worker)
        peers = None if peering is None else bind(peering.host, peering.port, "cluster.port")
        published = not private or any(not loopback(host) for host in settings.origin_hosts())
        keys = self._keys = Keyring(
            self._store,
            published=published,
            insecure=settings.insecure,
            expiry_notice_s=settings.keys_expiry_notice_s,
        )
        await keys.refresh()
        if keys.required and keys.empty:
            raise ConfigError(
                _no_key(settings.host if not private else f"ui.origins: {', '.join(settings.ui_origins)}")
            )
        sign_ins = self._sign_ins = SignIns(self._store, settings.ui_limits())
        machine, engine_limits = SystemClock(), settings.engine_limits()
        clock = ConfirmedClock(machine, engine_limits.clock_skew_max_us)
        egress = EgressPolicy(
            not published and not keys.required
            if settings.egress_allow_private is None
            else settings.egress_allow_private,
            settings.egress_allow,
        )
        http = self._client = HttpCaller(settings.callback_limits(), egress, clock)
        relay = AgentRelay(settings.cluster_limits(), expected=settings.has_agent())
        # The agent's timers fire on the node that owns their shard, which may never run the agent.
        caller = AgentCaller(
            http, clock, settings.agent_limits().polling_batch_max, relay.report_due if shared else None
        )
        relay.caller = self._caller = caller
        callback_limits = settings.callback_limits()
        rules = InputRules(
            settings.input_limits(),
            egress.check_url,
            headers_sent_max=callback_limits.request_headers_max,
            header_bytes_sent_max=callback_limits.request_header_bytes_max,
        )
        keys.on_required = partial(self._require_keys, egress, rules)
        statistics = ui.statistics(settings.ui_limits(), clock, self._gauges)
        call_statistics = ui.call_statistics(statistics, settings.ui_limits())
        node = settings.node_name or f"{socket.gethostname()}:{port}"
        node = f"{node}/{self._worker}" if settings.workers > 1 else node
        incarnation = uuid.uuid4().bytes
        agent = None
        if settings.has_agent() and (self._worker == 0 or agent_database_shared(settings)):
            claimant = Claimant(node, incarnation.hex())
            agent = relay.agent = self._agent = ServiceAgent(
                settings, http, caller, clock, rules, call_statistics, claimant, timers_shared=shared
            )
            await agent.open()
        metrics = Metrics(self._gauges, None if agent is None else agent.metrics)
        auth_failures = AuthFailures(partial(metrics.count, "tocsin_authentication_failures"))
        audit = Audit(
            self._store, node, settings.audit_retention_s, partial(metrics.count, "tocsin_audit_write_failures")
        )
        observe = fan_out([metrics, EventLog(time.monotonic), statistics])
        observe_store(self._store, observe)
        context = Context(
            store=self._store,
            caller=caller if shared or settings.agent_timer == "engine" else http,
            clock=machine,
            limits=engine_limits,
            observe=observe,
            random=random.Random(),
            incarnation=incarnation,
            confirm_time=clock.confirm,
        )
        self._context = context
        address = "" if peering is None or peers is None else peering.announced(peers.getsockname()[1])
        address = self.url if not shared else address
        supervisor = Supervisor(context, node=node, address=address, total_shards=total_shards, fatal=self._on_fatal)
        self._supervisor = supervisor
        self.service = TimerService(
            context,
            supervisor,
            namespace_num_shards=settings.namespace_num_shards,
            retention_us=settings.retention_us(),
        )
        self.service.has_agent = self._has_agent
        if peering is not None and peers is not None:
            await self._connect_cluster(peering, peers, machine)
        relay.cluster = self._cluster
        await self.service.ensure_default_namespace()
        await supervisor.start()
        if self._store.capabilities.exclusive and not await supervisor.all_owned(_OWN_TIMEOUT_US):
            self._log.warning("shards not claimed yet", effect="requests for them get 503")
        if agent is not None:
            await agent.start(self.service)
        proxies = Proxies(settings.trusted_proxies)
        hosts = Hosts(settings.host, settings.ui_origins, proxied=settings.insecure)
        ask = None if self._cluster is None and agent is None else relay.ask
        self._pages = ui.compose(
            self.service,
            rules=rules,
            clock=clock,
            keys=keys,
            sign_ins=sign_ins,
            auth_failures=auth_failures,
            proxies=proxies,
            audit=audit,
            statistics=statistics,
            call_statistics=call_statistics,
            agent=self._calls,
            hosts=hosts,
            relay=ask,
            # With a shared port or several nodes, the URL might lead to another node.
            own_url=self.url if private and not shared and settings.workers == 1 else None,
            limits=settings.ui_limits(),
        )
        self._pages.start()
        clients = self._clients = Clients(
            settings.api_limits(),
            connections_max(settings.api_connections_max, self._callback_connections_max(agent is not None)),
            observe,
        )
        app = self._app = Api(
            self.service,
            rules=rules,
            agent=None if agent is None else self._service_calls,
            relay=ask,
            limits=settings.api_limits(),
            clock=clock,
            keys=keys,
            api_keys=ApiKeys(self._store, keys.changed),
            auth_failures=auth_failures,
            proxies=proxies,
            audit=audit,
            metrics=metrics.exposition,
            # Unset, metrics require a key wherever other operations do.
            metrics_open=settings.metrics_open is True,
            hosts=hosts,
            clients=clients,
            extra=self._pages,
        )
        relay.app = app
        if self._cluster is not None:
            self._cluster.serve = relay.serve
            self._cluster.statistics_here = statistics.report
        config = uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", partial(ApiProtocol, app)),
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=2048,
            timeout_keep_alive=settings.keep_alive_timeout_s,
            # A write may wait until its shard has a new owner.
            timeout_graceful_shutdown=5 + context.limits.write_timeout_us // 1_000_000,
        )
        self._http = _HttpServer(config)
        self._tasks.append(asyncio.create_task(self._http.serve(sockets=[self._socket])))
        self._tasks.append(asyncio.create_task(keep_current(keys, sign_ins, audit, settings.keys_refresh_s)))
        while not self._http.started:
            if self._tasks[0].done():
                self._tasks[0].result()
                raise ConfigError("the HTTP server stopped during its start")
            await asyncio.sleep(0.005)
        store = settings.store_url_redacted()
        self._log.info("server started", url=self.url, store=store, shards=total_shards, node=node)

    async def stop(self) -> None:
        """Waits for requests in flight, releases the shards, closes everything. Idempotent; safe after a failed start."""
        if self._supervisor is not None:
            self._supervisor.draining = True
        if self._app is not None:
            self._app.leaving = True
        if self._http is not None and self._cluster is not None:
            await self._ask_clients_to_leave(self._http)
        if self._pages is not None:
            # Each open page holds a connection, for whose end the HTTP server would wait.
            await self._pages.close()
            self._pages = None
        if self._http is not None:
            self._http.should_exit = True
            with contextlib.suppress(asyncio.CancelledError):
                await self._tasks[0]
            self._http = None
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        if self._sign_ins is not None:
            await self._sign_ins.close()
            self._sign_ins = None
        if self._agent is not None:
            await self._agent.stop()
            self._agent = None
        if self._supervisor is not None:
            await self._supervisor.close()
            self._supervisor = None
        if self._cluster is not None:
            await self._cluster.leave(self._settings.engine_limits().store_timeout_us)
            self._cluster.close()
            self._cluster = None
        if self._caller is not None:
            await self._caller.close()
            self._caller = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        await self._store.close()

    def _callback_connections_max(self, agent: bool) -> int:
        limits = self._settings.callback_limits()
        return limits.connections_max + (limits.agent_connections_max if agent else 0)

    async def _ask_clients_to_leave(self, http: uvicorn.Server) -> None:
        """From now on every response closes its connection. Gives load balancers time to see that the node isn't ready, then
        clients that have just connected time for a request; other processes on the port take new connections."""
        delay_s = self._settings.cluster_limits().leave_delay_us / 1e6
        if self._settings.workers == 1:
            await asyncio.sleep(delay_s)
            if self._socket is not None:
                await drain(self._socket)
        for server in http.servers:
            server.close()
        await asyncio.sleep(delay_s)

    async def _connect_cluster(self, peering: Peering, listener: socket.socket, clock: SystemClock) -> None:
        """Connects this node's service with those of the other nodes."""
        supervisor, service = self._supervisor, self.service
        assert supervisor is not None
        assert service is not None
        cluster = self._cluster = Cluster(
            supervisor.incarnation,
            supervisor.placement,
            service,
            service.report,
            secret=peering.secret,
            clock=clock,
            limits=self._settings.cluster_limits(),
            observe=self._context.observe,
        )
        supervisor.placement.announce = cluster.announce
        service.connect(cluster.router, cluster)
        await cluster.listen(listener)

    def _require_keys(self, egress: EgressPolicy, rules: InputRules) -> None:
        """Applies the first key, created while this server accepted every program of its machine without a key."""
        if self._settings.egress_allow_private is None:
            egress.allow_private = False
            rules.forget_targets()
        self._log.warning("API keys now required", effect="callbacks to private addresses now require egress.allow")

    def _service_calls(self) -> ServiceCalls | None:
        """The agent, while it runs on this node."""
        return None if self._agent is None else self._agent.calls

    def _has_agent(self) -> bool:
        return self._service_calls() is not None

    def _calls(self) -> ServiceCalls | AgentUnavailable:
        """The agent, as the pages find it now."""
        if self._agent is None:
            return STANDBY if self._cluster is not None and self._settings.has_agent() else OFF
        return self._agent.calls or standby(self._agent.runs_at)

    def _record_fatal(self, error: BaseException) -> None:
        self.fatal = error
        self._log.critical("fatal engine error", error=repr(error), exc_info=error)

    def _log_checkpoint_error(self, error: Exception) -> None:
        self._log.warning("WAL checkpoint failed", effect="no data is lost; the WAL keeps growing", error=str(error))

    def _gauges(self) -> dict[str, float]:
        supervisor, service, client = self._supervisor, self.service, self._client
        assert supervisor is not None
        assert service is not None
        assert client is not None
        dispatcher = supervisor.dispatcher
        return {
            "tocsin_callbacks_in_flight": dispatcher.in_flight,
            "tocsin_callback_connections": client.connections,
            "tocsin_agent_connections": client.agent_connections,
            "tocsin_names_resolving": client.resolving,
            "tocsin_timers_deferred": dispatcher.waiting,
            "tocsin_destinations": dispatcher.destinations,
            "tocsin_overdue_seconds": supervisor.overdue_us() / 1e6,
            "tocsin_window_timers": self._context.window_timers,
            "tocsin_window_bytes": self._context.window_bytes,
            "tocsin_writes_waiting": service.writes_waiting,
            "tocsin_shards_owned": len(dispatcher.shards),
            "tocsin_client_connections": 0 if self._clients is None else self._clients.count,
            "tocsin_request_bodies_bytes": 0 if self._clients is None else self._clients.bodies_bytes,
            "tocsin_writes_without_owner": 0 if self._cluster is None else self._cluster.router.waiting,
            "tocsin_api_keys_expiring": 0 if self._keys is None else self._keys.expiring,
            "tocsin_dispatching": float(dispatcher.paused_reason is None),
        }


def _no_key(why: str) -> str:
    return (
        f"host: the server is reachable from other machines ({why}) and has no API key; create one with "
        "`tocsin keys create`, listen on 127.0.0.1 without ui.origins, or accept the risk with --insecure"
    )
