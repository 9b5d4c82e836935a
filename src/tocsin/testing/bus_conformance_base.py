"""What the topics of the bus conformance suite share: the hook, the fixture, messages, and a handler that takes notes."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
import pytest_asyncio

from tocsin.buses.limits import BusLimits
from tocsin.model.envelope import Envelope
from tocsin.model.uuid7 import Uuid7Source
from tocsin.ports.bus import Bus, BusEvent, Check, DeadLettered, Delivery, DeliveryFailed, InvalidMessage

#: Short pauses, so that a suite takes seconds; nothing asserts how long anything takes.
LIMITS = BusLimits(
    deliveries_max=4,
    backoff_initial_us=1_000,
    backoff_max_us=20_000,
    pause_max_us=20_000,
    nats_reconnect_initial_us=10_000,
    nats_reconnect_max_us=100_000,
    nats_ping_interval_us=1_000_000,
    nats_check_interval_us=20_000,
)
TENANT = "018f0000-0000-7000-8000-0000000000aa"
TIMEOUT_US = 60_000_000

_milliseconds = iter(range(1_700_000_000_000, 1_800_000_000_000))
new_id = Uuid7Source(lambda: next(_milliseconds) * 1_000)


def message(aggregate: str, number: int = 0, type: str = "Happened", *, bad: bool = False) -> Envelope:
    """A message with an id of its own; its payload is its number. `bad`: one that `check` refuses."""
    return Envelope(
        id=new_id(),
        type=type,
        tenant_id=TENANT,
        aggregate_id=aggregate,
        timestamp_ms=0,
        correlation_id=f"correlation-{aggregate}",
        causation_id=None,
        payload=msgspec.Raw(b'"bad"' if bad else str(number).encode()),
    )


def check(envelope: Envelope) -> None:
    """Refuses what `message` made `bad`."""
    if bytes(envelope.payload) == b'"bad"':
        raise InvalidMessage("the payload is bad")


def number(envelope: Envelope) -> int:
    """What `message` put into the payload."""
    return int(bytes(envelope.payload))


class Notes:
    """What a bus reported, and what its handlers saw; whoever waits is told of each change."""

    def __init__(self) -> None:
        self.events: list[BusEvent] = []
        self._changed = asyncio.Event()

    def observe(self, event: BusEvent) -> None:
        """The bus's observer."""
        self.events.append(event)
        self.change()

    def change(self) -> None:
        """Something happened that somebody may wait for."""
        self._changed.set()

    async def until(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Returns when the condition holds, which is looked at after each change."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    @property
    def failures(self) -> list[DeliveryFailed]:
        """Reports of handlers that failed."""
        return [event for event in self.events if isinstance(event, DeliveryFailed)]

    @property
    def dead(self) -> list[DeadLettered]:
        """Reports of dead letters."""
        return [event for event in self.events if isinstance(event, DeadLettered)]


class Handling:
    """A handler that notes what it is given, and then does what the test wants."""

    def __init__(self, notes: Notes, act: Callable[[Sequence[Delivery]], None] = lambda deliveries: None) -> None:
        self._notes = notes
        #: May keep, ack, fail and raise.
        self.act = act
        self.batches: list[list[Envelope]] = []
        #: What was handled, in order, handler calls that raised left out.
        self.handled: list[Envelope] = []
        self.kept: list[Delivery] = []
        self.attempts: defaultdict[str, list[int]] = defaultdict(list)
        self.running = 0
        #: Cleared: handler calls wait.
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, deliveries: Sequence[Delivery]) -> None:
        assert self.running == 0, "one handler call at a time"
        self.running += 1
        self.batches.append([delivery.envelope for delivery in deliveries])
        for delivery in deliveries:
            self.attempts[delivery.envelope.id].append(delivery.attempt)
        self._notes.change()
        try:
            await self.gate.wait()
            self.act(deliveries)
            self.handled += [delivery.envelope for delivery in deliveries]
        finally:
            self.running -= 1
            self._notes.change()

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        """An `act` that keeps everything in `kept`."""
        for delivery in deliveries:
            delivery.keep()
            self.kept.append(delivery)

    def numbers(self, aggregate: str) -> list[int]:
        """What was handled of one aggregate, in order."""
        return [number(envelope) for envelope in self.handled if envelope.aggregate_id == aggregate]

    def times(self) -> Counter[str]:
        """How often each message was handled, by id."""
        return Counter(envelope.id for envelope in self.handled)

    async def until_handled(self, envelopes: Collection[Envelope]) -> None:
        """Returns when all of these were handled at least once."""
        wanted = {envelope.id for envelope in envelopes}
        await self._notes.until(lambda: wanted <= {envelope.id for envelope in self.handled})


def first_times(numbers: Sequence[int]) -> list[int]:
    """The numbers without repetitions."""
    return list(dict.fromkeys(numbers))


class BusSuite:
    """Base of all topics. Subclass `BusConformance` (or a topic) and define `make_bus`.

    `durable`: what was taken and not settled comes again on a bus that is made for the same folder.
    """

    durable: ClassVar[bool] = True
    limits: ClassVar[BusLimits] = LIMITS

    def make_bus(self, folder: Path, limits: BusLimits, check: Check, notes: Notes) -> Bus:
        """A bus, not started, that reports to `notes.observe`: the same messages for the same folder, none for a new
        one. Servers may take the folder's path for a unique name."""
        raise NotImplementedError

    def limited(self, tmp_path: Path, notes: Notes, **limits: int) -> Bus:
        """A bus with other limits than the suite's."""
        return self.make_bus(tmp_path, replace(self.limits, **limits), check, notes)

    @pytest.fixture
    def notes(self) -> Notes:
        """For the observer and the handlers of the test's bus."""
        return Notes()

    @pytest_asyncio.fixture
    async def bus(self, tmp_path: Path, notes: Notes) -> AsyncIterator[Bus]:
        """A bus, not started."""
        bus = self.make_bus(tmp_path, self.limits, check, notes)
        yield bus
        await bus.close()

    async def bring(self, bus: Bus, envelopes: Sequence[Envelope], waiting: int) -> None:
        """Posts, and returns when so many messages wait here for their subscription's handler or in it."""
        if self.durable:
            await bus.publish(envelopes)
        else:
            for envelope in envelopes:
                bus.post(envelope, lambda error: None)
        await until_waiting(bus, waiting)

    def require_durable(self) -> None:
        """Skips where nothing outlives the bus object."""
        if not self.durable:
            pytest.skip("not durable")


async def until_waiting(bus: Bus, count: int) -> None:
    """Returns when so many messages are here and unsettled. A bus doesn't tell of arrivals, so this has to look."""
    async with asyncio.timeout(60):
        while bus.waiting != count:  # noqa: ASYNC110 - there is nothing to be told by
            await asyncio.sleep(0.002)
