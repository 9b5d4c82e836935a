"""The charts of the page Now, as the server draws them: positions in percent of the width, heights in pixels.

Each is an SVG without a view box, so that nothing is distorted at any width, and no script and no style attribute is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from tocsin.model.instants import format_instant
from tocsin.statistics.outages import Outage
from tocsin.statistics.slots import Counts, Slot

MINUTES = 60
_MINUTE_US = 60_000_000
FIRES_PX, LAG_PX, NEXT_PX, SPARK_PX = 112, 56, 56, 24
#: The least height of what is there at all.
_PX_MIN = 1.5
#: Lags on a logarithmic scale: its lower end and its decades.
_LAG_MS_MIN, _DECADES = 1.0, 5
#: The share of a minute's width that its bar takes.
_BAR = 0.72
#: An outage is drawn at least as wide as this, in percent.
_OUTAGE_MIN = 0.4

#: The query of a list of timers with these changes.
Link = Callable[[Mapping[str, str]], str]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: its tone, where it begins and how high it is, and the list of what it counts."""

    tone: str
    y: float
    height: float
    link: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A minute: its bar's place, its parts from the bottom up, and all of it in words."""

    at: int
    x: float
    width: float
    parts: Sequence[Part]
    words: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a line between two minutes. `late`: it reaches above a second."""

    x1: float
    y1: float
    x2: float
    y2: float
    late: bool


@dataclass(frozen=True, slots=True)
class Shade:
    """A time in which a node fired nothing."""

    x: float
    width: float
    words: str


@dataclass(frozen=True, slots=True)
class Tick:
    """An instant on the axis of time."""

    at: int
    x: float


@dataclass(frozen=True, slots=True)
class Band:
    """The last hour: bars of fires by outcome with the greatest value of their axis, the line of lags, outages, and the
    clock; with the sums."""

    bars: Sequence[Bar]
    most: int
    lag: Sequence[Segment]
    shades: Sequence[Shade]
    ticks: Sequence[Tick]
    sums: Counts


@dataclass(frozen=True, slots=True)
class Ahead:
    """The next hour: bars of due timers, the greatest value of their axis, and the clock. `until_us`: how far it was counted,
    None to its end."""

    bars: Sequence[Bar]
    most: int
    ticks: Sequence[Tick]
    due: int
    until_us: int | None


def nice(most: int) -> int:
    """The end of an axis: an even number of few digits, at least 4, so that its half is whole, too."""
    if most <= 4:
        return 4
    power = int(10 ** int(math.log10(most)))
    return next(step * power for step in (1, 2, 4, 6, 8, 10, 20) if step * power >= most)


def band(
    slots: Sequence[Slot], wanted: Callable[[str], bool] | None, outages: Sequence[Outage], now_us: int, link: Link
) -> Band:
    """The last hour up to now. `link` leads to a list of timers."""
    first_us = now_us - now_us % _MINUTE_US - (MINUTES - 1) * _MINUTE_US
    by_minute = {slot.begins_us: slot.counts(wanted) for slot in slots}
    minutes = [(first_us + i * _MINUTE_US, by_minute.get(first_us + i * _MINUTE_US)) for i in range(MINUTES)]
    most = nice(max((counts.fires + counts.expired for _, counts in minutes if counts), default=0))
    sums = Counts()
    bars = []
    for index, (at, counts) in enumerate(minutes):
        if counts is None:
            continue
        sums.add(counts)
        bars.append(_bar(index, at, counts, most, link))
    points = [None if each is None else each.lag.percentile_ms(0.99) for _, each in minutes]
    span_us = MINUTES * _MINUTE_US
    shades = [shade for each in outages if (shade := _shade(each, first_us, span_us, now_us)) is not None]
    return Band(bars, most, _line(points), shades, _ticks(first_us, MINUTES), sums)


def outcomes(counts: Counts) -> list[tuple[str, int, Mapping[str, str]]]:
    """What became of the attempts, without overlap, and how many timers expired instead: the tone, the number, and the
    filters of the list that has them."""
    troubled = counts.failed + counts.retried
    late = max(min(counts.late, counts.fires - troubled), 0)
    return [
        ("done", counts.fires - troubled - late, {"view": "completed"}),
        ("late", late, {"view": "completed"}),
        ("retrying", counts.retried, {"view": "all"}),
        ("failed", counts.failed, {"view": "failed"}),
        ("expired", counts.expired, {"view": "expired"}),
    ]


_WORDS = {"done": "on time", "late": "late", "retrying": "retried", "failed": "failed", "expired": "expired"}


def _bar(index: int, at: int, counts: Counts, most: int, link: Link) -> Bar:
    span = {"from": format_instant(at), "to": format_instant(at + _MINUTE_US)}
    parts, reached, words = [], 0.0, []
    for tone, number, filters in outcomes(counts):
        if not number:
            continue
        height = max(number / most * FIRES_PX, _PX_MIN)
        reached = min(reached + height, FIRES_PX)
        parts.append(Part(tone, round(FIRES_PX - reached, 1), round(height, 1), link({**filters, **span})))
        words.append(f"{number:,} {_WORDS[tone]}")
    return Bar(at, *_place(index), parts, ", ".join(words) or "nothing fired")


def _place(index: int) -> tuple[float, float]:
    width = 100 / MINUTES
    return round((index + (1 - _BAR) / 2) * width, 3), round(width * _BAR, 3)


def _line(points: Sequence[float | None]) -> list[Segment]:
    """The pieces between minutes of which both have lags; a lonely minute is a short piece of its own."""

    def y(ms: float) -> float:
        share = math.log10(max(ms, _LAG_MS_MIN) / _LAG_MS_MIN) / _DECADES
        return round(LAG_PX * (1 - min(share, 1.0)), 1)

    def x(index: float) -> float:
        return round((index + 0.5) * 100 / MINUTES, 3)

    pieces = []
    for index, ms in enumerate(points):
        if ms is None:
            continue
        after = points[index + 1] if index + 1 < len(points) else None
        if after is not None:
            pieces.append(Segment(x(index), y(ms), x(index + 1), y(after), max(ms, after) > 1_000))
        elif index == 0 or points[index - 1] is None:
            pieces.append(Segment(x(index - 0.25), y(ms), x(index + 0.25), y(ms), ms > 1_000))
    return pieces


def _shade(outage: Outage, first_us: int, span_us: int, now_us: int) -> Shade | None:
    end_us = now_us if outage.to_us is None else outage.to_us
    if end_us <= first_us:
        return None
    x = max(outage.from_us - first_us, 0) / span_us * 100
    width = max((end_us - max(outage.from_us, first_us)) / span_us * 100, _OUTAGE_MIN)
    return Shade(round(x, 3), round(width, 3), outage.node)


def _ticks(first_us: int, minutes: int) -> list[Tick]:
    """Every tenth minute of the clock, but for those at the ends."""
    ten_us = 10 * _MINUTE_US
    begin = first_us - first_us % ten_us + ten_us
    found = [
        Tick(at, round((at - first_us) / (minutes * _MINUTE_US) * 100, 2))
        for at in range(begin, begin + 6 * ten_us, ten_us)
    ]
    return [tick for tick in found if 3 < tick.x < 95]


def ahead(due: Sequence[int], until_us: int | None, now_us: int, link: Link) -> Ahead:
    """The next hour, from the instants of what is due in it. `until_us`: they are complete up to there, None: all."""
    numbers = [0] * MINUTES
    for at in due:
        numbers[min(max((at - now_us) // _MINUTE_US, 0), MINUTES - 1)] += 1
    most = nice(max(numbers))
    bars = []
    for index, number in enumerate(numbers):
        if not number:
            continue
        begin = now_us + index * _MINUTE_US
        span = {"view": "pending", "from": format_instant(begin), "to": format_instant(begin + _MINUTE_US)}
        height = round(max(number / most * NEXT_PX, _PX_MIN), 1)
        part = Part("ahead", round(NEXT_PX - height, 1), height, link(span))
        bars.append(Bar(begin, *_place(index), [part], f"{number:,} due"))
    return Ahead(bars, most, _ticks(now_us, MINUTES), len(due), until_us)


def spark(numbers: Sequence[int]) -> list[Part]:
    """A small chart of failures by minute; `y` and `height` in pixels, a bar for each."""
    most = max(numbers, default=0) or 1
    return [
        Part("failed" if number else "", round(SPARK_PX - height, 1), round(height, 1), "")
        for number in numbers
        for height in (max(number / most * SPARK_PX, _PX_MIN) if number else 0.5,)
    ]


def query_of(scope: str) -> Link:
    """Links to the list of timers, in the scope: a namespace, or empty for all."""

    def link(changes: Mapping[str, str]) -> str:
        return f"/timers?{urlencode({**({'namespace': scope} if scope else {}), **changes})}"

    return link
