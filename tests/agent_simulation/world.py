"""One seeded run: a process, tenants, services, failures, repair, and the final check."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import random
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec

from tests.simulation.ledger import Violation
from tests.support.simulation_loop import NoEnd, NothingScheduled, SimulationLoop, TimeNotAdvancing
from tocsin.model import ids
from tocsin.ports.bus import Envelope, MessageDeadLettered
from tocsin.service_calls.events import AgentEvent, CallRescued, MessageSuspended
from tocsin.service_calls.limits import AgentLimits
from tocsin.targets import identities
from tocsin.testing.clock import EPOCH_US

from .bus import BUS_LIMITS, Broker
from .chaos import Chaos
from .clients import Client
from .credentials import Issuer
from .database import Tables
from .outcomes import check_outcomes
from .process import Process
from .receiver import Receivers

SECOND = 1_000_000
#: Failures begin within this time; the last one ends some minutes later.
ACTIVE_S = 150.0
#: After the last repair every call ends within this time. The watchdog checks at least once per `start_timeout`; then the
#: request may be sent, and may wait for its turn at a hanging service.
SETTLING_S = 2_000.0
#: A run that takes longer waits for something that never happens.
RUN_S_MAX = 3_600.0
LIMITS = AgentLimits(
    request_timeout_us=10 * SECOND,
    watchdog_grace_us=5 * SECOND,
    watchdog_interval_us=2 * SECOND,
    start_timeout_us=60 * SECOND,
    outbox_retention_us=86_400 * SECOND,
    purge_interval_us=600 * SECOND,
)


class _Log:
    """Has what tokens report in the trace."""

    def __init__(self, world: World) -> None:
        self._world = world

    def warning(self, event: str, **fields: str) -> None:
        self._world.log(event, *fields.values())


class World:
    """The state of one seed; also the clock of the process. `run` returns the violation, or None."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.trace: list[tuple[Any, ...]] = []
        self.violation: Violation | None = None
        rng = self.rng("world")
        self.loop = SimulationLoop(seconds_max=RUN_S_MAX)  # type: ignore[abstract]  # only what a simulation needs
        #: Whether processes end in this run. If none does, no execution may count as interrupted.
        self.mortal = seed % 3 != 0
        #: Nothing fails in this run except the services.
        self.quiet = seed % 10 == 0
        #: Whether calls have flow keys, and whether some name credentials.
        self.flows = seed % 2 == 0
        self.credentials = seed % 5 < 2
        places = rng.choice((1, 2, 512))
        self.limits = replace(LIMITS, executions_per_destination_max=places, executions_max=rng.choice((1, 2, 20)))
        few = {"suspended_orders_max": 1, "flow_keys_max": 2, "orders_deferred_max": 2} if seed % 4 == 0 else {}
        self.limits = replace(self.limits, **few)
        self.bus_limits = BUS_LIMITS
        self.tables = Tables(self.rng("database"))
        self.broker = Broker(self, self.rng("broker")) if seed % 4 else None
        self.receivers = Receivers(self, self.rng("receivers"))
        self.issuer = Issuer(self, self.rng("issuer"))
        self.hosts = rng.choice((("a", "b"), ("a", "slow"), ("a", "hung"), ("hung",)))
        #: The ids of each call's messages in the order in which they were first posted.
        self.posts: dict[str, list[str]] = {}
        self._posted: set[str] = set()
        self._random_bytes = self.rng("ids").randbytes
        self.new_id = ids.Uuid7Source(self.now_us, self._random_bytes)
        self.tenants = [self.new_id() for _ in range(2)]
        self.submitting_s = rng.choice((20.0, 60.0, ACTIVE_S))
        self.clients = [Client(self, number, self.rng("client", number)) for number in range(rng.randint(6, 16))]
        #: What has to end before the final check: failures, with their repair, and tenants.
        self.awaited: list[asyncio.Task[None]] = []
        self.processes: list[Process] = []
        self._failed: asyncio.Future[None] | None = None

    def rng(self, *name: object) -> random.Random:
        """A separate random source for each part, so that one part's draws do not shift another's."""
        return random.Random("/".join(str(part) for part in (self.seed, *name)))

    # ------------------------------------------------------------------ time

    def now_us(self) -> int:
        """The wall clock."""
        return EPOCH_US + self.loop.now_us()

    def boottime_us(self) -> int:
        """The boot time clock."""
        return self.loop.now_us()

    def outside(self, delay_s: float, callback: Any, *args: Any) -> None:
        """Calls back outside of any process, even if the process that caused it has ended."""
        self._context.run(self.loop.call_later, delay_s, callback, *args)

    # ------------------------------------------------------------------ what happened

    def log(self, *what: object) -> None:
        """Adds to the trace."""
        self.trace.append((self.loop.now_us(), *what))

    def broken(self, kind: str, detail: str) -> None:
        """A guarantee was violated: the run ends with the first violation."""
        self.log("VIOLATION", kind, detail)
        if self.violation is None:
            self.violation = Violation(kind, detail)
            if self._failed is not None and not self._failed.done():
                self._failed.set_result(None)

    def observe(self, event: AgentEvent) -> None:
        """Observes the modules' events."""
        self.log(type(event).__name__, *msgspec.structs.astuple(event))
        if isinstance(event, MessageDeadLettered | MessageSuspended):
            self.broken("GIVEN UP", str(event))
        if self.quiet and isinstance(event, CallRescued) and event.action == "dispatched":
            self.broken("NOT REPORTED", f"a due time, though nothing was amiss: {event}")

    def posted(self, envelope: Envelope) -> None:
        """A message was posted to the bus."""
        if envelope.id not in self._posted:
            self._posted.add(envelope.id)
            self.posts.setdefault(envelope.aggregate_id, []).append(envelope.id)
            self.log("post", envelope.type, envelope.aggregate_id)

    def status_of(self, call_id: str) -> str:
        """The stored status of a call; empty if it is not there."""
        rows = self.tables.rows(f"SELECT status FROM service_calls WHERE service_call_id = '{call_id}'")
        return str(rows[0][0]) if rows else ""

    def fingerprint(self) -> str:
        """The hash of the trace; equal for equal runs."""
        return hashlib.sha256(repr(self.trace).encode()).hexdigest()[:16]

    # ------------------------------------------------------------------ the run

    def start_process(self) -> None:
        """Starts the next process."""
        self.process = Process(self, len(self.processes) + 1)
        self.processes.append(self.process)
        self.process.start()

    def run(self) -> Violation | None:
        """From the start to the final check."""
        try:
            with (
                patch.object(ids, "RandomPool", lambda: self._random_bytes),
                patch.object(identities, "random", self.rng("pauses")),
                patch.object(identities, "_log", _Log(self)),
            ):
                self.loop.run_until_complete(self._main())
        except (NothingScheduled, TimeNotAdvancing, NoEnd) as error:
            waiting = ", ".join(task.get_name() for task in self.awaited if not task.done())
            self.broken("STANDSTILL", f"{error}; under way: {waiting or 'nothing'}")
        for context in self.loop.unhandled:
            self.broken("UNHANDLED", f"{context.get('message')} {context.get('exception')!r}")
        self.loop.close()
        for process in self.processes:
            process.forget()
        self.tables.connection.close()
        return self.violation

    async def _main(self) -> None:
        self._context = contextvars.copy_context()
        self._failed = self.loop.create_future()
        life = self.loop.create_task(self._life())
        await asyncio.wait({life, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        if not life.done():
            life.cancel()
        elif (error := life.exception()) is not None:
            self.broken("FATAL", repr(error))

    async def _life(self) -> None:
        self.start_process()
        clients = [self.loop.create_task(each.run(), name=f"client {each.number}") for each in self.clients]
        self.awaited += clients
        if not self.quiet:
            failing = self.loop.create_task(self.issuer.fail(ACTIVE_S if self.credentials else 0.0), name="issuer")
            self.awaited.append(failing)
            await Chaos(self, self.rng("chaos")).run(ACTIVE_S)
            await failing
        self.log("repaired")
        await asyncio.gather(*clients)
        deadline_s = self.loop.time() + SETTLING_S
        while self.loop.time() < deadline_s and self.tables.rows(_UNFINISHED) != [(0, 0)]:  # noqa: ASYNC110
            await asyncio.sleep(2.0)
        check_outcomes(self)
        self._check_flows()

    def _check_flows(self) -> None:
        """Nothing is left of any flow."""
        gate = self.process.gate
        if gate.in_use.total() or gate.waiting or self.tables.rows("SELECT * FROM suspended_executions"):
            self.broken("FLOW", f"in use: {gate.in_use}, waiting: {gate.waiting}")


_UNFINISHED = """
    SELECT (SELECT count(*) FROM service_calls WHERE status IN ('Scheduled', 'Running', 'Retrying')),
    (SELECT count(*) FROM outbox WHERE published_at IS NULL)
"""
