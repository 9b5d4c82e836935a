"""Batches of callbacks on one node in virtual time: what is sent together, what is not, and what becomes of each timer."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests.simulation.crowd import Crowd
from tests.simulation.test_flows import check_forgotten
from tests.simulation.world import World
from tocsin.administration import namespaces, put_namespace
from tocsin.http_client.request import body_of
from tocsin.model.answer import Response
from tocsin.model.batch import BATCH_BYTES_MAX, CallbackBatch
from tocsin.model.flow import Flow, FlowLimits, Rate
from tocsin.model.ids import timer_uuid
from tocsin.model.retry import DEFAULT_POLICY, RetryPolicy
from tocsin.model.timer import JSON_TYPE, RawBody, Timer
from tocsin.ports.batches import BatchAccepted
from tocsin.ports.http import Invocation
from tocsin.ports.observer import AttemptFinished
from tocsin.ports.store import ShardBatch
from tocsin.testing.clock import EPOCH_US
from tocsin.timers.engine.batching import Batches, BatchKey, _bytes_of
from tocsin.timers.engine.destination_events import BatchEnded, BreakerClosed, BreakerOpened
from tocsin.timers.engine.rows import OpKind, Row, WriteOp, stored

SECOND = 1_000_000
LINGER_US = 100_000


def batching(items: int = 100, linger_us: int = LINGER_US, *, shards: int = 1, **limits: object) -> Crowd:
    """A node whose namespace a sends its callbacks in batches."""
    crowd = Crowd(shards=shards, **limits)
    crowd.batches["a"] = CallbackBatch(items, linger_us)
    crowd.retry = DEFAULT_POLICY
    return crowd


def sizes(crowd: Crowd) -> list[int]:
    """How many items each request had."""
    return [len(call.invocation.items or ()) for call in crowd.receivers.calls]


def outcomes(crowd: Crowd) -> dict[str, list[str]]:
    """The outcomes of each timer's attempts."""
    found: dict[str, list[str]] = {}
    for event in crowd.events:
        if isinstance(event, AttemptFinished):
            found.setdefault(event.timer_id, []).append(event.outcome)
        elif isinstance(event, BatchAccepted):
            for timer_id in event.timer_ids:
                found.setdefault(timer_id, []).append(event.outcome)
    return found


def put(crowd: Crowd, row: Row, shard: int = 0) -> None:
    crowd._kept.setdefault(shard, []).append(stored(row))


def test_timers_that_are_due_together_are_sent_in_full_requests() -> None:
    crowd = batching(shards=2)
    for number in range(250):
        crowd.keep(f"t{number}", "fine", 2.0, shard=number % 2)
    crowd.run(4.0)
    assert sizes(crowd) == [100, 100, 50]
    assert {item.timer_id for item, _ in crowd.items()} == {f"t{number}" for number in range(250)}
    assert set(map(tuple, outcomes(crowd).values())) == {("done",)}
    assert sum(event.items for event in crowd.events if isinstance(event, BatchEnded)) == 250
    assert len({call.invocation.message_id for call in crowd.receivers.calls}) == 3
    accepted = [event for event in crowd.events if isinstance(event, BatchAccepted)]
    assert [len(event.timer_ids) for event in accepted] == [100, 100, 50]
    # They have waited for each other.
    assert all(0 <= lag_us <= LINGER_US + 2 for event in accepted for lag_us in event.lags_us)
    assert [len(event.lags_us) for event in accepted] == [100, 100, 50]
    check_forgotten(crowd)


def test_no_timer_waits_for_others_longer_than_the_linger() -> None:
    crowd = batching()
    for number in range(50):
        crowd.keep(f"t{number}", "fine", 2.0 + number * 0.03)
    crowd.run(5.0)
    waited = [at_us - item.execute_at for item, at_us in crowd.items()]
    assert len(waited) == 50
    assert min(waited) >= 0
    # The loop's timers are a microsecond late.
    assert LINGER_US <= max(waited) <= LINGER_US + 2
    assert max(sizes(crowd)) > 1


def test_without_linger_only_what_is_due_together_is_sent_together() -> None:
    crowd = batching(linger_us=0)
    for number in range(10):
        crowd.keep(f"t{number}", "fine", 2.0 + number // 5)
    crowd.run(5.0)
    assert sizes(crowd) == [5, 5]
    assert all(at_us == item.execute_at for item, at_us in crowd.items())


def test_a_batch_takes_one_slot_and_what_waits_for_it() -> None:
    crowd = batching(destination_in_flight_max=1)
    crowd.receivers.takes_s["fine"] = 0.5
    for number in range(300):
        # Of two receivers on one path, which wait in one queue.
        crowd.keep(f"t{number}", f"fine/hook?{number % 2}", 2.0)
    crowd.run(9.0)
    assert len(crowd.items()) == 300
    assert sorted(sizes(crowd)) == [50, 50, 100, 100]
    moments = sorted(call.at_us for call in crowd.receivers.calls)
    # None holds the slot for the linger.
    assert all(SECOND // 2 <= later - earlier < SECOND // 2 + LINGER_US for earlier, later in pairwise(moments))
    for receiver in ("http://fine/hook?0", "http://fine/hook?1"):
        order = [timer_uuid("a", item.timer_id) for item, _ in crowd.items() if item.url == receiver]
        assert order == sorted(order)


@pytest.mark.parametrize(("items", "most"), [(500, 4 * 50), (10, 4 * 10)])
def test_a_batch_looks_at_few_timers_of_others(items: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each timer has a URL of its own, of one path, and so none is found for a batch, however many wait."""
    crowd = batching(items, shards=4, destination_in_flight_max=1)
    for number in range(600):
        crowd.keep(f"t{number}", f"fine/hook/{number}", 2.0, shard=number % 4)
    looked_at: list[int] = []
    begin, is_for = Batches.begin, Batches._is_for

    def counted_begin(self: Batches, *arguments: Any, **named: Any) -> None:
        looked_at.append(0)
        begin(self, *arguments, **named)

    def counted_look(self: Batches, timer: Timer, key: BatchKey) -> bool:
        looked_at[-1] += 1
        return is_for(self, timer, key)

    monkeypatch.setattr(Batches, "begin", counted_begin)
    monkeypatch.setattr(Batches, "_is_for", counted_look)
    crowd.run(20.0)
    assert sizes(crowd) == [1] * 600
    assert max(looked_at) == most


def test_only_what_is_alike_is_sent_together() -> None:
    crowd = batching()
    for number, (host, timeout_s) in enumerate([("fine", 30.0), ("fine/x", 30.0), ("other", 30.0), ("fine", 20.0)] * 2):
        crowd.keep(f"t{number}", host, 2.0, timeout_s=timeout_s)
    for number, headers in enumerate([{"x-a": "1"}, {"x-a": "2"}] * 2):
        row = crowd.row(f"h{number}", "fine", 2.0)
        row.timer.headers = headers
        put(crowd, row)
    for number, credential in enumerate(["one", "two"] * 2):
        row = crowd.row(f"c{number}", "fine", 2.0)
        row.timer.credential = credential
        put(crowd, row)
    crowd.run(4.0)
    assert sizes(crowd) == [2] * 8
    for call in crowd.receivers.calls:
        assert {item.url for item in call.invocation.items or ()} == {call.invocation.url}
        assert {item.credential for item in call.invocation.items or ()} == {call.invocation.credential}
        assert {msgspec.json.encode(item.headers) for item in call.invocation.items or ()} == {
            msgspec.json.encode(call.invocation.headers)
        }


def test_what_has_no_envelope_in_its_body_is_sent_by_itself() -> None:
    crowd = batching()
    for number in range(2):
        bodiless, raw, subject = (crowd.row(f"{kind}{number}", "fine", 2.0) for kind in ("get", "raw", "nats"))
        bodiless.timer.method = "GET"
        raw.timer.body = RawBody(JSON_TYPE, json=msgspec.Raw(b"1"))
        subject.timer.url = "nats://fine/subject"
        for row in (bodiless, raw, subject):
            put(crowd, row)
    crowd.keep("large", "fine", 2.0, size=BATCH_BYTES_MAX)
    crowd.run(4.0)
    assert [call.invocation.items for call in crowd.receivers.calls] == [None] * 7


def test_a_request_has_at_most_so_many_bytes() -> None:
    crowd = batching()
    for number in range(30):
        crowd.keep(f"t{number}", "fine", 2.0, size=99_000)
    crowd.run(4.0)
    assert sizes(crowd) == [10, 10, 10]
    for call in crowd.receivers.calls:
        items = call.invocation.items or ()
        assert sum(len(bytes(item.payload)) for item in items) <= BATCH_BYTES_MAX


def test_each_timer_goes_on_by_its_own_result() -> None:
    crowd = batching()
    crowd.receivers.results = {
        "busy": {"status": 503, "retryAfter": 1},
        "gone": {"status": 404},
        "later": {"status": 200, "nextExecuteAt": "2099-01-01T00:00:00Z", "payload": 5},
        "not ok": {"status": 200, "ok": False},
        "silent": None,
    }
    for name in ("fine", *crowd.receivers.results):
        crowd.keep(name, "fine", 2.0)
    crowd.run(3.0)
    assert outcomes(crowd) == {
        "fine": ["done"],
        "busy": ["retried"],
        "gone": ["failed"],
        "later": ["rescheduled"],
        "not ok": ["retried"],
        "silent": ["retried"],
    }
    errors = {event.timer_id: event.error for event in crowd.events if isinstance(event, AttemptFinished)}
    assert errors["silent"] == "NO_RESULT: the response to the batch has no result for this timer"
    assert errors["busy"] == "HTTP_503"
    (batch,) = crowd.receivers.calls
    ended = [row for shard in crowd.store._shards.values() for each in shard.history.values() for row in each.values()]
    assert all(batch.invocation.message_id.encode() in row.record for row in ended)
    assert {row.timer_id for row in ended} == {"fine", "gone"}


@pytest.mark.parametrize("answer", [Response(400), Response(500), Response(200), Response(200, b'{"items":7}')])
def test_a_response_without_results_fails_one_attempt_of_each_timer(answer: Response) -> None:
    crowd = batching()
    crowd.receivers.answers["fine"] = (answer, 2.5)
    for number in range(3):
        row = crowd.row(f"t{number}", "fine", 2.0)
        row.timer.firing = "1"
        put(crowd, row)
    crowd.run(30.0)
    assert outcomes(crowd) == {f"t{number}": ["retried", "done"] for number in range(3)}
    names = Counter(item.message_id for item, _ in crowd.items())
    assert set(names.values()) == {2}


def test_a_receiver_that_hangs_costs_each_timer_one_attempt() -> None:
    crowd = batching()
    for number in range(3):
        crowd.keep(f"t{number}", "hung", 2.0, timeout_s=1.0)
    crowd.run(3.9)
    assert outcomes(crowd) == {f"t{number}": ["retried"] for number in range(3)}


def test_what_is_not_sent_is_no_attempt_of_any_timer() -> None:
    crowd = batching()
    crowd.receivers.unsent["fine"] = 1
    for number in range(3):
        crowd.keep(f"t{number}", "fine", 2.0)
    crowd.run(5.0)
    assert crowd.receivers.refused == 1
    assert outcomes(crowd) == {f"t{number}": ["done"] for number in range(3)}
    assert {item.attempt for item, _ in crowd.items()} == {1}


def test_a_timer_that_was_deleted_while_it_waited_is_not_sent() -> None:
    crowd = batching(linger_us=SECOND)
    for name in ("kept", "deleted"):
        crowd.keep(name, "fine", 2.0)

    async def delete() -> None:
        await asyncio.sleep(1.5)
        op = WriteOp(OpKind.DELETE, timer_uuid("a", "deleted"), "a")
        crowd.supervisor.shards[0].accept(op)

    crowd.run(5.0, delete)
    assert [item.timer_id for item, _ in crowd.items()] == ["kept"]


def test_an_acceptance_of_what_was_deleted_meanwhile_decides_nothing() -> None:
    crowd = batching()
    crowd.receivers.takes_s["fine"] = 1.0
    for name in ("kept", "deleted"):
        crowd.keep(name, "fine", 2.0)

    async def delete() -> None:
        await asyncio.sleep(1.5)
        op = WriteOp(OpKind.DELETE, timer_uuid("a", "deleted"), "a")
        crowd.supervisor.shards[0].accept(op)

    crowd.run(5.0, delete)
    assert sizes(crowd) == [2]
    assert outcomes(crowd) == {"kept": ["done"], "deleted": ["superseded"]}


def test_a_paused_namespace_keeps_what_waits() -> None:
    crowd = batching(linger_us=SECOND, namespaces_interval_us=100_000)
    crowd.keep("t", "fine", 2.0)

    async def pause() -> None:
        await asyncio.sleep(1.2)
        (known,) = [each for each in await namespaces(crowd.store) if each.name == "a"]
        changed = msgspec.structs.replace(known, paused=True, version=known.version + 1)
        assert await put_namespace(crowd.store, changed, create=False)

    crowd.run(6.0, pause)
    assert crowd.receivers.calls == []
    assert crowd.suspended() == {"t": "namespace:a"}


def test_a_timer_of_a_lost_shard_is_not_sent() -> None:
    crowd = batching(linger_us=300_000, shards=2)
    other = b"o" * 16
    for shard in range(2):
        crowd.keep(f"t{shard}", "fine", 2.2, shard=shard)

    async def lose() -> None:
        await asyncio.sleep(1.3)
        shard, store = crowd.supervisor.shards[0], crowd.store
        assert shard.window is not None
        assert shard.window.in_flight_count == 1
        former = shard.window.epoch
        shard.lose("fenced")
        epoch = await store.claim(0, expected_epoch=former, owner=other)
        assert epoch is not None
        # It has fired or deleted the timer.
        await store.apply([ShardBatch(0, epoch, other, deletes=[timer_uuid("a", "t0")])])
        await asyncio.sleep(0.5)
        assert crowd.supervisor.dispatcher.in_flight == 0
        assert shard._orphaned == []

    crowd.run(5.0, lose)
    assert [item.timer_id for item, _ in crowd.items()] == ["t1"]


def test_a_flow_that_its_receiver_closes_keeps_what_waits() -> None:
    crowd = batching(items=2, linger_us=SECOND)
    crowd.flows = [Flow("a", "vendor:", 0, 0, close_on_retry_after=True)]
    crowd.receivers.takes_s["fine"] = 0.5
    crowd.receivers.results["first"] = {"status": 429, "retryAfter": 4}
    for name in ("first", "second"):
        crowd.keep(name, "fine", 2.0, flow="vendor:a")
    # It waits for another while the answer comes.
    crowd.keep("third", "fine", 2.2, flow="vendor:a")
    crowd.run(10.0)
    sent = {item.timer_id: at_us - EPOCH_US for item, at_us in crowd.items()}
    assert sent["second"] == 2 * SECOND
    assert sent["third"] >= 6_500_000
    assert outcomes(crowd)["third"] == ["done"]
    check_forgotten(crowd)


def test_nothing_is_sent_while_the_node_may_not_fire() -> None:
    crowd = batching(linger_us=SECOND)
    crowd.keep("t", "fine", 2.3)

    async def pause() -> None:
        # Between two heartbeats, of which the second one resumes.
        await asyncio.sleep(2.2)
        crowd.supervisor.dispatcher.pause("lease")
        assert crowd.supervisor.dispatcher.in_flight == 1
        await asyncio.sleep(0.2)
        assert crowd.supervisor.dispatcher.in_flight == 0

    crowd.run(10.0, pause)
    ((_, at_us),) = crowd.items()
    assert at_us > EPOCH_US + 3_400_000
    assert outcomes(crowd) == {"t": ["done"]}


def test_no_timer_waits_for_others_until_it_is_too_late_for_it() -> None:
    crowd = batching(linger_us=SECOND)
    crowd.retry = RetryPolicy(max_attempts=2, initial_interval_us=SECOND)
    crowd.keep("earlier", "fine", 2.0)
    # It could not begin when the linger of the earlier one ends.
    crowd.keep("brief", "fine", 2.5, expire_after_s=0.5)
    crowd.keep("together", "fine", 2.5)
    crowd.keep("alone", "fine", 4.0, expire_after_s=0.1)
    # The last attempt is due less than a linger before its limit.
    crowd.keep("repeated", "fine", 6.0, expire_after_s=2.3)
    crowd.receivers.results["repeated"] = {"status": 503}
    crowd.run(12.0)
    sent = [(item.timer_id, round((at_us - EPOCH_US) / SECOND, 3)) for item, at_us in crowd.items()]
    assert sent[:-1] == [("earlier", 2.5), ("brief", 2.5), ("together", 2.5), ("alone", 4.0), ("repeated", 7.0)]
    assert sent[-1][0] == "repeated"
    assert sent[-1][1] < 8.3
    assert sizes(crowd) == [3, 1, 1, 1]


def test_a_timer_that_expires_while_it_waits_is_not_sent() -> None:
    crowd = batching(linger_us=SECOND)
    crowd.keep("brief", "fine", 2.0, expire_after_s=1.1)
    crowd.keep("patient", "fine", 2.0, expire_after_s=5.0)

    async def set_clock() -> None:
        await asyncio.sleep(1.5)
        crowd.clock.jump(SECOND // 5)

    crowd.run(5.0, set_clock)
    assert [item.timer_id for item, _ in crowd.items()] == ["patient"]


def test_a_rate_counts_timers_and_a_flow_has_its_own_batches() -> None:
    crowd = batching(items=2, linger_us=0)
    rate = Rate(10, SECOND)
    crowd.flows = [
        Flow("a", "vendor", 0, 0, per_key=FlowLimits(rate, burst=10), callback_batch=CallbackBatch(5, SECOND))
    ]
    for number in range(30):
        crowd.keep(f"t{number}", "fine", 2.0, flow="vendor")
    crowd.keep("x", "fine", 2.0)
    crowd.keep("y", "fine", 2.0)
    crowd.run(8.0)
    assert max(sizes(crowd)) == 5
    assert sizes(crowd).count(2) >= 1
    sent = sorted(at_us for item, at_us in crowd.items() if item.timer_id.startswith("t"))
    assert len(sent) == 30
    for first, since in enumerate(sent):
        for last in range(first, len(sent)):
            # An item may have waited for others for a second.
            assert last - first + 1 <= 10 + (sent[last] - since + SECOND) // 100_000
    check_forgotten(crowd)


def test_an_ordered_key_has_one_timer_in_a_batch() -> None:
    crowd = batching()
    crowd.flows = [Flow("a", "line:", 0, 0, per_key=FlowLimits(parallelism=1, ordered=True))]
    for number in range(12):
        crowd.keep(f"t{number}", "fine", 2.0 + number / 1_000, flow=f"line:{number % 3}")
    crowd.run(5.0)
    for call in crowd.receivers.calls:
        keys = [int(item.timer_id[1:]) % 3 for item in call.invocation.items or ()]
        assert len(keys) == len(set(keys))
    sent = [int(item.timer_id[1:]) for item, _ in crowd.items()]
    assert len(sent) == 12
    for key in range(3):
        mine = [number for number in sent if number % 3 == key]
        assert mine == sorted(mine)


def test_a_probe_is_one_timer() -> None:
    crowd = batching(items=10)
    crowd.receivers.answers["fine"] = (Response(500), 6.0)
    for number in range(500):
        crowd.keep(f"t{number}", "fine", 2.0 + number / 100)
    crowd.run(60.0)
    opened, closed = (
        next(at for at, event in enumerate(crowd.events) if isinstance(event, kind))
        for kind in (BreakerOpened, BreakerClosed)
    )
    ended = [event.items for event in crowd.events[opened:closed] if isinstance(event, BatchEnded)]
    # What was in flight when it opened, and one timer after another until the third, whose success closes it.
    assert ended[1:] == [1, 1], ended
    assert len(outcomes(crowd)) == 500
    assert all(each[-1] == "done" for each in outcomes(crowd).values())


def test_what_an_item_takes_is_never_more_than_it_is_counted_for() -> None:
    row = batching().row('"\\é' * 85, "fine", 2.0, size=10)
    row.timer.namespace, row.timer.firing = "n" * 255, "f" * 40
    timer = row.timer
    item = Invocation(
        timer.namespace, timer.id, timer.execute_at + 1, timer.execute_at + 2, 10, timer.payload,
        f"msg_{'0' * 32}_{timer.firing}", timer.url, "POST", None, 1, (), "00-" + "1" * 32 + "-" + "2" * 16 + "-01",
    )  # fmt: skip
    batch = msgspec.structs.replace(item, items=(item,))
    assert len(body_of(batch)) - len(b'{"items":[]}') < _bytes_of(timer)


@pytest.mark.parametrize("seed", [76, 160])
def test_what_must_not_linger_is_sent_at_once(seed: int) -> None:
    """An occurrence each second beside a longer linger never caught up; and a debounced timer that lingered was put off by
    each later create, beyond its longest delay."""
    assert World(seed, batched=True).run() is None
