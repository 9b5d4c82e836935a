"""One node of the real engine in virtual time with receivers that hang, for scenarios about lateness and fairness."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from tests.support.simulation_loop import SimulationLoop
from tocsin.administration import FLOW_RECORDS, put_namespace
from tocsin.model.answer import NoCredential, NoResponse, NotSent, Outcome, Refused, Response
from tocsin.model.batch import CallbackBatch
from tocsin.model.flow import Flow, FlowLimits
from tocsin.model.ids import timer_uuid
from tocsin.model.namespace import Namespace
from tocsin.model.subjects import is_subject_url
from tocsin.model.timer import Timer
from tocsin.ports.http import Exchange, Invocation
from tocsin.ports.observer import Event
from tocsin.ports.store import ShardBatch, StoredRow, generation
from tocsin.stores.memory import MemoryStore
from tocsin.testing.clock import EPOCH_US, DriftingClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import BreakerOptions, EngineLimits
from tocsin.timers.engine.rows import OpKind, Row, WriteOp, stored
from tocsin.timers.engine.supervisor import Supervisor

from .ledger import NAMESPACE_POLICY

SECOND = 1_000_000


class Call(NamedTuple):
    """A request that was sent."""

    invocation: Invocation
    at_us: int
    takes_us: int


class Receivers:
    """The caller. A host or path named `hung…` does not answer until `healed`, others answer after 10 ms. The first `unsent`
    requests to a host are not sent, and none while the host is `forbidden`, or whose credential is among the `unready`."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self.calls: list[Call] = []
        self.unsent: dict[str, int] = {}
        self.forbidden: set[str] = set()
        self.unready: set[str] = set()
        #: Seconds that a host takes to answer, and the answers of hosts that do not accept, until that time of the loop.
        self.takes_s: dict[str, float] = {}
        self.answers: dict[str, tuple[Response | NoResponse, float]] = {}
        #: The results of items of batches by their timers' ids, instead of an acceptance; None: the item has none.
        self.results: dict[str, dict[str, Any] | None] = {}
        self.healed = False
        self.refused = 0
        self._now_us = now_us

    def destination(self, url: str) -> str:
        """The host, or the URL of a subject."""
        return url if is_subject_url(url) else url.split("/")[2]

    def obstacle(self, namespace: str, name: str, destination: str) -> str | None:
        """Whether the credential can't be sent."""
        return "it has no token" if name in self.unready else None

    def _hangs(self, url: str) -> bool:
        return not self.healed and any(part.startswith("hung") for part in url.split("/")[2:])

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Starts the call; the answer is the host's."""
        host = self.destination(invocation.url)
        outcome: Outcome = Response(200)
        delay_s, sent_at = self.takes_s.get(host, 0.01), self._now_us()
        if invocation.items is not None:
            outcome = Response(200, self._results(invocation.items))
        if host in self.answers and asyncio.get_running_loop().time() < self.answers[host][1]:
            outcome = self.answers[host][0]
        if self.unsent.get(host, 0) > 0:
            self.unsent[host] -= 1
            self.refused += 1
            asyncio.get_running_loop().call_later(0.001, done, Exchange(NotSent("NO_CONNECTION_SLOT"), None, 1_000))
            return
        if invocation.credential in self.unready:
            self.refused += 1
            outcome = NoCredential("CREDENTIAL_NOT_READY", "", host)
            asyncio.get_running_loop().call_later(0.001, done, Exchange(outcome, None, 1_000))
            return
        if host in self.forbidden:
            self.refused += 1
            asyncio.get_running_loop().call_later(0.001, done, Exchange(Refused("EGRESS_REFUSED"), None, 1_000))
            return
        if self._hangs(invocation.url):
            outcome, delay_s = NoResponse("TIMEOUT"), invocation.timeout_us / 1e6
        self.calls.append(Call(invocation, sent_at, int(delay_s * 1e6)))
        exchange = Exchange(outcome, sent_at, int(delay_s * 1e6))
        asyncio.get_running_loop().call_later(delay_s, done, exchange)

    def _results(self, items: tuple[Invocation, ...]) -> bytes:
        found = [(item.message_id, self.results.get(item.timer_id, {"status": 200})) for item in items]
        results = [{"webhookId": webhook_id, **result} for webhook_id, result in found if result is not None]
        return msgspec.json.encode({"items": results})

    async def close(self) -> None:
        """Nothing to close."""


class Crowd:
    """A node with a memory store. Timers can be put into the store before it starts, as after a restart."""

    def __init__(self, *, shards: int = 1, breaker: bool = True, **limits: Any) -> None:
        self.loop = SimulationLoop()  # type: ignore[abstract]  # only what a simulation needs
        self.total_shards = shards
        self.store = MemoryStore(_Clock(self.now_us))
        self.receivers = Receivers(self.now_us)
        self.events: list[Event] = []
        self._limits, self._breaker = replace(EngineLimits(), **limits), BreakerOptions(enabled=breaker)
        self.errors: list[BaseException] = []
        self._processes = 0
        self._prepare()
        #: Namespaces that are paused at the start.
        self.paused: set[str] = set()
        #: How timers are retried.
        self.retry = NAMESPACE_POLICY
        #: Rules of flows, and the namespaces' own limits, that are there at the start.
        self.flows: list[Flow] = []
        self.limits: dict[str, FlowLimits] = {}
        #: How callbacks of namespaces are sent together.
        self.batches: dict[str, CallbackBatch] = {}
        self._stored = 0
        self._kept: dict[int, list[StoredRow]] = {}

    def _prepare(self) -> None:
        """A process of the node that has not started yet."""
        number, self._processes = self._processes, self._processes + 1
        # The machine was started again, too.
        self.clock = DriftingClock(self.now_us, offset_us=0, boot_us=number * 1_000 * SECOND, drift_ppm=0)
        self.context = Context(
            store=self.store,
            caller=self.receivers,
            clock=self.clock,
            limits=self._limits,
            breaker=self._breaker,
            observe=self.events.append,
            random=random.Random(1),
            incarnation=bytes([ord("n") + number]) * 16,
            credential_gate=self.receivers,
        )
        self.supervisor = Supervisor(
            self.context, node="n", address="n", total_shards=self.total_shards, fatal=self.errors.append
        )

    async def restart(self, *, crash: bool = False) -> None:
        """Ends the process, in order unless it is to crash, and starts another one."""
        await (self.supervisor.kill() if crash else self.supervisor.close())
        self._prepare()
        await self.supervisor.start()

    def now_us(self) -> int:
        """The wall clock, which is also the store's."""
        return EPOCH_US + self.loop.now_us()

    def _timer(self, name: str, host: str, due_s: float, namespace: str, size: int, timeout_s: float) -> Timer:
        due = EPOCH_US + int(due_s * SECOND)
        payload = msgspec.Raw(b'"' + b"x" * size + b'"')
        url = host if "://" in host else f"http://{host}" if "/" in host else f"http://{host}/"
        return Timer(namespace, name, due, url, due, due, payload=payload, timeout_us=int(timeout_s * 1e6))

    def keep(
        self, name: str, host: str, due_s: float, *, namespace: str = "a", size: int = 2, timeout_s: float = 30.0,
        shard: int = 0, suspended: str | None = None, expire_after_s: float | None = None, flow: str = "",
    ) -> None:  # fmt: skip
        """Puts a timer into the store, due `due_s` seconds after the start."""
        row = self.row(name, host, due_s, namespace=namespace, size=size, timeout_s=timeout_s)
        row.timer.flow_key = flow
        row.timer.expire_after_us = None if expire_after_s is None else int(expire_after_s * SECOND)
        self._kept.setdefault(shard, []).append(stored(row, suspended))

    def row(
        self, name: str, host: str, due_s: float, *, namespace: str = "a", size: int = 2, timeout_s: float = 30.0
    ) -> Row:
        """A timer as a former owner of its shard would have written it."""
        timer = self._timer(name, host, due_s, namespace, size, timeout_s)
        self._stored += 1
        row_generation = generation(0, bytes(16), self._stored)
        return Row((timer.execute_at, timer_uuid(namespace, name)), row_generation, timer, 0)

    def create(self, name: str, host: str, due_s: float, *, namespace: str = "a", shard: int = 0) -> None:
        """A client's create, now."""
        timer = self._timer(name, host, due_s, namespace, 2, 30.0)
        self.supervisor.shards[shard].accept(
            WriteOp(OpKind.CREATE, timer_uuid(namespace, name), namespace, timer=timer)
        )

    def put(self, row: Row, *, shard: int = 0) -> None:
        """Puts a row into the store."""
        self._kept.setdefault(shard, []).append(stored(row))

    async def _fill(self) -> None:
        former = b"f" * 16
        for shard, rows in self._kept.items():
            await self.store.claim(shard, expected_epoch=0, owner=former)
            batch = ShardBatch(shard, 1, former)
            batch.upserts = sorted(rows, key=lambda row: row.key)
            await self.store.apply([batch])
            await self.store.release(shard, epoch=1, owner=former)

    def run(
        self,
        seconds: float,
        then: Callable[[], Coroutine[Any, Any, None]] | None = None,
        *,
        before: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Starts the node, runs for the given time, and kills it. `before` runs before the start, `then` beside the node from
        the first second on."""

        async def life() -> None:
            for name in ("a", "b"):
                namespace = Namespace(
                    name, self.total_shards, 0, 0, paused=name in self.paused, retry=self.retry,
                    limits=self.limits.get(name), callback_batch=self.batches.get(name),
                )  # fmt: skip
                await put_namespace(self.store, namespace, create=True)
            for flow in self.flows:
                await FLOW_RECORDS.put(self.store, flow)
            await self._fill()
            if before is not None:
                await before()
            await self.supervisor.start()
            await asyncio.sleep(1.0)
            if then is not None:
                await then()
            await asyncio.sleep(max(seconds - self.loop.time(), 0.0))
            await self.supervisor.kill()

        self.loop.run_until_complete(life())
        assert not self.errors
        assert not self.loop.unhandled

    def items(self) -> list[tuple[Invocation, int]]:
        """The timers of all batches, and when each was sent."""
        return [(item, call.at_us) for call in self.receivers.calls for item in call.invocation.items or ()]

    def suspended(self) -> dict[str, str | None]:
        """Why each timer that is suspended now is, by its id, in all shards."""
        rows = [row for shard in self.store._shards.values() for row in shard.live.values()]
        return {row.timer_id: row.suspended for row in rows if row.suspended is not None}

    def late_s(self, host: str = "fine") -> dict[str, float]:
        """How late the first call of each timer to the host, or host and path, was, by the timer's id."""
        late: dict[str, float] = {}
        for invocation, at_us, _ in self.receivers.calls:
            if invocation.url.removeprefix("http://").removesuffix("/") == host:
                late.setdefault(invocation.timer_id, (at_us - max(invocation.execute_at, EPOCH_US)) / SECOND)
        return late


class _Clock:
    def __init__(self, now_us: Callable[[], int]) -> None:
        self.now_us = now_us
        self.boottime_us = now_us
