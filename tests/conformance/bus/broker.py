"""Conformance of a bus with an external broker process that fails and recovers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from tests.conformance.bus.base import (
    TIMEOUT_US,
    BusSuite,
    Handling,
    Keeping,
    Notes,
    first_times,
    message,
    started,
    until_waiting,
)
from tocsin.ports.bus import BrokerConnection, Bus, BusUnavailable, Envelope


class Broker(Protocol):
    """The broker process, with controls to break it."""

    def start(self) -> None:
        """Starts it with its former address and data. Returns when it listens."""

    def kill(self) -> None:
        """SIGKILL."""

    def pause(self) -> None:
        """SIGSTOP. Returns when the process is stopped: connections stay open, but nothing answers."""

    def resume(self) -> None:
        """SIGCONT."""


class Sender:
    """Sends like the outbox: repeats a message with the same id until the bus accepts it."""

    def __init__(self, bus: Bus, notes: Notes) -> None:
        self._bus = bus
        self._notes = notes
        self.refused = 0
        self.taken: set[str] = set()

    def send(self, envelope: Envelope) -> None:
        """Returns at once."""
        self._bus.post(envelope, self._decided(envelope))

    def _decided(self, envelope: Envelope) -> Callable[[Exception | None], None]:
        def done(error: Exception | None) -> None:
            if error is None:
                self.taken.add(envelope.id)
            else:
                assert isinstance(error, BusUnavailable), error
                self.refused += 1
                asyncio.get_running_loop().call_later(0.02, self.send, envelope)
            self._notes.change()

        return done


class BrokerConformance(BusSuite):
    """Define `broker` as well as `make_bus`."""

    @pytest.fixture
    def broker(self) -> Broker:
        """A running broker for this test only, which `make_bus` uses."""
        raise NotImplementedError

    def connections(self, notes: Notes) -> list[bool]:
        """The reported states of the connection."""
        return [event.connected for event in notes.events if isinstance(event, BrokerConnection)]

    async def test_a_restarted_broker_loses_nothing(self, bus: Bus, broker: Broker, notes: Notes) -> None:
        handling = await started(bus, Handling(notes))
        sender = Sender(bus, notes)
        sent = [message(f"a{i % 10}", i // 10) for i in range(100)]
        # Like an outbox: the next message of an aggregate follows when the previous one is accepted.
        for each in sent[:50]:
            await bus.publish([each])
        handling.gate.clear()
        broker.kill()
        await notes.until(lambda: self.connections(notes)[:1] == [False])
        assert not bus.connected
        for each in sent[50:60]:
            sender.send(each)
        await notes.until(lambda: sender.refused >= 10)
        broker.start()
        await notes.until(lambda: self.connections(notes)[-1])
        assert bus.connected
        handling.gate.set()
        await notes.until(lambda: len(sender.taken) == 10)
        await bus.publish(sent[60:])
        await handling.until_handled(sent)
        for i in range(10):
            numbers = first_times(handling.numbers(f"a{i}"))
            assert numbers == list(range(10))
        await until_waiting(bus, 0)

    async def test_messages_being_handled_during_a_reconnect_are_not_delivered_twice(
        self, bus: Bus, broker: Broker, notes: Notes
    ) -> None:
        handling = await started(bus, Keeping(notes))
        sent = [message(f"a{i}") for i in range(20)]
        await bus.publish(sent)
        await handling.until_handled(sent)
        broker.kill()
        await notes.until(lambda: self.connections(notes)[:1] == [False])
        for delivery in handling.kept[:10]:
            delivery.ack()
        broker.start()
        await notes.until(lambda: self.connections(notes)[-1])
        for delivery in handling.kept[10:]:
            delivery.ack()
        last = message("last")
        await bus.publish([last])
        await handling.until_handled([last])
        assert set(handling.times().values()) == {1}

    async def test_a_frozen_broker_loses_nothing(self, tmp_path: Path, broker: Broker, notes: Notes) -> None:
        bus = self.limited(tmp_path, notes, nats_publish_timeout_us=200_000)
        handling = await started(bus, Handling(notes))
        sender = Sender(bus, notes)
        before, during = [message(f"a{i}", 0) for i in range(50)], [message(f"a{i}", 1) for i in range(50)]
        await bus.publish(before)
        broker.pause()
        for each in during:
            sender.send(each)
        await notes.until(lambda: sender.refused > 0)
        broker.resume()
        await notes.until(lambda: len(sender.taken) == 50)
        await handling.until_handled([*before, *during])
        for i in range(50):
            assert first_times(handling.numbers(f"a{i}")) == [0, 1]
        await bus.close()

    async def test_an_unresponsive_connection_is_replaced(self, bus: Bus, broker: Broker, notes: Notes) -> None:
        handling = await started(bus, Handling(notes))
        broker.pause()
        await notes.until(lambda: self.connections(notes)[:1] == [False])
        with pytest.raises(BusUnavailable):
            await bus.publish([message("a", 1)])
        broker.resume()
        await notes.until(lambda: self.connections(notes)[-1])
        sent = message("a", 2)
        await bus.publish([sent])
        await handling.until_handled([sent])

    async def test_posts_in_flight_fail_when_the_connection_is_lost(
        self, tmp_path: Path, broker: Broker, notes: Notes
    ) -> None:
        # No other limit ends it within the duration of the test.
        bus = self.limited(tmp_path, notes, nats_publish_timeout_us=3_600_000_000)
        await started(bus, Handling(notes))
        broker.pause()
        publishing = asyncio.ensure_future(bus.publish([message(f"a{i}") for i in range(10)]))
        await until_waiting(bus, 10)
        broker.kill()
        with pytest.raises(BusUnavailable):
            await publishing
        assert bus.waiting == 0
        await bus.close()

    async def test_commands_fail_during_an_outage_and_work_afterwards(
        self, bus: Bus, broker: Broker, notes: Notes
    ) -> None:
        commands = asyncio.Event()

        async def respond(envelopes: object) -> list[Envelope]:
            if not commands.is_set():
                commands.set()
                await asyncio.Event().wait()
            return [message("a", 1, "Done")]

        bus.respond("answering", ["Do"], respond)
        bus.respond("other", ["Undo"], lambda envelopes: _done(len(envelopes)))
        await bus.start()
        waiting = asyncio.ensure_future(bus.request(message("a", 1, "Do"), TIMEOUT_US))
        await commands.wait()
        broker.kill()
        with pytest.raises(BusUnavailable):
            await waiting
        with pytest.raises(BusUnavailable):
            await bus.request(message("a", 1, "Undo"), TIMEOUT_US)
        broker.start()
        await notes.until(lambda: self.connections(notes)[-1])
        assert (await bus.request(message("a", 1, "Undo"), TIMEOUT_US)).type == "Done"

    async def test_start_without_a_broker_fails(self, bus: Bus, broker: Broker, notes: Notes) -> None:
        bus.subscribe("one", ["Happened"], Handling(notes))
        broker.kill()
        with pytest.raises(BusUnavailable):
            await bus.start()
        assert not bus.connected

    async def test_a_broker_killed_while_the_bus_is_closed_keeps_its_messages(
        self, tmp_path: Path, bus: Bus, broker: Broker, notes: Notes
    ) -> None:
        await started(bus, Keeping(notes))
        sent = [message("a", i) for i in range(20)]
        await bus.publish(sent)
        await bus.close()
        broker.kill()
        broker.start()
        async with self.reopened(tmp_path, notes) as (_, later):
            await later.until_handled(sent)
            assert later.numbers("a") == list(range(20))


async def _done(count: int) -> list[Envelope]:
    return [message("a", 1, "Done") for _ in range(count)]
