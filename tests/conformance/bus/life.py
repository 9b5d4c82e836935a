"""Conformance: limits, closing, and the durability of a durable bus."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.conformance.bus.base import (
    BusSuite,
    Handling,
    Keeping,
    Notes,
    check,
    failing,
    first_times,
    message,
    post,
    started,
    until_waiting,
)
from tocsin.ports.bus import Bus, BusOverloaded, BusUnavailable, InvalidMessage


class SendingConformance(BusSuite):
    """`post` and `publish`."""

    async def test_done_is_called_later_and_once(self, bus: Bus, notes: Notes) -> None:
        await started(bus, Handling(notes))
        outcomes: list[Exception | None] = []
        finished = asyncio.Event()

        def done(error: Exception | None) -> None:
            outcomes.append(error)
            if len(outcomes) == 3:
                finished.set()

        for each in (message("a"), message("b", type="Unwanted"), message("c", bad=True)):
            bus.post(each, done)
            assert outcomes == []
        await finished.wait()
        assert sorted(str(type(error)) for error in outcomes) == sorted(
            str(kind) for kind in (type(None), type(None), InvalidMessage)
        )

    async def test_publish_raises_the_first_failure_and_sends_the_others(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes))
        good = [message("a", 1), message("b", 2)]
        with pytest.raises(InvalidMessage):
            await bus.publish([good[0], message("c", bad=True), good[1]])
        await handling.until_handled(good)
        await bus.publish([])

    async def test_posts_beyond_the_limit_are_refused(self, tmp_path: Path, notes: Notes) -> None:
        bus = self.limited(tmp_path, notes, queue_max=5)
        handling = Handling(notes)
        handling.gate.clear()
        bus.subscribe("one", ["Happened"], handling)
        await bus.start()
        outcomes: dict[str, Exception | None] = {}

        def post(aggregate: str) -> None:
            def done(error: Exception | None) -> None:
                outcomes[aggregate] = error
                notes.change()

            bus.post(message(aggregate), done)

        for each in "abcdef":
            post(each)
        await notes.until(lambda: "f" in outcomes)
        assert isinstance(outcomes["f"], BusOverloaded)
        handling.gate.set()
        await notes.until(lambda: len(outcomes) == 6)
        assert [outcomes[each] for each in "abcde"] == [None] * 5
        post("f")
        await notes.until(lambda: outcomes["f"] is None)
        await until_waiting(bus, 0)
        await bus.close()


class EndConformance(BusSuite):
    """`drain` and `close`."""

    async def test_drain_waits_for_the_handler_and_delivers_nothing_more(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes))
        handling.gate.clear()
        first, second = message("a", 1), message("a", 2)
        post(bus, first)
        await notes.until(lambda: handling.running == 1)
        post(bus, second)
        draining = asyncio.ensure_future(bus.drain())
        await asyncio.sleep(0)
        assert not draining.done()
        handling.gate.set()
        await draining
        assert handling.handled == [first]

    async def test_kept_deliveries_can_be_settled_after_a_drain(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Keeping(notes))
        sent = message("a", 1)
        post(bus, sent)
        await handling.until_handled([sent])
        await bus.drain()
        handling.kept[0].ack()
        await bus.publish([message("b", type="Unwanted")])
        await until_waiting(bus, 0)

    async def test_close_cancels_the_handler_and_refuses_later_posts(self, bus: Bus, notes: Notes) -> None:
        handling = Handling(notes)
        handling.gate.clear()
        bus.subscribe("one", ["Happened"], handling)
        await bus.start()
        post(bus, message("a"))
        await notes.until(lambda: handling.running == 1)
        await bus.close()
        assert handling.running == 0
        assert not bus.connected
        with pytest.raises(BusUnavailable):
            await bus.publish([message("b")])
        with pytest.raises(BusUnavailable):
            await bus.request(message("b", type="Do"), 1_000_000)
        await bus.close()

    async def test_a_bus_that_never_started_can_be_closed(self, bus: Bus, notes: Notes) -> None:
        bus.subscribe("one", ["Happened"], Handling(notes))
        await bus.close()
        await bus.close()

    async def test_subscribing_twice_under_one_name_is_refused(self, bus: Bus, notes: Notes) -> None:
        bus.subscribe("one", ["Happened"], Handling(notes))
        with pytest.raises(ValueError, match="one"):
            bus.subscribe("one", ["Happened"], Handling(notes))


class RestartConformance(BusSuite):
    """A durable bus that is closed and created again."""

    async def test_unsettled_messages_are_delivered_again_in_order(
        self, tmp_path: Path, bus: Bus, notes: Notes
    ) -> None:
        self.require_durable()
        handling = await started(bus, Keeping(notes))
        sent = [message(f"a{i % 10}", i // 10) for i in range(50)]
        await bus.publish(sent)
        await handling.until_handled(sent[:10])
        for delivery in handling.kept[:5]:
            delivery.ack()
        await bus.close()

        async with self.reopened(tmp_path, notes) as (again, later):
            new = message("a0", 5)
            await again.publish([new])
            settled = {delivery.envelope.id for delivery in handling.kept[:5]}
            await later.until_handled([*(each for each in sent if each.id not in settled), new])
            for i in range(10):
                numbers = first_times(later.numbers(f"a{i}"))
                assert numbers == sorted(numbers)

    async def test_settled_messages_are_not_delivered_again(self, tmp_path: Path, bus: Bus, notes: Notes) -> None:
        self.require_durable()
        handling = await started(bus, Handling(notes))
        sent = [message(f"a{i % 10}", i // 10) for i in range(50)]
        await bus.publish(sent)
        await handling.until_handled(sent)
        await until_waiting(bus, 0)
        await bus.close()

        for _ in range(3):
            async with self.reopened(tmp_path, notes) as (again, later):
                new = message("a0", 5)
                await again.publish([new])
                await later.until_handled([new])
                assert later.handled == [new]
                await until_waiting(again, 0)

    async def test_subscriptions_settle_independently(self, tmp_path: Path, bus: Bus, notes: Notes) -> None:
        self.require_durable()
        keeping = Keeping(notes)
        bus.subscribe("keeping", ["Happened"], keeping)
        fine = await started(bus, Handling(notes))
        sent = [message(f"a{i}") for i in range(10)]
        await bus.publish(sent)
        await keeping.until_handled(sent)
        await fine.until_handled(sent)
        await until_waiting(bus, 10)
        await bus.close()

        again = self.make_bus(tmp_path, self.limits, check, notes)
        kept = Handling(notes)
        again.subscribe("keeping", ["Happened"], kept)
        handled = await started(again, Handling(notes))
        last = message("a0", 1)
        await again.publish([last])
        await kept.until_handled([*sent, last])
        await handled.until_handled([last])
        assert handled.handled == [last]
        await again.close()

    async def test_a_dead_letter_is_not_delivered_again(self, tmp_path: Path, bus: Bus, notes: Notes) -> None:
        self.require_durable()

        await started(bus, Handling(notes, failing(ValueError("never"))))
        await bus.publish([message("a", 1)])
        await notes.until(lambda: len(notes.dead) == 1)
        await until_waiting(bus, 0)
        await bus.close()

        async with self.reopened(tmp_path, notes) as (again, handling):
            good = message("a", 2)
            await again.publish([good])
            await handling.until_handled([good])
            assert handling.handled == [good]
