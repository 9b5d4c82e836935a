"""Breakers and pauses of destinations: one real node in virtual time, beside receivers that fail."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from tests.simulation.crowd import Crowd
from tocsin.administration import delete_destination_pause, put_destination_pause
from tocsin.model.answer import NoResponse, Response
from tocsin.model.destination import DestinationPause
from tocsin.model.retry import RetryPolicy
from tocsin.ports.destinations import DestinationQuestion, DestinationReport
from tocsin.ports.forward import Obstacle
from tocsin.ports.observer import AttemptFinished, TimerExpired
from tocsin.timers.engine.breaker import ATTEMPTS_MIN, SUCCESSES_TO_CLOSE
from tocsin.timers.engine.destination_events import BreakerClosed, BreakerOpened

FAILING = Response(500)


def _calls_s(crowd: Crowd, host: str = "down") -> list[float]:
    """When each call to the host was made, in seconds since the start."""
    start = crowd.now_us() - crowd.loop.now_us()
    calls = [call for call in crowd.receivers.calls if call.invocation.url == f"http://{host}/"]
    return [(call.at_us - start) / 1e6 for call in calls]


def _events(crowd: Crowd, kind: type) -> list[object]:
    return [event for event in crowd.events if isinstance(event, kind)]


def test_timers_wait_without_attempts_while_nearly_all_fail_and_fire_once_probes_succeed() -> None:
    crowd = Crowd(shards=2)
    crowd.retry = RetryPolicy()
    crowd.receivers.answers["down"] = (FAILING, 35.0)
    for i in range(400):
        crowd.keep(f"d{i}", "down", 2 + i / 20, shard=i % 2)
    for i in range(40):
        crowd.keep(f"f{i}", "fine", 3 + i, shard=i % 2)
    crowd.run(100)
    calls = _calls_s(crowd)
    (opened,) = _events(crowd, BreakerOpened)
    assert isinstance(opened, BreakerOpened)
    assert (opened.failures, opened.attempts, opened.error) == (ATTEMPTS_MIN, ATTEMPTS_MIN, "HTTP 500")
    opened_s = sorted(calls)[ATTEMPTS_MIN - 1]
    assert max(event.lag_us or 0 for event in crowd.events if isinstance(event, AttemptFinished)) < 1_000_000
    probes = [at for at in calls if opened_s < at < 35]
    # Ten seconds, then twenty.
    assert [round(at - opened_s) for at in probes] == [10, 30]
    (closed,) = _events(crowd, BreakerClosed)
    assert isinstance(closed, BreakerClosed)
    assert closed.by == "probes"
    ended = [event for event in crowd.events if isinstance(event, AttemptFinished) and event.outcome == "done"]
    assert len(ended) == 440
    assert max(call.invocation.attempt for call in crowd.receivers.calls) <= 2
    assert sum(call.invocation.attempt == 2 for call in crowd.receivers.calls) == ATTEMPTS_MIN + len(probes)
    assert max(crowd.late_s("fine").values()) < 0.1


def test_probes_are_ever_rarer_and_one_at_a_time() -> None:
    crowd = Crowd()
    for i in range(300):
        crowd.keep(f"h{i}", "hung", -60, timeout_s=1.0)
    crowd.run(900)
    calls = sorted(_calls_s(crowd, "hung"))
    late = [at for at in calls if at > 5]
    # Each probe takes a second to fail: 10, 20, 40, 80, 160 and 300 seconds after it.
    assert [round(b - a) for a, b in pairwise(late)] == [21, 41, 81, 161, 301]
    assert not _events(crowd, BreakerClosed)


def test_where_few_wait_a_probe_is_made_every_minute() -> None:
    crowd = Crowd()
    crowd.retry = RetryPolicy(max_interval_us=10_000_000)
    for i in range(ATTEMPTS_MIN - 5):
        crowd.keep(f"h{i}", "hung", -60, timeout_s=1.0)
    crowd.run(400)
    late = [at for at in sorted(_calls_s(crowd, "hung")) if at > 100]
    assert late
    assert max(b - a for a, b in pairwise(late)) < 62


def test_what_cannot_be_sent_proves_nothing_about_its_destination() -> None:
    crowd = Crowd()
    # As messages that are longer than the server accepts.
    crowd.receivers.answers["fine"] = (NoResponse("INVALID_REQUEST", "the message has 2000000 bytes", final=True), 5.0)
    limits = []

    async def note() -> None:
        await asyncio.sleep(4)
        (destination,) = crowd.supervisor.dispatcher.admission.destinations.values()
        most = destination.slots.destination_max
        limits.extend([destination.limit == most, *(path.limit == most for path in destination.paths.values())])

    for i in range(2 * ATTEMPTS_MIN):
        crowd.keep(f"f{i}", "fine", 2)
    crowd.keep("g", "fine", 6)
    crowd.run(20, note)
    assert not _events(crowd, BreakerOpened)
    assert limits == [True, True]
    assert crowd.late_s("fine")["g"] < 0.1


def test_a_timer_expires_while_the_breaker_is_open() -> None:
    crowd = Crowd()
    for i in range(100):
        crowd.keep(f"d{i}", "down", 2)
    crowd.receivers.answers["down"] = (FAILING, 1_000.0)
    crowd.keep("brief", "down", 5, expire_after_s=3)
    crowd.run(40)
    assert "brief" not in {call.invocation.timer_id for call in crowd.receivers.calls}
    (expired,) = _events(crowd, TimerExpired)
    assert isinstance(expired, TimerExpired)
    assert (expired.timer_id, expired.status) == ("brief", "expired")


def test_a_breaker_closes_by_a_manual_probe_and_by_a_success_elsewhere() -> None:
    crowd = Crowd()
    crowd.retry = RetryPolicy()
    for host in ("one", "two"):
        crowd.receivers.answers[host] = (FAILING, 3.0)
        for i in range(60):
            crowd.keep(f"{host}{i}", host, 2)
    seen = []

    async def close() -> None:
        admission = crowd.supervisor.dispatcher.admission
        # Most retries of what failed at 2 s are due by now.
        await asyncio.sleep(8)
        seen.append([each.name for each in admission.open_breakers()])
        assert admission.probe("one")
        assert not admission.probe("three")
        admission.close_breaker("two", "node")
        await asyncio.sleep(1)
        seen.append([each.name for each in admission.open_breakers()])

    crowd.run(60, close)
    assert seen == [["one", "two"], []]
    assert {event.destination: event.by for event in crowd.events if isinstance(event, BreakerClosed)} == {
        "one": "probes",
        "two": "node",
    }
    done = [event for event in crowd.events if isinstance(event, AttemptFinished) and event.outcome == "done"]
    assert len(done) == 120


def test_a_paused_destination_gets_nothing_until_it_is_resumed() -> None:
    crowd = Crowd(window_timers_max=200)
    for i in range(300):
        crowd.keep(f"p{i}", "paused", 2 + i / 100)
        crowd.keep(f"f{i}", "fine", 2 + i / 100)
    crowd.keep("suspended", "paused", -90, suspended="destination:paused")
    crowd.keep("brief", "paused", 4, expire_after_s=5)
    obstacles = []

    async def pause() -> None:
        assert await put_destination_pause(crowd.store, DestinationPause("paused", 1))

    async def resume() -> None:
        await asyncio.sleep(19)
        timer = crowd.row("p0", "paused", 2).timer
        obstacles.append(crowd.supervisor.dispatcher.obstacle(timer))
        assert not crowd.late_s("paused")
        # What an operator asked for is not late.
        assert crowd.supervisor.overdue_us() == 0
        await delete_destination_pause(crowd.store, "paused")

    crowd.run(40, resume, before=pause)
    assert obstacles == [(Obstacle.PAUSED_DESTINATION, "paused")]
    assert max(crowd.late_s("fine").values()) < 2
    assert crowd.late_s("paused").keys() == {f"p{i}" for i in range(300)} | {"suspended"}
    assert max(_calls_s(crowd, "paused")) < 35
    assert [event.timer_id for event in crowd.events if isinstance(event, TimerExpired)] == ["brief"]


def test_a_host_with_a_dot_at_its_end_is_the_same_destination() -> None:
    crowd = Crowd()
    crowd.keep("p", "paused:80", 2)
    crowd.keep("q", "paused.:80", 2)
    obstacles = []

    async def pause() -> None:
        assert await put_destination_pause(crowd.store, DestinationPause("paused:80", 1))

    async def look() -> None:
        await asyncio.sleep(5)
        dispatcher = crowd.supervisor.dispatcher
        obstacles.append(dispatcher.obstacle(crowd.row("q", "paused.:80", 2).timer))
        assert list(dispatcher.admission.destinations) == ["paused:80"]

    crowd.run(10, look, before=pause)
    assert obstacles == [(Obstacle.PAUSED_DESTINATION, "paused:80")]
    assert not crowd.receivers.calls


def test_a_pause_begins_and_ends_while_requests_are_in_flight() -> None:
    crowd = Crowd()
    crowd.receivers.takes_s["slow"] = 5.0
    for i in range(100):
        crowd.keep(f"s{i}", "slow", 2 + i / 10)

    async def pause() -> None:
        await asyncio.sleep(4)
        await put_destination_pause(crowd.store, DestinationPause("slow", 1))
        await asyncio.sleep(20)
        await delete_destination_pause(crowd.store, "slow")

    crowd.run(60, pause)
    calls = _calls_s(crowd, "slow")
    assert len(calls) == 100
    assert not [at for at in calls if 7.1 < at < 25]


def test_probes_take_turns_among_waiting_timers() -> None:
    crowd = Crowd()
    crowd.retry = RetryPolicy()
    crowd.receivers.answers["down"] = (FAILING, 11.0)
    for i in range(100):
        crowd.keep(f"d{i}", "down", 2, timeout_s=5.0)
    crowd.receivers.takes_s["down"] = 1.0
    most = []

    async def watch() -> None:
        admission = crowd.supervisor.dispatcher.admission
        while not _events(crowd, BreakerClosed):
            if admission.open_breakers() and crowd.loop.time() > 12:
                most.append(admission.in_flight)
            await asyncio.sleep(0.1)

    crowd.run(40, watch)
    assert max(most) == 1
    # One failed at 12 s at the latest; then three, one after another.
    assert len(most) >= 10 * (SUCCESSES_TO_CLOSE - 1)


def test_a_success_on_another_node_closes_a_breaker_only_if_it_is_later_than_the_last_failure() -> None:
    crowd = Crowd()
    crowd.receivers.answers["down"] = (FAILING, 1_000.0)
    for i in range(60):
        crowd.keep(f"d{i}", "down", 2)
    asked: list[DestinationQuestion] = []
    ago_us = [20_000_000]
    seen = []

    class Others:
        """Another node, whose attempts succeed."""

        async def destinations(self, question: DestinationQuestion) -> dict[bytes, list[DestinationReport]]:
            asked.append(question)
            return {b"o": [DestinationReport(name, 0, 256, 0, succeeded_us_ago=ago_us[0]) for name in question.names]}

    async def watch() -> None:
        destinations, admission = crowd.supervisor.destinations, crowd.supervisor.dispatcher.admission
        destinations.peers = Others()
        await asyncio.sleep(7)
        (report,) = destinations.answer(DestinationQuestion())
        seen.append((report.name, report.breaker, report.failures, report.attempts, report.last_error))
        assert 0 < report.wait_us <= 10_000_000
        assert destinations.answer(DestinationQuestion(["up"])) == []
        assert [each.name for each in admission.open_breakers()] == ["down"]
        ((name, open_us),) = admission.longest_open(20)
        assert name == "down"
        assert 0 < open_us < 7_000_000
        ago_us[0] = 100_000
        await asyncio.sleep(5)
        seen.append([each.name for each in admission.open_breakers()])

    crowd.run(14, watch)
    assert seen == [("down", "open", 60, 60, "HTTP 500"), []]
    assert asked[0] == DestinationQuestion(["down"])
    assert [event.by for event in crowd.events if isinstance(event, BreakerClosed)] == ["node"]
