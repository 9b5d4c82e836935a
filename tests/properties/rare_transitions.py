"""Transitions that thousands of random runs hardly reach, each made to happen.

Most need a load that returns a row whose commit is not confirmed yet.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.support.checked_window import Transition
from tests.support.transitions import TimerState as S
from tests.support.transitions import WindowEvent as E
from tests.support.window_bench import OTHER, UUID, Bench, completed
from tests.unit.test_schedules import SECOND, ScheduleBench
from tocsin.timers.engine.rows import FinalAttempt, NextAttempt, Row


class Early:
    """A timer whose newest row a load has returned before its commit is confirmed, with the former row in a state. A client
    has written the newest row, or, with `retried`, the window itself."""

    def __init__(self, former: S, *, retried: bool = False) -> None:
        bench = self.bench = Bench()
        self.window = window = bench.window
        bench.create(10)
        bench.commit(bench.assemble())
        bench.fire()
        if former is S.RETRYING:
            window.answered(bench.attempt, NextAttempt(bench.attempt.row.timer, 20), 0)
        elif former in (S.FINISHED, S.AWAITING_WRITE):
            bench.finish()
        if former is S.AWAITING_WRITE:
            window.delete_refused(window.finished[UUID], 0)
        if not retried:
            bench.create(20)
        if former is S.SUPERSEDED_RESULT:
            bench.finish()
        self.batch = bench.assemble()
        bench.apply(self.batch)
        window.horizon = (19, b"\xff" * 16)
        bench.load()

    def due(self) -> Row:
        row = self.window.due(100)
        assert row is not None
        return row

    def truncate(self) -> Bench:
        self.window.truncate(0)
        return self.bench

    def dispatch(self) -> Bench:
        self.bench.fire()
        return self.bench

    def dispatch_in_vain(self, suspended: str | None = None) -> Bench:
        self.bench.fire()
        return self.not_sent(suspended)

    def expire(self) -> Bench:
        row = self.due()
        self.window.end_unfired(row, FinalAttempt(completed(row.timer)), 0)
        return self.bench

    def not_sent(self, suspended: str | None = None) -> Bench:
        self.window.not_sent(self.bench.attempt, suspended)
        return self.bench

    def commit(self) -> Bench:
        self.window.committed(self.batch, 0)
        return self.bench

    def suspend_and_commit(self) -> Bench:
        row = self.due()
        self.window.defer()
        self.window.suspend(row, "destination:h")
        return self.commit()


def _not_sent_beyond_the_horizon(*, superseded: bool, suspended: str | None = "egress") -> Bench:
    bench = Bench()
    bench.create(10)
    bench.create(5, OTHER)
    bench.commit(bench.assemble())
    bench.window.truncate(1)
    bench.load()
    bench.fire()
    bench.fire()
    if superseded:
        bench.create(20)
    bench.window.horizon = (9, b"")
    bench.window.not_sent(bench.attempt, suspended)
    return bench


def _unusable_retry() -> Bench:
    bench = Bench()
    bench.create(10)
    bench.commit(bench.assemble())
    row = bench.fire()
    row.timer.last_error = "\ud800"
    bench.window.answered(bench.attempt, NextAttempt(row.timer, 50), 0)
    bench.assemble()
    return bench


def _refused_delete(*, written: bool) -> Bench:
    bench = Bench()
    bench.create(10)
    bench.commit(bench.assemble())
    bench.fire()
    bench.finish()
    bench.window.delete_refused(bench.window.finished[UUID], 0)
    if written:
        bench.create(20)
        bench.commit(bench.assemble())
    else:
        bench.window.try_refused_again(0)
    return bench


def _schedule_changed_before_its_attempt_is_known() -> Bench:
    bench = ScheduleBench()
    bench.fire(SECOND)
    bench.claim(1, orphaned=[bench.attempt])
    bench.renamed("http://two/")
    return bench


_FORMER = (S.SUPERSEDED, S.SUPERSEDED_RESULT, S.RETRYING, S.FINISHED, S.AWAITING_WRITE)

RARE: dict[Transition, Callable[[], Bench]] = {
    (S.ABSENT, E.COMMIT_UNCHANGED, S.IN_FLIGHT): _schedule_changed_before_its_attempt_is_known,
    **{(former, E.LOAD, S.EARLY): lambda former=former: Early(former).bench for former in _FORMER},  # type: ignore[misc]
    **{(S.EARLY, E.TRUNCATE, former): lambda former=former: Early(former).truncate() for former in _FORMER},  # type: ignore[misc]
    (S.EARLY, E.DISPATCH, S.IN_FLIGHT): lambda: Early(S.RETRYING, retried=True).dispatch(),
    (S.EARLY, E.DISPATCH, S.SUPERSEDED): lambda: Early(S.SUPERSEDED).dispatch(),
    (S.EARLY, E.EXPIRE, S.FINISHED): lambda: Early(S.RETRYING, retried=True).expire(),
    (S.EARLY, E.EXPIRE, S.SUPERSEDED_RESULT): lambda: Early(S.FINISHED).expire(),
    (S.EARLY, E.NOT_SENT, S.WAITING): lambda: Early(S.SUPERSEDED).not_sent(),
    (S.EARLY, E.ADDRESS_REFUSED, S.SUSPENDING): lambda: Early(S.SUPERSEDED).not_sent("egress"),
    (S.EARLY, E.COMMIT, S.WAITING): lambda: Early(S.SUPERSEDED_RESULT).commit(),
    (S.EARLY, E.COMMIT, S.SUSPENDING): lambda: Early(S.SUPERSEDED_RESULT).suspend_and_commit(),
    (S.IN_FLIGHT, E.NOT_SENT, S.EARLY): lambda: Early(S.RETRYING, retried=True).dispatch_in_vain(),
    (S.IN_FLIGHT, E.ADDRESS_REFUSED, S.EARLY): lambda: Early(S.RETRYING, retried=True).dispatch_in_vain("egress"),
    (S.IN_FLIGHT, E.ADDRESS_REFUSED, S.ABSENT): lambda: _not_sent_beyond_the_horizon(superseded=False),
    (S.SUPERSEDED, E.ADDRESS_REFUSED, S.ABSENT): lambda: _not_sent_beyond_the_horizon(superseded=True),
    (S.SUPERSEDED, E.NOT_SENT, S.ABSENT): lambda: _not_sent_beyond_the_horizon(superseded=True, suspended=None),
    (S.RETRYING, E.RETRY_UNUSABLE, S.AWAITING_WRITE): _unusable_retry,
    (S.FINISHED, E.DELETE_REFUSED, S.AWAITING_WRITE): lambda: _refused_delete(written=False),
    (S.AWAITING_WRITE, E.DELETE_AGAIN, S.FINISHED): lambda: _refused_delete(written=False),
    (S.AWAITING_WRITE, E.COMMIT, S.WAITING): lambda: _refused_delete(written=True),
}  # fmt: skip
