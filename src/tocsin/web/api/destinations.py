"""The operations on destinations."""

from __future__ import annotations

from functools import partial

from tocsin.model.access import Role
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.timers.destinations import Destinations
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import destinations as wire

_change = partial(Operation, role=Role.ADMIN, reach=Reach.SERVICE)


class DestinationHandlers:
    """Handles list, pause, resume and probe."""

    def __init__(self, destinations: Destinations, rules: InputRules, audit: AuditLog) -> None:
        self._requests = wire.DestinationRequests(destinations, rules, audit)

    @Operation("listDestinations", "/api/v1/destinations/list", Role.READ, reach=Reach.SERVICE, body_optional=True)
    async def list(self, request: ApiRequest, sent: wire.ListDestinations) -> wire.DestinationList:
        """The hosts to which timers are sent, in use or within the last five minutes, and those that are paused, in the whole
        cluster: first those that are paused, those with an open breaker, and those for which most timers wait. Each node has
        a breaker for each destination. While it is open, because 90% of at least 20 attempts of 30 seconds got no response or
        a status of 500 and above, timers wait without using up attempts, and probes are made after 10 s, 20 s, 40 s and so
        on; three that succeed close it."""
        return await self._requests.list(sent, request.now_us)

    @_change("pauseDestination", "/api/v1/destinations/pause")
    async def pause(self, request: ApiRequest, sent: wire.DestinationName) -> wire.Destination:
        """From the response on, no attempt of a timer to this destination begins on any node until it is resumed. In-flight
        attempts go on. Timers wait, without using up attempts; expireAfter counts on. Safe to repeat."""
        return await self._requests.pause(sent, request.actor, request.now_us)

    @_change("resumeDestination", "/api/v1/destinations/resume")
    async def resume(self, request: ApiRequest, sent: wire.DestinationName) -> wire.Destination:
        """Ends a pause. What waits is sent, as the limits and breakers allow. Safe to repeat."""
        return await self._requests.resume(sent, request.actor, request.now_us)

    @_change("probeDestination", "/api/v1/destinations/probe")
    async def probe(self, request: ApiRequest, sent: wire.DestinationName) -> wire.Destination:
        """Has each node whose breaker for the destination is open try one of its waiting timers at once. If that attempt
        succeeds, the breaker closes. Does nothing where it is closed."""
        return await self._requests.probe(sent, request.actor, request.now_us)
