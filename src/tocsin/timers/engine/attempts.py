"""From an attempt's verdict to its conclusion: the timer has finished, or has another attempt and when. Pure."""

from __future__ import annotations

import msgspec

from tocsin.model.answer import Done, Outcome, Reschedule, Response, Verdict
from tocsin.model.raw_body import JSON_TYPE, RawBody
from tocsin.model.retry import RetryPolicy, next_attempt_at
from tocsin.model.timer import Attempt, Status, Timer
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.rows import Conclusion, FinalAttempt, NextAttempt


def conclude(
    timer: Timer,
    verdict: Verdict,
    outcome: Outcome,
    *,
    attempt: int,
    fired_at: int,
    duration_us: int,
    now_us: int,
    jitter: float,
    policy: RetryPolicy,
    limits: EngineLimits,
) -> tuple[Conclusion, str]:
    """The conclusion of attempt number `attempt` under the policy in force, and the outcome that events report: done,
    rescheduled, retried or failed."""
    error = None if isinstance(verdict, Done | Reschedule) else verdict.error
    entry = Attempt(fired_at, duration_us, outcome.status if isinstance(outcome, Response) else 0, error)
    first = timer.first_attempt_at if timer.first_attempt_at is not None else fired_at
    after = msgspec.structs.replace(
        timer,
        attempts=attempt,
        first_attempt_at=first,
        updated_at=now_us,
        last_error=error,
        attempt_log=(*timer.attempt_log, entry)[-limits.attempt_log_max :],
    )
    if isinstance(verdict, Done):
        after.status, after.executed_at = Status.COMPLETED, now_us
        return FinalAttempt(after), "done"
    if isinstance(verdict, Reschedule):
        after.execute_at = verdict.execute_at
        after.attempts, after.first_attempt_at, after.firing = 0, None, ""
        if verdict.payload is not None:
            if after.body is None:
                after.payload = verdict.payload.copy()
            else:
                after.body = RawBody(JSON_TYPE, json=verdict.payload.copy())
        return NextAttempt(after, verdict.execute_at), "rescheduled"
    again_at = None
    if not verdict.final:
        again_at = next_attempt_at(
            policy,
            attempts_made=attempt,
            first_attempt_at=first,
            now_us=now_us,
            jitter=jitter,
            not_before_us=verdict.not_before_us,
        )
    if again_at is None:
        after.status, after.executed_at = Status.FAILED, now_us
        return FinalAttempt(after), "failed"
    return NextAttempt(after, again_at), "retried"
