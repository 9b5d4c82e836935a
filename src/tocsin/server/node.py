"""A node: the timer service, and the service agent beside it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import os
import random
import resource
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import structlog
import uvicorn

from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.api.app import Api
from tocsin.api.protocol import ApiProtocol
from tocsin.callbacks.egress import EgressPolicy
from tocsin.callbacks.http import HttpCaller
from tocsin.config import Settings
from tocsin.contract.hosts import Hosts
from tocsin.engine.context import Context
from tocsin.engine.supervisor import Supervisor
from tocsin.model.access import ApiKey
from tocsin.model.errors import ConfigError, StoreError, TocsinError
from tocsin.model.validation import InputRules
from tocsin.ports.observer import fan_out
from tocsin.ports.store import Store
from tocsin.server.agent import ServiceAgent
from tocsin.server.stores import open_store
from tocsin.service import TimerService
from tocsin.stores.sqlite import SqliteStore
from tocsin.telemetry.clock import SystemClock
from tocsin.telemetry.logs import EventLog, configure_logging
from tocsin.telemetry.metrics import Metrics
from tocsin.ui import compose as ui
from tocsin.ui.app import Ui
from tocsin.ui.calls.agent import OFF, STANDBY, Away

#: Exit codes of `serve`, beside 0: it could not start (1), it met what it can't go on with (70).
EXIT_START = 1
EXIT_FATAL = 70
#: Ctrl-C for the second time.
EXIT_INTERRUPTED = 130

#: How long a start waits for the shards of a store that is this node's alone.
_OWN_TIMEOUT_US = 10_000_000
#: A loop that never idles starves the database thread: each short release of the interpreter restarts its wait of (by
#: default) 5 ms. Measured beside a busy loop: 600 rows a second with the default, 52,000 with this.
_SWITCH_INTERVAL_S = 5e-6
#: Young objects before a collection: with the default, full collections walk the whole window many times a second.
_GC_THRESHOLDS = (50_000, 50, 100)


def loopback(host: str) -> bool:
    """Whether a bind address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class KeyRing:
    """API keys by the hash of their secret, read again every few seconds, so that a revoked key ends within that time."""

    def __init__(self, store: Store, *, required: bool) -> None:
        self.required = required
        self._store = store
        self._keys: dict[str, ApiKey] = {}

    def lookup(self, hash: str) -> ApiKey | None:
        """The key, or None."""
        return self._keys.get(hash)

    @property
    def empty(self) -> bool:
        """Whether no key exists."""
        return not self._keys

    async def refresh(self) -> None:
        """Reads the keys; raises what the store raises."""
        self._keys = {key.hash: key for key in await self._store.api_keys()}


class _HttpServer(uvicorn.Server):
    """uvicorn without its own signal handling: ours drains the engine too."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals alone."""
        yield


class Server:
    """A node: store, engine, API. `start` returns when it answers requests; `url` is where."""

    def __init__(self, settings: Settings, *, on_fatal: Callable[[BaseException], None] | None = None) -> None:
        self._settings = settings
        self._on_fatal = on_fatal or self._note_fatal
        self._log = structlog.get_logger("tocsin.server")
        self._store = open_store(settings)
        if isinstance(self._store, SqliteStore):
            # In the writing thread: what the disk holds is in doubt, and only a new start can find out.
            self._store.on_commit_io_error = self._on_fatal
            self._store.on_checkpoint_error = self._note_checkpoint
        self._tasks: list[asyncio.Task[None]] = []
        self._http: _HttpServer | None = None
        self._socket: socket.socket | None = None
        self._supervisor: Supervisor | None = None
        self._caller: HttpCaller | None = None
        self._pages: Ui | None = None
        self._agent: ServiceAgent | None = None
        self.service: TimerService | None = None
        self.fatal: BaseException | None = None
        self.url = ""

    async def start(self) -> None:
        """Opens everything in order; on failure closes what was opened and raises a TocsinError or OSError."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        settings = self._settings
        private = loopback(settings.host)
        # The port first: a second server on it should fail before anything is touched.
        self._socket = _bind(settings.host, settings.port)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"http://{host}:{self._socket.getsockname()[1]}"
        total_shards = await self._store.open(settings.shards)
        keys = KeyRing(self._store, required=not private and not settings.insecure)
        await keys.refresh()
        if keys.required and keys.empty:
            raise ConfigError(
                f"host: {settings.host} can be reached from other machines and there is no API key; make one with "
                "`tocsin keys create`, bind to 127.0.0.1, or accept the risk with --insecure"
            )
        clock = SystemClock()
        egress = EgressPolicy(
            private if settings.egress_allow_private is None else settings.egress_allow_private, settings.egress_allow
        )
        self._caller = HttpCaller(settings.callback_limits(), egress, clock)
        rules = InputRules(settings.input_limits(), egress.check_url)
        figures = ui.figures(settings.ui_limits(), clock, self._gauges)
        call_figures = ui.call_figures(figures, settings.ui_limits())
        if settings.agent_enabled:
            self._agent = ServiceAgent(settings, self._caller, clock, rules, call_figures)
            await self._agent.open()
        agent = self._agent
        metrics = Metrics(self._gauges, None if agent is None else agent.metrics)
        observe = fan_out([metrics, EventLog(time.monotonic), figures])
        context = Context(
            store=self._store,
            caller=self._caller if agent is None or agent.caller is None else agent.caller,
            clock=clock,
            limits=settings.engine_limits(),
            observe=observe,
            random=random.Random(),
            incarnation=uuid.uuid4().bytes,
        )
        self._context = context
        node = settings.node_name or socket.gethostname()
        supervisor = Supervisor(context, node=node, address=self.url, total_shards=total_shards, fatal=self._on_fatal)
        self._supervisor = supervisor
        self.service = TimerService(
            context,
            supervisor,
            namespace_num_shards=settings.namespace_num_shards,
            retention_us=settings.retention_us(),
        )
        await self.service.ensure_default_namespace()
        await supervisor.start()
        if self._store.capabilities.exclusive and not await supervisor.all_owned(_OWN_TIMEOUT_US):
            self._log.warning("not all shards could be claimed yet; requests for them are answered 503")
        if agent is not None:
            await agent.start(self.service)
        hosts = Hosts(settings.host, settings.ui_origins)
        self._pages = ui.compose(
            self.service,
            rules=rules,
            clock=clock,
            keys=keys,
            figures=figures,
            call_figures=call_figures,
            agent=self._calls,
            hosts=hosts,
            limits=settings.ui_limits(),
        )
        self._pages.start()
        app = Api(
            self.service,
            rules=rules,
            agent=None if agent is None else agent.calls,
            limits=settings.api_limits(),
            clock=clock,
            keys=keys,
            metrics=metrics.exposition,
            metrics_open=private if settings.metrics_open is None else settings.metrics_open,
            hosts=hosts,
            extra=self._pages,
        )
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
            timeout_graceful_shutdown=5,
        )
        self._http = _HttpServer(config)
        self._tasks.append(asyncio.create_task(self._http.serve(sockets=[self._socket])))
        self._tasks.append(asyncio.create_task(self._refresh_keys(keys, settings.keys_refresh_s)))
        while not self._http.started:
            if self._tasks[0].done():
                self._tasks[0].result()
                raise ConfigError("the HTTP server ended as it began")
            await asyncio.sleep(0.005)
        self._log.info("serving", url=self.url, store=settings.store_url_redacted(), shards=total_shards, node=node)

    async def stop(self) -> None:
        """Lets requests end, hands the shards back in order, closes. Idempotent; safe after a failed start."""
        if self._supervisor is not None:
            self._supervisor.draining = True
        if self._pages is not None:
            # Open pages hold a connection each, for whose end the HTTP server would wait.
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
        if self._agent is not None:
            await self._agent.stop()
            self._agent = None
        if self._supervisor is not None:
            await self._supervisor.close()
            self._supervisor = None
        if self._caller is not None:
            await self._caller.close()
            self._caller = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        await self._store.close()

    def _calls(self) -> ServiceCalls | Away:
        """The agent, as the pages find it now."""
        if self._agent is None:
            return OFF
        return self._agent.calls or STANDBY

    def _note_fatal(self, error: BaseException) -> None:
        self.fatal = error
        self._log.critical("the engine can't go on", error=repr(error), exc_info=error)

    def _note_checkpoint(self, error: Exception) -> None:
        self._log.warning("the write-ahead log could not be moved; nothing is lost, it grows", error=str(error))

    async def _refresh_keys(self, keys: KeyRing, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await keys.refresh()
            except StoreError as error:
                self._log.warning("API keys could not be read; the former ones stay in force", error=str(error))

    def _gauges(self) -> dict[str, float]:
        supervisor, service = self._supervisor, self.service
        assert supervisor is not None
        assert service is not None
        dispatcher = supervisor.dispatcher
        return {
            "tocsin_callbacks_in_flight": dispatcher.in_flight,
            "tocsin_timers_waiting": dispatcher.waiting,
            "tocsin_overdue_seconds": supervisor.overdue_us() / 1e6,
            "tocsin_window_timers": self._context.window_timers,
            "tocsin_window_bytes": self._context.window_bytes,
            "tocsin_writes_waiting": service.writes_waiting,
            "tocsin_shards_owned": len(dispatcher.shards),
            "tocsin_dispatching": float(dispatcher.paused_reason is None),
        }


def _bind(host: str, port: int) -> socket.socket:
    """A listening socket; OSError's text names the address."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigError(f"host: {host!r} is neither an address nor a name that can be resolved ({error})") from error
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ConfigError(f"port: can't listen on {host}:{port}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def serve(settings: Settings) -> int:
    """Runs a node until SIGTERM or SIGINT, drains, and returns the exit code."""
    import uvloop

    configure_logging(settings.log_level, settings.log_format)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    _raise_file_limit()
    return uvloop.run(_serve(settings))


def _raise_file_limit() -> None:
    """Each client and each callback is an open file; the usual soft limit of 1,024 is below our own limits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(settings: Settings) -> int:
    log = structlog.get_logger("tocsin.server")
    wanted = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        if wanted.is_set():
            # Whoever insists need not wait for slow receivers: it is no worse than a crash, and those lose nothing.
            log.warning("stopped at once; callbacks under way will be made again")
            sys.stderr.flush()
            os._exit(EXIT_INTERRUPTED)
        wanted.set()

    loop.add_signal_handler(signal.SIGTERM, wanted.set)
    loop.add_signal_handler(signal.SIGINT, interrupted)

    def on_fatal(error: BaseException) -> None:
        # What was not acknowledged is not promised, and what was is on disk: ending at once loses nothing.
        log.critical("the engine can't go on; the process ends", error=repr(error), exc_info=error)
        sys.stderr.flush()
        os._exit(EXIT_FATAL)

    try:
        server = Server(settings, on_fatal=on_fatal)
        await server.start()
    except (TocsinError, OSError) as error:
        print(f"tocsin: can't start: {error}", file=sys.stderr)
        return EXIT_START
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    print(f"Tocsin serves on {server.url} (API docs: {server.url}/docs). Stop with Ctrl-C.", flush=True)
    await wanted.wait()
    log.info("stopping: requests and callbacks under way end first")
    await server.stop()
    return 0
