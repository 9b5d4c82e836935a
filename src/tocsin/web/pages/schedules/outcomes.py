"""What became of a schedule's occurrences: their states, and the strip of the last ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import NamedTuple

from tocsin.model.instants import US_PER_SECOND, format_instant
from tocsin.model.run import FAILED_RUNS, MissedInstants, Run, RunStatus, source_of
from tocsin.model.schedule import ScheduleStatus, Source
from tocsin.timers.schedules import ScheduleView
from tocsin.web.pages.presentation import State, milliseconds, span, utc, with_query
from tocsin.web.pages.schedules.presentation import (
    missed_words,
    outcome,
    schedule_path,
    source_words,
    state_of,
    waits_for_resumption,
)

#: An occurrence whose first attempt began later than this after its instant is late.
LATE_US = US_PER_SECOND
#: Occurrences on a strip, and bytes of their records that are read for it: attempts may have long errors and answers.
STRIP_CELLS = 30
STRIP_BYTES_MAX = 64 * 1024
#: The width of a cell with the gap to the next one, and the heights of cells by tone. A missed one is hollow.
_PITCH = 5
_HEIGHT = 16
_HEIGHTS = {"failed": 16, "expired": 16, "late": 13, "missed": 9}
_HEIGHT_PLAIN = 9


class Entry(NamedTuple):
    """An occurrence, or instants after it that were missed."""

    run: Run
    missed: MissedInstants | None

    @property
    def at(self) -> int:
        """Its instant, or the first one that was missed."""
        return self.run.execute_at if self.missed is None else self.missed.first_at


def entries(runs: Sequence[Run]) -> Iterator[Entry]:
    """Occurrences and missed instants, newest first, of runs in that order."""
    for run in runs:
        for missed in reversed(run.missed):
            yield Entry(run, missed)
        if run.status is not RunStatus.MISSED:
            yield Entry(run, None)


def late_us(run: Run) -> int | None:
    """How late the first attempt began; None if it was in time, and for instants that are fired once more."""
    if run.first_attempt_at is None or source_of(run) in (Source.BACKFILL, Source.REPLAY):
        return None
    late = run.first_attempt_at - run.execute_at
    return late if late > LATE_US else None


def state_of_entry(entry: Entry, view: ScheduleView, now_us: int) -> State:
    """The state of an entry of the schedule's history."""
    run, missed = entry
    if missed is not None:
        return State("missed", "missed")
    if run.status is not RunStatus.PENDING:
        return State("late", "late") if run.status is RunStatus.COMPLETED and late_us(run) else outcome(run.status)
    if waits_for_resumption(view):
        return State("paused", "suspended")
    known = state_of(view, now_us)
    return State("pending", "pending") if view.status is not ScheduleStatus.ENDED and known.word == "active" else known


def occurrence_path(namespace: str, schedule_id: str, at: int) -> str:
    """The path of the page of the newest occurrence at an instant."""
    base, _, query = schedule_path(namespace, schedule_id).partition("?")
    return f"{base}/occurrences/{format_instant(at)}{'?' if query else ''}{query}"


def entry_path(entry: Entry, namespace: str, schedule_id: str) -> str:
    """The path of the entry's page. Where several occurrences may have the instant, its name follows: not only regular ones
    have it, and what has failed may be replayed."""
    path, run = occurrence_path(namespace, schedule_id, entry.at), entry.run
    if entry.missed is not None or (source_of(run) is Source.REGULAR and run.status not in FAILED_RUNS):
        return path
    return with_query(path, {"firing": name_of(run)})


def name_of(run: Run) -> str:
    """What distinguishes the run from others of the same instant: a replay has the firing of what it repeats."""
    return f"{base_firing(run)}~{run.first_attempt_at or ''}" if run.replay else base_firing(run)


def base_firing(run: Run) -> str:
    """The name of the run's firing without the count of its postponements."""
    return run.firing.partition(".")[0]


def entry_words(entry: Entry) -> str:
    """What became of the entry, as a phrase."""
    run, missed = entry
    if missed is not None:
        return ", ".join(missed_words({missed.reason: missed.instants}))
    words = [source_words(run), run.status.value]
    if run.attempts:
        words.append(f"in {milliseconds(run.attempts[-1].duration_us)}")
    if late := late_us(run):
        words.append(f"({span(late)} late)")
    return " ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class Cell:
    """One bar of a strip, from its left edge and its top. A hollow one is smaller by its edge."""

    x: float
    y: float
    width: int
    height: int
    at: int
    tone: str
    words: str
    path: str

    @property
    def title(self) -> str:
        """The text for the pointer, for browsers without scripts."""
        return f"{utc(self.at)}, {self.words}"


@dataclass(frozen=True, slots=True)
class Strip:
    """The last outcomes of a schedule, oldest first. `p50_us` is the median duration of their last attempts."""

    cells: list[Cell]
    p50_us: int | None
    words: str

    height = _HEIGHT

    @property
    def width(self) -> int:
        """In pixels."""
        return len(self.cells) * _PITCH


def bar(place: int, tone: str, at: int, words: str, path: str) -> Cell:
    """The bar at this place of a strip, which leads to a page."""
    height = _HEIGHTS.get(tone, _HEIGHT_PLAIN)
    edge = tone == "missed"
    x, y = place * _PITCH + edge / 2, _HEIGHT - height + edge / 2
    return Cell(x, y, _PITCH - 1 - edge, height - edge, at, tone, words, path)


def strip(view: ScheduleView, runs: Sequence[Run]) -> Strip:
    """The strip of these runs, which are the newest ones, newest first."""
    ended = [entry for entry in entries(runs) if entry.missed or entry.run.status is not RunStatus.PENDING]
    shown = ended[:STRIP_CELLS][::-1]
    cells, states = [], Counter[str]()
    for place, entry in enumerate(shown):
        state = state_of_entry(entry, view, 0)
        states[state.word] += 1
        path = entry_path(entry, view.timer.namespace, view.timer.id)
        cells.append(bar(place, state.tone, entry.at, entry_words(entry), path))
    durations = [each.run.attempts[-1].duration_us for each in shown if each.missed is None and each.run.attempts]
    counted = ", ".join(f"{number} {word}" for word, number in states.most_common())
    return Strip(cells, median_low(durations) if durations else None, f"Last outcomes: {counted}")
