"""`/`: the overview: the health of the service in one sentence, and the statistics of the last hour of all nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.statistics.reading import Hour, StatisticsReader
from tocsin.statistics.slots import Failures, Slot, split_place, total
from tocsin.web.pages.calls.agent import AgentUnavailable
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.overview import content
from tocsin.web.pages.overview.nodes import Nodes, Present
from tocsin.web.pages.overview.paused import Paused
from tocsin.web.pages.overview.welcome import Welcome
from tocsin.web.pages.pages import compressed
from tocsin.web.pages.site import Part, Site, route

T = TypeVar("T")
_DESTINATIONS_SHOWN = 8
_MINUTES_SHOWN = 10
_OUTAGES_SHOWN = 4
#: Starts of reasons of `not_ready_because` that the pauses state in more detail.
_PAUSED = "dispatch paused: "


class Overview(Part):
    """The overview and its statistics. `database` is the store's name and place."""

    def __init__(
        self, site: Site, reader: StatisticsReader, nodes: Nodes, paused: Paused, welcome: Welcome, database: str
    ) -> None:
        super().__init__(site)
        self._reader = reader
        self._nodes = nodes
        self._welcome = welcome
        self._paused = paused
        self._database = database
        self._limits_of_slots = site.statistics.limits
        self._round = -1
        self._computed: dict[object, Any] = {}

    @route("GET", "/")
    async def show(self, context: RequestContext) -> Response:
        """The page. A principal that is limited to namespaces or tenants is redirected to its timers or calls."""
        if not context.principal.may(Role.READ):
            return RedirectResponse("/timers" if context.principal.may_somewhere(Role.READ) else "/calls", 303)
        await self._refresh()
        values = self._values()
        return self._pages.page(
            "overview/overview.html",
            context,
            title="Overview",
            live="/ui/live/overview",
            series="/ui/statistics",
            first=self._is_unused(context, values),
            welcome=self._welcome,
            **values,
        )

    def _is_unused(self, context: RequestContext, values: Mapping[str, Any]) -> bool:
        """Whether the service has had no timers or calls yet, and the principal may create some."""
        if not context.principal.may(Role.WRITE, DEFAULT_NAMESPACE):
            return False
        sums: Slot = values["sums"]
        present: Present = values["present"]
        return not (sums.counts().weight or sums.calls.any or present.window_timers or present.silent)

    async def _refresh(self) -> None:
        await asyncio.gather(self._reader.refresh_for_page(), self._nodes.refresh(), self._paused.refresh_for_page())

    def _values(self) -> dict[str, Any]:
        hour, present = self._reader.hour(), self._nodes.present()
        sums = total([*hour.slots, hour.open], self._limits_of_slots.places_max)
        counts, minute = sums.counts(), hour.last_minute
        paused = self._paused.namespaces
        outages = self._reader.outages(hour.at_us - 3_600_000_000, hour.at_us)
        ended = [each for each in outages if each.to_us is not None][:_OUTAGES_SHOWN]
        return {
            "health": self._health(hour, present),
            "runbook": bool(present.pauses),
            "tiles": content.with_silent(
                content.tiles(minute.counts(), counts, present, paused=bool(paused)), present.silent
            ),
            "failing": _most(sums.failing),
            "call_tiles": content.call_tiles(minute.calls, sums.calls),
            "failing_calls": _most(sums.calls_failing),
            "agent_unavailable": self._agent_unavailable(present, sums),
            "minutes": content.minutes([*hour.slots, hour.open])[-_MINUTES_SHOWN:],
            "outages": [(each, content.outage_sentence(each)) for each in ended],
            "present": present,
            "sums": sums,
            "version": f"{hour.slots[-1].begins_us if hour.slots else 0} {len(ended)} {sum(e.late for e in ended)}",
        }

    def _health(self, hour: Hour, present: Present) -> content.Health:
        reasons = [each for each in self._service.not_ready_because() if not each.startswith(_PAUSED)]
        degraded = content.degraded(present.pauses, reasons, self._database, hour.at_us, nodes=present.nodes)
        if degraded is not None:
            return degraded
        rest = content.health(hour.last_minute.counts(), hour.last_minute.calls, present)
        return content.health_with_silent(present.silent, content.health_with_paused(self._paused.namespaces, rest))

    def _agent_unavailable(self, present: Present, sums: Slot) -> AgentUnavailable | None:
        """Why there are no statistics of service calls; None if there are."""
        if present.agent or sums.calls.any:
            return None
        return agent if isinstance(agent := self._site.gate.source(), AgentUnavailable) else None

    @route("GET", "/ui/statistics")
    async def series(self, context: RequestContext) -> Response:
        """All points of the charts, column by column, and the outages."""
        context.permit(Role.READ)
        await self._reader.refresh_for_page()
        return compressed(context, self._shared(self._columns), media_type="application/json")

    def _shared(self, compute: Callable[[], T]) -> T:
        """What `compute` returns, computed once after each read, however many pages are open."""
        if self._round != self._reader.round:
            self._round = self._reader.round
            self._computed.clear()
        if compute not in self._computed:
            self._computed[compute] = compute()
        found: T = self._computed[compute]
        return found

    def _columns(self) -> bytes:
        hour, width_us = self._reader.hour(), self._limits_of_slots.minute_us
        known = {slot.begins_us: slot for slot in hour.slots}
        # A minute in which nothing happened is a point, too; from the first one on that is known.
        present_us = hour.at_us - hour.at_us % width_us
        begins = range(min(known, default=present_us), present_us, width_us)
        slots = [known.get(begins_us, Slot(begins_us)) for begins_us in begins]
        counts, width_s = [slot.counts() for slot in slots], width_us / 1e6
        columns: dict[str, list[Any]] = {
            "at": [slot.begins_us / 1e6 for slot in slots],
            "done": [(each.done + each.rescheduled + each.superseded) / width_s for each in counts],
            "retried": [each.retried / width_s for each in counts],
            "failed": [each.failed / width_s for each in counts],
            "created": [each.created / width_s for each in counts],
            "p50": [each.lag.percentile_ms(0.5) for each in counts],
            "p99": [each.lag.percentile_ms(0.99) for each in counts],
            "overdue": [slot.overdue_s for slot in slots],
            "calls_succeeded": [slot.calls.succeeded / width_s for slot in slots],
            "calls_failed": [slot.calls.failed / width_s for slot in slots],
            "calls_p50": [slot.calls.lag.percentile_ms(0.5) for slot in slots],
            "calls_p99": [slot.calls.lag.percentile_ms(0.99) for slot in slots],
        }
        span_us = self._limits_of_slots.minutes_in_memory * width_us
        outages = self._reader.outages(hour.at_us - span_us, hour.at_us)
        shaded = [[each.from_us / 1e6, None if each.to_us is None else each.to_us / 1e6, each.node] for each in outages]
        return msgspec.json.encode({"width": width_s, "span": span_us / 1e6, "outages": shaded, **columns})

    @route("GET", "/ui/live/overview")
    async def live(self, context: RequestContext) -> Response:
        """Streams the health sentence and the tiles whenever they change."""
        context.permit(Role.READ)
        return self._site.streams.response(context, lambda: self._shared(self._update), self._refresh)

    def _update(self) -> dict[str, Any]:
        """The update for open pages."""
        values = self._values()
        shown: content.Health = values["health"]
        tiles_shown: list[content.Tile] = [*values["tiles"], *values["call_tiles"]]
        return {
            "sentence": shown.sentence,
            "tone": shown.tone,
            "runbook": values["runbook"],
            "tiles": {tile.name: [tile.value, tile.note, tile.tone] for tile in tiles_shown},
            "buckets": values["version"],
        }


def _most(failing: Mapping[str, Failures]) -> list[tuple[str, str, str, Failures]]:
    """Namespace, destination and path with the most failures."""
    most = sorted(failing.items(), key=lambda item: -item[1].failures)[:_DESTINATIONS_SHOWN]
    return [(*split_place(place), failures) for place, failures in most]
