"""`/store`: which store it is, how it answers, and its outages."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.errors import OutcomeUnknown, TocsinError, Unavailable
from tocsin.ports.store import StoreFacts
from tocsin.statistics.reading import StatisticsReader
from tocsin.tasks import Refreshed
from tocsin.timers.cluster_view import NodeView
from tocsin.timers.explaining import PAUSE_TEXTS
from tocsin.timers.service import TimerService
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import count
from tocsin.web.pages.site import Part, Site, route

#: The minimum time between two reads, however many pages are open: what a database reports about itself takes it some work.
_READ_INTERVAL_S = 10.0
#: How long the page waits for what the database reports about itself.
_FACTS_TIMEOUT_S = 1.5
#: The same while the node knows that the database does not answer, or too slowly.
_OUTAGE_FACTS_TIMEOUT_S = 0.5
_REASONS = {**PAUSE_TEXTS, "lease": "the database did not answer, or too slowly"}


class _Reports(Refreshed):
    """What the database and the nodes report, as of a few seconds ago. `failure` is why the database did not."""

    def __init__(self, service: TimerService) -> None:
        super().__init__(_READ_INTERVAL_S)
        self._service = service
        self.facts = StoreFacts()
        self.failure: TocsinError | None = None
        self.nodes: list[NodeView] = []

    async def _read(self) -> None:
        timeout_s = _FACTS_TIMEOUT_S if self._service.paused_reason is None else _OUTAGE_FACTS_TIMEOUT_S
        try:
            async with asyncio.timeout(timeout_s):
                self.facts, self.failure = await self._service.store_facts(), None
        except Unavailable as error:
            self.facts, self.failure = StoreFacts(), error
        except TimeoutError:
            self.facts, self.failure = StoreFacts(), OutcomeUnknown("")
        self.nodes = [node for node in (await self._service.cluster()).nodes if node.vitals is not None]


class StorePage(Part):
    """The page of the store. `database` is its name and place."""

    def __init__(self, site: Site, reader: StatisticsReader, database: str) -> None:
        super().__init__(site)
        self._reader = reader
        self._database = database
        self._reports = _Reports(self._service)

    async def close(self) -> None:
        """Stops reading."""
        await self._reports.close()

    @route("GET", "/store")
    async def show(self, context: RequestContext) -> Response:
        """Facts of the database, its latency as each node sees it, and the outages that are kept."""
        context.permit(Role.READ)
        reports, outages = self._reports, self._site.outages
        await reports.refresh()
        outage = await (outages.present() if reports.failure is None else outages.of(reports.failure))
        await self._reader.refresh_for_page()
        return self._pages.page(
            "admin/store_live.html" if context.fragment else "admin/store.html",
            context,
            title="Store",
            live="/ui/live?namespace=*",
            database=self._database,
            facts=facts_of(reports.facts),
            outage=outage,
            nodes=reports.nodes,
            outages=self._reader.outages(context.now_us - self._reader.limits.kept_us, context.now_us),
            unread=self._reader.failure is not None,
            reasons=_REASONS,
        )


def facts_of(facts: StoreFacts) -> list[tuple[str, str]]:
    """The facts that the database reports, with their titles."""
    connections = None
    if facts.connections is not None:
        connections = f"{facts.connections_used or 0} of {facts.connections} in use by this node"
    shown = {
        "Version": facts.version,
        "Size": None if facts.size_bytes is None else size(facts.size_bytes),
        "Write-ahead log": None if facts.wal_bytes is None else size(facts.wal_bytes),
        "Rows of timers": None if facts.rows is None else f"about {count(facts.rows)}",
        "Connections": connections,
    }
    return [(title, text) for title, text in shown.items() if text is not None]


def size(number_of_bytes: float) -> str:
    """A number of bytes, in the unit in which it is below 1,024."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if round(number_of_bytes) < 1_024:
            return f"{_three_digits(number_of_bytes)} {unit}"
        number_of_bytes /= 1_024
    return f"{_three_digits(number_of_bytes)} TiB"


def _three_digits(number: float) -> str:
    """At least three significant digits, without an exponent."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
