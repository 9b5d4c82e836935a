"""Destinations without an engine: only their pauses are remembered."""

from __future__ import annotations

from typing import Any

from tocsin.http_client.target import InvalidUrl, parse_url
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.ports.destinations import DestinationReport
from tocsin.timers.destinations import Destinations, DestinationView

_AT = 1_800_000_000_000_000


class FakeDestinations(Destinations):
    """What handlers call of `Destinations`."""

    def __init__(self) -> None:
        self._paused: set[str] = set()

    def name_of(self, url: str) -> str:
        try:
            return parse_url(url).origin.destination
        except InvalidUrl:
            raise InvalidInput(FieldError("destination", "is no destination")) from None

    async def get(self, name: str, *, probe: bool = False) -> tuple[DestinationView, bool]:
        report = DestinationReport(name, 0, 256, 0)
        return DestinationView(_AT if name in self._paused else None, report, [("n1", report)]), True

    async def pause(self, name: str) -> None:
        self._paused.add(name)

    async def resume(self, name: str) -> None:
        self._paused.discard(name)

    async def list(self, limit: int) -> Any:
        names = sorted(self._paused)
        return [(await self.get(name))[0] for name in names[:limit]], len(names[limit:]), True
