"""The content of the overview: the health sentence, tiles and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tocsin.statistics.outages import Outage
from tocsin.statistics.slots import CallCounts, Counts, Latencies, Slot
from tocsin.timers.explaining import PAUSE_TEXTS
from tocsin.web.pages.overview.nodes import Pause, Present
from tocsin.web.pages.overview.paused import BoundedCount, PausedNamespace
from tocsin.web.pages.presentation import count, milliseconds, span

#: Timers overdue by more than this are reported; shorter delays are normal.
_OVERDUE_S = 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """The health sentence. `tone`: calm, busy or alarm."""

    sentence: str
    tone: str


def without(silent: Sequence[str]) -> str:
    """The nodes that do not respond, as the end of a remark; empty without any."""
    if len(silent) > 1:
        return f"without {len(silent)} nodes"
    return f"without {silent[0]}" if silent else ""


def health_with_silent(silent: Sequence[str], rest: Health) -> Health:
    """The health sentence, given nodes that do not respond."""
    if not silent:
        return rest
    words = f"{silent[0]} does not respond" if len(silent) == 1 else f"{len(silent)} nodes do not respond"
    return _after(words, rest)


#: Paused namespaces that the health sentence names.
_PAUSED_NAMED = 3


def health_with_paused(paused: Sequence[PausedNamespace], rest: Health) -> Health:
    """The health sentence, given paused namespaces: `rest` does not count their timers."""
    if not paused:
        return rest
    named = ", ".join(f"{each.name} ({_waiting(each.waiting)})" for each in paused[:_PAUSED_NAMED])
    if len(paused) > _PAUSED_NAMED:
        named += f" and {len(paused) - _PAUSED_NAMED} more"
    return _after(f"Paused: {named}", rest)


def _after(words: str, rest: Health) -> Health:
    tone = "busy" if rest.tone == "calm" else rest.tone
    return Health(f"{words}. Otherwise: {rest.sentence[:1].lower()}{rest.sentence[1:]}", tone)


def _waiting(waiting: BoundedCount) -> str:
    if not waiting.timers:
        return "none due"
    return f"{waiting} overdue"


def degraded(
    pauses: Sequence[Pause], others: Sequence[str], database: str, now_us: int, *, nodes: int
) -> Health | None:
    """The health sentence while nodes fire nothing, or are not ready for other reasons; None while all is well. `database` is
    the store's name and place."""
    if not pauses and not others:
        return None
    if not pauses:
        return Health(f"Degraded: {'; '.join(others)}.", "alarm")
    reasons = [_pause(pause, database, now_us, alone=nodes == 1) for pause in pauses]
    meaning = "Nothing fires" if len(pauses) == nodes else "Nothing fires there until other nodes take over"
    if any(pause.reason == "lease" for pause in pauses):
        meaning += ", and writes fail, until it answers" if len(pauses) == nodes else ""
    rest = f" Also: {'; '.join(others)}." if others else ""
    return Health(
        f"Degraded: {'; '.join(reasons)}. {meaning}. What comes due waits and fires afterwards; nothing is lost.{rest}",
        "alarm",
    )


def _pause(pause: Pause, database: str, now_us: int, *, alone: bool) -> str:
    why = (
        f"{database} does not answer, or too slowly"
        if pause.reason == "lease"
        else PAUSE_TEXTS.get(pause.reason, pause.reason)
    )
    since = "" if pause.since_us is None else f", for {span(max(now_us - pause.since_us, 0))}"
    return f"{why}{since}" if alone else f"{pause.node}: {why}{since}"


def health(minute: Counts, calls: CallCounts, present: Present) -> Health:
    """The health of the last minute in one sentence."""
    rate = f"{count(minute.fires)} {'fire' if minute.fires == 1 else 'fires'} in the last minute"
    if present.overdue_s > _OVERDUE_S:
        behind = span(round(present.overdue_s * 1e6))
        return Health(f"Behind: the oldest due timer has waited {behind}. {rate}.", "alarm")
    ended = _calls(calls)
    if minute.fires == 0:
        waiting = count(present.window_timers)
        soon = f"{waiting} timers due within minutes" if present.window_timers else "no timer due within minutes"
        return Health(f"Quiet. Nothing fired in the last minute, {soon}, nothing overdue.{ended}", "calm")
    if minute.late:
        failed = f"; {count(minute.failed)} failed" if minute.failed else ""
        slowest = span(round(minute.lag.max_ms * 1_000))
        came = f"Came late: {count(minute.late)} of {rate}, by up to {slowest}{failed}"
        return Health(f"{came}. Nothing is overdue now.{ended}", "busy")
    # A number and its unit stay on one line.
    rest = f"slowest {milliseconds(minute.lag.max_ms * 1_000)}, nothing overdue".replace(" ms", "\u00a0ms")
    if minute.failed:
        return Health(f"On time, but {count(minute.failed)} of {rate} failed; {rest}.{ended}", "busy")
    return Health(f"On time. {rate}, {rest}.{ended}", "calm")


def _calls(calls: CallCounts) -> str:
    """The sentence about service calls; empty if none has ended."""
    ended = calls.succeeded + calls.failed
    if not ended:
        return ""
    words = f" {count(ended)} service {'call' if ended == 1 else 'calls'} ended"
    return f"{words}, {count(calls.failed)} failed." if calls.failed else f"{words}, none failed."


@dataclass(frozen=True, slots=True)
class Tile:
    """A statistic with its title and a remark. `now`: it is of this moment, so a node that does not respond is missing."""

    name: str
    title: str
    value: str
    note: str
    tone: str = ""
    now: bool = False


def with_silent(tiles: Sequence[Tile], silent: Sequence[str]) -> list[Tile]:
    """The tiles, marked where nodes that do not respond are missing."""
    if not silent:
        return list(tiles)
    return [
        replace(tile, value=at_least(tile.value), note=f"{tile.note}, {without(silent)}") if tile.now else tile
        for tile in tiles
    ]


def at_least(value: str) -> str:
    """A total with missing data."""
    return "none known" if value == "none" else f"≥\u00a0{value}"


def tiles(minute: Counts, hour: Counts, present: Present, *, paused: bool = False) -> list[Tile]:
    """The tiles of timers. `paused`: there are paused namespaces, whose timers do not count as overdue."""
    overdue = present.overdue_s > _OVERDUE_S
    retried = f"{count(hour.retried)} {'attempt' if hour.retried == 1 else 'attempts'} retried"
    return [
        Tile("fires", "Fires, last minute", count(minute.fires), f"{count(present.in_flight)} in flight"),
        Tile("created", "Created, last minute", count(minute.created), f"{count(hour.created)} this hour"),
        Tile("lag", "Lag p99", *_percentiles(minute.lag, "nothing fired")),
        Tile(
            "overdue",
            "Overdue",
            span(round(present.overdue_s * 1e6)) if overdue else "none",
            "paused namespaces excluded" if paused else "oldest due timer",
            "failed" if overdue else "",
            now=True,
        ),
        Tile("window", "Due within minutes", count(present.window_timers), "timers in memory", now=True),
        Tile(
            "failed",
            "Failed, this hour",
            count(hour.failed),
            ", ".join([retried, *([f"{count(hour.expired)} expired"] if hour.expired else [])]),
            "failed" if hour.failed or hour.expired else "",
        ),
    ]


def call_tiles(minute: CallCounts, hour: CallCounts) -> list[Tile]:
    """The tiles of service calls."""
    ended = hour.succeeded + hour.failed
    share = f"{hour.succeeded * 100 // ended}% of ended calls" if ended else "none ended"
    submitted = f"{count(hour.submitted)} this hour"
    tone = "failed" if hour.failed else ""
    return [
        Tile("calls-submitted", "Submitted, last minute", count(minute.submitted), submitted),
        Tile("calls-succeeded", "Succeeded, this hour", count(hour.succeeded), share),
        Tile("calls-failed", "Failed, this hour", count(hour.failed), "will not be retried", tone),
        Tile("calls-lag", "Start lag p99, this hour", *_percentiles(hour.lag, "none started")),
    ]


def _percentiles(lag: Latencies, nothing: str) -> tuple[str, str]:
    """The 99th percentile, and a remark with the median, or with `nothing` without latencies."""
    half, tail = lag.percentile_ms(0.5), lag.percentile_ms(0.99)
    if half is None or tail is None:
        return "–", nothing
    return milliseconds(tail * 1_000), f"p50 {milliseconds(half * 1_000)}"


@dataclass(frozen=True, slots=True)
class Minute:
    """A row of the table that repeats the charts as text."""

    at: int
    fires: int
    failed: int
    created: int
    p99_ms: float | None


def minutes(slots: Sequence[Slot]) -> list[Minute]:
    """The statistics of each minute."""
    summed = [(slot.begins_us, slot.counts()) for slot in slots]
    return [Minute(at, sums.fires, sums.failed, sums.created, sums.lag.percentile_ms(0.99)) for at, sums in summed]


def outage_sentence(outage: Outage) -> str:
    """What an outage that has ended did to timers."""
    lasted = span((outage.to_us or outage.from_us) - outage.from_us)
    late = (
        f"{count(outage.late)} fired late, by at most {span(outage.late_max_us)}" if outage.late else "none fired late"
    )
    so_far = " so far" if outage.counting else ""
    refused = f"; {count(outage.creates_refused)} creates refused" if outage.creates_refused else ""
    return f"{PAUSE_TEXTS.get(outage.reason, outage.reason)}, for {lasted}: {late}{so_far}{refused}"
