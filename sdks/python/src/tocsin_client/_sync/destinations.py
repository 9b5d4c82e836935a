# Made from _async/destinations.py by unasync.py; edit that.
"""Destinations, with their breakers."""

from __future__ import annotations

from tocsin_client._sync.part import Part
from tocsin_client._generated.models import Destination, DestinationList, DestinationName, ListDestinations
from tocsin_client._values import UNSET, Unset


class Destinations(Part):
    """The hosts to which timers are sent. `destination` is an http or https URL, of which scheme, host and port count."""

    def list(self, *, limit: int | Unset = UNSET) -> DestinationList:
        """Destinations in use lately, and those that are paused, of all nodes: first those that are paused, those with an
        open breaker, and those for which most timers wait. At most `limit`; `further` is how many that leaves out."""
        wanted = ListDestinations(limit=limit)
        return self._run(self._ask("listDestinations", DestinationList.from_json, wanted.to_json()))

    def pause(self, destination: str) -> Destination:
        """Lets no attempt to the destination begin on any node until `resume`; timers wait, without using up attempts."""
        return self._change("pauseDestination", destination)

    def resume(self, destination: str) -> Destination:
        """Ends a pause."""
        return self._change("resumeDestination", destination)

    def probe(self, destination: str) -> Destination:
        """Has each node whose breaker is open try one waiting timer at once; a success closes the breaker."""
        return self._change("probeDestination", destination)

    def _change(self, operation: str, destination: str) -> Destination:
        body = DestinationName(destination=destination).to_json()
        return self._run(self._ask(operation, Destination.from_json, body))
