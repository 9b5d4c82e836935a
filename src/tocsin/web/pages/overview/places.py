"""The places by which the statistics count failures, of what is stored."""

from __future__ import annotations

from tocsin.model.errors import InvalidInput
from tocsin.model.failure import DESTINATION_CHARS_MAX
from tocsin.model.redaction import path_of
from tocsin.statistics.counting import PATH_CHARS_MAX
from tocsin.statistics.slots import OTHER_NAMESPACES, failing_place, split_place
from tocsin.timers.service import TimerService


class Places:
    """The places of URLs as failures name them: `destination_of`. Each origin's name is looked up once."""

    def __init__(self, service: TimerService) -> None:
        self._service = service
        self._origins: dict[str, str] = {}

    def of(self, namespace: str, url: str) -> str:
        """The place that the statistics give to failures of the namespace at this URL."""
        path = path_of(url)
        return failing_place(namespace, self._destination(url.removesuffix(path)), path)

    def of_calls(self, url: str) -> str:
        """The place that the statistics give to service calls of this URL: they have no namespace, and are counted without
        their paths."""
        return failing_place("", self._destination(url.removesuffix(path_of(url))))

    def _destination(self, origin: str) -> str:
        if origin not in self._origins:
            try:
                self._origins[origin] = self._service.destinations.name_of(origin)
            except InvalidInput:
                self._origins[origin] = ""
        return self._origins[origin]


def has_own_name(place: str) -> bool:
    """Whether the place is that of one URL, and `Places` spells it like the statistics; others share a name."""
    namespace, destination, path = split_place(place)
    return (
        namespace != OTHER_NAMESPACES
        and destination.startswith(("http://", "https://"))
        and len(path) < PATH_CHARS_MAX
        and len(destination) + len(path) < DESTINATION_CHARS_MAX
    )
