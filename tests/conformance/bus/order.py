"""Conformance: which subscription gets which message, in which order and batches, and how often."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.bus.base import (
    BusSuite,
    Handling,
    Keeping,
    Notes,
    failing,
    message,
    of,
    post,
    started,
    until_waiting,
)
from tocsin.ports.bus import Bus, Delivery, Envelope


class DeliveryConformance(BusSuite):
    """Subscriptions and batches."""

    async def test_every_subscription_of_a_type_gets_the_message(self, bus: Bus, notes: Notes) -> None:
        first, second, other = Handling(notes), Handling(notes), Handling(notes)
        bus.subscribe("first", ["Happened", "Ended"], first)
        bus.subscribe("second", ["Happened"], second)
        bus.subscribe("other", ["Ended"], other)
        await bus.start()
        happened, ended = message("a"), message("a", type="Ended")
        await bus.publish([happened, ended])
        await first.until_handled([happened, ended])
        await second.until_handled([happened])
        await other.until_handled([ended])
        assert (first.handled, second.handled, other.handled) == ([happened, ended], [happened], [ended])

    async def test_a_message_without_subscription_is_accepted(self, bus: Bus) -> None:
        await bus.start()
        await bus.publish([message("a")])

    async def test_the_whole_envelope_arrives(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes))
        sent = message("a", 7)
        await bus.publish([sent])
        await handling.until_handled([sent])
        assert handling.handled == [sent]
        assert handling.attempts == {sent.id: [1]}

    async def test_messages_arriving_during_a_handler_call_form_the_next_batch(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes), batch_max=20)
        handling.gate.clear()
        first = message("first")
        post(bus, first)
        await notes.until(lambda: handling.running == 1)
        others = [message(f"a{i}") for i in range(30)]
        await self.post_and_wait(bus, others, 31)
        handling.gate.set()
        await handling.until_handled(others)
        assert [len(batch) for batch in handling.batches] == [1, 20, 10]

    async def test_aggregates_take_turns(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes), batch_max=1)
        handling.gate.clear()
        flood = [message("flood", i) for i in range(30)]
        single = message("single")
        await self.post_and_wait(bus, [*flood, single], 31)
        handling.gate.set()
        await handling.until_handled([*flood, single])
        assert handling.handled.index(single) <= 2


class OrderConformance(BusSuite):
    """Order within an aggregate."""

    async def test_messages_of_one_aggregate_are_handled_one_by_one_in_order(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes), batch_max=7)
        sent = [message(f"a{i % 20}", i // 20) for i in range(600)]
        await bus.publish(sent)
        await handling.until_handled(sent)
        for aggregate in {each.aggregate_id for each in sent}:
            assert handling.numbers(aggregate) == list(range(30))
        assert all(len({each.aggregate_id for each in batch}) == len(batch) <= 7 for batch in handling.batches)

    async def test_the_next_message_waits_until_the_previous_one_is_settled(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Keeping(notes))
        a1, a2, b1 = message("a", 1), message("a", 2), message("b", 1)
        post(bus, a1, a2, b1)
        await handling.until_handled([a1, b1])
        c1 = message("c", 1)
        post(bus, c1)
        await handling.until_handled([c1])
        assert a2 not in handling.handled
        handling.kept[0].ack()
        await handling.until_handled([a2])

    async def test_order_holds_through_failures(self, bus: Bus, notes: Notes) -> None:
        chance = random.Random(7)
        settled: list[Envelope] = []

        def act(deliveries: Sequence[Delivery]) -> None:
            if chance.random() < 0.2:
                raise ValueError("by chance")
            for delivery in deliveries:
                if chance.random() < 0.2:
                    delivery.fail(ValueError("by chance"))
                else:
                    settled.append(delivery.envelope)

        await started(bus, Handling(notes, act), batch_max=5)
        sent = [message(f"a{i % 10}", i // 10) for i in range(200)]
        post(bus, *sent)
        await notes.until(lambda: len(settled) + len(notes.dead) == len(sent))
        for aggregate in {each.aggregate_id for each in sent}:
            numbers = [int(bytes(each.payload)) for each in settled if each.aggregate_id == aggregate]
            assert numbers == sorted(set(numbers))

    async def test_a_waiting_aggregate_does_not_block_others(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes, failing(ValueError("stuck"), of("stuck"))))
        stuck = [message("stuck", i) for i in range(3)]
        others = [message(f"a{i % 10}", i // 10) for i in range(100)]
        post(bus, *stuck, *others)
        await handling.until_handled(others)
        for i in range(10):
            assert handling.numbers(f"a{i}") == list(range(10))


class DuplicateConformance(BusSuite):
    """The same envelope posted more than once."""

    async def test_a_duplicate_of_a_message_being_handled_is_settled_with_it(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Keeping(notes))
        errors: list[Exception | None] = []

        def done(error: Exception | None) -> None:
            errors.append(error)
            notes.change()

        sent, following = message("a", 1), message("a", 2)
        for each in (sent, sent, following):
            bus.post(each, done)
        await handling.until_handled([sent])
        handling.kept[0].ack()
        await handling.until_handled([following])
        handling.kept[1].ack()
        await notes.until(lambda: len(errors) == 3)
        await until_waiting(bus, 0)
        assert errors == [None] * 3
        assert handling.handled == [sent, following]

    async def test_a_duplicate_of_a_handled_message_is_dropped(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes))
        sent, following = message("a", 1), message("a", 2)
        await bus.publish([sent])
        await handling.until_handled([sent])
        await bus.publish([sent, following])
        await handling.until_handled([following])
        assert handling.handled == [sent, following]

    async def test_remembered_ids_are_bounded(self, tmp_path: Path, notes: Notes) -> None:
        bus = self.limited(tmp_path, notes, deduplication_ids_max=10)
        handling = await started(bus, Handling(notes))
        sent = [message("a", i) for i in range(200)]
        await bus.publish(sent)
        await handling.until_handled(sent)
        assert handling.numbers("a") == list(range(200))
        await bus.close()
