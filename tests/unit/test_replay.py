"""Replays: a finished timer becomes pending again, as a run of its own under the same webhook-id."""

from __future__ import annotations

import msgspec
from tests.support.window_bench import UUID, Bench, at_once, completed

from tocsin.model.condition import slim
from tocsin.model.errors import ShardUnavailable, TimerNotFound, TimerNotReplayable, TimerPending
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import Changes, CreateKey, LoggedAttempt, Status, Timer, decode_record, encode_record
from tocsin.ports.store import ListQuery
from tocsin.timers.engine.rows import FinalAttempt, NextAttempt, OpKind, Row, WriteOp


def replay(bench: Bench, changes: Changes | None = None, expected: bytes = b"") -> WriteOp:
    op = WriteOp(OpKind.REPLAY, UUID, "n", changes=changes or Changes(), expected=expected, completion=bench.answered)
    bench.window.accept(op)
    return op


def fail(bench: Bench, **fields: object) -> None:
    timer = bench.attempt.row.timer
    failed = msgspec.structs.replace(
        timer, status=Status.FAILED, attempts=1, first_attempt_at=3, executed_at=4, last_error="HTTP_500",
        attempt_log=(LoggedAttempt(3, 1, 500, "HTTP_500"),), **fields,
    )  # fmt: skip
    assert bench.window.answered(bench.attempt, FinalAttempt(failed), 0)


def failed(bench: Bench, *, durable: bool) -> None:
    bench.created(10)
    bench.fire()
    fail(bench)
    if durable:
        bench.commit(bench.assemble(exact_after=0))
        assert not bench.stored()


def ends(bench: Bench) -> list[Status]:
    return [row.status for row in at_once(bench.store.runs(0, UUID, None, 10))]


def test_replay_of_an_end_that_is_not_durable_writes_that_end_once() -> None:
    bench = Bench()
    failed(bench, durable=False)
    replay(bench)
    # A batch that takes no finished timers but those that it needs.
    batch = bench.assemble(finished_max=0)
    assert [row.status for row in batch.store.history] == [Status.FAILED]
    assert len(batch.finished) == len(batch.store.upserts) == 1
    assert batch.store.deletes == []


def test_failed_timer_fires_again_under_its_webhook_id_with_everything_else_from_the_start() -> None:
    for durable in (True, False):
        bench = Bench()
        failed(bench, durable=durable)
        former = decode_record(at_once(bench.store.fetch(0, [UUID]))[UUID].finished.record) if durable else None
        replay(bench, Changes(execute_at=70, url="http://other/", headers={"a": "b"}))
        bench.commit(bench.assemble())
        answer = bench.answers[-1]
        assert isinstance(answer, Row)
        timer = answer.timer
        assert former is None or timer.firing == former.firing
        assert (answer.key, timer.execute_at, timer.url, timer.headers) == ((70, UUID), 70, "http://other/", {"a": "b"})
        assert (timer.status, timer.attempts, timer.first_attempt_at) == (Status.PENDING, 0, None)
        assert (timer.last_error, timer.executed_at, timer.attempt_log) == (None, None, ())
        assert decode_record(bench.stored()[UUID].record) == timer
        # What came before stays in the history.
        assert ends(bench) == [Status.FAILED]
        assert bench.fire().timer.firing == timer.firing
        bench.finish()
        bench.commit(bench.assemble(exact_after=0))
        assert ends(bench) == [Status.COMPLETED, Status.FAILED]


def test_replayed_failure_is_dealt_with_whether_or_not_it_was_durable() -> None:
    for durable in (True, False):
        bench = Bench()
        failed(bench, durable=durable)
        assert len(at_once(bench.store.failures(0, None, 10))) == durable
        replay(bench, Changes(execute_at=50))
        bench.commit(bench.assemble())
        assert not at_once(bench.store.failures(0, None, 10))
        bench.fire()
        fail(bench)
        bench.commit(bench.assemble(exact_after=0))
        # It has failed again.
        assert len(at_once(bench.store.failures(0, None, 10))) == 1


def test_replay_without_an_instant_is_due_at_once() -> None:
    bench = Bench()
    failed(bench, durable=True)
    replay(bench)
    bench.commit(bench.assemble())
    assert bench.answers[-1].key == (0, UUID)
    assert (bench.answers[-1].timer.attempts, bench.answers[-1].timer.first_attempt_at) == (0, None)


def test_pending_timer_is_not_replayed_wherever_it_is() -> None:
    bench = Bench()
    bench.create(10)
    replay(bench)
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], TimerPending)
    bench.fire()
    replay(bench)
    bench.window.answered(bench.attempt, NextAttempt(bench.attempt.row.timer, 20_000), 0)
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], TimerPending)
    # The retry, which the replay had kept waiting, moves the timer beyond what is in memory.
    bench.commit(bench.assemble())
    assert bench.window.present(UUID) is None
    replay(bench)
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], TimerPending)
    assert bench.stored()[UUID].execute_at == 20_000


def test_result_that_a_replay_kept_waiting_counts_once_the_replay_is_refused() -> None:
    bench = Bench()
    bench.created(10)
    bench.fire()
    replay(bench)
    assert not bench.finish()
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], TimerPending)
    assert UUID in bench.window.finished


def test_canceled_timer_is_replayed_and_a_replayed_one_canceled_in_one_batch() -> None:
    bench = Bench()
    bench.created(10)
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n"))
    replay(bench, Changes(execute_at=50))
    bench.commit(bench.assemble())
    assert bench.stored()[UUID].execute_at == 50
    assert ends(bench) == [Status.CANCELED]
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n"))
    replay(bench, Changes(execute_at=60))
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n"))
    bench.commit(bench.assemble())
    assert not bench.stored()
    assert len(ends(bench)) == 3


def test_create_of_the_same_batch_is_not_replayed() -> None:
    bench = Bench()
    failed(bench, durable=False)
    bench.create(30)
    replay(bench)
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], TimerPending)
    assert bench.stored()[UUID].execute_at == 30


def test_only_the_expected_run_is_replayed() -> None:
    bench = Bench()
    failed(bench, durable=False)
    generation = bench.window.finished[UUID].row.generation
    replay(bench, expected=bytes(32))
    replay(bench, expected=generation)
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-2], TimerNotReplayable)
    assert isinstance(bench.answers[-1], Row)


def test_timer_of_which_nothing_is_kept_is_not_found_and_a_reduced_one_not_replayable() -> None:
    bench = Bench()
    bench.history_rule = lambda _: (HistoryMode.NONE, 1_000)  # type: ignore[method-assign]
    failed(bench, durable=True)
    replay(bench)
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], TimerNotFound)
    bench.created(10)
    bench.fire()
    fail(bench, keys=(CreateKey("a", "b"),))
    bench.commit(bench.assemble(exact_after=0))
    replay(bench)
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], TimerNotReplayable)
    assert slim(Timer("n", "t", 1, "http://h/", 0, 0)).reduced


def test_failed_run_is_replayed_after_a_later_one_that_is_not_kept() -> None:
    bench = Bench()
    bench.history_rule = lambda _: (HistoryMode.FAILURES, 1_000)  # type: ignore[method-assign]
    failed(bench, durable=True)
    bench.created(20)
    bench.fire()
    bench.window.answered(bench.attempt, FinalAttempt(completed(bench.attempt.row.timer)), 0)
    replay(bench)
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], Row)
    assert UUID in bench.stored()


def test_record_that_cannot_be_read_is_not_replayed() -> None:
    for damage, error in ((b"{", TimerNotReplayable), (b'{"v":2}', ShardUnavailable)):
        bench = Bench()
        failed(bench, durable=True)
        versions = bench.store._shards[0].history[UUID]
        (generation,) = versions
        versions[generation] = versions[generation]._replace(record=damage)
        replay(bench)
        bench.commit(bench.assemble())
        assert isinstance(bench.answers[-1], error)


def test_replay_whose_history_is_purged_meanwhile_is_complete() -> None:
    bench = Bench()
    failed(bench, durable=True)
    replay(bench, Changes(execute_at=50))
    batch = bench.assemble()
    assert at_once(bench.store.purge_history(10**18, 10)) == 2
    bench.commit(batch)
    assert decode_record(bench.stored()[UUID].record).url == "http://h/"
    assert not at_once(bench.store.list(ListQuery(("n",), (0,), frozenset({Status.FAILED})))).rows


def test_limit_counts_from_the_new_instant() -> None:
    bench = Bench()
    bench.created(10)
    bench.fire()
    fail(bench, expire_after_us=5)
    replay(bench, Changes(execute_at=90))
    bench.commit(bench.assemble())
    assert bench.answers[-1].timer.expires_at == 95


def test_replayed_run_is_recorded_apart_from_the_one_before() -> None:
    bench = Bench()
    failed(bench, durable=True)
    replay(bench, Changes(execute_at=50))
    bench.commit(bench.assemble())
    row = bench.fire()
    tried = msgspec.structs.replace(
        row.timer, attempts=1, first_attempt_at=51, attempt_log=(LoggedAttempt(51, 1, 500),)
    )
    # It leaves memory, so that its state is recorded.
    bench.window.answered(bench.attempt, NextAttempt(tried, 20_000), 0)
    bench.commit(bench.assemble())
    generations = [row.generation for row in at_once(bench.store.runs(0, UUID, None, 10))]
    assert len(set(generations)) == 2
    assert generations == sorted(generations, reverse=True)


def test_a_replay_follows_a_failure_until_the_timer_has_succeeded() -> None:
    for durable in (True, False):
        bench = Bench()
        failed(bench, durable=durable)
        for after_a_failure in (True, False):
            replay(bench, Changes(execute_at=50))
            bench.commit(bench.assemble())
            assert bench.answers[-1].timer.failed_before is after_a_failure
            bench.fire()
            bench.finish()
            if durable:
                bench.commit(bench.assemble(exact_after=0))


def test_update_of_a_replayed_timer_begins_a_firing_of_its_own() -> None:
    bench = Bench()
    failed(bench, durable=True)
    op = replay(bench, Changes(execute_at=50))
    bench.commit(bench.assemble())
    assert bench.answers[-1].timer.replay == bench.window.queue.firing_of(op)
    update = WriteOp(OpKind.UPDATE, UUID, "n", changes=Changes(execute_at=60), completion=bench.answered)
    bench.window.accept(update)
    bench.commit(bench.assemble())
    timer = bench.answers[-1].timer
    assert (timer.firing, timer.replay) == (bench.window.queue.firing_of(update), "")
    assert b"replay" not in encode_record(timer)
