"""Notifications: timers that report to hooks what became of other timers and of schedules. Pure.

A notification is written in the batch that makes durable what it reports, so that it is sent at least once if that is
durable. It lies in the shard of its subject, under a stored name that no list has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from tocsin.model.failure import FAILED
from tocsin.model.hooks import Event, Hook, Hooks, hook_for
from tocsin.model.instants import format_instant
from tocsin.model.monitor import Monitor
from tocsin.model.period import Period
from tocsin.model.redaction import redact_url
from tocsin.model.retry import DEFAULT_POLICY
from tocsin.model.run import Run, run_of
from tocsin.model.schedule import PAUSED_AFTER_FAILURES, Missed
from tocsin.model.timer import JSON_TYPE, RawBody, Status, Timer
from tocsin.timers.engine.recurring import MissedRange, Turn
from tocsin.timers.engine.rows import Row

#: How the types of notifications end, behind `timer.` or `schedule.`.
_VERBS = {
    Event.FAILURE: "failed",
    Event.SUCCESS: "succeeded",
    Event.RECOVERY: "recovered",
    Event.MISSED: "missed",
    Event.PAUSED: "paused",
}

_encoder = msgspec.json.Encoder()


#: Why instants don't fire because somebody wanted it so.
_WANTED = frozenset({Missed.PAUSED, Missed.EXCLUDED})


class Subject(msgspec.Struct, frozen=True):
    """What is reported: the timer or the occurrence, as it ended; its run; and of a schedule the instants that were missed,
    and how many occurrences in a row have failed. Of a monitor: the period that has ended, if one has, and what happened, as
    the notification's type has it."""

    timer: Timer
    run: Run | None = None
    missed: tuple[MissedRange, ...] = ()
    failures: int = 0
    period: Period | None = None
    verb: str = ""


def end_of_timer(timer: Timer) -> Iterator[tuple[Event, Subject]]:
    """What the end of a timer that fires once reports: nothing if it was canceled."""
    subject = Subject(timer, run_of(timer, timer.status))
    if timer.status in FAILED:
        yield Event.FAILURE, subject
    elif timer.status is Status.COMPLETED:
        yield Event.SUCCESS, subject
        if timer.failed_before:
            yield Event.RECOVERY, subject


def turn_of_schedule(turn: Turn) -> Iterator[tuple[Event, Subject]]:
    """What reports that an occurrence has ended, or that instants were missed."""
    assert turn.timer.schedule is not None
    after = turn.timer.schedule.state
    if turn.run is not None:
        assert turn.run.schedule is not None
        subject = Subject(turn.run, run_of(turn.run, turn.run.status), failures=after.failures)
        if turn.run.status is Status.COMPLETED:
            yield Event.SUCCESS, subject
            if turn.run.schedule.state.failures:
                yield Event.RECOVERY, subject
        else:
            yield Event.FAILURE, subject
            if after.paused == PAUSED_AFTER_FAILURES and turn.run.schedule.state.paused is None:
                yield Event.PAUSED, subject
    missed = tuple(each for each in turn.missed if each.reason not in _WANTED)
    if missed:
        yield Event.MISSED, Subject(turn.timer, missed=missed)


def notification(
    event: Event, subject: Subject, defaults: Hooks | None, uuid: bytes, ended_as: bytes, at_us: int, now_us: int
) -> tuple[bytes, Timer] | None:
    """The uuid and timer of the notification; None if no hook asks for it. `uuid` and `ended_as` are the subject's uuid and
    the generation of what has ended. `at_us` is when it is due."""
    hook = hook_for(event, subject.timer.hooks, defaults)
    if hook is None:
        return None
    # The same however often the end is written.
    return uuid_beside(uuid, ended_as + event.value.encode()), _timer(event, subject, hook, at_us, now_us)


def uuid_beside(subject: bytes, name: bytes) -> bytes:
    """A UUID of version 8 (RFC 9562 section 5.8) of that name that begins like the subject's, and so is in the same shard."""
    found = bytearray(subject[:4] + hashlib.sha256(subject + name).digest()[:12])
    found[6] = found[6] & 0x0F | 0x80
    found[8] = found[8] & 0x3F | 0x80
    return bytes(found)


def _timer(event: Event, subject: Subject, hook: Hook, at_us: int, now_us: int) -> Timer:
    about = subject.timer
    content = RawBody(JSON_TYPE, json=msgspec.Raw(_encoder.encode(_content(event, subject, now_us))))
    return Timer(
        about.namespace,
        about.id,
        at_us,
        hook.url,
        now_us,
        now_us,
        headers=hook.headers,
        credential=hook.credential,
        # Not the namespace's, which is chosen for other receivers.
        retry=DEFAULT_POLICY,
        traceparent=about.traceparent,
        firing=event.value,
        body=content,
        notifies=event,
    )


def _content(event: Event, subject: Subject, now_us: int) -> dict[str, object]:
    timer = subject.timer
    if timer.monitor is not None:
        return _monitor_content(timer, timer.monitor, subject, now_us)
    kind = "timer" if timer.schedule is None else "schedule"
    content: dict[str, object] = {
        "type": f"{kind}.{_VERBS[event]}",
        "timestamp": format_instant(now_us),
        "text": _sentence(event, subject),
        kind: {
            "namespace": timer.namespace,
            "id": timer.id,
            "callbackUrl": redact_url(timer.url),
            "method": timer.method,
            "tags": timer.tags,
            "createdAt": format_instant(timer.created_at),
        }
        | ({} if timer.description is None else {"description": timer.description}),
    }
    if subject.run is not None:
        content["run"] = _run(subject.run, timer)
    if subject.missed:
        content["missed"] = [
            {
                "reason": each.reason,
                "instants": each.instants,
                "firstAt": format_instant(each.first_at),
                "lastAt": format_instant(each.last_at),
            }
            for each in subject.missed
        ]
    return content


def _monitor_content(timer: Timer, monitor: Monitor, subject: Subject, now_us: int) -> dict[str, object]:
    state, period, verb = monitor.state, subject.period, subject.verb
    about: dict[str, object] = {
        "namespace": timer.namespace,
        "id": timer.id,
        "state": state.status,
        "since": format_instant(state.since),
        "tags": timer.tags,
    }
    instants = {"lastPingAt": state.last_ping, "expectedAt": state.expected, "deadline": state.deadline}
    about |= {name: format_instant(at) for name, at in instants.items() if at is not None}
    if timer.description is not None:
        about["description"] = timer.description
    watched = monitor.definition.schedule
    if watched is not None:
        about["schedule"] = watched
    name = f"Monitor {timer.namespace}/{timer.id}"
    expected = "" if state.expected is None else f" since {format_instant(state.expected)}"
    texts = {
        "late": f"{name} is late: no report came{expected}."
        if watched is None
        else f"{name} is late: schedule {watched} has not ended what was due{expected}.",
        "failed": f"{name} reports a failure."
        if watched is None
        else f"{name} reports a failure: an occurrence of schedule {watched} failed.",
        "recovered": f"{name} has recovered.",
    }
    content: dict[str, object] = {
        "type": f"monitor.{verb}",
        "timestamp": format_instant(now_us),
        "text": texts[verb],
        "monitor": about,
    }
    if period is not None:
        content["period"] = period_content(period)
    return content


def period_content(period: Period) -> dict[str, object]:
    """A period as notifications have it."""
    instants = {
        "expectedAt": period.expected_at,
        "deadline": period.deadline,
        "startedAt": period.started_at,
        "endedAt": period.ended_at,
    }
    content: dict[str, object] = {name: format_instant(at) for name, at in instants.items() if at is not None}
    others = {"state": period.state, "exitCode": period.exit_code, "body": period.body, "note": period.note}
    return content | {name: value for name, value in others.items() if value is not None}


def _run(run: Run, timer: Timer) -> dict[str, object]:
    found: dict[str, object] = {
        "executeAt": format_instant(run.execute_at),
        "status": run.status,
        "attempts": run.made,
        "attemptLog": [
            {"startedAt": format_instant(each.at), "durationMs": each.duration_us / 1_000}
            | ({"status": each.status} if each.status else {})
            | ({} if each.error is None else {"error": each.error})
            | ({} if each.answer is None else {"answer": each.answer})
            for each in run.attempts
        ],
    }
    if timer.executed_at is not None:
        found["executedAt"] = format_instant(timer.executed_at)
    if timer.last_error is not None:
        found["lastError"] = timer.last_error
    return found


def _sentence(event: Event, subject: Subject) -> str:
    timer = subject.timer
    name = f"{'Timer' if timer.schedule is None else 'Schedule'} {timer.namespace}/{timer.id}"
    error = f": {timer.last_error}" if timer.last_error else "."
    if event is Event.MISSED:
        instants = sum(each.instants for each in subject.missed)
        first, last = format_instant(subject.missed[0].first_at), format_instant(subject.missed[-1].last_at)
        when = f"its instant {first}" if instants == 1 else f"{instants} instants from {first} to {last}"
        return f"{name} missed {when}."
    if event is Event.PAUSED:
        return f"{name} paused itself after {subject.failures} failures in a row{error}"
    attempts = f"{timer.attempts} attempt{'' if timer.attempts == 1 else 's'}"
    if event is Event.FAILURE:
        return f"{name} failed after {attempts}{error}" if timer.attempts else f"{name} failed{error}"
    return f"{name} succeeded after {attempts}{', after a failure before' if event is Event.RECOVERY else ''}."


def due_at(now_us: int, delete_to: tuple[int, bytes] | None) -> int:
    """When a notification is due: now, or above what the batch deletes by range, if the clock was set back (rule 11)."""
    return now_us if delete_to is None else max(now_us, delete_to[0] + 1)


def is_notified(row: Row, defaults: Hooks | None) -> bool:
    """Whether a hook might be notified of the row's end. Notifications have no hooks."""
    timer = row.timer
    return (timer.hooks is not None or defaults is not None) and timer.notifies is None
