"""`/`: the overview: the health of the service in one sentence, and the statistics of the last hour, of all nodes or one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response, StreamingResponse

from tocsin.model.access import Role
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.timers.service import TimerService
from tocsin.web.http.errors import Forbidden
from tocsin.web.pages.calls.agent import AgentSource, AgentUnavailable
from tocsin.web.pages.context import Handler, RequestContext
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.live import Streams
from tocsin.web.pages.overview.cluster_statistics import ClusterStatistics, Gap, Hour
from tocsin.web.pages.overview.content import (
    PRESENT_S,
    Health,
    Period,
    Tile,
    call_tiles,
    failing,
    health,
    health_with_gaps,
    health_with_paused,
    minutes,
    tiles,
    with_gaps,
)
from tocsin.web.pages.overview.paused import Paused
from tocsin.web.pages.overview.statistics import Bucket
from tocsin.web.pages.pages import Pages, compressed
from tocsin.web.pages.welcome import WelcomeHandlers

_DESTINATIONS_SHOWN = 8
_MINUTES_SHOWN = 10
_NAMES_SHOWN = 4


class OverviewHandlers:
    """The overview and its statistics; `?node=` selects one node. Open pages with the same selection share one update, until
    the nodes are polled again."""

    def __init__(
        self,
        service: TimerService,
        pages: Pages,
        cluster_statistics: ClusterStatistics,
        streams: Streams,
        agent: AgentSource,
        limits: UiLimits,
        paused: Paused,
        welcome: WelcomeHandlers,
    ) -> None:
        self._welcome = welcome
        self._paused = paused
        self._service = service
        self._pages = pages
        self._cluster_statistics = cluster_statistics
        self._streams = streams
        self._agent = agent
        self._width_s = limits.chart_interval_s
        self._round = -1
        self._updates: dict[str | None, dict[str, Any]] = {}
        self._series: dict[str | None, tuple[object, bytes]] = {}

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/", self.show),
            ("GET", "/ui/statistics", self.series),
            ("GET", "/ui/live/overview", self.live),
        ]

    async def show(self, context: RequestContext) -> Response:
        """The page. A principal that is limited to namespaces or tenants is redirected to its timers or calls."""
        if not context.principal.may(Role.READ):
            return RedirectResponse("/timers" if context.principal.may_somewhere(Role.READ) else "/calls", 303)
        await self._refresh()
        node = _chosen(context)
        return self._pages.page(
            "overview.html",
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
        quiet = not any(bucket.created or bucket.fires or bucket.calls.counts for bucket in (*hour.buckets, *hour.open))
        return quiet and not hour.now.window_timers and not hour.gaps

    async def _refresh(self) -> None:
        await asyncio.gather(self._cluster_statistics.refresh(), self._paused.refresh())

    def _values(self, node: str | None) -> dict[str, Any]:
        hour = self._cluster_statistics.hour(node)
        buckets = [*hour.buckets, *hour.open]
        recent = self._recent(hour)
        gaps = _gaps(hour)
        agent_unavailable = self._agent_unavailable(hour, node)
        return {
            "health": self._health(hour, recent, gaps[Period.MINUTE], node),
            "tiles": with_gaps(tiles(recent, buckets, hour.now, paused=bool(self._paused.namespaces)), gaps),
            "failing": failing(bucket.destinations for bucket in buckets)[:_DESTINATIONS_SHOWN],
            "call_tiles": with_gaps(call_tiles(recent, buckets), gaps),
            "failing_calls": failing(bucket.calls.destinations for bucket in buckets)[:_DESTINATIONS_SHOWN],
            "agent_unavailable": agent_unavailable,
            "paused": self._paused.namespaces,
            "minutes": minutes(buckets, hour.gaps)[-_MINUTES_SHOWN:],
            "hour": hour,
            "gaps_version": _version(hour.gaps),
        }

    def _recent(self, hour: Hour) -> list[Bucket]:
        """The buckets of the last minute, or the last bucket if it is wider."""
        from_us = hour.at_us - round(max(PRESENT_S, self._width_s) * 1e6)
        return [bucket for bucket in (*hour.buckets, *hour.open) if bucket.begins_us > from_us]

    def _health(self, hour: Hour, recent: Sequence[Bucket], gaps: Sequence[Gap], node: str | None) -> Health:
        if hour.nodes == 0:
            return Health(f"Unknown node: {node}.", "busy")
        reasons = list(hour.paused)
        own = self._service.node
        if node in (None, own):
            alone = hour.nodes == 1
            reasons = [
                *(reason if alone else f"{own}: {reason}" for reason in self._service.not_ready_because()),
                *reasons,
            ]
        rest = health_with_paused(self._paused.namespaces, health(recent, hour.now, reasons, self._width_s))
        return health_with_gaps(gaps, rest, alone=node is not None)

    def _agent_unavailable(self, hour: Hour, node: str | None) -> AgentUnavailable | None:
        """Why there are no statistics of service calls; None if there are."""
        if hour.agent or any(bucket.calls.counts for bucket in (*hour.buckets, *hour.open)):
            return None
        if node in (None, self._service.node):
            return agent if isinstance(agent := self._agent(), AgentUnavailable) else None
        return AgentUnavailable("Not on this node", f"{node} does not run the service agent at the moment.", 503)

    async def series(self, context: RequestContext) -> Response:
        """All points of the charts, column by column, and the gaps: periods for which a node's data is missing."""
        context.permit(Role.READ)
        await self._cluster_statistics.refresh()
        node = _chosen(context)
        hour = self._cluster_statistics.hour(node)
        # All open pages request the series at the same time, when a bucket is complete.
        state = (len(hour.buckets), hour.buckets[-1].begins_us if hour.buckets else 0, hour.gaps)
        known = self._series.get(node)
        if known is None or known[0] != state:
            known = state, self._columns(hour)
            self._series = {
                name: kept for name, kept in self._series.items() if name in self._cluster_statistics.nodes()
            }
            self._series[node] = known
        return compressed(context, known[1], media_type="application/json")

    def _columns(self, hour: Hour) -> bytes:
        buckets, width_s = hour.buckets, self._width_s
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
        gaps = [[_seconds(gap.from_us), _seconds(gap.to_us), gap.node] for gap in hour.gaps]
        return msgspec.json.encode(
            {"width": width_s, "span": self._cluster_statistics.span_us / 1e6, "gaps": gaps, **columns}
        )

    async def live(self, context: RequestContext) -> Response:
        """Streams the health sentence and the tiles whenever they change."""
        context.permit(Role.READ)
        if self._streams.full:
            raise Forbidden("Too many open pages: this server updates no more pages live. Reload to see changes.")
        principal, renew, node = context.principal, context.renew, _chosen(context)

        def update() -> dict[str, Any] | None:
            return self._update(node) if renew() == principal else None

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        events = self._streams.events(update, self._refresh)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    def _update(self, node: str | None) -> dict[str, Any]:
        """The update for open pages, computed once after each poll, however many pages there are."""
        if self._round != self._cluster_statistics.round:
            self._round = self._cluster_statistics.round
            self._updates.clear()
        found = self._updates.get(node)
        if found is None:
            values = self._values(node)
            shown: Health = values["health"]
            tiles_shown: list[Tile] = [*values["tiles"], *values["call_tiles"]]
            hour: Hour = values["hour"]
            found = {
                "sentence": shown.sentence,
                "tone": shown.tone,
                "tiles": {tile.name: [tile.value, tile.note, tile.tone] for tile in tiles_shown},
                "buckets": hour.buckets[-1].begins_us if hour.buckets else 0,
                "gaps": values["gaps_version"],
                "nodes": " ".join(self._cluster_statistics.nodes()),
            }
            if node is None or node in self._cluster_statistics.nodes():
                self._updates[node] = found
        return found


def _chosen(context: RequestContext) -> str | None:
    return context.query.exact("node") or None


def _with_node(path: str, node: str | None) -> str:
    return path if node is None else f"{path}?{urlencode({'node': node})}"


def _gaps(hour: Hour) -> dict[Period, list[Gap]]:
    """The gaps in the statistics of each period."""
    return {
        Period.NOW: [gap for gap in hour.gaps if gap.to_us is None],
        Period.MINUTE: [gap for gap in hour.gaps if gap.touches(hour.at_us - round(PRESENT_S * 1e6))],
        Period.HOUR: hour.gaps,
    }


def _version(gaps: Sequence[Gap]) -> str:
    """Changes whenever the gaps change."""
    return " ".join(f"{gap.node}:{gap.from_us}-{gap.to_us}" for gap in gaps)


def _seconds(instant_us: int | None) -> float | None:
    return None if instant_us is None else instant_us / 1e6
