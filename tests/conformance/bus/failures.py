"""Conformance: failing handlers and kept deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from tests.conformance.bus.base import (
    LIMITS,
    TENANT,
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
from tocsin.model.errors import StoreUnavailable, Unavailable
from tocsin.ports.bus import Bus, Delivery, MessageDeadLettered


def raise_next(errors: Iterator[Exception]) -> None:
    """Raises the next of the errors, while there is one."""
    for error in errors:
        raise error


class FailureConformance(BusSuite):
    """Errors of a handler."""

    async def test_a_failed_message_is_delivered_again(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes, failing(ValueError("not yet"), lambda each: each.attempt < 3)))
        sent = message("a")
        await bus.publish([sent])
        await handling.until_handled([sent])
        assert handling.attempts[sent.id] == [1, 2, 3]
        assert [(event.attempt, event.error) for event in notes.failures] == [
            (1, "ValueError: not yet"),
            (2, "ValueError: not yet"),
        ]
        event = notes.failures[0]
        assert (event.subscriber, event.type, event.tenant_id) == ("one", "Happened", TENANT)
        assert (event.service_call_id, event.correlation_id) == ("a", sent.correlation_id)

    async def test_after_the_last_attempt_a_message_is_a_dead_letter_and_counts_as_handled(
        self, bus: Bus, notes: Notes
    ) -> None:
        bad, good = message("a", 1), message("a", 2)
        act = failing(ValueError("never"), lambda each: each.envelope.id == bad.id)
        handling = await started(bus, Handling(notes, act))
        await bus.publish([bad, good])
        await handling.until_handled([good])
        await until_waiting(bus, 0)
        tries = LIMITS.deliveries_max
        assert handling.attempts[bad.id] == list(range(1, tries + 1))
        assert notes.dead == [
            MessageDeadLettered("one", "Happened", TENANT, "a", bad.correlation_id, tries, "ValueError: never")
        ]

    async def test_a_dead_letter_of_one_subscription_does_not_affect_another(self, bus: Bus, notes: Notes) -> None:
        bus.subscribe("failing", ["Happened"], Handling(notes, failing(ValueError("never"))))
        fine = await started(bus, Handling(notes))
        sent = message("a")
        await bus.publish([sent])
        await notes.until(lambda: len(notes.dead) == 1)
        await fine.until_handled([sent])
        assert notes.dead[0].subscriber == "failing"

    async def test_one_bad_message_does_not_fail_others(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes, failing(ValueError("bad"), of("bad"))))
        sent = [message("bad" if i == 25 else f"a{i}") for i in range(50)]
        good = [each for each in sent if each.aggregate_id != "bad"]
        post(bus, *sent)
        await handling.until_handled(good)
        await notes.until(lambda: len(notes.dead) == 1)
        assert notes.dead[0].service_call_id == "bad"
        assert set(handling.times().values()) == {1}

    async def test_transient_failures_are_not_counted(self, bus: Bus, notes: Notes) -> None:
        failures = iter([StoreUnavailable("away"), Unavailable("busy")] * LIMITS.deliveries_max)
        handling = await started(bus, Handling(notes, lambda deliveries: raise_next(failures)))
        sent = message("a")
        await bus.publish([sent])
        await handling.until_handled([sent])
        assert notes.dead == []
        assert handling.attempts[sent.id][-1] == 2 * LIMITS.deliveries_max + 1

    async def test_all_messages_are_handled_after_a_transient_outage(self, bus: Bus, notes: Notes) -> None:
        failures = iter([StoreUnavailable("away")] * 12)
        handling = await started(bus, Handling(notes, lambda deliveries: raise_next(failures)))
        sent = [message(f"a{i % 50}", i // 50) for i in range(200)]
        post(bus, *sent)
        await handling.until_handled(sent)
        assert notes.dead == []
        assert set(handling.times().values()) == {1}
        assert all(handling.numbers(f"a{i}") == [0, 1, 2, 3] for i in range(50))

    async def test_a_message_with_transient_failures_does_not_block_others(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Handling(notes, failing(StoreUnavailable("because of this one"), of("bad"))))
        sent = [message("bad" if i == 25 else f"a{i}") for i in range(50)]
        post(bus, *sent)
        await handling.until_handled([each for each in sent if each.aggregate_id != "bad"])
        await until_waiting(bus, 1)

    async def test_cancellation_of_an_awaited_task_is_a_failure(self, bus: Bus, notes: Notes) -> None:
        act = failing(asyncio.CancelledError(), lambda each: each.attempt == 1)
        handling = await started(bus, Handling(notes, act))
        sent = message("a")
        await bus.publish([sent])
        await handling.until_handled([sent])
        assert handling.attempts[sent.id] == [1, 2]


class SettlingConformance(BusSuite):
    """`keep`, `ack` and `fail`."""

    async def test_a_kept_delivery_is_settled_later(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Keeping(notes))
        sent = [message(f"a{i}") for i in range(5)]
        post(bus, *sent)
        await handling.until_handled(sent)
        await until_waiting(bus, 5)
        for delivery in handling.kept:
            delivery.ack()
        await until_waiting(bus, 0)
        assert set(handling.times().values()) == {1}

    async def test_a_kept_delivery_that_fails_is_delivered_again(self, bus: Bus, notes: Notes) -> None:
        handling = await started(bus, Keeping(notes))
        sent = message("a")
        post(bus, sent)
        await notes.until(lambda: len(handling.kept) == 1)
        handling.kept[0].fail(ValueError("no"))
        await notes.until(lambda: len(handling.kept) == 2)
        assert handling.attempts[sent.id] == [1, 2]
        assert [event.error for event in notes.failures] == ["ValueError: no"]
        handling.kept[0].ack()
        handling.kept[0].fail(ValueError("again"))
        assert bus.waiting == 1
        handling.kept[1].ack()
        handling.kept[1].fail(ValueError("too late"))
        await until_waiting(bus, 0)

    async def test_kept_or_settled_deliveries_do_not_fail_with_the_batch(self, bus: Bus, notes: Notes) -> None:
        kept: list[Delivery] = []

        def act(deliveries: Sequence[Delivery]) -> None:
            if len(deliveries) < 3:
                return
            deliveries[0].keep()
            kept.append(deliveries[0])
            deliveries[1].ack()
            raise ValueError("the third")

        handling = await started(bus, Handling(notes, act))
        handling.gate.clear()
        first = message("first")
        post(bus, first)
        await notes.until(lambda: handling.running == 1)
        sent = [message(f"a{i}") for i in range(3)]
        await self.post_and_wait(bus, sent, 4)
        handling.gate.set()
        await handling.until_handled([sent[2]])
        await until_waiting(bus, 1)
        assert [handling.attempts[each.id] for each in sent] == [[1], [1], [1, 2]]
        kept[0].ack()
        await until_waiting(bus, 0)

    async def test_an_error_after_all_deliveries_are_settled_is_reported(self, bus: Bus, notes: Notes) -> None:
        def act(deliveries: Sequence[Delivery]) -> None:
            for delivery in deliveries:
                delivery.ack()
            raise ValueError("afterwards")

        await started(bus, Handling(notes, act))
        await bus.publish([message("a")])
        await notes.until(lambda: len(notes.failures) == 1)
        await until_waiting(bus, 0)

    @pytest.mark.parametrize("error", [ValueError("never"), Unavailable("later")])
    async def test_failing_one_delivery_of_a_batch_affects_only_that_one(
        self, bus: Bus, notes: Notes, error: Exception
    ) -> None:
        def act(deliveries: Sequence[Delivery]) -> None:
            for delivery in deliveries:
                if delivery.envelope.aggregate_id == "bad" and delivery.attempt < 3:
                    delivery.fail(error)

        handling = await started(bus, Handling(notes, act))
        bad, good = message("bad"), [message(f"a{i}") for i in range(10)]
        await bus.publish([bad, *good])
        await notes.until(lambda: handling.times()[bad.id] == 3)
        await handling.until_handled(good)
        await until_waiting(bus, 0)
        assert all(handling.attempts[each.id] == [1] for each in good)
        assert notes.dead == []
