"""Explanations of timers: each state, and where a timer is in its owner's memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.simulation.crowd import SECOND, Crowd
from tests.support.cases import each

from tocsin.model.explanation import TimerState, WaitsFor
from tocsin.model.flow import Flow, FlowRules
from tocsin.model.ids import timer_uuid
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Status, Timer
from tocsin.ports.forward import Obstacle, RowPlace, Whereabouts
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.explaining import Asked, explain
from tocsin.timers.listing import TimerView
from tocsin.timers.locating import pause_of, whereabouts
from tocsin.web.pages.presentation import TimelineEntry
from tocsin.web.pages.timers.detail import deferred_by_pause
from tocsin.web.pages.timers.gates import gates

NOW = 1_000 * SECOND
LATER, EARLIER = NOW + 60 * SECOND, NOW - 60 * SECOND
AT_LATER, AT_EARLIER = "1970-01-01T00:17:40Z", "1970-01-01T00:15:40Z"


def view_of(at: int | None = LATER, *, suspended: str | None = None, **fields: Any) -> TimerView:
    timer = Timer("a", "t", LATER if at is None else at, "http://h/", 0, 0)
    return TimerView(msgspec.structs.replace(timer, **fields), b"u" * 16, 3, at, suspended)


def known(
    place: RowPlace, obstacle: Obstacle = Obstacle.NONE, name: str = "", attempt: int = 0, until: int = 0
) -> Asked:
    return Asked("n1", Whereabouts(place, obstacle, name, attempt, until))


STORE, WINDOW = known(RowPlace.STORE), known(RowPlace.WINDOW)
RETRIED: dict[str, Any] = {"attempts": 2, "last_error": "HTTP_503", "execute_at": EARLIER}

CASES: dict[str, tuple[TimerView, Asked, TimerState, WaitsFor | None, int | None, str]] = {
    "in the store": (
        view_of(), STORE, TimerState.SCHEDULED, WaitsFor.INSTANT, LATER,
        f"The timer is in the store; n1 fires it at {AT_LATER}.",
    ),
    "in memory": (
        view_of(), WINDOW, TimerState.SCHEDULED, WaitsFor.INSTANT, LATER,
        f"The timer is in memory; n1 fires it at {AT_LATER}.",
    ),
    "retrying": (
        view_of(**RETRIED), WINDOW, TimerState.RETRYING, WaitsFor.INSTANT, LATER,
        f"Attempt 2 failed (HTTP_503). The next one begins at {AT_LATER}.",
    ),
    "expires later": (
        view_of(expire_after_us=60 * SECOND), WINDOW, TimerState.SCHEDULED, WaitsFor.INSTANT, LATER,
        "No attempt begins after 1970-01-01T00:18:40Z.",
    ),
    "no owner, not due": (
        view_of(), Asked(None), TimerState.SCHEDULED, WaitsFor.INSTANT, LATER,
        f"the next owner of its shard fires it at {AT_LATER}. At the moment, shard 3 has no owner.",
    ),
    "silent owner, not due": (
        view_of(), Asked("n1", None, "it is down"), TimerState.SCHEDULED, WaitsFor.INSTANT, LATER,
        "n1 could not be asked: it is down.",
    ),
    "paused node, not due": (
        view_of(), known(RowPlace.WINDOW, Obstacle.DISPATCH, "lease"), TimerState.SCHEDULED, WaitsFor.INSTANT, LATER,
        "At the moment, n1 fires nothing: the database has not confirmed the node's lease in time.",
    ),
    "handed over": (
        view_of(execute_at=EARLIER), WINDOW, TimerState.FIRING, WaitsFor.RESPONSE, LATER,
        f"An attempt was in flight when the timer's shard was handed over. Without its result, n1 fires it at {AT_LATER}.",
    ),
    "in flight": (
        view_of(EARLIER), known(RowPlace.IN_FLIGHT, attempt=2, until=LATER), TimerState.FIRING, WaitsFor.RESPONSE, LATER,
        f"Attempt 2 is in flight on n1; without a response it times out at {AT_LATER}.",
    ),
    "being written": (
        view_of(EARLIER), known(RowPlace.WRITING), TimerState.WRITING, WaitsFor.WRITE, None, "n1 is storing the result",
    ),
    "undecodable": (
        view_of(EARLIER, suspended="bad_record: no JSON"), STORE, TimerState.SUSPENDED, WaitsFor.CREATE, None,
        "its stored record can't be read (bad_record: no JSON). Create it again.",
    ),
    "refused": (
        view_of(EARLIER, suspended="egress"), STORE, TimerState.SUSPENDED, WaitsFor.EGRESS, None,
        f"The timer has been due since {AT_EARLIER} and is suspended, because its URL leads to an address",
    ),
    "without the key of a secret": (
        view_of(EARLIER, suspended="secret"), STORE, TimerState.SUSPENDED, WaitsFor.SECRET, None,
        f"The timer has been due since {AT_EARLIER} and is suspended, because one of its secrets",
    ),
    "without its credential": (
        view_of(EARLIER, suspended="credential:a/api@https://api.example.com:443"), STORE, TimerState.SUSPENDED,
        WaitsFor.CREDENTIAL, None, "waits for its credential api: it does not exist. Meanwhile no attempt is made",
    ),
    "next": (
        view_of(EARLIER), WINDOW, TimerState.WAITING, WaitsFor.NODE, None,
        f"The timer has been due since {AT_EARLIER}. n1 fires it next.",
    ),
    "loaded next": (
        view_of(EARLIER), STORE, TimerState.WAITING, WaitsFor.NODE, None, "n1 loads it from the store next.",
    ),
    "expired": (
        view_of(EARLIER, expire_after_us=SECOND), STORE, TimerState.WAITING, WaitsFor.NODE, None,
        "No attempt may begin any more, since 1970-01-01T00:15:41Z: the timer ends instead of being fired.",
    ),
    "full node": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.NODE), TimerState.WAITING, WaitsFor.NODE, None,
        "All slots of n1 are in use",
    ),
    "flow": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.FLOW, "vendor"), TimerState.WAITING, WaitsFor.FLOW, None,
        "It waits for its turn within the limits of its flow vendor.",
    ),
    "limits of the namespace": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.FLOW, ""), TimerState.WAITING, WaitsFor.FLOW, None,
        "It waits for its turn within the limits of its namespace a.",
    ),
    "paused flow": (
        view_of(EARLIER), known(RowPlace.STORE, Obstacle.PAUSED_FLOW, "vendor"), TimerState.WAITING, WaitsFor.FLOW, None,
        "Its flow vendor is paused; it fires when the flow is resumed.",
    ),
    "suspended for its flow": (
        view_of(EARLIER, suspended="flow:a/vendor"), STORE, TimerState.WAITING, WaitsFor.FLOW, None,
        "It waits in the store for its flow vendor; n1 takes it up when there is room.",
    ),
    "busy namespace": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.NAMESPACE), TimerState.WAITING, WaitsFor.NAMESPACE, None,
        "Its namespace a has its share of the slots of n1",
    ),
    "busy destination": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.DESTINATION, "http://h:80"), TimerState.WAITING,
        WaitsFor.DESTINATION, None, "http://h:80 has as many requests in flight as it may have",
    ),
    "open breaker": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.BREAKER, "http://h:80"), TimerState.WAITING,
        WaitsFor.DESTINATION, None, "n1 sends only single probes (its breaker is open)",
    ),
    "paused destination": (
        view_of(EARLIER, suspended="destination:http://h:80"),
        known(RowPlace.STORE, Obstacle.PAUSED_DESTINATION, "http://h:80"), TimerState.WAITING, WaitsFor.DESTINATION, None,
        "http://h:80 is paused",
    ),
    "not sent": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.UNSENT, "http://h:80"), TimerState.WAITING, WaitsFor.DESTINATION,
        None, "could not be sent from n1",
    ),
    "suspended for its destination": (
        view_of(EARLIER, suspended="destination:http://h:80"), STORE, TimerState.WAITING, WaitsFor.DESTINATION, None,
        "many timers for http://h:80 wait already",
    ),
    "suspended for its namespace": (
        view_of(EARLIER, suspended="namespace:a"), STORE, TimerState.WAITING, WaitsFor.NAMESPACE, None,
        "It waits in the store for its namespace a",
    ),
    "lease": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.DISPATCH, "lease"), TimerState.BLOCKED, WaitsFor.LEASE, None,
        "n1 fires nothing at the moment: the database has not confirmed the node's lease in time.",
    ),
    "clock": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.DISPATCH, "clock_jump"), TimerState.BLOCKED, WaitsFor.CLOCK, None,
        "the node's wall clock jumped",
    ),
    "results": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.DISPATCH, "unwritten_results"), TimerState.BLOCKED, WaitsFor.WRITE,
        None, "too many results of attempts wait to be written",
    ),
    "hand-over": (
        view_of(EARLIER), known(RowPlace.WINDOW, Obstacle.HAND_OVER), TimerState.BLOCKED, WaitsFor.OWNER, None,
        "n1 is handing over its shard 3",
    ),
    "no owner": (
        view_of(EARLIER), Asked(None), TimerState.BLOCKED, WaitsFor.OWNER, None, "Its shard 3 has no owner at the moment",
    ),
    "silent owner": (
        view_of(EARLIER), Asked("n1", None, "it did not answer in time"), TimerState.UNKNOWN, None, None,
        "could not be asked, so an attempt may be in flight: it did not answer in time.",
    ),
    "finished": (
        view_of(None, status=Status.EXPIRED, executed_at=EARLIER, expire_after_us=1), STORE, TimerState.FINISHED, None, None,
        f"The timer has finished: expired at {AT_EARLIER}. It stays visible for 3d after that.",
    ),
}  # fmt: skip


@each("name", CASES)
def test_each_state_has_its_sentence(name: str) -> None:
    view, asked, state, waits_for, next_at, sentence = CASES[name]
    found = explain(view, Namespace("a", 4, 0, 0), asked, NOW)
    assert (found.state, found.waits_for, found.next_at) == (state, waits_for, next_at)
    assert (found.shard_id, found.owner) == (3, asked.owner)
    assert sentence in found.sentence


@pytest.mark.parametrize(("at", "sentence"), [(LATER, f", and not before {AT_LATER}."), (EARLIER, "due since")])
def test_paused_namespace_is_named(at: int, sentence: str) -> None:
    paused = Namespace("a", 4, 0, 0, paused=True)
    found = explain(view_of(at, suspended="namespace:a"), paused, STORE, NOW)
    assert (found.state, found.waits_for) == (TimerState.PAUSED, WaitsFor.NAMESPACE)
    assert found.sentence.startswith("The namespace a is paused. The timer fires when the namespace is resumed")
    assert sentence in found.sentence
    # What is suspended for another reason waits for the namespace first.
    for reason in ("credential:a/api@https://api.example.com:443", "egress", "secret"):
        assert explain(view_of(at, suspended=reason), paused, STORE, NOW).state is TimerState.PAUSED
    deleted = explain(
        view_of(at, suspended="credential:a/api@http://h:80"), Namespace("a", 4, 0, 0, deleting="j1"), STORE, NOW
    )
    assert deleted.sentence.startswith("Job j1 deletes the namespace a")
    # An attempt that was in flight at the pause still ends.
    assert explain(view_of(EARLIER), paused, CASES["in flight"][1], NOW).state is TimerState.FIRING


@pytest.mark.parametrize(
    ("obstacle", "waits_for", "what"),
    [
        (Obstacle.PAUSED_DESTINATION, WaitsFor.DESTINATION, "destination http://h:80"),
        (Obstacle.PAUSED_FLOW, WaitsFor.FLOW, "flow vendor"),
    ],
)
def test_what_is_paused_is_named_before_the_timer_is_due(obstacle: Obstacle, waits_for: WaitsFor, what: str) -> None:
    pause, begins = (obstacle, what.partition(" ")[2]), f"when its {what}, which is paused, is resumed, and not before"
    for view, asked, state, sentence in (
        (view_of(), WINDOW, TimerState.SCHEDULED, f"The timer is in memory; n1 fires it {begins} {AT_LATER}."),
        (view_of(), STORE, TimerState.SCHEDULED, f"The timer is in the store; n1 fires it {begins} {AT_LATER}."),
        (view_of(**RETRIED), WINDOW, TimerState.RETRYING, f"(HTTP_503). The next one begins {begins} {AT_LATER}."),
    ):
        found = explain(view, Namespace("a", 4, 0, 0), asked, NOW, pause=pause)
        assert (found.state, found.waits_for, found.next_at) == (state, waits_for, LATER)
        assert found.sentence.endswith(sentence)
        # The page does not promise the instant either.
        ahead = TimelineEntry(LATER, "Fires", "firing", ahead=True)
        (shown,) = deferred_by_pause([ahead], Namespace("a", 4, 0, 0), found, NOW)
        assert (shown.title, shown.note) == ("Due", f"Fires when its {waits_for} is resumed, at the earliest then.")
        assert gates(view, found, 3, NOW) == []


def test_due_timers_have_the_attempt_and_since_when() -> None:
    def since(view: TimerView, asked: Asked) -> tuple[int | None, int | None]:
        found = explain(view, Namespace("a", 4, 0, 0), asked, NOW)
        return found.attempt, found.since

    in_flight = Asked("n1", Whereabouts(RowPlace.IN_FLIGHT, attempt=2, until=LATER, since=NOW - 5))
    assert since(view_of(EARLIER), in_flight) == (2, NOW - 5)
    assert since(view_of(EARLIER), WINDOW) == (None, EARLIER)
    assert since(view_of(EARLIER), Asked("n1", None, "silent", NOW - 7)) == (None, NOW - 7)
    assert since(view_of(LATER), WINDOW) == since(view_of(None, status=Status.FAILED), WINDOW) == (None, None)
    # Handed over while its attempt was in flight: what the former owner knew is not known here.
    assert since(view_of(LATER, execute_at=EARLIER), WINDOW) == (None, None)


def test_every_state_is_tried() -> None:
    assert {case[2] for case in CASES.values()} == set(TimerState) - {TimerState.PAUSED}
    assert {case[3] for case in CASES.values()} == {*WaitsFor, None}


# ---------------------------------------------------------------------- in the owner's memory


def found_in(crowd: Crowd, name: str, namespace: str = "a") -> Whereabouts | None:
    supervisor = crowd.supervisor
    return whereabouts(supervisor.shards[0], supervisor.dispatcher, timer_uuid(namespace, name))


def after(crowd: Crowd, seconds: float, look: Callable[[], None]) -> None:
    looked = []

    async def then() -> None:
        await asyncio.sleep(seconds - crowd.loop.time())
        look()
        looked.append(True)

    crowd.run(seconds + 1, then)
    assert looked


def test_timers_of_an_idle_node_are_in_memory_or_in_the_store() -> None:
    crowd = Crowd()
    crowd.keep("soon", "fine", 60)
    crowd.keep("far", "fine", 100_000)

    def look() -> None:
        assert found_in(crowd, "soon") == Whereabouts(RowPlace.WINDOW, Obstacle.NONE, "fine")
        assert found_in(crowd, "far") == Whereabouts(RowPlace.STORE)
        crowd.supervisor.shards[0].accept(WriteOp(OpKind.DELETE, timer_uuid("a", "soon"), "a"))
        assert found_in(crowd, "soon") == Whereabouts(RowPlace.WRITING)
        crowd.supervisor.dispatcher.pause("clock_skew")
        assert found_in(crowd, "far") == Whereabouts(RowPlace.STORE, Obstacle.DISPATCH, "clock_skew")
        crowd.supervisor.shards[0].lose("fenced")
        assert found_in(crowd, "far") is None

    after(crowd, 10, look)


def test_timer_in_flight_is_distinguished_from_those_that_wait_for_it() -> None:
    crowd = Crowd(destination_in_flight_max=1, destination_in_flight_min=1, callbacks_in_flight_max=100)
    crowd.keep("first", "hung", 8)
    crowd.keep("second", "hung", 9)
    crowd.receivers.unsent["full"] = 10_000
    crowd.keep("unsent", "full", 9)

    def look() -> None:
        fired_at = crowd.receivers.calls[0].at_us
        in_flight = Whereabouts(RowPlace.IN_FLIGHT, attempt=1, until=fired_at + 30 * SECOND, since=fired_at)
        assert found_in(crowd, "first") == in_flight
        assert found_in(crowd, "second") == Whereabouts(RowPlace.WINDOW, Obstacle.DESTINATION, "hung")
        assert found_in(crowd, "unsent") == Whereabouts(RowPlace.WINDOW, Obstacle.UNSENT, "full")
        crowd.supervisor.shards[0].draining = True
        assert found_in(crowd, "second") == Whereabouts(RowPlace.WINDOW, Obstacle.HAND_OVER)

    after(crowd, 12.5, look)


def test_pauses_are_known_of_timers_ahead_wherever_they_are_and_whether_they_last_until_then() -> None:
    context = Crowd().context

    def paused(**fields: Any) -> tuple[Obstacle, str] | None:
        return pause_of(context, view_of(**fields))

    assert paused(flow_key="vendor:7") is None
    for until, found in ((None, True), (LATER + 1, True), (LATER, False)):
        flow = Flow("a", "vendor:", 0, 0, paused=True, paused_until=until)
        context.flows["a"] = FlowRules([flow])
        assert paused(flow_key="vendor:7") == ((Obstacle.PAUSED_FLOW, "vendor:7") if found else None)
    assert paused() is paused(flow_key="other") is None
    context.paused_destinations = frozenset({"h", "h:80"})
    assert paused() == (Obstacle.PAUSED_DESTINATION, "h")
    assert paused(url="http://h.:80/") == (Obstacle.PAUSED_DESTINATION, "h:80"), "a dot makes no other destination"


@pytest.mark.parametrize(("slots", "obstacle"), [(5, Obstacle.NAMESPACE), (1, Obstacle.NODE)])
def test_full_node_and_namespace_with_its_share_of_slots_are_obstacles(slots: int, obstacle: Obstacle) -> None:
    crowd = Crowd(callbacks_in_flight_max=slots)
    for i in range(5):
        crowd.keep(f"h{i}", f"hung{i}", 8)
    crowd.keep("w", "fine", 9)
    after(crowd, 10, lambda: check(found_in(crowd, "w"), Whereabouts(RowPlace.WINDOW, obstacle, "fine")))


def check(found: Whereabouts | None, expected: Whereabouts) -> None:
    assert found == expected
