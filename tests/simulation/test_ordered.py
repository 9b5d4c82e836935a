"""Ordered keys of flows on one node in virtual time (ADR 105): one timer at a time, in the order of instants, and retries
keep the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec
import pytest

from tests.simulation.crowd import Call, Crowd
from tests.simulation.test_flows import check_forgotten, most_in_flight, rule
from tests.support.parts import NotedCreates
from tocsin.administration import FLOW_RECORDS, flows, put_namespace
from tocsin.administration import namespaces as stored_namespaces
from tocsin.model.answer import Response
from tocsin.model.errors import DefiniteFailure
from tocsin.model.flow import Flow, FlowLimits, Rate
from tocsin.model.ids import timer_uuid
from tocsin.model.retry import RetryPolicy
from tocsin.ports.observer import AttemptFinished, TimerSuspended
from tocsin.ports.store import Applied, ShardBatch
from tocsin.timers.engine.rows import TURN_REASON, OpKind, WriteOp, stored

SECOND = 1_000_000
ORDERED = FlowLimits(parallelism=1, ordered=True)


def line(**fields: object) -> Flow:
    """An ordered rule of namespace a."""
    return rule("line:", ORDERED, **fields)


def every(interval_us: int) -> RetryPolicy:
    """A retry about so long after each failure."""
    return RetryPolicy(10, initial_interval_us=interval_us, backoff_multiplier=1.0, max_interval_us=interval_us)


def begun(crowd: Crowd, prefix: str = "") -> list[str]:
    """The timers whose ids begin with the prefix, in the order of their first attempts."""
    names = [call.invocation.timer_id for call in crowd.receivers.calls]
    return list(dict.fromkeys(name for name in names if name.startswith(prefix)))


def places(calls: Iterable[Call]) -> list[tuple[int, bytes]]:
    """Instants and uuids in the order of the calls."""
    return [(each.invocation.execute_at, timer_uuid("a", each.invocation.timer_id)) for each in calls]


def check_nothing_kept(crowd: Crowd) -> None:
    """Checks that nothing is left in memory of flows and of their order."""
    check_forgotten(crowd)
    for shard in crowd.supervisor.shards.values():
        assert not shard.order.lines
        assert not shard.order.ready
        assert shard.order.next_retry_us() is None
    assert not crowd.suspended()


def test_the_timers_of_a_key_begin_one_by_one_in_the_order_of_instants() -> None:
    crowd = Crowd()
    crowd.flows = [line()]
    for number in range(80):
        # Two at each instant.
        crowd.keep(f"x{number}", "fine", number % 40 / 100 - 1, flow="line:x")
        crowd.keep(f"y{number}", f"fine/{number % 3}", 2 + number % 40 / 1_000, flow="line:y")
    crowd.run(10)
    for key in "xy":
        calls = [call for call in crowd.receivers.calls if call.invocation.timer_id.startswith(key)]
        assert len(calls) == 80
        assert places(calls) == sorted(places(calls))
        assert most_in_flight(calls) == 1
    check_nothing_kept(crowd)


def test_keys_do_not_wait_for_one_another() -> None:
    crowd = Crowd()
    crowd.flows = [line()]
    for number in range(20):
        crowd.keep(f"x{number}", "hung", 1.5, flow="line:x", timeout_s=60)
        crowd.keep(f"y{number}", "fine", 1.5, flow="line:y")
    crowd.run(5)
    assert len(begun(crowd, "x")) == 1
    assert len(begun(crowd, "y")) == 20


def test_a_retry_keeps_the_turn() -> None:
    crowd = Crowd()
    crowd.retry = every(SECOND)
    crowd.flows = [line()]
    crowd.receivers.answers["down"] = (Response(503), 4.5)
    crowd.keep("x0", "down", 1.5, flow="line:x")
    for number in range(1, 9):
        crowd.keep(f"x{number}", "fine", 1.5 + number / 1_000, flow="line:x")
        crowd.keep(f"y{number}", "fine", 1.5 + number / 1_000, flow="line:y")

    async def watch() -> None:
        await asyncio.sleep(2)
        assert begun(crowd) == ["x0", *(f"y{number}" for number in range(1, 9))]
        assert [reason for reason in crowd.suspended().values() if reason] == [f"{TURN_REASON}a/line:x"]

    crowd.run(10, watch)
    assert begun(crowd, "x") == [f"x{number}" for number in range(9)]
    ends = [event.outcome for event in crowd.events if isinstance(event, AttemptFinished) and event.timer_id == "x0"]
    assert ends == ["retried"] * 4 + ["done"] or ends == ["retried"] * 3 + ["done"]
    check_nothing_kept(crowd)


@pytest.mark.parametrize("after_s", [2.5, 3.01])
def test_a_timer_that_is_canceled_between_its_attempts_keeps_nothing_back(after_s: float) -> None:
    crowd = Crowd()
    crowd.retry = every(60 * SECOND)
    crowd.flows = [line()]
    crowd.receivers.answers["down"] = (Response(503), 100)
    crowd.receivers.takes_s["down"] = 0.02
    crowd.keep("x0", "down", 2, flow="line:x")
    crowd.keep("x1", "fine", 2.1, flow="line:x")

    async def cancel() -> None:
        await asyncio.sleep(after_s - 1)
        assert begun(crowd) == ["x0"]
        crowd.supervisor.shards[0].accept(WriteOp(OpKind.DELETE, timer_uuid("a", "x0"), "a"))
        await asyncio.sleep(1)
        assert begun(crowd) == ["x0", "x1"]

    crowd.run(6, cancel)
    check_nothing_kept(crowd)


def test_a_new_owner_lets_nothing_begin_before_a_retry_that_it_finds() -> None:
    crowd = Crowd()
    crowd.flows = [line()]
    timer = crowd.row("x0", "fine", 1)
    timer.timer.flow_key, timer.timer.attempts = "line:x", 1
    crowd.keep("x1", "fine", 2, flow="line:x")
    crowd._kept[0].append(stored(timer, f"{TURN_REASON}a/line:x")._replace(execute_at=timer.key[0] + 4 * SECOND))

    async def watch() -> None:
        await asyncio.sleep(3)
        assert not begun(crowd)

    crowd.run(8, watch)
    assert begun(crowd) == ["x0", "x1"]
    check_nothing_kept(crowd)


def test_a_new_owner_lets_nothing_begin_before_all_that_was_due_is_known() -> None:
    crowd = Crowd(callbacks_in_flight_max=2)
    crowd.flows = [line()]
    crowd.receivers.takes_s["slow"] = 0.1
    crowd.keep("x1", "fine", -3, flow="line:x")
    for number in range(60):
        crowd.keep(f"busy{number}", "slow", -2)
    retry = crowd.row("x0", "fine", -4)
    retry.timer.flow_key, retry.timer.attempts = "line:x", 1
    # Its next attempt had begun when its former owner ended.
    crowd._kept[0].append(stored(retry)._replace(execute_at=retry.key[0] + 3 * SECOND))
    crowd.run(10)
    assert begun(crowd, "x") == ["x0", "x1"]
    check_nothing_kept(crowd)


@pytest.mark.parametrize("due_s", [1.2, 3.0])
def test_the_first_waits_for_its_destination_and_the_others_for_it(due_s: float) -> None:
    # Before and after the new owner lets anything of ordered keys begin.
    crowd = Crowd(destination_in_flight_max=2, destination_in_flight_min=1, breaker=False)
    crowd.flows = [line()]
    for number in range(8):
        crowd.keep(f"full{number}", "hung", 1, timeout_s=8)
    crowd.keep("x0", "hung", due_s, flow="line:x", timeout_s=5)
    for number in range(1, 9):
        crowd.keep(f"x{number}", "fine", due_s + 0.1, flow="line:x")

    async def heal() -> None:
        await asyncio.sleep(due_s + 1)
        assert not begun(crowd, "x")
        crowd.receivers.healed = True

    crowd.run(60, heal)
    assert begun(crowd, "x")[0] == "x0"
    assert len(begun(crowd, "x")) == 9
    check_nothing_kept(crowd)


def test_no_timer_has_the_turn_of_a_key_that_is_closed() -> None:
    """An earlier one that is created meanwhile would come behind it."""
    crowd = Crowd(destination_in_flight_max=1, destination_in_flight_min=1)
    # After the first one it is closed until 8.5.
    crowd.flows = [rule("line:", FlowLimits(Rate(1, 2_500_000), ordered=True))]
    crowd.receivers.takes_s["fine"] = 1.5
    crowd.keep("first", "fine", 6, flow="line:x")
    crowd.keep("busy", "fine", 6.1)
    # Its destination has no slot until 9.0.
    crowd.keep("later", "fine", 7.6, flow="line:x")
    earlier = crowd.row("earlier", "fine", 7)
    earlier.timer.flow_key = "line:x"

    async def create() -> None:
        await asyncio.sleep(7)
        crowd.supervisor.shards[0].accept(WriteOp(OpKind.CREATE, earlier.key[1], "a", timer=earlier.timer))

    crowd.run(20, create)
    assert begun(crowd) == ["first", "busy", "earlier", "later"]
    check_nothing_kept(crowd)


def test_a_timer_whose_address_is_refused_lets_the_others_pass() -> None:
    crowd = Crowd()
    crowd.flows = [line()]
    crowd.receivers.forbidden.add("secret")
    crowd.keep("x0", "secret", 1.5, flow="line:x")
    crowd.keep("x1", "fine", 1.6, flow="line:x")
    crowd.run(4)
    assert begun(crowd) == ["x1"]
    assert crowd.suspended() == {"x0": "egress"}


def test_a_request_that_was_not_sent_keeps_the_turn() -> None:
    crowd = Crowd()
    crowd.flows = [line()]
    crowd.receivers.unsent["fine"] = 3
    for number in range(5):
        crowd.keep(f"x{number}", "fine" if number < 2 else "other", 1.5 + number / 1_000, flow="line:x")
    crowd.run(6)
    assert begun(crowd) == [f"x{number}" for number in range(5)]
    check_nothing_kept(crowd)


def test_the_order_holds_beyond_memory_at_two_writes_for_a_timer() -> None:
    crowd = Crowd(window_timers_max=80, load_page_rows=20, resume_rows=20)
    crowd.flows = [line()]
    for number in range(400):
        crowd.keep(f"x{number:03}", "fine", 1 + number * 37 % 400 / 1_000, flow="line:x")
    crowd.receivers.takes_s["fine"] = 0.02
    crowd.run(200)
    calls = crowd.receivers.calls
    assert len(calls) == 400
    assert places(calls) == sorted(places(calls))
    suspensions = [event for event in crowd.events if isinstance(event, TimerSuspended)]
    assert suspensions
    assert len(suspensions) <= 420
    check_nothing_kept(crowd)


def test_the_order_holds_beyond_memory_while_the_first_retries_and_earlier_ones_come() -> None:
    crowd = Crowd(window_timers_max=80, load_page_rows=20, resume_rows=20)
    crowd.retry = every(SECOND)
    crowd.flows = [line()]
    crowd.receivers.answers["down"] = (Response(503), 6)
    crowd.keep("x", "down", 0.5, flow="line:x")
    for number in range(200):
        crowd.keep(f"x{number:03}", "fine", 3 + number * 37 % 200 / 1_000, flow="line:x")

    async def come() -> None:
        await asyncio.sleep(3)
        for number in range(20):
            timer = crowd.row(f"early{number}", "fine", 2 + number / 100).timer
            timer.flow_key = "line:x"
            crowd.supervisor.shards[0].accept(WriteOp(OpKind.CREATE, timer_uuid("a", timer.id), "a", timer=timer))

    crowd.run(150, come)
    assert begun(crowd)[0] == "x"
    last = [call for call in crowd.receivers.calls if call.invocation.timer_id != "x"]
    assert len(last) == 220
    assert places(last) == sorted(places(last))
    check_nothing_kept(crowd)


def test_the_order_holds_after_a_pause_of_the_namespace() -> None:
    crowd = Crowd(resume_rows=10, load_page_rows=20)
    crowd.paused = {"a"}
    crowd.flows = [line()]
    for number in range(100):
        crowd.keep(f"x{number:03}", "fine", 0.5 + number / 1_000, flow="line:x")
    for number in range(100, 150):
        crowd.keep(f"x{number:03}", "fine", 3 + number / 1_000, flow="line:x")

    async def resume() -> None:
        await asyncio.sleep(2)
        known = {each.name: each for each in await stored_namespaces(crowd.store)}["a"]
        resumed = msgspec.structs.replace(known, paused=False, version=known.version + 1)
        await put_namespace(crowd.store, resumed, create=False)
        await crowd.context.refresh_namespaces()

    crowd.run(60, resume)
    assert begun(crowd) == [f"x{number:03}" for number in range(150)]
    check_nothing_kept(crowd)


def test_nothing_passes_a_stored_timer_that_the_database_refuses_to_resume_for_a_while() -> None:
    crowd = Crowd()
    crowd.flows = [line()]
    for number in range(3):
        crowd.keep(f"x{number}", "fine", 0.1 + number / 10, flow="line:x", suspended="flow:a/line:x")
    apply, refused = crowd.store.apply, timer_uuid("a", "x0")

    async def refusing(batches: Sequence[ShardBatch]) -> list[Applied]:
        # At 0 they are stored.
        if 0 < crowd.loop.time() < 4 and any(row.uuid == refused for batch in batches for row in batch.upserts):
            raise DefiniteFailure("the database refuses this row")
        return await apply(batches)

    crowd.store.apply = refusing  # type: ignore[method-assign]
    crowd.run(20)
    assert begun(crowd) == ["x0", "x1", "x2"]
    check_nothing_kept(crowd)


def test_a_stored_timer_that_is_deleted_keeps_nothing_back() -> None:
    crowd = Crowd(breaker=False)
    crowd.flows = [line()]
    crowd.keep("x0", "fine", 0.5, flow="line:x", suspended="destination:http://away")
    crowd.keep("x1", "fine", 2, flow="line:x")
    crowd.context.paused_destinations = frozenset({"http://away"})

    async def delete() -> None:
        await asyncio.sleep(3)
        assert not begun(crowd)
        crowd.supervisor.shards[0].accept(WriteOp(OpKind.DELETE, timer_uuid("a", "x0"), "a"))

    crowd.run(8, delete)
    assert begun(crowd) == ["x1"]
    check_nothing_kept(crowd)


@pytest.mark.parametrize("flow_key", ["line:x", ""], ids=["of the same key", "of none"])
def test_a_stored_timer_that_is_created_again_keeps_nothing_back(flow_key: str) -> None:
    crowd = Crowd(breaker=False)
    crowd.flows = [line()]
    crowd.keep("x0", "fine", 0.1, flow="line:x", suspended="destination:http://away")
    # It waits in memory, because it is due before anything is known of the other one: nothing is read from the store for it.
    crowd.keep("x1", "fine", 0.2, flow="line:x")
    crowd.context.paused_destinations = frozenset({"http://away"})
    again = crowd.row("x0", "fine", 5)
    again.timer.flow_key = flow_key

    async def create() -> None:
        await asyncio.sleep(2)
        assert not begun(crowd)
        assert crowd.supervisor.dispatcher.waiting == 1
        # Without a condition: whoever created it does not know what it replaces.
        together = NotedCreates((timer_uuid("a", "x0"), again.timer, lambda answer: None))
        crowd.supervisor.shards[0].accept_creates(together, crowd.clock.boottime_us() + SECOND)

    crowd.run(8, create)
    assert begun(crowd) == ["x1", "x0"]
    # Not only when the other one is due.
    assert crowd.receivers.calls[0].at_us < again.key[0]
    check_nothing_kept(crowd)


def test_a_rate_and_a_total_hold_beside_the_order() -> None:
    crowd = Crowd()
    crowd.flows = [
        rule("line:", FlowLimits(Rate(4, SECOND), parallelism=1, ordered=True), FlowLimits(parallelism=2)),
    ]
    crowd.receivers.takes_s["fine"] = 0.1
    for number in range(30):
        for key in "xyz":
            crowd.keep(f"{key}{number:02}", "fine", 1.5 + number / 1_000, flow=f"line:{key}")
    crowd.run(30)
    assert most_in_flight(crowd.receivers.calls) == 2
    for key in "xyz":
        assert begun(crowd, key) == [f"{key}{number:02}" for number in range(30)]
    check_nothing_kept(crowd)


def test_a_paused_rule_keeps_its_order() -> None:
    crowd = Crowd()
    crowd.flows = [line(paused=True, paused_until=crowd.now_us() + 4 * SECOND)]
    for number in range(40):
        crowd.keep(f"x{number:02}", "fine", 1 + number * 7 % 40 / 1_000, flow="line:x")
    crowd.run(10)
    calls = crowd.receivers.calls
    assert len(calls) == 40
    assert places(calls) == sorted(places(calls))
    check_nothing_kept(crowd)


def test_a_rule_becomes_ordered_while_its_timers_wait() -> None:
    crowd = Crowd()
    crowd.flows = [rule("line:", FlowLimits(Rate(1, 60 * SECOND)))]
    for number in range(40):
        crowd.keep(f"x{number}", "fine", 1 + number * 7 % 40 / 1_000, flow="line:x")

    async def change() -> None:
        await asyncio.sleep(2)
        assert len(begun(crowd)) <= 1
        (known,) = await flows(crowd.store)
        await FLOW_RECORDS.put(crowd.store, Flow("a", "line:", 0, 0, per_key=ORDERED, version=known.version + 1))

    crowd.run(20, change)
    calls = crowd.receivers.calls[1:]
    assert places(calls) == sorted(places(calls))
    assert len(begun(crowd)) == 40
    check_nothing_kept(crowd)
