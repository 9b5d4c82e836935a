"""The API on a real server, on a free port, over a service in memory."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import httpx
import uvicorn
import uvloop
from fake_agent import FakeAgent
from fake_jobs import FakeJobs
from fake_timers import FakeTimerService, SystemClock
from tests.support.statistics import statistics_reader

from tocsin.http_client.egress import EgressPolicy
from tocsin.keys import ApiKeys
from tocsin.model.access import ApiKey, SignIn, hash_key
from tocsin.model.validation import InputLimits, InputRules
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.metrics import RequestMetrics
from tocsin.web.api.app import Api, ApiMetrics
from tocsin.web.api.protocol import ApiProtocol
from tocsin.web.http.access import AuthFailures
from tocsin.web.http.hosts import Hosts
from tocsin.web.http.parts import Relay, WebParts


@dataclass
class Keys:
    required: bool = False
    known: dict[str, ApiKey] = field(default_factory=dict)
    stored: MemoryStore = field(default_factory=MemoryStore)
    identifies: bool = False

    def lookup(self, hash: str) -> ApiKey | None:
        return self.known.get(hash)

    def expired(self, hash: str) -> bool:
        return False

    def used(self, key: ApiKey) -> None:
        pass

    def identify(self, token: str) -> ApiKey | None:
        return None

    def permitted(self, sign_in: SignIn) -> ApiKey | None:
        return None

    def by_id(self, key_id: str) -> ApiKey | None:
        return next((key for key in self.known.values() if key.key_id == key_id), None)

    def add(self, secret: str, role: Any, *namespaces: str, tenants: tuple[str, ...] = ()) -> dict[str, str]:
        key_hash = hash_key(secret)
        self.known[key_hash] = ApiKey(secret, key_hash, role, namespaces, tenants)
        return {"authorization": f"Bearer {secret}"}


@dataclass
class Served:
    """A running server with its services and URL."""

    service: FakeTimerService
    agent: FakeAgent
    keys: Keys
    url: str
    client: httpx.Client

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    def post(self, path: str, body: object, **options: Any) -> httpx.Response:
        return self.client.post(f"/api/v1/{path}", json=body, **options)


def make_api(
    service: FakeTimerService,
    keys: Keys,
    agent: FakeAgent | None = None,
    *,
    hosts: Hosts | None = None,
    relay: Relay | None = None,
    metrics_open: bool = True,
    requests: RequestMetrics | None = None,
    **options: Any,
) -> Api:
    rules = InputRules(InputLimits(), EgressPolicy().check_url)
    if agent is not None:
        agent.check_url, agent.check_due = rules.url, rules.instant
    parts = WebParts(
        service=service,
        rules=rules,
        clock=SystemClock(),
        keys=keys,
        statistics=statistics_reader(keys.stored, SystemClock()),
        jobs=cast("Any", FakeJobs()),
        # Requests made by hand name the host x.
        hosts=hosts or Hosts("x"),
        # Its clock jumps, so that no test is slowed down by the wrong keys of another.
        auth_failures=AuthFailures(now_s=partial(next, itertools.count(0.0, 1_000.0))),
        relay=relay,
    )
    requests = requests or RequestMetrics()
    scrape = partial(_scrape, (b"up 1\n", "text/plain; version=1.0.0; charset=utf-8"))
    return Api(
        parts,
        agent=None if agent is None else partial(_same, agent.service_calls()),
        api_keys=ApiKeys(keys.stored),
        metrics=ApiMetrics(scrape, open=metrics_open, measure=requests, item_refused=requests.item_refused),
        **options,
    )


async def _scrape(answer: tuple[bytes, str]) -> tuple[bytes, str]:
    return answer


def _same(calls: ServiceCalls) -> ServiceCalls:
    """A source of an agent that always runs on this node."""
    return calls


@contextmanager
def serving(app: Api) -> Iterator[str]:
    """Runs the application in its own thread; yields the URL. The socket listens before the server runs, so that clients can
    connect immediately."""
    listener = socket.create_server(("127.0.0.1", 0))
    protocol: Any = partial(ApiProtocol, app)
    config = uvicorn.Config(app, loop="uvloop", http=protocol, access_log=False, log_level="warning")
    server = uvicorn.Server(config)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve(sockets=[listener]))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield "http://{}:{}".format(*listener.getsockname())
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
