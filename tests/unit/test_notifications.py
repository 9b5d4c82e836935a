"""Notifications of the ends of timers: what is written with them, and what is not."""

from __future__ import annotations

import msgspec
from tests.support.cases import each

from tocsin.model.answer import Response
from tocsin.model.hooks import Event, Hook, Hooks
from tocsin.model.namespace import Answers, HistoryMode, Namespace
from tocsin.model.timer import Status, Timer, decode_record
from tocsin.ports.store import KEY_MAX, ShardBatch, StoredRow, generation
from tocsin.timers.engine.assembly import Assembly
from tocsin.timers.engine.attempt import conclude
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.rows import FinalAttempt, InFlightAttempt, OpKind, Row, WriteOp
from tocsin.timers.engine.window import Window

UUID = bytes.fromhex("11223344" + "aa" * 12)
HOOK, DEFAULT = Hook("http://hooks.example/own"), Hook("http://hooks.example/default")


def finished(status: Status, hooks: Hooks | None, *, at_us: int = 1_000, failed_before: bool = False) -> Window:
    """A window with a timer that has ended."""
    window = Window(0, 1, bytes(16))
    timer = Timer("n", "t", at_us, "http://x.example/?token=secret", 0, 0, hooks=hooks, failed_before=failed_before)
    request = window.announce_load(KEY_MAX)
    assert request is not None
    window.loaded(request, [Row((at_us, UUID), generation(1, bytes(16), 0), timer, 0)], KEY_MAX)
    row = window.due(at_us)
    assert row is not None
    ended = msgspec.structs.replace(timer, status=status, executed_at=at_us, attempts=1, last_error=None)
    assert window.answered(window.dispatch(row), FinalAttempt(ended), 0)
    return window


def written(window: Window, *, now_us: int = 2_000, defaults: Hooks | None = None) -> ShardBatch:
    """The batch that ends it."""
    assembly = Assembly(
        window,
        now_us=now_us,
        boot_us=0,
        history_rule=lambda namespace: (HistoryMode.ALL, 1),
        failure_retention_us=1,
        hooks_of=lambda namespace: defaults,
    )
    return assembly.batch(rows_max=100, bytes_max=1 << 20, finished_max=100, exact_after_us=0).store


def sent_to(rows: list[StoredRow]) -> list[tuple[str, Event | None]]:
    timers = [decode_record(row.record) for row in rows]
    return sorted((timer.url, timer.notifies) for timer in timers)


@each("status, event", [(Status.COMPLETED, "success"), (Status.FAILED, "failure"), (Status.EXPIRED, "failure")])
def test_end_is_reported_in_its_batch_to_the_own_hook_or_else_the_namespaces(status: Status, event: str) -> None:
    defaults = Hooks(failure=DEFAULT, success=DEFAULT)
    assert sent_to(written(finished(status, Hooks(**{event: HOOK})), defaults=defaults).upserts) == [(HOOK.url, event)]
    assert sent_to(written(finished(status, None), defaults=defaults).upserts) == [(DEFAULT.url, event)]
    assert written(finished(status, None)).upserts == []


def test_recovery_is_a_success_after_a_failure() -> None:
    hooks = Hooks(recovery=HOOK)
    assert written(finished(Status.COMPLETED, hooks)).upserts == []
    assert sent_to(written(finished(Status.COMPLETED, hooks, failed_before=True)).upserts) == [(HOOK.url, "recovery")]


def test_cancel_reports_nothing() -> None:
    window = Window(0, 1, bytes(16))
    timer = Timer("n", "t", 9_000, "http://x.example/", 0, 0, hooks=Hooks(HOOK, HOOK, HOOK))
    request = window.announce_load(KEY_MAX)
    assert request is not None
    window.loaded(request, [Row((9_000, UUID), generation(1, bytes(16), 0), timer, 0)], KEY_MAX)
    window.accept(WriteOp(OpKind.DELETE, UUID, "n"))
    batch = written(window, defaults=Hooks(HOOK, HOOK, HOOK))
    assert (batch.deletes, batch.upserts) == ([UUID], [])


def test_notification_of_a_notification_is_none() -> None:
    window = finished(Status.FAILED, None)
    entry = window.finished[UUID]
    entry.row.timer.notifies = entry.timer.notifies = Event.FAILURE
    batch = written(window, defaults=Hooks(failure=DEFAULT))
    assert batch.upserts == []
    assert [row.namespace for row in batch.history] == ["n/notify"]


def test_notification_lies_above_the_delete_watermark_although_the_clock_was_set_back() -> None:
    batch = written(finished(Status.FAILED, Hooks(failure=HOOK), at_us=50_000), now_us=10_000)
    assert batch.delete_to == (50_000, UUID)
    assert [row.execute_at for row in batch.upserts] == [50_001]


def test_notification_has_its_subjects_shard_and_chunk_and_one_uuid_however_often_it_is_written() -> None:
    window = finished(Status.FAILED, Hooks(failure=HOOK))
    (first,), (again,) = written(window).upserts, written(window).upserts
    assert first.uuid == again.uuid != UUID
    assert first.uuid[:4] == UUID[:4]
    assert (first.uuid[6] >> 4, first.uuid[8] >> 6) == (8, 2)
    assert written(window).together == {first.uuid: UUID}


def test_notification_has_what_happened_without_secrets() -> None:
    (row,) = written(finished(Status.FAILED, Hooks(failure=HOOK))).upserts
    timer = decode_record(row.record)
    assert timer.body is not None
    content = msgspec.json.decode(timer.body.sent())
    assert content["type"] == "timer.failed"
    assert content["text"] == "Timer n/t failed after 1 attempt."
    assert content["timer"]["callbackUrl"] == "http://x.example/?token=[redacted]"
    assert content["run"]["status"] == "failed"
    assert b"secret" not in timer.body.sent()


@each("notifies, word", [(Event.FAILURE, "done"), (None, "retried")])
def test_hooks_answer_as_they_like_in_a_strict_namespace(notifies: Event | None, word: str) -> None:
    timer = Timer("n", "t", 0, HOOK.url, 0, 0, notifies=notifies)
    attempt = InFlightAttempt(Row((0, UUID), generation(1, bytes(16), 0), timer, 0), superseded=False, number=1)
    namespace = Namespace("n", 1, 0, 0, answers=Answers.STRICT)
    # As Slack does.
    slack = Response(200, b"ok")
    assert conclude(attempt, slack, 0, namespace, EngineLimits(), now_us=0, jitter=0.0)[1] == word
