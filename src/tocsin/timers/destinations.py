"""Destinations in the whole cluster: what all nodes know of them, and what an operator does with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tocsin.administration import delete_destination_pause, destination_pauses, put_destination_pause
from tocsin.model.destination import DestinationPause
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.ports.destinations import DestinationQuestion, DestinationReport
from tocsin.timers.cluster_view import others_alive
from tocsin.timers.engine.breaker import BreakerState
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.destination_exchange import by_attention
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.namespaces import Namespaces, until_known_everywhere

#: From the one that needs most attention to the one that needs least.
_STATES = (BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED)


class DestinationView(NamedTuple):
    """A destination: since when it is paused (microseconds; None: it is not), all nodes together, and what each node with
    something of it reports, by the node's name."""

    paused_at: int | None
    total: DestinationReport
    nodes: list[tuple[str, DestinationReport]]


class Destinations:
    """Every method raises Unavailable. A change returns when every node that may fire a timer applies it."""

    def __init__(self, context: Context, supervisor: Supervisor, namespaces: Namespaces) -> None:
        self._context, self._supervisor, self._namespaces = context, supervisor, namespaces

    def name_of(self, url: str) -> str:
        """The name of the destination of a URL, or of a scheme and host. Raises InvalidInput."""
        name = self._context.destination_of("", url)
        if "://" not in name:
            reason = "is no destination; send a scheme and host, such as https://shop.example, or a whole URL"
            raise InvalidInput(FieldError("destination", reason))
        return name

    async def get(self, name: str, *, probe: bool = False) -> tuple[DestinationView, bool]:
        """The destination, also one that no node knows, and whether all living nodes have answered. With `probe`, nodes
        whose breaker for it is not closed try one of its waiting timers at once."""
        found, complete = await self._ask(DestinationQuestion([name], probe=probe))
        pauses = await self._pauses()
        return self._views([name], found, pauses)[0], complete

    async def paused(self) -> list[DestinationView]:
        """The paused destinations by name, with what this node knows of them: no other node is asked."""
        pauses = await self._pauses()
        names, supervisor = sorted(pauses), self._supervisor
        known = supervisor.destinations.answer(DestinationQuestion(names)) if names else []
        return self._views(names, {supervisor.incarnation: known}, pauses)

    async def pause(self, name: str) -> None:
        """Lets no attempt of the destination begin, on any node."""
        pause = DestinationPause(name, self._context.clock.now_us())
        await self._namespaces.read(put_destination_pause(self._context.store, pause))
        await self._apply_everywhere()

    async def resume(self, name: str) -> None:
        """Ends a pause."""
        await self._namespaces.read(delete_destination_pause(self._context.store, name))
        await self._apply_everywhere()

    async def _apply_everywhere(self) -> None:
        await self._namespaces.refresh()
        peers = self._namespaces.peers
        if peers is not None:
            await until_known_everywhere(self._context, self._supervisor.membership, peers)

    async def _pauses(self) -> dict[str, int]:
        stored = await self._namespaces.read(destination_pauses(self._context.store, self._context.observe))
        return {each.name: each.paused_at for each in stored}

    async def _ask(self, question: DestinationQuestion) -> tuple[dict[bytes, list[DestinationReport]], bool]:
        """The answers of all nodes, by incarnation, and whether they are complete."""
        supervisor, peers = self._supervisor, self._namespaces.peers
        found = {supervisor.incarnation: supervisor.destinations.answer(question)}
        if peers is None:
            return found, True
        others = others_alive(supervisor)
        found |= await peers.destinations(question)
        return found, found.keys() >= others.keys()

    def _views(
        self, names: Iterable[str], found: Mapping[bytes, list[DestinationReport]], pauses: Mapping[str, int]
    ) -> list[DestinationView]:
        nodes = others_alive(self._supervisor) | {self._supervisor.incarnation: self._supervisor.node}
        by_name: dict[str, list[tuple[str, DestinationReport]]] = {name: [] for name in names}
        for incarnation, reports in found.items():
            for report in reports:
                if report.name in by_name:
                    by_name[report.name].append((nodes.get(incarnation, incarnation.hex()), report))
        return [
            DestinationView(pauses.get(name), _total(name, [each for _, each in reports]), sorted(reports))
            for name, reports in by_name.items()
        ]

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, limit: int) -> tuple[list[DestinationView], int, bool]:
        """The destinations that need attention first, and those that are paused, at most `limit`; how many more there are at
        least; and whether all living nodes have answered."""
        question = DestinationQuestion(most=limit)
        found, complete = await self._ask(question)
        pauses = await self._pauses()
        names = {report.name for reports in found.values() for report in reports} | pauses.keys()
        if any(len(reports) >= limit for reports in found.values()):
            # What one node has put first, others may have left out.
            found, complete = await self._ask(DestinationQuestion(sorted(names)))
        views = self._views(sorted(names), found, pauses)
        views.sort(key=lambda view: (view.paused_at is None, *by_attention(view.total)))
        return views[:limit], len(views) - len(views[:limit]), complete


def _total(name: str, reports: Iterable[DestinationReport]) -> DestinationReport:
    """All nodes together. The breaker is that of the node where it needs most attention."""
    each = sorted(reports, key=by_attention)
    latest = max(each, key=lambda report: report.last_error_at, default=None)
    succeeded = [report.succeeded_us_ago for report in each if report.succeeded_us_ago is not None]
    states = {report.breaker for report in each}
    waits = [report.wait_us for report in each if report.breaker == BreakerState.OPEN]
    return DestinationReport(
        name,
        sum(report.in_flight for report in each),
        sum(report.limit for report in each),
        sum(report.waiting for report in each),
        sum(report.attempts for report in each),
        sum(report.failures for report in each),
        next((state.value for state in _STATES if state in states), BreakerState.CLOSED.value),
        min(waits, default=0),
        "" if latest is None else latest.last_error,
        0 if latest is None else latest.last_error_at,
        min(succeeded, default=None),
    )
