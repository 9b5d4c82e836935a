"""The content of the overview: the health sentence, tiles and tables, with a remark where a node's data is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tocsin.web.pages.overview.cluster_statistics import Gap
from tocsin.web.pages.overview.paused import BoundedCount, PausedNamespace
from tocsin.web.pages.overview.statistics import Bucket, DestinationFailures, percentile_ms
from tocsin.web.pages.presentation import count, milliseconds, span

#: The period that the health sentence covers, in seconds.
PRESENT_S = 60.0
#: Timers overdue by more than this are reported; shorter delays are normal.
_OVERDUE_S = 1.0


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


def health(recent: Sequence[Bucket], now: Bucket, reasons: Sequence[str], width_s: float) -> Health:
    """The health of the last minute in one sentence."""
    if reasons:
        return Health(f"Degraded: {'; '.join(reasons)}.", "alarm")
    fires = sum(bucket.fires for bucket in recent)
    failed = sum(bucket.failed for bucket in recent)
    slowest = max((bucket.lag_max_ms for bucket in recent), default=0.0)
    if now.overdue_s > _OVERDUE_S:
        behind = span(round(now.overdue_s * 1e6))
        return Health(f"Behind: the oldest due timer has waited {behind}. {_rate(fires, recent, width_s)}.", "alarm")
    calls = _calls(recent)
    if fires == 0:
        waiting = count(now.window_timers)
        soon = f"{waiting} timers due within minutes" if now.window_timers else "no timer due within minutes"
        return Health(f"Quiet. Nothing fired in the last minute, {soon}, nothing overdue.{calls}", "calm")
    # A number and its unit stay on one line.
    rest = f"slowest {milliseconds(slowest * 1_000)}, nothing overdue".replace(" ms", "\u00a0ms")
    rate = _rate(fires, recent, width_s)
    if failed:
        return Health(f"On time, but {count(failed)} of {rate} failed; {rest}.{calls}", "busy")
    return Health(f"On time. {rate}, {rest}.{calls}", "calm")


def _calls(recent: Sequence[Bucket]) -> str:
    """The sentence about service calls; empty if none has ended."""
    succeeded = sum(bucket.calls.succeeded for bucket in recent)
    failed = sum(bucket.calls.failed for bucket in recent)
    ended = succeeded + failed
    if not ended:
        return ""
    words = f" {count(ended)} service {'call' if ended == 1 else 'calls'} ended"
    return f"{words}, {count(failed)} failed." if failed else f"{words}, none failed."


def _rate(fires: int, recent: Sequence[Bucket], width_s: float) -> str:
    number = fires * 60 / max(width_s * len(recent), 60.0) if len(recent) * width_s > 60 else fires
    return f"{count(number)} {'fire' if number == 1 else 'fires'} in the last minute"


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


def tiles(recent: Sequence[Bucket], hour: Sequence[Bucket], now: Bucket, *, paused: bool = False) -> list[Tile]:
    """The tiles of timers. `paused`: there are paused namespaces, whose timers do not count as overdue."""
    fires = sum(bucket.fires for bucket in recent)
    lag = [sum(counts) for counts in zip(*(bucket.lag_counts for bucket in recent), strict=True)]
    most = max((bucket.lag_max_ms for bucket in recent), default=0.0)
    half, tail = percentile_ms(lag, 0.5, most), percentile_ms(lag, 0.99, most)
    created = sum(bucket.created for bucket in recent)
    failed = sum(bucket.failed for bucket in hour)
    retried = sum(bucket.retried for bucket in hour)
    overdue_us = round(now.overdue_s * 1e6)
    return [
        Tile("fires", "Fires, last minute", count(fires), f"{count(now.in_flight)} in flight", note_period=Period.NOW),
        Tile(
            "created",
            "Created, last minute",
            count(created),
            f"{count(sum(b.created for b in hour))} this hour",
            note_period=Period.HOUR,
        ),
        Tile(
            "lag",
            "Lag p99",
            "–" if tail is None else milliseconds(tail * 1_000),
            "nothing fired" if half is None else f"p50 {milliseconds(half * 1_000)}",
            sums=False,
        ),
        Tile(
            "overdue",
            "Overdue",
            "none" if now.overdue_s <= _OVERDUE_S else span(overdue_us),
            "paused namespaces excluded" if paused else "oldest due timer",
            "failed" if now.overdue_s > _OVERDUE_S else "",
            Period.NOW,
        ),
        Tile("window", "Due within minutes", count(now.window_timers), "timers in memory", period=Period.NOW),
        Tile(
            "failed",
            "Failed, this hour",
            count(failed),
            f"{count(retried)} {'attempt' if retried == 1 else 'attempts'} retried",
            "failed" if failed else "",
            Period.HOUR,
            note_period=Period.HOUR,
        ),
    ]


def call_tiles(recent: Sequence[Bucket], hour: Sequence[Bucket]) -> list[Tile]:
    """The tiles of service calls."""
    submitted = sum(bucket.calls.submitted for bucket in recent)
    succeeded = sum(bucket.calls.succeeded for bucket in hour)
    failed = sum(bucket.calls.failed for bucket in hour)
    lag = [sum(counts) for counts in zip(*(bucket.calls.lag_counts for bucket in hour), strict=True)]
    most = max((bucket.calls.lag_max_ms for bucket in hour), default=0.0)
    half, tail = percentile_ms(lag, 0.5, most), percentile_ms(lag, 0.99, most)
    return [
        Tile(
            "calls-submitted",
            "Submitted, last minute",
            count(submitted),
            f"{count(sum(bucket.calls.submitted for bucket in hour))} this hour",
            note_period=Period.HOUR,
        ),
        Tile(
            "calls-succeeded", "Succeeded, this hour", count(succeeded), _share(succeeded, failed), period=Period.HOUR
        ),
        Tile(
            "calls-failed",
            "Failed, this hour",
            count(failed),
            "will not be retried",
            "failed" if failed else "",
            Period.HOUR,
        ),
        Tile(
            "calls-lag",
            "Start lag p99, this hour",
            "–" if tail is None else milliseconds(tail * 1_000),
            "none started" if half is None else f"p50 {milliseconds(half * 1_000)}",
            period=Period.HOUR,
            sums=False,
        ),
    ]


def _share(succeeded: int, failed: int) -> str:
    ended = succeeded + failed
    return f"{succeeded * 100 // ended}% of ended calls" if ended else "none ended"


def failing(destinations: Iterable[Mapping[str, DestinationFailures]]) -> list[tuple[str, DestinationFailures]]:
    """Destinations with failed calls, those with the most failures first."""
    together: dict[str, DestinationFailures] = {}
    for known in destinations:
        for name, one in known.items():
            sums = together.setdefault(name, DestinationFailures())
            sums.failures += one.failures
            sums.exhausted += one.exhausted
            sums.last_error = one.last_error
    return sorted(together.items(), key=lambda item: -item[1].failures)


@dataclass(frozen=True, slots=True)
class Minute:
    """A row of the table that repeats the charts as text. `whole`: no node's data is missing."""

    at: int
    fires: int
    failed: int
    created: int
    p99_ms: float | None
    whole: bool


def minutes(buckets: Sequence[Bucket], gaps: Sequence[Gap]) -> list[Minute]:
    """The statistics of each minute."""
    grouped: dict[int, list[Bucket]] = {}
    for bucket in buckets:
        grouped.setdefault(bucket.begins_us - bucket.begins_us % 60_000_000, []).append(bucket)
    rows = []
    for at, group in grouped.items():
        lag = [sum(counts) for counts in zip(*(bucket.lag_counts for bucket in group), strict=True)]
        most = max(bucket.lag_max_ms for bucket in group)
        rows.append(
            Minute(
                at,
                sum(bucket.fires for bucket in group),
                sum(bucket.failed for bucket in group),
                sum(bucket.created for bucket in group),
                percentile_ms(lag, 0.99, most),
                not any(gap.touches(at) and (gap.from_us or at) < at + 60_000_000 for gap in gaps),
            )
        )
    return rows
