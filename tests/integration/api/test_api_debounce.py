"""Debounced creates over HTTP: which fields they take, and what is wrong with others."""

from __future__ import annotations

from typing import Any

from api_server import Served
from tests.support.cases import each

TIMER = {"namespace": "default", "id": "t1", "callbackUrl": "https://a.example/x", "onConflict": "debounce"}
DEBOUNCED = TIMER | {"delay": "5s", "maxDelay": "1m"}


def refused(server: Served, timer: dict[str, Any]) -> list[tuple[str, str]]:
    answer = server.client.post("/api/v1/timers/create", json=timer)
    assert answer.status_code == 400, answer.text
    return [(each["path"], each["reason"]) for each in answer.json()["errors"]]


@each(
    "fields, path, reason",
    [
        ({"executeAt": "2100-01-01T00:00:00Z", "delay": None}, "executeAt", "counts from the latest create"),
        ({"delay": None}, "delay", "fires that long after the latest create"),
        ({"maxDelay": None}, "maxDelay", "fires at the latest that long after the first create"),
        ({"maxDelay": "4s"}, "maxDelay", "is shorter than delay"),
        ({"maxDelay": "soon"}, "maxDelay", "duration"),
        ({"maxDelay": "100000d"}, "maxDelay", "at most"),
        ({"collect": 0}, "collect", "give 1 to 100"),
        ({"collect": 101}, "collect", "give 1 to 100"),
        ({"collect": 2, "body": {"text": "x"}}, "collect", "conflicts with body"),
        ({"collect": 2, "method": "GET"}, "collect", "conflicts with method GET"),
        ({"onConflict": None}, "maxDelay", 'needs onConflict "debounce"'),
        ({"onConflict": "replace", "maxDelay": None, "collect": 3}, "collect", 'needs onConflict "debounce"'),
    ],
)  # fmt: skip
def test_a_debounced_create_is_refused_at_the_field(
    server: Served, fields: dict[str, Any], path: str, reason: str
) -> None:
    sent = {name: value for name, value in (DEBOUNCED | fields).items() if value is not None}
    ((found, why),) = refused(server, sent)
    assert found == path
    assert reason in why
    batch = server.client.post("/api/v1/timers/batch/create", json={"timers": [sent]}).json()["results"]
    assert [each["path"] for each in batch[0]["error"]["errors"]] == [f"timers[0].{path}"]


def test_both_instants_beside_debounce_are_refused(server: Served) -> None:
    paths = [path for path, _ in refused(server, DEBOUNCED | {"executeAt": "2100-01-01T00:00:00Z"})]
    assert paths == ["delay", "executeAt"]


def test_a_debounced_create_is_one_condition_of_the_service(server: Served) -> None:
    answer = server.client.post("/api/v1/timers/create", json=DEBOUNCED | {"collect": 3, "idempotencyKey": "k"})
    assert answer.status_code == 200, answer.text
    again = server.client.post("/api/v1/timers/create", json=DEBOUNCED | {"collect": 4, "idempotencyKey": "k"})
    assert (again.status_code, again.json()["error"]) == (409, "IDEMPOTENCY_CONFLICT")
