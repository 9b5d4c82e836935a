"""Limits of flows and namespaces on one node in virtual time: exact, nobody starves, and nothing of them is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

import msgspec
import pytest

from tests.simulation.crowd import Call, Crowd
from tocsin.administration import FLOW_RECORDS, flows, put_namespace
from tocsin.administration import namespaces as stored_namespaces
from tocsin.model.answer import Response
from tocsin.model.flow import Flow, FlowLimits, Rate
from tocsin.model.ids import timer_uuid
from tocsin.ports.observer import AttemptFinished, TimerSuspended
from tocsin.ports.store import FireKey, Loaded
from tocsin.timers.engine.flow_control import FlowControl
from tocsin.timers.engine.flow_states import KeyState
from tocsin.timers.engine.rows import OpKind, WriteOp

SECOND = 1_000_000


def rule(match: str, per_key: FlowLimits | None = None, total: FlowLimits | None = None, **fields: object) -> Flow:
    """A rule of namespace a."""
    return Flow("a", match, 0, 0, per_key=per_key, total=total, **fields)  # type: ignore[arg-type]


def check_rate(calls: Iterable[Call], rate: Rate, burst: int) -> None:
    """Checks that in any time T at most burst + rate · T attempts begin."""
    begun = sorted(call.at_us for call in calls)
    for first, since in enumerate(begun):
        for last in range(first + burst, len(begun)):
            allowed = burst + rate.count * (begun[last] - since) // rate.per_us
            assert last - first + 1 <= allowed, f"{last - first + 1} within {begun[last] - since} us, {allowed} allowed"


def most_in_flight(calls: Iterable[Call]) -> int:
    """How many attempts were in flight at once, at most. One that ends makes room for one that begins."""
    moments = [moment for call in calls for moment in ((call.at_us, 1), (call.at_us + call.takes_us, -1))]
    now = most = 0
    for _, change in sorted(moments):
        now += change
        most = max(most, now)
    return most


def check_forgotten(crowd: Crowd) -> None:
    """Checks that nothing is left of flows without timers, but for accounts whose buckets fill."""
    flows = crowd.supervisor.dispatcher.flows
    assert not [state.key for each in flows.rules.values() for state in each.keys.values() if state.in_use]
    assert not [state.key for each in flows.rules.values() for state in each.keys.values() if state.waiting]
    assert not any(each.usage.in_use or each.blocked for each in flows.rules.values())
    assert not crowd.supervisor.dispatcher.waiting


def test_a_rate_is_kept_exactly_and_used_up() -> None:
    crowd = Crowd(shards=4)
    rate = Rate(10, SECOND)
    crowd.flows = [rule("vendor", FlowLimits(rate, burst=3))]
    for i in range(100):
        crowd.keep(f"t{i}", "fine", 0, shard=i % 4, flow="vendor")
    crowd.keep("free", "fine", 0, flow="other")
    longest: list[int] = []

    async def look() -> None:
        for _ in range(2):
            await asyncio.sleep(2.05)
            longest.append(crowd.supervisor.overdue_us())

    crowd.run(20, look)
    calls = [call for call in crowd.receivers.calls if call.invocation.timer_id != "free"]
    assert len(calls) == 100
    check_rate(calls, rate, 3)
    assert max(crowd.late_s().values()) < 11
    assert longest == [0, 0]
    assert crowd.late_s()["free"] < 1
    check_forgotten(crowd)


def test_parallelism_of_each_key_and_of_all() -> None:
    crowd = Crowd(shards=4)
    crowd.flows = [rule("customer:", FlowLimits(parallelism=2), FlowLimits(parallelism=7))]
    crowd.receivers.takes_s["fine"] = 0.5
    for i in range(200):
        crowd.keep(f"t{i}", "fine", 0, shard=i % 4, flow=f"customer:{i % 20}")
    crowd.run(30)
    calls = crowd.receivers.calls
    assert len(calls) == 200
    assert most_in_flight(calls) == 7
    for key in range(20):
        mine = [call for call in calls if int(call.invocation.timer_id[1:]) % 20 == key]
        assert most_in_flight(mine) <= 2
    # 200 of 7 at a time, half a second each: nothing is left unused.
    assert max(call.at_us for call in calls) - min(call.at_us for call in calls) < 16 * SECOND
    check_forgotten(crowd)


def test_keys_take_turns_at_what_they_share() -> None:
    crowd = Crowd(shards=2)
    crowd.flows = [rule("customer:", None, FlowLimits(parallelism=1))]
    crowd.receivers.takes_s["fine"] = 0.1
    for i in range(100):
        crowd.keep(f"many{i}", "fine", 0, shard=i % 2, flow="customer:many")
    crowd.keep("few", "fine", 0.5, flow="customer:few")
    crowd.run(15)
    assert len(crowd.receivers.calls) == 101
    assert most_in_flight(crowd.receivers.calls) == 1
    assert crowd.late_s()["few"] < 1.5


def test_a_namespace_and_a_flow_limit_together() -> None:
    crowd = Crowd(shards=4)
    crowd.limits = {"a": FlowLimits(parallelism=3)}
    crowd.flows = [rule("vendor", FlowLimits(parallelism=1))]
    crowd.receivers.takes_s["fine"] = 0.2
    for i in range(40):
        crowd.keep(f"v{i}", "fine", 0, shard=i % 4, flow="vendor")
        crowd.keep(f"w{i}", "fine", 0, shard=i % 4)
        crowd.keep(f"b{i}", "fine", 0, shard=i % 4, namespace="b", flow="vendor")
    crowd.run(30)
    calls = crowd.receivers.calls
    assert len(calls) == 120
    of_a = [call for call in calls if call.invocation.namespace == "a"]
    assert most_in_flight(of_a) == 3
    assert most_in_flight([call for call in of_a if call.invocation.timer_id.startswith("v")]) == 1
    assert max(crowd.late_s()[f"b{i}"] for i in range(40)) < 1.5
    check_forgotten(crowd)


@pytest.mark.parametrize("shared", ["key", "total", "namespace"])
def test_what_waits_beyond_memory_costs_two_writes_and_fires(shared: str) -> None:
    crowd = Crowd(shards=2, window_timers_max=800)
    rate = Rate(50, SECOND)
    limits = FlowLimits(rate, burst=5)
    if shared == "namespace":
        crowd.limits = {"a": limits}
        crowd.flows = [rule("vendor:", FlowLimits(Rate(10, SECOND)))]
    else:
        crowd.flows = [rule("vendor", limits) if shared == "key" else rule("vendor:", None, limits)]
    for i in range(1_000):
        key = "vendor" if shared == "key" else f"vendor:{i}"
        crowd.keep(f"t{i}", "fine", -1 + i / 10_000, shard=i % 2, flow=key)
    for i in range(20):
        crowd.keep(f"f{i}", "other", 2 + i / 10, shard=i % 2, namespace="b")
    crowd.run(40)
    calls = [call for call in crowd.receivers.calls if crowd.receivers.destination(call.invocation.url) == "fine"]
    assert len(calls) == 1_000
    check_rate(calls, rate, 5)
    assert max(crowd.late_s("other").values()) < 1
    suspensions = Counter(event.uuid for event in crowd.events if isinstance(event, TimerSuspended))
    assert suspensions
    assert max(suspensions.values()) == 1
    # What the limits ask for is not late.
    lags = [event.lag_us or 0 for event in crowd.events if isinstance(event, AttemptFinished)]
    assert max(lags) < SECOND
    check_forgotten(crowd)


def test_many_keys_leave_nothing_in_memory() -> None:
    crowd = Crowd(shards=4)
    crowd.flows = [rule("customer:", FlowLimits(Rate(1, SECOND), burst=1, parallelism=1))]
    for i in range(3_000):
        crowd.keep(f"t{i}", "fine", 0.5 + i / 1_000, shard=i % 4, flow=f"customer:{i}")
    crowd.run(20)
    assert len(crowd.receivers.calls) == 3_000
    assert max(crowd.late_s().values()) < 1
    check_forgotten(crowd)
    flows = crowd.supervisor.dispatcher.flows
    assert not any(each.keys for each in flows.rules.values())
    assert sum(len(accounts) for home in flows.homes.values() for accounts in home.rules.values()) == 0


def test_a_rule_that_changes_applies_at_once() -> None:
    crowd = Crowd(shards=2)
    crowd.flows = [rule("vendor", FlowLimits(parallelism=1), paused=True)]
    crowd.receivers.takes_s["fine"] = 0.1
    for i in range(100):
        crowd.keep(f"t{i}", "fine", 0, shard=i % 2, flow="vendor")

    async def change() -> None:
        await asyncio.sleep(2)
        assert not crowd.receivers.calls
        (known,) = await flows(crowd.store)
        running = msgspec.structs.replace(known, paused=False, version=2)
        await FLOW_RECORDS.put(crowd.store, running)
        await crowd.context.refresh_namespaces()
        await asyncio.sleep(1)
        assert 8 <= len(crowd.receivers.calls) <= 12
        assert most_in_flight(crowd.receivers.calls) == 1
        await FLOW_RECORDS.put(
            crowd.store, msgspec.structs.replace(running, per_key=FlowLimits(parallelism=4), version=3)
        )
        await crowd.context.refresh_namespaces()
        await asyncio.sleep(1)
        assert 40 <= len(crowd.receivers.calls) <= 56
        assert most_in_flight(crowd.receivers.calls) == 4
        await FLOW_RECORDS.delete(crowd.store, "a", "vendor")
        await crowd.context.refresh_namespaces()
        await asyncio.sleep(0.5)
        assert len(crowd.receivers.calls) == 100

    crowd.run(8, change)
    check_forgotten(crowd)
    assert not crowd.supervisor.dispatcher.flows.rules
    assert not any(home.rules for home in crowd.supervisor.dispatcher.flows.homes.values())


def test_a_pause_ends_by_itself() -> None:
    crowd = Crowd(shards=2)
    crowd.flows = [rule("vendor", None, paused=True, paused_until=crowd.now_us() + 5 * SECOND)]
    for i in range(10):
        crowd.keep(f"t{i}", "fine", 0, shard=i % 2, flow="vendor")
    crowd.run(9)
    assert len(crowd.receivers.calls) == 10
    assert 5 <= min(crowd.late_s().values()) <= max(crowd.late_s().values()) < 7.1


def test_limits_of_a_namespace_can_be_added_and_removed() -> None:
    crowd = Crowd(shards=2)
    crowd.receivers.takes_s["fine"] = 0.1
    crowd.flows = [rule("vendor", FlowLimits(parallelism=1))]
    for i in range(60):
        crowd.keep(f"t{i}", "fine", 0, shard=i % 2, flow="vendor")
        crowd.keep(f"u{i}", "fine", 2.5, shard=i % 2, flow="unlimited")

    async def change() -> None:
        known = {each.name: each for each in await stored_namespaces(crowd.store)}["a"]
        await put_namespace(
            crowd.store, msgspec.structs.replace(known, limits=FlowLimits(parallelism=2), version=2), create=False
        )
        await crowd.context.refresh_namespaces()
        await asyncio.sleep(3)
        last = [call for call in crowd.receivers.calls if call.at_us > crowd.now_us() - SECOND]
        assert most_in_flight(last) == 2
        await put_namespace(crowd.store, msgspec.structs.replace(known, version=3), create=False)
        await crowd.context.refresh_namespaces()

    crowd.run(12, change)
    assert len(crowd.receivers.calls) == 120
    check_forgotten(crowd)


@pytest.mark.parametrize("closes", [True, False])
def test_a_flow_closes_until_its_receiver_wants_more(closes: bool) -> None:
    crowd = Crowd(shards=2)
    crowd.flows = [rule("vendor:", None, close_on_retry_after=closes)]
    crowd.receivers.answers["fine"] = (Response(429, retry_after="4"), 1.5)
    crowd.keep("first", "fine", 0, flow="vendor:a")
    for i in range(10):
        crowd.keep(f"a{i}", "fine", 2, shard=i % 2, flow="vendor:a")
        crowd.keep(f"b{i}", "fine", 2, shard=i % 2, flow="vendor:b")
    crowd.run(10)
    late = crowd.late_s()
    assert max(late[f"b{i}"] for i in range(10)) < 0.1
    assert (min(late[f"a{i}"] for i in range(10)) > 1.5) is closes
    assert max(late[f"a{i}"] for i in range(10)) < 3
    check_forgotten(crowd)


def test_a_flow_behind_a_hung_destination_holds_no_slot() -> None:
    crowd = Crowd(shards=2, destination_in_flight_max=4)
    crowd.flows = [rule("vendor", FlowLimits(parallelism=6))]
    for i in range(50):
        crowd.keep(f"h{i}", "hung", 0, shard=i % 2, flow="vendor", timeout_s=5.0)
        crowd.keep(f"f{i}", "fine", 3, shard=i % 2, flow="vendor")

    async def heal() -> None:
        await asyncio.sleep(20)
        crowd.receivers.healed = True

    crowd.run(40, heal)
    assert len({call.invocation.timer_id for call in crowd.receivers.calls}) == 100
    check_forgotten(crowd)


def test_a_namespaces_limit_holds_after_nothing_of_it_was_in_flight() -> None:
    crowd = Crowd(shards=2)
    crowd.limits = {"a": FlowLimits(parallelism=1)}
    crowd.flows = [rule("vendor", FlowLimits(Rate(1, SECOND)))]
    crowd.receivers.takes_s["fine"] = 0.6
    for i in range(10):
        crowd.keep(f"v{i}", "fine", 0, shard=i % 2, flow="vendor")
        # Between two of the flow, so that nothing else is in flight when the flow's limit opens.
        crowd.keep(f"w{i}", "fine", 2 + i * 1.1, shard=i % 2)
    crowd.run(30)
    assert len(crowd.receivers.calls) == 20
    assert most_in_flight(crowd.receivers.calls) == 1
    check_forgotten(crowd)


def test_a_timer_that_is_deleted_while_it_waits_for_its_destination_leaves_no_key() -> None:
    crowd = Crowd(destination_in_flight_max=1, destination_in_flight_min=1, breaker=False)
    crowd.flows = [rule("one:", FlowLimits(parallelism=5))]
    crowd.keep("busy", "hung", 1, timeout_s=5)
    crowd.keep("gone", "hung", 1.1, flow="one:x")
    crowd.keep("last", "fine", 1.1, flow="one:y")

    async def delete() -> None:
        await asyncio.sleep(1)
        crowd.supervisor.shards[0].accept(WriteOp(OpKind.DELETE, timer_uuid("a", "gone"), "a"))

    crowd.run(20, delete)
    assert [call.invocation.timer_id for call in crowd.receivers.calls] == ["busy", "last"]
    check_forgotten(crowd)
    assert not [key for each in crowd.supervisor.dispatcher.flows.rules.values() for key in each.keys]


@pytest.mark.parametrize(("flow_slots", "host_slots"), [(100, 2), (2, 100)], ids=["destination", "flow"])
def test_a_timer_that_waits_is_asked_for_once(
    monkeypatch: pytest.MonkeyPatch, flow_slots: int, host_slots: int
) -> None:
    """When it gets what it waits for: not before, and not by each of those through whom it passes then."""
    asked: list[bool] = []
    is_open = FlowControl.is_open

    def noted(self: FlowControl, state: KeyState, *, in_turn: bool = False) -> bool:
        asked.append(is_open(self, state, in_turn=in_turn))
        return asked[-1]

    monkeypatch.setattr(FlowControl, "is_open", noted)
    crowd = Crowd(destination_in_flight_max=host_slots, destination_in_flight_min=1)
    crowd.flows = [rule("vendor", FlowLimits(parallelism=flow_slots))]
    for i in range(40):
        crowd.keep(f"t{i}", "fine", 0, flow="vendor")
    crowd.run(20)
    assert most_in_flight(crowd.receivers.calls) == 2
    assert len(crowd.receivers.calls) == sum(asked) == 40
    check_forgotten(crowd)


def test_a_flow_that_closes_while_its_timers_wait_for_a_slot_is_kept() -> None:
    """They are asked for when they get one, and leave the destination to others."""
    crowd = Crowd(destination_in_flight_max=2, destination_in_flight_min=1, shards=2)
    crowd.flows = [
        rule("vendor", FlowLimits(Rate(5, SECOND), burst=2)),
        rule("ordered", FlowLimits(Rate(5, SECOND), ordered=True)),
    ]
    crowd.receivers.takes_s["fine"] = 0.1
    for i in range(10):
        crowd.keep(f"busy{i}", "fine", 0, shard=i % 2)
        crowd.keep(f"v{i}", "fine", 0.1, shard=i % 2, flow="vendor")
        crowd.keep(f"o{i}", "fine", 0.1 + i / 1000, shard=0, flow="ordered")
        crowd.keep(f"free{i}", "fine", 0.2, shard=i % 2)
    crowd.run(20)
    calls = crowd.receivers.calls
    assert len(calls) == 40
    for name, burst in (("v", 2), ("o", 1)):
        check_rate((call for call in calls if call.invocation.timer_id[0] == name), Rate(5, SECOND), burst)
    assert [call.invocation.timer_id for call in calls if call.invocation.timer_id[0] == "o"] == [
        f"o{i}" for i in range(10)
    ]
    assert max(late for timer, late in crowd.late_s().items() if timer.startswith("free")) < 2
    check_forgotten(crowd)


@pytest.mark.parametrize("away", ["paused", "hung"])
@pytest.mark.parametrize("shared", ["namespace", "key", "total"])
def test_what_waits_for_a_destination_lets_the_others_of_its_limit_pass(away: str, shared: str) -> None:
    crowd = Crowd(destination_in_flight_max=2, destination_in_flight_min=1)
    limits = FlowLimits(Rate(10, SECOND))
    if shared == "namespace":
        crowd.limits = {"a": limits}
    else:
        crowd.flows = [rule("vendor", limits) if shared == "key" else rule("vendor:", None, limits)]
    crowd.context.paused_destinations = frozenset({"paused"})
    keys = {"namespace": ["", ""], "key": ["vendor", "vendor"], "total": ["vendor:a", "vendor:b"]}[shared]
    for i in range(21):
        crowd.keep(f"f{i}", "fine", i / 1_000, flow=keys[0])
    for i in range(5):
        crowd.keep(f"away{i}", away, 0.001 + i / 10_000, flow=keys[i % 2])
    crowd.run(5)
    assert len(crowd.late_s()) == 21
    assert max(crowd.late_s().values()) < 3


def test_of_many_keys_that_wait_in_the_store_memory_has_the_rule() -> None:
    crowd = Crowd(window_timers_max=400)
    crowd.flows = [rule("vendor:", FlowLimits(parallelism=1), paused=True, paused_until=crowd.now_us() + 10 * SECOND)]
    for i in range(3_000):
        crowd.keep(f"t{i}", "fine", -1 + i / 10_000, flow=f"vendor:{i}")
    (shard,), reads = crowd.supervisor.shards.values(), []
    load = crowd.store.load_suspended

    async def load_suspended(shard_id: int, after: FireKey, limit: int) -> Loaded:
        reads.append(crowd.loop.time())
        return await load(shard_id, after, limit)

    crowd.store.load_suspended = load_suspended  # type: ignore[method-assign]

    async def look() -> None:
        await asyncio.sleep(5)
        suspended, before = shard.suspended, len(reads)
        assert suspended.reasons is not None
        assert max(len(each) for each in (suspended.reasons, suspended.recent, suspended.found)) <= 1_001
        await asyncio.sleep(3)
        # Nothing is read while all of it is paused.
        assert len(reads) == before

    crowd.run(60, look)
    assert len(crowd.receivers.calls) == 3_000
    # When all are let go at once, some have to wait for their destination as well.
    assert sum(isinstance(event, TimerSuspended) for event in crowd.events) < 3_300
    check_forgotten(crowd)
