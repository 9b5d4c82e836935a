"""Monitors as people read them: states, rules in words, and the strip of the last periods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from tocsin.model.instants import US_PER_SECOND
from tocsin.model.monitor import MonitorStatus
from tocsin.model.period import Period, PeriodStatus
from tocsin.model.schedule_words import ELAPSED
from tocsin.timers.monitors import MonitorView
from tocsin.web.http.schedules import sentence
from tocsin.web.pages.presentation import State, path_below, span
from tocsin.web.pages.schedules.outcomes import STRIP_CELLS, Cell, Strip, bar
from tocsin.web.pages.schedules.presentation import schedule_path

STATES = {
    MonitorStatus.LATE: State("late", "late"),
    MonitorStatus.FAILED: State("failed", "failed"),
    MonitorStatus.PAUSED: State("paused", "suspended"),
    MonitorStatus.UP: State("on time", "done"),
    MonitorStatus.NEW: State("no ping yet", "pending"),
}
#: What wants attention comes first.
_RANKS = {status: place for place, status in enumerate(STATES)}
PERIODS = {
    PeriodStatus.ON_TIME: State("on time", "done"),
    PeriodStatus.LATE: State("late", "late"),
    PeriodStatus.MISSED: State("missed", "missed"),
    PeriodStatus.FAILED: State("failed", "failed"),
    PeriodStatus.EXCUSED: State("excused", "pending"),
}


@dataclass(frozen=True, slots=True)
class MonitorRow:
    """A monitor of the list, with the strip of its last periods."""

    view: MonitorView
    strip: Strip
    state: State


def rank(view: MonitorView, now_us: int) -> tuple[int, str, str]:
    """The place of a monitor in a list that begins with what wants attention."""
    status = MonitorStatus.FAILED if view.unwatched_since(now_us) is not None else view.monitor.state.status
    return _RANKS[status], view.timer.namespace, view.timer.id


def state_of(view: MonitorView, now_us: int) -> State:
    """The monitor's state."""
    if view.unwatched_since(now_us) is not None:
        return State("unknown", "due")
    if is_of_schedule(view) and view.monitor.state.status is MonitorStatus.NEW:
        return State("nothing yet", "pending")
    return STATES[view.monitor.state.status]


def is_of_schedule(view: MonitorView) -> bool:
    """Whether it watches a schedule, and needs no pings."""
    return view.monitor.definition.schedule is not None


def watched_path(view: MonitorView) -> str:
    """The path of the page of the schedule that it watches."""
    return schedule_path(view.timer.namespace, view.monitor.definition.schedule or "")


def monitor_path(view: MonitorView) -> str:
    """The path of the monitor's page."""
    return path_below("/monitors", view.timer.namespace, view.timer.id)


def rule_of(view: MonitorView, *, whole: bool = False) -> str:
    """When a report is expected, in words. `whole`: with what a list has no room for, that an interval is of elapsed time."""
    watched = view.monitor.definition.schedule
    if watched is not None:
        return f"as schedule {watched} fires"
    words = sentence(view.monitor.definition.rule)
    return words if whole else words.replace(ELAPSED, "")


def headline(view: MonitorView, now_us: int) -> str:
    """The state as a sentence without its end."""
    state = view.monitor.state
    if (unwatched := view.unwatched_since(now_us)) is not None:
        return f"No node has looked at it for {span(now_us - unwatched, 1)}"
    lasts = span(max(now_us - state.since, 0), 1)
    if state.status is MonitorStatus.LATE:
        return f"Late for {lasts}"
    if state.status is MonitorStatus.FAILED:
        return f"Failed {lasts} ago"
    if state.status is MonitorStatus.PAUSED:
        return f"Paused for {lasts}"
    if state.status is MonitorStatus.NEW:
        return "Waits for the next occurrence" if is_of_schedule(view) else "Waits for its first ping"
    return "Running" if state.started is not None else "On time"


def took_us(period: Period) -> int | None:
    """How long the job took, if it reported both ends."""
    if period.started_at is None or period.ended_at is None:
        return None
    return period.ended_at - period.started_at


def period_words(period: Period) -> str:
    """What became of a period, as a phrase."""
    words = [PERIODS[period.state].word]
    if period.periods > 1:
        words.append(f"{period.periods} times in a row")
    if (took := took_us(period)) is not None:
        words.append(f"took {span(took, 1)}" if took >= US_PER_SECOND else f"took {took // 1_000} ms")
    if period.exit_code:
        words.append(f"exit code {period.exit_code}")
    return ", ".join(words)


def strip(view: MonitorView, periods: Sequence[Period]) -> Strip:
    """The strip of these periods, which are the newest ones, newest first."""
    shown = [each for each in periods for _ in range(min(each.periods, STRIP_CELLS))][:STRIP_CELLS][::-1]
    path = monitor_path(view)
    cells: list[Cell] = [
        bar(place, PERIODS[each.state].tone, each.expected_at, period_words(each), path)
        for place, each in enumerate(shown)
    ]
    durations = [took for each in shown if (took := took_us(each)) is not None]
    counts = Counter(PERIODS[each.state].word for each in shown)
    words = ", ".join(f"{number} {word}" for word, number in counts.most_common())
    return Strip(cells, median_low(durations) if durations else None, f"Last periods: {words}")
