"""`/`: the overview: the health of the service in one sentence, and the statistics of the last hour, of all nodes or one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.ports.statistics import Failures, StatisticsSlot, total
from tocsin.web.pages.calls.agent import AgentUnavailable
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.overview import content
from tocsin.web.pages.overview.cluster_statistics import ClusterStatistics, Gap, Hour
from tocsin.web.pages.overview.paused import Paused
from tocsin.web.pages.overview.welcome import Welcome
from tocsin.web.pages.pages import compressed
from tocsin.web.pages.site import Part, Site, route

T = TypeVar("T")
_DESTINATIONS_SHOWN = 8
_MINUTES_SHOWN = 10
_NAMES_SHOWN = 4


class Overview(Part):
    """The overview and its statistics; `?node=` selects one node."""

    def __init__(self, site: Site, cluster_statistics: ClusterStatistics, paused: Paused, welcome: Welcome) -> None:
        super().__init__(site)
        self._welcome = welcome
        self._paused = paused
        self._cluster_statistics = cluster_statistics
        self._width_s = site.limits.chart_interval_s
        self._round = -1
        self._computed: dict[object, Any] = {}

    @route("GET", "/")
    async def show(self, context: RequestContext) -> Response:
        """The page. A principal that is limited to namespaces or tenants is redirected to its timers or calls."""
        if not context.principal.may(Role.READ):
            return RedirectResponse("/timers" if context.principal.may_somewhere(Role.READ) else "/calls", 303)
        await self._refresh()
        node = _chosen(context)
        return self._pages.page(
            "overview/overview.html",
            context,
            title="Overview",
            live=_with_node("/ui/live/overview", node),
            series=_with_node("/ui/statistics", node),
            chosen=node,
            nodes=self._cluster_statistics.nodes(),
            nodes_version=" ".join(self._cluster_statistics.nodes()),
            names_shown=_NAMES_SHOWN,
            width_s=self._width_s,
            first=self._is_unused(context),
            welcome=self._welcome,
            **self._values(node),
        )

    def _is_unused(self, context: RequestContext) -> bool:
        """Whether the service has had no timers or calls yet, and the principal may create some."""
        if not context.principal.may(Role.WRITE, DEFAULT_NAMESPACE):
            return False
        hour = self._cluster_statistics.hour()
        sums = self._total((*hour.slots, *hour.open))
        return not (sums.created or sums.fires or sums.has_calls or hour.now.window_timers or hour.gaps)

    async def _refresh(self) -> None:
        await asyncio.gather(self._cluster_statistics.refresh(), self._paused.refresh())

    def _values(self, node: str | None) -> dict[str, Any]:
        hour = self._cluster_statistics.hour(node)
        slots = [*hour.slots, *hour.open]
        # The last slot if it is wider than a minute.
        from_us = hour.at_us - round(max(content.PRESENT_S, self._width_s) * 1e6)
        recent = [slot for slot in slots if slot.begins_us > from_us]
        minute, whole = self._total(recent), self._total(slots)
        gaps = _gaps(hour)
        rest = content.health(minute, hour.now, self._reasons(hour, node), self._width_s * len(recent))
        paused = self._paused.namespaces
        return {
            "health": self._health(hour, rest, gaps[content.Period.MINUTE], node),
            "tiles": content.with_gaps(content.tiles(minute, whole, hour.now, paused=bool(paused)), gaps),
            "failing": _most(whole.failing),
            "call_tiles": content.with_gaps(content.call_tiles(minute, whole), gaps),
            "failing_calls": _most(whole.calls_failing),
            "agent_unavailable": self._agent_unavailable(hour, whole, node),
            "paused": paused,
            "minutes": content.minutes(slots, hour.gaps, self._limits.chart_destinations_max)[-_MINUTES_SHOWN:],
            "hour": hour,
            "gaps_version": _version(hour.gaps),
        }

    def _total(self, slots: Iterable[StatisticsSlot]) -> StatisticsSlot:
        return total(slots, self._limits.chart_destinations_max)

    def _health(self, hour: Hour, rest: content.Health, gaps: Sequence[Gap], node: str | None) -> content.Health:
        if hour.nodes == 0:
            return content.Health(f"Unknown node: {node}.", "busy")
        return content.health_with_gaps(
            gaps, content.health_with_paused(self._paused.namespaces, rest), alone=node is not None
        )

    def _reasons(self, hour: Hour, node: str | None) -> list[str]:
        """Why nodes do not dispatch or are not ready."""
        own = self._service.node
        reasons = self._service.not_ready_because() if node in (None, own) else ()
        return [*(reason if hour.nodes == 1 else f"{own}: {reason}" for reason in reasons), *hour.paused]

    def _agent_unavailable(self, hour: Hour, whole: StatisticsSlot, node: str | None) -> AgentUnavailable | None:
        """Why there are no statistics of service calls; None if there are."""
        if hour.agent or whole.has_calls:
            return None
        if node in (None, self._service.node):
            return agent if isinstance(agent := self._site.gate.source(), AgentUnavailable) else None
        return AgentUnavailable("Not on this node", f"{node} does not run the service agent at the moment.", 503)

    @route("GET", "/ui/statistics")
    async def series(self, context: RequestContext) -> Response:
        """All points of the charts, column by column, and the gaps: periods for which a node's data is missing."""
        context.permit(Role.READ)
        await self._cluster_statistics.refresh()
        return compressed(context, self._shared(self._columns, _chosen(context)), media_type="application/json")

    def _shared(self, compute: Callable[[str | None], T], node: str | None) -> T:
        """What `compute` returns for a node, computed once after each poll, however many pages are open."""
        if self._round != self._cluster_statistics.round:
            self._round = self._cluster_statistics.round
            self._computed.clear()
        key = (compute, node)
        if key not in self._computed:
            self._computed[key] = compute(node)
        found: T = self._computed[key]
        return found

    def _columns(self, node: str | None) -> bytes:
        hour, width_s = self._cluster_statistics.hour(node), self._width_s
        slots = hour.slots
        columns: dict[str, list[float | None]] = {
            "at": [slot.begins_us / 1e6 for slot in slots],
            "done": [(slot.done + slot.rescheduled + slot.superseded) / width_s for slot in slots],
            "retried": [slot.retried / width_s for slot in slots],
            "failed": [slot.failed / width_s for slot in slots],
            "created": [slot.created / width_s for slot in slots],
            "p50": [slot.lag.percentile_ms(0.5) for slot in slots],
            "p99": [slot.lag.percentile_ms(0.99) for slot in slots],
            "overdue": [slot.overdue_s for slot in slots],
            "window": [slot.window_timers for slot in slots],
            "calls_succeeded": [slot.calls_succeeded / width_s for slot in slots],
            "calls_failed": [slot.calls_failed / width_s for slot in slots],
            "calls_p50": [slot.calls_lag.percentile_ms(0.5) for slot in slots],
            "calls_p99": [slot.calls_lag.percentile_ms(0.99) for slot in slots],
        }
        gaps = [[_seconds(gap.from_us), _seconds(gap.to_us), gap.node] for gap in hour.gaps]
        return msgspec.json.encode(
            {"width": width_s, "span": self._cluster_statistics.span_us / 1e6, "gaps": gaps, **columns}
        )

    @route("GET", "/ui/live/overview")
    async def live(self, context: RequestContext) -> Response:
        """Streams the health sentence and the tiles whenever they change."""
        context.permit(Role.READ)
        node = _chosen(context)
        return self._site.streams.response(context, lambda: self._shared(self._update, node), self._refresh)

    def _update(self, node: str | None) -> dict[str, Any]:
        """The update for open pages."""
        values = self._values(node)
        shown: content.Health = values["health"]
        tiles_shown: list[content.Tile] = [*values["tiles"], *values["call_tiles"]]
        hour: Hour = values["hour"]
        return {
            "sentence": shown.sentence,
            "tone": shown.tone,
            "tiles": {tile.name: [tile.value, tile.note, tile.tone] for tile in tiles_shown},
            "buckets": hour.slots[-1].begins_us if hour.slots else 0,
            "gaps": values["gaps_version"],
            "nodes": " ".join(self._cluster_statistics.nodes()),
        }


def _chosen(context: RequestContext) -> str | None:
    return context.query.exact("node") or None


def _with_node(path: str, node: str | None) -> str:
    return path if node is None else f"{path}?{urlencode({'node': node})}"


def _gaps(hour: Hour) -> dict[content.Period, list[Gap]]:
    """The gaps in the statistics of each period."""
    return {
        content.Period.NOW: [gap for gap in hour.gaps if gap.to_us is None],
        content.Period.MINUTE: [gap for gap in hour.gaps if gap.touches(hour.at_us - round(content.PRESENT_S * 1e6))],
        content.Period.HOUR: hour.gaps,
    }


def _most(failing: Mapping[str, Failures]) -> list[tuple[str, Failures]]:
    """The destinations with the most failures."""
    return sorted(failing.items(), key=lambda item: -item[1].failures)[:_DESTINATIONS_SHOWN]


def _version(gaps: Sequence[Gap]) -> str:
    """Changes whenever the gaps change."""
    return " ".join(f"{gap.node}:{gap.from_us}-{gap.to_us}" for gap in gaps)


def _seconds(instant_us: int | None) -> float | None:
    return None if instant_us is None else instant_us / 1e6
