"""Shared parts of the bus conformance suite: the hook, the fixtures, messages, and a recording handler."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

import msgspec
import pytest
import pytest_asyncio

from tocsin.messaging.limits import BusLimits
from tocsin.model.ids import Uuid7Source
from tocsin.ports.bus import (
    Bus,
    BusEvent,
    Check,
    Delivery,
    DeliveryFailed,
    Envelope,
    InvalidMessage,
    MessageDeadLettered,
)

#: What a handler does with its deliveries: it may keep, ack, fail and raise.
Act = Callable[[Sequence[Delivery]], None]
H = TypeVar("H", bound="Handling")

#: Short pauses, so that a suite takes seconds. No test asserts a duration.
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
    """A message with a unique id whose payload is its number. `bad`: a message that `check` refuses."""
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
    """Refuses messages that `message` created as `bad`."""
    if bytes(envelope.payload) == b'"bad"':
        raise InvalidMessage("the payload is bad")


def number(envelope: Envelope) -> int:
    """The number in the payload of a message from `message`."""
    return int(bytes(envelope.payload))


class Notes:
    """Records what a bus reported and what its handlers received; wakes waiting tests on each change."""

    def __init__(self) -> None:
        self.events: list[BusEvent] = []
        self._changed = asyncio.Event()

    def observe(self, event: BusEvent) -> None:
        """The observer of the bus."""
        self.events.append(event)
        self.change()

    def change(self) -> None:
        """Wakes waiting tests."""
        self._changed.set()

    async def until(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Returns when the condition holds. It is checked after each change."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    @property
    def failures(self) -> list[DeliveryFailed]:
        """The events of handlers that failed."""
        return [event for event in self.events if isinstance(event, DeliveryFailed)]

    @property
    def dead(self) -> list[MessageDeadLettered]:
        """The events of dead letters."""
        return [event for event in self.events if isinstance(event, MessageDeadLettered)]


class Handling:
    """A handler that records what it receives and then does what the test wants."""

    def __init__(self, notes: Notes, act: Act = lambda deliveries: None) -> None:
        self._notes = notes
        self._act = act
        self.batches: list[list[Envelope]] = []
        #: The handled messages in order, without those of handler calls that raised.
        self.handled: list[Envelope] = []
        self.kept: list[Delivery] = []
        self.attempts: defaultdict[str, list[int]] = defaultdict(list)
        self.running = 0
        #: While cleared, handler calls wait.
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
            self._act(deliveries)
            self.handled += [delivery.envelope for delivery in deliveries]
        finally:
            self.running -= 1
            self._notes.change()

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        """An `act` that keeps all deliveries in `kept`."""
        for delivery in deliveries:
            delivery.keep()
            self.kept.append(delivery)

    def numbers(self, aggregate: str) -> list[int]:
        """The numbers of the handled messages of one aggregate, in order."""
        return [number(envelope) for envelope in self.handled if envelope.aggregate_id == aggregate]

    def times(self) -> Counter[str]:
        """How often each message was handled, by id."""
        return Counter(envelope.id for envelope in self.handled)

    async def until_handled(self, envelopes: Collection[Envelope]) -> None:
        """Returns when each of these was handled at least once."""
        wanted = {envelope.id for envelope in envelopes}
        await self._notes.until(lambda: wanted <= {envelope.id for envelope in self.handled})


class Keeping(Handling):
    """A handler that keeps all deliveries in `kept`."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes, self.keep)


def failing(error: BaseException, when: Callable[[Delivery], bool] = lambda delivery: True) -> Act:
    """An `act` that raises the error if one of the deliveries is such a one."""

    def act(deliveries: Sequence[Delivery]) -> None:
        if any(map(when, deliveries)):
            raise error

    return act


def of(aggregate: str) -> Callable[[Delivery], bool]:
    """Whether a delivery is of this aggregate."""
    return lambda delivery: delivery.envelope.aggregate_id == aggregate


async def started(bus: Bus, handling: H, **options: int) -> H:
    """Subscribes the handler to `Happened` under the name `one`, and starts the bus. Returns the handler."""
    bus.subscribe("one", ["Happened"], handling, **options)
    await bus.start()
    return handling


def post(bus: Bus, *envelopes: Envelope) -> None:
    """Posts messages, whatever becomes of them."""
    for envelope in envelopes:
        bus.post(envelope, lambda error: None)


def first_times(numbers: Sequence[int]) -> list[int]:
    """The numbers without repetitions."""
    return list(dict.fromkeys(numbers))


class BusSuite:
    """Base of all topics. Subclass `BusConformance` (or a topic) and define `make_bus`.

    `durable`: messages that were accepted and not settled are delivered again by a new bus for the same folder.
    """

    durable: ClassVar[bool] = True
    limits: ClassVar[BusLimits] = LIMITS

    def make_bus(self, folder: Path, limits: BusLimits, check: Check, notes: Notes) -> Bus:
        """A bus, not started, that reports to `notes.observe`. It has the messages of an earlier bus for the same
        folder, and none for a new folder. The folder's path may serve as a unique name on a server."""
        raise NotImplementedError

    def limited(self, tmp_path: Path, notes: Notes, **limits: int) -> Bus:
        """A bus with other limits than the suite's."""
        return self.make_bus(tmp_path, replace(self.limits, **limits), check, notes)

    @contextlib.asynccontextmanager
    async def reopened(self, tmp_path: Path, notes: Notes) -> AsyncIterator[tuple[Bus, Handling]]:
        """Another bus for the same folder, started, and the handler of its subscription `one`."""
        bus = self.make_bus(tmp_path, self.limits, check, notes)
        yield bus, await started(bus, Handling(notes))
        await bus.close()

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

    async def post_and_wait(self, bus: Bus, envelopes: Sequence[Envelope], waiting: int) -> None:
        """Posts the messages. Returns when `waiting` messages are unsettled in this process."""
        if self.durable:
            await bus.publish(envelopes)
        else:
            post(bus, *envelopes)
        await until_waiting(bus, waiting)

    def require_durable(self) -> None:
        """Skips the test for a bus that is not durable."""
        if not self.durable:
            pytest.skip("not durable")


async def until_waiting(bus: Bus, count: int) -> None:
    """Returns when this many messages are unsettled. A bus does not report arrivals, so this polls."""
    async with asyncio.timeout(60):
        while bus.waiting != count:  # noqa: ASYNC110 - a bus does not report arrivals
            await asyncio.sleep(0.002)
