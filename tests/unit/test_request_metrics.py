"""Which responses of the API count as creates that the server refused."""

from __future__ import annotations

import re

from tocsin.telemetry.metrics import CREATES, RequestMetrics
from tocsin.web.api.operation import declared_by
from tocsin.web.api.routes import FAMILIES


def test_operations_that_create_timers_or_schedules_are_those_that_are_counted() -> None:
    names = {operation.name for family in FAMILIES for operation in declared_by(family)}
    assert set(CREATES) == {name for name in names if re.fullmatch("create(Timer|Schedule)s?|batchCreate.*", name)}


def test_errors_of_the_server_count_and_those_of_clients_do_not() -> None:
    requests = RequestMetrics()
    for operation in ("createTimer", "batchCreateTimers", "createSchedule", "getTimer"):
        for status in (200, 409, 429, 500, 503):
            requests(operation, status, 0.01)
    assert requests.creates_refused() == 6
    for status in (404, 503):
        requests.item_refused(status)
    assert requests.creates_refused() == 7
