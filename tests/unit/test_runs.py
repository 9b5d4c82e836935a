"""Runs: which are kept when a timer goes on, and how they are read."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest
from tests.support.cases import each
from tests.support.window_bench import UUID, Bench, at_once

from tocsin.model.condition import Condition
from tocsin.model.errors import InvalidInput
from tocsin.model.namespace import HistoryMode
from tocsin.model.run import Run, RunStatus, encode_run
from tocsin.model.timer import Changes, CreateKey, LoggedAttempt, Status, Timer
from tocsin.ports.store import HistoryRow, RunRow, within
from tocsin.timers.engine.rows import FinalAttempt, NextAttempt, OpKind, WriteOp, decoded_row
from tocsin.timers.history import runs_page


class Runs(Bench):
    """A window whose attempts have the log that attempts have, and whose operations are written at once."""

    def __init__(self, mode: HistoryMode = HistoryMode.ALL) -> None:
        super().__init__()
        self.mode = mode

    def history_rule(self, _: str) -> tuple[HistoryMode, int]:
        return self.mode, 1_000

    def write(self) -> None:
        self.commit(self.assemble(exact_after=0))

    def create(self, at: int, uuid: bytes = UUID) -> WriteOp:
        op = super().create(at, uuid)
        self.write()
        return op

    def attempt_failed(self, at: int, again_at: int) -> None:
        """An attempt that leads to a retry."""
        timer = self._after(at, "HTTP_503", "busy")
        self._answered(NextAttempt(timer, again_at))

    def rescheduled(self, at: int, to: int) -> None:
        """An attempt whose answer is another instant."""
        timer = self._after(at, None, None)
        timer.execute_at, timer.attempts, timer.first_attempt_at, timer.firing = to, 0, None, ""
        self._answered(NextAttempt(timer, to))

    def accepted(self, at: int) -> None:
        """The last attempt."""
        timer = self._after(at, None, None)
        timer.status = Status.COMPLETED
        self._answered(FinalAttempt(timer))

    def _answered(self, end: NextAttempt | FinalAttempt) -> None:
        self.window.answered(self.attempt, end, 0)
        self.write()

    def _after(self, at: int, error: str | None, answer: str | None) -> Timer:
        self.fire(100_000)
        before = self.attempt.row.timer
        entry = LoggedAttempt(at, 5, 503 if error else 200, error, answer)
        first = at if before.first_attempt_at is None else before.first_attempt_at
        return msgspec.structs.replace(
            before, attempts=before.attempts + 1, first_attempt_at=first, attempt_log=(*before.attempt_log, entry)
        )

    def load_up_to(self, at: int) -> None:
        """Moves the window's horizon."""
        request = self.window.announce_load((at, b"\xff" * 16))
        assert request is not None
        page = at_once(self.store.load(0, request.after, request.up_to, 100))
        self.window.loaded(request, [decoded_row(row) for row in page.rows], page.complete_to)

    def update(self, **changes: Any) -> None:
        self.window.accept(WriteOp(OpKind.UPDATE, UUID, "n", changes=Changes(**changes), completion=self.answered))
        self.write()

    def pages(self, limit: int = 10) -> list[Run]:
        """All runs, newest first, read page by page."""
        runs: list[Run] = []
        cursor = None
        while True:
            page = at_once(runs_page(self._live, partial(self.store.runs, 0, UUID), limit, cursor))
            assert len(page.runs) <= limit
            runs += page.runs
            if page.cursor is None:
                return runs
            assert len(page.runs) == limit
            cursor = page.cursor

    async def _live(self) -> Any:
        found = (await self.store.fetch(0, [UUID])).get(UUID)
        return found.live if found else None

    def summary(self, limit: int = 10) -> list[tuple[int, str, list[int]]]:
        """Instant, status and the attempts' instants of each run, newest first."""
        return [(run.execute_at, run.status.value, [each.at for each in run.attempts]) for run in self.pages(limit)]


@each("limit", [1, 2, 10])
def test_every_run_is_a_chapter(limit: int) -> None:
    bench = Runs()
    bench.create(10)
    bench.attempt_failed(11, 20)
    bench.rescheduled(21, 30)
    assert bench.summary(limit) == [(30, "pending", []), (10, "rescheduled", [11, 21])]
    bench.attempt_failed(31, 40)
    bench.update(execute_at=50)
    bench.accepted(51)
    bench.create(60)
    bench.attempt_failed(61, 70)
    bench.create(80)
    bench.window.accept(WriteOp(OpKind.DELETE, UUID, "n", completion=bench.answered))
    bench.write()
    assert bench.summary(limit) == [
        (80, "canceled", []),
        (60, "superseded", [61]),
        (50, "completed", [51]),
        (30, "superseded", [31]),
        (10, "rescheduled", [11, 21]),
    ]
    assert bench.pages()[1].attempts == (LoggedAttempt(61, 5, 503, "HTTP_503", "busy"),)


def test_a_run_without_attempts_leaves_no_row_when_its_timer_moves() -> None:
    bench = Runs()
    bench.create(10)
    bench.update(execute_at=20)
    bench.create(30)
    assert bench.summary() == [(30, "pending", [])]


def test_an_update_that_leaves_the_instant_continues_the_run() -> None:
    bench = Runs()
    bench.create(10)
    bench.attempt_failed(11, 20_000)
    bench.update(url="http://i/")
    assert bench.summary() == [(10, "pending", [11])]
    bench.update(execute_at=30)
    assert bench.summary() == [(30, "pending", []), (10, "superseded", [11])]


def test_an_attempt_that_a_clients_write_overtook_is_recorded() -> None:
    bench = Runs()
    bench.create(10)
    bench.fire()
    Bench.create(bench, 20)
    timer = msgspec.structs.replace(
        bench.attempt.row.timer, attempts=1, first_attempt_at=11, attempt_log=(LoggedAttempt(11, 5, 503, "HTTP_503"),)
    )
    bench.window.answered(bench.attempt, NextAttempt(timer, 15), 0)
    bench.write()
    assert bench.summary() == [(20, "pending", []), (10, "superseded", [11])]


def test_plain_create_keeps_the_run_of_a_retry_that_is_not_in_memory() -> None:
    bench = Runs()
    bench.create(10)
    bench.attempt_failed(11, 20_000)
    assert UUID not in bench.window.rows
    bench.create(30)
    assert bench.summary() == [(30, "pending", []), (10, "superseded", [11])]


def test_suspended_run_survives_a_plain_create() -> None:
    bench = Runs()
    bench.create(10)
    bench.attempt_failed(11, 20)
    assert bench.window.due(100) is not None
    bench.window.defer()
    bench.window.suspend(bench.window.rows[UUID], "namespace:n")
    bench.write()
    bench.create(30)
    assert bench.summary() == [(30, "pending", []), (10, "superseded", [11])]


@pytest.mark.parametrize("limit", [1, 10])
def test_only_the_last_state_of_a_run_is_shown(limit: int) -> None:
    bench = Runs()
    bench.create(10)
    bench.attempt_failed(11, 20_000)
    bench.load_up_to(40_000)
    bench.attempt_failed(20_001, 50_000)
    assert bench.summary(limit) == [(10, "pending", [11, 20_001])]
    assert len(at_once(bench.store.runs(0, UUID, None, 10))) == 1
    bench.create(70)
    assert bench.summary(limit) == [(70, "pending", []), (10, "superseded", [11, 20_001])]


def test_each_owner_keeps_one_state_of_a_run_that_is_not_in_memory() -> None:
    bench = Runs()
    bench.create(10)
    bench.attempt_failed(11, 20_000)
    bench.claim(1)
    for at, again_at in ((20_001, 40_000), (40_001, 60_000), (60_001, 90_000)):
        bench.load_up_to(at)
        bench.attempt_failed(at, again_at)
    assert len(at_once(bench.store.runs(0, UUID, None, 10))) == 2
    bench.create(95_000)
    assert bench.summary(1) == [(95_000, "pending", []), (10, "superseded", [11, 20_001, 40_001, 60_001])]


def test_conditional_create_keeps_the_run_that_it_read() -> None:
    bench = Runs()
    bench.create(10)
    bench.attempt_failed(11, 20_000)
    bench.store._shards[0].runs.clear()
    timer = Timer("n", "t", 30, "http://h/", 0, 0)
    condition = Condition(key=CreateKey("k", "b"))
    bench.window.accept(WriteOp(OpKind.CREATE, UUID, "n", timer=timer, condition=condition, completion=bench.answered))
    bench.write()
    assert bench.summary() == [(30, "pending", []), (10, "superseded", [11])]


@pytest.mark.parametrize(
    ("mode", "kept"),
    [(HistoryMode.NONE, []), (HistoryMode.FAILURES, [RunStatus.SUPERSEDED])],
)
def test_the_history_mode_decides_what_is_kept(mode: HistoryMode, kept: list[RunStatus]) -> None:
    bench = Runs(mode)
    bench.create(10)
    bench.rescheduled(11, 20)
    bench.attempt_failed(21, 25)
    bench.update(execute_at=30)
    assert [run.status for run in bench.pages()] == [RunStatus.PENDING, *kept]


def test_a_cursor_of_another_list_is_refused() -> None:
    bench = Runs()
    with pytest.raises(InvalidInput, match="cursor"):
        at_once(runs_page(bench._live, partial(bench.store.runs, 0, UUID), 10, "AYp1b2c3"))


def test_pages_end_after_their_bytes_and_together_have_each_run_once() -> None:
    mib = "x" * 1024 * 1024
    # The second run has so many states that a page has none but those that are not shown.
    firsts = [50, *[40] * 12, *range(30, 20, -1)]
    rows = [
        RunRow(UUID, bytes(31) + bytes([100 - i]), encode_run(Run(at, RunStatus.FAILED, mib, 1, at)), 0)
        for i, at in enumerate(firsts)
    ]

    async def live() -> None:
        return None

    async def ends(before: bytes | None, limit: int, bytes_max: int) -> list[HistoryRow | RunRow]:
        return [*within(bytes_max, [row for row in rows if before is None or row.generation < before][:limit])]

    async def pages() -> list[list[int]]:
        found, cursor = [], None
        while cursor is not None or not found:
            page = await runs_page(live, ends, 100, cursor)
            found.append([run.execute_at for run in page.runs])
            cursor = page.cursor
        return found

    found = asyncio.run(pages())
    assert [] in found
    assert [at for page in found for at in page] == sorted(set(firsts), reverse=True)
