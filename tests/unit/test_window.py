"""Single transitions of the window, most of which random runs once found to be wrong."""

from __future__ import annotations

import msgspec
import pytest
from tests.support.window_bench import OTHER, OWNER, UUID, Bench, at_once, completed

from tocsin.model.condition import KEYS_KEPT_US, Condition, OnConflict, Outcome
from tocsin.model.errors import DefiniteFailure, IdempotencyConflict, ShardUnavailable, TimerExists, TimerNotPending
from tocsin.model.timer import Changes, CreateKey, Status, Timer, decode_record, encode_record
from tocsin.ports.store import ShardBatch, StoredRow, generation
from tocsin.timers.engine.rows import (
    ExistingRow,
    FinalAttempt,
    NextAttempt,
    OpKind,
    Row,
    WriteOp,
    conclusion_op,
)


def test_bisected_batch_includes_the_finished_timer_that_it_rewrites() -> None:
    bench = Bench()
    bench.created(10)
    bench.fire()
    bench.finish()
    bench.create(20)
    bench.commit(bench.assemble(rows_max=1, finished_max=0))
    assert not bench.window.finished
    bench.commit(bench.assemble(exact_after=0))
    assert UUID in bench.stored()


def test_not_pending_reply_commits_with_the_finished_delete() -> None:
    bench = Bench()
    bench.create(5, OTHER)
    bench.created(10)
    bench.fire()
    bench.fire()
    bench.finish()
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n", completion=bench.answered))
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], TimerNotPending)
    assert UUID not in bench.stored()
    assert OTHER in bench.stored()


def test_row_loaded_before_its_commit_is_confirmed_supersedes_former_states() -> None:
    bench = Bench()
    bench.created(10)
    bench.fire()
    bench.window.answered(bench.attempt, NextAttempt(bench.attempt.row.timer, 11), 0)
    batch = bench.assemble()
    bench.apply(batch)
    bench.window.truncate(0)
    bench.window.horizon = (10, b"\xff" * 16)
    bench.load()
    bench.fire()
    bench.window.committed(batch, 0)
    assert not bench.window.retrying
    assert bench.finish()


def test_result_superseded_by_its_own_rows_write_counts_after_the_commit() -> None:
    bench = Bench()
    bench.create(10)
    batch = bench.assemble()
    bench.apply(batch)
    bench.window.horizon = (9, b"\xff" * 16)
    bench.load()
    bench.fire()
    assert not bench.finish()
    bench.window.committed(batch, 0)
    assert UUID in bench.window.finished
    assert not bench.window.awaiting_write


@pytest.mark.parametrize("sent", [True, False])
def test_attempt_of_a_former_row_decides_nothing_beside_the_loaded_one(sent: bool) -> None:
    """A timer is replaced while its attempt is in flight. A load returns the new row, which fires, before the commit is
    confirmed."""
    bench = Bench()
    bench.created(10)
    bench.fire()
    former = bench.attempt
    bench.create(20)
    batch = bench.assemble()
    bench.apply(batch)
    bench.window.horizon = (19, b"\xff" * 16)
    bench.load()
    assert bench.fire().key[0] == 20
    assert not bench.finish()
    if sent:
        assert not bench.window.answered(former, NextAttempt(former.row.timer, 30), 0)
    else:
        assert not bench.window.not_sent(former)
    bench.window.committed(batch, 0)
    assert bench.window.due(100) is None
    assert UUID in bench.window.finished


def test_refused_retry_neither_fires_nor_is_lost() -> None:
    bench = Bench()
    bench.created(10)
    bench.fire()
    bench.window.answered(bench.attempt, NextAttempt(bench.attempt.row.timer, 30), 0)
    bench.window.refuse(bench.window.pending.popleft(), DefiniteFailure("no"), 50)
    assert (bench.window.unwritten()[0], *bench.window.awaited()) == (1, 0, 0)
    assert not bench.window.try_refused_again(49)
    assert bench.window.due(1_000) is None
    assert bench.window.try_refused_again(50)
    assert bench.window.awaited() == bench.window.unwritten()
    bench.commit(bench.assemble())
    assert bench.window.unwritten() == bench.window.awaited() == (0, 0)
    assert bench.window.next_key() == (30, UUID)


def test_refused_retry_does_not_replace_what_was_written_meanwhile() -> None:
    """A retry that waits for another try is the only one that comes after a write that was accepted later."""
    bench = Bench()
    bench.created(10)
    bench.fire()
    bench.window.answered(bench.attempt, NextAttempt(bench.attempt.row.timer, 30), 0)
    bench.window.refuse(bench.window.pending.popleft(), DefiniteFailure("no"), 50)
    bench.created(2_000)
    assert bench.window.try_refused_again(50)
    bench.commit(bench.assemble())
    assert bench.stored()[UUID].execute_at == 2_000
    assert bench.window.next_key() == (2_000, UUID)


@pytest.mark.parametrize("loaded", [False, True])
def test_refused_delete_that_is_tried_again_spares_what_was_written_meanwhile(loaded: bool) -> None:
    bench = Bench()
    bench.create(5, OTHER)
    bench.created(10)
    bench.fire()
    bench.fire()
    bench.finish()
    bench.window.delete_refused(bench.window.finished[UUID], 50)
    bench.create(20)
    batch = bench.assemble()
    assert bench.window.try_refused_again(50)
    bench.apply(batch)
    if loaded:
        bench.window.horizon = (19, b"\xff" * 16)
        bench.load()
        bench.fire()
    bench.window.committed(batch, 0)
    bench.commit(bench.assemble(exact_after=0))
    assert bench.stored()[UUID].execute_at == 20


def test_row_that_is_suspended_because_it_was_not_sent_does_not_fire_meanwhile() -> None:
    bench = Bench()
    bench.created(10)
    bench.fire()
    assert bench.window.not_sent(bench.attempt, "egress")
    assert bench.window.due(100) is None
    bench.commit(bench.assemble())
    assert bench.stored()[UUID].suspended == "egress"


def test_row_about_to_be_suspended_does_not_fire_when_loaded_again() -> None:
    bench = Bench()
    bench.created(10)
    row = bench.window.due(100)
    assert row is not None
    bench.window.defer()
    bench.window.accept(WriteOp(OpKind.SUSPEND, UUID, "n", expected=row.generation, reason="namespace:n"))
    bench.window.truncate(0)
    bench.load()
    assert UUID in bench.window.rows
    assert bench.window.due(100) is None


def test_row_about_to_be_suspended_does_not_fire_after_the_suspension_of_a_former_row() -> None:
    bench = Bench()
    bench.created(10)
    # The client's write comes first, so that the former row's suspension has no effect.
    bench.create(20)
    for _ in range(2):
        row = bench.window.due(100)
        assert row is not None
        bench.window.defer()
        bench.window.suspend(row, "namespace:n")
        bench.commit(bench.assemble(rows_max=1))
    bench.window.truncate(0)
    bench.load()
    assert UUID in bench.window.rows
    assert bench.window.due(100) is None


def test_deferred_row_that_is_put_back_waits_for_its_instant() -> None:
    bench = Bench()
    bench.created(10)
    row = bench.window.due(100)
    assert row is not None
    bench.window.defer()
    assert bench.window.due(100) is None
    bench.window.put_back(row)
    assert bench.window.due(9) is None
    assert bench.window.due(10) is row


def test_result_that_arrives_during_its_hand_over_counts() -> None:
    """The result arrives while the batch is written that leaves the attempt to this node."""
    bench = Bench()
    bench.created(10)
    bench.fire()
    bench.window.hand_over(5_000)
    batch = bench.assemble()
    bench.finish()
    bench.commit(batch)
    assert bench.stored()[UUID].execute_at > 5_000
    assert not bench.window.undecided
    bench.commit(bench.assemble())
    assert UUID not in bench.stored()


def test_handed_over_result_is_ignored_after_the_timer_changed() -> None:
    bench = Bench()
    bench.created(10)
    row = bench.fire()
    bench.window.hand_over(5_000)
    bench.commit(bench.assemble())
    assert bench.attempt.handed_over_as and not bench.finish()
    late = conclusion_op(row, bench.attempt.handed_over_as, FinalAttempt(completed(row.timer)))
    bench.create(20)
    bench.window.accept(late)
    bench.commit(bench.assemble())
    assert bench.stored()[UUID].execute_at == 20


def nested(levels: int) -> msgspec.Raw:
    return msgspec.Raw(b"[" * levels + b"]" * levels)


def test_update_of_a_record_nested_deeper_than_the_stack_is_refused_alone() -> None:
    bench = Bench()
    timer = Timer("n", "t", 20_000, "http://h/", 0, 0, payload=nested(5_000))
    record = encode_record(timer)
    deep = StoredRow(20_000, UUID, generation(0, OWNER, 1), "n", "t", (), record)
    at_once(bench.store.apply([ShardBatch(0, bench.window.epoch, OWNER, upserts=[deep])]))
    bench.window.accept(WriteOp(OpKind.UPDATE, UUID, "n", changes=Changes(tags=("a",)), completion=bench.answered))
    bench.created(10, OTHER)
    refused, written = bench.answers
    assert isinstance(refused, TimerNotPending)
    assert isinstance(written, Row)
    assert bench.stored()[UUID].record == record


def test_write_that_cannot_be_encoded_is_refused_alone() -> None:
    bench = Bench()
    op = bench.create(10)
    assert op.timer is not None
    op.timer.url = "http://h/\ud800"
    bench.created(20, OTHER)
    refused, written = bench.answers
    assert isinstance(refused, DefiniteFailure)
    assert isinstance(written, Row)
    assert bench.stored().keys() == {OTHER}


def test_retry_that_cannot_be_encoded_suspends_its_timer_with_the_reason() -> None:
    bench = Bench()
    bench.created(10)
    row = bench.fire()
    broken = msgspec.structs.replace(row.timer, last_error="\ud800")
    bench.window.answered(bench.attempt, NextAttempt(broken, 50), 0)
    bench.commit(bench.assemble())
    bench.commit(bench.assemble())
    assert bench.stored()[UUID].suspended.startswith("bad_record: UnicodeEncodeError")
    assert not bench.window.retrying and not bench.window.awaiting_write and not bench.window.has_work()


def test_retry_uses_the_reserve_of_the_row_and_is_suspended_beyond_it() -> None:
    bench = Bench()
    bench.row_bytes_max, bench.row_reserve_bytes = 2_000, 1_000
    bench.created(10)
    for error, suspended in (("x" * 1_500, None), ("x" * 2_000, "bad_record: PayloadTooLarge: ")):
        retried = msgspec.structs.replace(bench.fire().timer, last_error=error)
        bench.window.answered(bench.attempt, NextAttempt(retried, 50), 0)
        bench.commit(bench.assemble())
        bench.commit(bench.assemble())
        found = bench.stored()[UUID].suspended
        assert found == suspended if suspended is None else found.startswith(suspended)
    assert not bench.window.retrying and not bench.window.awaiting_write and not bench.window.has_work()


def test_finished_timer_whose_history_cannot_be_encoded_is_deleted_without_history() -> None:
    bench = Bench()
    bench.created(10)
    row = bench.fire()
    broken = msgspec.structs.replace(completed(row.timer), last_error="\ud800")
    bench.window.answered(bench.attempt, FinalAttempt(broken), 0)
    batch = bench.assemble()
    bench.commit(batch)
    assert UUID not in bench.stored()
    assert [uuid for uuid, _ in batch.unusable] == [UUID]


def test_wait_counts_from_the_later_of_instant_and_acceptance() -> None:
    bench = Bench()
    accepted = {UUID: (100, 5_000), OTHER: (4_000, 0)}
    for uuid, (at, accepted_at) in accepted.items():
        op = bench.create(at, uuid)
        assert op.timer is not None
        op.timer.updated_at = accepted_at
    bench.commit(bench.assemble())
    waits = [(now, bench.window.longest_wait_us(now)) for now in (90, 3_000, 4_500, 5_000, 9_000)]
    assert waits == [(90, 0), (3_000, 0), (4_500, 500), (5_000, 1_000), (9_000, 5_000)]
    # The one with the earlier instant was accepted later.
    due = bench.window.due(9_000)
    assert due is not None
    assert (due.key[0], due.waited_us(9_000), due.waited_us(4_990), due.waited_us(90)) == (100, 4_000, 0, -10)


# ---------------------------------------------------------------------- conditional creates


def keyed(
    bench: Bench, key: str, *, at: int = 10, on_conflict: OnConflict = OnConflict.REPLACE, body: str = "b"
) -> WriteOp:
    timer = Timer(
        "n", "t", at, "http://h/?token=secret&x=1", 0, 0, msgspec.Raw(b'"p"'), headers={"authorization": "secret"}
    )
    op = WriteOp(OpKind.CREATE, UUID, "n", timer=timer, condition=Condition(on_conflict, CreateKey(key, body)))
    op.completion = bench.answered
    bench.window.accept(op)
    return op


def test_idempotency_key_outlives_its_timer_by_a_day_in_a_slim_record() -> None:
    bench = Bench()
    keyed(bench, "k")
    bench.commit(bench.assemble())
    bench.fire()
    bench.finish()
    # The namespace keeps finished timers for a millisecond.
    bench.commit(bench.assemble(exact_after=0))
    (row,) = bench.store._shards[0].history[UUID].values()
    timer = decode_record(row.record)
    assert row.expires_at - row.finished_at == KEYS_KEPT_US
    assert (timer.status, timer.url) == (Status.COMPLETED, "http://h/?token=[redacted]&x=1")
    assert (bytes(timer.payload), timer.headers) == (b"null", None)
    keyed(bench, "k")
    bench.commit(bench.assemble())
    answer = bench.answers[-1]
    assert isinstance(answer, ExistingRow)
    assert (answer.outcome, answer.timer.status) == (Outcome.REPLAYED, Status.COMPLETED)
    assert UUID not in bench.stored()


def test_two_creates_with_one_key_in_one_batch_write_once() -> None:
    bench = Bench()
    first = keyed(bench, "k", at=10)
    keyed(bench, "k", at=20)
    keyed(bench, "k", body="other")
    keyed(bench, "l", on_conflict=OnConflict.REJECT)
    bench.commit(bench.assemble())
    made, again, other, rejected = bench.answers
    assert (type(made), made.key) == (Row, (10, UUID))
    assert (again.outcome, again.key, again.timer.firing) == (Outcome.REPLAYED, (10, UUID), first.timer.firing)
    assert isinstance(other, IdempotencyConflict)
    assert isinstance(rejected, TimerExists)
    assert bench.stored()[UUID].execute_at == 10


def test_create_that_is_assembled_again_stores_its_key_once() -> None:
    bench = Bench()
    keyed(bench, "k")
    bench.commit(bench.assemble())
    keyed(bench, "l")
    bench.window.abandon(bench.assemble())
    bench.commit(bench.assemble())
    assert [key.key for key in decode_record(bench.stored()[UUID].record).keys] == ["k", "l"]


def test_first_try_of_a_key_reads_nothing_and_stores_the_key() -> None:
    bench = Bench()
    for key, on_conflict, reads in (
        ("k", OnConflict.REPLACE, False), ("l", OnConflict.REPLACE, False), ("l", OnConflict.KEEP, True),
    ):  # fmt: skip
        op = keyed(bench, key, on_conflict=on_conflict)
        assert op.condition is not None
        op.condition = msgspec.structs.replace(op.condition, first_try=True)
        assert bench.window.to_fetch(10, 10) == [UUID] * reads
        bench.commit(bench.assemble())
    # Keys of a timer in memory are carried over, since they cost nothing.
    assert [key.key for key in decode_record(bench.stored()[UUID].record).keys] == ["k", "l"]
    assert bench.answers[-1].outcome is Outcome.REPLAYED


def test_create_that_keeps_a_timer_in_flight_does_not_supersede_its_result() -> None:
    bench = Bench()
    keyed(bench, "k")
    bench.commit(bench.assemble())
    bench.fire()
    keyed(bench, "k")
    batch = bench.assemble()
    # The result arrives while the create may still replace the timer.
    assert not bench.finish()
    bench.commit(batch)
    assert (bench.answers[-1].outcome, bench.answers[-1].timer.status) == (Outcome.REPLAYED, Status.PENDING)
    assert UUID in bench.window.finished
    bench.commit(bench.assemble(exact_after=0))
    assert not bench.stored()


def test_undecodable_record_is_overwritten_only_by_a_replacing_create() -> None:
    bench = Bench()
    row = StoredRow(50_000, UUID, generation(1, OWNER, 1), "n", "t", (), b"?")
    bench.store._shards[0].upsert([row])
    for on_conflict in (OnConflict.KEEP, OnConflict.REJECT):
        keyed(bench, "k", on_conflict=on_conflict)
        bench.commit(bench.assemble())
        assert isinstance(bench.answers[-1], TimerExists)
        assert "can't be read" in str(bench.answers[-1])
    keyed(bench, "k")
    bench.commit(bench.assemble())
    assert decode_record(bench.stored()[UUID].record).keys == (CreateKey("k", "b"),)


def test_create_with_a_key_does_not_replace_a_newer_releases_record() -> None:
    bench = Bench()
    row = StoredRow(50_000, UUID, generation(1, OWNER, 1), "n", "t", (), b'{"v":3}')
    bench.store._shards[0].upsert([row])
    keyed(bench, "k")
    bench.commit(bench.assemble())
    assert isinstance(bench.answers[-1], ShardUnavailable)
    assert bench.stored()[UUID] == row
