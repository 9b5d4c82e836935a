"""The operation on statistics."""

from __future__ import annotations

from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.validation import InputRules
from tocsin.statistics.reading import StatisticsReader
from tocsin.timers.service import TimerService
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import statistics as wire
from tocsin.web.http.access import require_namespace
from tocsin.web.http.constraints import refuse_bad_fields


class StatisticsHandlers:
    """Handles get."""

    def __init__(self, service: TimerService, reader: StatisticsReader, rules: InputRules) -> None:
        self._service = service
        self._reader = reader
        self._rules = rules

    @Operation("getStatistics", "/api/v1/statistics/get", Role.READ, Reach.VISIBLE, body_optional=True)
    async def get(self, request: ApiRequest, sent: wire.GetStatistics) -> wire.Statistics:
        """What happened, slot by slot, on all nodes: timers created, attempts by outcome, lag, failing destinations, and
        outages in which nodes fired nothing. A key that is limited to namespaces gets the numbers of these only. Of the
        minute that is not over yet, only the responding node's numbers are known. A slot counts the busiest 200 namespaces
        apart; those of the others are in `*` only. Minutes are kept for 24 hours, then slots of ten minutes for 30 days; a
        node that is killed loses its last minute."""
        key, reader = request.key, self._reader
        refuse_bad_fields(sent, self._rules)
        namespace = wire.ALL if sent.namespace is UNSET else sent.namespace
        if namespace != wire.ALL:
            if key is not None:
                require_namespace(key, Role.READ, namespace)
            await self._service.namespaces.ensure_known(namespace)
            self._service.namespaces.get(namespace)
        limited = key is not None and not key.allows(Role.READ, None)

        def is_wanted(name: str) -> bool:
            if namespace != wire.ALL:
                return name == namespace
            return key is None or key.allows(Role.READ, name)

        wanted = wire.statistics_range(sent, request.now_us, reader.limits)
        found = await reader.read(*wanted[:3], is_wanted)
        outages = reader.outages(wanted.from_us, wanted.to_us)
        return wire.statistics_answer(wanted, found, outages, reader.limits.places_max, limited=limited)
