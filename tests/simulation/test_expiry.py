"""Timers whose time is over, in virtual time, and the transitions of the window that end them."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.simulation.crowd import SECOND, Crowd
from tests.support.window_bench import UUID, Bench
from tocsin.administration import namespaces, put_namespace
from tocsin.model.answer import Response
from tocsin.model.errors import TimerNotPending
from tocsin.model.ids import timer_uuid
from tocsin.model.namespace import HistoryMode
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Changes, Status, Timer, decode_record
from tocsin.ports.observer import TimerExpired
from tocsin.timers.engine.attempt import conclude, conclude_expired
from tocsin.timers.engine.idempotency import keeps
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.rows import FinalAttempt, InFlightAttempt, NextAttempt, OpKind, Row, WriteOp

RETRIES = RetryPolicy(max_attempts=5, initial_interval_us=10 * SECOND, backoff_multiplier=1.0)


def limited(expire_after_s: float = 5, **fields: object) -> Timer:
    timer = Timer(
        "a", "t", 100 * SECOND, "http://h/", 0, 0, expire_after_us=int(expire_after_s * SECOND), retry=RETRIES
    )
    return msgspec.structs.replace(timer, **fields)


def row_of(timer: Timer, at_s: float = 100) -> Row:
    return Row((int(at_s * SECOND), UUID), b"g" * 32, timer, 0)


def finished_in(crowd: Crowd) -> dict[str, Timer]:
    rows = [row for each in crowd.store._shards[0].history.values() for row in each.values()]
    return {row.timer_id: decode_record(row.record) for row in rows}


# ---------------------------------------------------------------------- the decision


def test_attempt_may_begin_up_to_the_limit_and_not_after_it() -> None:
    assert conclude_expired(row_of(limited()), 105 * SECOND) is None
    conclusion = conclude_expired(row_of(limited()), 105 * SECOND + 1)
    assert conclusion is not None
    ended = conclusion.timer
    assert (ended.status, ended.executed_at, ended.attempts) == (Status.EXPIRED, 105 * SECOND + 1, 0)
    assert ended.last_error == "EXPIRED: no attempt may begin after 1970-01-01T00:01:45Z, and none had begun"


def test_timer_with_an_attempt_has_failed_and_keeps_its_error() -> None:
    conclusion = conclude_expired(row_of(limited(attempts=2, last_error="HTTP_503"), 106), 106 * SECOND)
    assert conclusion is not None
    assert conclusion.timer.status is Status.FAILED
    assert conclusion.timer.last_error == "HTTP_503; EXPIRED: no attempt may begin after 1970-01-01T00:01:45Z"


def test_timer_whose_attempt_was_handed_over_and_lost_has_failed() -> None:
    conclusion = conclude_expired(row_of(limited(), 115), 115 * SECOND)
    assert conclusion is not None
    assert conclusion.timer.status is Status.FAILED
    assert conclusion.timer.last_error is not None
    assert conclusion.timer.last_error.endswith("an attempt had begun, and its result is unknown")


@pytest.mark.parametrize(("expire_after_s", "retried"), [(12, True), (11, True), (10.5, False)])
def test_retry_that_would_begin_too_late_is_not_planned(expire_after_s: float, retried: bool) -> None:
    attempt = InFlightAttempt(row_of(limited(expire_after_s)), superseded=False, number=1)
    attempt.fired_at = 100 * SECOND
    conclusion, word = conclude(attempt, Response(503), SECOND, None, EngineLimits(), now_us=101 * SECOND, jitter=0.0)
    assert isinstance(conclusion, NextAttempt if retried else FinalAttempt)
    if not retried:
        assert (conclusion.timer.status, word) == (Status.FAILED, "failed")
        assert (
            conclusion.timer.last_error == "HTTP_503; EXPIRED: no attempt may begin after 1970-01-01T00:01:50.500000Z"
        )
        assert conclusion.timer.attempt_log[-1].error == "HTTP_503"


def test_reschedule_by_the_receiver_moves_the_limit() -> None:
    attempt = InFlightAttempt(row_of(limited()), superseded=False, number=1)
    body = b'{"nextExecuteAt":"1970-01-01T01:00:00Z"}'
    conclusion, _ = conclude(
        attempt, Response(200, body), SECOND, None, EngineLimits(), now_us=101 * SECOND, jitter=0.0
    )
    assert isinstance(conclusion, NextAttempt)
    assert conclusion.timer.expires_at == 3_605 * SECOND


def test_namespace_that_keeps_failures_keeps_expired_timers() -> None:
    assert keeps(HistoryMode.FAILURES, limited(status=Status.EXPIRED))
    assert not keeps(HistoryMode.NONE, limited(status=Status.EXPIRED))


# ---------------------------------------------------------------------- the window


def expiring(bench: Bench) -> tuple[Row, FinalAttempt]:
    """A due row of which no attempt may begin any more, and its end."""
    op = bench.create(10)
    assert op.timer is not None
    op.timer.expire_after_us = 5
    bench.commit(bench.assemble())
    row = bench.window.due(100)
    assert row is not None
    conclusion = conclude_expired(row, 100)
    assert conclusion is not None
    return row, conclusion


def test_expired_timer_leaves_with_the_next_batch_and_its_history() -> None:
    bench = Bench()
    row, conclusion = expiring(bench)
    assert bench.window.end_unfired(row, conclusion, 0)
    assert bench.window.due(100) is None
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n", completion=bench.answered))
    batch = bench.assemble()
    assert [each.status for each in batch.store.history] == [Status.EXPIRED]
    bench.commit(batch)
    assert isinstance(bench.answers[-1], TimerNotPending)
    assert bench.stored() == {}
    assert not bench.window.finished


def test_update_before_the_end_of_an_expired_timer_sets_a_new_limit() -> None:
    bench = Bench()
    row, conclusion = expiring(bench)
    bench.window.accept(WriteOp(OpKind.UPDATE, UUID, "n", changes=Changes(execute_at=200), completion=bench.answered))
    assert not bench.window.end_unfired(row, conclusion, 0)
    bench.commit(bench.assemble())
    moved = bench.window.due(200)
    assert moved is not None
    assert moved.timer.expires_at == 205
    assert not bench.window.finished


# ---------------------------------------------------------------------- a node


def test_timers_that_expired_during_an_outage_are_never_called() -> None:
    crowd = Crowd()
    for i in range(300):
        crowd.keep(f"late{i}", "fine", -20, expire_after_s=5)
    crowd.keep("in time", "fine", -20, expire_after_s=60)
    crowd.run(15)
    assert {call.invocation.timer_id for call in crowd.receivers.calls} == {"in time"}
    statuses = [timer.status for timer in finished_in(crowd).values()]
    assert (statuses.count(Status.EXPIRED), statuses.count(Status.COMPLETED)) == (300, 1)
    expired = [event for event in crowd.events if isinstance(event, TimerExpired)]
    assert len(expired) == 300
    assert {event.status for event in expired} == {"expired"}
    assert not crowd.store._shards[0].live


def test_deferred_timer_expires_while_its_destination_is_busy() -> None:
    crowd = Crowd(destination_in_flight_max=1, destination_in_flight_min=1)
    crowd.keep("first", "hung", 7, timeout_s=10)
    crowd.keep("second", "hung", 7.5, expire_after_s=3)
    crowd.run(25)
    assert {call.invocation.timer_id for call in crowd.receivers.calls} == {"first"}
    assert finished_in(crowd)["second"].status is Status.EXPIRED


def test_timer_of_a_paused_namespace_ends_when_it_is_resumed() -> None:
    crowd = Crowd()
    crowd.paused.add("b")
    crowd.keep("t", "fine", 7, namespace="b", expire_after_s=2)

    async def resume() -> None:
        await asyncio.sleep(20 - crowd.loop.time())
        assert timer_uuid("b", "t") in crowd.store._shards[0].live
        (known,) = [each for each in await namespaces(crowd.store) if each.name == "b"]
        await put_namespace(crowd.store, known.changed(crowd.now_us(), known.signing, paused=False), create=False)

    crowd.run(60, resume)
    assert not crowd.receivers.calls
    assert finished_in(crowd)["t"].status is Status.EXPIRED
