"""Monitors: what pings, deadlines and clients' changes make of a monitor's row. Pure.

A row is due at its period's deadline. No request is made then: the owner writes that the job is late, with the notification,
in one batch. What waits for nothing is stored suspended: monitors that are new or paused, and late ones that notify once.

An outage of ours may have kept a report away. So a deadline moves by the outages of its shard in its period (rule 33), and
a period in which a report may have been lost is excused: it notifies nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from tocsin.model.errors import MonitorNotFound, TocsinError, version_conflict
from tocsin.model.hooks import Event
from tocsin.model.instants import format_instant
from tocsin.model.monitor import (
    EARLY_US_MAX,
    PERIODS_MAX,
    Monitor,
    MonitorChange,
    MonitorDefinition,
    MonitorState,
    MonitorStatus,
    PauseMonitor,
    Ping,
    PingEvent,
    PutMonitor,
    ResumeMonitor,
    RotateToken,
)
from tocsin.model.period import Period, PeriodStatus
from tocsin.model.recurrence import Recurrence
from tocsin.model.redaction import redact_text
from tocsin.model.timer import Timer

#: Fields of a timer that a client defines of a monitor.
DEFINED = ("tags", "description", "hooks")
#: The reason for which the rows of monitors are suspended that have no deadline.
NO_DEADLINE = "monitor:waiting"
#: What a success recovers from.
TROUBLE = frozenset({MonitorStatus.LATE, MonitorStatus.FAILED})

#: Entries of periods that one report leaves at most, besides its own. They are written at once, for which DynamoDB has a
#: hundred rows; a job that was dead for weeks may have met as many outages.
_ENTRIES_MAX = 40
#: What the last of them notes if it stands for periods of both kinds.
_MORE = "among them are periods in which Tocsin took no reports for a while"


class Outage(NamedTuple):
    """When reports could not be taken, in microseconds. `lossy`: they may be lost; otherwise they only waited."""

    from_us: int
    until_us: int
    lossy: bool = True


@dataclass(slots=True)
class MonitorTurn:
    """What becomes of a monitor's row: its timer, and the instant of its key; None: it has no deadline. `periods` have ended,
    `reported` is what hooks are notified of, with the type of the notification; `changed` is what a client's change did."""

    timer: Timer
    at: int | None
    periods: list[Period] = field(default_factory=list)
    reported: list[tuple[Event, str]] = field(default_factory=list)
    changed: str = ""


def monitor_of(timer: Timer) -> tuple[MonitorDefinition, MonitorState]:
    """The definition and state of a monitor's timer."""
    assert timer.monitor is not None
    return timer.monitor.definition, timer.monitor.state


# ---------------------------------------------------------------------- changes of clients


def change(
    asked: MonitorChange, live: Timer | None, wanted: Timer | None, now_us: int, outages: Sequence[Outage]
) -> MonitorTurn | Timer | TocsinError:
    """What the change makes of the live row; or its timer, if there is nothing to change; or why it is refused. `wanted` is
    the timer that a put brings; `outages` are those of the shard."""
    if isinstance(asked, PutMonitor):
        assert wanted is not None
        turn = _put(asked, live, wanted, now_us, outages)
    elif live is None or live.monitor is None:
        return MonitorNotFound("no such monitor")
    elif isinstance(asked, Ping):
        return _pinged(live, asked, now_us, outages)
    elif isinstance(asked, RotateToken):
        turn = _with_state(live, "rotated", token=asked.token)
    elif isinstance(asked, PauseMonitor):
        turn = live if _status(live) is MonitorStatus.PAUSED else _paused(live, now_us, outages)
    else:
        assert isinstance(asked, ResumeMonitor)
        turn = _resumed(live, now_us) if _status(live) is MonitorStatus.PAUSED else live
    if isinstance(turn, MonitorTurn):
        definition, state = monitor_of(turn.timer)
        state = msgspec.structs.replace(state, version=state.version + 1, changed_at=now_us)
        turn.timer = msgspec.structs.replace(turn.timer, updated_at=now_us, monitor=Monitor(definition, state))
    return turn


def version_of(live: Timer | None) -> int:
    """The version of the monitor of this live row; 0 if there is none."""
    return 0 if live is None or live.monitor is None else live.monitor.state.version


def _put(
    asked: PutMonitor, live: Timer | None, wanted: Timer, now_us: int, outages: Sequence[Outage]
) -> MonitorTurn | Timer | TocsinError:
    refused = version_conflict(f"monitor {wanted.id!r}", version_of(live), asked.expected_version)
    if refused is not None:
        return refused
    definition, offered = monitor_of(wanted)
    if live is None or live.monitor is None:
        if not offered.token:
            return MonitorNotFound("no such monitor any more; nothing was written, try again")
        state = MonitorState(offered.token, since=now_us)
        made = msgspec.structs.replace(
            wanted, created_at=now_us, updated_at=now_us, execute_at=now_us, monitor=Monitor(definition, state)
        )
        return MonitorTurn(made, _alarm(made, now_us), changed="created")
    former, state = monitor_of(live)
    if definition.managed_by is None:
        definition = msgspec.structs.replace(definition, managed_by=former.managed_by)
    if definition == former and all(getattr(live, name) == getattr(wanted, name) for name in DEFINED):
        return live
    fields = {name: getattr(wanted, name) for name in DEFINED}
    changed = msgspec.structs.replace(live, monitor=Monitor(definition, state), **fields)
    waits, periods = state.status in (MonitorStatus.UP, MonitorStatus.FAILED), list[Period]()
    if definition.schedule != former.schedule:
        periods = _left_open(former, state, now_us, outages)
        state = _watching_another(definition, state, now_us)
    elif definition.schedule is not None:
        # The next look reckons what follows, and comes at once.
        pass
    elif waits and definition.timing != former.timing:
        state = _expecting(definition, state, now_us)
    elif waits and definition.grace_us != former.grace_us and state.due is not None and state.deadline is not None:
        longer = definition.grace_us - former.grace_us
        state = msgspec.structs.replace(state, due=state.due + longer, deadline=state.deadline + longer)
    changed.monitor = Monitor(definition, state)
    return MonitorTurn(changed, _alarm(changed, now_us), periods, changed="changed")


def _watching_another(definition: MonitorDefinition, state: MonitorState, now_us: int) -> MonitorState:
    """The state once something else is watched: another schedule, or what pings report, not late before the first one."""
    state = msgspec.structs.replace(state, started=None, watched=None, **_NOTHING_EXPECTED)
    if definition.schedule is not None or state.status is MonitorStatus.PAUSED:
        return state
    return msgspec.structs.replace(state, status=MonitorStatus.NEW, since=now_us, last_ping=None)


def _status(timer: Timer) -> MonitorStatus:
    return monitor_of(timer)[1].status


def _paused(timer: Timer, now_us: int, outages: Sequence[Outage]) -> MonitorTurn:
    turn = _with_state(timer, "paused", status=MonitorStatus.PAUSED, since=now_us, started=None, watched=None,
                       **_NOTHING_EXPECTED)  # fmt: skip
    turn.periods = _left_open(*monitor_of(timer), now_us, outages)
    return turn


def _left_open(
    definition: MonitorDefinition, state: MonitorState, now_us: int, outages: Sequence[Outage]
) -> list[Period]:
    """What is over for a late monitor of which nothing is expected any more: no report will account for it."""
    if definition.schedule is not None or state.status is not MonitorStatus.LATE or state.expected is None:
        return unreported(Monitor(definition, state), now_us)
    rule = definition.recurrence(state.expected)
    left = _Unreported(definition, _tolerance(rule, state.expected))
    passed = rule.until(now_us - definition.grace_us) or state.expected
    left.judge_open(state, max(passed, state.expected) + 1, _lossy(state, outages))
    return left.periods


def _resumed(timer: Timer, now_us: int) -> MonitorTurn:
    definition, state = monitor_of(timer)
    if state.last_ping is None:
        return _with_state(timer, "resumed", status=MonitorStatus.NEW, since=now_us)
    state = msgspec.structs.replace(state, status=MonitorStatus.UP, since=now_us)
    if definition.schedule is None:
        state = _expecting(definition, state, now_us)
    resumed = msgspec.structs.replace(timer, monitor=Monitor(definition, state))
    return MonitorTurn(resumed, _alarm(resumed, now_us), changed="resumed")


def _with_state(timer: Timer, changed: str, **fields: object) -> MonitorTurn:
    definition, state = monitor_of(timer)
    after = msgspec.structs.replace(timer, monitor=Monitor(definition, msgspec.structs.replace(state, **fields)))
    return MonitorTurn(after, _alarm(after, timer.execute_at), changed=changed)


_NOTHING_EXPECTED: dict[str, object] = {
    "expected": None, "due": None, "deadline": None, "opens": 0, "excused_from": None, "excused_until": None,
}  # fmt: skip


def _alarm(timer: Timer, at_us: int) -> int | None:
    """When the row is due: at its deadline, or when somebody is notified again; None if neither comes. `at_us` is when the
    next repetition is, if it is one, or the next look at its schedule."""
    definition, state = monitor_of(timer)
    if definition.schedule is not None:
        return None if state.status is MonitorStatus.PAUSED else at_us
    if state.status is MonitorStatus.LATE:
        return None if definition.repeat_us is None else max(at_us, state.since + definition.repeat_us)
    return state.deadline if state.status in (MonitorStatus.UP, MonitorStatus.FAILED) else None


def _expecting(definition: MonitorDefinition, state: MonitorState, after_us: int) -> MonitorState:
    """The state with the period open that follows an instant."""
    rule = definition.recurrence(after_us)
    expected = rule.after(after_us)
    if expected is None:
        return msgspec.structs.replace(state, **_NOTHING_EXPECTED)
    due = expected + definition.grace_us
    return msgspec.structs.replace(
        state,
        expected=expected,
        opens=expected - _tolerance(rule, expected),
        due=due,
        deadline=due,
        excused_from=None,
        excused_until=None,
    )


def _tolerance(rule: Recurrence, expected: int) -> int:
    """How long before its instant a report may come."""
    following = rule.after(expected)
    return EARLY_US_MAX if following is None else min(EARLY_US_MAX, (following - expected) // 4)


# ---------------------------------------------------------------------- pings


def is_further(timer: Timer, ping: Ping, at_us: int) -> bool:
    """Whether the ping only repeats what is known: a success of a job that is up and not running, before its next period
    opens. It is not written at once."""
    definition, state = monitor_of(timer)
    if (
        definition.schedule is not None
        or ping.event is not PingEvent.SUCCESS
        or ping.exit_code is not None
        or ping.body is not None
    ):
        return False
    if state.status is MonitorStatus.PAUSED:
        return True
    return state.status is MonitorStatus.UP and state.started is None and at_us < state.opens


def noted(timer: Timer, at_us: int) -> Timer:
    """The timer after a further ping."""
    definition, state = monitor_of(timer)
    if state.last_ping is not None and at_us <= state.last_ping:
        return timer
    fields: dict[str, object] = {"last_ping": at_us}
    if definition.every_us is not None and state.status is MonitorStatus.UP:
        expected = at_us + definition.every_us
        due = expected + definition.grace_us
        fields |= {"expected": expected, "due": due, "deadline": due, "excused_from": None, "excused_until": None}
    return msgspec.structs.replace(
        timer, updated_at=at_us, monitor=Monitor(definition, msgspec.structs.replace(state, **fields))
    )


def _pinged(timer: Timer, ping: Ping, now_us: int, outages: Sequence[Outage]) -> MonitorTurn | Timer | TocsinError:
    """The row after a ping, which counts by its event and exit code; with a schedule to watch, it changes nothing."""
    definition, state = monitor_of(timer)
    if ping.token is not None and ping.token != state.token:
        return MonitorNotFound("no such monitor")
    if definition.schedule is not None:
        return timer
    at_us = max(now_us, state.last_ping or now_us)
    if state.status is MonitorStatus.PAUSED or is_further(timer, ping, at_us):
        after = noted(timer, at_us)
        return MonitorTurn(after, _alarm(after, timer.execute_at))
    if ping.event is PingEvent.START:
        return _started(timer, at_us)
    return _reported(timer, ping, at_us, outages)


def _started(timer: Timer, at_us: int) -> MonitorTurn:
    """The job has begun: it gets its grace from now on, if that is later than its deadline."""
    definition, state = monitor_of(timer)
    fields: dict[str, object] = {"started": at_us, "last_ping": at_us}
    deadline = at_us + definition.grace_us
    if state.status is MonitorStatus.NEW:
        fields |= {"status": MonitorStatus.UP, "since": at_us, "expected": at_us, "opens": at_us, "due": deadline,
                   "deadline": deadline}  # fmt: skip
    elif state.deadline is not None and state.opens <= at_us and state.status is not MonitorStatus.LATE:
        fields["deadline"] = max(state.deadline, deadline)
    after = msgspec.structs.replace(
        timer, updated_at=at_us, monitor=Monitor(definition, msgspec.structs.replace(state, **fields))
    )
    return MonitorTurn(after, _alarm(after, timer.execute_at))


def _reported(timer: Timer, ping: Ping, at_us: int, outages: Sequence[Outage]) -> MonitorTurn:
    """The job has ended."""
    definition, state = monitor_of(timer)
    if state.deadline is not None and state.status is not MonitorStatus.LATE:
        # The deadline has met these outages only if it has passed since.
        state = _moved(definition, state, outages) or state
    failed, is_new = ping.event is PingEvent.FAIL, state.status is MonitorStatus.NEW
    ended = None if is_new else _ended_by(definition, state, at_us, outages)
    periods = [] if ended is None else ended.without_report
    informs = state.started is not None or ping.exit_code is not None or ping.body is not None
    if ended is not None or is_new or failed or informs:
        # What has more than that the job is up is kept, also besides what is expected.
        own = Period(at_us, at_us + definition.grace_us, PeriodStatus.ON_TIME) if ended is None else ended.own
        periods.append(
            msgspec.structs.replace(
                own,
                state=PeriodStatus.FAILED if failed else own.state,
                started_at=state.started,
                ended_at=at_us,
                exit_code=ping.exit_code,
                body=None if ping.body is None else redact_text(ping.body),
            )
        )
    status = MonitorStatus.FAILED if failed else MonitorStatus.UP
    since = state.since if status is state.status else at_us
    after = msgspec.structs.replace(state, status=status, since=since, last_ping=at_us, started=None)
    if ended is not None or is_new:
        after = _expecting(definition, after, at_us if ended is None else max(at_us, ended.resolved))
    elif definition.every_us is not None and state.expected is not None:
        # A further report moves what is expected, but not when the next period opens.
        after = msgspec.structs.replace(_expecting(definition, after, at_us), opens=state.opens)
    turn = MonitorTurn(
        msgspec.structs.replace(timer, updated_at=at_us, monitor=Monitor(definition, after)), None, periods
    )
    turn.at = _alarm(turn.timer, at_us)
    if failed and state.status is not MonitorStatus.FAILED:
        turn.reported.append((Event.LATE, "failed"))
    elif not failed and state.status in TROUBLE:
        turn.reported.append((Event.RECOVERY, "recovered"))
    return turn


class _Ended(NamedTuple):
    """What a report ends: periods that nobody has reported, and its own; and the instant up to which nothing is expected any
    more."""

    without_report: list[Period]
    own: Period
    resolved: int


def _ended_by(
    definition: MonitorDefinition, state: MonitorState, at_us: int, outages: Sequence[Outage]
) -> _Ended | None:
    """What a report ends; None if its period has not opened."""
    first = state.expected
    if first is None or at_us < state.opens:
        return None
    rule = definition.recurrence(first)
    # Further reports move what an interval expects, but not when its period opens.
    early = min(first - state.opens, _tolerance(rule, first))
    latest = max(rule.until(at_us + early) or first, first)
    if latest == first:
        return _Ended([], _period(state, first, at_us), latest)
    lossy = _lossy(state, outages)
    if state.started is not None and state.started < (rule.after(first) or latest) - early:
        # The job has run for so long: the instants meanwhile passed without another run.
        own = _period(state, first, at_us)
        if definition.every_us is not None:
            return _Ended([], own, first)
        passed = _Unreported(definition, early, note="the run before had not ended")
        passed.judge(rule.after(first) or latest, latest + 1, lossy)
        return _Ended(passed.periods, own, latest)
    unreported = _Unreported(definition, early)
    unreported.judge_open(state, latest, lossy)
    deadline = latest + definition.grace_us
    own = Period(latest, deadline, PeriodStatus.ON_TIME if at_us <= deadline else PeriodStatus.LATE)
    if own.state is PeriodStatus.LATE:
        during = [each for each in lossy if each.until_us >= latest - early and each.from_us < deadline]
        own = _excused_by(own, during[0]) if during else own
    return _Ended(unreported.periods, own, latest)


def _period(state: MonitorState, first: int, at_us: int) -> Period:
    """The open period, which a report ends."""
    assert state.due is not None
    assert state.deadline is not None
    in_time = state.started is None or state.started <= state.due
    own = Period(first, state.deadline, PeriodStatus.ON_TIME)
    if at_us <= state.due:
        return own
    if state.excused_from is not None and state.status is not MonitorStatus.LATE:
        if state.started is not None and in_time and at_us <= state.deadline:
            return own
        return _excused_by(own, _excuse(state))
    # Its deadline is later than `due` because it has started, or because reports had to wait.
    if in_time and at_us <= state.deadline:
        return own
    return msgspec.structs.replace(own, state=PeriodStatus.LATE)


class _Unreported:
    """Periods that nobody has reported: excused are those whose report an outage may have lost, the others were missed.
    Neighbours with the same reason are one entry, and so are all that follow the first `_ENTRIES_MAX - 1` entries."""

    def __init__(self, definition: MonitorDefinition, early: int, note: str | None = None) -> None:
        self._definition = definition
        self._early, self._note = early, note
        self._last: Outage | None = None
        self.periods: list[Period] = []

    def judge_open(self, state: MonitorState, before: int, lossy: Sequence[Outage]) -> None:
        """Judges the open period, which has a deadline of its own, and those after it before this instant."""
        assert state.expected is not None
        assert state.deadline is not None
        following = self._definition.recurrence(state.expected).after(state.expected) or before
        during = [each for each in lossy if each.from_us < state.deadline and state.status is not MonitorStatus.LATE]
        self._end(state.expected, following, state.deadline, during[0] if during else None)
        self.judge(following, before, lossy)

    def judge(self, first: int, before: int, lossy: Sequence[Outage]) -> None:
        """Judges those that are expected from the first instant on and before the second."""
        rule = self._definition.recurrence(first)
        for each in lossy:
            if first >= before:
                return
            begin = rule.after(max(each.from_us - self._definition.grace_us, first) - 1)
            end = rule.after(each.until_us + self._early)
            if begin is not None and end is not None and begin < end:
                self._end(first, min(begin, before), first + self._definition.grace_us, None)
                first = min(begin, before)
                self._end(first, min(end, before), first + self._definition.grace_us, each)
                first = max(first, min(end, before))
        self._end(first, before, first + self._definition.grace_us, None)

    def _end(self, first: int, before: int, deadline: int, because: Outage | None) -> None:
        if before <= first:
            return
        number = self._definition.recurrence(first).count(first - 1, before - 1, PERIODS_MAX)
        if self.periods and (self._last is because or len(self.periods) == _ENTRIES_MAX):
            former = self.periods[-1]
            if self._last is not because:
                former = msgspec.structs.replace(former, state=PeriodStatus.MISSED, note=_MORE)
            self.periods[-1] = msgspec.structs.replace(former, periods=min(former.periods + number, PERIODS_MAX))
            return
        period = Period(first, deadline, PeriodStatus.MISSED, note=self._note, periods=number)
        self._last = because
        self.periods.append(period if because is None else _excused_by(period, because))


def _lossy(state: MonitorState, outages: Sequence[Outage]) -> list[Outage]:
    """The outages since the open period opened that may have lost a report, the earliest first."""
    known = sorted(each for each in outages if each.lossy and each.until_us >= state.opens)
    if state.excused_from is not None and state.status is not MonitorStatus.LATE:
        excuse = _excuse(state)
        if not any(each.from_us <= excuse.until_us and each.until_us >= excuse.from_us for each in known):
            # The shard does not remember it any more.
            known = sorted([*known, excuse])
    return known


def _excused_by(period: Period, outage: Outage) -> Period:
    begin, end = format_instant(outage.from_us), format_instant(outage.until_us)
    return msgspec.structs.replace(
        period, state=PeriodStatus.EXCUSED, note=f"Tocsin took no reports from {begin} to {end}"
    )


def _excuse(state: MonitorState) -> Outage:
    """What excuses the open period."""
    assert state.excused_from is not None
    assert state.excused_until is not None
    return Outage(state.excused_from, state.excused_until)


def unreported(monitor: Monitor, now_us: int) -> list[Period]:
    """The periods that a late monitor has not reported so far, as one."""
    definition, state = monitor.definition, monitor.state
    if state.status is not MonitorStatus.LATE or state.expected is None or state.deadline is None:
        return []
    if definition.schedule is not None:
        if state.deadline > now_us:
            # What was late is over; nothing has ended since.
            return []
        return [Period(state.expected, state.deadline, PeriodStatus.LATE, started_at=state.started)]
    rule = definition.recurrence(state.expected)
    passed = rule.count(state.expected, now_us - definition.grace_us, PERIODS_MAX)
    how = PeriodStatus.MISSED if passed else PeriodStatus.LATE
    return [Period(state.expected, state.deadline, how, started_at=state.started, periods=1 + passed)]


# ---------------------------------------------------------------------- deadlines


def overdue(timer: Timer, now_us: int, outages: Sequence[Outage]) -> MonitorTurn:
    """What becomes of a row whose instant has come: its deadline moves, its period is excused, or its job is late. `outages`
    are those of its shard."""
    definition, state = monitor_of(timer)
    if state.status is MonitorStatus.LATE:
        assert definition.repeat_us is not None
        again = MonitorTurn(timer, now_us + definition.repeat_us, reported=[(Event.LATE, "late")])
        again.timer = msgspec.structs.replace(timer, updated_at=now_us)
        return again
    assert state.deadline is not None
    assert state.expected is not None
    moved = _moved(definition, state, outages)
    if moved is not None:
        after = msgspec.structs.replace(timer, updated_at=now_us, monitor=Monitor(definition, moved))
        return MonitorTurn(after, moved.deadline)
    if state.excused_from is not None and definition.every_us is None:
        periods, resolved = _excused(definition, state, state.expected, outages)
        next_one = _expecting(definition, msgspec.structs.replace(state, started=None), resolved)
        after = msgspec.structs.replace(timer, updated_at=now_us, monitor=Monitor(definition, next_one))
        return MonitorTurn(after, next_one.deadline, periods)
    late = msgspec.structs.replace(state, status=MonitorStatus.LATE, since=max(now_us, state.deadline))
    after = msgspec.structs.replace(timer, updated_at=now_us, monitor=Monitor(definition, late))
    return MonitorTurn(after, _alarm(after, now_us), reported=[(Event.LATE, "late")])


def _excused(
    definition: MonitorDefinition, state: MonitorState, first: int, outages: Sequence[Outage]
) -> tuple[list[Period], int]:
    """The excused period from the first open instant on, and the instant up to which nothing is expected any more.

    All instants of an outage are excused at once, not in two turns each. The last one stays open, unless it is the first: a
    report that comes now is its."""
    assert state.excused_until is not None
    assert state.deadline is not None
    lossy_until = max(
        (each.until_us for each in outages if each.lossy and each.until_us <= state.excused_until), default=first
    )
    rule = definition.recurrence(first)
    last = max(rule.until(lossy_until) or first, first)
    number, resolved = (1, first) if last == first else (rule.count(first, last, PERIODS_MAX), last - 1)
    period = Period(first, state.deadline, PeriodStatus.MISSED, periods=number)
    return [_excused_by(period, _excuse(state))], resolved


def _moved(definition: MonitorDefinition, state: MonitorState, outages: Sequence[Outage]) -> MonitorState | None:
    """The state with a later deadline, if there were outages in its period that it does not account for yet.

    A report that was lost would have moved what is expected by an interval at most from the outage's end on. One that is
    expected at an instant may still come, as much later as the outage lasted; if it does not, it may have been lost."""
    assert state.deadline is not None
    begin = (state.last_ping or 0) if definition.every_us is not None else state.opens
    begin = max(begin, state.excused_until or begin)
    new = [each for each in outages if each.until_us > begin and each.from_us < state.deadline]
    if not new:
        return None
    deadline, until = state.deadline + definition.write_interval_us, begin
    for each in sorted(new):
        # Two owners, one after the other, may have recorded the same time.
        deadline += max(each.until_us - max(each.from_us, until), 0)
        until = max(until, each.until_us)
    lossy = [each for each in new if each.lossy]
    if lossy and definition.every_us is not None:
        deadline = max(deadline, max(each.until_us for each in lossy) + definition.every_us + definition.grace_us)
    excused_from = state.excused_from
    if lossy and excused_from is None:
        excused_from = min(each.from_us for each in lossy)
    return msgspec.structs.replace(state, deadline=deadline, excused_from=excused_from, excused_until=until)
