"""Failures: which ends are listed, with what they have in common; and in which batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
from tests.support.cases import each
from tests.support.window_bench import UUID, Bench, at_once
from tests.unit.test_schedules import SECOND, ScheduleBench

from tocsin.model.failure import failure_of, split_failure
from tocsin.model.job import Job, JobAction, JobKind, JobState, RowFilter
from tocsin.model.namespace import HistoryMode
from tocsin.model.run import decode_run
from tocsin.model.timer import Status, Timer
from tocsin.ports.store import GENERATION_BYTES, FailureRow, ShardBatch
from tocsin.stores.memory import MemoryStore
from tocsin.tasks import Turns
from tocsin.timers import job_rows
from tocsin.timers.engine.rows import FinalAttempt, OpKind, WriteOp
from tocsin.timers.failures import Failures, failure_id


class Ends(Bench):
    """A window with one timer that is due, in a namespace with this history mode."""

    def __init__(self, mode: HistoryMode = HistoryMode.ALL) -> None:
        super().__init__()
        self.mode = mode
        self.created(10)
        self.fire(20)

    def history_rule(self, _: str) -> tuple[HistoryMode, int]:
        return self.mode, 1_000

    def ended(self, status: Status, error: str | None = None) -> Timer:
        return msgspec.structs.replace(self.attempt.row.timer, status=status, last_error=error, executed_at=30)

    def end(self, status: Status, error: str | None = None) -> None:
        """The attempt ends the timer, and the next batch is written."""
        self.window.answered(self.attempt, FinalAttempt(self.ended(status, error)), 0)
        self.commit(self.assemble(exact_after=0))

    def failures(self) -> list[FailureRow]:
        return at_once(self.store.failures(0, None, 10))  # type: ignore[no-any-return]


OWNER = b"failures-of-tests"[:16]


def history(bench: Bench) -> Any:
    return at_once(bench.store.fetch(0, [UUID]))[UUID].finished


@each("status", [Status.FAILED, Status.EXPIRED])
@each("mode", [HistoryMode.ALL, HistoryMode.FAILURES])
def test_a_timer_that_fails_is_listed(status: Status, mode: HistoryMode) -> None:
    bench = Ends(mode)
    bench.end(status, "HTTP_503")
    ended = history(bench)
    row = FailureRow(UUID, ended.generation, "n", "t", "http://h/\x1fHTTP 503", 30, 10, 2_030)
    assert bench.failures() == [row]


def test_a_failed_timer_is_kept_as_long_as_its_failure() -> None:
    bench = Ends()
    bench.end(Status.FAILED)
    assert history(bench).expires_at == 2_030
    other = Ends()
    other.end(Status.COMPLETED)
    assert history(other).expires_at == 1_030


def test_a_timer_that_does_not_fail_is_not_listed() -> None:
    bench = Ends()
    bench.end(Status.COMPLETED)
    assert bench.failures() == []
    bench.created(40)
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n"))
    bench.commit(bench.assemble())
    assert bench.failures() == []


def test_a_namespace_without_history_lists_no_failures() -> None:
    bench = Ends(HistoryMode.NONE)
    bench.end(Status.FAILED)
    assert bench.failures() == []


def test_a_failure_that_another_node_reports_is_listed() -> None:
    bench = Ends()
    # The shard was handed over with the attempt in flight.
    generation = bench.attempt.row.generation
    bench.claim(1)
    bench.load()
    bench.window.accept(
        WriteOp(OpKind.CONCLUDE, UUID, "n", timer=bench.ended(Status.FAILED, "TIMEOUT"), expected=generation)
    )
    bench.commit(bench.assemble())
    assert [split_failure(row.failure)[1] for row in bench.failures()] == ["TIMEOUT"]
    assert bench.failures()[0].generation == history(bench).generation


def test_a_failed_occurrence_is_listed_while_its_schedule_goes_on() -> None:
    bench = ScheduleBench()
    for status in (Status.FAILED, Status.COMPLETED):
        bench.fire(10 * SECOND)
        timer = bench.attempt.row.timer
        at, ended = (
            timer.execute_at,
            msgspec.structs.replace(timer, status=status, executed_at=7, last_error="HTTP_500"),
        )
        bench.window.answered(bench.attempt, FinalAttempt(ended), 0)
        bench.commit(bench.assemble())
    (failure,) = at_once(bench.store.failures(0, None, 10))
    runs = at_once(bench.store.runs(0, failure.uuid, None, 10))
    (failed,) = [row for row in runs if decode_run(row.record).status == "failed"]
    assert failure.generation == failed.generation
    assert failure[2:] == ("n/schedule", "s", "http://h/\x1fHTTP 500", 7, at - SECOND, 2_007)
    assert failed.expires_at >= 2_000


@each(
    "url, error, expected",
    [
        ("https://u:p@h:8443/a/b?token=x#y", "HTTP_500", ("https://h:8443/a/b", "HTTP 500")),
        ("HTTPS://H:443", "TIMEOUT: no response within 10 s", ("https://h/", "TIMEOUT")),
        ("http://h/", "HTTP_503; EXPIRED: no attempt may begin after …", ("http://h/", "HTTP 503")),
        ("http://h/a@b", None, ("http://h/a@b", "UNKNOWN")),
        ("", "", ("", "UNKNOWN")),
    ],
)
def test_a_failure_names_place_and_code(url: str, error: str | None, expected: tuple[str, str]) -> None:
    assert split_failure(failure_of(Timer("n", "t", 0, url, 0, 0, last_error=error))) == expected


def test_the_parts_of_a_failure_are_bounded() -> None:
    failure = failure_of(Timer("n", "t", 0, f"http://h/{'a' * 3_000}", 0, 0, last_error="x" * 300))
    assert [len(part) for part in split_failure(failure)] == [400, 60]


async def test_a_failure_of_another_namespace_is_not_dismissed_by_its_handle() -> None:
    """A notification's uuid does not follow from a name, so that its handle alone does not name its namespace."""
    store = MemoryStore()
    await store.open(1)
    epoch = await store.claim(0, expected_epoch=0, owner=OWNER)
    assert epoch is not None
    place = "http://h/\x1fHTTP 500"
    rows = [
        FailureRow(
            bytes([number]) * 16,
            bytes(GENERATION_BYTES - 1) + bytes([number]),
            f"{name}/notify",
            "t",
            place,
            5,
            5,
            1_000,
        )
        for number, name in enumerate(("mine", "theirs", "mine"), start=1)
    ]
    await store.apply([ShardBatch(0, epoch, OWNER, failures=rows)])

    class Namespaces:
        async def ensure_known(self, namespace: str) -> None:
            return None

        def shard_of(self, namespace: str, uuid: bytes) -> int:
            return 0

        async def read(self, call: Any) -> Any:
            return await call

    failures = Failures(store, Namespaces(), None, 1)  # type: ignore[arg-type]
    listed = await store.failures(0, None, 10)
    assert [row.namespace for row in listed] == ["mine/notify", "theirs/notify", "mine/notify"]
    assert await failures.dismiss_ids("mine", map(failure_id, listed)) == 3
    assert await store.failures(0, None, 10) == [listed[1]]


@each(
    "kind, age_us, replayed", [("", 0, True), ("", SECOND, False), ("/schedule", 0, False), ("/notify", SECOND, False)]
)
def test_a_job_replays_no_failure_that_was_dismissed_since(kind: str, age_us: int, replayed: bool) -> None:
    """A run of a timer is replayed once in any case, so that what was just read is not looked for again."""

    async def read(call: Any) -> Any:
        return await call

    async def checked(namespace: str, changes: Any) -> Any:
        return changes

    row = FailureRow(UUID, bytes(GENERATION_BYTES), "n" + kind, "t", "http://h/\x1fHTTP 503", 30, 10, 2_030)
    namespaces: Any = SimpleNamespace(shard_of=lambda name, uuid: 0, read=read)
    failures = Failures(MemoryStore(), namespaces, Turns(), 1)
    service: Any = SimpleNamespace(
        now_us=lambda: SECOND, failures=failures, credentials=SimpleNamespace(checked=checked)
    )
    job = Job("j", "n", JobKind.FAILURES, JobAction.REPLAY, RowFilter(1), 1, 1, JobState.RUNNING)
    op = at_once(job_rows._replay(service, row, job, SECOND - age_us, 0))
    assert (op is not None) == replayed
