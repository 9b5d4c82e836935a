"""Which timers go into the next request of a batcher."""

from __future__ import annotations

from tocsin_client import CreateTimer
from tocsin_client._core.batch_queue import ITEMS_PER_REQUEST, LINGER_S, WAITING_MAX, BatchQueue
from tocsin_client._core.batches import item_of


def added(queue, *names, owner="", now=0.0, payload=None):
    for name in names:
        timer = CreateTimer(namespace="n", id=name, callback_url="http://x/", payload=payload)
        queue.add(item_of(timer), name, owner, now)


def taken(queue, now):
    found = queue.take(now)
    return None if found is None else [entry.waiter for entry in found[1]]


def test_lingers_for_more():
    queue = BatchQueue()
    added(queue, "a", now=1.0)
    added(queue, "b", now=1.004)
    assert taken(queue, 1.004) is None
    assert queue.ready_at() == 1.0 + LINGER_S
    assert taken(queue, 1.0 + LINGER_S) == ["a", "b"]


def test_a_full_request_goes_at_once():
    queue = BatchQueue()
    added(queue, *map(str, range(ITEMS_PER_REQUEST + 1)))
    assert len(taken(queue, 0.0)) == ITEMS_PER_REQUEST
    assert taken(queue, 0.0) is None and queue.waiting == 1


def test_two_requests_for_each_owner():
    queue = BatchQueue()
    queue.closing = True
    for owner in ("x", "y"):
        added(queue, *(f"{owner}{i}" for i in range(3 * ITEMS_PER_REQUEST)), owner=owner)
    requests = [queue.take(0.0) for _ in range(5)]
    assert [request and request[0] for request in requests] == ["x", "x", "y", "y", None]
    queue.settled(*requests[2])
    assert queue.take(0.0)[0] == "y"


def test_a_timer_waits_for_the_request_with_its_predecessor():
    queue = BatchQueue()
    added(queue, "a", "b", "a", "c")
    first = queue.take(1.0)
    assert [entry.waiter for entry in first[1]] == ["a", "b", "c"]
    assert taken(queue, 1.0) is None and queue.ready_at() == float("inf")
    queue.settled(*first)
    assert taken(queue, 1.0) == ["a"]


def test_a_timer_waits_behind_its_predecessor_also_if_its_owner_has_changed():
    queue = BatchQueue()
    queue.closing = True
    added(queue, *map(str, range(2 * ITEMS_PER_REQUEST)), owner="slow")
    slow = [queue.take(0.0), queue.take(0.0)]
    added(queue, "a", "b", owner="slow")
    added(queue, "a", "c", owner="other")
    assert taken(queue, 0.0) == ["c"]
    queue.settled(*slow[0])
    first = queue.take(0.0)
    assert [entry.waiter for entry in first[1]] == ["a", "b"] and first[0] == "slow"
    queue.settled(*first)
    assert taken(queue, 0.0) == ["a"]
    added(queue, "a", owner="other")
    assert queue._places == {("n", "a"): ("other", 1)}, "what does not wait has no lane"


def test_requests_are_bounded_in_bytes():
    queue = BatchQueue()
    added(queue, *map(str, range(100)), payload="x" * 100_000)
    assert len(taken(queue, 1.0)) == 83


def test_full_and_idle():
    queue = BatchQueue()
    assert queue.idle
    added(queue, *map(str, range(WAITING_MAX)))
    assert queue.full
    request = queue.take(1.0)
    assert not queue.full and not queue.idle
    queue.settled(*request)
