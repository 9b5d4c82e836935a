"""From an attempt's answer to its conclusion: the timer has finished, or has another attempt and when. Pure."""

from __future__ import annotations

import msgspec

from tocsin.model.answer import Done, NoResponse, Reschedule, Response, judge
from tocsin.model.instants import format_instant
from tocsin.model.namespace import Answers, Namespace, policy_in_force
from tocsin.model.redaction import answer_snippet, secrets_of
from tocsin.model.retry import next_attempt_at
from tocsin.model.timer import JSON_TYPE, Attempt, RawBody, Status
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.recurring import postponed
from tocsin.timers.engine.rows import Conclusion, FinalAttempt, InFlightAttempt, NextAttempt, Row


def conclude(
    attempt: InFlightAttempt,
    outcome: Response | NoResponse,
    duration_us: int,
    namespace: Namespace | None,
    limits: EngineLimits,
    *,
    now_us: int,
    jitter: float,
) -> tuple[Conclusion, str]:
    """The conclusion of an attempt that was sent, by its answer and by the policies of its timer and namespace, and the
    outcome that events report: done, rescheduled, retried or failed."""
    timer = attempt.row.timer
    verdict = judge(
        outcome,
        now_us=now_us,
        retry_after_us_max=limits.retry_after_max_us,
        instant_us_max=now_us + limits.execute_ahead_max_us,
        payload_bytes_max=limits.payload_bytes_max,
        payload_depth_max=limits.payload_depth_max,
        strict=namespace is not None and namespace.answers is Answers.STRICT,
    )
    error = None if isinstance(verdict, Done | Reschedule) else verdict.error
    entry = _entry(attempt, outcome, duration_us, error, accepted=isinstance(verdict, Done))
    first = timer.first_attempt_at if timer.first_attempt_at is not None else attempt.fired_at
    after = msgspec.structs.replace(
        timer,
        attempts=attempt.number,
        first_attempt_at=first,
        updated_at=now_us,
        last_error=error,
        attempt_log=(*timer.attempt_log, entry)[-limits.attempt_log_max :],
    )
    if isinstance(verdict, Done):
        after.status, after.executed_at = Status.COMPLETED, now_us
        return FinalAttempt(after), "done"
    if isinstance(verdict, Reschedule) and timer.schedule is not None:
        # Only this occurrence is postponed: instant and payload are the definition's.
        after.attempts, after.first_attempt_at, after.firing = 0, None, postponed(timer)
        return NextAttempt(after, verdict.execute_at), "rescheduled"
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
            policy_in_force(timer.retry, namespace),
            attempts_made=attempt.number,
            first_attempt_at=first,
            now_us=now_us,
            jitter=jitter,
            not_before_us=verdict.not_before_us,
        )
    limit = timer.expires_at
    if again_at is not None and limit is not None and again_at > limit:
        after.last_error = f"{error}; {_none_after(limit)}"
        again_at = None
    if again_at is None:
        after.status, after.executed_at = Status.FAILED, now_us
        return FinalAttempt(after), "failed"
    return NextAttempt(after, again_at), "retried"


def conclude_expired(row: Row, now_us: int) -> FinalAttempt | None:
    """The end of a due timer that no attempt may begin for any more (rule 27); None if one may begin now.

    It has failed if an attempt was made since its instant, else expired. A row that waits for another instant than its
    timer's although no attempt is recorded was handed over with an attempt in flight (rule 25), whose result was lost.
    """
    timer, limit = row.timer, row.timer.expires_at
    if limit is None or now_us <= limit:
        return None
    after = msgspec.structs.replace(timer, status=Status.FAILED, updated_at=now_us, executed_at=now_us)
    if timer.attempts:
        after.last_error = f"{timer.last_error}; {_none_after(limit)}"
    elif row.key[0] != timer.execute_at:
        after.last_error = f"{_none_after(limit)}; an attempt had begun, and its result is unknown"
    else:
        after.status, after.last_error = Status.EXPIRED, f"{_none_after(limit)}, and none had begun"
    return FinalAttempt(after)


def _none_after(limit_us: int) -> str:
    return f"EXPIRED: no attempt may begin after {format_instant(limit_us)}"


def _entry(
    attempt: InFlightAttempt, outcome: Response | NoResponse, duration_us: int, error: str | None, *, accepted: bool
) -> Attempt:
    """The attempt for the timer's log. What an accepting receiver answers adds nothing, and is not kept."""
    if not isinstance(outcome, Response):
        return Attempt(attempt.fired_at, duration_us, 0, error)
    if accepted or not outcome.body:
        return Attempt(attempt.fired_at, duration_us, outcome.status, error)
    timer = attempt.row.timer
    secrets = secrets_of(timer.url, (timer.headers or {}).items())
    answer = answer_snippet(outcome.body, truncated=outcome.truncated, secrets=secrets)
    return Attempt(attempt.fired_at, duration_us, outcome.status, error, answer)
