"""The history of a timer on the wire: its runs and their attempts."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tocsin.model.instants import format_instant
from tocsin.model.run import Run, RunStatus
from tocsin.model.timer import Attempt
from tocsin.timers.history import RunPage
from tocsin.web.http import wire
from tocsin.web.http.wire import AttemptLog, Cursor, Instant, ResponseStruct, TimerName, about


class TimerHistory(TimerName):
    """A timer whose runs are wanted."""

    limit: Annotated[int | UnsetType, about("Maximum number of runs on the page. Default 100.")] = UNSET
    cursor: Cursor | UnsetType = UNSET


class RunAnswer(ResponseStruct):
    """One run: what became of one instant of the timer. `pending` is the current run. After `rescheduled` and `superseded`
    the timer went on, because its receiver asked for another instant, or a client gave it one or created it again."""

    run: Annotated[str, about("The run's name, which is part of the webhook-id of its attempts.", "1-2a")]
    execute_at: Instant
    status: RunStatus
    attempts: Annotated[int, Meta(description="Number of attempts made, of which the latest are kept.", ge=0)]
    attempt_log: AttemptLog


class RunPageAnswer(ResponseStruct):
    """A page of runs, newest first. A page without `nextCursor` is the last."""

    runs: list[RunAnswer]
    next_cursor: Cursor | UnsetType = UNSET


def page_answer(page: RunPage) -> RunPageAnswer:
    """The page as clients see it."""
    return RunPageAnswer([_run_answer(run) for run in page.runs], UNSET if page.cursor is None else page.cursor)


def _run_answer(run: Run) -> RunAnswer:
    attempts = [attempt_answer(attempt) for attempt in run.attempts]
    return RunAnswer(run.firing, format_instant(run.execute_at), run.status, run.made, attempts)


def attempt_answer(attempt: Attempt) -> wire.Attempt:
    """The attempt as clients see it."""
    return wire.Attempt(
        format_instant(attempt.at),
        attempt.duration_us / 1_000,
        attempt.status or UNSET,
        UNSET if attempt.error is None else attempt.error,
        UNSET if attempt.answer is None else attempt.answer,
    )
