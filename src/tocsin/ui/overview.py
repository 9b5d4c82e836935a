"""`/`: is it healthy? One sentence, the figures behind it, and the last hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response, StreamingResponse

from tocsin.contract.errors import Forbidden
from tocsin.model.access import Role
from tocsin.service import TimerService
from tocsin.ui.calls.agent import AgentSource, Away
from tocsin.ui.figures import Bucket, Failing, Figures, percentile_ms
from tocsin.ui.live import Streams
from tocsin.ui.pages import Pages
from tocsin.ui.show import count, milliseconds, span
from tocsin.ui.visit import Handler, Visit

#: Over how much of the present the sentence speaks.
_PRESENT_S = 60.0
#: Overdue by more than this is worth a word; less is the normal way of a due timer to its call.
_OVERDUE_S = 1.0
_DESTINATIONS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Health:
    """What the overview says first. `tone`: calm, busy or alarm."""

    sentence: str
    tone: str


class OverviewHandlers:
    """The overview and its figures."""

    def __init__(
        self, service: TimerService, pages: Pages, figures: Figures, streams: Streams, agent: AgentSource
    ) -> None:
        self._service = service
        self._pages = pages
        self._figures = figures
        self._streams = streams
        self._agent = agent

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/", self.show),
            ("GET", "/ui/figures", self.series),
            ("GET", "/ui/live/overview", self.live),
        ]

    async def show(self, visit: Visit) -> Response:
        """The page. A key that is limited to namespaces or tenants has its timers or calls instead."""
        if not visit.visitor.may(Role.READ):
            return RedirectResponse("/timers" if visit.visitor.may_somewhere(Role.READ) else "/calls", 303)
        return self._pages.page("overview.html", visit, title="Overview", live="/ui/live/overview", **self._values())

    def _values(self) -> dict[str, Any]:
        buckets = [*self._figures.buckets, self._figures.present]
        recent = buckets[-max(1, round(_PRESENT_S / self._figures.width_s)) :]
        now = Bucket(0)
        self._figures.sample(now)
        reasons = self._service.not_ready_because()
        return {
            "health": health(recent, now, reasons, self._figures.width_s),
            "tiles": tiles(recent, buckets, now, self._figures.width_s),
            "failing": failing(bucket.destinations for bucket in buckets)[:_DESTINATIONS_SHOWN],
            "call_tiles": call_tiles(recent, buckets),
            "failing_calls": failing(bucket.calls.destinations for bucket in buckets)[:_DESTINATIONS_SHOWN],
            "agent_away": agent if isinstance(agent := self._agent(), Away) else None,
            "minutes": minutes(buckets, self._figures.width_s)[-10:],
            "since_us": self._figures.since_us,
            "width_s": self._figures.width_s,
        }

    async def series(self, visit: Visit) -> Response:
        """Every point of the charts, column by column."""
        visit.permit(Role.READ)
        buckets = list(self._figures.buckets)
        width_s = self._figures.width_s
        columns: dict[str, list[float | None]] = {
            "at": [bucket.begins_us / 1e6 for bucket in buckets],
            "done": [(bucket.done + bucket.rescheduled + bucket.superseded) / width_s for bucket in buckets],
            "retried": [bucket.retried / width_s for bucket in buckets],
            "failed": [bucket.failed / width_s for bucket in buckets],
            "created": [bucket.created / width_s for bucket in buckets],
            "p50": [bucket.lag_ms(0.5) for bucket in buckets],
            "p99": [bucket.lag_ms(0.99) for bucket in buckets],
            "overdue": [bucket.overdue_s for bucket in buckets],
            "window": [bucket.window_timers for bucket in buckets],
            "calls_succeeded": [bucket.calls.succeeded / width_s for bucket in buckets],
            "calls_failed": [bucket.calls.failed / width_s for bucket in buckets],
            "calls_p50": [bucket.calls.lag_ms(0.5) for bucket in buckets],
            "calls_p99": [bucket.calls.lag_ms(0.99) for bucket in buckets],
        }
        body = {"width": width_s, "span": width_s * (self._figures.buckets.maxlen or 0), **columns}
        return Response(msgspec.json.encode(body), media_type="application/json")

    async def live(self, visit: Visit) -> Response:
        """The sentence and the figures, whenever they change."""
        visit.permit(Role.READ)
        if self._streams.full:
            raise Forbidden("As many pages as this server keeps up to date are open already.")
        visitor, renew = visit.visitor, visit.renew

        def news() -> dict[str, Any] | None:
            if renew() != visitor:
                return None
            values = self._values()
            shown: Health = values["health"]
            tiles_shown: list[Tile] = [*values["tiles"], *values["call_tiles"]]
            return {
                "sentence": shown.sentence,
                "tone": shown.tone,
                "tiles": {tile.name: [tile.value, tile.note, tile.tone] for tile in tiles_shown},
                "buckets": len(self._figures.buckets) and self._figures.buckets[-1].begins_us,
            }

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._streams.events(news), media_type="text/event-stream", headers=headers)


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


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure with its title and a remark."""

    name: str
    title: str
    value: str
    note: str
    tone: str = ""


def tiles(recent: Sequence[Bucket], hour: Sequence[Bucket], now: Bucket, width_s: float) -> list[Tile]:
    """The figures under the sentence."""
    rings = sum(bucket.rings for bucket in recent)
    lag = [sum(counts) for counts in zip(*(bucket.lag_counts for bucket in recent), strict=True)]
    most = max((bucket.lag_max_ms for bucket in recent), default=0.0)
    half, tail = percentile_ms(lag, 0.5, most), percentile_ms(lag, 0.99, most)
    created = sum(bucket.created for bucket in recent)
    failed = sum(bucket.failed for bucket in hour)
    retried = sum(bucket.retried for bucket in hour)
    overdue_us = round(now.overdue_s * 1e6)
    return [
        Tile("rings", "Rings, last minute", count(rings), f"{count(now.in_flight)} in flight"),
        Tile("created", "Created, last minute", count(created), f"{count(sum(b.created for b in hour))} this hour"),
        Tile(
            "lag",
            "Lag, 99 of 100",
            "–" if tail is None else milliseconds(tail * 1_000),
            "no rings" if half is None else f"half within {milliseconds(half * 1_000)}",
        ),
        Tile(
            "overdue",
            "Overdue",
            "none" if now.overdue_s <= _OVERDUE_S else span(overdue_us),
            "oldest due timer",
            "failed" if now.overdue_s > _OVERDUE_S else "",
        ),
        Tile("window", "Due within minutes", count(now.window_timers), "in memory"),
        Tile(
            "failed",
            "Failed for good, this hour",
            count(failed),
            f"{count(retried)} {'attempt' if retried == 1 else 'attempts'} repeated",
            "failed" if failed else "",
        ),
    ]


def call_tiles(recent: Sequence[Bucket], hour: Sequence[Bucket]) -> list[Tile]:
    """The same figures for service calls."""
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
        ),
        Tile("calls-succeeded", "Succeeded, this hour", count(succeeded), _share(succeeded, failed)),
        Tile(
            "calls-failed",
            "Failed, this hour",
            count(failed),
            "no other answer will come",
            "failed" if failed else "",
        ),
        Tile(
            "calls-lag",
            "Start lag, 99 of 100, this hour",
            "–" if tail is None else milliseconds(tail * 1_000),
            "none has begun" if half is None else f"half within {milliseconds(half * 1_000)}",
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
    """A line of the table that stands for the charts where they can't be seen."""

    at: int
    rings: int
    failed: int
    created: int
    p99_ms: float | None


def minutes(buckets: Sequence[Bucket], width_s: float) -> list[Minute]:
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
            )
        )
    return lines
