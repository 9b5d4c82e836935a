"""Conformance: commands and their replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conformance.bus.base import TIMEOUT_US, BusSuite, Notes, message, number
from tocsin.model.errors import Unavailable
from tocsin.ports.bus import (
    Bus,
    BusOverloaded,
    BusUnavailable,
    CommandFailed,
    Envelope,
    InvalidMessage,
    RequestUnanswered,
)


class Responding:
    """A recording responder that replies with the doubled number."""

    def __init__(self, notes: Notes, *, gated: bool = False) -> None:
        self._notes = notes
        self.batches: list[list[Envelope]] = []
        self.bad: set[int] = set()
        #: While cleared, responder calls wait.
        self.gate = asyncio.Event()
        if not gated:
            self.gate.set()

    async def start(self, bus: Bus) -> None:
        """Responds to `Do`, and starts the bus."""
        bus.respond("answering", ["Do"], self)
        await bus.start()

    async def __call__(self, commands: Sequence[Envelope]) -> list[Envelope]:
        self.batches.append(list(commands))
        self._notes.change()
        await self.gate.wait()
        for command in commands:
            if number(command) in self.bad:
                raise ValueError("secret details")
        return [message(command.aggregate_id, 2 * number(command), "Done") for command in commands]


def ask(bus: Bus, aggregate: str, number: int = 0, type: str = "Do") -> asyncio.Future[Envelope]:
    """Sends a command."""
    return asyncio.ensure_future(bus.request(message(aggregate, number, type), TIMEOUT_US))


class RequestConformance(BusSuite):
    """`request` and `respond`."""

    async def test_each_command_gets_its_own_reply(self, bus: Bus, notes: Notes) -> None:
        await Responding(notes).start(bus)
        replies = await asyncio.gather(*(ask(bus, f"a{i}", i) for i in range(50)))
        assert [(reply.type, reply.aggregate_id, number(reply)) for reply in replies] == [
            ("Done", f"a{i}", 2 * i) for i in range(50)
        ]

    async def test_commands_arriving_during_a_responder_call_are_answered_together(
        self, bus: Bus, notes: Notes
    ) -> None:
        responding = Responding(notes, gated=True)
        bus.respond("answering", ["Do", "Undo"], responding, batch_max=4)
        await bus.start()
        first = ask(bus, "a", 1)
        await notes.until(lambda: len(responding.batches) == 1)
        types = ["Do", "Undo", "Do"]
        others = [ask(bus, "a", 2, each) for each in types]
        await self.settle(bus, notes)
        responding.gate.set()
        await asyncio.gather(first, *others)
        assert [len(batch) for batch in responding.batches] == [1, 3]

    async def settle(self, bus: Bus, notes: Notes) -> None:
        """Returns when earlier commands have arrived: sends another command, for which there is no responder, after
        them."""
        with pytest.raises(BusUnavailable):
            await bus.request(message("a", 0, "Unknown"), TIMEOUT_US)

    async def test_a_failing_command_does_not_fail_others(self, bus: Bus, notes: Notes) -> None:
        responding = Responding(notes)
        responding.bad = {3}
        responding.gate.clear()
        await responding.start(bus)
        first = ask(bus, "a", 0)
        await notes.until(lambda: len(responding.batches) == 1)
        others = [ask(bus, f"a{i}", i) for i in range(1, 6)]
        await self.settle(bus, notes)
        responding.gate.set()
        results = await asyncio.gather(first, *others, return_exceptions=True)
        good = [number(result) for result in results if isinstance(result, Envelope)]
        assert good == [0, 2, 4, 8, 10]
        assert type(results[3]) is CommandFailed
        assert "secret" not in str(results[3])
        assert any("secret details" in event.error for event in notes.failures)

    async def test_a_wrong_number_of_replies_is_a_failure(self, bus: Bus, notes: Notes) -> None:
        async def respond(commands: Sequence[Envelope]) -> list[Envelope]:
            return []

        bus.respond("answering", ["Do"], respond)
        await bus.start()
        with pytest.raises(Unavailable):
            await ask(bus, "a", 1)
        assert "0 replies" in notes.failures[0].error

    async def test_a_command_without_responder_fails(self, bus: Bus) -> None:
        await bus.start()
        with pytest.raises(BusUnavailable, match="Do"):
            await ask(bus, "a", 1)

    async def test_a_command_without_a_timely_reply_fails(self, bus: Bus, notes: Notes) -> None:
        responding = Responding(notes, gated=True)
        await responding.start(bus)
        with pytest.raises(RequestUnanswered):
            await bus.request(message("a", 1, "Do"), 50_000)
        responding.gate.set()
        assert number(await ask(bus, "a", 2)) == 4

    async def test_a_malformed_command_is_not_sent(self, bus: Bus, notes: Notes) -> None:
        responding = Responding(notes)
        await responding.start(bus)
        with pytest.raises(InvalidMessage):
            await bus.request(message("a", type="Do", bad=True), TIMEOUT_US)
        assert responding.batches == []

    async def test_waiting_commands_are_bounded(self, tmp_path: Path, notes: Notes) -> None:
        bus = self.limited(tmp_path, notes, pending_requests_max=3)
        responding = Responding(notes, gated=True)
        await responding.start(bus)
        taken = [ask(bus, f"a{i}", i) for i in range(3)]
        await notes.until(lambda: len(responding.batches) == 1)
        with pytest.raises(BusOverloaded):
            await ask(bus, "a3", 3)
        responding.gate.set()
        assert [number(await each) for each in taken] == [0, 2, 4]
        assert number(await ask(bus, "a4", 4)) == 8
        await bus.close()

    async def test_commands_fail_after_a_drain(self, bus: Bus, notes: Notes) -> None:
        responding = Responding(notes, gated=True)
        await responding.start(bus)
        under_way = ask(bus, "a", 1)
        await notes.until(lambda: len(responding.batches) == 1)
        draining = asyncio.ensure_future(bus.drain())
        responding.gate.set()
        await draining
        assert number(await under_way) == 2
        with pytest.raises(BusUnavailable):
            await ask(bus, "a", 2)
