"""Lateness of healthy timers beside receivers that hang: scenarios in virtual time, so that limits in seconds are exact."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.simulation.crowd import Crowd
from tocsin.ports.forward import REFUSED
from tocsin.ports.observer import AttemptFinished, TimerSuspended
from tocsin.ports.store import FireKey, Loaded
from tocsin.timers.engine.admission import IDLE_DESTINATION_US, IDLE_DESTINATIONS_MAX
from tocsin.timers.engine.limits import EngineLimits

#: A node that has just started suspends timers that can't fire before it reaches those that can.
LATE_S_MAX = 3.0


@pytest.mark.parametrize(
    ("shards", "hung", "size"), [(1, 2_500, 10_000), (4, 6_000, 2_000)], ids=["one shard", "four shards"]
)
def test_healthy_timers_are_on_time_beside_a_hung_host(shards: int, hung: int, size: int) -> None:
    crowd = Crowd(shards=16)
    for i in range(hung):
        crowd.keep(f"h{i}", "hung", -60 + i / 1_000, size=size, shard=i % shards)
    for i in range(20):
        crowd.keep(f"f{i}", "fine", -30 + i, shard=i % shards)

    async def create() -> None:
        crowd.create("fresh", "fine", crowd.loop.time() + 2)

    crowd.run(20, create)
    late = crowd.late_s()
    assert len(late) == 21
    assert max(late.values()) < LATE_S_MAX


@pytest.mark.parametrize("size", [2, 10_000], ids=["small", "large"])
def test_healthy_path_is_on_time_beside_a_hung_path_of_the_same_host(size: int) -> None:
    crowd = Crowd(shards=4)
    for i in range(2_500):
        crowd.keep(f"h{i}", "host/hung/a", -60 + i / 1_000, size=size, shard=i % 4)
    for i in range(6_000):
        crowd.keep(f"f{i}", "host/fine/b", 2 + i / 100, shard=i % 4)
    limits: list[tuple[int, int]] = []
    in_flight: list[int] = []

    async def count() -> None:
        for _ in range(620):
            await asyncio.sleep(0.1)
            (host,) = crowd.supervisor.dispatcher.admission.destinations.values()
            limits.append((host.limit, host.paths["/hung"].limit))
            in_flight.append(host.paths["/hung"].in_flight)

    crowd.run(65, count)
    late = crowd.late_s("host/fine/b")
    assert len(late) == 6_000
    assert max(late.values()) < 0.1
    assert set(limits) == {(256, 256), (256, 4)}
    # Four times what is free.
    assert max(in_flight) in (204, 205)


def test_large_timers_are_on_time_behind_a_small_one_that_is_deferred() -> None:
    crowd = Crowd(window_bytes_max=20_000, destination_in_flight_max=1, breaker=False)
    for i in range(2):
        # The second one is deferred.
        crowd.keep(f"h{i}", "hung", -60 + i)
    for i in range(10):
        crowd.keep(f"f{i}", "fine", 2 + i, size=16_000)
    crowd.run(20)
    late = crowd.late_s()
    assert len(late) == 10
    assert max(late.values()) < 0.5


def test_a_host_none_of_whose_paths_answers_leaves_slots_to_others() -> None:
    crowd = Crowd(breaker=False)
    for i in range(600):
        crowd.keep(f"h{i}", f"host/hung{i % 5}/a", -60 + i / 1_000, timeout_s=2.0)
    in_flight: list[int] = []

    async def count() -> None:
        in_flight.append(crowd.supervisor.dispatcher.in_flight)
        await asyncio.sleep(15)
        in_flight.append(crowd.supervisor.dispatcher.in_flight)

    crowd.run(17, count)
    # At first equal parts of nearly all slots; then as many as four silent paths of four slots each.
    assert in_flight == [244, 16]


def test_resumed_timers_are_not_suspended_repeatedly() -> None:
    crowd = Crowd(shards=1, window_timers_max=200, destination_in_flight_max=20)
    for i in range(500):
        crowd.keep(f"h{i}", f"hung{i % 2}", -60 + i / 1_000, timeout_s=5.0)
    for i in range(300):
        # Suspended long ago, its reason gone, and after all those that can't fire.
        crowd.keep(f"f{i}", "fine", -30 + i / 1_000, suspended="destination:fine" if i % 2 else "namespace:a")

    async def heal() -> None:
        await asyncio.sleep(39)
        assert len(crowd.late_s()) == 300
        crowd.receivers.healed = True

    crowd.run(75, heal)
    called = {call.invocation.timer_id for call in crowd.receivers.calls}
    assert len(called) == 800
    suspensions = Counter(event.uuid for event in crowd.events if isinstance(event, TimerSuspended))
    # Without the gap between suspending and resuming it would be once a second.
    assert max(suspensions.values()) <= 6


def test_gradual_resumption_does_not_read_all_suspended_rows_each_time() -> None:
    crowd = Crowd(breaker=False, window_timers_max=2_000, destination_in_flight_max=10)
    for i in range(30_000):
        crowd.keep(f"p{i}", "fine", -90 + i / 1_000, namespace="b", suspended="namespace:b")
    for i in range(3_000):
        crowd.keep(f"h{i}", "hung", -30 + i / 1_000, timeout_s=0.2)
    crowd.paused = {"b"}
    reads = 0
    load_suspended = crowd.store.load_suspended

    async def counted(shard_id: int, after: FireKey, limit: int) -> Loaded:
        nonlocal reads
        reads += 1
        return await load_suspended(shard_id, after, limit)

    crowd.store.load_suspended = counted  # type: ignore[method-assign]
    crowd.run(60)
    assert len(crowd.late_s("hung")) > 1_000
    assert not crowd.late_s("fine")
    assert reads < 6 * 31


def test_a_namespace_with_hung_receivers_leaves_slots_to_others() -> None:
    crowd = Crowd(shards=16)
    for i in range(6_000):
        crowd.keep(f"h{i}", f"hung{i % 6}", -60 + i / 1_000, shard=i % 16)
    for i in range(40):
        crowd.keep(f"f{i}", "fine", 2 + i / 4, namespace="b", shard=i % 16)
    crowd.run(20)
    late = crowd.late_s()
    assert len(late) == 40
    assert max(late.values()) < 0.1


def test_one_namespace_alone_uses_nearly_all_slots() -> None:
    crowd = Crowd(shards=4, callbacks_in_flight_max=100)
    for i in range(200):
        crowd.keep(f"h{i}", f"hung{i % 50}", -60, shard=i % 4)

    async def count() -> None:
        assert crowd.supervisor.dispatcher.in_flight == 80

    crowd.run(2, count)


def test_unsent_attempt_is_repeated_soon_and_not_counted() -> None:
    crowd = Crowd()
    crowd.receivers.unsent["fine"] = 30
    for i in range(20):
        crowd.keep(f"f{i}", "fine", 2)
    crowd.run(10)
    late = crowd.late_s()
    assert len(late) == 20
    # 20, 40, 80 … ms after one another, at most a second.
    assert 0 < max(late.values()) < 3
    assert {call.invocation.attempt for call in crowd.receivers.calls} == {1}
    assert all(call.invocation.fired_at == call.at_us for call in crowd.receivers.calls)
    assert crowd.receivers.refused == 30
    assert {event.outcome for event in crowd.events if isinstance(event, AttemptFinished)} == {"done"}
    for versions in crowd.store._shards[0].history.values():
        (row,) = versions.values()
        assert row.status == "completed"
    assert not [event for event in crowd.events if isinstance(event, TimerSuspended)]


def test_destinations_that_do_not_answer_are_forgotten() -> None:
    crowd = Crowd(shards=1)
    for i in range(IDLE_DESTINATIONS_MAX + 500):
        crowd.keep(f"h{i}", f"hung{i}", -60 + i / 1_000, timeout_s=0.5)
    seen: list[int] = []

    async def count() -> None:
        await asyncio.sleep(30)
        seen.append(len(crowd.supervisor.dispatcher.admission.destinations))
        await asyncio.sleep(IDLE_DESTINATION_US / 1e6)
        seen.append(len(crowd.supervisor.dispatcher.admission.destinations))

    crowd.run(340, count)
    assert len(crowd.receivers.calls) == IDLE_DESTINATIONS_MAX + 500
    assert seen == [IDLE_DESTINATIONS_MAX, 0]


def test_timers_wait_for_their_credential_without_attempts_while_others_of_the_host_are_on_time() -> None:
    crowd = Crowd()
    crowd.receivers.unready = {"api"}
    for number in range(50):
        row = crowd.row(f"c{number}", "fine", 2)
        row.timer.credential = "api"
        row.timer.expire_after_us = 600_000_000 if number == 0 else None
        crowd.put(row)
        crowd.keep(f"f{number}", "fine", 2 + number / 10)
    found: list[int] = []

    async def look() -> None:
        await asyncio.sleep(30)
        found.append(len(crowd.suspended()))
        assert crowd.suspended()["c1"] == "credential:a/api@fine"
        # Each was tried once, and is not tried again before something has changed.
        assert crowd.receivers.refused == 50
        await asyncio.sleep(EngineLimits().refused_retry_interval_us / 1e6)
        # But now and then, so that it ends for which it is too late.
        found.append(len(crowd.suspended()))
        crowd.receivers.unready.clear()
        await asyncio.sleep(30)
        found.append(len(crowd.suspended()))

    crowd.run(1_100, look)
    assert found == [50, 49, 0]
    late = crowd.late_s()
    assert max(late[f"f{number}"] for number in range(50)) < 0.5
    assert {call.invocation.attempt for call in crowd.receivers.calls} == {1}
    assert len(crowd.receivers.calls) == 99 and "c0" not in late


def test_refused_timer_is_suspended_and_fires_after_a_claim_with_other_settings() -> None:
    crowd = Crowd()
    # As a former owner left it, which was not allowed to call the host.
    crowd.keep("former", "fine", -60, suspended=REFUSED)
    crowd.receivers.forbidden = {"private"}
    crowd.keep("p0", "private", 2)
    crowd.keep("p1", "private", 2, expire_after_s=600)
    crowd.keep("f0", "fine", 3)
    found: list[dict[str, str | None]] = []

    async def look() -> None:
        await asyncio.sleep(60)
        found.append(crowd.suspended())
        assert crowd.receivers.refused == 2
        await asyncio.sleep(EngineLimits().refused_retry_interval_us / 1e6)
        found.append(crowd.suspended())
        crowd.receivers.forbidden.clear()
        await asyncio.sleep(EngineLimits().refused_retry_interval_us / 1e6)
        found.append(crowd.suspended())

    crowd.run(2_000, look)
    assert crowd.late_s()["former"] < 65
    # The second one expires where it would have been tried again.
    assert found == [{"p0": REFUSED, "p1": REFUSED}, {"p0": REFUSED}, {}]
    assert crowd.receivers.refused == 3
    (call,) = [call for call in crowd.receivers.calls if call.invocation.timer_id == "p0"]
    assert call.invocation.attempt == 1
    assert {event.outcome for event in crowd.events if isinstance(event, AttemptFinished)} == {"done"}
    statuses = {row.timer_id: row.status for each in crowd.store._shards[0].history.values() for row in each.values()}
    assert statuses == {"former": "completed", "f0": "completed", "p0": "completed", "p1": "expired"}
