"""`/destinations`: the hosts to which timers are sent, what waits for them, and their breakers."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import NotFound
from tocsin.model.instants import parse_instant
from tocsin.timers.engine.breaker import BreakerState
from tocsin.web.http.destinations import Destination, DestinationName, DestinationRequests, ListDestinations
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import State
from tocsin.web.pages.site import Part, Site, route

_PAUSED = State("paused", "suspended")
_STATES = {
    BreakerState.OPEN: State("breaker open", "failed"),
    BreakerState.HALF_OPEN: State("probing", "pending"),
    BreakerState.CLOSED: State("available", "done"),
}
_WAITED_FOR = State("timers wait", "waiting")
_PORTS = {"https": ":443", "http": ":80"}


class DestinationsPage(Part):
    """The table, and what changes a destination."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._requests = DestinationRequests(site.service.destinations, site.rules, site.audit)

    @route("GET", "/destinations")
    async def table(self, context: RequestContext) -> Response:
        """The destinations that need attention first; a script reloads the live part."""
        context.permit(Role.READ)
        found = await self._requests.list(ListDestinations(), context.now_us)
        return self._pages.page(
            "destinations/live.html" if context.fragment else "destinations/list.html",
            context,
            title="Destinations",
            polled=True,
            found=found.destinations,
            further=found.further,
            complete=all(each.complete for each in found.destinations),
            state_of=state_of,
            waiting_path=waiting_path,
            instant_of=parse_instant,
            may_change=context.principal.may(Role.ADMIN),
        )

    @route("POST", "/destinations/{change:str}")
    async def change(self, context: RequestContext) -> Response:
        """Pauses, resumes or probes a destination."""
        context.permit(Role.ADMIN)
        changes = {"pause": self._requests.pause, "resume": self._requests.resume, "probe": self._requests.probe}
        change = changes.get(context.request.path_params["change"])
        if change is None:
            raise NotFound("there is no such page")
        await change(DestinationName(context.form.get("destination")), context.actor, context.now_us)
        return RedirectResponse("/destinations", 303)


def state_of(destination: Destination) -> State:
    """Whether timers fire there at once: none that comes due does while others wait for a slot."""
    if destination.paused:
        return _PAUSED
    if destination.breaker is BreakerState.CLOSED and destination.waiting:
        return _WAITED_FOR
    return _STATES[destination.breaker]


def waiting_path(destination: str) -> str:
    """The list of the timers that wait for a destination."""
    return f"/timers?{urlencode(waiting_filters(destination))}"


def waiting_filters(destination: str) -> dict[str, str]:
    """The filters of that list. URLs have no port where it is their scheme's."""
    scheme, _, place = destination.partition("://")
    return {"view": "waiting", "destination": place.removesuffix(_PORTS.get(scheme, ""))}
