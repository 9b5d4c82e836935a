"""What the overview says of an hour: a sentence, statistics, tables. Where a node's part is missing, they say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tocsin.ui.cluster_statistics import Gap
from tocsin.ui.paused import Counted, PausedNamespace
from tocsin.ui.show import count, milliseconds, span
from tocsin.ui.statistics import Bucket, Failing, percentile_ms

#: Over how much of the present the sentence speaks.
PRESENT_S = 60.0
#: Overdue by more than this is worth a word; less is the normal way of a due timer to its call.
_OVERDUE_S = 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """What the overview says first. `tone`: calm, busy or alarm."""

    sentence: str
    tone: str


def without(gaps: Iterable[Gap]) -> str:
    """Whose part is missing, in words that end a remark; empty when nobody's is."""
    names = sorted({gap.node for gap in gaps})
    if len(names) > 1:
        return f"without {len(names)} nodes"
    return f"without {names[0]}" if names else ""


def health_of_part(gaps: Sequence[Gap], rest: Health, *, alone: bool) -> Health:
    """The same where some nodes' part of the last minute is missing. `alone`: nobody's but theirs was asked for."""
    silent, ended = [gap for gap in gaps if not gap.ended], [gap for gap in gaps if gap.ended]
    said = []
    if silent:
        said.append(f"{silent[0].node} {silent[0].why}" if len(silent) == 1 else f"{len(silent)} nodes can’t be asked")
    if ended:
        said.append(f"{ended[0].node} has ended" if len(ended) == 1 else f"{len(ended)} nodes have ended")
    if not said:
        return rest
    words = ", ".join(said)
    if alone:
        return Health(f"{words}; what it does now isn’t known here.", "busy")
    tone = "busy" if silent and rest.tone == "calm" else rest.tone
    return Health(f"{words}. As far as is known: {rest.sentence[:1].lower()}{rest.sentence[1:]}", tone)


#: Paused namespaces that the sentence names.
_PAUSED_NAMED = 3


def health_of_paused(paused: Sequence[PausedNamespace], rest: Health) -> Health:
    """The same where namespaces are paused: what waits there is not on time, and `rest` counts none of it."""
    if not paused:
        return rest
    named = ", ".join(f"{each.name} ({_waiting(each.waiting)})" for each in paused[:_PAUSED_NAMED])
    if len(paused) > _PAUSED_NAMED:
        named += f" and {len(paused) - _PAUSED_NAMED} more"
    words = f"Paused: {named}."
    tone = "busy" if rest.tone == "calm" else rest.tone
    return Health(f"{words} Otherwise: {rest.sentence[:1].lower()}{rest.sentence[1:]}", tone)


def _waiting(waiting: Counted) -> str:
    if not waiting.timers:
        return "nothing due yet"
    return f"{waiting} {'waits' if waiting.timers == 1 and not waiting.more else 'wait'}, past due"


def health(recent: Sequence[Bucket], now: Bucket, reasons: Sequence[str], width_s: float) -> Health:
    """The last minute in one sentence."""
    if reasons:
        return Health(f"Not serving as it should: {'; '.join(reasons)}.", "alarm")
    rings = sum(bucket.rings for bucket in recent)
    broken = sum(bucket.failed for bucket in recent)
    slowest = max((bucket.lag_max_ms for bucket in recent), default=0.0)
    if now.overdue_s > _OVERDUE_S:
        behind = span(round(now.overdue_s * 1e6))
        return Health(f"Behind: the oldest due timer has waited {behind}. {_rate(rings, recent, width_s)}.", "alarm")
    calls = _calls(recent)
    if rings == 0:
        waiting = count(now.window_timers)
        soon = f"{waiting} timers ring within minutes" if now.window_timers else "no timer rings within minutes"
        return Health(f"Quiet. Nothing rang in the last minute, {soon}, nothing overdue.{calls}", "calm")
    # A number and its unit stay on one line.
    rest = f"slowest {milliseconds(slowest * 1_000)}, nothing overdue".replace(" ms", "\u00a0ms")
    rate = _rate(rings, recent, width_s)
    if broken:
        return Health(f"On time, but {count(broken)} of {rate} failed for good; {rest}.{calls}", "busy")
    return Health(f"On time. {rate}, {rest}.{calls}", "calm")


def _calls(recent: Sequence[Bucket]) -> str:
    """What is to be said of service calls, if any has ended."""
    succeeded = sum(bucket.calls.succeeded for bucket in recent)
    failed = sum(bucket.calls.failed for bucket in recent)
    ended = succeeded + failed
    if not ended:
        return ""
    words = f" {count(ended)} service {'call' if ended == 1 else 'calls'} ended"
    return f"{words}, {count(failed)} of them failed." if failed else f"{words}, none failed."


def _rate(rings: int, recent: Sequence[Bucket], width_s: float) -> str:
    number = rings * 60 / max(width_s * len(recent), 60.0) if len(recent) * width_s > 60 else rings
    return f"{count(number)} {'ring' if number == 1 else 'rings'} in the last minute"


class Over(Enum):
    """Of which time a figure is."""

    NOW = "now"
    MINUTE = "minute"
    HOUR = "hour"


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure with its title and a remark. `sums`: parts that are missing could only make it greater; the same is true of
    the remark, if it begins with a sum, over `note_over`."""

    name: str
    title: str
    value: str
    note: str
    tone: str = ""
    over: Over = Over.MINUTE
    sums: bool = True
    note_over: Over | None = None


def partly(tiles: Sequence[Tile], gaps: Mapping[Over, Sequence[Gap]]) -> list[Tile]:
    """The statistics as they are to be shown where parts are missing of some of them."""
    shown = []
    for tile in tiles:
        lacking = gaps[tile.over]
        value = at_least(tile.value) if lacking and tile.sums else tile.value
        of_note = [] if tile.note_over is None else gaps[tile.note_over]
        note = at_least(tile.note) if of_note else tile.note
        missing = without([*lacking, *of_note])
        shown.append(replace(tile, value=value, note=f"{note}, {missing}") if missing else tile)
    return shown


def at_least(value: str) -> str:
    """A sum of which a part is missing."""
    return "none known" if value == "none" else f"≥\u00a0{value}"


def tiles(recent: Sequence[Bucket], hour: Sequence[Bucket], now: Bucket, *, paused: bool = False) -> list[Tile]:
    """The statistics under the sentence. `paused`: some namespace is, whose timers are not counted as overdue."""
    rings = sum(bucket.rings for bucket in recent)
    lag = [sum(counts) for counts in zip(*(bucket.lag_counts for bucket in recent), strict=True)]
    most = max((bucket.lag_max_ms for bucket in recent), default=0.0)
    half, tail = percentile_ms(lag, 0.5, most), percentile_ms(lag, 0.99, most)
    created = sum(bucket.created for bucket in recent)
    failed = sum(bucket.failed for bucket in hour)
    retried = sum(bucket.retried for bucket in hour)
    overdue_us = round(now.overdue_s * 1e6)
    return [
        Tile("rings", "Fires, last minute", count(rings), f"{count(now.in_flight)} in flight", note_over=Over.NOW),
        Tile(
            "created",
            "Created, last minute",
            count(created),
            f"{count(sum(b.created for b in hour))} this hour",
            note_over=Over.HOUR,
        ),
        Tile(
            "lag",
            "Lag, p99",
            "–" if tail is None else milliseconds(tail * 1_000),
            "nothing fired" if half is None else f"p50 {milliseconds(half * 1_000)}",
            sums=False,
        ),
        Tile(
            "overdue",
            "Overdue",
            "none" if now.overdue_s <= _OVERDUE_S else span(overdue_us),
            "without paused namespaces" if paused else "oldest due timer",
            "failed" if now.overdue_s > _OVERDUE_S else "",
            Over.NOW,
        ),
        Tile("window", "Due within minutes", count(now.window_timers), "in memory", over=Over.NOW),
        Tile(
            "failed",
            "Failed, this hour",
            count(failed),
            f"{count(retried)} {'attempt' if retried == 1 else 'attempts'} retried",
            "failed" if failed else "",
            Over.HOUR,
            note_over=Over.HOUR,
        ),
    ]


def call_tiles(recent: Sequence[Bucket], hour: Sequence[Bucket]) -> list[Tile]:
    """The same statistics for service calls."""
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
            note_over=Over.HOUR,
        ),
        Tile("calls-succeeded", "Succeeded, this hour", count(succeeded), _share(succeeded, failed), over=Over.HOUR),
        Tile(
            "calls-failed",
            "Failed, this hour",
            count(failed),
            "no other answer will come",
            "failed" if failed else "",
            Over.HOUR,
        ),
        Tile(
            "calls-lag",
            "Start lag, p99, this hour",
            "–" if tail is None else milliseconds(tail * 1_000),
            "none has begun" if half is None else f"p50 {milliseconds(half * 1_000)}",
            over=Over.HOUR,
            sums=False,
        ),
    ]


def _share(succeeded: int, failed: int) -> str:
    ended = succeeded + failed
    return f"{succeeded * 100 // ended} of 100 that ended" if ended else "none has ended"


def failing(destinations: Iterable[Mapping[str, Failing]]) -> list[tuple[str, Failing]]:
    """Destinations whose calls went wrong, those with the most failures first."""
    together: dict[str, Failing] = {}
    for known in destinations:
        for name, one in known.items():
            sums = together.setdefault(name, Failing())
            sums.failures += one.failures
            sums.gave_up += one.gave_up
            sums.last_error = one.last_error
    return sorted(together.items(), key=lambda item: -item[1].failures)


@dataclass(frozen=True, slots=True)
class Minute:
    """A line of the table that stands for the charts where they can't be seen. `whole`: no node's part is missing."""

    at: int
    rings: int
    failed: int
    created: int
    p99_ms: float | None
    whole: bool


def minutes(buckets: Sequence[Bucket], gaps: Sequence[Gap]) -> list[Minute]:
    """The buckets, minute by minute."""
    grouped: dict[int, list[Bucket]] = {}
    for bucket in buckets:
        grouped.setdefault(bucket.begins_us - bucket.begins_us % 60_000_000, []).append(bucket)
    lines = []
    for at, group in grouped.items():
        lag = [sum(counts) for counts in zip(*(bucket.lag_counts for bucket in group), strict=True)]
        most = max(bucket.lag_max_ms for bucket in group)
        lines.append(
            Minute(
                at,
                sum(bucket.rings for bucket in group),
                sum(bucket.failed for bucket in group),
                sum(bucket.created for bucket in group),
                percentile_ms(lag, 0.99, most),
                not any(gap.touches(at) and (gap.from_us or at) < at + 60_000_000 for gap in gaps),
            )
        )
    return lines
