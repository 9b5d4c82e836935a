"""One seeded run: a process, tenants, services, mishaps, repair, and the reckoning."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import random
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.simulation.ledger import Violation
from tocsin.agent.events import AgentEvent, CallRescued, MessageSuspended
from tocsin.agent.limits import AgentLimits
from tocsin.model import uuid7
from tocsin.model.envelope import Envelope
from tocsin.ports.bus import DeadLettered
from tocsin.testing.clock import EPOCH_US
from tocsin.testing.simulation_loop import NothingScheduled, SimulationLoop, TimeNotAdvancing

from .bus import BUS_LIMITS, Broker
from .chaos import Chaos
from .clients import Client
from .database import Tables
from .process import Process, SimulatedSettings
from .receiver import Receivers
from .reckoning import reckon

SECOND = 1_000_000
#: Mishaps begin within this time; the last ends some minutes later.
ACTIVE_S = 150.0
#: After the last repair every call ends within this time. The watchdog asks at least once in `start_timeout`, then the
#: request may be made, and has to wait for its turn at a service that hangs.
SETTLING_S = 2_000.0
LIMITS = AgentLimits(
    request_timeout_us=10 * SECOND,
    watchdog_grace_us=5 * SECOND,
    watchdog_interval_us=2 * SECOND,
    start_timeout_us=60 * SECOND,
    outbox_retention_us=86_400 * SECOND,
    purge_interval_us=600 * SECOND,
)
SETTINGS = SimulatedSettings()


class World:
    """Everything of one seed. `run` returns its violation, or None. Also the clock of the process."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.trace: list[tuple[Any, ...]] = []
        self.violation: Violation | None = None
        rng = self.rng("world")
        self.loop = SimulationLoop()  # type: ignore[abstract]  # only what a simulation needs
        self.settings = SETTINGS
        #: Whether processes end in this run. Where none does, no execution may be taken for interrupted.
        self.mortal = seed % 3 != 0
        #: Nothing goes wrong in this run, but at the services.
        self.quiet = seed % 10 == 0
        places = rng.choice((1, 2, 512))
        self.limits = replace(LIMITS, executions_per_destination_max=places, executions_max=rng.choice((1, 2, 20)))
        self.bus_limits = BUS_LIMITS
        self.tables = Tables(self.rng("database"))
        self.broker = Broker(self, self.rng("broker")) if seed % 4 else None
        self.receivers = Receivers(self, self.rng("receivers"))
        self.hosts = rng.choice((("a", "b"), ("a", "slow"), ("a", "hung"), ("hung",)))
        #: By call, the ids of messages in the order in which they were first given to the bus.
        self.posts: dict[str, list[str]] = {}
        self._posted: set[str] = set()
        self._random_bytes = self.rng("ids").randbytes
        self.new_id = uuid7.Uuid7Source(self.now_us, self._random_bytes)
        self.tenants = [self.new_id() for _ in range(2)]
        self.submitting_s = rng.choice((20.0, 60.0, ACTIVE_S))
        self.clients = [Client(self, number, self.rng("client", number)) for number in range(rng.randint(6, 16))]
        self._processes: list[Process] = []
        self._failed: asyncio.Future[None] | None = None

    def rng(self, *name: object) -> random.Random:
        """A source of chance of its own for each part, so that one's draws don't shift another's."""
        return random.Random("/".join(str(part) for part in (self.seed, *name)))

    # ------------------------------------------------------------------ time

    def now_us(self) -> int:
        """The wall clock."""
        return EPOCH_US + self.loop.now_us()

    def boottime_us(self) -> int:
        """The boot time clock."""
        return self.loop.now_us()

    def outside(self, delay_s: float, callback: Any, *args: Any) -> None:
        """Calls back as nobody's part: it happens even when the process that caused it is gone."""
        self._context.run(self.loop.call_later, delay_s, callback, *args)

    # ------------------------------------------------------------------ what happened

    def say(self, *what: object) -> None:
        """Adds to the trace."""
        self.trace.append((self.loop.now_us(), *what))

    def broken(self, kind: str, detail: str) -> None:
        """A promise was broken: the run ends with the first."""
        self.say("VIOLATION", kind, detail)
        if self.violation is None:
            self.violation = Violation(kind, detail)
            if self._failed is not None and not self._failed.done():
                self._failed.set_result(None)

    def observe(self, event: AgentEvent) -> None:
        """What the modules report."""
        self.say(type(event).__name__, *event)
        if isinstance(event, DeadLettered | MessageSuspended):
            self.broken("GIVEN UP", str(event))
        if self.quiet and isinstance(event, CallRescued) and event.action == "dispatched":
            self.broken("NOT REPORTED", f"a due time, though nothing was amiss: {event}")

    def posted(self, envelope: Envelope) -> None:
        """A message is given to the bus."""
        if envelope.id not in self._posted:
            self._posted.add(envelope.id)
            self.posts.setdefault(envelope.aggregate_id, []).append(envelope.id)
            self.say("post", envelope.type, envelope.aggregate_id)

    def fingerprint(self) -> str:
        """The trace's hash: equal for equal runs."""
        return hashlib.sha256(repr(self.trace).encode()).hexdigest()[:16]

    # ------------------------------------------------------------------ the run

    def start_process(self) -> None:
        """The next one begins."""
        self.process = Process(self, len(self._processes) + 1)
        self._processes.append(self.process)
        self.process.start()

    def run(self) -> Violation | None:
        """From the start to the reckoning."""
        try:
            with patch.object(uuid7, "RandomPool", lambda: self._random_bytes):
                self.loop.run_until_complete(self._main())
        except (NothingScheduled, TimeNotAdvancing) as error:
            self.broken("STANDSTILL", str(error))
        for context in self.loop.unhandled:
            self.broken("UNHANDLED", f"{context.get('message')} {context.get('exception')!r}")
        self.loop.close()
        for process in self._processes:
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
        clients = [self.loop.create_task(client.run()) for client in self.clients]
        if not self.quiet:
            await Chaos(self, self.rng("chaos")).run(ACTIVE_S)
        self.say("repaired")
        await asyncio.gather(*clients)
        deadline_s = self.loop.time() + SETTLING_S
        while self.loop.time() < deadline_s and self.tables.rows(_UNFINISHED) != [(0, 0)]:  # noqa: ASYNC110
            await asyncio.sleep(2.0)
        reckon(self)


_UNFINISHED = """
    SELECT (SELECT count(*) FROM service_calls WHERE status IN ('Scheduled', 'Running', 'Retrying')),
    (SELECT count(*) FROM outbox WHERE published_at IS NULL)
"""
