"""Pauses, batches and limits of the delivery core, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tests.conformance.bus.base import message
from tests.support.simulation_loop import SimulationLoop

from tocsin.messaging.delivery import DeadLetter, Subscription
from tocsin.messaging.limits import BusLimits
from tocsin.model.errors import StoreUnavailable
from tocsin.ports.bus import BusEvent, Delivery, DeliveryFailed, Envelope

LIMITS = BusLimits(deliveries_max=8, backoff_initial_us=100_000, backoff_max_us=1_000_000, pause_max_us=400_000)


class World:
    """One subscription whose handler records when it received what."""

    def __init__(self, limits: BusLimits = LIMITS, batch_max: int = 64) -> None:
        self.loop = SimulationLoop()
        self.calls: list[tuple[float, list[Envelope]]] = []
        self.events: list[BusEvent] = []
        self.settled: list[object] = []
        self.dead_lettered: list[tuple[DeadLetter, list[object]]] = []
        self.act: Callable[[Sequence[Delivery]], None] = lambda deliveries: None
        self.subscription: Subscription[object] = Subscription(
            "one",
            self._handle,
            batch_max,
            limits,
            self.events.append,
            settled=self.settled.append,
            dead_lettered=lambda letter, tokens: self.dead_lettered.append((letter, list(tokens))),
        )

    async def _handle(self, deliveries: Sequence[Delivery]) -> None:
        self.calls.append((round(self.loop.time(), 6), [delivery.envelope for delivery in deliveries]))
        self.act(deliveries)

    def run(self, until_s: float, *offered: Envelope) -> None:
        """Starts the subscription, offers the messages, and lets time pass."""

        async def main() -> None:
            self.subscription.start()
            for envelope in offered:
                self.subscription.offer(envelope, envelope.id)
            await sleep(self.loop, until_s)
            await self.subscription.close()

        self.loop.run_until_complete(main())

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.calls]

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for _, batch in self.calls]


async def sleep(loop: SimulationLoop, seconds: float) -> None:
    future = loop.create_future()
    loop.call_later(seconds, future.set_result, None)
    await future


def raising(error: Exception) -> Callable[[Sequence[Delivery]], None]:
    def act(deliveries: Sequence[Delivery]) -> None:
        raise error

    return act


def test_pauses_double_up_to_the_longest_and_end_with_a_dead_letter() -> None:
    world = World()
    world.act = raising(ValueError("never"))
    sent = message("a")
    world.run(100, sent)
    assert world.times == [0, 0.1, 0.3, 0.7, 1.5, 2.5, 3.5, 4.5]
    assert [(letter.attempts, letter.error, tokens) for letter, tokens in world.dead_lettered] == [
        (8, "ValueError: never", [sent.id])
    ]
    assert world.settled == []


def test_transient_failures_are_retried_without_limit() -> None:
    world = World()
    world.act = raising(StoreUnavailable("away"))
    world.run(50, message("a"))
    assert world.times[:5] == [0, 0.1, 0.3, 0.7, 1.5]
    assert world.times[-1] > 48
    assert world.dead_lettered == []


def test_messages_of_a_failed_batch_are_delivered_again_alone_at_once() -> None:
    world = World()

    def act(deliveries: Sequence[Delivery]) -> None:
        if len(deliveries) > 1:
            raise ValueError("one of these")

    world.act = act
    sent = [message(f"a{i}") for i in range(5)]
    world.run(1, *sent)
    assert world.calls == [(0, sent), *((0, [each]) for each in sent)]
    assert world.settled == [each.id for each in sent]
    # One report for the batch, not one for each message.
    assert [event.error for event in world.events if isinstance(event, DeliveryFailed)] == [
        "ValueError: one of these (a batch of 5)"
    ]


def test_batches_shrink_while_everything_fails_and_grow_again_afterwards() -> None:
    world = World()

    def act(deliveries: Sequence[Delivery]) -> None:
        if world.loop.time() < 10:
            raise StoreUnavailable("away")

    world.act = act
    sent = [message(f"a{i}") for i in range(1_000)]
    world.run(60, *sent)
    during = [len(batch) for at, batch in world.calls if at < 10]
    after = [len(batch) for at, batch in world.calls if at >= 10]
    assert during[:7] == [64, 32, 16, 8, 4, 2, 1]
    # Pauses of 0.4 s between attempts, instead of a thousand messages retried without pause.
    assert len(during) < 50
    assert max(after) == 64
    assert sum(after) == 1_000
    assert len(after) < 80
    assert len(world.settled) == 1_000


def test_one_bad_message_does_not_pause_the_subscription() -> None:
    world = World()

    def act(deliveries: Sequence[Delivery]) -> None:
        if any(delivery.envelope.aggregate_id == "bad" for delivery in deliveries):
            raise StoreUnavailable("this one")

    world.act = act
    bad, later = message("bad"), [message(f"a{i}") for i in range(10)]

    async def main() -> None:
        world.subscription.start()
        world.subscription.offer(bad, bad.id)
        for each in later:
            await sleep(world.loop, 5)
            world.subscription.offer(each, each.id)
        await sleep(world.loop, 1)
        await world.subscription.close()

    world.loop.run_until_complete(main())
    handled = [(at, batch[0]) for at, batch in world.calls if batch[0] is not bad]
    assert handled == [(5.0 * (i + 1), each) for i, each in enumerate(later)]
    assert all(len(batch) == 1 for _, batch in world.calls if bad in batch)


def test_duplicates_are_settled_with_the_message_being_handled() -> None:
    world = World(replace(LIMITS, deliveries_max=2))
    world.act = raising(ValueError("never"))
    sent = message("a")

    async def main() -> None:
        world.subscription.start()
        world.subscription.offer(sent, 1)
        await sleep(world.loop, 0.05)
        world.subscription.offer(sent, 2)
        await sleep(world.loop, 1)
        world.subscription.offer(sent, 3)
        await world.subscription.close()

    world.loop.run_until_complete(main())
    assert [tokens for _, tokens in world.dead_lettered] == [[1, 2]]
    # It counts as handled.
    assert world.settled == [3]
    assert world.subscription.unsettled == 0


@pytest.mark.parametrize("ids_max", [2, 100])
def test_the_latest_ids_are_remembered(ids_max: int) -> None:
    world = World(replace(LIMITS, deduplication_ids_max=ids_max))
    sent = [message("a", i) for i in range(1_000)]

    def again() -> None:
        for envelope in sent[-ids_max // 2 :]:
            world.subscription.offer(envelope, envelope.id)

    async def main() -> None:
        world.subscription.start()
        for envelope in sent:
            world.subscription.offer(envelope, envelope.id)
        await sleep(world.loop, 1)
        again()
        await sleep(world.loop, 1)
        await world.subscription.close()

    world.loop.run_until_complete(main())
    assert sum(world.sizes) == 1_000
    assert len(world.settled) == 1_000 + ids_max // 2


@pytest.mark.parametrize(("later_s", "dropped"), [(9.0, True), (25.0, False)])
def test_ids_are_remembered_for_a_time(later_s: float, dropped: bool) -> None:
    """A quiet agent does not keep the ids of days."""
    world = World(replace(LIMITS, deduplication_us=10_000_000))
    early = message("a", 0)

    async def main() -> None:
        world.subscription.start()
        world.subscription.offer(early, early.id)
        for number in range(1, 100):
            world.loop.call_later(
                number / 4, lambda each: world.subscription.offer(each, each.id), message("b", number)
            )
        await sleep(world.loop, later_s)
        world.subscription.offer(early, early.id)
        await sleep(world.loop, 0.1)
        await world.subscription.close()

    world.loop.run_until_complete(main())
    handled = [envelope for _, batch in world.calls for envelope in batch]
    assert handled.count(early) == (1 if dropped else 2)


def test_after_a_drain_nothing_is_retried() -> None:
    world = World()
    world.act = raising(ValueError("no"))

    async def main() -> None:
        world.subscription.start()
        world.subscription.offer(message("a"), 1)
        await sleep(world.loop, 0.05)
        await world.subscription.drain()
        await sleep(world.loop, 10)
        await world.subscription.close()

    world.loop.run_until_complete(main())
    assert world.times == [0]
