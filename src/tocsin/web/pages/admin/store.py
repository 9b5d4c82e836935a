"""`/store`: which store it is, how it answers, and its outages."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.errors import OutcomeUnknown, Unavailable
from tocsin.ports.store import StoreFacts
from tocsin.statistics.reading import StatisticsReader
from tocsin.timers.explaining import PAUSE_TEXTS
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import count
from tocsin.web.pages.site import Part, Site, route

#: How long the page waits for what the database reports about itself.
_FACTS_TIMEOUT_S = 1.5
#: The same while the node knows that the database does not answer, or too slowly.
_OUTAGE_FACTS_TIMEOUT_S = 0.5
_REASONS = {**PAUSE_TEXTS, "lease": "the database did not answer, or too slowly"}


class StorePage(Part):
    """The page of the store. `database` is its name and place."""

    def __init__(self, site: Site, reader: StatisticsReader, database: str) -> None:
        super().__init__(site)
        self._reader = reader
        self._database = database

    @route("GET", "/store")
    async def show(self, context: RequestContext) -> Response:
        """Facts of the database, its latency as each node sees it, and the outages that are kept."""
        context.permit(Role.READ)
        facts, outage = StoreFacts(), await self._site.outages.present()
        try:
            async with asyncio.timeout(_FACTS_TIMEOUT_S if outage is None else _OUTAGE_FACTS_TIMEOUT_S):
                facts = await self._service.store_facts()
        except Unavailable as error:
            outage = await self._site.outages.of(error)
        except TimeoutError:
            outage = await self._site.outages.of(OutcomeUnknown(""))
        await self._reader.refresh_for_page()
        return self._pages.page(
            "admin/store_live.html" if context.fragment else "admin/store.html",
            context,
            title="Store",
            live="/ui/live?namespace=*",
            database=self._database,
            facts=facts_of(facts),
            outage=outage,
            nodes=[node for node in (await self._service.cluster()).nodes if node.vitals is not None],
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
