"""Conditional creates over HTTP: `onConflict`, the header Idempotency-Key and the field."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from api_server import Served
from tests.support.cases import each

TIMER = {"namespace": "default", "id": "t1", "delay": "1h", "callbackUrl": "https://a.example/x"}


def create(server: Served, *, key: str | None = None, whole: bool = True, **fields: Any) -> httpx.Response:
    """`whole` takes the direct path; a body in chunks does not."""
    headers = {} if key is None else {"idempotency-key": key}
    sent = server.client.build_request("POST", "/api/v1/timers/create", json={**TIMER, **fields})
    content: Any = sent.read() if whole else iter([sent.read()])
    headers["content-type"] = "application/json"
    return server.client.post("/api/v1/timers/create", content=content, headers=headers)


@pytest.mark.parametrize("whole", [True, False])
def test_a_create_reports_existing_and_replayed_timers(server: Served, whole: bool) -> None:
    first = create(server, whole=whole, onConflict="reject")
    assert first.status_code == 200
    assert "tocsin-existing" not in first.headers
    assert "idempotency-replayed" not in first.headers
    kept = create(server, whole=whole, onConflict="keep", payload=2)
    assert (kept.status_code, kept.headers["tocsin-existing"], kept.json()) == (200, "true", first.json())
    assert kept.headers["content-type"] == "application/json"
    rejected = create(server, whole=whole, onConflict="reject")
    assert (rejected.status_code, rejected.json()["error"]) == (409, "TIMER_EXISTS")
    assert create(server, whole=whole, onConflict="replace", payload=3).json()["payload"] == 3
    assert create(server, whole=whole, onConflict="maybe").json()["errors"] == [
        {"path": "onConflict", "reason": "must be one of replace, keep, reject, debounce"}
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_a_repeated_create_returns_the_current_timer(server: Served, whole: bool) -> None:
    first = create(server, whole=whole, key="k-1", headers={"a": "1", "b": "2"})
    # The same key as the draft wants it written, what is left of the delay, and headers in another order.
    again = create(server, whole=whole, key='"k-1"', delay="5m", headers={"b": "2", "A": "1"})
    assert (again.status_code, again.headers["idempotency-replayed"], again.json()) == (200, "true", first.json())
    assert (
        create(server, whole=whole, idempotencyKey="k-1", key="k-1", headers={"a": "1", "b": "2"}).json()
        == first.json()
    )
    server.service.finish("default", "t1", 1_700_000_000_000_000)
    finished = create(server, whole=whole, idempotencyKey="k-1", onConflict="reject", headers={"a": "1", "b": "2"})
    assert (finished.headers["idempotency-replayed"], finished.json()["status"]) == ("true", "failed")
    conflict = create(server, whole=whole, key="k-1", payload=2)
    assert (conflict.status_code, conflict.json()["error"]) == (409, "IDEMPOTENCY_CONFLICT")


def test_a_first_try_stores_its_key_and_is_marked_in_one_way(server: Served) -> None:
    for first_try, replayed in (("1", None), (None, "true")):
        headers = {"idempotency-key": "k"} | ({"tocsin-first-try": first_try} if first_try else {})
        made = server.client.post("/api/v1/timers/create", json=TIMER, headers=headers)
        assert (made.status_code, made.headers.get("idempotency-replayed")) == (200, replayed)
    for path, body in (("create", TIMER), ("batch/create", {"timers": [TIMER]})):
        refused = server.client.post(f"/api/v1/timers/{path}", json=body, headers={"tocsin-first-try": "yes"})
        assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "Tocsin-First-Try")


def test_equal_instants_in_other_notation_are_the_same_request(server: Served) -> None:
    sent = {key: value for key, value in TIMER.items() if key != "delay"} | {"idempotencyKey": "k"}
    for text, replayed in (("2027-01-31T12:00:00Z", None), ("2027-01-31T13:00:00.000+01:00", "true")):
        answer = server.post("timers/create", {**sent, "executeAt": text})
        assert answer.headers.get("idempotency-replayed") == replayed
    other = server.post("timers/create", {**sent, "executeAt": "2027-01-31T12:00:01Z"})
    assert other.json()["error"] == "IDEMPOTENCY_CONFLICT"


@each(
    "header, field, path",
    [
        ("", None, "Idempotency-Key"),
        ('""', None, "Idempotency-Key"),
        ("two words", None, "Idempotency-Key"),
        ("k" * 256, None, "Idempotency-Key"),
        (None, "", "idempotencyKey"),
        (None, "é", "idempotencyKey"),
        (None, "k" * 256, "idempotencyKey"),
        ("one", "other", "idempotencyKey"),
    ],
)
def test_invalid_idempotency_keys_are_refused_by_name(
    server: Served, header: str | None, field: str | None, path: str
) -> None:
    answer = create(server, key=header, **({} if field is None else {"idempotencyKey": field}))
    assert answer.status_code == 400
    assert [bad["path"] for bad in answer.json()["errors"]] == [path]
    assert not server.service.timers


def test_batch_items_report_existing_and_replayed_timers(server: Served) -> None:
    def batch(*timers: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
        answer = server.post(
            "timers/batch/create", {"timers": [{**TIMER, **timer} for timer in timers]}, headers=headers
        )
        assert answer.status_code == 200
        results: list[dict[str, Any]] = answer.json()["results"]
        return [{name: value for name, value in result.items() if name != "timer"} for result in results]

    items = [{"id": "a", "idempotencyKey": "k"}, {"id": "b"}, {"id": "c", "onConflict": "keep"}]
    assert batch(*items) == [{}, {}, {}]
    assert batch(*items) == [{"replayed": True}, {}, {"existing": True}]
    # The header stands for the keys of those that have none.
    assert batch(*items, **{"idempotency-key": "h"}) == [{"replayed": True}, {}, {"existing": True}]
    assert batch(*items, **{"idempotency-key": "h"}) == [{"replayed": True}, {"replayed": True}, {"existing": True}]
    (failed,) = batch({"id": "a", "idempotencyKey": "k", "payload": 1})
    assert (failed["error"]["error"], failed["error"]["status"]) == ("IDEMPOTENCY_CONFLICT", 409)
    (bad,) = batch({"id": "a", "idempotencyKey": "no key"})
    assert bad["error"]["errors"][0]["path"] == "timers[0].idempotencyKey"


def test_a_repeated_create_may_use_the_ids_alias(server: Served) -> None:
    first = create(server, key="k-1")
    renamed = {("timerId" if name == "id" else name): value for name, value in TIMER.items()}
    again = server.post("timers/create", renamed, headers={"idempotency-key": "k-1"})
    assert (again.status_code, again.headers["idempotency-replayed"], again.json()) == (200, "true", first.json())


@each(
    "operation, sent",
    [
        ("schedules/trigger", {"namespace": "default", "scheduleId": "s"}),
        (
            "schedules/backfill",
            {
                "namespace": "default",
                "scheduleId": "s",
                "after": "2026-01-01T00:00:00Z",
                "before": "2026-01-02T00:00:00Z",
            },
        ),
        ("namespaces/rotateSecret", {"name": "default"}),
        ("tenants/rotateSecret", {"tenantId": "01890a5d-ac96-774b-bcce-b302099a8057"}),
    ],
)
def test_an_idempotency_key_is_refused_where_each_request_is_done_again(
    server: Served, operation: str, sent: dict[str, str]
) -> None:
    answer = server.post(operation, sent, headers={"idempotency-key": "k"})
    assert (answer.status_code, [bad["path"] for bad in answer.json()["errors"]]) == (400, ["Idempotency-Key"])
