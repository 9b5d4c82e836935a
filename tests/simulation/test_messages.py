"""The slots of messages to NATS subjects, beside those of callbacks (ADR 130)."""

from __future__ import annotations

import asyncio

from tests.simulation.crowd import Crowd
from tocsin.model.ids import timer_uuid
from tocsin.ports.forward import Obstacle
from tocsin.ports.observer import AttemptFinished, TimersResumed, TimerSuspended


def test_callbacks_are_on_time_beside_subjects_that_acknowledge_nothing() -> None:
    crowd = Crowd(shards=4)
    for i in range(9_000):
        crowd.keep(f"h{i}", f"nats://hung{i % 3}", -60 + i / 1_000, shard=i % 4)
    for i in range(300):
        crowd.keep(f"f{i}", "fine", 2 + i / 100, shard=i % 4)
        crowd.keep(f"m{i}", "nats://fine", 2 + i / 100, shard=i % 4)
    crowd.run(20)
    ended = {event.timer_id for event in crowd.events if isinstance(event, AttemptFinished)}
    # All others have been invoked, on time, and have answered while none of these had.
    for host in ("fine", "nats://fine"):
        assert max(crowd.late_s(host).values()) < 0.5
    assert ended == {f"{kind}{i}" for kind in "fm" for i in range(300)}
    hung = [call.invocation.url for call in crowd.receivers.calls if "hung" in call.invocation.url]
    assert {url: hung.count(url) for url in set(hung)} == {f"nats://hung{i}": 820 for i in range(3)}


def test_messages_are_on_time_beside_callbacks_that_hang() -> None:
    crowd = Crowd(callbacks_in_flight_max=5)
    for i in range(5):
        crowd.keep(f"h{i}", f"hung{i}", 2)
    crowd.keep("m", "nats://fine", 3)
    crowd.run(5)
    assert crowd.late_s("nats://fine")["m"] < 0.1


def test_a_message_that_waits_for_its_namespace_goes_when_one_to_another_subject_ends() -> None:
    # Eight messages, seven of one namespace.
    crowd = Crowd(callbacks_in_flight_max=2)
    for i in range(7):
        crowd.keep(f"h{i}", f"nats://hung{i}", 2, timeout_s=5 + i)
    crowd.keep("m", "nats://fine", 3)
    found: list[Obstacle] = []

    async def look() -> None:
        await asyncio.sleep(3)
        timer = crowd.supervisor.shards[0].window.rows[timer_uuid("a", "m")].timer  # type: ignore[union-attr]
        found.append(crowd.supervisor.dispatcher.obstacle(timer)[0])

    crowd.run(7.5, look)
    assert found == [Obstacle.NAMESPACE]
    # The first of the others has ended, and no other.
    assert [event.timer_id for event in crowd.events if isinstance(event, AttemptFinished)] == ["h0", "m"]


def test_suspended_callbacks_resume_while_messages_of_their_namespace_wait_for_slots() -> None:
    crowd = Crowd(callbacks_in_flight_max=5, destination_in_flight_max=1, window_timers_max=40)
    for i in range(17):
        crowd.keep(f"m{i}", f"nats://hung{i // 4}", 2)
    for i in range(4):
        crowd.keep(f"h{i}", f"hung{i}", 2, timeout_s=5)
    for i in range(30):
        crowd.keep(f"f{i}", "fine", 3 + i / 1_000)
    found: list[int] = []

    async def look() -> None:
        await asyncio.sleep(4)
        found.append(list(crowd.suspended().values()).count("namespace:a"))

    crowd.run(25, look)
    assert found[0] > 0
    assert crowd.late_s().keys() == {f"f{i}" for i in range(30)}
    # Meanwhile no message has ended.
    assert not [event for event in crowd.events if isinstance(event, AttemptFinished) and event.timer_id[0] == "m"]


def test_suspended_messages_stay_suspended_while_those_of_their_namespace_wait_for_slots_in_full_memory() -> None:
    # Twenty messages, sixteen of one namespace; ten wait in memory.
    crowd = Crowd(callbacks_in_flight_max=5, destination_in_flight_max=1, window_timers_max=40)
    for i in range(16):
        crowd.keep(f"h{i}", f"nats://hung{i // 4}", 2, timeout_s=28)
    for i in range(60):
        crowd.keep(f"m{i}", f"nats://other{i % 30}", 3 + i / 1_000)
    found: list[int] = []

    async def look() -> None:
        await asyncio.sleep(24)
        found.append(len([event for event in crowd.events if isinstance(event, TimerSuspended)]))
        found.append(len([event for event in crowd.events if isinstance(event, TimersResumed)]))

    crowd.run(60, look)
    assert found == [50, 0]
    ended = [
        event.timer_id for event in crowd.events if isinstance(event, AttemptFinished) and event.timer_id[0] == "m"
    ]
    assert sorted(ended) == sorted(f"m{i}" for i in range(60))
