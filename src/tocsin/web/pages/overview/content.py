"""The content of the overview: the health sentence, tiles and tables, with a remark where a node's data is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby

from tocsin.ports.statistics import Latencies, StatisticsSlot, total
from tocsin.web.pages.overview.cluster_statistics import Gap
from tocsin.web.pages.overview.paused import BoundedCount, PausedNamespace
from tocsin.web.pages.presentation import count, milliseconds, span

#: The period that the health sentence covers, in seconds.
PRESENT_S = 60.0
_MINUTE_US = 60_000_000
#: Timers overdue by more than this are reported; shorter delays are normal.
_OVERDUE_S = 1.0
#: Fires with a greater lag count as late, even if nothing is overdue any more. Lags are counted in classes; the first
#: one above this begins at 1.25 s.
_LATE_MS = 1_000.0


@dataclass(frozen=True, slots=True)
class Health:
    """The health sentence. `tone`: calm, busy or alarm."""

    sentence: str
    tone: str


def without(gaps: Iterable[Gap]) -> str:
    """The nodes whose data is missing, as the end of a remark; empty without gaps."""
    names = sorted({gap.node for gap in gaps})
    if len(names) > 1:
        return f"without {len(names)} nodes"
    return f"without {names[0]}" if names else ""


def health_with_gaps(gaps: Sequence[Gap], rest: Health, *, alone: bool) -> Health:
    """The health sentence, given gaps in the last minute. `alone`: the page shows one node only."""
    unresponsive, ended = [gap for gap in gaps if not gap.ended], [gap for gap in gaps if gap.ended]
    reasons = []
    if unresponsive:
        reasons.append(
            f"{unresponsive[0].node} {unresponsive[0].why}"
            if len(unresponsive) == 1
            else f"{len(unresponsive)} nodes do not respond"
        )
    if ended:
        reasons.append(f"{ended[0].node} has stopped" if len(ended) == 1 else f"{len(ended)} nodes have stopped")
    if not reasons:
        return rest
    words = ", ".join(reasons)
    if alone:
        return Health(f"{words}. Its current state is unknown.", "busy")
    tone = "busy" if unresponsive and rest.tone == "calm" else rest.tone
    return Health(f"{words}. Otherwise: {rest.sentence[:1].lower()}{rest.sentence[1:]}", tone)


#: Paused namespaces that the health sentence names.
_PAUSED_NAMED = 3


def health_with_paused(paused: Sequence[PausedNamespace], rest: Health) -> Health:
    """The health sentence, given paused namespaces: `rest` does not count their timers."""
    if not paused:
        return rest
    named = ", ".join(f"{each.name} ({_waiting(each.waiting)})" for each in paused[:_PAUSED_NAMED])
    if len(paused) > _PAUSED_NAMED:
        named += f" and {len(paused) - _PAUSED_NAMED} more"
    words = f"Paused: {named}."
    tone = "busy" if rest.tone == "calm" else rest.tone
    return Health(f"{words} Otherwise: {rest.sentence[:1].lower()}{rest.sentence[1:]}", tone)


def _waiting(waiting: BoundedCount) -> str:
    if not waiting.timers:
        return "none due"
    return f"{waiting} overdue"


def health(minute: StatisticsSlot, now: StatisticsSlot, reasons: Sequence[str], period_s: float) -> Health:
    """The health of the last minute in one sentence. `period_s` is the time that `minute` covers."""
    if reasons:
        meaning = (
            " Meanwhile nothing fires there; what comes due waits, and nothing is lost." if _pauses(reasons) else ""
        )
        return Health(f"Degraded: {'; '.join(reasons)}.{meaning}", "alarm")
    fires = minute.fires * 60 / period_s if period_s > 60 else minute.fires
    rate = f"{count(fires)} {'fire' if fires == 1 else 'fires'} in the last minute"
    if now.overdue_s > _OVERDUE_S:
        behind = span(round(now.overdue_s * 1e6))
        return Health(f"Behind: the oldest due timer has waited {behind}. {rate}.", "alarm")
    calls = _calls(minute)
    if minute.fires == 0:
        waiting = count(now.window_timers)
        soon = f"{waiting} timers due within minutes" if now.window_timers else "no timer due within minutes"
        return Health(f"Quiet. Nothing fired in the last minute, {soon}, nothing overdue.{calls}", "calm")
    if late := minute.lag.above(_LATE_MS):
        share, slowest = late * 60 / period_s if period_s > 60 else late, span(round(minute.lag.max_ms * 1_000))
        failed = f"; {count(minute.failed)} failed" if minute.failed else ""
        came = f"Came late: {count(share)} of {rate}, by up to {slowest}{failed}"
        return Health(f"{came}. Nothing is overdue now.{calls}", "busy")
    # A number and its unit stay on one line.
    rest = f"slowest {milliseconds(minute.lag.max_ms * 1_000)}, nothing overdue".replace(" ms", "\u00a0ms")
    if minute.failed:
        return Health(f"On time, but {count(minute.failed)} of {rate} failed; {rest}.{calls}", "busy")
    return Health(f"On time. {rate}, {rest}.{calls}", "calm")


def _pauses(reasons: Iterable[str]) -> bool:
    """Whether a node does not dispatch."""
    return any("dispatch paused: " in reason for reason in reasons)


def _calls(minute: StatisticsSlot) -> str:
    """The sentence about service calls; empty if none has ended."""
    failed = minute.calls_failed
    ended = minute.calls_succeeded + failed
    if not ended:
        return ""
    words = f" {count(ended)} service {'call' if ended == 1 else 'calls'} ended"
    return f"{words}, {count(failed)} failed." if failed else f"{words}, none failed."


class Period(Enum):
    """The period that a statistic covers."""

    NOW = "now"
    MINUTE = "minute"
    HOUR = "hour"


@dataclass(frozen=True, slots=True)
class Tile:
    """A statistic with its title and a remark. `sums`: the value is a total, so missing data could only make it greater. The
    same applies to the remark, over `note_period`, if that is set."""

    name: str
    title: str
    value: str
    note: str
    tone: str = ""
    period: Period = Period.MINUTE
    sums: bool = True
    note_period: Period | None = None


def with_gaps(tiles: Sequence[Tile], gaps: Mapping[Period, Sequence[Gap]]) -> list[Tile]:
    """The tiles, marked where data of their period is missing."""
    shown = []
    for tile in tiles:
        missing = gaps[tile.period]
        value = at_least(tile.value) if missing and tile.sums else tile.value
        of_note = [] if tile.note_period is None else gaps[tile.note_period]
        note = at_least(tile.note) if of_note else tile.note
        nodes = without([*missing, *of_note])
        shown.append(replace(tile, value=value, note=f"{note}, {nodes}") if nodes else tile)
    return shown


def at_least(value: str) -> str:
    """A total with missing data."""
    return "none known" if value == "none" else f"≥\u00a0{value}"


def tiles(minute: StatisticsSlot, hour: StatisticsSlot, now: StatisticsSlot, *, paused: bool = False) -> list[Tile]:
    """The tiles of timers. `paused`: there are paused namespaces, whose timers do not count as overdue."""
    overdue = now.overdue_s > _OVERDUE_S
    fires = Tile("fires", "Fires, last minute", count(minute.fires), f"{count(now.in_flight)} in flight")
    created = Tile("created", "Created, last minute", count(minute.created), f"{count(hour.created)} this hour")
    return [
        replace(fires, note_period=Period.NOW),
        replace(created, note_period=Period.HOUR),
        Tile("lag", "Lag p99", *_percentiles(minute.lag, "nothing fired"), sums=False),
        Tile(
            "overdue",
            "Overdue",
            span(round(now.overdue_s * 1e6)) if overdue else "none",
            "paused namespaces excluded" if paused else "oldest due timer",
            "failed" if overdue else "",
            Period.NOW,
        ),
        Tile("window", "Due within minutes", count(now.window_timers), "timers in memory", period=Period.NOW),
        Tile(
            "failed",
            "Failed, this hour",
            count(hour.failed),
            ", ".join(
                [
                    f"{count(hour.retried)} {'attempt' if hour.retried == 1 else 'attempts'} retried",
                    *([f"{count(hour.expired)} expired"] if hour.expired else []),
                ]
            ),
            "failed" if hour.failed or hour.expired else "",
            Period.HOUR,
            note_period=Period.HOUR,
        ),
    ]


def call_tiles(minute: StatisticsSlot, hour: StatisticsSlot) -> list[Tile]:
    """The tiles of service calls."""
    submitted, succeeded, failed = hour.calls_submitted, hour.calls_succeeded, hour.calls_failed
    ended = succeeded + failed
    share = f"{succeeded * 100 // ended}% of ended calls" if ended else "none ended"
    lag = _percentiles(hour.calls_lag, "none started")
    tone = "failed" if failed else ""
    return [
        Tile(
            "calls-submitted",
            "Submitted, last minute",
            count(minute.calls_submitted),
            f"{count(submitted)} this hour",
            note_period=Period.HOUR,
        ),
        Tile("calls-succeeded", "Succeeded, this hour", count(succeeded), share, period=Period.HOUR),
        Tile("calls-failed", "Failed, this hour", count(failed), "will not be retried", tone, Period.HOUR),
        Tile("calls-lag", "Start lag p99, this hour", *lag, period=Period.HOUR, sums=False),
    ]


def _percentiles(lag: Latencies, nothing: str) -> tuple[str, str]:
    """The 99th percentile, and a remark with the median, or with `nothing` without latencies."""
    half, tail = lag.percentile_ms(0.5), lag.percentile_ms(0.99)
    if half is None or tail is None:
        return "–", nothing
    return milliseconds(tail * 1_000), f"p50 {milliseconds(half * 1_000)}"


@dataclass(frozen=True, slots=True)
class Minute:
    """A row of the table that repeats the charts as text. `whole`: no node's data is missing."""

    at: int
    fires: int
    failed: int
    created: int
    p99_ms: float | None
    whole: bool


def minutes(slots: Sequence[StatisticsSlot], gaps: Sequence[Gap], destinations_max: int) -> list[Minute]:
    """The statistics of each minute."""
    rows = []
    for at, group in groupby(slots, key=lambda slot: slot.begins_us - slot.begins_us % _MINUTE_US):
        sums = total(group, destinations_max)
        whole = not any(gap.touches(at) and (gap.from_us or at) < at + _MINUTE_US for gap in gaps)
        rows.append(Minute(at, sums.fires, sums.failed, sums.created, sums.lag.percentile_ms(0.99), whole))
    return rows
